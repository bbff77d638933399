"""A static look at code: could it end the kernel? It may raise a question and never answers one.

Code that hides its intent (a computed name, another library) gets through; the approval of code is what protects.
This module must not run, import or evaluate anything of the code. Read `exits_kernel`.
"""

from __future__ import annotations

import ast
import re

_NAMES = frozenset({"exit", "quit"})
_MODULE_CALLS = frozenset(
    {
        *(f"os.{name}" for name in ("_exit", "abort", "kill", "killpg")),
        *(f"os.exec{suffix}" for suffix in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
        *(f"signal.{name}" for name in ("raise_signal", "pthread_kill", "alarm", "setitimer")),
        "faulthandler._sigsegv",
        "faulthandler._sigabrt",
        "_thread.interrupt_main",
    }
)
_ATTRIBUTES = frozenset({"_exit", "ask_exit", "exit_now", "do_shutdown", "killpg", "raise_signal"})
_SHELL_KILL = re.compile(r"(?:^|[\s;&|(])(?:kill|pkill|killall|shutdown|reboot)\b")
_SHELL_CELL = re.compile(r"\s*%%(?:bash|sh|script|!)")
_TEXTUAL = re.compile(
    r"\b(?:exit|quit)\s*\(|\bos\s*\.\s*(?:_exit|abort|kill|killpg|exec\w+)\b|\braise_signal\b|\bask_exit\b|\bdo_shutdown\b"
    r"|^\s*(?:exit|quit)\s*;?\s*$",
    re.MULTILINE,
)


def exits_kernel(code: str) -> bool:
    """Tell whether `code` (a cell: Python, magics and `!` lines) looks as if it could end or kill the kernel.

    True for exit() and quit(), os._exit, os.kill, os.exec*, signal.raise_signal and their like, also imported by name
    or fetched with getattr, and for shell lines that kill. `sys.exit` is not among them: it only stops the code.
    """
    if _SHELL_CELL.match(code):
        return bool(_SHELL_KILL.search(code))
    python, shell = _split(code)
    if any(_SHELL_KILL.search(line) for line in shell):
        return True
    try:
        tree = ast.parse(python)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return bool(_TEXTUAL.search(code))
    aliases = _aliases(tree)
    return any(_suspicious(node, aliases) for node in ast.walk(tree))


def _split(code: str) -> tuple[str, list[str]]:
    """Separate the Python lines of a cell from its shell commands; magic names become blanks, their code stays."""
    python: list[str] = []
    shell: list[str] = []
    for line in code.splitlines():
        stripped = line.lstrip()
        assigned = re.match(r"\s*[\w.,\s\[\]'\"]+=\s*!(.*)$", line)
        indent = line[: len(line) - len(stripped)]
        if stripped.startswith("!"):
            shell.append(stripped.lstrip("!"))
            python.append(indent + "pass")
        elif assigned:
            shell.append(assigned[1])
            python.append(indent + "pass")
        elif stripped.startswith("%"):
            # `%time exit()` runs its rest; anything that is not Python falls back to the textual look
            rest = re.sub(r"^%+\w+\s*(?:-\w+\s+)*", "", stripped)
            python.append(indent + (rest if _parses(rest) else "pass"))
        else:
            python.append(line)
    return "\n".join(python), shell


def _parses(line: str) -> bool:
    try:
        ast.parse(line)
    except (SyntaxError, ValueError):
        return False
    return bool(line.strip())


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Map local names to the dotted names that they were imported as."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def _suspicious(node: ast.AST, aliases: dict[str, str]) -> bool:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id in _NAMES or aliases.get(node.id, "") in _MODULE_CALLS
    if isinstance(node, ast.Attribute):
        owner = aliases.get(node.value.id, node.value.id) if isinstance(node.value, ast.Name) else ""
        return node.attr in _ATTRIBUTES or f"{owner}.{node.attr}" in _MODULE_CALLS or _kills_process(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"getattr", "setattr"}:
        return any(isinstance(a, ast.Constant) and a.value in _ATTRIBUTES | {"kill", "abort"} for a in node.args)
    return False


def _kills_process(node: ast.Attribute) -> bool:
    """Whether it is `psutil.Process().kill` or the like on the kernel's own process."""
    call = node.value
    if node.attr not in {"kill", "terminate", "suspend", "send_signal"} or not isinstance(call, ast.Call):
        return False
    return not call.args and ast.unparse(call.func) in {"psutil.Process", "Process"}
