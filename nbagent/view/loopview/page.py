"""The loop view as HTML, in parts: diagram, source lines, turns, request and reply, transcript. One string, or part by part where it is live.

All text of models and tools is data: escaped, nothing is loaded from outside. Bounded: a page stays below `TOTAL` characters. Must
not know of widgets. Read `html`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.view.loopview.blocks import ALL, CUT, FEW, line_of, message_html
from nbagent.view.loopview.diagram import diagram_svg
from nbagent.view.loopview.exchange import exchange_html
from nbagent.view.loopview.source import Sources, places
from nbagent.view.loopview.table import now_html, turns_html
from nbagent.view.text import escape, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nbagent.view.loopview.seen import LoopSeen, Said
    from nbagent.view.loopview.source import Place

TOTAL = 900_000
"""Characters of a whole page."""

STYLE = (
    ".nbl{font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px;line-height:1.4;color:inherit}"
    ".nbl h4{margin:14px 0 4px;font-size:14px}.nbl table{border-collapse:collapse;font-size:13px;margin:2px 0}"
    ".nbl td,.nbl th{padding:2px 7px;text-align:right;border-bottom:1px solid rgba(128,128,128,.35);background:none}"
    ".nbl td{white-space:nowrap}.nbl td.nbl-w{white-space:normal}.nbl td.nbl-w,.nbl th.nbl-w{text-align:left}.nbl-now{background:rgba(255,193,7,.22)!important;font-weight:600}"
    ".nbl-wide{overflow-x:auto}.nbl-small{font-size:11.5px;opacity:.8;margin-top:4px}"
    ".nbl-pre,.nbl-src{margin:2px 0!important;padding:4px 7px!important;white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px!important;"
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);background:rgba(128,128,128,.11)!important;border-radius:3px;color:inherit}"
    ".nbl-src{white-space:pre!important;overflow-x:auto}.nbl-src .nbl-lit{background:rgba(255,193,7,.34);font-weight:600}.nbl-src i{opacity:.7;font-style:normal}"
    ".nbl-two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,220px),1fr));gap:4px 12px}.nbl-two>div{min-width:0}"
    ".nbl-said{border-left:4px solid rgba(128,128,128,.45);padding:2px 0 4px 9px;margin:7px 0}"
    ".nbl-new{border-left-color:#2e9d4f;background:rgba(46,157,79,.09)}.nbl-tag{color:#fff;background:#1f7a3b;border-radius:8px;padding:0 7px;font-size:11px}"
    ".nbl-fresh>pre{box-shadow:inset 4px 0 #2e9d4f}"
    ".nbl summary{cursor:pointer}.nbl-top{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:4px 14px;align-items:start}"
    ".nbl-top>div{min-width:0}details.nbl-said>summary{overflow-wrap:anywhere}"
    ".nbagent-loop{max-height:80vh;overflow:auto;border-top:1px solid rgba(128,128,128,.4);margin-top:6px}"
)
"""Works on a light and on a dark page: it only shades what is there."""


def html(seen: LoopSeen, sources: Sources | None = None, *, turn: int | None = None, total: int = TOTAL) -> str:
    """Return the whole view in about `total` characters; the exact request and reply are those of `turn` (None: the last one)."""
    chosen = turn if turn is not None else (seen.requests[-1].turn if seen.requests else seen.turn)
    top = (
        f"<div>{diagram_svg(seen)}{now_html(seen)}{turns_html(seen, chosen)}</div>"
        f"<div>{source_html(places(seen.event, sources))}</div>"
    )
    exchange = exchange_html(seen, chosen)
    room = total - len(top) - len(exchange) - len(STYLE)
    said = "".join(transcript_html(seen, room))
    return (
        f'<div class="nbl"><style>{STYLE}</style><div class="nbl-top">{top}</div>{exchange}'
        f"<h4>Transcript: what the model is sent, message by message</h4>{said}</div>"
    )


def transcript_html(seen: LoopSeen, room: int = TOTAL) -> list[str]:
    """Return each message as HTML, oldest first, in at most `room` characters: of older ones less is shown."""
    names, shown = call_names(seen), list[str]()
    for place in range(len(seen.messages) - 1, -1, -1):
        one = said_html(seen, place, names, room)
        if not one:
            shown.append(f"<p>… {place + 1:,} earlier messages are not shown here: the page is full.</p>")
            break
        room -= len(one)
        shown.append(one)
    if seen.before is not None and seen.before.messages:
        shown.append(
            f"<p>{len(seen.before.messages):,} messages of earlier runs come before; %agent sent --session shows them.</p>"
        )
    shown.reverse()
    return shown or ["<p>Nothing was said yet.</p>"]


def said_html(seen: LoopSeen, place: int, names: Mapping[str, str], room: int = TOTAL) -> str:
    """Return the message at `place`, as much of it as there is room for; "" where not even a line is. One that is not new is folded."""
    said = seen.messages[place]
    new = seen.is_new(said)
    tag = ' <span class="nbl-tag">new</span>' if new else ""
    head = f"<b>{place + 1}. {escape(said.role)}</b>, turn {said.turn}{tag} {_about(seen, said, place)}"
    if new:
        frame, end = f'<div class="nbl-said nbl-new"><div>{head}</div>', "</div>"
    else:
        said_short = escape(line_of(said.message, names, 90))
        frame, end = f'<details class="nbl-said"><summary>{head} {said_short}</summary>', "</details>"
    for limit in (ALL, CUT, FEW):
        whole = f"{frame}{message_html(said.message, names, limit)}{end}"
        if len(whole) <= (room if new else room // 4):
            return whole
    line = f'<div class="nbl-said"><div>{head} {escape(line_of(said.message, names))}</div></div>'
    return line if len(line) <= room - FEW else ""


def _about(seen: LoopSeen, said: Said, place: int) -> str:
    if place < seen.first:
        return "· summed up since, not sent any more"
    if said.sent:
        return ""
    return "· appended" if seen.ended is not None else "· appended; it goes to the model with the next request"


def call_names(seen: LoopSeen) -> dict[str, str]:
    """Return the names of the calls by their ids."""
    return {call_id: name for turn in seen.turns for call_id, name, _ in turn.calls}


def source_html(found: tuple[Place, ...]) -> str:
    """Return the lines of the loop that are executing now, with those around them."""
    if not found:
        return ""
    said = ("This line made the event:", "It reached you through this line:")
    blocks = [
        f'<div class="nbl-small">{words} <b>{escape(place.file)}</b>, {escape(place.function)}()</div>'
        f'<pre class="nbl-src">{_lines(place)}</pre>'
        for words, place in zip(said, found, strict=False)
    ]
    return f"<h4>Where in the code</h4>{''.join(blocks)}"


def _lines(place: Place) -> str:
    shown: list[str] = []
    deep = min((len(line) - len(line.lstrip()) for line in place.lines if line.strip()), default=0)
    for number, line in enumerate((line[deep:] for line in place.lines), place.first):
        text = f"<i>{number:>4}{' ▶' if number in place.lit else '  '}</i> {visible(line, '', spaces=False)}"
        shown.append(f'<span class="nbl-lit">{text}</span>' if number in place.lit else text)
    return "\n".join(shown)
