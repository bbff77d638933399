"""Puts a question to the person so that whoever watches the run sees it: an event before, an event after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from nbagent.core.events import Event, QuestionAnswered, QuestionAsked
from nbagent.core.ports import Approver, Question

E = TypeVar("E", bound=Event)


class MakeEvent(Protocol):
    """Makes an event of a kind that says where the run is (`Run.event`)."""

    def __call__(self, kind: type[E], /, **fields: Any) -> E:
        """Return the event."""
        ...


async def put(question: Question, approver: Approver, event: MakeEvent, report: Callable[[Event], None]) -> str:
    """Ask `question` and return the answer, "" where nobody is there; `report` gets an event before and after."""
    if not approver.present:
        return ""
    report(event(QuestionAsked, question_id=question.id, text=question.text, choices=question.choices))
    answer = await approver.question(question)
    report(event(QuestionAnswered, question_id=question.id, text=answer))
    return answer
