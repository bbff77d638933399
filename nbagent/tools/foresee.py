"""Goes through a cell as Python would, without running it, and tells what it would do: names, objects, files, the world.

A small interpreter of syntax: it follows names through assignments and branches and visits each loop once. Expressions
and calls are followed in follow.py, what calls do is told by deeds.py. It runs nothing and reads no value but by type.
Read `look_at`, then `Foresight`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from nbagent.tools import cellcode
from nbagent.tools.commands import RESETS, WORDS, said_of_command, said_of_magic, short
from nbagent.tools.follow import GENERATOR, Following
from nbagent.tools.known import GAP, UNKNOWN, Value, joined, plain_name
from nbagent.tools.scopes import Scope
from nbagent.tools.signs import DELETES, EXITS
from nbagent.tools.syntax import flat

_FIRST = (
    "ends",
    "answers",
    "clears",
    "deletes",
    "moves",
    "runs a shell",
    "installs",
    "goes",
    "runs",
    "calls",
    "rebinds",
    "changes",
    "writes",
)
_MOST = 30
LONGEST = 100_000
"""Characters of code that is gone through; longer code is asked about as code that is not shown."""
_LEFT_OUT = "does more than could be looked at"


def look_at(code: str, namespace: Mapping[str, object]) -> Foresight:
    """Go through a cell and return what was found; code that is longer than `LONGEST` is left out."""
    look = Foresight(namespace)
    if len(code) > LONGEST:
        look.left_out = True
        return look
    try:
        look.cell(code)
    except RecursionError:  # in a kernel's deep stack: what was seen until then is still true
        look.left_out = True
    return look


def told(look: Foresight, risks: Iterable[str]) -> tuple[str, ...]:
    """Return the words for what a cell would do, the worst first.

    `risks` are labels of the look that misses less: one that this look has not met is said as a possibility.
    """
    words = [*look.said, *look.names.done.values()]
    words += [f"changes `{short(root)}` in place" for root in look.changed]
    words += [f"could {_infinitive(WORDS[risk])} later" for risk in sorted({*risks} - look.risks)]
    words = list(dict.fromkeys(words))
    words.sort(key=lambda word: next((n for n, start in enumerate(_FIRST) if word.startswith(start)), len(_FIRST)))
    more = [f"and {len(words) - _MOST} more"] if len(words) > _MOST else []
    return (*words[:_MOST], *more, *([_LEFT_OUT] if look.left_out else []))


def _infinitive(words: str) -> str:
    verb, _, rest = words.partition(" ")
    return f"{'go' if verb == 'goes' else verb.removesuffix('s')} {rest}"


class Foresight(Following):
    """What one cell would do: its statements."""

    @property
    def risks(self) -> frozenset[str]:
        """The labels of what was found that asks a question again."""
        starts = {**{words: label for label, words in WORDS.items()}, "deletes ": DELETES, "moves ": DELETES}
        found = [
            label
            for words in self.said
            if words not in RESETS
            for start, label in starts.items()
            if words.startswith(start)
        ]
        return frozenset(found)

    def cell(self, code: str) -> None:
        """Go through a cell: magics, shell commands, Python."""
        parts = cellcode.split(code)
        for name, rest, body in parts.heads:
            self._magic(name, rest, body)
        for name, rest in parts.magics:
            self._magic(name, rest)
        for command in parts.shell:
            self.say(*said_of_command(command))
        if parts.tree is not None:
            apart = any(name == "timeit" for name, _, _ in parts.heads)
            outer, self.names.scope = self.names.scope, Scope(self.names.scope) if apart else self.names.top
            self.block(parts.tree.body)
            self.names.scope = outer

    def _magic(self, name: str, rest: str, body: str = "") -> None:
        self.say(*said_of_magic(name, rest, body))
        words = rest.split()
        if name == "xdel" and words:
            self.names.unbind(words[-1], self.names.top)
        if name in {"capture", "bash", "sh", "script"}:
            kept = [words[i + 1] for i, word in enumerate(words[:-1]) if word in {"--out", "--err", "--proc"}]
            plain = [word for word in words[:1] if name == "capture" and not word.startswith("-")]
            for target in (*kept, *plain):
                self.names.bind(target, UNKNOWN, self.names.top)

    # ── branches ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _branches(self, *blocks: Iterable[ast.AST]) -> None:
        self.names.branches([lambda block=block: self.block(block) for block in blocks])

    def _on_if(self, node: ast.If) -> None:
        self.visit(node.test)
        if isinstance(node.test, ast.Constant):
            self.block(node.body if node.test.value else node.orelse)
        elif not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self._branches(node.body, node.orelse)

    def _on_for(self, node: ast.For | ast.AsyncFor) -> None:
        self._assign(node.target, self.taken(self.visit(node.iter)))
        self._branches(node.body, [])
        self.block(node.orelse)

    _on_asyncfor = _on_for

    def _on_while(self, node: ast.While) -> None:
        self.visit(node.test)
        self._branches(node.body, [])
        self.block(node.orelse)

    def _on_try(self, node: ast.Try) -> None:
        self.block(node.body)
        self._branches([], *([handler] for handler in node.handlers))
        self.block(node.orelse)
        self.block(node.finalbody)

    _on_trystar = _on_try

    def _on_excepthandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self.visit(node.type)
        if node.name:
            self.names.bind(node.name, UNKNOWN)
        self.block(node.body)

    def _on_with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            value = self.visit(item.context_expr)
            if value.family == GENERATOR:  # of a function under @contextmanager
                value = self.taken(value)
            if item.optional_vars is not None:
                self._assign(item.optional_vars, value)
        self.block(node.body)

    _on_asyncwith = _on_with

    def _on_match(self, node: ast.Match) -> None:
        subject = self.visit(node.subject)
        for case in node.cases:
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self.names.bind(name, subject.part())
        self._branches([], *(case.body for case in node.cases))

    # ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _on_expr(self, node: ast.Expr) -> None:
        value = self.visit(node.value)
        if isinstance(node.value, ast.Name) and value.meant in {"exit", "quit"}:  # IPython calls them
            self.say(WORDS[EXITS])

    def _on_assign(self, node: ast.Assign) -> None:
        value = self.visit(node.value)
        for target in node.targets:
            self._assign(target, value)

    def _on_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, self.visit(node.value))

    def _on_augassign(self, node: ast.AugAssign) -> None:
        added = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            self._assign(node.target, UNKNOWN)
            return
        old = self.names.get(node.target.id)
        known = old.family or old.meant.endswith(")")  # its type is known, or a list is added to who knows what
        if (known and old.family not in {"plain", "polars", "path"}) or (not known and added.items):
            self.change(old)
        else:
            self.names.bind(
                node.target.id, Value(text=joined(old.text, added.text), meant="str") if old.meant == "str" else UNKNOWN
            )

    def _on_delete(self, node: ast.Delete) -> None:
        for target in flat(node.targets):
            if isinstance(target, ast.Name):
                self.names.unbind(target.id, self.names.scope)
            elif isinstance(target, ast.Subscript):
                owner, key = self.visit(target.value), self.visit(target.slice)
                if self._is_globals(owner):
                    self.names.unbind(key.text or GAP, self.names.top)
                else:
                    self.change(owner)
            elif isinstance(target, ast.Attribute):
                self.change(self.visit(target.value))

    def _on_global(self, node: ast.Global) -> None:
        self.names.declare(node.names, self.names.top)

    def _on_nonlocal(self, node: ast.Nonlocal) -> None:
        self.names.declare(node.names, self.names.scope.outer)

    def _on_import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self._import(name, alias.name if alias.asname else name)

    def _on_importfrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.names.stars.append(plain_name(node.module or ""))
            else:
                self._import(alias.asname or alias.name, "" if node.level else f"{node.module}.{alias.name}")

    def _import(self, name: str, meant: str) -> None:
        self.names.bind(name, Value(frozenset({name}), meant=plain_name(meant), family="plain"))

    def _on_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = [self.visit(decorator) for decorator in node.decorator_list]
        self.block((*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)))
        value = self.defined(node)
        for decorator in reversed(decorators):
            if decorator.body is not None:
                self.call(decorator, (value,), {})
        self.names.bind(node.name, value)

    _on_asyncfunctiondef = _on_functiondef

    def _on_classdef(self, node: ast.ClassDef) -> None:
        self.block((*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)))
        outer, self.names.scope = self.names.scope, Scope(self.names.scope)
        self.block(node.body)
        self.names.scope = outer
        self.names.bind(node.name, self.defined(node))

    def _on_return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.returned.append(self.visit(node.value))

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.names.bind(target.id, value)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, Value(holds=value.touches()))
        elif isinstance(target, ast.Tuple | ast.List):
            whole = len(value.items) == len(target.elts) and not any(isinstance(t, ast.Starred) for t in target.elts)
            for place, one in enumerate(target.elts):
                self._assign(one, value.items[place] if whole else value.element())
        elif isinstance(target, ast.Subscript):
            owner, key = self.visit(target.value), self.visit(target.slice)
            if self._is_globals(owner):
                self.names.bind(key.text or GAP, value, self.names.top)
            else:
                self.change(owner)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.visit(target.value), target.attr, value)

    def _is_globals(self, value: Value) -> bool:
        return value.meant in {"globals()", "locals()", "vars()", "get_ipython().user_ns"} and self._here(value)

    def _here(self, value: Value) -> bool:
        """Whether `locals()` and `vars()` are those of the notebook."""
        return value.meant.startswith(("globals", "get_ipython")) or self.names.scope is self.names.top
