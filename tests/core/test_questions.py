"""A question with a fixed set of choices: only one of them is an answer."""

from __future__ import annotations

from typing import Any

from nbagent.core.events import Event, QuestionAsked, State
from nbagent.core.ports import Answered, Approval, Question
from nbagent.core.questions import choose

CHOICES = ("Run again", "Keep the old answer")


class Answers:
    """A person who gives these answers, and leaves after the last one."""

    def __init__(self, *answers: str) -> None:
        self.left = list(answers)

    @property
    def present(self) -> bool:
        return bool(self.left)

    async def ask(self, approval: Approval) -> Answered:
        raise AssertionError(approval)

    async def question(self, question: Question) -> str:
        assert question.choices == CHOICES
        return self.left.pop(0)


async def asked(*answers: str) -> tuple[str, list[str]]:
    shown: list[Event] = []

    def event(kind: type[Any], /, **fields: Any) -> Any:
        return kind(state=State.THINK, turn=0, at=0.0, **fields)

    answer = await choose("Which?", CHOICES, Answers(*answers), event, shown.append)
    return answer, [event.text for event in shown if isinstance(event, QuestionAsked)]


async def test_what_is_none_of_the_choices_is_asked_again_and_never_taken_for_one():
    answer, texts = await asked("run it again please", "", "Run again")
    assert answer == "Run again"
    said = "“run it again please” is none of the choices, so nothing was done yet. Which?"
    assert texts == ["Which?", said, "Which?"]


async def test_a_choice_that_is_typed_in_other_letters_counts():
    assert await asked("  keep the  OLD answer ") == ("Keep the old answer", ["Which?"])


async def test_nobody_there_is_no_choice():
    assert (await asked("gone"))[0] == "" and (await asked())[0] == ""
