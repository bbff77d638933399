"""The three strange agents of lesson 14 are no decoration: they run, call their tools, and end at their limit."""

from __future__ import annotations

import asyncio

import pytest

from nbagent.core import loop
from nbagent.teach.lessons.find_the_loop import _RIGHT, OTHER, QUESTIONS, right_lines
from nbagent.teach.strangers import STRANGERS, grows, shown


def _run(name: str, model, task: str = "how many?"):
    names: dict = {}
    exec(STRANGERS[name], names)
    tools = {"count": lambda word: f"{len(word)} letters"}
    match name:
        case "orchid":
            return names["chat"](task, model, tools)
        case "heron":
            return names["solve"]([{"role": "user", "content": task}], model, tools)
        case _:
            return names["Worker"](task, model, tools).work()


@pytest.mark.parametrize("name", STRANGERS)
def test_a_stranger_runs_its_calls_and_answers(name):
    heard: list[int] = []

    def model(conversation):
        heard.append(len(conversation))
        if len(heard) == 1:
            return {"text": "", "calls": [{"name": "count", "input": {"word": "heron"}}]}
        return {"text": f"It has {conversation[-1]['content']}.", "calls": []}

    assert _run(name, model) == "It has 5 letters."
    assert heard == [1, 3]


@pytest.mark.parametrize("name", STRANGERS)
def test_a_stranger_ends_where_its_model_never_does(name):
    assert _run(name, lambda _: {"text": "", "calls": [{"name": "count", "input": {"word": "a"}}]}) == "out of steps"


@pytest.mark.parametrize("name", STRANGERS)
def test_each_question_has_its_line(name):
    assert set(_RIGHT[name]) == set(QUESTIONS)
    assert all(right_lines(name, question) for question in QUESTIONS)


async def test_the_agent_that_nobody_sees_runs():
    class Engine:
        async def complete(self, history, temperature):
            return {"stop": len(history) > 2, "wishes": ["w"]}

    class Toolbox:
        async def run(self, wish):
            return wish

    names: dict = {}
    exec(OTHER, names)
    history, notes = await asyncio.wait_for(names["assist"](["task"], Engine(), Toolbox(), 5), 5)
    assert notes == [1, 3] and len(history) == 4


def test_code_that_is_shown_is_the_files_own_and_says_where_it_is():
    lines = shown(loop.observe, "transcript.answer(", around=2)
    assert lines.title == "nbagent/core/loop.py, observe()" and len(lines.lit) == 1
    assert "▶" in repr(lines) and "transcript.answer(" in lines._repr_html_()
    with pytest.raises(ValueError, match="holds none of"):
        shown(loop.observe, "no such words")


def test_what_is_added_to_grows():
    assert [grows(source) for source in STRANGERS.values()] == [{"log"}, {"past"}, {"self.memory"}]
    assert grows("a = b + 1\nc = 1\nc -= 1\nd.extend([])") == set()
