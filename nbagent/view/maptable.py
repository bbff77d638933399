"""The table of a map as safe HTML and as plain text: a line that sums up, the first rows, and all that failed.

Everything in it is data of others: escaped, on one line, cut. Knows nothing of how a map runs. Read `table_html`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.core.shown import visible_plain
from nbagent.view.text import count, duration, escape, money, one_line, tokens, without_ansi

ROWS = 20
"""Rows that are shown before the rest is only counted."""

FAILED = 50
"""Failed rows that are listed."""

_CELL = "border:1px solid #8888;padding:.2em .6em;text-align:left;vertical-align:top"
_WIDTH = 120
_LEFT_OUT = frozenset({"session", "stop_reason", "tokens", "seconds"})
"""Columns that a reader rarely needs: they are in the data frame."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What a table sums up to. `cost`: US dollars, None where no price is known; `seconds`: of all runs together."""

    rows: int = 0
    done: int = 0
    failed: int = 0
    stopped: int = 0
    waiting: int = 0
    turns: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0

    @property
    def sentence(self) -> str:
        """All of it in one line; what there is none of is left out."""
        states = [(self.done, "done"), (self.failed, "failed"), (self.stopped, "stopped"), (self.waiting, "not run")]
        said = ", ".join(f"{number:,} {word}" for number, word in states if number) or "nothing to do"
        facts = [count(self.turns, "turn") if self.turns else "", f"{tokens(self.tokens)} tokens" if self.tokens else "",
                 money(self.cost) if self.cost is not None else ""]  # fmt: skip
        return " · ".join([f"{count(self.rows, 'input')}: {said}", *filter(None, facts)])


def plain(value: Any, limit: int = _WIDTH) -> str:
    """Return any value as a short harmless text on one line."""
    if value is None:
        return ""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return visible_plain(one_line(without_ansi(text), limit), spaces=False)


def _shown(name: str, value: Any) -> str:
    if name == "cost":
        return "" if value is None else money(value)
    if name == "seconds":
        return duration(value or 0.0)
    return plain(value)


def _columns(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns that a reader needs: those with something in them."""
    return [name for name in columns if name not in _LEFT_OUT and any(row.get(name) not in (None, "") for row in rows)]


def table_html(totals: Totals, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], folder: str) -> str:
    """Return the table as HTML that needs nothing. `rows` have what `columns` names; `folder` is where all is kept."""
    first = rows[:ROWS]
    names = _columns(columns, first)
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(plain(name))}</th>' for name in names)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{_CELL};overflow-wrap:anywhere">{escape(_shown(name, row.get(name)))}</td>' for name in names
        )
        + "</tr>"
        for row in first
    )
    more = f"<p>… and {count(len(rows) - ROWS, 'more row')}.</p>" if len(rows) > ROWS else ""
    kept = f"<p>Kept in <code>{escape(plain(folder, 300))}</code></p>" if folder else ""
    table = (
        f'<table style="border-collapse:collapse;max-width:100%"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        if first
        else ""
    )
    return f"<div><p><b>{escape(totals.sentence)}</b></p>{table}{more}{failed_html(rows)}{kept}</div>"


def failed_html(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the list of what failed, "" where nothing did."""
    lines = failures(rows)
    if not lines:
        return ""
    listed = "".join(f'<li style="overflow-wrap:anywhere">{escape(line)}</li>' for line in lines)
    return f"<details open><summary>{count(_failed(rows), 'input')} failed</summary><ul>{listed}</ul></details>"


def failures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each row that failed: its input and why; the last line counts those that are not listed."""
    bad = [row for row in rows if row.get("status") == "failed"]
    lines = [f"{plain(label(row), 80)}: {plain(row.get('problem') or row.get('stop_reason'), 300)}" for row in bad]
    return [*lines[:FAILED], *([f"… and {len(lines) - FAILED} more"] if len(lines) > FAILED else [])]


def _failed(rows: Sequence[Mapping[str, Any]]) -> int:
    return sum(row.get("status") == "failed" for row in rows)


def label(row: Mapping[str, Any]) -> str:
    """Return what a row's input is called: it, or its first columns where it was a row itself."""
    if "input" in row:
        return str(row["input"])
    own = list(row)[:3]
    return ", ".join(f"{name}={row[name]}" for name in own)


def table_text(totals: Totals, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], folder: str) -> str:
    """Return the table as plain text."""
    first = rows[:ROWS]
    names = _columns(columns, first)
    lines = [names, *([one_line(_shown(name, row.get(name)), 40) for name in names] for row in first)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    table = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    said = [totals.sentence, *(table if first else [])]
    said += [f"… and {count(len(rows) - ROWS, 'more row')}"] if len(rows) > ROWS else []
    said += [f"failed: {line}" for line in failures(rows)]
    return "\n".join([*said, *([f"Kept in {folder}"] if folder else [])])
