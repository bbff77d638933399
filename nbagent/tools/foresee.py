"""Goes through a cell as Python would, without running it, and notes what it would do to names, objects, files, the world.

A small interpreter of syntax: it follows names through assignments, branches and the functions of the cell, knows values
only as far as `known.Value` does, and visits each loop once. It runs nothing and reads no value but by type. What calls
do is told by `deeds`. Read `Foresight.cell` first, then `_call` and `_bind`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from nbagent.tools import cellcode
from nbagent.tools.commands import CHANGES_ENVIRONMENT, WORDS, said_of_command, said_of_magic, short
from nbagent.tools.deeds import Called, deeds
from nbagent.tools.known import GAP, PATH, UNKNOWN, Body, Value, joined, joined_path, merged, of_namespace
from nbagent.tools.signs import UNSEEN

_DEPTH = 90
_STEPS = 60_000
_CALLS = 6
_ASSUMED = {
    **{name: name for name in ("os", "sys", "shutil", "subprocess", "json", "pickle", "joblib", "sqlite3", "pathlib",
                               "requests", "httpx", "glob", "tempfile", "zipfile", "random", "urllib", "socket", "importlib")},
    "pd": "pandas", "np": "numpy", "pl": "polars", "plt": "matplotlib.pyplot", "sns": "seaborn", "mpl": "matplotlib",
    "Path": "pathlib.Path", "display": "IPython.display.display", "get_ipython": "get_ipython", "exit": "exit",
    "quit": "quit", "pq": "pyarrow.parquet", "pa": "pyarrow", "px": "plotly.express", "go": "plotly.graph_objects",
}  # fmt: skip
_SAME = {"posix": "os", "nt": "os", "__builtins__": "builtins", "builtins": "builtins", "_io": "io"}
_GLOBALS = frozenset({"globals()", "locals()", "vars()", "get_ipython().user_ns", "get_ipython().user_global_ns"})
_HOLDERS = frozenset(
    {"list", "tuple", "dict", "set", "zip", "enumerate", "reversed", "sorted", "iter", "filter", "map", "frozenset"}
)
_VIEWS = frozenset(
    {"get", "values", "items", "keys", "setdefault", "ravel", "reshape", "view", "transpose", "squeeze", "swapaxes", "diagonal",
     "__getitem__", "__iter__", "iterrows", "xs", "pop", "popleft", "numpy", "detach", "parameters", "gca", "gcf"}
)  # fmt: skip
_INNER = ast.Lambda(ast.arguments([], [], defaults=[], kwonlyargs=[], kw_defaults=[]), ast.Constant(None))
_SPEAKS = frozenset({"os.path.join", "posixpath.join"})
_SAME_PATH = frozenset(
    {"resolve", "absolute", "expanduser", "as_posix", "strip", "rstrip", "lstrip", "__str__", "encode", "lower"}
)


class _Scope:
    """Names of one function, class or comprehension; the outermost is the notebook's own namespace."""

    def __init__(self, outer: _Scope | None = None, *, passing: bool = False) -> None:
        self.names: dict[str, Value] = {}
        self.outer = outer
        self.passing = passing  # a comprehension: := binds outside of it
        self.elsewhere: dict[str, _Scope] = {}  # declared global or nonlocal


class Foresight:
    """What one cell would do. `said` are the words, in the order of the code; names and objects apart, by name."""

    def __init__(self, namespace: Mapping[str, object]) -> None:
        self._namespace = namespace
        self._top = _Scope()
        self._scope = self._top
        self._journal: list[dict[tuple[int, str], tuple[_Scope, Value | None]]] = []
        self._stars: list[str] = []
        self._active: list[Body] = []
        self._returned: list[Value] = []
        self._depth = 0
        self._steps = 0
        self.said: dict[str, None] = {}
        self.names: dict[str, str] = {}
        self.changed: dict[str, None] = {}

    # ── cells and statements ─────────────────────────────────────────────────────────────────────────────────────────

    def cell(self, code: str) -> None:
        """Go through a cell: magics, shell commands, Python."""
        parts = cellcode.split(code)
        for name, rest in (*parts.heads, *parts.magics):
            self._magic(name, rest)
        for command in parts.shell:
            self._say(*said_of_command(command))
        if parts.tree is None:
            return
        apart = any(name == "timeit" for name, _ in parts.heads)
        outer, self._scope = self._scope, _Scope(self._scope) if apart else self._top
        self._block(parts.tree.body)
        self._scope = outer

    def _magic(self, name: str, rest: str) -> None:
        self._say(*said_of_magic(name, rest))
        if name == "xdel" and rest:
            self._unbind(self._top, rest.rsplit(maxsplit=1)[-1])
        if name in {"capture", "bash", "sh", "script"}:
            words = rest.split()
            kept = [words[i + 1] for i, word in enumerate(words[:-1]) if word in {"--out", "--err", "--proc"}]
            plain = [word for word in words[:1] if name == "capture" and not word.startswith("-")]
            for target in (*kept, *plain):
                self._bind(target, UNKNOWN)

    def _block(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            self._visit(node)

    def _visit(self, node: ast.AST) -> Value:
        """Go through one piece of syntax; too much or too deep of it is passed over."""
        self._steps += 1
        if self._depth > _DEPTH or self._steps > _STEPS:
            return UNKNOWN
        self._depth += 1
        look: Callable[[ast.AST], Value | None] = getattr(self, f"_on_{type(node).__name__.lower()}", self._children)
        value = look(node) or UNKNOWN
        self._depth -= 1
        return value

    def _children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            self._visit(child)

    def _branches(self, *blocks: Iterable[ast.AST]) -> None:
        """Go through blocks of which one is executed, each from the same start; names then mean what any of them left."""
        ends: list[dict[tuple[int, str], tuple[_Scope, Value]]] = []
        befores: dict[tuple[int, str], tuple[_Scope, Value | None]] = {}
        for block in blocks:
            self._journal.append({})
            for node in block:
                self._visit(node)
            changed = self._journal.pop()
            ends.append({key: (scope, scope.names.get(key[1], UNKNOWN)) for key, (scope, _) in changed.items()})
            for key, (scope, before) in changed.items():
                befores.setdefault(key, (scope, before))
                self._put_back(scope, key[1], before)
        for key, (scope, before) in befores.items():
            start = before if before is not None else self._outer_value(scope, key[1])
            left = tuple(end[key][1] if key in end else start for end in ends)
            known = tuple(value for value in left if value is not None)
            self._set(scope, key[1], merged(known) if known else UNKNOWN)

    def _outer_value(self, scope: _Scope, name: str) -> Value | None:
        return of_namespace(name, self._namespace[name]) if scope is self._top and name in self._namespace else None

    @staticmethod
    def _put_back(scope: _Scope, name: str, value: Value | None) -> None:
        if value is None:
            scope.names.pop(name, None)
        else:
            scope.names[name] = value

    def _on_if(self, node: ast.If) -> None:
        self._visit(node.test)
        if isinstance(node.test, ast.Constant):
            self._block(node.body if node.test.value else node.orelse)
        elif not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self._branches(node.body, node.orelse)

    def _on_for(self, node: ast.For | ast.AsyncFor) -> None:
        over = self._visit(node.iter)
        self._assign(node.target, over.element())
        self._branches(node.body, [])
        self._block(node.orelse)

    _on_asyncfor = _on_for

    def _on_while(self, node: ast.While) -> None:
        self._visit(node.test)
        self._branches(node.body, [])
        self._block(node.orelse)

    def _on_try(self, node: ast.Try) -> None:
        self._block(node.body)
        self._branches([], *([handler] for handler in node.handlers))
        self._block(node.orelse)
        self._block(node.finalbody)

    _on_trystar = _on_try

    def _on_excepthandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self._visit(node.type)
        if node.name:
            self._bind(node.name, UNKNOWN)
        self._block(node.body)

    def _on_with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            value = self._visit(item.context_expr)
            if item.optional_vars is not None:
                self._assign(item.optional_vars, value)
        self._block(node.body)

    _on_asyncwith = _on_with

    def _on_match(self, node: ast.Match) -> None:
        subject = self._visit(node.subject)
        for case in node.cases:
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self._bind(name, subject.part())
        self._branches([], *(case.body for case in node.cases))

    # ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _on_assign(self, node: ast.Assign) -> None:
        value = self._visit(node.value)
        for target in node.targets:
            self._assign(target, value)

    def _on_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, self._visit(node.value))

    def _on_namedexpr(self, node: ast.NamedExpr) -> Value:
        value = self._visit(node.value)
        self._bind(node.target.id, value)
        return value

    def _on_augassign(self, node: ast.AugAssign) -> None:
        added = self._visit(node.value)
        if not isinstance(node.target, ast.Name):
            self._assign(node.target, UNKNOWN)
            return
        old = self._name(node.target.id)
        stays = (
            old.family == "plain"
            or old.family == "polars"
            or (not old.family and not old.items and old.meant in {"", "str"})
        )
        if stays and not (added.items and old.roots and not old.family and node.target.id not in self._namespace):
            self._bind(node.target.id, Value(text=joined(old.text, added.text) if old.text is not None else None))
        else:
            self._change(old)

    def _on_delete(self, node: ast.Delete) -> None:
        for target in _flat(node.targets):
            if isinstance(target, ast.Name):
                self._unbind(self._scope, target.id)
            elif isinstance(target, ast.Subscript):
                owner, key = self._visit(target.value), self._visit(target.slice)
                if owner.meant in _GLOBALS:
                    self._unbind(self._top, key.text or GAP)
                else:
                    self._change(owner)
            elif isinstance(target, ast.Attribute):
                self._change(self._visit(target.value))

    def _on_global(self, node: ast.Global) -> None:
        if self._scope is not self._top:
            self._scope.elsewhere.update(dict.fromkeys(node.names, self._top))

    def _on_nonlocal(self, node: ast.Nonlocal) -> None:
        if self._scope.outer is not None:
            self._scope.elsewhere.update(dict.fromkeys(node.names, self._scope.outer))

    def _on_import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self._bind(
                name, Value(meant=_plain(alias.name if alias.asname else name), roots=frozenset({name}), family="plain")
            )

    def _on_importfrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            name, module = alias.asname or alias.name, node.module or ""
            if alias.name == "*":
                self._stars.append(_plain(module))
            else:
                meant = "" if node.level else _plain(f"{module}.{alias.name}")
                self._bind(name, Value(meant=meant, roots=frozenset({name}), family="plain"))

    def _on_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self._visit(part)
        self._bind(node.name, Value(body=node, family="plain"))

    _on_asyncfunctiondef = _on_functiondef

    def _on_classdef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self._visit(part)
        outer, self._scope = self._scope, _Scope(self._scope)
        self._block(node.body)
        self._scope = outer
        self._bind(node.name, Value(body=node, family="plain"))

    def _on_lambda(self, node: ast.Lambda) -> Value:
        return Value(body=node, family="plain")

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, value)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, Value(holds=value.roots | value.holds))
        elif isinstance(target, ast.Tuple | ast.List):
            whole = len(value.items) == len(target.elts) and not any(isinstance(t, ast.Starred) for t in target.elts)
            for place, one in enumerate(target.elts):
                self._assign(one, value.items[place] if whole else value.element())
        elif isinstance(target, ast.Subscript):
            owner, key = self._visit(target.value), self._visit(target.slice)
            if self._is_globals(owner):
                self._bind(key.text or GAP, value, self._top)
            elif owner.meant == "sys.modules":
                self._say("changes `sys.modules` in place")
            else:
                self._change(owner)
        elif isinstance(target, ast.Attribute):
            self._change(self._visit(target.value))

    def _bind(self, name: str, value: Value, scope: _Scope | None = None) -> None:
        scope = scope or self._scope
        while scope.passing and scope.outer is not None and not scope.names.get(name):
            scope = scope.outer
        scope = scope.elsewhere.get(name, scope)
        if scope is self._top and name != "_" and not self._is_same(name, value) and name in self._namespace:
            self.names[name] = f"rebinds `{short(name)}`"
        self._set(scope, name, value)

    def _is_same(self, name: str, value: Value) -> bool:
        """Whether an import brings what the person has under that name already."""
        if not value.meant or value.roots != frozenset({name}) or name not in self._namespace:
            return False
        old = of_namespace(name, self._namespace[name]).meant
        return old == value.meant or (
            bool(old)
            and old.partition(".")[0] == value.meant.partition(".")[0]
            and old.rpartition(".")[2] == value.meant.rpartition(".")[2]
        )

    def _set(self, scope: _Scope, name: str, value: Value) -> None:
        if self._journal:
            self._journal[-1].setdefault((id(scope), name), (scope, scope.names.get(name)))
        scope.names[name] = value

    def _unbind(self, scope: _Scope, name: str) -> None:
        scope = scope.elsewhere.get(name, scope)
        if scope is self._top and name in self._namespace:
            self.names[name] = f"deletes the variable `{short(name)}`"
        elif scope is self._top and name == GAP:
            self._say("deletes variables")
        self._set(scope, name, UNKNOWN)

    def _is_globals(self, value: Value) -> bool:
        return value.meant in _GLOBALS

    def _change(self, value: Value) -> None:
        """Note that the object which `value` is would change."""
        if value.meant.startswith("os.environ"):
            self._say(CHANGES_ENVIRONMENT)
            return
        for root in sorted(value.roots):
            self.changed[root] = None

    # ── expressions ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _on_name(self, node: ast.Name) -> Value:
        return self._name(node.id)

    def _name(self, name: str) -> Value:
        scope: _Scope | None = self._scope
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.elsewhere.get(name, scope.outer)
        if name in self._namespace:
            return of_namespace(name, self._namespace[name])
        for module in self._stars:
            if module in {"os", "shutil", "subprocess", "pathlib", "math", "numpy"}:
                return Value(meant=f"{module}.{name}", family="plain")
        if name in _SAME:
            return Value(meant=_SAME[name], family="plain")
        if hasattr(builtins, name) and name not in _ASSUMED:
            return Value(meant=name, family="plain")
        if name in _ASSUMED:
            return Value(meant=_ASSUMED[name], roots=frozenset({name}), family="plain")
        return Value(roots=frozenset({name}))

    def _on_constant(self, node: ast.Constant) -> Value:
        known = str(node.value) if isinstance(node.value, str | int | float) else None
        meant = "None" if node.value is None else "str" if isinstance(node.value, str) else ""
        return Value(text=known if known is None or len(known) < 5000 else known[:5000], meant=meant, family="plain")

    def _on_joinedstr(self, node: ast.JoinedStr) -> Value:
        return Value(text=joined(*(self._visit(part).text for part in node.values)), meant="str", family="plain")

    def _on_formattedvalue(self, node: ast.FormattedValue) -> Value:
        value = self._visit(node.value)
        return Value(text=None if node.format_spec else value.text)

    def _on_binop(self, node: ast.BinOp) -> Value:
        left, right = self._visit(node.left), self._visit(node.right)
        if isinstance(node.op, ast.Div) and (left.family == "path" or right.family == "path"):
            return Value(meant=PATH, family="path", text=joined_path(left.text, right.text))
        if isinstance(node.op, ast.Add):
            if left.text is not None or right.text is not None:
                return Value(text=joined(left.text, right.text), meant="str")
            return Value(
                holds=left.holds | right.holds, items=left.items + right.items if left.items and right.items else ()
            )
        if isinstance(node.op, ast.Mod) and left.text is not None and isinstance(node.left, ast.Constant):
            return Value(text=_percent(left.text), meant="str")
        return UNKNOWN

    def _on_ifexp(self, node: ast.IfExp) -> Value:
        self._visit(node.test)
        return merged((self._visit(node.body), self._visit(node.orelse)))

    def _on_boolop(self, node: ast.BoolOp) -> Value:
        return merged(tuple(self._visit(value) for value in node.values))

    def _on_await(self, node: ast.Await) -> Value:
        return self._visit(node.value)

    def _on_starred(self, node: ast.Starred) -> Value:
        return self._visit(node.value)

    def _on_return(self, node: ast.Return) -> None:
        if node.value is not None:
            self._returned.append(self._visit(node.value))

    def _on_tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        items = tuple(self._visit(item) for item in node.elts[:200])
        holds = frozenset[str]().union(*(item.roots | item.holds for item in items)) if items else frozenset[str]()
        return Value(holds=holds, items=items)

    _on_list = _on_tuple
    _on_set = _on_tuple

    def _on_dict(self, node: ast.Dict) -> Value:
        values = [self._visit(part) for part in (*node.values, *(key for key in node.keys if key is not None))]
        return Value(holds=frozenset[str]().union(*(v.roots | v.holds for v in values)) if values else frozenset())

    def _on_listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        outer, self._scope = self._scope, _Scope(self._scope, passing=True)
        for part in node.generators:
            element = self._visit(part.iter).element()
            for name in _flat([part.target]):
                if isinstance(name, ast.Name):
                    self._set(self._scope, name.id, element)
            for test in part.ifs:
                self._visit(test)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        made = [self._visit(part) for part in parts][-1]
        self._scope = outer
        return Value(holds=made.roots | made.holds)

    _on_setcomp = _on_listcomp
    _on_generatorexp = _on_listcomp
    _on_dictcomp = _on_listcomp

    def _on_attribute(self, node: ast.Attribute) -> Value:
        owner = self._visit(node.value)
        return self._attribute(owner, node.attr)

    def _attribute(self, owner: Value, name: str) -> Value:
        if owner.of is not None and (method := _method(owner.of, name)):
            return Value(body=method, family="plain", given=(owner,))
        if owner.family == "path":
            if name == "parent":
                text = owner.text
                return Value(
                    meant=PATH, family="path", text=text.rpartition("/")[0] or "." if text and "/" in text else None
                )
            if name in {"name", "stem", "suffix"}:
                return Value(text=None if name != "name" or not owner.text else owner.text.rpartition("/")[2])
        if name == "__dict__":
            return owner
        meant = _plain(f"{owner.meant}.{name}") if owner.meant and owner.meant not in {"str", "None"} else ""
        if owner.family == "plain" and meant:  # an attribute of a module or a class
            return Value(
                meant=meant,
                roots=frozenset(f"{root}.{name}" for root in owner.roots if root.count(".") < 2),
                family="plain",
            )
        return owner.part(meant)

    def _on_subscript(self, node: ast.Subscript) -> Value:
        owner, key = self._visit(node.value), self._visit(node.slice)
        if owner.meant in _GLOBALS and key.text:
            return self._name(key.text)
        if owner.meant == "sys.modules" and key.text:
            return Value(meant=_plain(key.text), family="plain")
        if owner.meant in {"os", "subprocess", "shutil", "builtins"} and key.text:  # vars(os)["system"], os.__dict__[…]
            return Value(meant=_plain(f"{owner.meant}.{key.text}"), family="plain")
        if owner.items and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
            place = node.slice.value
            if -len(owner.items) <= place < len(owner.items):
                return owner.items[place]
        accessor = isinstance(node.value, ast.Attribute) and node.value.attr in {"loc", "iloc", "at", "iat", "str"}
        mask = isinstance(node.slice, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.BinOp | ast.List | ast.ListComp)
        if (
            accessor
            or (mask and not isinstance(key, int))
            or (isinstance(node.slice, ast.Slice) and owner.family != "numpy")
        ):
            return Value(holds=owner.roots | owner.holds) if owner.family in {"list", "dict"} else UNKNOWN
        return owner.part()

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _on_call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute):
            owner = self._visit(node.func.value)
            function = self._attribute(owner, node.func.attr)
            method = node.func.attr
        else:
            owner, function, method = UNKNOWN, self._visit(node.func), ""
        args = tuple(self._visit(arg) for arg in node.args)
        keywords = {keyword.arg or "**": self._visit(keyword.value) for keyword in node.keywords}
        return self._call(owner, function, method, args, keywords)

    def _call(
        self, owner: Value, function: Value, method: str, args: tuple[Value, ...], keywords: dict[str, Value]
    ) -> Value:
        if function.body is not None:
            return self._enter(function, args, keywords)
        args = (*function.given, *args)
        meant = function.meant
        method = method or meant.rpartition(".")[2]
        if (special := self._special(meant, args, keywords)) is not None:
            return special
        call = Called(meant, method, owner, args, keywords)
        said, changed = deeds(call)
        self._say(*said)
        for value in changed:
            self._change(value)
        for value in call.given:  # a function that is handed over is likely to be called
            self._handed(value, meant)
        return _made(call)

    def _handed(self, value: Value, to: str) -> None:
        for one in (value, *value.items):
            if one.body is not None and not isinstance(one.body, ast.ClassDef):
                self._enter(one, (), {})
            elif (
                one.meant
                and one.family == "plain"
                and one.text is None
                and to not in {"print", "type", "help", "id", "repr", "hasattr", "str"}
            ):
                said, _ = deeds(Called(one.meant, one.meant.rpartition(".")[2], UNKNOWN, (*one.given, UNKNOWN)))
                self._say(*(words for words in said if not words.startswith(("writes", "makes", "changes"))))

    def _special(self, meant: str, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value | None:
        """Return what calls of Python's and IPython's own give that lead to other names or other code."""
        first = args[0] if args else UNKNOWN
        text = first.text
        if meant == "getattr" and len(args) > 1:
            return self._attribute(first, args[1].text) if args[1].text else self._unknown_attribute(first)
        if meant in {"__import__", "importlib.import_module", "importlib.__import__"}:
            if text is None:
                self._say(WORDS[UNSEEN])
            return Value(meant=_plain(text), family="plain") if text else UNKNOWN
        if meant == "vars" and args:
            return first
        if meant == "functools.partial":
            return replace(first, given=(*first.given, *args[1:]))
        if meant == "operator.methodcaller" and text:
            return Value(meant=f"?.{text}", family="plain")
        if meant in {"exec", "eval", "builtins.exec", "builtins.eval"}:
            if text is None or GAP in text:
                self._say(WORDS[UNSEEN])
            elif len(self._active) < _CALLS:
                self._inner(text, isolated=len(args) > 1)
            return UNKNOWN
        if meant == "globals().update":
            for name, value in keywords.items():
                self._bind(name, value, self._top)
            return UNKNOWN
        if meant == "globals().pop" and text:
            self._unbind(self._top, text)
            return UNKNOWN
        if meant.startswith("get_ipython()."):
            return self._ipython(meant, args)
        return None

    def _unknown_attribute(self, owner: Value) -> Value:
        if owner.meant in {"os", "shutil", "subprocess", "builtins"}:
            self._say(WORDS[UNSEEN])
        return owner.part()

    def _inner(self, code: str, *, isolated: bool = False) -> None:
        tree = cellcode.parse(code)
        if tree is None:
            return
        outer, self._scope = self._scope, _Scope(self._top) if isolated else self._top
        self._active.append(_INNER)
        self._block(tree.body)
        self._active.pop()
        self._scope = outer

    def _ipython(self, meant: str, args: tuple[Value, ...]) -> Value | None:
        name = meant.rpartition(".")[2]
        texts = [arg.text for arg in args]
        if name in {"run_line_magic", "run_cell_magic", "magic"} and texts and texts[0]:
            head, _, tail = (
                texts[0].partition(" ") if name == "magic" else (texts[0], "", texts[1] if len(texts) > 1 else "")
            )
            if name == "run_cell_magic":
                self._again(f"%%{head} {tail or ''}\n{texts[2] if len(texts) > 2 else ''}")
            else:
                self._again(f"%{head} {tail or ''}")
            return UNKNOWN
        if name in {"run_cell", "run_cell_async", "ex"} and texts and texts[0] and GAP not in texts[0]:
            self._again(texts[0])
            return UNKNOWN
        return None

    def _again(self, code: str) -> None:
        if len(self._active) < _CALLS:
            self._active.append(_INNER)
            self.cell(code)
            self._active.pop()

    def _enter(self, function: Value, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        """Go through a function of the cell with what is known of its arguments; a class gives an instance."""
        body = function.body
        args = (*function.given, *args)
        if isinstance(body, ast.ClassDef):
            made = Value(of=body)
            for name in ("__init__", "__post_init__"):
                if (method := _method(body, name)) is not None:
                    self._enter(Value(body=method), (made, *(args if name == "__init__" else ())), keywords)
            return made
        if body is None or body in self._active or len(self._active) >= _CALLS:
            return UNKNOWN
        outer, self._scope = self._scope, _Scope(self._top)
        returned, self._returned = self._returned, []
        journal, self._journal = self._journal, []
        self._active.append(body)
        _give(self._scope, body.args, args, keywords)
        if isinstance(body, ast.Lambda):
            self._returned.append(self._visit(body.body))
        else:
            self._block(body.body)
        self._active.pop()
        made = merged(tuple(self._returned)) if self._returned else UNKNOWN
        self._scope, self._returned, self._journal = outer, returned, journal
        return made

    def _say(self, *words: str) -> None:
        self.said.update(dict.fromkeys(words))


_LATER = {
    "shell": "could run a shell command later",
    "network": "could go to the network later",
    "deletes files": "could delete files later",
    "installs packages": "could install packages later",
    "runs code not shown": "could run code not shown later",
    "native code": "could call native code later",
    "ends the kernel": "could end the kernel later",
}
_FIRST = (
    "ends",
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


def told(code: str, namespace: Mapping[str, object], risks: Iterable[str]) -> tuple[str, ...]:
    """Return the words for what a cell would do, the worst first.

    `risks` are labels of the look that misses less: one that this look has not met is said as a possibility.
    """
    look = Foresight(namespace)
    try:
        look.cell(code)
    except RecursionError:  # of a kernel's deep stack: what was seen until then is still true
        pass
    words = [*look.said, *look.names.values()]
    words += [f"changes `{short(root)}` in place" for root in look.changed]
    for risk in risks:
        if not any(word.startswith(WORDS[risk].split()[0]) for word in words):
            words.append(_LATER[risk])
    words = list(dict.fromkeys(words))
    words.sort(key=lambda word: next((n for n, start in enumerate(_FIRST) if word.startswith(start)), len(_FIRST)))
    more = len(words) - _MOST
    return (*words[:_MOST], *([f"and {more} more"] if more > 0 else []))


def _give(scope: _Scope, parameters: ast.arguments, args: tuple[Value, ...], keywords: dict[str, Value]) -> None:
    names = [arg.arg for arg in (*parameters.posonlyargs, *parameters.args)]
    for name in (*names, *(arg.arg for arg in parameters.kwonlyargs)):
        scope.names[name] = UNKNOWN
    scope.names.update(zip(names, args, strict=False))
    scope.names.update({name: value for name, value in keywords.items() if name in scope.names})
    if parameters.vararg:
        rest = args[len(names) :]
        scope.names[parameters.vararg.arg] = Value(items=rest)
    if parameters.kwarg:
        scope.names[parameters.kwarg.arg] = UNKNOWN


def _method(body: ast.ClassDef, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    for node in body.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
    return None


def _made(call: Called) -> Value:
    """Return what is known of what a library call gives."""
    meant, args = call.meant, call.args
    owner = call.owner
    if meant in {"pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath", "Path"}:
        return Value(meant=PATH, family="path", text=joined_path(*(arg.text for arg in args)) if args else ".")
    if owner.family == "path":
        return _made_of_path(call)
    if meant in _SPEAKS:
        return Value(text=joined_path(*(arg.text for arg in args)))
    if (
        meant in {"str", "repr", "os.fspath", "os.path.abspath", "os.path.expanduser", "sqlalchemy.text", "text"}
        and args
    ):
        return Value(text=args[0].text, meant="str")
    if meant in {"glob.glob", "glob.iglob"} and args:
        return Value(family="names", text=args[0].text)
    if call.method == "format" and owner.text is not None:
        return Value(text=_braces(owner.text), meant="str")
    if call.method in _SAME_PATH and owner.text is not None:
        return Value(text=owner.text, meant="str")
    given = [
        value for value in call.given if value.roots or value.holds or value.items or value.family in {"paths", "names"}
    ]
    if meant in _HOLDERS:
        if len(given) == 1 and given[0].family in {"paths", "names"}:
            return given[0]
        return Value(
            holds=frozenset[str]().union(*(v.roots | v.holds for v in given)) if given else frozenset(),
            items=given[0].items if len(given) == 1 else (),
        )
    if call.method in _VIEWS and owner is not UNKNOWN:
        return owner.part()
    name = f"{meant}()" if meant and not meant.startswith("?") and len(meant) < 200 else ""
    return Value(meant=name)


def _made_of_path(call: Called) -> Value:
    text, method = call.owner.text, call.method
    first = call.args[0].text if call.args else None
    if method in {"glob", "rglob", "iterdir"}:
        return Value(
            family="paths", text=joined_path(text, first if first is not None else "*" if method == "iterdir" else GAP)
        )
    if method in {"with_suffix", "with_name", "with_stem"} and text:
        folder, slash, name = text.rpartition("/")
        fresh = f"{name.rpartition('.')[0] or name}{first or GAP}" if method == "with_suffix" else first or GAP
        return Value(meant=PATH, family="path", text=f"{folder}{slash}{fresh}")
    if method == "joinpath":
        return Value(meant=PATH, family="path", text=joined_path(text, *(arg.text for arg in call.args)))
    if method == "open":
        return Value(meant="open()")
    if method in _SAME_PATH or method in {"rename", "cwd", "home"}:
        return Value(meant=PATH, family="path", text=text)
    return UNKNOWN


def _flat(targets: Iterable[ast.expr]) -> Iterable[ast.expr]:
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            yield from _flat(target.elts)
        else:
            yield target.value if isinstance(target, ast.Starred) else target


def _plain(name: str) -> str:
    first, dot, rest = name.partition(".")
    first = _SAME.get(first, first)
    return rest if first == "builtins" and dot else f"{first}{dot}{rest}"


def _percent(text: str) -> str:
    import re  # noqa: PLC0415

    return re.sub(r"%[-+ #0]*(?:\(\w+\))?[\d.*]*[sdifgxrc]", GAP, text)


def _braces(text: str) -> str:
    import re  # noqa: PLC0415

    return re.sub(r"\{[^{}]*\}", GAP, text)
