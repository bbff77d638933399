"""A form made of a tool's schema: which fields there are, what their texts mean, and what is missing in a call.

Whoever draws the form gets `Field`s and gives texts back; an empty field is left out of the call. This knows of no widget, and
it is no second validation: the runtime has the last word (`core/tools.py`). Read `fields_of`, then `input_of`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nbagent.core.messages import Block, Json

Kind = Literal["text", "lines", "number", "choice", "json"]
"""How a field is filled in: a line, several lines (code), a number, one of a few choices, or JSON for all else."""

_CODE = frozenset(
    {"code", "source", "content", "command", "query", "prompt", "new_string", "old_string", "plan", "sql"}
)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,), "object": (dict,),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One argument of a tool. `choices` are the texts of a choice; `default` is said where one is known, else ""."""

    name: str
    kind: Kind
    type: str
    required: bool
    description: str = ""
    choices: tuple[str, ...] = ()
    default: str = ""


def fields_of(schema: Json) -> tuple[Field, ...]:
    """Return the fields of a form for an input schema, in its order; what is no simple type becomes a JSON box."""
    required = set(schema.get("required") or ())
    definitions = schema.get("$defs") or {}
    return tuple(
        _field(name, _meant(spec, definitions), name in required)
        for name, spec in (schema.get("properties") or {}).items()
    )


def _meant(spec: Any, definitions: Json) -> Json:
    """Return what a property is, without a reference and without the null that makes it optional."""
    if not isinstance(spec, dict):
        return {}
    own = {name: value for name, value in spec.items() if name not in {"anyOf", "$ref", "allOf"}}
    if isinstance(ref := spec.get("$ref"), str):
        return {**_meant(definitions.get(ref.rpartition("/")[2]), definitions), **own}
    real = [one for one in spec.get("anyOf") or () if isinstance(one, dict) and one.get("type") != "null"]
    return {**_meant(real[0], definitions), **own} if len(real) == 1 else own


def _field(name: str, spec: Json, required: bool) -> Field:
    kind: Kind = "json"
    choices: tuple[str, ...] = ()
    type_name = str(spec.get("type") or "any")
    if isinstance(spec.get("enum"), list):
        kind, choices = "choice", tuple(_written(value) for value in spec["enum"])
    elif type_name == "boolean":
        kind, choices = "choice", ("true", "false")
    elif type_name in {"integer", "number"}:
        kind = "number"
    elif type_name == "string":
        kind = "lines" if name in _CODE else "text"
    default = spec.get("default")
    said = "" if default is None else _written(default)
    return Field(name, kind, type_name, required, str(spec.get("description") or ""), choices, said)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def input_of(schema: Json, texts: Mapping[str, str]) -> Json:
    """Return the input of a call of which these are the texts in the form.

    Numbers, choices and JSON are read; a text that can't be read so goes out as it is, as a model might send it.
    """
    given: Json = {}
    for field in fields_of(schema):
        text = texts.get(field.name, "")
        if text.strip():
            given[field.name] = text if field.kind in {"text", "lines"} else _read(field, text)
    return given


def _read(field: Field, text: str) -> Any:
    if field.kind == "choice" and field.type == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def problems(content: Sequence[Block], tools: Sequence[Json]) -> list[str]:
    """Return what is plainly wrong with a reply, a sentence each: what the runtime would answer with an error.

    A help before a reply is sent. It looks at names, at what is required and at plain types, not at all that a schema may say.
    """
    schemas = {str(tool.get("name")): tool.get("input_schema") or {} for tool in tools}
    found = [] if content else ["The reply is empty. Write words, or add a call."]
    for block in content:
        if block.get("type") != "tool_use":
            continue
        name, given = str(block.get("name")), block.get("input")
        if name not in schemas:
            found.append(f"There is no tool {name!r}.")
        elif not isinstance(given, dict):
            found.append(f"{name}: the input must be an object with named arguments.")
        else:
            found += [f"{name}: {said}" for said in _wrong(schemas[name], given)]
    return found


def _wrong(schema: Json, given: Json) -> list[str]:
    fields = {field.name: field for field in fields_of(schema)}
    found = [f"{name} is required." for name, field in fields.items() if field.required and name not in given]
    for name, value in given.items():
        field = fields.get(name)
        if field is None:
            if schema.get("additionalProperties") is False:
                found.append(f"there is no argument {name!r}. There are: {', '.join(fields) or 'none'}.")
            continue
        if field.choices and _written(value) not in field.choices:
            found.append(f"{name} must be one of {', '.join(field.choices)}, not {_written(value)}.")
        elif (types := _TYPES.get(field.type)) is not None and not _is(value, types) and value is not None:
            found.append(f"{name} must be of type {field.type}, not {_written(value)}.")
    return found


def _is(value: Any, types: tuple[type, ...]) -> bool:
    return isinstance(value, types) and (bool in types or not isinstance(value, bool))
