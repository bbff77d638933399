"""The to-do list: which lists are taken, and that the transcript alone says how it stands."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nbagent.core.errors import ToolError
from nbagent.core.messages import text_block
from nbagent.core.session import NoStore, Session, result_block
from nbagent.core.tools import Call, Kind
from nbagent.tools import todo
from nbagent.tools.results import ResultStore
from tests.tools.calling import Calling


def item(content, status="pending", **more):
    return {"content": content, "status": status, **more}


def listed(*items):
    return [{"activeForm": one["content"], **one} for one in items]


async def test_the_list_is_shown_whole_and_the_model_is_told_how_far_it_is():
    shown = []
    call = Call("c1", print, None, todos_are=shown.append)
    made = todo.tools()[0]
    given = made.validate({"todos": [item("Load  it", "completed"), item("Fit", "in_progress", activeForm="Fitting")]})
    result = await made.run(call, given)
    assert shown == [[*listed(item("Load it", "completed")), item("Fit", "in_progress", activeForm="Fitting")]]
    assert result.summary == "1 of 2 done"
    assert "now: Fitting" in result.content[0]["text"]
    assert made.kind(given) is Kind.READ  # nobody is asked about it
    assert made.title(given) == "to-do list: 1 of 2 done"


@pytest.mark.parametrize(
    ("todos", "why"),
    [
        ([item("a", "in_progress"), item("b", "in_progress")], "only one may be"),
        ([item("a"), item(" ")], "item 2 is empty"),
        ([item("a"), item("a ", "completed")], "same content"),
        ([item("x" * 301)], "too long"),
        ([item(str(n)) for n in range(41)], "too many"),
    ],
)
async def test_a_list_that_a_person_could_not_follow_is_refused_and_nothing_is_shown(todos, why):
    with pytest.raises(ToolError, match=why):
        await Calling(todo.tools())("todo_write", todos=todos)


@pytest.mark.parametrize("status", ["done", "", None])
def test_another_status_is_refused_with_those_that_there_are(status):
    with pytest.raises(ToolError, match="pending"):
        Calling(todo.tools()).given("todo_write", todos=[{"content": "a", "status": status}])


@pytest.mark.parametrize(
    ("todos", "told"),
    [([], "empty now"), ([item("a", "completed")], "not checked yet"), ([item("a")], "no item is in_progress")],
)
async def test_what_the_model_is_told_fits_the_list(todos, told):
    assert told in await Calling(todo.tools()).text("todo_write", todos=todos)


def session(*calls):
    """A session in which the list was written by these calls: their items, and whether the call was carried out."""
    made = Session("s", system="", tools=(), store=NoStore())
    made.transcript.ask([text_block("go")])
    for number, (todos, fine) in enumerate(calls):
        name = f"c{number}"
        made.transcript.reply([{"type": "tool_use", "id": name, "name": "todo_write", "input": {"todos": todos}}])
        made.transcript.answer({name: result_block(name, [text_block("…")], is_error=not fine)})
    return made.transcript


def test_the_transcript_says_how_the_list_stands():
    first, second = [item("a"), item("b")], [item("a", "completed"), item("b", "in_progress")]
    assert todo.of_messages(session((first, True), (second, True))) == listed(*second)
    assert todo.of_messages(session()) == []


@pytest.mark.parametrize("broken", [[item("c", "in_progress"), item("d", "in_progress")], "none", [1], None])
def test_a_call_that_was_refused_or_is_broken_has_changed_nothing(broken):
    first = [item("a")]
    assert todo.of_messages(session((first, True), (broken, False))) == listed(*first)
    assert todo.of_messages(session((first, True), (broken, True))) == listed(*first)
    assert todo.of_messages(session((first, True), ([item("z")], False))) == listed(*first)


def test_only_an_open_list_is_told_again():
    assert todo.reminder([]) == todo.reminder(listed(item("a", "completed"))) == ""
    told = todo.reminder(listed(item("a", "completed"), item("b", "in_progress"), item("c")))
    assert "<todo-list>\n[x] a\n[>] b\n[ ] c\n</todo-list>" in told
    assert "1 of 3 done" in told


def test_a_list_that_was_told_with_a_summary_goes_on_and_a_later_call_replaces_it():
    before = listed(item("a", "completed"), item("b", "in_progress"))
    made = Session("s", system="", tools=(), store=NoStore())
    made.transcript.ask([text_block(f"Summed up.\n\n{todo.reminder(before)}"), text_block("go on")])
    assert todo.of_messages(made.transcript) == before
    made.transcript.reply([{"type": "tool_use", "id": "c", "name": "todo_write", "input": {"todos": []}}])
    made.transcript.answer({"c": result_block("c", [text_block("…")])})
    assert todo.of_messages(made.transcript) == []


async def test_a_conversation_that_is_summed_up_goes_on_with_its_list():
    from nbagent.app.compacting import compaction_of
    from nbagent.config import Settings
    from nbagent.core.session import Transcript
    from nbagent.core.summary import going_on

    compaction = compaction_of(None, SimpleNamespace(called=[]), Settings(), None)
    old = Session("s", system="", tools=(), store=NoStore())
    old.transcript.take_over(list(session(([item("a", "completed"), item("b")], True))))
    heir = Transcript(NoStore())
    heir.ask(going_on("What was.", ["go"], await compaction.standing(old), by_api=False, in_run=True))
    assert todo.of_messages(heir) == listed(item("a", "completed"), item("b"))


def test_it_is_among_the_tools_of_every_run():
    from nbagent.tools import control

    assert "todo_write" in [one.name for one in control.tools(ResultStore())]
