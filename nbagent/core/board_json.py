"""A board as JSON and back. Fields that this version does not know are kept, so that older and newer ones can share a board.

Read `to_json`, then `_value`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, get_args

from nbagent.core.board_values import Kind, Letter, Member, MemberState, State, Stint, Task
from nbagent.core.errors import BoardError
from nbagent.core.messages import Json

if TYPE_CHECKING:
    from nbagent.core.board import Board

_LISTS: dict[str, type] = {"tasks": Task, "members": Member, "letters": Letter, "past": Stint}
_TEXTS = frozenset({"needs", "waiting"})
_WORDS = {"State": get_args(State), "MemberState": get_args(MemberState), "Kind": get_args(Kind)}
_PLAIN: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}


def to_json(value: Any) -> Json:
    """Return a value of a board as JSON; what has its default is left out, the rest is in the order of its fields."""
    said: Json = dict(value.more or {})
    for field in dataclasses.fields(value):
        given = getattr(value, field.name)
        if field.name == "more" or given == field.default:
            continue
        if field.name in _LISTS:
            said[field.name] = [to_json(one) for one in given]
        else:
            said[field.name] = list(given) if field.name in _TEXTS else given
    return said


def from_json(board: type[Board], data: object) -> Board:
    """Return the board of its JSON; raises `BoardError` with what is wrong."""
    return _value(board, data)


def _value(kind: type, data: object) -> Any:
    if not isinstance(data, dict):
        raise BoardError(f"the board can't be read: a {kind.__name__.lower()} is {data!r:.80}, which is no table")
    given: dict[str, Any] = {}
    left = dict(data)
    for field in dataclasses.fields(kind):
        if field.name == "more":
            continue
        if field.name in left:
            given[field.name] = _field(kind, field.name, str(field.type), left.pop(field.name))
        elif field.default is dataclasses.MISSING:
            raise BoardError(f"the board can't be read: a {kind.__name__.lower()} has no {field.name}")
    return kind(**given, more=left or None)


def _field(kind: type, name: str, annotation: str, value: Any) -> Any:
    if name in _LISTS:
        if isinstance(value, list):
            return tuple(_value(_LISTS[name], one) for one in value)
    elif name in _TEXTS:
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
    elif annotation in _WORDS:
        if value in _WORDS[annotation]:
            return value
    elif type(value) is _PLAIN[annotation]:
        return value
    elif annotation == "float" and type(value) is int:
        return float(value)
    raise BoardError(_wrong(kind, name, annotation, value))


def _wrong(kind: type, name: str, annotation: str, value: object) -> str:
    if name in _LISTS or name in _TEXTS:
        why = "which is no list" if name in _LISTS else "which is no list of texts"
    elif annotation in _WORDS:
        why = f"none of {', '.join(_WORDS[annotation])}"
    else:
        why = f"which is no {annotation}"
    return f"the board can't be read: {name} of a {kind.__name__.lower()} is {value!r:.80}, {why}"
