"""Takes a cell apart as IPython would read it: Python, shell commands, magics. Nothing of it is run.

A look at lines, not IPython's own transformer, which must not be imported here: it may see a command inside a long
string beside a real magic, and so raise a question too many. It must not know what any command does. Read `split`.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field

_SHELL_CELLS = frozenset(
    {
        *("bash", "sh", "zsh", "script", "cmd", "powershell", "pwsh", "sx", "system", "!"),
        *("perl", "ruby", "python", "python2", "python3", "pypy"),
    }
)
_TEXT_CELLS = frozenset(
    {"writefile", "file", "html", "HTML", "markdown", "latex", "svg", "SVG", "javascript", "js", "mermaid", "css"}
)
_SQL_CELLS = frozenset({"sql", "bigquery", "sparksql"})
_AUTOMAGIC = frozenset(
    {
        *("pip", "conda", "mamba", "micromamba", "uv", "sx", "system", "sc", "run", "load", "edit", "alias", "rerun"),
        *("rm", "mv", "rmdir", "cp", "mkdir", "cat", "man", "less", "more", "ls", "ll", "copy", "ren"),
    }
)
_TAKES_NO_PYTHON = frozenset(
    {
        "env",
        "set_env",
        "config",
        "alias",
        "cd",
        "pushd",
        "popd",
        "reset",
        "reset_selective",
        "xdel",
        "store",
        "matplotlib",
    }
)
_HEAD = re.compile(r"%%\s*(!|\w+)(.*)")
_ESCAPED = re.compile(r"\s*(?:(?P<target>[\w.,\s\[\]'\"*()]+)=\s*)?(?P<mark>!!?|%)(?P<rest>.*)\Z", re.DOTALL)
_MAGIC = re.compile(r"%?\s*(\w+)\s*(.*)\Z", re.DOTALL)
_COMMAND = re.compile(r"(?:^|\s)!(?!=)(.*)", re.DOTALL)
_AUTOCALL = re.compile(r"\s*(?P<mark>[,;/])(?P<name>[A-Za-z_][\w.]*)\s*(?P<rest>.*)\Z")
_HELP = re.compile(r"\s*(?:\?{1,2}\s*[\w.*%]+|[\w.*%\[\]'\"]+\?{1,2})\s*;?\s*\Z")
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.|In \[\d+\]:|   \.{3,}:)(?: |$)", re.MULTILINE)


@dataclass(slots=True)
class Parts:
    """What a cell is made of: its Python (None: it can't be read), shell commands, and magics as (name, rest).

    `heads` are the magics of its `%%` lines, as (name, rest, body), those too whose body is no Python.
    """

    tree: ast.Module | None = None
    heads: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    shell: list[str] = field(default_factory=list[str])
    magics: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def parse(code: str) -> ast.Module | None:
    """Return the syntax tree of plain Python, or None where it is none. Warnings about the code stay quiet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def split(code: str) -> Parts:
    """Take a cell apart; one that is Python as a whole is taken as it is.

    A lone line such as `rm x` or `pip install x` is a magic without its %, as IPython reads it.
    """
    parts = Parts()
    body = _cell_magics(code, parts)
    if _is_automagic(body):
        _note(parts, *_magic(body.strip()))
        body = ""
    parts.tree = parse(body)
    if parts.tree is None:
        parts.tree = parse(_lines(body, parts))
    return parts


def _cell_magics(code: str, parts: Parts) -> str:
    """Take off the `%%` lines at the top; return the Python below them, "" where the body is something else."""
    body = code.lstrip("\ufeff \t\r\n") if code.lstrip("\ufeff \t\r\n").startswith(("%%", "!!")) else code
    while found := _HEAD.match(body):
        name, rest = found[1], found[2].strip()
        below = body[found.end() :].lstrip("\n")
        parts.heads.append((name, rest, below))
        if name in _SHELL_CELLS:
            parts.shell.append(f"{rest}\n{below}")
            return ""
        if name in _TEXT_CELLS:
            return ""
        _note(parts, name, rest)
        if name in _SQL_CELLS:
            return ""
        body = below
    return body


def _note(parts: Parts, name: str, rest: str) -> None:
    """Remember a magic, and the command that it runs, as in `%time !ls`."""
    parts.magics.append((name, rest))
    if (command := _COMMAND.search(rest)) and not python_of(rest):
        parts.shell.append(command[1])


def _is_automagic(body: str) -> bool:
    line = body.strip()
    if not line or "\n" in line:
        return False
    first, _, rest = line.partition(" ")
    return first in _AUTOMAGIC and not rest.lstrip().startswith(("=", ",", ".", "("))


def _magic(text: str) -> tuple[str, str]:
    found = _MAGIC.match(text)
    return (found[1], found[2].strip()) if found else ("", text)


def _lines(body: str, parts: Parts) -> str:
    """Return the Python of a cell with every IPython line blanked or turned into the call that it means."""
    if _PROMPT.match(body.lstrip("\n")):
        body = _PROMPT.sub("", body)
    python: list[str] = []
    for line in _joined(_dedented(body)):
        indent = line[: len(line) - len(line.lstrip())]
        if (found := _ESCAPED.match(line)) and (not found["target"] or _is_target(found["target"])):
            target = f"{found['target'].strip()} = " if found["target"] else ""
            if found["mark"].startswith("!"):
                parts.shell.append(found["rest"])
                python.append(f"{indent}{target}None")
            else:
                name, rest = _magic(found["rest"])
                _note(parts, name, rest)
                inner = "" if name in _TAKES_NO_PYTHON else python_of(rest)
                if name == "timeit" and inner and not found["target"]:  # it runs in a function of its own
                    python.append(f"{indent}def _timeit(): {inner}")
                    inner = "_timeit()"
                whole = f"{target}{inner}" if inner and parse(f"{target}{inner}") else f"{target}None"
                python.append(f"{indent}{whole}")
        elif found := _AUTOCALL.match(line):
            given = found["rest"] if found["mark"] == "/" else repr(found["rest"])
            call = f"{found['name']}({given})"
            python.append(indent + (call if parse(call) else f"{found['name']}()"))
        elif _HELP.match(line):
            python.append(f"{indent}pass")
        else:
            python.append(line)
    return "\n".join(python)


def python_of(rest: str) -> str:
    """Return the Python that a magic such as `%time` or `%timeit -n 3` is followed by, or ""."""
    words = rest
    for _ in range(8):
        tree = parse(words)
        if tree is not None and tree.body:
            return words
        words = words.partition(" ")[2].lstrip()
    return ""


def _is_target(text: str) -> bool:
    return parse(f"{text.strip()} = 0") is not None


def _dedented(body: str) -> str:
    """Take the indent of the first line off all lines, as IPython does."""
    first = next((line for line in body.splitlines() if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return "\n".join(line.removeprefix(indent) for line in body.splitlines()) if indent else body


def _joined(body: str) -> list[str]:
    """Return the lines, those of a command that goes on after a backslash as one."""
    lines: list[str] = []
    going_on = False
    for line in body.splitlines():
        if going_on:
            lines[-1] = f"{lines[-1][:-1]} {line.strip()}"
        else:
            lines.append(line)
        going_on = lines[-1].endswith("\\") and bool(_ESCAPED.match(lines[-1]))
    return lines
