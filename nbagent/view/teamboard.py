"""The panel of a team as safe HTML: a board of tasks by state, a lane a teammate on a timeline, and messages.

Once for the live view, by classes (`team_html`), and once for a record, where no stylesheet survives (`record_html`): there
what is left without styles still reads in order. No script, and no colour says anything that words do not. All text comes
from `teamshown`, made harmless, and is escaped here. Read `team_html`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.view.teamshown import STATES, ShownLane, ShownSpan, ShownTask, ShownTeam, shown
from nbagent.view.text import count, duration, escape

if TYPE_CHECKING:
    from nbagent.core.events import TeamChanged

_NARROW = 3.0
"""Percent of the timeline below which a span has no room for a word; its lane says it all the same to who does not see."""


def team_html(event: TeamChanged) -> str:
    """Return the panel for the live view."""
    team = shown(event)
    goal = f'<div class="nbagent-goal">{escape(team.goal)}</div>' if team.goal else ""
    note = f'<div class="nbagent-teamnote">{escape(team.note)}</div>' if team.note else ""
    columns = "".join(_column(team, state) for state in STATES)
    left = f'<div class="nbagent-teamnote">{count(team.left, "more task")}</div>' if team.left else ""
    return (
        f'<div class="nbagent-teamhead"><b>{escape(team.heading)}</b></div>{goal}{note}'
        f'<div class="nbagent-board">{columns}</div>{left}{_timeline(team)}{_letters(team)}'
    )


def _column(team: ShownTeam, state: str) -> str:
    mark, name = STATES[state]
    tasks = team.column(state)
    cards = "".join(_card(task) for task in tasks) or '<li class="nbagent-notask">none</li>'
    return (
        f'<section class="nbagent-column" data-state="{state}" aria-label="{name}: {count(len(tasks), "task")}">'
        f'<div class="nbagent-columnhead"><span aria-hidden="true">{mark}</span> <b>{name}</b> <span>{len(tasks)}</span></div>'
        f'<ol role="list" class="nbagent-tasks" data-scroll="{state}" tabindex="0" aria-label="{name}">{cards}</ol></section>'
    )


def _card(task: ShownTask) -> str:
    owner = f'<span class="nbagent-owner">{escape(task.owner)}</span>' if task.owner else ""
    line = f'<span class="nbagent-taskid">{escape(task.id)}</span><span class="nbagent-tasktitle">{escape(task.title)}</span>'
    parts = [f'<div class="nbagent-taskline">{line}{owner}</div>']
    if task.mark:
        bad = " nbagent-conflict" if task.conflicts else ""
        parts.append(f'<div class="nbagent-taskmark{bad}"><span aria-hidden="true">⚠</span> {escape(task.mark)}</div>')
    if task.needs and task.state == "pending":
        parts.append(f'<div class="nbagent-taskmore">{escape(needs_words(task))}</div>')
    parts += [f'<div class="nbagent-taskmore">{escape(note)}</div>' for note in task.notes]
    if task.result:
        parts.append(f'<div class="nbagent-taskresult" title="{escape(task.result)}">{escape(task.result)}</div>')
    blocked = ' data-blocked="1"' if task.blocked else ""
    return f'<li class="nbagent-task"{blocked}>{"".join(parts)}</li>'


def needs_words(task: ShownTask) -> str:
    """Return what a task needs: "needs 1 ✓, 3"."""
    return "needs " + ", ".join(f"{one} ✓" if done else one for one, done in task.needs)


# ── the timeline ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _timeline(team: ShownTeam) -> str:
    if not team.lanes:
        return ""
    lanes = "".join(_live_lane(lane, team.seconds) for lane in team.lanes)
    scale = "".join(f"<span>{tick}</span>" for tick in ticks(team.seconds))
    return (
        f'<details class="nbagent-lanes" data-fold="team-lanes" open><summary>Who does what · {duration(team.seconds)}'
        f'</summary><div class="nbagent-lanegrid">{lanes}<div></div><div class="nbagent-scale" aria-hidden="true">{scale}</div>'
        f"<div></div></div></details>"
    )


def _live_lane(lane: ShownLane, seconds: float) -> str:
    spans = "".join(_live_span(span, seconds) for span in lane.spans if span.state)
    said = f"{lane.name}: {'; '.join(span.words for span in lane.spans[-8:]) or 'nothing yet'}"
    return (
        f'<div class="nbagent-lanename">{escape(lane.name)}</div>'
        f'<div class="nbagent-lane" role="img" aria-label="{escape(said)}">{spans}</div>'
        f'<div class="nbagent-lanenow">{escape(lane.now)}</div>'
    )


def _live_span(span: ShownSpan, seconds: float) -> str:
    left, width = part(span.begin, seconds), part(span.end - span.begin, seconds)
    label = escape(span.label) if width >= _NARROW else ""
    return (
        f'<span class="nbagent-span" data-state="{escape(span.state)}" style="left:{left:.2f}%;width:{width:.2f}%" '
        f'title="{escape(span.words)}">{label}</span>'
    )


def part(some: float, whole: float) -> float:
    """Return how many percent of the whole some is, from 0 to 100."""
    return min(100.0, max(0.0, 100 * some / whole)) if whole > 0 else 0.0


def ticks(seconds: float, number: int = 4) -> list[str]:
    """Return the times below a timeline, from its beginning to its end."""
    return ["0 s", *(duration(seconds * n / number) for n in range(1, number + 1))] if seconds > 0 else ["0 s"]


def _letters(team: ShownTeam) -> str:
    if not team.letters:
        return ""
    rows = "".join(
        f'<li><span class="nbagent-between">{escape(sender)} → {escape(to)}</span> {escape(text)}</li>'
        for sender, to, text in team.letters
    )
    earlier = f'<div class="nbagent-taskmore">{count(team.earlier, "earlier message")}</div>' if team.earlier else ""
    number = len(team.letters) + team.earlier
    return (
        f'<details class="nbagent-letters" data-fold="team-letters" open><summary>{count(number, "message")}</summary>{earlier}'
        f'<div class="nbagent-letterbox nbagent-fromend" data-scroll="letters" tabindex="0" role="group" aria-label="Messages">'
        f'<ol role="list">{rows}</ol></div></details>'
    )


# ── the record ───────────────────────────────────────────────────────────────────────────────────────────────────────

_BOX = "border:1px solid #8888;border-radius:4px;padding:.3em .6em"
_TASK = "border-left:3px solid {};padding:.1em .5em;margin:.35em 0;overflow-wrap:anywhere"
_EDGES = {"pending": "#8888", "in_progress": "#2f6fd0", "completed": "#2e9e4f"}
FILLS = {"working": "rgba(47,111,208,.22)", "planning": "rgba(138,92,208,.22)", "waiting": "rgba(232,145,45,.22)",
          "idle": "rgba(128,128,128,.14)"}  # fmt: skip
RECORD_LETTERS = 30


def record_html(event: TeamChanged) -> str:
    """Return the panel for a record: columns side by side where there is room, lanes as bars, messages folded."""
    team = shown(event)
    goal = f"<div>{escape(team.goal)}</div>" if team.goal else ""
    columns = "".join(_record_column(team, state) for state in STATES)
    left = f"<p><small>{count(team.left, 'more task')}</small></p>" if team.left else ""
    board = f'<div style="display:flex;flex-wrap:wrap;gap:.6em;margin:.4em 0">{columns}</div>{left}'
    lanes = "".join(_record_lane(lane, team.seconds) for lane in team.lanes)
    when = f"<div><small>Who did what, in {duration(team.seconds)}</small></div>{lanes}" if team.lanes else ""
    return (
        f"<details open><summary>{escape(team.heading)}</summary>{goal}{board}{when}{_record_letters(team)}</details>"
    )


def _record_column(team: ShownTeam, state: str) -> str:
    mark, name = STATES[state]
    tasks = team.column(state)
    cards = "".join(_record_card(task) for task in tasks) or "<div><small>none</small></div>"
    return f'<div style="flex:1 1 14em;min-width:0;{_BOX}"><b>{mark} {name}: {len(tasks)}</b>{cards}</div>'


def _record_card(task: ShownTask) -> str:
    edge = "#d1242f" if task.conflicts else _EDGES[task.state]
    owner = f" · {escape(task.owner)}" if task.owner else ""
    more = [f"⚠ {task.mark}"] * bool(task.mark) + [needs_words(task)] * bool(task.needs and task.state == "pending")
    lines = "".join(f"<br><small>{escape(line)}</small>" for line in [*more, *task.notes, *filter(None, [task.result])])
    return f'<div style="{_TASK.format(edge)}"><b>{escape(task.id)}</b> {escape(task.title)}{owner}{lines}</div>'


def _record_lane(lane: ShownLane, seconds: float) -> str:
    bars = "".join(_bar(span, seconds) for span in lane.spans)
    name = f'<b style="flex:0 0 7em;overflow-wrap:anywhere">{escape(lane.name)} </b>'
    return f'<div style="display:flex;margin:.2em 0">{name}{bars}</div>'


def _bar(span: ShownSpan, seconds: float) -> str:
    share = max(part(span.end - span.begin, seconds), 0.5)
    edge = "#8888" if span.state else "transparent"
    style = (
        f"flex:{share:.2f} 1 0;min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;padding:0 .2em;"
        f"border-left:1px solid {edge};background:{FILLS.get(span.state, 'none')}"
    )
    label = escape(span.label) if span.state else ""
    return f'<span title="{escape(span.words)}" style="{style}"><small>{label} </small></span>'


def _record_letters(team: ShownTeam) -> str:
    if not team.letters:
        return ""
    kept = team.letters[-RECORD_LETTERS:]
    number = len(team.letters) + team.earlier
    said = f"{count(number, 'message')}" + (f", the last {len(kept)}" if number > len(kept) else "")
    rows = "".join(f"<li><b>{escape(sender)} → {escape(to)}</b> {escape(text)}</li>" for sender, to, text in kept)
    return f'<details><summary>{said}</summary><ul style="margin:.2em 0">{rows}</ul></details>'
