"""Be the runtime: what a learner says is compared with what the real loop did; nothing of it is decided twice."""

from __future__ import annotations

import pytest

from nbagent.core.errors import ToolError
from nbagent.core.tools import Kind, tool
from nbagent.models.scripted import call, say
from nbagent.teach.runtime import BeTheRuntime, played


@tool
async def double(_: object, number: int) -> int:
    """Double a number."""
    return 2 * number


@tool(kind=Kind.WRITE_FILE)
async def save(_: object, path: str) -> str:
    """Save a file."""
    if path == "/full":
        raise ToolError("the disk of /full is full")
    return f"saved {path}"


SCRIPT = [
    [say("Two at once."), call("double", number=4), call("treble", number=4)],
    [call("double", number="x"), call("save", path="a.csv"), call("save", path="/full")],
    "It is 8.",
]


async def test_a_run_is_folded_to_what_was_done_with_each_call():
    first, second, last = await played(SCRIPT, [double, save])
    assert (first.words, first.goes_on, last.goes_on, last.reason) == ("Two at once.", True, False, "end_turn")
    assert [(one.name, one.valid, one.decision, one.is_error) for one in (*first.calls, *second.calls)] == [
        ("double", True, "allow", False), ("treble", False, "", True), ("double", False, "", True),
        ("save", True, "ask", False), ("save", True, "ask", True),
    ]  # fmt: skip
    assert first.calls[0].result == "8"
    (denied, _) = (await played(SCRIPT, [double, save], mode="plan"))[1].calls[1:]
    assert (denied.decision, denied.is_error) == ("deny", True)


async def test_right_answers_lead_through_the_whole_run():
    desk = await BeTheRuntime.of(SCRIPT, [double, save])
    assert "double" in repr(desk)
    assert "Two at once." in repr(desk)
    said = [
        desk.valid(True), desk.decide("allow"), desk.result("8"),
        desk.valid(False), desk.result("There is no tool treble here.", error=True),
        desk.go_on(True),
        desk.valid(False), desk.result("number must be an integer", error=True),
        desk.valid(True), desk.decide("ask"), desk.result("saved a.csv"),
        desk.valid(True), desk.decide("ask"), desk.result("nothing is left on /full", error=True),
        desk.go_on(True),
        desk.go_on(False),
    ]  # fmt: skip
    assert [str(one) for one in said if not one.passed] == []
    assert desk.done
    assert desk.score == "16 of 16 right at the first try"
    assert "nothing to answer" in desk.go_on(True).said
    assert "All is done" in desk._repr_html_()


async def test_a_wrong_answer_says_what_ours_did_and_may_be_given_again():
    desk = await BeTheRuntime.of(SCRIPT, [double, save])
    assert desk.decide("allow").said.startswith("first: is the call valid?")
    assert not desk.valid(False).passed
    assert desk.valid(True).passed
    assert "a decision is" in desk.decide("perhaps").said
    wrong = desk.decide("ask")
    assert (wrong.passed, "allow" in wrong.said) == (False, True)
    assert desk.decide("allow").passed
    for answer in (desk.result("9"), desk.result("8", error=True)):
        assert not answer.passed
        assert "our runtime sent the result: 8" in answer.said
    assert desk.result("8").passed
    assert desk.score == "0 of 3 right at the first try"


@pytest.mark.parametrize("text", ["Error", "it did not work at all", ""])
async def test_an_error_that_names_nothing_is_no_good_result(text: str):
    desk = await BeTheRuntime.of([call("treble", number=4), "No."], [double])
    desk.valid(False)
    assert not desk.result(text, error=True).passed
    assert not desk.result("There is no tool treble here.").passed
    assert desk.result("There is no tool treble here.", error=True).passed
