"""Draws the result of a query as a table, in the panel and in the record; its words around the table stay words.

The result is a Markdown table (tools/data/sqlrows.py), but what stands in its cells is data and never Markdown. Must not
know of SQL. Read `result_html`.
"""

from __future__ import annotations

import itertools
import re

from nbagent.core.shown import visible_plain
from nbagent.view.code import LIVE, Paint, plain_html
from nbagent.view.text import escape

TOOL = "query"
_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\A\|(?: --- \|)+\Z")
_CELL = "padding:1px 8px;text-align:left;white-space:pre-wrap;vertical-align:top;border-bottom:1px solid rgba(128,128,128,.3)"
_TYPE = re.compile(r"\A(?P<label>.*) (?P<type>[A-Z][A-Z0-9_]*(?:\(.*\)|\[\])*)\Z")


def result_html(name: str, text: str, paint: Paint = LIVE) -> str:
    """Return a text of a result of the tool `name` as HTML: tables as tables where it is a query's."""
    if name != TOOL or "\n| " not in text:
        return plain_html(text, paint)
    parts: list[str] = []
    for is_table, group in itertools.groupby(
        text.split("\n"), lambda line: line.startswith("| ") and line.endswith(" |")
    ):
        lines = list(group)
        if is_table and len(lines) > 1 and _RULE.match(lines[1]):
            parts.append(_table(lines))
        elif said := "\n".join(lines).strip("\n"):
            parts.append(plain_html(said, paint))
    return "".join(parts)


def _table(lines: list[str]) -> str:
    head = "".join(f'<th scope="col" style="{_CELL}">{_label(cell)}</th>' for cell in _cells(lines[0]))
    rows = "".join(f"<tr>{''.join(map(_data, _cells(line)))}</tr>" for line in lines[2:])
    return (
        '<div class="nbagent-table" style="overflow-x:auto"><table style="border-collapse:collapse;font-size:inherit">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _data(cell: str) -> str:
    return f'<td style="{_CELL}">{_said(cell)}</td>'


def _said(text: str) -> str:
    return escape(visible_plain(text, spaces=False))


def _label(cell: str) -> str:
    """A column's label with its type in small letters below."""
    found = _TYPE.match(cell)
    if found is None:
        return _said(cell)
    return f'{_said(found["label"])}<br><span style="font-weight:normal;opacity:.7;font-size:smaller">{_said(found["type"])}</span>'


def _cells(line: str) -> list[str]:
    return [part.strip().replace("\\|", "|") for part in _BAR.split(line)[1:-1]]
