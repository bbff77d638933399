"""What a piece of code reads of the person's: names that it loads before it binds them, and texts that may name files.

A look at the syntax tree only; nothing is run. Where order can't be told (functions, branches) a name counts as read:
to ask once too often is better than to take an old answer for a new one. Read `reads`.
"""

# ruff: noqa: D102  (visit_… are ast's, and mean what it says)

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_SPEAKING = frozenset({
    "eval", "exec", "query", "sql", "execute", "run_line_magic", "run_cell_magic", "system", "getoutput", "getattr",
})  # fmt: skip
"""Calls whose texts are code of some kind, in which names of variables may stand."""

_NAMESPACES = frozenset({"globals", "locals", "vars"})
_PERHAPS = frozenset({
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.Match, ast.With, ast.AsyncWith, ast.IfExp, ast.BoolOp,
})  # fmt: skip
"""What stands in these may not run although the code comes to its end (a `with` may swallow an error)."""

_SILENT = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop)

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Reads:
    """What code reads (`names`), which names it may bind (`bound`), and its literal texts (`texts`).

    `certain` of `bound` are bound whenever the code comes to its end: no branch, loop or `try` stands around them.
    """

    names: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    certain: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()


def reads(code: str) -> Reads:
    """Return what `code` reads; nothing of code that is no Python: it fails before it reads anything."""
    try:
        tree = ast.parse(code)
        walk = Walk()
        walk.body(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Reads()
    names = frozenset(walk.loaded | (walk.later - walk.stored))
    return Reads(names, frozenset(walk.stored), frozenset(walk.certain), tuple(walk.texts))


class _Passing(set[str]):
    """Names of a comprehension: `:=` binds outside of it."""


class Walk(ast.NodeVisitor):
    """Goes through code in the order in which it runs. `bound` are the names that are its own at this point.

    `loaded` are names that it reads before it binds them, `later` those that its functions read when they are called,
    `stored` and `certain` what it binds, `texts` its literal texts. `cellflow` asks more of the same walk.
    """

    def __init__(self) -> None:
        self.loaded: set[str] = set()
        self.later: set[str] = set()
        self.bound: set[str] = set()
        self.stored: set[str] = set()
        self.certain: set[str] = set()
        self.texts: list[str] = []
        self.scopes: list[set[str]] = []
        self.deferred = 0
        self._perhaps = 0
        self._ways: dict[type[ast.AST], Callable[[Any], None]] = {}

    def visit(self, node: ast.AST) -> None:
        """Go through one node; what is bound inside of a branch is not certain to be bound."""
        kind = type(node)
        way = self._ways.get(kind)
        if way is None:
            way = self._ways[kind] = getattr(self, f"visit_{kind.__name__}", self.generic_visit)
        if kind in _PERHAPS:
            self._perhaps += 1
            way(node)
            self._perhaps -= 1
        else:
            way(node)

    def generic_visit(self, node: ast.AST) -> None:
        """Go through what a node is made of, as ast does, but for what says nothing here (two of three nodes)."""
        for name in node._fields:
            part = getattr(node, name, None)
            if type(part) is list:
                for item in part:
                    if isinstance(item, ast.AST):
                        self.visit(item)
            elif isinstance(part, ast.AST) and not isinstance(part, _SILENT):
                self.visit(part)

    def body(self, nodes: Iterable[ast.AST]) -> None:
        """Go through nodes one after the other."""
        for node in nodes:
            self.visit(node)

    def load(self, name: str) -> None:
        """Take a name as read here."""
        if name in self.bound or any(name in scope for scope in self.scopes):
            return
        (self.later if self.deferred else self.loaded).add(name)

    def bind(self, name: str) -> None:
        """Take a name as bound here."""
        if self.scopes:
            self.scopes[-1].add(name)
        else:
            self.bound.add(name)
            self.stored.add(name)
            if not self._perhaps:
                self.certain.add(name)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.load(node.id)
        else:
            self.bind(node.id)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.texts.append(node.value)

    # statements whose parts stand in another order than they run

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        self.body(node.targets)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self.load(node.target.id)
        self.visit(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """It binds outside of the comprehensions that it stands in."""
        self.visit(node.value)
        inner = self.scopes
        self.scopes = inner[: next((n for n in range(len(inner), 0, -1) if not isinstance(inner[n - 1], _Passing)), 0)]
        self.visit(node.target)
        self.scopes = inner

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self.visit(node.target)
        self.body([*node.body, *node.orelse])

    visit_AsyncFor = visit_For  # noqa: N815  (named by ast)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._either(node.body, node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self._either([node.body], [node.orelse])

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._either(node.body, node.orelse)

    def _either(self, one: Iterable[ast.AST], other: Iterable[ast.AST]) -> None:
        """Only what both branches bind is certainly bound afterwards."""
        before = set(self.bound)
        self.body(one)
        after, self.bound = self.bound, set(before)
        self.body(other)
        self.bound &= after

    # scopes of their own

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.body(node.decorator_list)
        self._arguments(node.args)
        self.bind(node.name)
        self._function(node.args, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  (named by ast)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._arguments(node.args)
        self._function(node.args, [node.body])

    def _arguments(self, args: ast.arguments) -> None:
        self.body([*args.defaults, *(default for default in args.kw_defaults if default is not None)])

    def _function(self, args: ast.arguments, body: list[ast.AST] | list[ast.stmt]) -> None:
        names = {arg.arg for arg in _all_arguments(args)}
        outside = {name for node in body for name in _declared(node)}
        local = names | ({name for node in body for name in _stored(node)} - outside)
        if not self.scopes:
            self.stored |= outside
        self.deferred += 1
        self.scopes.append(local)
        self.body(body)
        self.scopes.pop()
        self.deferred -= 1

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.body([*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)])
        self.scopes.append(set())
        self.body(node.body)
        self.scopes.pop()
        self.bind(node.name)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self._comprehension(node.generators, [node.elt])

    visit_SetComp = visit_ListComp  # noqa: N815  (named by ast)
    visit_GeneratorExp = visit_ListComp  # noqa: N815  (named by ast)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node.generators, [node.key, node.value])

    def _comprehension(self, generators: list[ast.comprehension], made: list[ast.expr]) -> None:
        self.visit(generators[0].iter)
        self.scopes.append(_Passing())
        for place, generator in enumerate(generators):
            if place:
                self.visit(generator.iter)
            self.body([generator.target, *generator.ifs])
        self.body(made)
        self.scopes.pop()

    # other ways to bind a name, and to say one in a text

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.bind(alias.asname or alias.name.partition(".")[0])

    visit_ImportFrom = visit_Import  # noqa: N815  (named by ast)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self.visit(node.type)
        if node.name:
            self.bind(node.name)
        self.body(node.body)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self.generic_visit(node)
        if node.name:
            self.bind(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.generic_visit(node)
        if node.rest:
            self.bind(node.rest)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.bind(node.name)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in _SPEAKING:
            for given in (*node.args, *(keyword.value for keyword in node.keywords)):
                self.said(given)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        owner = node.value
        called = getattr(owner.func, "id", "") if isinstance(owner, ast.Call) else getattr(owner, "attr", "")
        if called in _NAMESPACES or called == "user_ns":
            self.said(node.slice)
        texts = len(self.texts)
        self.visit(node.slice)
        del self.texts[texts:]  # the label of a column is no file
        self.visit(owner)
        if isinstance(node.ctx, ast.Store) and isinstance(owner, ast.Name):
            self.load(owner.id)

    def said(self, node: ast.AST) -> None:
        """Take the words of a text that is code of some kind as names that may be read."""
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                for name in _IDENTIFIER.findall(part.value):
                    self.load(name)


def _all_arguments(args: ast.arguments) -> Iterator[ast.arg]:
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    yield from (arg for arg in (args.vararg, args.kwarg) if arg is not None)


def _stored(node: ast.AST) -> Iterator[str]:
    """Names that a function's body binds for itself; functions in it have their own."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        yield node.id
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
        return
    elif isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return
    for child in ast.iter_child_nodes(node):
        yield from _stored(child)


def _declared(node: ast.AST) -> Iterator[str]:
    """Names that a function's body declares global."""
    for part in ast.walk(node):
        if isinstance(part, ast.Global):
            yield from part.names
