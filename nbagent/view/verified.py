"""What came of a run in a clean kernel, as a card: HTML for the live view and the record, Markdown and plain text.

One HTML for both, with inline styles only, so that it reads well where no stylesheet survives. All text of others is
escaped. Must not know how the verdict was made. Read `card_html`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nbagent.core.shown import visible_plain
from nbagent.tools.verdict import BROKEN, VERIFIED, Judged, Verdict, verdict_of, word_of
from nbagent.view.flowpicture import MARKS, Box, picture_svg, picture_text
from nbagent.view.text import code_marked, count, duration, escape, one_line

if TYPE_CHECKING:
    from nbagent.core.events import Verified

LISTED = 40
"""Cells of which something is said."""
_COLORS = {VERIFIED: "#009e73", BROKEN: "#d55e00"}
_ID = re.compile(r"[\w-]{1,80}", re.ASCII)


def card_html(event: Verified) -> str:
    """Return the card; "" for what is no verdict."""
    verdict = verdict_of(event.verdict)
    if verdict is None:
        return ""
    color = _COLORS.get(verdict.kind, "#b8860b")
    told = [cell for cell in verdict.cells if cell.said or cell.state not in {"same", "skipped"}]
    rows = "".join(f"<li>{_row(cell)}</li>" for cell in told[:LISTED])
    more = f"<li>… {count(len(told) - LISTED, 'more cell')}</li>" if len(told) > LISTED else ""
    notes = "".join(f"<p>{_sentence(note)}</p>" for note in verdict.notes)
    return (
        f'<div style="border-left:4px solid {color};padding:.2em .8em;margin:.4em 0">'
        f"<p><b>{_sentence(verdict.headline)}</b></p>"
        + (f'<ul style="margin:.3em 0;padding-left:1.4em">{rows}{more}</ul>' if rows else "")
        + notes + _every(verdict) + _picture(verdict)
        + f"<p><small>{_plain(_facts(verdict), 200)}</small></p></div>"
    )  # fmt: skip


def _row(cell: Judged) -> str:
    return f"{_link(cell)} {escape(word_of(cell.state))}{': ' if cell.said else ''}{_sentence(' '.join(cell.said))} <code>{_plain(cell.line, 60)}</code>"


def _link(cell: Judged) -> str:
    """The cell's number; in a living notebook a click goes there."""
    mark, label = MARKS.get(cell.state, "?"), _plain(cell.label, 40)
    inner = f'<a href="#nbagent-cell-{cell.id}">{label}</a>' if _ID.fullmatch(cell.id) else label
    return f'<span aria-hidden="true">{mark}</span> <b>{inner}</b>'


def _every(verdict: Verdict) -> str:
    if not verdict.cells:
        return ""
    rows = "".join(
        f"<tr><td style='text-align:left'>{_link(cell)}</td><td style='text-align:left'>{escape(word_of(cell.state))}</td>"
        f"<td style='text-align:right'>{duration(cell.seconds) if cell.seconds else ''}</td>"
        f"<td style='text-align:left'><code>{_plain(cell.line, 50)}</code></td></tr>"
        for cell in verdict.cells[:200]
    )
    return f"<details data-fold='cells'><summary>All {count(len(verdict.cells), 'cell')}</summary><div style='overflow-x:auto'><table>{rows}</table></div></details>"


def _picture(verdict: Verdict) -> str:
    svg = picture_svg(_boxes(verdict), verdict.edges)
    if not svg:
        return ""
    said = "<p><small>An arrow goes from the cell that makes a name or a file to the one that uses it.</small></p>"
    return f"<details data-fold='picture'><summary>What depends on what</summary><div style='overflow-x:auto'>{svg}</div>{said}</details>"


def _boxes(verdict: Verdict) -> list[Box]:
    """The cells that were run, and of those that were left out the ones that something depends on."""
    tied = {end for edge in verdict.edges for end in edge[:2]}
    kept = [cell for cell in verdict.cells if cell.state != "skipped" or cell.id in tied]
    return [Box(cell.id, cell.label, cell.line, cell.state) for cell in kept]


def _facts(verdict: Verdict) -> str:
    return " · ".join(
        [count(verdict.runs, "clean run"), duration(verdict.seconds), f"hash of the code {verdict.sources}"]
    )


def _plain(text: str, limit: int) -> str:
    return escape(visible_plain(one_line(text, limit), spaces=False))


def _sentence(text: str) -> str:
    return code_marked(_plain(text, 600))


def lines(event: Verified, *, words: Callable[[str], str] = str) -> list[str]:
    """Return the card as plain lines; `words` makes text of others harmless for where it goes."""
    verdict = verdict_of(event.verdict)
    if verdict is None:
        return []
    told: Sequence[Judged] = [cell for cell in verdict.cells if cell.said or cell.state not in {"same", "skipped"}]
    rows = [
        words(
            one_line(
                f"{MARKS.get(c.state, '?')} {c.label} {word_of(c.state)}{': ' if c.said else ''}{' '.join(c.said)}", 400
            )
        )
        for c in told[:LISTED]
    ]
    return [words(verdict.headline), *rows, *map(words, verdict.notes), words(_facts(verdict))]


def plain(event: Verified) -> str:
    """Return the card as plain text, with the dependencies."""
    verdict = verdict_of(event.verdict)
    if verdict is None:
        return ""
    picture = picture_text(_boxes(verdict), verdict.edges)
    said = [visible_plain(line, spaces=False) for line in lines(event)]
    return "\n".join([*said, *(["What depends on what:", *picture] if verdict.edges else [])])


def markdown(event: Verified, words: Callable[[str], str]) -> str:
    """Return the card as Markdown; `words` escapes plain words."""
    head, *rest = lines(event, words=words) or [""]
    return "\n".join([f"**{head}**", "", *(f"- {line}" for line in rest)]) if head else ""
