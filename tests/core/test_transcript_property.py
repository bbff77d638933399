"""Whatever a model sends and wherever a run is stopped, the transcript is valid and no call runs twice."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.errors import ContextFull, Rejected, Transient
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import Usage, text_block
from nbagent.core.policy import Policy
from nbagent.core.ports import Answered
from nbagent.core.run import Agent
from nbagent.core.session import Session
from nbagent.core.summary import Compaction
from nbagent.models.scripted import ScriptedModel, Turn, call, say, think
from tests.core.rig import Person, Rig, check_transcript

calls = st.sampled_from(["look", "change", "fail", "crash", "count", "invented"]).map(lambda name: ("call", name))
blocks = st.one_of(calls, st.just(("text", "words")), st.just(("text", " ")), st.just(("thinking", "hm")))
stops = st.sampled_from([None, "end_turn", "max_tokens", "tool_use", "pause_turn", "refusal", "odd", "stop_sequence",
                         "model_context_window_exceeded"])  # fmt: skip
turns = st.one_of(
    st.tuples(
        st.lists(blocks, max_size=4), stops, st.one_of(st.none(), st.integers(0, 6)), st.sampled_from([0, 100, 900])
    ),
    st.sampled_from(["transient", "rejected", "full"]),
)
answers = st.sampled_from([Answered(True), Answered(False), Answered(False, words="no"), Answered(True, rule="change")])


def _block(spec):
    kind, value = spec
    if kind == "call":
        return call(value, **({"what": "x"} if value in {"look", "change"} else {}))
    return say(value) if kind == "text" else think(value)


def _turn(spec):
    if spec == "transient":
        return Transient("overloaded")
    if spec == "rejected":
        return Rejected("no")
    if spec == "full":
        return ContextFull("full")
    content, stop_reason, cut, tokens = spec
    return Turn([_block(b) for b in content], stop_reason=stop_reason, cut=cut, usage=Usage(input=tokens))


@pytest.mark.slow
@settings(max_examples=5 * settings.default.max_examples)  # 500 in CI
@given(
    script=st.lists(turns, max_size=6),
    given_answers=st.lists(answers, min_size=30, max_size=30),
    close_after=st.one_of(st.none(), st.integers(0, 60)),
    window=st.sampled_from([None, 1_000]),
)
def test_any_replies_any_answers_closed_anywhere_leave_a_valid_transcript(script, given_answers, close_after, window):
    """Also where it is summed up on the way: of each session that was begun, no call is parted from its result."""
    rig = Rig()

    async def go() -> list[Session]:
        tools = rig.tools()
        sessions = [rig.session(tools)]
        compaction = Compaction(window=lambda _: window, moved=sessions.append)
        model = ScriptedModel([_turn(spec) for spec in script])
        person = Person(*given_answers, replies=["Go on"] * 30)
        agent = Agent(model, tools, Policy(), person, Limits(max_turns=8, longest_wait=0.0), compaction=compaction)
        seen = 0
        async with aclosing(run(agent, sessions[0], [text_block("x")])) as events:
            async for _ in events:
                seen += 1
                if close_after is not None and seen > close_after:
                    break
        return sessions

    sessions = {id(session): session for session in asyncio.run(go())}.values()
    for session in sessions:
        check_transcript(session.transcript)
    messages = [message for session in sessions for message in session.transcript]
    asked = [
        b
        for m in messages
        for b in m["content"]
        if b["type"] == "tool_use" and b["name"] in {"look", "change", "count"}
    ]
    assert len(rig.ran) <= len(asked)
