"""What one cell does with names and files, from its source alone: defines, uses, changes in place, imports, reads, writes.

It goes the same way through the code as reads.py, and asks more of it. It must not know of other cells (dataflow.py puts
them together), and nothing of the code is run or imported. Read `Flow`, then `flow_of`.
"""

# ruff: noqa: N802  (visit_… are named by ast, and mean what it says)

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nbagent.tools.cellcode import Parts, split
from nbagent.tools.cells import starts_agent
from nbagent.tools.flowfiles import files_of_call, text_of
from nbagent.tools.flowmagics import magic_names, shell_names
from nbagent.tools.reads import Walk

_CHANGING = frozenset({
    *("append", "extend", "insert", "update", "add", "remove", "discard", "pop", "popitem", "clear", "sort", "reverse"),
    *("setdefault", "appendleft", "popleft", "rotate", "subtract", "fill", "resize", "itemset", "put", "partial_fit", "fit"),
    *("intersection_update", "difference_update", "symmetric_difference_update", "set", "vstack", "hstack"),
})  # fmt: skip
"""Methods that change the object that they are called on."""
_PREFIXES = ("set_", "add_")
_CHANGES_ARGUMENT = frozenset({"shuffle", "heappush", "heappop", "heapify", "insort", "setattr", "delattr"})
_OPENING = frozenset({"exec", "execfile", "run_cell", "run_code", "push", "ex", "safe_execfile", "run_line_magic"})
LONGEST = 100_000
"""Characters of a cell up to which its code is read: the time grows with it, and other cells' work waits."""
_WORD = re.compile(r"[^\W\d]\w*")
_NAMESPACES = frozenset({"globals", "locals", "vars"})


@dataclass(frozen=True, slots=True)
class Imported:
    """One name that a cell imports: `module` is what it comes from (`pandas`, `sklearn.cluster`), at `line` of the code."""

    name: str
    module: str
    line: int


@dataclass(frozen=True, slots=True)
class Flow:
    """What one cell does, from its source. Names are those of the notebook's namespace.

    `defines`: bound when it has run, `certain` of them in any case. `uses`: read before it binds them; `later`: read only
    by its functions, when they are called; `maybe`: words of texts (SQL, `query`) and shell lines that may be names.
    `changes`: objects changed in place; `deletes`: names that it takes away. `opens` says why it may bind names that can't
    be told ("" if it does not), `problem` why it is no Python. `lines`: where a name is used first, from 1 in the code
    below the cell's `%%` lines. `shows`: its last line is a value that is shown, or it prints, draws or displays.
    """

    id: str
    index: int
    type: str = "code"
    defines: frozenset[str] = frozenset()
    certain: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    maybe: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    deletes: frozenset[str] = frozenset()
    imports: tuple[Imported, ...] = ()
    read_files: tuple[str, ...] = ()
    written_files: tuple[str, ...] = ()
    opens: str = ""
    problem: str = ""
    agent: bool = False
    shows: bool = False
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names that are bound to one literal text, such as a path."""
    lines: Mapping[str, int] = field(default_factory=dict[str, int])


def flow_of(cell_id: str, index: int, source: str, type_: str = "code", known: Mapping[str, str] | None = None) -> Flow:
    """Return what a cell does; `known` are literal texts that names hold from the cells above it."""
    if type_ != "code" or not source.strip():
        return Flow(cell_id, index, type_)
    if starts_agent(source):
        return Flow(cell_id, index, agent=True)
    if len(source) > LONGEST:
        long = f"it is longer than {LONGEST:,} characters, and was not read"
        return Flow(cell_id, index, opens=long, problem=long, shows=True)
    texts = known or {}
    named = sorted(texts.keys() & set(_WORD.findall(source))) if texts else ()  # of the others it can't say anything
    return replace(_flow_of(source, tuple((name, texts[name]) for name in named)), id=cell_id, index=index)


@functools.lru_cache(maxsize=2048)
def _flow_of(source: str, known: tuple[tuple[str, str], ...]) -> Flow:
    """The same of a cell without a place: most cells of a notebook are asked about again and again."""
    parts = split(source)
    walk = _CellWalk(dict(known))
    for name, rest, body in _magics(parts):
        found = magic_names(name, rest, body)
        walk.maybe |= found.maybe
        walk.magic_defines |= found.defines
        walk.opens = walk.opens or found.opens
    for command in parts.shell:
        walk.maybe |= shell_names(command)
    problem = "" if parts.tree is not None or parts.heads else "it is no Python that can be read"
    if parts.tree is not None:
        try:
            walk.body(parts.tree.body)
        except RecursionError:
            problem = "its code is nested too deeply to be read"
    return _flow(parts, walk, problem)


def _magics(parts: Parts) -> Sequence[tuple[str, str, str]]:
    heads = [(name, rest) for name, rest, _ in parts.heads]
    return [*parts.heads, *((name, rest, "") for name, rest in parts.magics if (name, rest) not in heads)]


def _flow(parts: Parts, walk: _CellWalk, problem: str) -> Flow:
    deleted = walk.deleted - walk.bound_again
    defines = (walk.stored | walk.magic_defines) - deleted - {"_timeit"}  # the last is cellcode's own
    return Flow(
        "",
        0,
        defines=frozenset(defines),
        certain=frozenset((walk.certain | walk.magic_defines) - deleted),
        uses=frozenset(walk.loaded),
        later=frozenset(walk.later - walk.stored - walk.loaded),
        maybe=frozenset(walk.maybe - walk.loaded),
        changes=frozenset(walk.changed),
        deletes=frozenset(deleted),
        imports=tuple(walk.imports),
        read_files=tuple(dict.fromkeys(walk.read_files)),
        written_files=tuple(dict.fromkeys(walk.written_files)),
        opens=walk.opens,
        problem=problem,
        shows=_shows(parts.tree, walk),
        texts={name: text for name, text in walk.known.items() if name in walk.own_texts},
        lines=walk.lines,
    )


def _shows(tree: ast.Module | None, walk: _CellWalk) -> bool:
    last = tree.body[-1] if tree is not None and tree.body else None
    return walk.shown or tree is None or (isinstance(last, ast.Expr) and not isinstance(last.value, ast.Constant))


class _CellWalk(Walk):
    """The walk of reads.py through one cell, with what else is asked of it."""

    def __init__(self, known: dict[str, str]) -> None:
        super().__init__()
        self.known = known
        self.own_texts: set[str] = set()
        self.maybe: set[str] = set()
        self.changed: set[str] = set()
        self.deleted: set[str] = set()
        self.bound_again: set[str] = set()
        self.magic_defines: set[str] = set()
        self.imports: list[Imported] = []
        self.read_files: list[str] = []
        self.written_files: list[str] = []
        self.opens = ""
        self.shown = False
        self.lines: dict[str, int] = {}
        self._line = 0

    def load(self, name: str) -> None:
        """Take a name as read here, at the line where that is."""
        super().load(name)
        if name not in self.lines and (name in self.loaded or name in self.later):
            self.lines[name] = self._line

    def bind(self, name: str) -> None:
        """Take a name as bound here; one that held a literal text may hold another."""
        super().bind(name)
        if not self.scopes:
            self.known.pop(name, None)
            if name in self.deleted:
                self.bound_again.add(name)

    def said(self, node: ast.AST) -> None:
        """Words of a text are names perhaps: nothing is missing where there is none."""
        before = (set(self.loaded), set(self.later))
        super().said(node)
        self.maybe |= (self.loaded - before[0]) | (self.later - before[1])
        self.loaded, self.later = before

    def visit_Name(self, node: ast.Name) -> None:
        self._line = node.lineno
        if isinstance(node.ctx, ast.Del):
            self.load(node.id)
            if not self.scopes:
                self.deleted.add(node.id)
                self.bound_again.discard(node.id)
                self.bound.discard(node.id)
                self.certain.discard(node.id)
                self.known.pop(node.id, None)
            return
        super().visit_Name(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        super().visit_Assign(node)
        text = text_of(node.value, self.known) if not self.scopes and len(node.targets) == 1 else None
        if text is not None and isinstance(target := node.targets[0], ast.Name):
            self.known[target.id] = text
            self.own_texts.add(target.id)
        for target in node.targets:
            self._named_in_namespace(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        super().visit_AugAssign(node)
        self._change(node.target)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        super().visit_Subscript(node)
        if not isinstance(node.ctx, ast.Load):
            self._change(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            self._change(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        in_place = any(k.arg == "inplace" and getattr(k.value, "value", None) is True for k in node.keywords)
        if isinstance(node.func, ast.Attribute) and (in_place or called in _CHANGING or called.startswith(_PREFIXES)):
            self._change(node.func.value)
        if called in _CHANGES_ARGUMENT and node.args:
            self._change(node.args[0])
        if called in _OPENING:
            self.opens = self.opens or f"{called}()"
        if called == "update" and (space := _namespace_of(node)):
            self.opens = self.opens or space
        self.shown = self.shown or called in {"print", "display", "show"} or _draws(node)
        read, written = files_of_call(node, self.known)
        self.read_files += read
        self.written_files += written
        super().visit_Call(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if alias.name == "*":
                self.opens = self.opens or f"from {module} import *"
                continue
            name = alias.asname or alias.name.partition(".")[0]
            self.bind(name)
            if not self.scopes:
                self.imports.append(Imported(name, module or alias.name, node.lineno))

    visit_ImportFrom = visit_Import  # noqa: N815  (named by ast)

    def _change(self, node: ast.AST) -> None:
        """The object that a name holds is changed; what a function does to it happens when it is called."""
        while isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
            node = node.value
        if isinstance(node, ast.Name) and not any(node.id in scope for scope in self.scopes) and not self.deferred:
            self.changed.add(node.id)

    def _named_in_namespace(self, target: ast.expr) -> None:
        """`globals()["x"] = …` binds x, or a name that can't be told."""
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Call):
            return
        if getattr(target.value.func, "id", "") not in _NAMESPACES or (self.deferred and self.scopes):
            return
        if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
            self.stored.add(target.slice.value)
            self.bound.add(target.slice.value)
            self.loaded.discard(target.slice.value)
        else:
            self.opens = self.opens or "names made from texts"


def _namespace_of(node: ast.Call) -> str:
    """Return the namespace that a call `globals().update(…)` is given to, "" where it is none."""
    owner = getattr(node.func, "value", None)
    name = getattr(owner.func, "id", "") if isinstance(owner, ast.Call) else ""
    return f"{name}()" if name in _NAMESPACES else ""


_DRAWS = frozenset({"plot", "hist", "scatter", "bar", "barh", "boxplot", "imshow", "subplots", "figure", "pie"})


def _draws(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in _DRAWS
