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
        cell = "text-align:left;vertical-align:top;padding:3px 12px 3px 0"
        head = "".join(f'<th style="{cell}">{html.escape(text)}</th>' for text in self.head)
        rows = "".join(
            "<tr>" + "".join(f'<td style="{cell}">{html.escape(text)}</td>' for text in row) + "</tr>"
            for row in self.rows
        )
        note = f"<p><small>{html.escape(self.note)}</small></p>" if self.note else ""
        return f'<div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{note}'
