"""A small table for lessons: shows itself as HTML in a notebook and as text elsewhere. All that stands in it is data."""

from __future__ import annotations

import html
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """`head` and `rows` of plain texts; `note` is a line below it."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def __repr__(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.head))]
        said = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([said[0], "─" * len(said[0]), *said[1:], *filter(None, [self.note])])

    def _repr_html_(self) -> str:
        head = _row("th", self.head)
        rows = "".join(_row("td", row) for row in self.rows)
        note = f"<p><small>{html.escape(self.note)}</small></p>" if self.note else ""
        table = f'<table style="font-size:12px"><thead>{head}</thead><tbody>{rows}</tbody></table>'
        return f'<div style="overflow-x:auto">{table}</div>{note}'


_CELL = "text-align:left;vertical-align:top;padding:3px 8px 3px 0"
_FIRST = f"{_CELL};position:sticky;left:0;background:var(--jp-layout-color0,Canvas)"
"""The first column stays in sight on a page that is too narrow for all."""


def _row(tag: str, texts: tuple[str, ...]) -> str:
    cells = (
        f'<{tag} style="{_CELL if place else _FIRST}">{html.escape(text)}</{tag}>' for place, text in enumerate(texts)
    )
    return f"<tr>{''.join(cells)}</tr>"
