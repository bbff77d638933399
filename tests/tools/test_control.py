"""Asking the person, and reading a long result on."""

from __future__ import annotations

import pytest

from nbagent.core.errors import ToolError
from nbagent.core.ports import Question
from nbagent.core.tools import Kind
from nbagent.tools import control
from nbagent.tools.results import ResultStore
from tests.tools.calling import Calling


class Person:
    """An approver who answers every question with `answer`; nobody there where it is None."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    @property
    def present(self):
        return self.answer is not None

    async def ask(self, approval):
        raise NotImplementedError

    async def question(self, question):
        self.asked.append(question)
        return self.answer or ""


async def test_the_persons_answer_comes_back_in_their_words():
    person = Person("the second one\nplease")
    call = Calling(control.tools(ResultStore()), person)
    result = await call("ask_user", question=" Which? ", choices=["a", "b", " a ", ""])
    assert result.content[0]["text"] == "The person answered: the second one\nplease"
    assert result.summary == "the second one"
    assert person.asked == [Question("call_1", "Which?", ("a", "b"))]


@pytest.mark.parametrize("answer", [None, "", "  "])
async def test_where_nobody_answers_the_model_is_told_to_decide_and_say_so(answer):
    person = Person(answer)
    said = await Calling(control.tools(ResultStore()), person).text("ask_user", question="Which?")
    assert "Decide yourself" in said
    assert "assumption" in said
    assert len(person.asked) == (answer is not None)


async def test_an_empty_question_is_not_asked():
    person = Person("yes")
    with pytest.raises(ToolError, match="empty"):
        await Calling(control.tools(ResultStore()), person)("ask_user", question=" \n")
    assert person.asked == []


def test_the_choices_are_a_plain_list_in_the_schema():
    schema = Calling(control.tools(ResultStore())).tools["ask_user"].schema
    assert schema["properties"]["choices"]["type"] == "array"
    assert schema["required"] == ["question"]


async def test_a_kept_result_is_read_on_page_by_page():
    store = ResultStore()
    ref = store.keep("0123456789" * 3000)
    call = Calling(control.tools(store))
    assert (await call.text("read_result", ref=ref, offset=29_995)).startswith("56789")
    first = await call.text("read_result", ref=ref)
    assert first.startswith("0123456789" * 1000)
    assert "offset=10000" in first
    assert (await call.text("read_result", ref=ref, limit=999_999)) == first
    assert call.kind("read_result", ref=ref) is Kind.READ


async def test_an_unknown_reference_names_the_known_ones():
    store = ResultStore()
    ref = store.keep("x")
    with pytest.raises(ToolError, match=ref):
        await Calling(control.tools(store))("read_result", ref="nope")
