"""What library calls give, as far as it matters to what happens next: paths and texts, views and containers of objects.

It must not know of syntax or of effects. Read `made`.
"""

from __future__ import annotations

import re

from nbagent.tools.deeds import Called
from nbagent.tools.known import GAP, PATH, UNKNOWN, Value, holding, joined_path

_PATHS = frozenset({"pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath", "pathlib.PurePosixPath"})
_PLACES = {"pathlib.Path.home": "~", "pathlib.Path.cwd": ".", "os.getcwd": "."}
_JOINS = frozenset({"os.path.join", "posixpath.join"})
_PASSES = frozenset(
    {"str", "repr", "os.fspath", "os.path.abspath", "os.path.expanduser", "sqlalchemy.text", "sqlalchemy.sql.text",
     "urllib.request.Request", "os.path.realpath", "os.path.normpath", "textwrap.dedent"}
)  # fmt: skip
_HOLDERS = frozenset(
    {"list", "tuple", "dict", "set", "zip", "enumerate", "reversed", "sorted", "iter", "filter", "map", "frozenset"}
)
_VIEWS = frozenset(
    {
        *(
            "get",
            "values",
            "items",
            "keys",
            "setdefault",
            "ravel",
            "reshape",
            "view",
            "transpose",
            "squeeze",
            "swapaxes",
        ),
        *("diagonal", "__getitem__", "__iter__", "pop", "popleft", "numpy", "detach", "parameters", "gca", "copy_"),
    }
)
_SAME_TEXT = frozenset({"strip", "rstrip", "lstrip", "encode", "lower", "upper", "as_posix", "__str__"})
_SAME_PATH = frozenset({"resolve", "absolute", "expanduser", "rename", "replace"})
_PERCENT = re.compile(r"%[-+ #0]*(?:\(\w+\))?[\d.*]*[sdifgxrc]")
_BRACES = re.compile(r"\{[^{}]*\}")


def made(call: Called) -> Value:
    """Return what is known of what a library call gives."""
    owner, args, meant = call.owner, call.args, call.meant
    first = args[0] if args else UNKNOWN
    if meant in _PATHS:
        return Value(meant=PATH, family="path", text=joined_path(*(arg.text for arg in args)) if args else ".")
    if meant in _PLACES:
        return Value(meant=PATH, family="path", text=_PLACES[meant])
    if owner.family == "path":
        return _of_path(call)
    if meant in _JOINS:
        return Value(text=joined_path(*(arg.text for arg in args)))
    if meant in _PASSES and args:
        return Value(text=first.text, meant="str")
    if meant in {"glob.glob", "glob.iglob"}:
        return Value(family="names", text=first.text)
    if owner.text is not None and call.method == "format":
        return Value(text=_BRACES.sub(GAP, owner.text), meant="str")
    if owner.text is not None and call.method == "join" and first.items:
        return Value(text=owner.text.join(GAP if item.text is None else item.text for item in first.items), meant="str")
    if owner.text is not None and call.method in _SAME_TEXT:
        return Value(text=owner.text, meant="str")
    if meant in _HOLDERS:
        return _container(call)
    if call.method in _VIEWS and owner is not UNKNOWN:
        return owner.part()
    return Value(meant=f"{meant}()" if meant and len(meant) < 200 else "")


def percent(text: str) -> str:
    """Return a text with its % placeholders as gaps."""
    return _PERCENT.sub(GAP, text)


def attribute_of_path(path: Value, name: str) -> Value | None:
    """Return what is known of an attribute of a path that is no method, else None."""
    folder, slash, last = (path.text or GAP).rpartition("/")
    if name == "parent":
        return Value(meant=PATH, family="path", text=folder if slash else "." if path.text else None)
    if name in {"name", "stem", "suffix"}:
        return Value(text=last if name == "name" and path.text else None)
    return None


def _container(call: Called) -> Value:
    given = [v for v in call.given if v.touches() or v.items or v.family in {"paths", "names"}]
    if len(given) == 1 and given[0].family in {"paths", "names"}:
        return given[0]
    keeps = len(given) == 1 and call.meant in {"list", "tuple", "sorted", "reversed", "iter"}
    return Value(holds=holding(tuple(given)), items=given[0].items if keeps else ())


def _of_path(call: Called) -> Value:
    text, method = call.owner.text, call.method
    first = call.args[0].text if call.args else None
    if method in {"glob", "rglob"}:
        return Value(family="paths", text=joined_path(text, first))
    if method == "iterdir":
        return Value(family="paths", text=joined_path(text, "*"))
    if method in {"with_suffix", "with_name", "with_stem"} and text:
        folder, slash, name = text.rpartition("/")
        fresh = f"{name.rpartition('.')[0] or name}{first or GAP}" if method == "with_suffix" else first or GAP
        return Value(meant=PATH, family="path", text=f"{folder}{slash}{fresh}")
    if method == "joinpath":
        return Value(meant=PATH, family="path", text=joined_path(text, *(arg.text for arg in call.args)))
    if method == "open":
        return Value(meant="open()")
    if method in _SAME_PATH:
        return Value(meant=PATH, family="path", text=text)
    return Value(text=text if method in _SAME_TEXT else None)
