"""The to-do list on every surface: one list of a run that changes in place, never a card a call.

Items come as JSON from whoever wrote the events; nothing here raises, whatever is in them. Read `todos_html`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.core.shown import visible_plain
from nbagent.view.code import LIVE
from nbagent.view.text import escape, one_line, visible, without_ansi

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbagent.core.messages import Json

_LIMIT = 300
MARKS = {"completed": ("✓", "done"), "in_progress": ("▸", "in progress"), "pending": ("○", "open")}
"""Mark and word of each status: the mark alone never carries the meaning."""
STOPPED = ("▸", "begun")
"""What stands at the item that was in progress when the run ended."""


def _status(item: Json) -> str:
    status = str(item.get("status", ""))
    return status if status in MARKS else "pending"


def content(item: Json) -> str:
    """Return what an item says, as one plain line."""
    return visible_plain(one_line(without_ansi(str(item.get("content", ""))), _LIMIT), spaces=False)


def all_done(todos: Sequence[Json]) -> bool:
    """Whether nothing of the list is left."""
    return all(_status(item) == "completed" for item in todos)


def now(todos: Sequence[Json]) -> str:
    """Return what is being done, "" where no item is in progress."""
    item = next((item for item in todos if _status(item) == "in_progress"), {})
    return visible_plain(one_line(str(item.get("activeForm") or item.get("content") or ""), _LIMIT), spaces=False)


def heading(todos: Sequence[Json], *, carried: bool = False) -> str:
    """Return how far the list is, e.g. "To do: 2 of 5 done"."""
    done = sum(_status(item) == "completed" for item in todos)
    if todos and done == len(todos):
        return f"To do: all {done} done" if done > 1 else "To do: done"
    return f"To do{' (from before)' if carried else ''}: {done} of {len(todos)} done"


def todos_html(todos: Sequence[Json], *, carried: bool = False, over: bool = False, fold: str = "todos") -> str:
    """Return the list for the live view, "" where there is none: open while there is something to do now.

    `over`: the run, or the subagent, has ended. `fold` is the name by which the page keeps it as the person left it.
    """
    if not todos:
        return ""
    opened = "" if carried or over or all_done(todos) else " open"
    doing = "" if over else now(todos)
    said = f'<span class="nbagent-short">{escape(doing)}</span>' if doing else ""
    items = "".join(_item(item, over=over) for item in todos)
    return (
        f'<details class="nbagent-todos" data-fold="{escape(fold)}"{opened}>'
        f"<summary><b>{escape(heading(todos, carried=carried))}</b>{said}</summary>"
        f'<ol class="nbagent-todolist" role="list" aria-label="To-do list">{items}</ol></details>'
    )


def _item(item: Json, *, over: bool) -> str:
    status = _status(item)
    mark, word = STOPPED if over and status == "in_progress" else MARKS[status]
    text = visible(one_line(without_ansi(str(item.get("content", ""))), _LIMIT), LIVE.attr("ctl"), spaces=False)
    current = ' aria-current="step"' if status == "in_progress" and not over else ""
    return (
        f'<li data-status="{status}"{current}><span class="nbagent-mark" aria-hidden="true">{mark}</span>'
        f'<span class="nbagent-sr">{word}: </span><span>{text}</span></li>'
    )


def record_html(todos: Sequence[Json]) -> str:
    """Return the list for a record, without stylesheet: folded where all is done, else it says what is left."""
    if not todos:
        return ""
    rows = "".join(f"<li>{escape(_line(item))}</li>" for item in todos)
    body = f'<ul style="list-style:none;padding-left:.5em;margin:.2em 0">{rows}</ul>'
    opened = "" if all_done(todos) else " open"
    return f"<details{opened}><summary>{escape(heading(todos))}</summary>{body}</details>"


def _line(item: Json) -> str:
    """An item of a run that goes on no more."""
    status = _status(item)
    mark, word = STOPPED if status == "in_progress" else MARKS[status]
    return f"{mark} {content(item)}" + ("" if status == "completed" else f" ({word})")


def record_lines(todos: Sequence[Json]) -> list[str]:
    """Return the list as plain lines, for a record as text."""
    return [heading(todos), *(f"  {_line(item)}" for item in todos)] if todos else []


def record_tasks(todos: Sequence[Json]) -> list[tuple[bool, str]]:
    """Return whether each item is done, and what it says, for a record in Markdown."""
    return [
        (_status(item) == "completed", content(item) + (" (begun)" if _status(item) == "in_progress" else ""))
        for item in todos
    ]


def news(before: Sequence[Json], todos: Sequence[Json]) -> list[str]:
    """Return the lines that a surface which redraws nothing writes: the whole list where it is another, else what changed."""
    known = {content(item): _status(item) for item in before}
    same = [content(item) for item in before] == [content(item) for item in todos]
    shown = [item for item in todos if not same or known.get(content(item)) != _status(item)]
    return [f"{MARKS[_status(item)][0]} {content(item)} ({MARKS[_status(item)][1]})" for item in shown]
