"""Asking the person: the shape of the questions, and what the model is told of the answers."""

from __future__ import annotations

import pytest

from nbagent.core.errors import ToolError
from nbagent.core.ports import Question
from nbagent.core.questions import picked
from nbagent.tools import control
from nbagent.tools.results import ResultStore
from tests.tools.calling import Calling

OPTIONS = [{"label": "mean", "description": "of all rows"}, {"label": "median"}]


class Person:
    """An approver who gives these answers, "" after the last; nobody there where there are none."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.present = bool(answers)
        self.asked = []

    async def ask(self, approval):
        raise NotImplementedError

    async def question(self, question):
        self.asked.append(question)
        return self.answers.pop(0) if self.answers else ""


def calling(person):
    return Calling(control.tools(ResultStore()), person)


async def said(person, *questions):
    return await calling(person).text("ask_user", questions=list(questions))


async def test_the_persons_answer_comes_back_in_their_words():
    person = Person("the second one\nplease")
    result = await calling(person)(
        "ask_user", questions=[{"question": " Which? ", "options": OPTIONS, "header": "Way"}]
    )
    assert result.content[0]["text"] == "The person answered: the second one\nplease"
    assert person.asked == [
        Question("call_1", "Which?", ("mean", "median"), header="Way", details=("of all rows", ""))
    ]  # fmt: skip


async def test_what_was_chosen_and_what_was_written_beside_it_are_told_apart():
    one = {"question": "Which?", "options": OPTIONS}
    assert await said(Person("median\nbut only for 2020"), one) == (
        "The person answered: median. In their own words: but only for 2020"
    )
    assert await said(Person("mean\nmedian"), {**one, "multiSelect": True}) == "The person answered: mean; median"
    assert await said(Person("mean\nmedian"), one) == "The person answered: mean. In their own words: median"


async def test_several_questions_are_one_card_and_each_has_its_own_answer():
    person = Person("mean", "")
    text = await said(person, {"question": "Which?", "options": OPTIONS}, {"question": "Which name?"})
    assert text == (
        "The person answered:\n- Which?\n  mean\n- Which name?\n"
        "  (left out: decide this one yourself, and say what you assumed)"
    )
    assert {(one.group, one.of) for one in person.asked} == {("call_1-questions", 2)}
    assert len({one.id for one in person.asked}) == 2


@pytest.mark.parametrize("person", [Person(), Person(""), Person("  ")])
async def test_where_nobody_answers_the_model_is_told_to_decide_and_say_so(person):
    text = await said(person, {"question": "Which?"})
    assert "Decide yourself" in text
    assert "assumption" in text
    assert len(person.asked) == person.present


@pytest.mark.slow
@pytest.mark.parametrize(
    ("questions", "why"),
    [
        ([], "one to 4"),
        ([{"question": "q?"}] * 5, "one to 4"),
        ([{"question": " \n"}], "empty"),
        ([{"question": "q?", "options": [{"label": "only"}]}], "two to 4"),
        ([{"question": "q?", "options": [{"label": str(n)} for n in range(5)]}], "two to 4"),
        ([{"question": "q?", "options": [{"label": "A"}, {"label": "a "}]}], "same label"),
        ([{"question": "q?", "options": [{"label": "A"}, {"label": " "}]}], "no label"),
        ([{"question": "a?"}, {"question": ""}], "question 2: the question is empty"),
    ],
)
async def test_a_question_that_nobody_could_answer_is_not_asked(questions, why):
    person = Person("yes")
    with pytest.raises(ToolError, match=why):
        await calling(person)("ask_user", questions=questions)
    assert person.asked == []


def test_an_answer_is_split_where_the_choices_end():
    many = Question("q", "?", ("a", "b"), many=True)
    assert picked(many, "a\nb\nand c\nb") == (["a", "b"], "and c\nb")
    assert picked(many, "just words") == ([], "just words")
    assert picked(many, "") == ([], "")
