"""A foreign tool's name and JSON schema: made fit for the model's server, kept short, and checked as they were meant.

The Messages API takes plain names of at most 64 characters, an object at the top of a schema without oneOf, anyOf or
allOf there, and plain property names; MCP servers send anything. What is shown may be simpler than the original; what is
given is checked against the original. Must not know of clients. Read `Arguments.of`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nbagent.core.errors import ToolError
from nbagent.core.messages import Json, clean_value

NAME_LIMIT = 64
SCHEMA_LIMIT = 16_000
"""Characters of JSON of one tool's schema as the model sees it."""

_PLAIN = re.compile(r"[^A-Za-z0-9_-]")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_COMBINERS = ("oneOf", "anyOf", "allOf")
_TOP_ONLY = (*_COMBINERS, "not", "if", "then", "else", "$schema", "$id", "$ref", "$anchor", "$dynamicAnchor")
_DEPTH = 40


def tool_name(server: str, tool: str, taken: Iterable[str] = ()) -> str:
    """Return `mcp__server__tool` in plain letters, at most 64 characters, unlike all of `taken`.

    A name that had to be cut, or that is taken, ends in a hash of the full one, so it is the same in every session.
    """
    name = f"{server_prefix(server)}{_plain(tool)}"
    if len(name) > NAME_LIMIT or name in set(taken):
        mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "replace")).hexdigest()[:8]
        name = f"{name[: NAME_LIMIT - 9]}_{mark}"
    return name


def server_prefix(server: str) -> str:
    """Return what the names of a server's tools begin with; `__` ends a server's name, so there is none within it."""
    return f"mcp__{re.sub('__+', '_', _plain(server)).strip('_') or 'server'}__"


def _plain(text: str) -> str:
    plain = _PLAIN.sub("_", text)
    if re.search(r"[A-Za-z0-9]", plain):
        return plain
    return f"x{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"  # nothing of it would be left


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a tool takes. `shown` is the schema for the model, `original` the server's, `names` its property names by shown ones."""

    shown: Json
    original: Json
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    _checker: list[Any] = field(default_factory=list[Any], compare=False)

    @classmethod
    def of(cls, schema: Json, limit: int = SCHEMA_LIMIT) -> Arguments:
        """Read a server's schema; nothing in it is too odd to be read."""
        original: Json = clean_value(schema)
        top = _at_top(original)
        properties, names = _renamed(top["properties"])
        back = {old: new for new, old in names.items()}
        top["properties"] = properties
        if "required" in top:
            top["required"] = [back.get(name, name) for name in top["required"]]
        return cls(_bounded(_local(top), limit), original, names)

    def check(self, tool: str, given: Json) -> Json:
        """Return `given` if it fits the original schema; raise `ToolError` that names what does not.

        A schema that cannot be used (it is broken, or refers to another document) checks nothing: the server does.
        """
        for problem in self._problems(self.sent(given)):
            expected = json.dumps(self.shown, ensure_ascii=False)[:2000]
            raise ToolError(f"wrong arguments for {tool}: {problem}. Expected, as a JSON schema: {expected}")
        return given

    def sent(self, given: Json) -> Json:
        """Return the arguments under the names that the server knows."""
        return {self.names.get(name, name): value for name, value in given.items()}

    def _problems(self, given: Json) -> list[str]:
        from jsonschema.exceptions import SchemaError
        from referencing.exceptions import Unresolvable

        try:
            if not self._checker:
                self._checker.append(_checker(self.original))
            errors = sorted(self._checker[0].iter_errors(given), key=lambda error: list(map(str, error.path)))
        except (SchemaError, Unresolvable, re.error, RecursionError, TypeError, ValueError):
            return []
        said = [f"{'.'.join(map(str, error.absolute_path)) or 'input'}: {str(error.message)[:300]}" for error in errors]
        return ["; ".join(said[:5])] if said else []


def _checker(schema: Json) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    kind: Any = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(schema)
    return kind(schema, registry=Registry())  # of an empty registry: no document is fetched


def _at_top(schema: Json) -> Json:
    """The schema as an object with properties: references and alternatives at its top are folded into it."""
    properties: Json = {}
    required: list[str] = []
    for part, always in _parts(schema, schema, 0, always=True):
        found = part.get("properties")
        if isinstance(found, dict):
            for name, spec in found.items():
                properties.setdefault(name, spec)
        needed = part.get("required")
        if always and isinstance(needed, list):
            required += [str(name) for name in needed if str(name) not in required]
    top = {key: value for key, value in schema.items() if key not in {*_TOP_ONLY, "properties", "required"}}
    top = {**top, "type": "object", "properties": properties}
    if kept := [name for name in required if name in properties]:
        top["required"] = kept
    return top


def _parts(schema: Any, root: Json, depth: int, *, always: bool) -> Iterable[tuple[Json, bool]]:
    """A schema and those that it is put together from; with each, whether all that is given must fit it."""
    if not isinstance(schema, dict) or depth > _DEPTH:
        return
    yield schema, always
    if isinstance(target := schema.get("$ref"), str):
        yield from _parts(_pointed(root, target), root, depth + 1, always=always)
    for key in _COMBINERS:
        branches = schema.get(key)
        for branch in branches if isinstance(branches, list) else ():
            yield from _parts(branch, root, depth + 1, always=always and key == "allOf")


def _pointed(root: Json, target: str) -> Any:
    """What a reference within the document points to; None where it points elsewhere."""
    if not target.startswith("#"):
        return None
    found: Any = root
    for part in filter(None, target[1:].split("/")):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def _renamed(properties: Json) -> tuple[Json, dict[str, str]]:
    """Give properties whose names the API refuses a plain name; the meaning of the new one is told beside it."""
    shown: Json = {}
    names: dict[str, str] = {}
    for name, spec in properties.items():
        plain = name
        if not _PROPERTY.match(name):
            plain = _PLAIN.sub("_", name)[:50].strip("_") or "argument"
            while plain in properties or plain in shown:
                plain = f"{plain[:50]}_{hashlib.sha256(name.encode()).hexdigest()[:6]}"
            names[plain] = name
            known = spec if isinstance(spec, dict) else {}
            shown[plain] = {**known, "description": f"({name[:200]}) {known.get('description', '')}".strip()}
        else:
            shown[plain] = spec
    return shown, names


def _local(schema: Json) -> Json:
    """Take out what the API would refuse further down: references to other documents, and odd property names."""

    def fit(node: Any) -> Any:
        if isinstance(node, dict) and isinstance(node.get("$ref"), str) and not node["$ref"].startswith("#"):
            return {key: value for key, value in node.items() if key != "$ref"}
        found = node.get("properties") if isinstance(node, dict) else None
        if isinstance(found, dict) and any(not _PROPERTY.match(name) for name in found):
            told = json.dumps(found, ensure_ascii=False)[:1000]
            rest = {key: value for key, value in node.items() if key not in {"properties", "required"}}
            return {**rest, "description": f"{node.get('description', '')} Properties: {told}".strip()}
        return node

    return _walk(schema, fit)


def _walk(node: Any, change: Callable[[Any], Any], depth: int = 0) -> Any:
    """Apply `change` to every object of a JSON value, outer ones first; what is nested too deeply is left out."""
    if depth > _DEPTH:
        return {}
    if isinstance(node, list):
        return [_walk(item, change, depth + 1) for item in node]
    if isinstance(node, dict):
        return {key: _walk(value, change, depth + 1) for key, value in change(node).items()}
    return node


def _bounded(schema: Json, limit: int) -> Json:
    """Shorten a schema in steps until it fits: examples and titles, long descriptions, then all below the arguments."""
    steps = (
        lambda s: s,
        lambda s: _walk(s, lambda n: _without(n, "examples", "title", "default", "$comment")),
        lambda s: _walk(s, lambda n: _short(n, 200)),
        lambda s: _walk(s, lambda n: _short(n, 60)),
        _flat,
    )
    for step in steps:
        schema = step(schema)
        if len(json.dumps(schema, ensure_ascii=False)) <= limit:
            return schema
    shown: Json = {}
    for name, spec in schema["properties"].items():  # thousands of arguments: as many as fit, the others are not told
        shown[name] = {"type": spec["type"]} if "type" in spec else {}
        if len(json.dumps(shown)) > limit - 200:
            shown.pop(name)
            break
    needed = [name for name in schema.get("required", []) if name in shown]
    return {"type": "object", "properties": shown, **({"required": needed} if needed else {})}


def _without(node: Json, *keys: str) -> Json:
    """Take keywords out of a schema object, but never properties that are called so."""
    if all(isinstance(value, dict | bool) for value in node.values()) and "type" not in node:
        return node  # a table of properties or definitions
    return {key: value for key, value in node.items() if key not in keys}


def _short(node: Json, length: int) -> Json:
    text = node.get("description")
    return {**node, "description": f"{text[:length]}…"} if isinstance(text, str) and len(text) > length else node


def _flat(schema: Json) -> Json:
    """Keep of each argument its type and a short description."""
    kept: Json = {}
    for name, spec in schema["properties"].items():
        known = spec if isinstance(spec, dict) else {}
        kept[name] = {key: known[key] for key in ("type", "description") if isinstance(known.get(key), str | list)}
        if isinstance(known.get("enum"), list) and len(json.dumps(known["enum"])) < 500:
            kept[name]["enum"] = known["enum"]
    rest = {key: schema[key] for key in ("required", "description") if key in schema}
    return {"type": "object", "properties": kept, **rest}
