"""What of a team's event is shown, as plain values: tasks by state, a lane a teammate, the latest messages.

The event comes from whoever wrote it, perhaps a newer version or another machine: whatever is in it, nothing here raises,
and all text is made harmless for a surface of plain text. How it looks is the business of `teamboard` and `teamtext`.
Read `shown`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbagent.core.shown import visible_plain
from nbagent.view.text import count, duration, one_line, without_ansi

if TYPE_CHECKING:
    from nbagent.core.events import TeamChanged

STATES = {"pending": ("○", "Pending"), "in_progress": ("▸", "In progress"), "completed": ("✓", "Completed")}
"""Mark and heading of each state of a task, in the order of the board's columns."""

DOES = {"working": "works", "planning": "plans", "waiting": "waits", "idle": "idle", "gone": "gone"}
"""What a span of a lane says where it has no task."""

TASKS, SPANS, LETTERS = 200, 60, 60
"""How many tasks, spans of one lane and messages are drawn at most; the latest of the last two."""

_TITLE, _LINE, _LETTER = 120, 200, 600


@dataclass(frozen=True, slots=True)
class ShownTask:
    """One task. `needs` are pairs of an id and whether that task is done; `notes` what else is to be known, short.

    `ended` is when it was completed, in seconds of some clock.
    """

    id: str
    title: str
    state: str
    owner: str
    needs: tuple[tuple[str, bool], ...]
    result: str
    mark: str
    notes: tuple[str, ...]
    ended: float = 0.0

    @property
    def blocked(self) -> bool:
        """Whether it waits for other tasks."""
        return self.state == "pending" and not all(done for _, done in self.needs)

    @property
    def conflicts(self) -> bool:
        """Whether its mark is a conflict: both sides are kept, and a person decides."""
        return "conflict" in self.mark.lower()


@dataclass(frozen=True, slots=True)
class ShownSpan:
    """What a teammate did from `begin` to `end`, in seconds since the team began; `label` says it in words."""

    state: str
    label: str
    begin: float
    end: float

    @property
    def words(self) -> str:
        """The whole of it in words."""
        return f"{self.label}, {duration(self.begin)} to {duration(self.end)}"


@dataclass(frozen=True, slots=True)
class ShownLane:
    """One teammate: what it does now, and its spans without gaps, oldest first (a gap is a span without a state)."""

    name: str
    now: str
    spans: tuple[ShownSpan, ...]


@dataclass(frozen=True, slots=True)
class ShownTeam:
    """A team as it stands.

    `left` is how many tasks are too many to be drawn, `earlier` how many messages; `posted` is how many there ever were.
    """

    name: str
    goal: str
    note: str
    seconds: float
    tasks: tuple[ShownTask, ...]
    lanes: tuple[ShownLane, ...]
    letters: tuple[tuple[str, str, str], ...]
    left: int = 0
    earlier: int = 0
    posted: int = 0

    def column(self, state: str) -> tuple[ShownTask, ...]:
        """Return the tasks of one state: conflicts first, what waits for others last, of what is done the latest first."""
        found = [task for task in self.tasks if task.state == state]
        return tuple(sorted(found, key=lambda task: (not task.conflicts, task.blocked, -task.ended)))

    @property
    def heading(self) -> str:
        """How far the team is, in a line: "Team fixers: 3 of 8 tasks done, 2 in progress, 1 conflict"."""
        done, doing = (sum(task.state == state for task in self.tasks) for state in ("completed", "in_progress"))
        conflicts = sum(task.conflicts for task in self.tasks)
        said = f"{done} of {count(len(self.tasks) + self.left, 'task')} done" if self.tasks else "no tasks yet"
        more = [f"{doing} in progress"] * bool(doing) + [count(conflicts, "conflict")] * bool(conflicts)
        return ", ".join([f"{f'Team {self.name}' if self.name else 'Team'}: {said}", *more])


def shown(event: TeamChanged) -> ShownTeam:
    """Return what is to be seen of a team."""
    board = _table(event.board)
    tables = _tables(board.get("tasks"))
    done = {_text(table, "id") for table in tables if table.get("state") == "completed"}
    marks = _table(event.marks)
    letters = _tables(board.get("letters"))
    lanes = _tables(event.lanes)
    states = {_text(member, "name"): _text(member, "state") or "working" for member in _tables(board.get("members"))}
    seconds = max(
        [_number(event.seconds), *(_number(s.get("to")) for lane in lanes for s in _tables(lane.get("spans")))]
    )
    named = {_text(lane, "name"): lane for lane in lanes}
    ids = {_plain(table.get("title"), _TITLE): _text(table, "id") for table in tables}
    return ShownTeam(
        name=_plain(event.team, 60),
        goal=_plain(board.get("goal"), _LINE),
        note=_plain(event.note, _LINE),
        seconds=seconds,
        tasks=tuple(_task(table, done, marks) for table in tables[:TASKS]),
        lanes=tuple(
            _lane(name, named.get(name, {}), states.get(name, ""), seconds, ids) for name in {**named, **states}
        ),
        letters=tuple(_letter(table) for table in letters[-LETTERS:]),
        left=max(0, len(tables) - TASKS),
        earlier=max(0, len(letters) - LETTERS),
        posted=max(len(letters), int(_number(board.get("last_letter")))),
    )


def _task(table: dict[str, Any], done: set[str], marks: dict[str, Any]) -> ShownTask:
    state = table.get("state")
    state = state if isinstance(state, str) and state in STATES else "pending"
    needs = [str(one) for one in _list(table.get("needs"))]
    return ShownTask(
        id=_text(table, "id"),
        title=_plain(table.get("title"), _TITLE) or "(no title)",
        state=state,
        owner=_text(table, "owner"),
        needs=tuple((_plain(one, 20), one in done) for one in needs),
        result=_plain(table.get("result"), _LINE),
        mark=_plain(marks.get(_text(table, "id")), _LINE),
        notes=tuple(_notes(table, state)),
        ended=_number(table.get("ended")) if state == "completed" else 0.0,
    )


def _notes(table: dict[str, Any], state: str) -> list[str]:
    notes: list[str] = []
    if state != "completed" and (table.get("wants_plan") or table.get("plan")):
        answer = _text(table, "plan_answer")
        wait = "plan waits for an answer" if table.get("plan") else "a plan comes first"
        notes.append("plan approved" if answer == "approved" else "plan to be changed" if answer else wait)
    past = _tables(table.get("past"))
    if past:
        owner, why = _text(past[-1], "owner"), _text(past[-1], "why")
        notes.append(f"had by {owner} before" + (f": {why}" if why else ""))
    return notes


def _lane(name: str, lane: dict[str, Any], state: str, seconds: float, ids: dict[str, str]) -> ShownLane:
    spans: list[ShownSpan] = []
    at = 0.0
    tables = sorted(_tables(lane.get("spans")), key=lambda span: _number(span.get("from")))
    for table in tables:
        begin = max(at, min(seconds, _number(table.get("from"))))
        end = seconds if table.get("to") is None else min(seconds, _number(table.get("to")))
        if end < begin:
            continue
        if begin > at:
            spans.append(ShownSpan("", "not there", at, begin))
        does = _text(table, "state")
        title = _plain(table.get("title"), _TITLE)
        title = (
            f"{ids[title]} {title}" if ids.get(title) else title
        )  # its number is seen where there is no room for more
        word = DOES.get(does, does or "works")
        label = title if title and does in {"working", ""} else f"{word}: {title}" if title else word
        spans.append(ShownSpan(does or "working", label, begin, end))
        at = end
    if len(spans) > SPANS:
        first = spans[-SPANS]
        spans = [ShownSpan("", "earlier", 0.0, first.begin), *spans[-SPANS:]]
    last = spans[-1] if spans else None
    now = DOES.get(state, state) if state and state != "working" else last.label if last else DOES["working"]
    return ShownLane(name, now, tuple(spans))


def _letter(table: dict[str, Any]) -> tuple[str, str, str]:
    to = _text(table, "to")
    said = _plain(table.get("text"), _LETTER)
    kind = _text(table, "kind").replace("_", " ")
    text = said if kind in {"", "message", "notice"} else f"({kind}) {said}".strip()
    return _text(table, "sender") or "?", "all" if to == "*" else to or "?", text


def _text(table: dict[str, Any], name: str) -> str:
    return _plain(table.get(name), 60)


def _plain(value: Any, limit: int) -> str:
    return visible_plain(one_line(without_ansi(str(value)), limit), spaces=False) if value not in (None, "") else ""


def _number(value: Any) -> float:
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
    return min(max(number, 0.0), 1e9) if number == number else 0.0  # noqa: PLR0124  (NaN)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _tables(value: Any) -> list[dict[str, Any]]:
    return [one for one in _list(value) if isinstance(one, dict)]
