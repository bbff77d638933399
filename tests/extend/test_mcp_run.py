"""MCP tools in whole runs: who is asked, what the model gets, and that a long result is cut but not lost."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from nbagent.core.events import ApprovalAsked, CallDecided, CallEnded, CallProgress, QuestionAsked, Status
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.run import Agent
from nbagent.core.session import NoStore, Session
from nbagent.core.tools import Toolset
from nbagent.models.scripted import ScriptedModel, call, say
from nbagent.tools.results import ResultStore, capped
from tests.core.rig import Person, check_transcript
from tests.extend.mcp_rig import script, servers


@pytest.fixture
async def of(tmp_path):
    found = servers(tmp_path, script(tmp_path))
    await found.prepare()
    yield found
    await found.close()


async def play(of, *turns, person: Person | None = None, mode: Mode = Mode.DEFAULT) -> list:
    """Run a script with the servers' tools, cut as a notebook's are."""
    store = ResultStore()
    tools = Toolset(capped(tool, store) for tool in of.tools())
    agent = Agent(ScriptedModel(turns), tools, Policy(mode), person or Person(), Limits(longest_wait=0.0))
    session = Session("s1", system="", tools=tools.params(), store=NoStore())
    events = []
    async with aclosing(run(agent, session, [text_block("do it")], prompt="do it")) as stream:
        async for event in stream:
            events.append(event)
    check_transcript(session.transcript)
    return events


def of_kind(events, kind) -> list:
    return [event for event in events if isinstance(event, kind)]


def said(event: CallEnded) -> str:
    return "\n".join(block.get("text", "") for block in event.content)


@pytest.mark.slow
async def test_a_tool_that_only_reads_runs_unasked_and_another_one_is_asked_about(of):
    person = Person(True)
    turn = [call("mcp__s__echo", what="a"), call("mcp__s__write", what="b")]
    events = await play(of, turn, say("done"), person=person)
    assert [event.action for event in of_kind(events, CallDecided)] == ["allow", "ask"]
    (asked,) = person.asked
    assert (asked.tool, asked.title, asked.offers) == ("mcp__s__write", "s: write b", ("mcp__s__write",))
    assert '"what": "b"' in asked.preview.body
    assert [said(event) for event in of_kind(events, CallEnded)] == ['echo {"what": "a"}', 'write {"what": "b"}']


@pytest.mark.slow
@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.READ_ONLY, Mode.DONT_ASK])
async def test_where_nothing_may_change_only_what_reads_runs(of, mode):
    events = await play(of, [call("mcp__s__echo", what="a"), call("mcp__s__write", what="b")], say("done"), mode=mode)
    assert [event.status for event in of_kind(events, CallEnded)] == [Status.OK, Status.DENIED]


@pytest.mark.slow
async def test_allow_from_now_on_means_this_tool_of_this_server(of):
    from nbagent.core.ports import Answered

    person = Person(Answered(True, rule="mcp__s__write"))
    events = await play(
        of, call("mcp__s__write", what="a"), call("mcp__s__write", what="b"), say("done"), person=person
    )
    assert len(of_kind(events, ApprovalAsked)) == 1


@pytest.mark.slow
async def test_wrong_arguments_never_reach_the_server_and_the_model_is_told(of):
    events = await play(of, call("mcp__s__echo", wat="a"), say("done"))
    (ended,) = of_kind(events, CallEnded)
    assert ended.status is Status.INVALID
    assert "'what' is a required property" in said(ended)


@pytest.mark.slow
async def test_a_crash_is_an_error_result_and_the_run_goes_on(of):
    events = await play(of, call("mcp__s__crash"), call("mcp__s__echo", what="x"), say("done"), person=Person(True))
    assert [event.status for event in of_kind(events, CallEnded)] == [Status.ERROR, Status.OK]


@pytest.mark.slow
async def test_progress_and_the_servers_question_are_seen_in_the_run(of):
    person = Person(True, True, replies=["red", "2", "Leave it out"])
    events = await play(of, call("mcp__s__slow"), call("mcp__s__ask"), say("done"), person=person)
    assert [event.text for event in of_kind(events, CallProgress)] == ["1 of 2: step 1", "2 of 2: step 2"]
    assert len(of_kind(events, QuestionAsked)) == 3


@pytest.mark.slow
async def test_ten_megabytes_are_cut_for_the_model_and_can_be_read_on(of):
    events = await play(of, call("mcp__s__big"), say("done"))
    (ended,) = of_kind(events, CallEnded)
    assert len(said(ended)) < 13_000
    assert "read_result(ref='r1'" in said(ended)
