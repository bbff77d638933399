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
    known = {field.name: field for field in dataclasses.fields(kind) if field.name != "more"}
    given: dict[str, Any] = {}
    for name, field in known.items():
        if name in data:
            given[name] = _field(kind, name, data[name])
        elif field.default is dataclasses.MISSING:
            raise BoardError(f"the board can't be read: a {kind.__name__.lower()} has no {name}")
    more = {name: value for name, value in data.items() if name not in known}
    return kind(**given, more=more or None)


def _field(kind: type, name: str, value: object) -> Any:
    where = f"the board can't be read: {name} of a {kind.__name__.lower()} is {value!r:.80}"
    if name in _LISTS:
        if not isinstance(value, list):
            raise BoardError(f"{where}, which is no list")
        return tuple(_value(_LISTS[name], one) for one in value)
    if name in _TEXTS:
        if not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            raise BoardError(f"{where}, which is no list of texts")
        return tuple(value)
    if name == "state":
        words = get_args(State) if kind is Task else get_args(MemberState)
    elif name == "kind":
        words = get_args(Kind)
    else:
        words = ()
    if words:
        if value not in words:
            raise BoardError(f"{where}, none of {', '.join(words)}")
        return value
    wanted = _kind_of(kind, name)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise BoardError(f"{where}, which is no {wanted.__name__}")
    return value


def _kind_of(kind: type, name: str) -> type:
    text = next(str(field.type) for field in dataclasses.fields(kind) if field.name == name)
    return {"str": str, "int": int, "float": float, "bool": bool}[text]
