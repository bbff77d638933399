"""What each turn took, as a table, and where the loop stands now, in a sentence. Read `turns_html`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.core.shown import visible_plain
from nbagent.view.loopview.diagram import path_words
from nbagent.view.text import count, escape, money, one_line, without_ansi

if TYPE_CHECKING:
    from nbagent.view.loopview.seen import LoopSeen, Turn

ROWS = 60
"""Turns in the table, the last ones."""

HEADS = ("Turn", "Fresh in", "From cache", "Into cache", "Out", "US dollars", "Calls", "Ended with")


def now_words(seen: LoopSeen) -> str:
    """Return where the loop stands, in a sentence of plain text."""
    if seen.event is None:
        return "Nothing has happened yet."
    turns = f"turn {seen.turn}" + (f" of {seen.max_turns}" if seen.max_turns else "")
    if seen.ended is not None:
        return f"Over after {count(seen.ended.turns, 'turn')}: {seen.ended.reason}. {seen.ended.sentence}".strip()
    writing = f" The reply has {count(seen.writing, 'character')} so far." if seen.writing else ""
    return f"{seen.state}, {turns}. The last event: {seen.event.type}.{writing}"


def now_html(seen: LoopSeen) -> str:
    """Return where the loop stands, as HTML."""
    return f"<div>{_plain(now_words(seen), 400)}</div>"


def cells_of(turn: Turn) -> tuple[str, ...]:
    """Return a row of the table as plain text, in the order of `HEADS`."""
    usage = turn.usage
    cost = "unknown" if turn.cost is None else _dollars(turn.cost)
    notes = [turn.stop_reason or ("no reply yet" if turn.requests else "")]
    notes += [f"{turn.discarded} broken"] * bool(turn.discarded) + ["summed up"] * turn.summed
    return (str(turn.number) if turn.number else "before", f"{usage.input:,}", f"{usage.cache_read:,}", f"{usage.cache_write:,}",
            f"{usage.output:,}", cost, calls_words(turn), ", ".join(filter(None, notes)))  # fmt: skip


def calls_words(turn: Turn, limit: int = 120) -> str:
    """Return the calls of a turn in a few words, those that did not end well with how they ended."""
    said = [name if status in {"", "ok"} else f"{name} ({status})" for _, name, status in turn.calls]
    return one_line(visible_plain(without_ansi(", ".join(said)), spaces=False), limit)


def sums_of(seen: LoopSeen) -> tuple[str, ...]:
    """Return the last row of the table: all turns together."""
    usage, cost = seen.usage, seen.cost
    calls = sum(len(turn.calls) for turn in seen.turns)
    return ("all", f"{usage.input:,}", f"{usage.cache_read:,}", f"{usage.cache_write:,}", f"{usage.output:,}",
            "unknown" if cost is None else _dollars(cost), count(calls, "call"), "")  # fmt: skip


def turns_html(seen: LoopSeen, chosen: int | None = None, *, inline: bool = False) -> str:
    """Return the table of turns; `chosen` is marked. `inline`: for where no stylesheet is."""
    rows = [turn for turn in seen.turns if turn.requests or turn.replies or turn.calls]
    if not rows:
        return "" if inline else "<h4>Tokens and cost, turn by turn</h4><p>No request was sent yet.</p>"
    left = len(rows) - len(rows[-ROWS:])
    style = ' style="text-align:left"' if inline else ' class="nbl-w"'
    body = [
        _row(cells_of(turn), style, "nbl-now" if turn.number == chosen and not inline else "") for turn in rows[-ROWS:]
    ]
    head = "".join(f"<th{style if name in HEADS[-2:] else ''}>{name}</th>" for name in HEADS)
    early = f"<p>{count(left, 'earlier turn')} left out; the sums count them.</p>" if left else ""
    title = "" if inline else "<h4>Tokens and cost, turn by turn</h4>"
    wide = ' style="overflow-x:auto"' if inline else ' class="nbl-wide"'
    return (
        f"{title}{early}<div{wide}><table><tr>{head}</tr>{''.join(body)}{_row(sums_of(seen), style, '')}</table></div>"
    )


def path_html(seen: LoopSeen) -> str:
    """Return the path walked, in words."""
    return f"<div>Path: {escape(path_words(seen.path, 30))}</div>"


def _dollars(cost: float) -> str:
    return money(cost).removesuffix(" USD")


def _row(cells: tuple[str, ...], style: str, look: str) -> str:
    last = len(cells) - 2
    attr = f' class="{look}"' if look else ""
    narrow = ' style="white-space:nowrap"' if style.startswith(" style") else ""
    inner = "".join(f"<td{style if place >= last else narrow}>{escape(cell)}</td>" for place, cell in enumerate(cells))
    return f"<tr{attr}>{inner}</tr>"


def _plain(text: str, limit: int) -> str:
    return escape(visible_plain(one_line(without_ansi(text), limit), spaces=False))
