"""A notebook file as text: what may be wrong with it in one sentence, and how a few of its cells change and nothing else.

The text is never written anew: only the parts of it that changed are replaced, so that order, indent, escapes, line ends
and whatever is not known stay as they are, byte for byte. It must not know of disks or ports. Read `read`, then `written`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # of the standard library, with positions
from typing import Any

from nbagent.core.errors import NotebookError
from nbagent.core.messages import Json
from nbagent.tools.jsontext import Member, Style, items_of, margin_of, members_of, put, skip, without

_MERGE = re.compile(rb"^(?:<{7} |={7}\r?$|>{7} )", re.MULTILINE)
_BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?:00[89a-fA-F]|0[1-9a-fA-F]|[1-9a-fA-F])", re.ASCII)


@dataclass(frozen=True, slots=True)
class CellText:
    """One cell as it stands in the file: its text, and what that means."""

    text: str
    raw: Json


@dataclass(frozen=True, slots=True)
class NotebookText:
    """A notebook file that was read: its text and cells, the spaces around them, its minor version and style.

    `spans` are where cells stand, `start` and `end` where their list does; `lead`, `between`, `tail` what stands between its brackets and
    cells; `margin` is the indent of a cell.
    """

    text: str
    raw: Json
    cells: tuple[CellText, ...]
    spans: tuple[tuple[int, int], ...]
    start: int
    end: int
    lead: str
    between: str
    tail: str
    margin: str
    minor: int
    style: Style

    @property
    def has_ids(self) -> bool:
        """Whether cells of this file may have ids."""
        return self.minor >= 5


def read(data: bytes, name: str) -> NotebookText:
    """Take a notebook file apart; raise `NotebookError` with one sentence, and its line, for what is no nbformat 4."""
    text = _decoded(data, name)
    raw = _parsed(text, name)
    members, _ = members_of(text, skip(text, 0))
    cells = next(member for member in reversed(members) if member.key == "cells")
    spans = items_of(text, cells.start)
    style = _style(text, members, raw)
    parts = tuple(CellText(text[a:b], value) for (a, b), value in zip(spans, raw["cells"], strict=True))
    margin = margin_of(text, cells.at) + (style.indent or "")
    if spans:
        lead, tail = text[cells.start + 1 : spans[0][0]], text[spans[-1][1] : cells.end - 1]
        between = text[spans[0][1] : spans[1][0]] if len(spans) > 1 else f",{lead}"
        margin = lead.rpartition("\n")[2] if "\n" in lead else margin
    elif style.indent is not None:
        lead, tail = style.newline + margin, style.newline + margin_of(text, cells.at)
        between = f",{lead}"
    else:
        lead, between, tail = "", style.comma, ""
    return NotebookText(
        text,
        raw,
        parts,
        tuple(spans),
        cells.start,
        cells.end,
        lead,
        between,
        tail,
        margin,
        int(raw["nbformat_minor"]),
        style,
    )


def written(notebook: NotebookText, cells: Sequence[tuple[CellText | None, Json]]) -> str:
    """Return the text of the file with these cells, each given as what it was (None: it is new) and what it is now.

    Of a cell that was there only its source, outputs, execution count and single entries of its metadata are looked at.
    """
    parts = [_new(notebook, now) if was is None else _changed(notebook, was, now) for was, now in cells]
    if len(parts) == len(notebook.cells) and all(
        was is old for (was, _), old in zip(cells, notebook.cells, strict=True)
    ):
        return _spliced(notebook, parts)
    inner = notebook.lead + notebook.between.join(parts) + notebook.tail if parts else ""
    return f"{notebook.text[: notebook.start]}[{inner}]{notebook.text[notebook.end :]}"


def joined(value: Any) -> str:
    """Return a text that may be stored as a list of lines."""
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _decoded(data: bytes, name: str) -> str:
    if not data.strip():
        raise NotebookError(f"{name} is empty: it is no notebook")
    if data.startswith(b"\xef\xbb\xbf"):
        raise NotebookError(f"{name} begins with a byte order mark, which Jupyter can't read: save it as plain UTF-8")
    for bom, encoding in _BOMS.items():
        if data.startswith(bom):
            raise NotebookError(f"{name} is {encoding} text, and a notebook must be UTF-8: save it as UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotebookError(
            f"{name} is not UTF-8 text (line {line}, byte {error.start}): it is left as it is"
        ) from None
    if found := _MERGE.search(data):
        line = data.count(b"\n", 0, found.start()) + 1
        raise NotebookError(
            f"{name} has the marks of an unfinished git merge (line {line}): resolve the conflict first"
        )
    return text


def _parsed(text: str, name: str) -> Json:
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise NotebookError(f"{name} is not JSON: {error.msg.lower()} (line {error.lineno})") from None
    except RecursionError:
        raise NotebookError(f"{name} is nested too deeply to be read") from None
    if not isinstance(raw, dict) or "nbformat" not in raw:
        raise NotebookError(f"{name} is JSON, but no notebook: it has no nbformat")
    major, minor = raw["nbformat"], raw.get("nbformat_minor", 0)
    if major in {1, 2, 3}:
        raise NotebookError(
            f"{name} is in the old notebook format {major}: open and save it in Jupyter once, which upgrades it to 4"
        )
    if major != 4 or type(major) is not int:
        raise NotebookError(f"{name} says nbformat {str(major)[:20]}, and only nbformat 4 is known")
    if type(minor) is not int or minor < 0 or "nbformat_minor" not in raw:
        raise NotebookError(f"{name} has no usable nbformat_minor: it is no valid notebook")
    cells = raw.get("cells")
    if not isinstance(cells, list):
        raise NotebookError(f"{name} has no list of cells: it is no valid notebook")
    for place, cell in enumerate(cells, 1):
        if problem := _problem(cell):
            raise NotebookError(f"{name}: cell {place} {problem}: it is no valid notebook")
    return raw


def _problem(cell: Any) -> str:
    if not isinstance(cell, dict):
        return "is no object"
    if not isinstance(cell.get("cell_type"), str):
        return "has no cell_type"
    source = cell.get("source")
    if not isinstance(source, str) and not (isinstance(source, list) and all(isinstance(s, str) for s in source)):
        return "has no source"
    if not isinstance(cell.get("metadata", {}), dict):
        return "has metadata that is no object"
    outputs = cell.get("outputs", [])
    if not isinstance(outputs, list) or not all(isinstance(o, dict) and "output_type" in o for o in outputs):
        return "has outputs that are none"
    return ""


def _style(text: str, members: Sequence[Member], raw: Json) -> Style:
    newline = "\r\n" if "\r\n" in text else "\n"
    first = members[0]
    indent = margin_of(text, first.at) if "\n" in text[: first.at] else None
    colon = next((text[_after_key(text, m) : m.start] for m in members), ": ")
    gap = text[members[0].end : members[1].at] if len(members) > 1 else ", "
    keys = next((list(cell) for cell in raw["cells"]), [m.key for m in members])
    plain = not text.isascii() or "\\u" not in text or not _ESCAPED.search(text)
    sources = [cell["source"] for cell in raw["cells"]]
    lines = any(isinstance(s, list) for s in sources) or not sources
    return Style(
        indent, gap if indent is None else ",", colon.strip("\r\n"), newline, not plain, keys == sorted(keys), lines
    )


def _after_key(text: str, member: Member) -> int:
    return scanstring(text, member.at + 1, True)[1]


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _spliced(notebook: NotebookText, parts: Sequence[str]) -> str:
    """Return the text with each cell's text replaced, and the spaces between them as they are."""
    whole: list[str] = []
    done = 0
    for (start, end), part in zip(notebook.spans, parts, strict=True):
        whole += (notebook.text[done:start], part)
        done = end
    return "".join([*whole, notebook.text[done:]])


def _new(notebook: NotebookText, now: Json) -> str:
    keys = next((list(cell.raw) for cell in notebook.cells if cell.raw["cell_type"] == now["cell_type"]), [])
    whole = {key: value for key, value in now.items() if key != "id" or notebook.has_ids}
    whole["source"] = _source(now["source"], as_lines=notebook.style.lines)
    if "outputs" in whole:
        whole["outputs"] = _outputs(whole["outputs"], as_lines=notebook.style.lines)
    order = [key for key in keys if key in whole] + [key for key in whole if key not in keys]
    return notebook.style.dump({key: whole[key] for key in order}, notebook.margin)


def _changed(notebook: NotebookText, was: CellText, now: Json) -> str:
    text, style, margin = was.text, notebook.style, notebook.margin + (notebook.style.indent or "")
    old_source = was.raw["source"]
    if now["source"] != normal(old_source):
        source = now["source"]
        if "\r\n" in joined(old_source) and "\n" not in joined(old_source).replace("\r\n", ""):
            source = source.replace("\n", "\r\n")
        text = put(text, "source", _source(source, as_lines=isinstance(old_source, list)), style, margin)
    if not _same(now.get("outputs"), was.raw.get("outputs")):
        text = put(text, "outputs", _outputs(now["outputs"], as_lines=style.lines), style, margin)
    if now.get("execution_count") != was.raw.get("execution_count"):
        text = put(text, "execution_count", now["execution_count"], style, margin)
    old, new = was.raw.get("metadata", {}), now.get("metadata", {})
    if new != old:
        text = _put_metadata(text, old, new, style, margin)
    return text


def normal(source: str | list[str]) -> str:
    """Return a source as the port gives it: one text, with newlines only."""
    return joined(source).replace("\r\n", "\n")


def _put_metadata(text: str, old: Json, new: Json, style: Style, margin: str) -> str:
    found = next((m for m in reversed(members_of(text, 0)[0]) if m.key == "metadata"), None)
    if found is None or not old:
        return put(text, "metadata", new, style, margin)
    inner = text[found.start : found.end]
    for key in old:
        if key not in new:
            inner = without(inner, key)
    for key, value in new.items():
        if key not in old or old[key] != value:
            inner = put(inner, key, value, style, margin + (style.indent or ""))
    return text[: found.start] + inner + text[found.end :]


def _source(source: str, *, as_lines: bool) -> str | list[str]:
    return source.splitlines(keepends=True) if as_lines else source


def _outputs(outputs: Sequence[Json], *, as_lines: bool) -> list[Json]:
    """Return outputs as a file stores them: texts as lists of lines where the file does that."""
    return [_output(output) for output in outputs] if as_lines else list(outputs)


def _output(output: Json) -> Json:
    if output.get("output_type") == "stream":
        return {**output, "text": joined(output.get("text")).splitlines(keepends=True)}
    if isinstance(data := output.get("data"), dict):
        split = {
            mime: value if _is_json(mime) or not _is_text(value) else joined(value).splitlines(keepends=True)
            for mime, value in data.items()
        }
        return {**output, "data": split}
    return dict(output)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(line, str) for line in value))


def _same(outputs: Sequence[Json] | None, others: Sequence[Json] | None) -> bool:
    """Whether outputs are the same, however their texts are stored and their keys ordered."""
    if outputs is None or others is None:
        return outputs is others
    return len(outputs) == len(others) and all(
        _output(one) == _output(other) for one, other in zip(outputs, others, strict=True)
    )


def _is_json(mime: str) -> bool:
    return mime == "application/json" or (mime.startswith("application/") and mime.endswith("+json"))
