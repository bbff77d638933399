"""Follows expressions as Python would evaluate them, without evaluating: what each is known to be, and what its calls do.

Functions of the cell, and of other cells where their source is at hand, are gone into with what is known of their
arguments; a function that is handed to another is taken for called. It runs nothing. Statements are in foresee.py.
Read `Following.call`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from nbagent.tools import cellcode
from nbagent.tools.commands import CHANGES_ENVIRONMENT, WORDS
from nbagent.tools.deeds import Called, deeds
from nbagent.tools.known import GAP, PATH, UNKNOWN, Body, Value, holding, joined, joined_path, merged, plain_name
from nbagent.tools.made import attribute_of_path, made, percent
from nbagent.tools.scopes import Names, Scope
from nbagent.tools.signs import UNSEEN
from nbagent.tools.syntax import flat, is_generator, is_minus, method_of

_DEPTH = 90
_STEPS = 60_000
_CALLS = 6
_OF_GLOBALS = frozenset({"globals()", "locals()", "vars()", "get_ipython().user_ns", "get_ipython().user_global_ns"})
_MODULES_OF_POWER = frozenset({"os", "subprocess", "shutil", "builtins"})
_ACCESSORS = frozenset({"loc", "iloc", "at", "iat", "str"})
_ONLY_LOOK = frozenset(
    {"print", "type", "help", "id", "repr", "hasattr", "str", "isinstance", "callable", "len", "display"}
)
_CALLS_WITH_REST = frozenset({"register", "submit", "to_thread", "apply", "apply_async", "call_soon", "callback"})
GENERATOR = "generator"
"""The family of what a generator function gives: its body runs when something is taken from it."""
_INNER = ast.Lambda(ast.arguments([], [], None, [], [], None, []), ast.Constant(None))


class Following:
    """Goes through syntax; `said`, `changed` and `names.done` are what it found."""

    def __init__(self, namespace: Mapping[str, object]) -> None:
        self.names = Names(namespace)
        self.said: dict[str, None] = {}
        self.changed: dict[str, None] = {}
        self.left_out = False
        self.returned: list[Value] = []
        self._homes: dict[int, Scope] = {}
        self._instances: list[dict[str, Value]] = [{}]
        self._active: list[Body] = []
        self._depth = 0
        self._steps = 0

    def visit(self, node: ast.AST) -> Value:
        """Go through one piece of syntax and return what its value is known to be; too much or too deep is passed over."""
        self._steps += 1
        if self._depth > _DEPTH or self._steps > _STEPS:
            self.left_out = True
            return UNKNOWN
        self._depth += 1
        look: Callable[[ast.AST], Value | None] = getattr(self, f"_on_{type(node).__name__.lower()}", self._children)
        value = look(node) or UNKNOWN
        self._depth -= 1
        return value

    def block(self, body: Iterable[ast.AST]) -> None:
        """Go through statements in a row."""
        for node in body:
            self.visit(node)

    def say(self, *words: str) -> None:
        """Note what would happen."""
        self.said.update(dict.fromkeys(words))

    def change(self, value: Value) -> None:
        """Note that the object which `value` is would change."""
        if value.meant.startswith("os.environ"):
            self.say(CHANGES_ENVIRONMENT)
            return
        self.changed.update(dict.fromkeys(sorted(value.roots)))

    def cell(self, code: str) -> None:
        """Go through a whole cell."""
        raise NotImplementedError

    def _children(self, node: ast.AST) -> None:
        self.block(ast.iter_child_nodes(node))

    # ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _on_name(self, node: ast.Name) -> Value:
        return self.names.get(node.id)

    def _on_constant(self, node: ast.Constant) -> Value:
        known = str(node.value)[:5_000] if isinstance(node.value, str | int | float) else None
        meant = "None" if node.value is None else "str" if isinstance(node.value, str) else ""
        return Value(text=known, meant=meant, family="plain")

    def _on_joinedstr(self, node: ast.JoinedStr) -> Value:
        return Value(text=joined(*(self.visit(part).text for part in node.values)), meant="str", family="plain")

    def _on_formattedvalue(self, node: ast.FormattedValue) -> Value:
        value = self.visit(node.value)
        return Value(text=None if node.format_spec else value.text)

    def _on_binop(self, node: ast.BinOp) -> Value:
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Div) and "path" in {left.family, right.family}:
            return Value(meant=PATH, family="path", text=joined_path(left.text, right.text))
        if isinstance(node.op, ast.Add) and "str" in {left.meant, right.meant}:
            return Value(text=joined(left.text, right.text), meant="str")
        if isinstance(node.op, ast.Add):
            return Value(
                holds=left.holds | right.holds, items=(*left.items, *right.items) if left.items and right.items else ()
            )
        if isinstance(node.op, ast.Mod) and left.text is not None and isinstance(node.left, ast.Constant):
            return Value(text=percent(left.text), meant="str")
        return UNKNOWN

    def _on_ifexp(self, node: ast.IfExp) -> Value:
        self.visit(node.test)
        return merged((self.visit(node.body), self.visit(node.orelse)))

    def _on_boolop(self, node: ast.BoolOp) -> Value:
        return merged(tuple(self.visit(value) for value in node.values))

    def _on_await(self, node: ast.Await | ast.Starred) -> Value:
        return self.visit(node.value)

    _on_starred = _on_await

    def _on_namedexpr(self, node: ast.NamedExpr) -> Value:
        value = self.visit(node.value)
        self.names.bind(node.target.id, value)
        return value

    def _on_lambda(self, node: ast.Lambda) -> Value:
        return self.defined(node)

    def defined(self, body: Body) -> Value:
        """Return the value of a function or class that is defined here, and remember where."""
        self._homes[id(body)] = self.names.scope
        return Value(body=body, family="plain")

    def _on_tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        items = tuple(self.visit(item) for item in node.elts[:200])
        return Value(holds=holding(items), items=items)

    _on_list = _on_tuple
    _on_set = _on_tuple

    def _on_dict(self, node: ast.Dict) -> Value:
        return Value(holds=holding(tuple(self.visit(part) for part in (*node.values, *node.keys) if part is not None)))

    def _on_listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        outer, self.names.scope = self.names.scope, Scope(self.names.scope, passing=True)
        for part in node.generators:
            element = self.taken(self.visit(part.iter))
            for target in flat([part.target]):
                if isinstance(target, ast.Name):
                    self.names.put(self.names.scope, target.id, element)
            self.block(part.ifs)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        values = tuple(self.visit(part) for part in parts)
        self.names.scope = outer
        return Value(holds=holding(values))

    _on_setcomp = _on_listcomp
    _on_generatorexp = _on_listcomp
    _on_dictcomp = _on_listcomp

    def taken(self, value: Value) -> Value:
        """Return what is known of what a loop takes from `value`; a generator runs now."""
        return self._enter(value, (), {}) if value.family == GENERATOR else value.element()

    def set_attribute(self, owner: Value, name: str, value: Value) -> None:
        """Note that an attribute is set: of the notebook's module, of an instance of the cell's class, of any object."""
        if owner.meant == "__main__":
            self.names.bind(name, value, self.names.top)
        elif owner.of is not None:
            self._instances[owner.number][name] = value
        else:
            self.change(owner)

    def _on_attribute(self, node: ast.Attribute) -> Value:
        return self._attribute(self.visit(node.value), node.attr)

    def _attribute(self, owner: Value, name: str) -> Value:
        if owner.of is not None and name in self._instances[owner.number]:
            return self._instances[owner.number][name]
        if owner.of is not None and (method := method_of(owner.of, name)) is not None:
            return Value(body=method, family="plain", given=(owner,))
        if owner.family == "path" and (known := attribute_of_path(owner, name)) is not None:
            return known
        return owner.attribute(name)

    def _on_subscript(self, node: ast.Subscript) -> Value:
        owner, key = self.visit(node.value), self.visit(node.slice)
        if owner.meant in _OF_GLOBALS and key.text:
            return self.names.get(key.text)
        if owner.meant == "sys.modules" and key.text:
            return Value(meant=plain_name(key.text), family="plain")
        if owner.meant in _MODULES_OF_POWER and key.text:  # vars(os)["system"], os.__dict__["system"]
            return owner.attribute(key.text)
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if type(place) is int and -len(owner.items) <= place < len(owner.items):
            return owner.items[place]
        accessor = isinstance(node.value, ast.Attribute) and node.value.attr in _ACCESSORS
        chosen = isinstance(node.slice, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.BinOp | ast.List | ast.ListComp)
        cut = isinstance(node.slice, ast.Slice) and owner.family != "numpy"  # of an array it is a view
        if (accessor or chosen or cut) and not is_minus(node.slice):
            return Value(holds=owner.touches()) if cut and not owner.family else UNKNOWN
        return owner.part()

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _on_call(self, node: ast.Call) -> Value:
        function = self.visit(node.func)
        args = tuple(self.visit(arg) for arg in node.args)
        return self.call(function, args, {keyword.arg or "**": self.visit(keyword.value) for keyword in node.keywords})

    def call(self, function: Value, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        """Note what a call would do, and return what it would give."""
        if function.body is not None:
            return self._enter(function, args, keywords)
        if function.meant in {"operator.methodcaller()", "operator.attrgetter()"} and args:
            got = self._attribute(args[0], function.name)
            return got if function.meant == "operator.attrgetter()" else self.call(got, function.given, {})
        args = (*function.given, *args)
        special = self._special(function.meant, args, keywords)
        if special is None:
            special = self._ipython(function.meant, tuple(arg.text for arg in args))
        if special is not None:
            return special
        call = _called(function, args, keywords)
        if call.method == "pipe" and args and (args[0].body is not None or args[0].name):
            return self.call(args[0], (call.owner, *args[1:]), keywords)
        self._note(call)
        if function.meant not in _ONLY_LOOK:
            for value in call.given:
                for one in (value, *value.items):
                    self._handed(one, _args_for_it(call, one))
        return made(call)

    def _note(self, call: Called) -> None:
        said, changed = deeds(call)
        self.say(*said)
        for value in changed:
            self.change(value)

    def _handed(self, value: Value, args: tuple[Value, ...]) -> None:
        """Take a function that is handed over for one that is called, mostly with arguments that are not known."""
        if value.body is not None and not isinstance(value.body, ast.ClassDef):
            self._enter(value, args, {})
        elif (value.name or (value.family == "plain" and value.text is None)) and not value.meant.endswith(")"):
            self._note(_called(value, (*value.given, *(args or (UNKNOWN,))), {}))

    def _enter(self, function: Value, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        """Go through a function with what is known of its arguments; a class gives an instance."""
        body = function.body
        args = (*function.given, *args)
        if isinstance(body, ast.ClassDef):
            self._instances.append({})
            instance = Value(of=body, number=len(self._instances) - 1)
            for name in ("__init__", "__post_init__"):
                if (method := method_of(body, name)) is not None:
                    self._enter(Value(body=method), (instance, *(args if name == "__init__" else ())), keywords)
            return instance
        if body is None or body in self._active or len(self._active) >= _CALLS:
            return UNKNOWN
        if function.family != GENERATOR and is_generator(body):  # it runs when something is taken from it
            return Value(body=body, family=GENERATOR, given=args)
        names = self.names
        outer, names.scope = names.scope, Scope(self._homes.get(id(body), names.top))
        returned, self.returned = self.returned, []
        self._active.append(body)
        self._give(names.scope, body.args, args, keywords)
        if isinstance(body, ast.Lambda):
            self.returned.append(self.visit(body.body))
        else:
            self.block(body.body)
        self._active.pop()
        gives = merged(tuple(self.returned)) if self.returned else UNKNOWN
        names.scope, self.returned = outer, returned
        return gives

    def _give(
        self, scope: Scope, parameters: ast.arguments, args: tuple[Value, ...], keywords: dict[str, Value]
    ) -> None:
        """Give the parameters of a function what is known of the arguments, or of their defaults."""
        plain = (*parameters.posonlyargs, *parameters.args)
        names = [arg.arg for arg in plain]
        scope.names.update(dict.fromkeys([*names, *(arg.arg for arg in parameters.kwonlyargs)], UNKNOWN))
        defaults = [*zip(plain[::-1], parameters.defaults[::-1], strict=False)]
        defaults += [
            (a, d) for a, d in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True) if d is not None
        ]
        scope.names.update({arg.arg: self.visit(default) for arg, default in defaults})
        scope.names.update(zip(names, args, strict=False))
        scope.names.update({name: value for name, value in keywords.items() if name in scope.names})
        if parameters.vararg:
            rest = args[len(names) :]
            scope.names[parameters.vararg.arg] = Value(items=rest, holds=holding(rest))
        if parameters.kwarg:
            scope.names[parameters.kwarg.arg] = UNKNOWN

    def _special(self, meant: str, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value | None:
        """Return what calls of Python's own give that lead to other names or other code, else None."""
        first = args[0] if args else UNKNOWN
        if meant == "getattr" and len(args) > 1:
            name = args[1].text
            if (not name or GAP in name) and first.meant in _MODULES_OF_POWER:
                self.say(WORDS[UNSEEN])
            return self._attribute(first, name) if name and GAP not in name else first.part()
        if meant.endswith(".__getattribute__") and args:
            owner = plain_name(meant.removesuffix(".__getattribute__"))
            if owner == "object" and len(args) > 1:
                return self._attribute(first, args[1].text or GAP)
            return Value(meant=owner, family="plain").attribute(first.text or GAP)
        if meant == "setattr" and len(args) == 3:
            self.set_attribute(first, args[1].text or GAP, args[2])
            return UNKNOWN
        if meant in {"operator.methodcaller", "operator.attrgetter"}:
            return Value(meant=f"{meant}()", name=first.text or "", given=args[1:])
        if meant in {"__import__", "importlib.import_module", "importlib.__import__"}:
            if not first.text:
                self.say(WORDS[UNSEEN])
            return Value(meant=plain_name(first.text), family="plain") if first.text else UNKNOWN
        if meant == "vars" and args:
            return first
        if meant == "functools.partial":
            return replace(first, given=(*first.given, *args[1:]))
        if meant in {"exec", "eval"}:
            return self._text_as_code(first.text, apart=len(args) > 1)
        if meant == "globals().update":
            for name, value in keywords.items():
                self.names.bind(name, value, self.names.top)
            return UNKNOWN
        if meant == "globals().pop":
            self.names.unbind(first.text or GAP, self.names.top)
            return UNKNOWN
        return None

    def _text_as_code(self, text: str | None, *, apart: bool) -> Value:
        tree = cellcode.parse(text) if text is not None and GAP not in text else None
        if tree is None:
            self.say(WORDS[UNSEEN])
        elif len(self._active) < _CALLS:
            outer, self.names.scope = self.names.scope, Scope(self.names.top) if apart else self.names.top
            self._active.append(_INNER)
            self.block(tree.body)
            self._active.pop()
            self.names.scope = outer
        return UNKNOWN

    def _ipython(self, meant: str, texts: tuple[str | None, ...]) -> Value | None:
        """Go through a cell or magic that is run by a call of the shell's; None for any other call."""
        owner, _, name = meant.rpartition(".")
        if owner != "get_ipython()" or not texts or not texts[0] or GAP in texts[0]:
            return None
        rest = [text or "" for text in texts[1:]]
        code = {
            "run_line_magic": f"%{texts[0]} {''.join(rest[:1])}",
            "run_cell_magic": f"%%{texts[0]} {''.join(rest[:1])}\n{''.join(rest[1:2])}",
            "magic": f"%{texts[0].removeprefix('%')}",
            **dict.fromkeys(("run_cell", "run_cell_async", "ex"), texts[0]),
        }.get(name)
        if code is None:
            return None
        if len(self._active) < _CALLS:
            self._active.append(_INNER)
            self.cell(code)
            self._active.pop()
        return UNKNOWN


def _args_for_it(call: Called, function: Value) -> tuple[Value, ...]:
    """Return the arguments with which a call will call a function that it gets: `submit(f, 1)`, `Thread(target=f, args=(1,))`."""
    if call.args and call.args[0] is function and call.method in _CALLS_WITH_REST:
        return call.args[1:]
    return call.keywords["args"].items if "args" in call.keywords else ()


def _called(function: Value, args: tuple[Value, ...], keywords: dict[str, Value]) -> Called:
    method = function.name or function.meant.rpartition(".")[2]
    return Called(function.meant, method, function.owner or UNKNOWN, args, keywords)
