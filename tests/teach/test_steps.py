"""Where a stepped run rests, and that pacing loses nothing, keeps the order, and always ends."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core import events as ev
from nbagent.core.drive import drive
from nbagent.core.errors import ConfigError
from nbagent.core.event import Event, Reason, State
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import Usage, text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.run import Agent, Stop
from nbagent.core.timelimit import TimeLimit
from nbagent.models.scripted import Scripted, ScriptedModel, call
from nbagent.teach.pacer import Pacer
from nbagent.teach.steps import Until, Walk, breaks_of, is_step, rests, walk
from tests.core.rig import Person, Rig

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

BOUND = 20.0


def _made(kind: type[Event], state: State, turn: int, **fields: object) -> Event:
    return kind(state=state, turn=turn, at=0.0, **fields)


def _of(kind: str, state: State, turn: int) -> Event:
    match kind:
        case "started":
            return _made(ev.ReplyStarted, state, turn, model="m")
        case "delta":
            return _made(ev.TextDelta, state, turn, index=0, text="x")
        case "ended":
            return _made(ev.ReplyEnded, state, turn, content=(), stop_reason="", usage=Usage(), cost=None)
        case "discarded":
            return _made(ev.ReplyDiscarded, state, turn, why="")
        case "call":
            return _made(ev.CallStarted, state, turn, call_id="c", name="look", input={}, title="", preview={})
        case "asked":
            return _made(ev.ApprovalAsked, state, turn, call_id="c", approval={})
        case _:
            return _made(ev.Noted, state, turn, text=kind)


KINDS = ("started", "delta", "ended", "discarded", "call", "asked", "noted")


@st.composite
def histories(draw: Callable) -> list[Event]:
    """Events in any order, some of them of subagents, at any depth."""
    made: list[Event] = []
    for kind, state, turn, agents in draw(
        st.lists(
            st.tuples(
                st.sampled_from(KINDS),
                st.sampled_from(State),
                st.integers(0, 3),
                st.lists(st.sampled_from("ab"), max_size=2),
            ),
            max_size=25,
        )
    ):
        event = _of(kind, state, turn)
        for agent in agents:
            event = _made(ev.AgentReported, state, turn, call_id="c", agent_id=agent, agent="x", title="", event=event)
        made.append(event)
    return made


async def _source(events: Sequence[Event], pulled: list[Event]) -> AsyncGenerator[Event]:
    for event in events:
        pulled.append(event)
        yield event


BREAKS = st.sampled_from(["", "act", "text_delta", "tool:lo*", "think,call_started,tool:other"])


@given(histories(), BREAKS, st.sampled_from(Until), st.randoms(use_true_random=False))
def test_no_event_is_lost_the_order_is_kept_and_nothing_is_pulled_ahead(events, breaks, until, random):
    pulled: list[Event] = []
    handed: list[Event] = []
    places: list[str] = []

    async def hand(pacer: Pacer) -> None:
        assert pulled == handed, "the next event is not pulled before the one at hand was let go"
        places.append(pacer.resting)
        random.choice([pacer.next, pacer.next_turn, pacer.play, lambda: (pacer.back(), pacer.next(), pacer.next())])()

    async def consume() -> Pacer:
        pacer = Pacer(hand, until=until, breaks=breaks_of(breaks))
        async with aclosing(pacer.events(_source(events, pulled))) as paced:
            async for event in paced:
                handed.append(event)
        return pacer

    pacer = asyncio.run(asyncio.wait_for(consume(), BOUND))
    assert handed == events
    assert pacer.seen == [event for event in events if is_step(event)]


@given(histories(), BREAKS, st.sampled_from(Until))
def test_it_never_rests_inside_a_reply_nor_where_a_person_is_asked(events, breaks, until):
    now, open_replies = Walk(), set()
    for event in events:
        now = walk(now, event, breaks_of(breaks))
        path, inner = [], event
        while isinstance(inner, ev.AgentReported):
            path.append(inner.agent_id)
            inner = inner.event
        if isinstance(inner, ev.ReplyStarted):
            open_replies.add(tuple(path))
        elif isinstance(inner, ev.ReplyEnded | ev.ReplyDiscarded):
            open_replies.discard(tuple(path))
        if open_replies or isinstance(inner, ev.TextDelta | ev.ApprovalAsked):
            assert rests(now, until, -1) == ""
        elif until is Until.EVENT:
            assert rests(now, until, -1) != ""


def test_a_breakpoint_inside_a_reply_rests_at_its_end():
    breaks, now, found = breaks_of("text_delta"), Walk(), []
    for kind in ("noted", "started", "delta", "ended", "noted"):
        now = walk(now, _of(kind, State.THINK, 1), breaks)
        found.append(rests(now, Until.PLAY, 0))
    assert found == ["", "", "", "breakpoint text_delta", ""]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("acct", "Did you mean act?"),
        ("tool_started", "Did you mean call_started?"),
        ("tool:", "tool:NAME"),
        ("42", "is no breakpoint"),
    ],
)
def test_what_is_no_breakpoint_is_named_with_the_nearest_spelling(text, said):
    with pytest.raises(ConfigError, match="is no breakpoint") as caught:
        breaks_of(text)
    assert said in str(caught.value)


def _agent(rig: Rig, *script: Scripted, seconds: float | None = None) -> tuple[Agent, Stop]:
    agent = Agent(ScriptedModel(list(script)), rig.tools(), Policy(Mode.DEFAULT), Person(True), Limits(seconds=seconds))
    return agent, Stop()


async def _driven(
    rig: Rig, pacer_of: Callable[[Stop, TimeLimit], Pacer], *script: Scripted, seconds: float | None = None
):
    agent, stop = _agent(rig, *script, seconds=seconds)
    session, limit, events = rig.session(agent.tools), TimeLimit(seconds), []
    async with asyncio.timeout(BOUND):
        source = run(agent, session, [text_block("go")], stop=stop)
        wraps = [pacer_of(stop, limit).events]
        ended = await drive(
            source, events.append, agent=agent, session=session, stop=stop, middleware=wraps, limit=limit
        )
    return ended, events


async def test_a_breakpoint_on_a_tool_rests_right_before_it_runs():
    rig, ran, until = Rig(), [], []

    async def hand(pacer: Pacer) -> None:
        ran.append(list(rig.ran))
        until.append((pacer.resting, pacer.seen[-1].type))
        pacer.play()

    ended, _ = await _driven(
        rig, lambda stop, _: Pacer(hand, until=Until.PLAY, breaks=breaks_of("tool:change"), stop=stop),
        [call("look", what="a"), call("change", what="b")], "done",
    )  # fmt: skip
    assert ended.reason is Reason.END_TURN
    assert until == [("breakpoint tool:change", "call_started")]
    assert ran == [["look a"]], "the call before has run, this one has not"
    assert rig.ran == ["look a", "change b"]


async def test_next_turn_rests_at_the_first_event_of_each_turn():
    rests_at = []

    async def hand(pacer: Pacer) -> None:
        rests_at.append((pacer.walk.turn, pacer.seen[-1].type))
        pacer.next_turn()

    await _driven(Rig(), lambda stop, _: Pacer(hand, until=Until.TURN, stop=stop), call("look"), call("count"), "done")
    assert [turn for turn, _ in rests_at] == [1, 2, 3, 3]
    assert rests_at[-1] == (3, "run_ended")


@pytest.mark.parametrize("how", ["now", "ask"])
async def test_a_stop_ends_a_rest_and_the_run(how):
    async def hand(pacer: Pacer) -> None:
        if len(pacer.seen) > 4:
            getattr(stops[0], how)()
            await asyncio.Event().wait()
        pacer.next()

    stops: list[Stop] = []

    def pacer(stop: Stop, _: TimeLimit) -> Pacer:
        stops.append(stop)
        return Pacer(hand, stop=stop)

    ended, events = await _driven(Rig(), pacer, call("look"), "done")
    assert ended.reason is Reason.INTERRUPTED
    assert events[-1] is ended


async def test_the_time_limit_does_not_count_the_time_rested():
    rests_ = 0

    async def hand(pacer: Pacer) -> None:
        nonlocal rests_
        rests_ += 1
        if rests_ == 3:  # longer than the whole limit: a run that counted it would be stopped here
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await pacer.pressed()
        pacer.next()

    ended, _ = await _driven(
        Rig(), lambda stop, limit: Pacer(hand, stop=stop, limit=limit), call("look"), "done", seconds=0.25
    )
    assert ended.reason is Reason.END_TURN
    hung, _ = await _driven(
        Rig(), lambda stop, limit: Pacer(hand, stop=stop, limit=limit), call("hang"), "done", seconds=0.25
    )
    assert hung.reason is Reason.TIMEOUT, "it counts what the run itself takes"


async def test_pause_ends_the_wait_between_two_events_and_back_only_looks():
    paused = []

    def changed(pacer: Pacer) -> None:
        if not paused:
            paused.append(True)
            asyncio.get_running_loop().call_soon(pacer.pause)  # in the minute between the first two events

    async def hand(pacer: Pacer) -> None:
        assert pacer.resting == "one step"
        if len(pacer.seen) == 1:
            pacer.next()
            return
        pacer.back()
        assert (pacer.at, pacer.looks_back) == (1, True)
        pacer.next()
        assert (pacer.at, pacer.looks_back, pacer.was_pressed) == (2, False, False)
        pacer.pace = 0.0
        pacer.play()

    def pacer(stop: Stop, _: TimeLimit) -> Pacer:
        return Pacer(hand, until=Until.PLAY, pace=60.0, stop=stop, changed=changed)

    ended, events = await _driven(Rig(), pacer, call("look"), "done")
    assert paused
    assert ended.reason is Reason.END_TURN
    assert [event.type for event in events][:2] == ["run_started", "request_sent"]
