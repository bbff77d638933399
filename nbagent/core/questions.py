"""Puts a question to the person so that whoever watches the run sees it: an event before, an event after."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
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
    return (await put_all([question], approver, event, report))[0]


async def put_all(
    questions: Sequence[Question], approver: Approver, event: MakeEvent, report: Callable[[Event], None]
) -> list[str]:
    """Ask `questions` side by side and return their answers, "" where nobody is there or one was left out."""
    if not approver.present:
        return [""] * len(questions)
    for one in questions:
        report(
            event(
                QuestionAsked,
                question_id=one.id, text=one.text, choices=one.choices, header=one.header, details=one.details,
                previews=one.previews, many=one.many, group=one.group, of=one.of,
            )
        )  # fmt: skip
    tasks = [asyncio.ensure_future(approver.question(one)) for one in questions]
    try:
        answers = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for one, answer in zip(questions, answers, strict=True):
        report(event(QuestionAnswered, question_id=one.id, text=answer))
    return answers


def picked(question: Question, answer: str) -> tuple[list[str], str]:
    """Split an answer into the choices that were made and what the person wrote."""
    lines = answer.strip().split("\n")
    made: list[str] = []
    while lines and lines[0] in question.choices and (question.many or not made):
        made.append(lines.pop(0))
    return made, "\n".join(lines).strip()


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
