"""Finds what a cell uses that no cell above it makes: it runs now, and will not after a restart of the kernel.

A static look: nothing is run. It is silent where it can't know (star imports, exec, magics that set names), so that what
it says is worth reading. Read `unmade`.
"""

from __future__ import annotations

import ast
import builtins
import dis
import re
import types
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from nbagent.core.ports import Cell
from nbagent.tools import cellcode
from nbagent.tools.cells import starts_agent
from nbagent.tools.sqlcells import sql_cell, sql_parts

_FROM_IPYTHON = frozenset({"get_ipython", "display", "In", "Out", "exit", "quit"})
_SETS_NO_NAMES = frozenset(
    {
        *("time", "timeit", "matplotlib", "load_ext", "reload_ext", "autoreload", "config", "env", "pip", "conda"),
        *(
            "uv",
            "mamba",
            "cd",
            "pwd",
            "ls",
            "who",
            "whos",
            "precision",
            "xmode",
            "agent",
            "prun",
            "memit",
            "html",
            "latex",
        ),
        *("sql", "sqlplot", "sqlcmd", "writefile", "markdown", "javascript", "js", "svg", "HTML"),
    }
)
_ASSIGNED = re.compile(r"^\s*([A-Za-z_][\w, \t]*?)\s*=\s*[!%]", re.MULTILINE)
_OUT = re.compile(r"--out[ =]([A-Za-z_]\w*)")
_LOADS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_NAME"})
_STORES = frozenset({"STORE_NAME", "STORE_GLOBAL"})
_AT_ONCE = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})
_COMPUTED = frozenset(
    {"exec", "eval", "globals", "locals", "vars", "run_line_magic", "run_cell_magic", "run_cell", "push"}
)
_MOST = 2_000  # cells: a look at more would be felt


@dataclass(frozen=True, slots=True)
class _Names:
    """The names that a cell makes and those that it needs from elsewhere; `known` is False where that can't be said.

    `later` are needed by functions only: when they are called, which may be below the cell that makes the name.
    """

    makes: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    known: bool = True


def unmade(cells: Sequence[Cell], wanted: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return, for those of the cells with ids `wanted` that use such names, the names that no cell above makes."""
    found: dict[str, tuple[str, ...]] = {}
    there = set(dir(builtins)) | _FROM_IPYTHON
    known: list[tuple[str, _Names]] = []
    for cell in cells[:_MOST]:
        if cell.type != "code":
            continue
        names = _names(cell.source)
        if not names.known:
            break  # whatever comes below may be made here
        known.append((cell.id, names))
    else:
        everywhere = there.union(*(names.makes for _, names in known))
        found = {cell_id: _missing(names.later, everywhere) for cell_id, names in known}
    for cell_id, names in known:
        found[cell_id] = _missing(names.needs, there) + found.get(cell_id, ())
        there |= names.makes
    return {cell_id: names for cell_id, names in found.items() if names and cell_id in wanted}


def _missing(names: Iterable[str], there: set[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in there and not name.startswith("_"))


def _names(source: str) -> _Names:
    if starts_agent(source):
        return _Names(frozenset(_OUT.findall(source.partition("\n")[0])))
    if (sql := sql_cell(source)) is not None:  # its tables may be a database's: what is not made above is no news
        return _Names(frozenset({sql.makes} - {""}))
    parts = cellcode.split(source)
    if any(name not in _SETS_NO_NAMES for name, _ in parts.magics):
        return _Names(known=False)
    if parts.tree is None:
        return _Names(known=not source.strip() or bool(parts.shell) or _is_text_cell(source))
    if any(_is_computed(node) for node in ast.walk(parts.tree)):
        return _Names(known=False)
    code = _compiled(parts.tree)
    if code is None:
        return _Names(known=False)
    made = {name.strip() for names in _ASSIGNED.findall(source) for name in names.split(",")}
    made |= {part.makes for part in sql_parts(source)} - {""}
    needs: dict[str, None] = {}
    later: dict[str, None] = {}
    for name, stored in _uses(code):
        if stored:
            made.add(name)
        elif name not in made:
            needs[name] = None
    inner = [(found, use) for found in _nested(code) for use in _uses(found)]
    made |= {name for _, (name, stored) in inner if stored}
    for found, (name, stored) in inner:
        if not stored and name not in made:
            (needs if found.co_name in _AT_ONCE else later)[name] = None
    return _Names(frozenset(made), tuple(needs), tuple(name for name in later if name not in needs))


def _is_text_cell(source: str) -> bool:
    return source.lstrip().startswith("%%")


def _is_computed(node: ast.AST) -> bool:
    """Whether a node may make names that can't be read off: a star import, exec, globals()."""
    if isinstance(node, ast.ImportFrom):
        return any(alias.name == "*" for alias in node.names)
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in _COMPUTED and not (isinstance(node.func, ast.Attribute) and name in {"eval", "push", "vars"})


def _compiled(tree: ast.Module) -> types.CodeType | None:
    """Compile, without running: the compiler knows which names are a function's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            return compile(tree, "<cell>", "exec", flags=flags, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _uses(code: types.CodeType) -> Iterator[tuple[str, bool]]:
    """Yield the global names of one code object in order, each with whether it is stored."""
    module = code.co_name == "<module>"
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        if not isinstance(name, str):
            continue
        if instruction.opname in _LOADS and (module or instruction.opname != "LOAD_NAME"):
            yield name, False
        elif instruction.opname == "STORE_GLOBAL" or (module and instruction.opname in _STORES):
            yield name, True


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _nested(constant)
