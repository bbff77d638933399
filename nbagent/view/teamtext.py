"""A team in plain text: as lines for a record and a terminal, as tables in Markdown, and what is new since a moment ago.

All text comes from `teamshown`, made harmless. Read `lines`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.view.teamboard import needs_words, part
from nbagent.view.teamshown import STATES, ShownLane, ShownTask, ShownTeam, shown
from nbagent.view.text import count, duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbagent.core.events import TeamChanged

WIDTH = 40
"""Characters of a lane."""

LETTERS = 15
"""Messages at the end of a record in text."""

_SIGNS = {"working": "█", "planning": "▒", "waiting": "▪", "idle": "·", "gone": " ", "": " "}
LEGEND = "█ works  ▒ plans  ▪ waits  · idle"


def lines(event: TeamChanged) -> list[str]:
    """Return the whole panel as lines: the tasks, the lanes, the last messages."""
    team = shown(event)
    said = [team.heading]
    said += [f"  {_task_line(task)}" for state in STATES for task in team.column(state)]
    said += [f"  … {count(team.left, 'more task')}"] if team.left else []
    if team.lanes:
        said += [f"  0 s to {duration(team.seconds)}   {LEGEND}", *(f"  {row}" for row in _lanes(team))]
    letters = team.letters[-LETTERS:]
    return [*said, *(f"  {sender} → {to}: {text}" for sender, to, text in letters)]


def _task_line(task: ShownTask) -> str:
    mark, name = STATES[task.state]
    owner = f", {task.owner}" if task.owner else ""
    more = [f"⚠ {task.mark}"] * bool(task.mark) + [needs_words(task)] * bool(task.needs and task.state == "pending")
    after = "; ".join([*more, *task.notes, *filter(None, [task.result])])
    return f"{mark} {task.id} {task.title} ({name.lower()}{owner})" + (f": {after}" if after else "")


def _lanes(team: ShownTeam) -> list[str]:
    wide = max(len(lane.name) for lane in team.lanes)
    return [f"{lane.name:<{wide}}  {bar(lane, team.seconds)}  {lane.now}".rstrip() for lane in team.lanes]


def bar(lane: ShownLane, seconds: float) -> str:
    """Return a lane as `WIDTH` signs, one a slice of time: what most of the slice was spent on."""
    signs: list[str] = []
    for n in range(WIDTH):
        at = seconds * (n + 0.5) / WIDTH
        span = next((one for one in lane.spans if one.begin <= at < one.end), None)
        signs.append(_SIGNS.get(span.state if span else "", "█"))
    return "".join(signs)


def markdown(event: TeamChanged, words: Callable[[str], str]) -> str:
    """Return the panel in Markdown: tables of tasks and of teammates, and a list of messages; `words` makes text safe."""
    team = shown(event)
    head = ["| # | Task | State | Owner | Needs | Result |", "|---|---|---|---|---|---|"]
    rows = [
        _row([task.id, task.title, STATES[task.state][1], task.owner, ", ".join(one for one, _ in task.needs),
              "; ".join(text for text in (f"⚠ {task.mark}" if task.mark else "", *task.notes, task.result) if text)], words)
        for state in STATES for task in team.column(state)
    ]  # fmt: skip
    parts = [f"**{words(team.heading)}**"]
    parts += ["\n".join([*head, *rows])] if rows else []
    if team.lanes:
        who = [_row([lane.name, _spent(lane, team.seconds), lane.now], words) for lane in team.lanes]
        parts.append("\n".join(["| Teammate | Time | Now |", "|---|---|---|", *who]))
    letters = team.letters[-LETTERS:]
    parts += ["\n".join(f"- **{words(f'{sender} → {to}')}** {words(text)}" for sender, to, text in letters)]
    return "\n\n".join(filter(None, parts))


def _row(cells: list[str], words: Callable[[str], str]) -> str:
    return f"| {' | '.join(words(cell) for cell in cells)} |"


def _spent(lane: ShownLane, seconds: float) -> str:
    """How a teammate spent its time: "working 1 min 10 s (80%), idle 18 s (20%)"."""
    spent: dict[str, float] = {}
    for span in lane.spans:
        if span.state:
            spent[span.state] = spent.get(span.state, 0.0) + span.end - span.begin
    return ", ".join(f"{state} {duration(time)} ({part(time, seconds):.0f}%)" for state, time in spent.items())


def news(before: TeamChanged | None, event: TeamChanged) -> list[str]:
    """Return what is new since `before`, a line each, for a surface that redraws nothing: the whole list where all is."""
    if before is None:
        return lines(event)
    was, team = shown(before), shown(event)
    known = {task.id: task for task in was.tasks}
    said = [_task_line(task) for task in team.tasks if known.get(task.id) != task]
    fresh = team.posted - was.posted
    letters = team.letters[-fresh:] if fresh > 0 else ()
    said += [f"{sender} → {to}: {text}" for sender, to, text in letters]
    return [team.heading, *(f"  {line}" for line in said)] if said else []
