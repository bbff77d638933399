"""Seed “async generator”: what the loop gains by being one, row by row of its comparison."""

from __future__ import annotations

import inspect
import sys
import traceback
from contextlib import aclosing

import pytest

from nbagent.core.events import CallEnded, CallStarted, Reason, ReplyEnded, TextDelta
from nbagent.core.limits import Limits
from nbagent.core.loop import observe, run
from nbagent.core.messages import text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.run import Agent
from nbagent.core.think import think
from nbagent.models.scripted import ScriptedModel, call
from tests.core.rig import Person, play
from tests.seeds.bench import Bench
from tests.support.turns import turns


def opened(bench: Bench, model: ScriptedModel, **limits):
    tools = bench.tools()
    agent = Agent(model, tools, Policy(Mode.BYPASS), Person(present=False), Limits(**limits))
    return run(agent, bench.session(tools), [text_block("go")])


def test_it_is_an_async_generator_and_composed_of_generators():
    assert all(inspect.isasyncgenfunction(function) for function in (run, think, observe))


async def test_backpressure_nothing_happens_while_the_consumer_does_not_take_the_next_event(tmp_path):
    model = ScriptedModel([[call("write_file", path="a.txt", content="a")], "done"])
    async with aclosing(opened(Bench(tmp_path), model)) as events:
        async for event in events:
            if isinstance(event, ReplyEnded):
                break
        await turns(200)
        assert not (tmp_path / "a.txt").exists(), "it stands still"
        assert model.played == 1
        rest = [event async for event in events]
    assert (tmp_path / "a.txt").exists(), "and goes on where it stood"
    assert rest[-1].reason is Reason.END_TURN


async def test_observable_each_step_is_yielded_when_it_happens_and_not_at_the_end(tmp_path):
    seen = []
    model = ScriptedModel([[call("glob", pattern="*")], "one two"])
    async with aclosing(opened(Bench(tmp_path), model)) as events:
        async for event in events:
            seen.append((type(event), model.played))
    assert seen.index((CallStarted, 1)) < seen.index((CallEnded, 1)) < seen.index((TextDelta, 2))


@pytest.mark.slow
async def test_no_stack_grows_with_the_turns(tmp_path):
    depths = []

    def deep(n):
        def turn(_):
            depths.append(sum(1 for _ in traceback.walk_stack(None)))
            return [call("glob", pattern=f"*.{n}")]

        return turn

    count = sys.getrecursionlimit() // 4
    model = ScriptedModel([deep(n) for n in range(count)])
    async with aclosing(opened(Bench(tmp_path), model, max_turns=count)) as events:
        last = [event async for event in events][-1]
    assert last.turns == count
    assert max(depths[1:]) == min(depths[1:])


async def test_errors_are_yielded_as_events_and_results_and_never_swallowed(tmp_path):
    ran = await play([call("read_file", path="none.txt")], rig=Bench(tmp_path))
    failed = ran.of(CallEnded)[0]
    assert failed.status == "error"
    assert ran.end.reason is Reason.ERROR, "the script is over: that, too, is said"
    assert ran.end.sentence


async def test_events_are_frozen_and_tagged(tmp_path):
    ran = await play("hello", rig=Bench(tmp_path))
    assert all(event.type and type(event).__dataclass_params__.frozen for event in ran.events)
