"""The loop view as plain text, for a terminal and for Markdown. Read `text`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.core.shown import visible_plain
from nbagent.view.loopview.blocks import line_of
from nbagent.view.loopview.diagram import path_words
from nbagent.view.loopview.exchange import NOT_KEPT, rebuilt
from nbagent.view.loopview.source import Sources, places
from nbagent.view.loopview.table import HEADS, cells_of, now_words, sums_of
from nbagent.view.text import without_ansi

if TYPE_CHECKING:
    from nbagent.view.loopview.seen import LoopSeen

_WIDE = 140
_MESSAGES = 60


def text(seen: LoopSeen, sources: Sources | None = None, *, turn: int | None = None) -> str:
    """Return the loop view as text: where it stands, the path, the table of turns, the messages on a line each, and a turn's request."""
    chosen = turn if turn is not None else (seen.requests[-1].turn if seen.requests else seen.turn)
    parts = [now_words(seen), f"Path: {path_words(seen.path, 30)}", table(seen)]
    parts += [
        f"{place.file} {place.function}() line {min(place.lit)}:\n{place.text}" for place in places(seen.event, sources)
    ]
    if (asked := seen.request_of(chosen)) is not None:
        found = rebuilt(seen, asked)
        parts.append(
            f"Turn {chosen}: a request with {len(found.body['messages'])} messages, {asked.new} new. {found.verdict} {NOT_KEPT}"
        )
    names = {call_id: name for row in seen.turns for call_id, name, _ in row.calls}
    shown = list(enumerate(seen.messages, 1))[-_MESSAGES:]
    left = len(seen.messages) - len(shown)
    lines = [f"… {left:,} earlier messages"] * bool(left)
    lines += [
        f"{'+' if seen.is_new(said) else ' '} {number:>3} {said.role:<9} turn {said.turn:<3} {line_of(said.message, names, _WIDE)}"
        for number, said in shown
    ]
    parts.append("\n".join(["Messages (+ is new since the last turn):", *lines]))
    return visible_plain(without_ansi("\n\n".join(parts)), spaces=False)


def record_text(seen: LoopSeen) -> str:
    """Return what a record says of the loop: where it ended, the path, and the table of turns."""
    said = f"The loop. {now_words(seen)}\nPath: {path_words(seen.path, 30)}\n{table(seen)}"
    return visible_plain(without_ansi(said), spaces=False).replace("```", "` ` `")


def table(seen: LoopSeen) -> str:
    """Return the table of turns as text."""
    rows = [
        HEADS,
        *(cells_of(turn) for turn in seen.turns if turn.requests or turn.replies or turn.calls),
        sums_of(seen),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
    lines = []
    for row in rows:
        right = [cell.rjust(width) for cell, width in zip(row[:-2], widths, strict=False)]
        left = [cell.ljust(width) for cell, width in zip(row[-2:], widths[-2:], strict=True)]
        lines.append("  ".join([*right, *left]).rstrip())
    return "\n".join(lines)
