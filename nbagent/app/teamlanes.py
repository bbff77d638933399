"""Who of a team did what when, out of the boards that follow each other: the lanes of `TeamChanged`.

Pure. Read `Lanes.after`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nbagent.core.board import LEAD, Board
from nbagent.core.board_values import Member
from nbagent.core.messages import Json

SPANS = 200
"""Spans of one lane that are kept; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Span:
    """What a member did from `start` to `end`, in seconds since the team began; it goes on where `end` is None."""

    state: str
    title: str
    start: float
    end: float | None = None

    def to_json(self) -> Json:
        """Return the span as `TeamChanged` has it."""
        return {"state": self.state, "title": self.title, "from": round(self.start, 1),
                "to": None if self.end is None else round(self.end, 1)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lanes:
    """By name, in the order in which they came: what each teammate did."""

    of: tuple[tuple[str, tuple[Span, ...]], ...] = ()

    def after(self, board: Board, seconds: float) -> Lanes:
        """Return the lanes with what `board` says that each does now."""
        lanes = dict(self.of)
        for member in board.members:
            if member.name == LEAD:
                continue
            state, title = _doing(board, member)
            spans = lanes.get(member.name, ())
            last = spans[-1] if spans else None
            if last is not None and (last.state, last.title) == (state, title):
                continue
            ended = (*spans[:-1], replace(last, end=seconds)) if last is not None else ()
            lanes[member.name] = (*ended, Span(state, title, seconds))[-SPANS:]
        return Lanes(tuple(lanes.items()))

    def to_json(self) -> tuple[Json, ...]:
        """Return the lanes as `TeamChanged` has them."""
        return tuple({"name": name, "spans": [span.to_json() for span in spans]} for name, spans in self.of)


def _doing(board: Board, member: Member) -> tuple[str, str]:
    if member.state == "gone":
        return "gone", ""
    held = board.held(member.name)
    if not held:
        return member.state, ""
    task = held[0]
    title = f"{task.id}: {task.title}"
    if task.may_begin:
        return "working", title
    return ("waiting" if task.plan and not task.plan_answer else "planning"), title
