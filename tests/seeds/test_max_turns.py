"""Seed “master loop”: max_turns by task type, and the fallback path at the limit."""

from __future__ import annotations

import pytest

from nbagent.app.answer import Answer
from nbagent.core.agents import AgentSpec
from nbagent.core.events import AgentReported, Reason, RunEnded
from nbagent.core.limits import PRESETS, Limits
from nbagent.models.scripted import ScriptedModel, call
from tests.core.rig import Person, play
from tests.core.test_subagents import Team, task
from tests.seeds.bench import Bench


def endless() -> ScriptedModel:
    """Looks for another name each time, and never comes to an end."""
    return ScriptedModel([[call("glob", pattern=f"*.{n}")] for n in range(120)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "least", "most"), [("lookup", 5, 5), ("research", 20, 30), ("autonomous", 50, 50)],
    ids=["simple retrieval 5", "research or multi-step coding 20-30", "extended autonomous workflows 50"],
)  # fmt: skip
async def test_the_table_of_task_types(tmp_path, preset, least, most):
    limits = Limits(max_turns=PRESETS[preset])
    ran = await play(model=endless(), rig=Bench(tmp_path), limits=limits, person=Person(present=False))
    assert ran.end.reason is Reason.MAX_TURNS
    assert least <= ran.end.turns <= most


async def test_the_final_stop_reason_is_max_turns_and_there_is_a_fallback(tmp_path):
    ran = await play(model=endless(), rig=Bench(tmp_path), limits=Limits(max_turns=3))
    answer = Answer.of(ran.end, "s1")
    assert answer.stop_reason == "max_turns"
    said = f"{ran.end.sentence} {ran.end.text}"
    assert "glob" in said or "*.2" in said or "done" in said, "what is done"
    assert "go on" in ran.end.next_step.lower() or "continue" in ran.end.next_step.lower()


async def test_the_run_can_be_continued_from_where_it_stopped(tmp_path):
    bench = Bench(tmp_path)
    first = await play(model=endless(), rig=bench, limits=Limits(max_turns=2))
    then = await play("Here is the rest.", rig=bench, session=first.session)
    assert then.end.reason is Reason.END_TURN
    assert len(then.messages) > 5, "the same conversation"


async def test_a_slow_task_does_not_use_up_the_turns_of_others():
    specs = {name: AgentSpec(name, "d", max_turns=most) for name, most in (("quick", 2), ("nightly", 50))}
    slow, done = [[call("count")] for _ in range(9)], "left: the rest"
    team = Team([*slow[:2], done], [*slow, "all of it"], specs=specs)
    ran = await team.play([task("a", "quick"), task("b", "nightly")], "done", limits=Limits(max_turns=2))
    ends = [e.event for e in ran.of(AgentReported) if isinstance(e.event, RunEnded)]
    assert sorted((end.reason, end.turns) for end in ends) == [(Reason.END_TURN, 10), (Reason.MAX_TURNS, 2)]
    assert (ran.end.reason, ran.end.turns) == (Reason.END_TURN, 2), "turns of subagents are their own"
