"""Plan mode: nothing is changed before the person agrees to a plan, and they choose how it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import pytest

from nbagent.core.events import ApprovalAsked, CallEnded, ModeChanged, Reason, Status
from nbagent.core.loop import run
from nbagent.core.messages import text_block
from nbagent.core.policy import Mode, Policy, Rule
from nbagent.core.ports import Answered
from nbagent.core.run import Agent
from nbagent.core.session import Session
from nbagent.core.subagents import spawn
from nbagent.core.tools import Call, Toolset
from nbagent.models.scripted import ScriptedModel, call
from nbagent.tools.plan import ALL, ASK, EDITS, Planning, tools
from tests.core.rig import Person, Ran, Rig, check_transcript, play
from tests.core.test_subagents import Team, task


class Planner(Rig):
    """The rig with plan mode's tools; `left` are the plans that went into the notebook."""

    def __init__(self, gate: Policy, *, present: bool = True) -> None:
        super().__init__()
        self.left: list[str] = []
        self.gate, self._present = gate, present

    def tools(self) -> Toolset:
        planning = Planning(lambda: self.gate, lambda: self._present, self._leave)
        return Toolset([*super().tools().values(), *tools(planning)])

    async def _leave(self, _: Call, text: str) -> str:
        self.left.append(text)
        return "It stands in cell c9."


async def planned(
    *turns: object,
    mode: Mode = Mode.PLAN,
    person: Person | None = None,
    rules: Sequence[str] = (),
    present: bool = True,
) -> tuple[Ran, Planner]:
    gate = Policy(mode, tuple(Rule.parse(*text.split(" ", 1)) for text in rules))
    rig = Planner(gate, present=present)
    made = rig.tools()
    model = ScriptedModel(turns)
    agent = Agent(model, made, gate, person or Person())
    session: Session = rig.session(made)
    async with aclosing(run(agent, session, [text_block("do it")], prompt="do it")) as stream:
        events = [event async for event in stream]
    check_transcript(session.transcript)
    return Ran(events, session, model, rig), rig


PLAN = call("exit_plan", plan="1. change x")
CHANGE = call("change", what="x")


async def test_before_a_plan_is_agreed_to_nothing_is_changed_and_afterwards_it_is_carried_out():
    person = Person(True, True, replies=[ASK])
    ran, rig = await planned([CHANGE], [PLAN], [CHANGE], "done", person=person)
    assert [e.status for e in ran.of(CallEnded)] == [Status.DENIED, Status.OK, Status.OK]
    assert [e.mode for e in ran.of(ModeChanged)] == ["default"]
    assert rig.ran == ["change x"]
    assert "The mode is now default" in ran.result_texts()[1]


async def test_the_plan_is_shown_as_markdown_that_can_be_edited_and_no_rule_is_offered():
    person = Person(True, replies=[ASK])
    ran, _ = await planned([PLAN], "done", person=person)
    (asked,) = person.asked
    assert (asked.preview.kind, asked.preview.body, asked.editable, asked.offers) == (
        "markdown",
        "1. change x",
        True,
        (),
    )
    assert len(ran.of(ApprovalAsked)) == 1


async def test_a_plan_that_the_person_changed_is_the_plan():
    person = Person(Answered(True, edited="1. change y"), replies=[EDITS])
    ran, rig = await planned([PLAN], "done", person=person)
    assert rig.left == ["1. change y"]
    assert "1. change y" in ran.result_texts()[0]


async def test_feedback_keeps_the_mode_and_reaches_the_model():
    person = Person(Answered(False, words="think of the nulls"), True, replies=[ASK])
    ran, rig = await planned([PLAN], [CHANGE], [call("exit_plan", plan="better")], "done", person=person)
    assert "think of the nulls" in ran.result_texts()[0]
    assert rig.ran == []
    assert rig.left == ["better"]


async def test_a_bare_no_ends_the_run():
    ran, rig = await planned([PLAN], person=Person(False))
    assert ran.end.reason == Reason.DENIED
    assert rig.gate.mode is Mode.PLAN


@pytest.mark.parametrize(
    ("choice", "mode"), [(ASK, "default"), (EDITS, "accept-edits"), ("", "default"), ("slowly", "default")]
)
async def test_the_person_chooses_the_mode_that_it_goes_on_in(choice: str, mode: str):
    ran, rig = await planned([PLAN], "done", person=Person(True, replies=[choice]))
    assert str(rig.gate.mode) == mode
    assert ("They say: slowly" in ran.result_texts()[0]) == (choice == "slowly")


async def test_only_what_was_there_before_may_come_back_as_all_without_asking():
    _, rig = await planned([PLAN], "done", person=Person(True, replies=[ALL]))
    assert rig.gate.mode is Mode.DEFAULT
    turns = ([call("enter_plan")], [PLAN], "done")
    _, rig = await planned(*turns, mode=Mode.BYPASS, person=Person(True, replies=[ALL]))
    assert rig.gate.mode is Mode.BYPASS


@pytest.mark.parametrize("rules", [["allow exit_plan"], ["allow *"]])
async def test_no_rule_agrees_to_a_plan(rules: list[str]):
    person = Person(Answered(False, words="no"))
    _, rig = await planned([PLAN], "done", person=person, rules=rules)
    assert rig.gate.mode is Mode.PLAN


async def test_the_model_may_begin_to_plan_and_then_only_looks():
    ran, rig = await planned([call("enter_plan")], [CHANGE], "done", mode=Mode.BYPASS)
    assert rig.ran == []
    assert [e.mode for e in ran.of(ModeChanged)] == ["plan"]


@pytest.mark.parametrize(("mode", "present"), [(Mode.DEFAULT, False), (Mode.DONT_ASK, True), (Mode.READ_ONLY, True)])
async def test_where_nobody_could_agree_to_a_plan_plan_mode_does_not_begin(mode: Mode, present: bool):
    ran, rig = await planned([call("enter_plan")], "done", mode=mode, present=present)
    assert rig.gate.mode is mode
    assert "nobody can agree" in ran.result_texts()[0]


async def test_outside_of_plan_mode_a_plan_asks_nobody():
    ran, _ = await planned([PLAN], "done", mode=Mode.DEFAULT)
    assert "not in plan mode" in ran.result_texts()[0]
    assert ran.of(ApprovalAsked) == []


async def test_subagents_have_no_plan_mode_of_their_own():
    team = Team([[PLAN], "ok"])
    gate = Policy(Mode.PLAN)
    planning = tools(Planning(lambda: gate, lambda: True))
    team.base = Toolset([*team.base.values(), *planning])
    await play(task("a"), "done", rig=team, spawn=spawn, mode=Mode.PLAN)
    assert "There is no tool 'exit_plan'" in str(next(iter(team.sessions.values())).transcript[2])
