"""What a JSON file holds, from its beginning: records a line, a list of records, a table in one of pandas' shapes, or a tree.

Read `told`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.tools.data.delimited import Asked
from nbagent.tools.data.encodings import Encoding, decoded
from nbagent.tools.data.opening import Piece, inferred, size_text
from nbagent.tools.data.records import columns_of
from nbagent.tools.data.spelling import reading_of
from nbagent.tools.data.telling import call_text, columns_text, rows_text

_SPACE = re.compile(r"[ \t\r\n]*")
_RECORDS = 1_000
_KEYS = 200
_DEEP = 3


@dataclass(frozen=True, slots=True)
class _Begun:
    """What a text begins with: the value as far as it is there, and whether it goes on; `used` characters were read."""

    value: Any
    cut: bool
    used: int


def told(piece: Piece, encoding: Encoding, asked: Asked) -> list[str] | None:
    """Return what the JSON is, line by line; None where it is none."""
    text = decoded(piece, encoding).removeprefix("\ufeff").lstrip()
    try:
        if (rows := _lines(text, whole=piece.whole)) is not None:
            return _told_lines(rows, piece, encoding, asked)
        begun = _begun(text, whole=piece.whole)
    except RecursionError:
        return ["JSON that is nested too deeply to be looked into", f"{size_text(asked.size)} on disk"]
    if begun is None:
        return None
    return _Told(begun, piece, encoding, asked).lines()


def _lines(text: str, *, whole: bool) -> list[Any] | None:
    """Return the records of JSON lines, None where it is something else."""
    lines = text.split("\n") if whole else text.split("\n")[:-1]
    lines = [line for line in lines if line.strip()]
    if len(lines) < 2 or len(lines[0].strip()) < 2:
        return None
    rows: list[Any] = []
    for line in lines[:_RECORDS]:
        try:
            rows.append(json.loads(line))
        except ValueError:
            if len(rows) < 2:
                return None
            rows.append(None)
    return rows if type(rows[0]) in {dict, list} else None


def _begun(text: str, *, whole: bool) -> _Begun | None:
    decoder = json.JSONDecoder()
    try:
        value, end = decoder.raw_decode(text)
        return _Begun(value, cut=False, used=end) if not text[end:].strip() or not whole else None
    except ValueError:
        if whole:
            return None
    return _part(text, 0, decoder, _DEEP)


def _part(text: str, start: int, decoder: json.JSONDecoder, deep: int) -> _Begun | None:
    """Return the members or items of a value that is not there to its end."""
    opening, at = text[start], _skip(text, start + 1)
    items: list[Any] = []
    members: dict[str, Any] = {}
    while at < len(text) and text[at] not in "]}":
        key = None
        try:
            if opening == "{":
                key, at = decoder.raw_decode(text, at)
                at = _skip(text, at)
                if type(key) is not str or text[at : at + 1] != ":":
                    return None if not members else _Begun(members, cut=True, used=at)
                at = _skip(text, at + 1)
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            inner = _part(text, at, decoder, deep - 1) if deep and text[at : at + 1] in {"{", "["} else None
            if inner is not None and key is not None:
                members[str(key)] = inner.value
            break
        if opening == "{":
            members[str(key)] = value
        else:
            items.append(value)
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at : at + 1] == "," else at
    found: Any = members if opening == "{" else items
    return _Begun(found, cut=True, used=at) if found else None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _told_lines(rows: Sequence[Any], piece: Piece, encoding: Encoding, asked: Asked) -> list[str]:
    broken = [place + 1 for place, row in enumerate(rows) if row is None]
    count = piece.data.count(b"\n") + (not piece.data.endswith(b"\n"))
    about = (
        f"{count:,} lines"
        if piece.whole
        else f"about {count * piece.size / max(1, len(piece.data)):,.0f} lines (an estimate)"
    )
    odd = [f"! lines that are no JSON: {', '.join(map(str, broken[:5]))}"] if broken else []
    options: list[tuple[str, Any]] = [("lines", True), *_options(piece, encoding, asked), *_texts(rows)]
    return [
        f"JSON lines: one record a line, {encoding.said}" + (f", packed by {piece.packed}" if piece.packed else ""),
        f"{size_text(asked.size)} on disk; {about}",
        *odd,
        *_records(rows, asked),
        "",
        "To read it:",
        "df = " + call_text("pd.read_json", asked.path, options),
    ]


def _options(piece: Piece, encoding: Encoding, asked: Asked) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = [("encoding", encoding.name)] if encoding.name != "utf-8" else []
    return found if inferred(piece.packed, asked.path) else [*found, ("compression", piece.packed)]


def _texts(rows: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the types to give for texts of digits, which pandas would make numbers of."""
    keys = {key for row in rows if type(row) is dict for key in row}
    digits = {
        key: str for key in sorted(keys)
        if reading_of(row[key] for row in rows if type(row) is dict and type(row.get(key)) is str).kind in {"integer", "number"}
    }  # fmt: skip
    return [("dtype", digits)] if digits else []


def _records(rows: Sequence[Any], asked: Asked) -> list[str]:
    dicts = [row for row in rows if type(row) is dict]
    if not dicts:
        return [f"each is a {type(rows[0]).__name__}: {json.dumps(rows[0])[:200]}"] if rows else ["no records"]
    keys = list(dict.fromkeys(key for row in dicts for key in row))[:_KEYS]
    table = [[row.get(key) for key in keys] for row in dicts]
    return [*columns_text(columns_of(keys, table), "keys"), *rows_text(list(map(repr, keys)), table, asked.rows)]


class _Told:
    """One JSON value, by its shape."""

    def __init__(self, begun: _Begun, piece: Piece, encoding: Encoding, asked: Asked) -> None:
        self.value, self.cut, self.used = begun.value, begun.cut, begun.used
        self.piece, self.encoding, self.asked = piece, encoding, asked

    def lines(self) -> list[str]:
        """Return all that is said."""
        shape, body, call = self._shape()
        start = " (its beginning was looked at)" if self.cut else ""
        return [
            f"JSON: {shape}, {self.encoding.said}" + (f", packed by {self.piece.packed}" if self.piece.packed else ""),
            f"{size_text(self.asked.size)} on disk{start}",
            *body,
            *(["", "To read it:", *call] if call else []),
        ]

    def _shape(self) -> tuple[str, list[str], list[str]]:
        value = self.value
        if type(value) is list:
            return self._list(value)
        if type(value) is not dict:
            return f"a single {type(value).__name__}", [], []
        if "nbformat" in value and "cells" in value:
            return "a notebook", ["read_file shows its cells"], []
        if value.get("type") == "FeatureCollection":
            return "GeoJSON", self._tree(value), ["df = " + call_text("geopandas.read_file", self.asked.path)]
        if {"columns", "data"} <= value.keys():
            return self._oriented("split", value["columns"], value["data"])
        if {"schema", "data"} <= value.keys():
            return "a table (pandas' orient table)", _records(value["data"], self.asked), self._read("table")
        if (
            value
            and all(type(item) is list for item in value.values())
            and len({len(item) for item in value.values()}) == 1
            and not _has_dicts(value)
        ):
            rows = [list(row) for row in zip(*value.values(), strict=True)][:_RECORDS]
            body = [
                *columns_text(columns_of(list(value), rows)),
                *rows_text(list(map(repr, value)), rows, self.asked.rows),
            ]
            return "a list for each column", body, self._loaded("pd.DataFrame(data)")
        if len(value) > 1 and all(type(item) is dict for item in value.values()):
            return self._of_dicts(value)
        return self._with_records(value)

    def _list(self, value: list[Any]) -> tuple[str, list[str], list[str]]:
        count = (
            f"{len(value):,}"
            if not self.cut
            else f"about {len(value) * self.piece.size / max(1, self.used):,.0f} (an estimate)"
        )
        rows = value[:_RECORDS]
        if not value or type(value[0]) is not dict:
            kind = type(value[0]).__name__ if value else "nothing"
            return (
                f"a list of {count} values, the first a {kind}",
                [f"begins {json.dumps(rows[:5])[:400]}"],
                self._loaded("pd.DataFrame(data)"),
            )
        nested = any(type(item) is dict for row in rows if type(row) is dict for item in row.values())
        if nested:
            call = self._loaded("pd.json_normalize(data)")
        else:
            call = [
                "df = "
                + call_text(
                    "pd.read_json", self.asked.path, [*_options(self.piece, self.encoding, self.asked), *_texts(rows)]
                )
            ]
        return f"a list of {count} records", _records(rows, self.asked), call

    def _oriented(self, orient: str, labels: Any, rows: Any) -> tuple[str, list[str], list[str]]:
        names = [str(label) for label in labels] if type(labels) is list else []
        table = [row for row in rows[:_RECORDS] if type(row) is list] if type(rows) is list else []
        body = [*columns_text(columns_of(names, table)), *rows_text(list(map(repr, names)), table, self.asked.rows)]
        return f"a table (pandas' orient {orient})", body, self._read(orient)

    def _read(self, orient: str) -> list[str]:
        return [
            "df = "
            + call_text(
                "pd.read_json", self.asked.path, [("orient", orient), *_options(self.piece, self.encoding, self.asked)]
            )
        ]

    def _of_dicts(self, value: dict[str, Any]) -> tuple[str, list[str], list[str]]:
        inner = list(dict.fromkeys(key for item in value.values() for key in item))
        same = set.intersection(*(set(item) for item in value.values()))
        if len(same) >= len(inner) / 2 and not any(
            type(item) in {dict, list} for one in value.values() for item in one.values()
        ):
            rows = [{"(key)": key, **item} for key, item in list(value.items())[:_RECORDS]]
            return (
                f"a record for each of {len(value):,} keys",
                _records(rows, self.asked),
                self._loaded('pd.DataFrame.from_dict(data, orient="index")'),
            )
        return self._with_records(value)

    def _with_records(self, value: dict[str, Any]) -> tuple[str, list[str], list[str]]:
        path = _path_of_records(value, 3)
        if path is None:
            return "a tree", self._tree(value), self._loaded("pd.json_normalize(data)")
        inner: Any = value
        for key in path:
            inner = inner[key]
        where = path[0] if len(path) == 1 else path
        body = [
            *self._tree(value),
            f"the records are in {' > '.join(map(repr, path))}:",
            *_records(inner[:_RECORDS], self.asked),
        ]
        return "a tree with a list of records", body, self._loaded(f"pd.json_normalize(data, record_path={where!r})")

    def _tree(self, value: dict[str, Any]) -> list[str]:
        return [f"  {key!r}  {_kind(item)}" for key, item in list(value.items())[:40]]

    def _loaded(self, code: str) -> list[str]:
        opened = {"gzip": "gzip.open", "bz2": "bz2.open", "xz": "lzma.open"}.get(self.piece.packed, "open")
        module = ["import " + opened.partition(".")[0]] if "." in opened else []
        encoding = self.encoding.name
        return [
            "import json",
            *module,
            f'with {opened}({self.asked.path!r}, "rt", encoding="{encoding}") as f:',
            "    data = json.load(f)",
            f"df = {code}",
        ]


def _has_dicts(value: dict[str, Any]) -> bool:
    return any(type(item) is dict for items in value.values() for item in items[:5])


def _path_of_records(value: dict[str, Any], deep: int) -> list[str] | None:
    """Return the keys that lead to the longest list of records."""
    found: list[tuple[int, list[str]]] = []
    for key, item in value.items():
        if type(item) is list and item and type(item[0]) is dict:
            found.append((len(item), [key]))
        elif type(item) is dict and deep and (below := _path_of_records(item, deep - 1)) is not None:
            found.append((0, [key, *below]))
    return max(found, key=lambda one: one[0])[1] if found else None


def _kind(value: Any) -> str:
    if type(value) is list:
        return f"list of {len(value):,}" + (f", the first a {type(value[0]).__name__}" if value else "")
    if type(value) is dict:
        return f"object with {', '.join(map(repr, list(value)[:8]))}" + (", …" if len(value) > 8 else "")
    return type(value).__name__
