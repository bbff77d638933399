"""Puts a question to the person so that whoever watches the run sees it: an event before, an event after."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from nbagent.core.events import Event, QuestionAnswered, QuestionAsked
from nbagent.core.ports import Approver, Question

E = TypeVar("E", bound=Event)

_SAID = 60
"""Characters of an answer that are repeated to the person."""


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


async def choose(
    text: str, choices: tuple[str, ...], approver: Approver, event: MakeEvent, report: Callable[[Event], None]
) -> str:
    """Ask until the answer is one of `choices`, and return that one; "" where nobody is there, or not any more.

    For questions with no third way: "please run it again" is none of the buttons, and must not count as one of them.
    """
    asked = text
    while True:
        question = Question(f"choice-{secrets.token_hex(4)}", asked, choices)
        answer = " ".join((await put(question, approver, event, report)).split())
        for choice in choices:
            if answer.casefold() == choice.casefold():
                return choice
        if not approver.present:
            return ""
        said = f"“{answer[:_SAID]}” is none of the choices, so nothing was done yet. " if answer else ""
        asked = f"{said}{text}"
