"""Subagents: a child loop behind its parent's gate, side by side, one change at a time, counted, stopped, reported."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest

from nbagent.core.agents import AgentSpec
from nbagent.core.drive import drive
from nbagent.core.errors import Rejected
from nbagent.core.events import (
    AgentReported,
    ApprovalAsked,
    CallEnded,
    CallStarted,
    Event,
    Reason,
    RunEnded,
    RunStarted,
    Status,
    innermost,
)
from nbagent.core.events_json import from_json, to_json
from nbagent.core.hooks import NoHooks, Verdict
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import Usage, text_block
from nbagent.core.payloads import HookEvent
from nbagent.core.policy import Mode, Policy
from nbagent.core.ports import Answered, Model
from nbagent.core.run import Agent, Stop
from nbagent.core.session import NoStore, Session
from nbagent.core.subagents import spawn
from nbagent.core.tools import Kind, Toolset, tool
from nbagent.models.scripted import ScriptedModel, Turn, call, say
from nbagent.tools.task import Making, Tasks, task_tool
from tests.core.rig import Person, Ran, Rig, check_transcript, play
from tests.support.turns import until

SPECS = {
    "general-purpose": AgentSpec("general-purpose", "all tools"),
    "Explore": AgentSpec("Explore", "looks", only_looks=True),
    "short": AgentSpec("short", "one turn", max_turns=1),
}


class Team:
    """The rig with a `task` tool: `scripts` are the models of the subagents, in the order in which they begin."""

    def __init__(self, *scripts: Sequence | Model, rig: Rig | None = None, depth: int = 1, specs=SPECS) -> None:
        self.scripts = [s if not isinstance(s, list | tuple) else ScriptedModel(s, "child") for s in scripts]
        self.rig = rig or Rig()
        self.stores: dict[str, NoStore] = {}
        self.sessions: dict[str, Session] = {}
        self.base = self.rig.tools()
        self.specs = specs
        making = Making(
            specs=lambda: self.specs,
            tools=lambda _: self.base.values(),
            model=lambda _spec, _name, _parent: self.scripts.pop(0),
            session=self._session,
        )
        self.tasks = Tasks(making, lambda: ScriptedModel([]), depth=depth)
        self._tools = Toolset([*self.base.values(), task_tool(self.tasks)])

    def _session(self, agent_id: str, spec: AgentSpec, tools, about) -> tuple[Session, str]:
        store = self.stores[agent_id] = NoStore()
        session = Session(agent_id, system=spec.prompt, tools=tools, store=store, about=about)
        self.sessions[agent_id] = session
        return session, f"/s1/agents/{agent_id}.jsonl"

    @property
    def ran(self) -> list[str]:
        return self.rig.ran

    def tools(self) -> Toolset:
        return self._tools

    def session(self, tools: Toolset) -> Session:
        return self.rig.session(tools)

    async def play(self, *turns, **more) -> Ran:
        ran = await play(*turns, rig=self, spawn=spawn, **more)
        for session in self.sessions.values():
            check_transcript(session.transcript)
        return ran


def task(what: str = "look about", agent: str = "general-purpose", **more) -> dict:
    return call("task", description=what, prompt=f"please {what}", agent=agent, **more)


def nested(ran: Ran, kind: type) -> list:
    return [e.event for e in ran.of(AgentReported) if isinstance(e.event, kind)]


async def test_a_task_comes_back_as_the_result_of_its_call():
    team = Team([[call("look", what="a")], "found it in a"])
    ran = await team.play(task("find it"), "done")
    assert "found it in a" in ran.result_texts()[0]
    assert "stop_reason=end_turn, 2 turns" in ran.result_texts()[0]
    assert ran.end.reason == Reason.END_TURN
    assert team.ran == ["look a"]


async def test_a_subagent_has_a_session_of_its_own_with_its_own_prompt_tools_and_transcript():
    specs = {"general-purpose": AgentSpec("general-purpose", "d", "be a child", tools=("look",))}
    team = Team(["ok"], specs=specs)
    ran = await team.play(task("x"), "done")
    (agent_id, session), *others = team.sessions.items()
    assert not others
    assert session.system == "be a child"
    assert [t["name"] for t in session.tools] == ["look"]
    assert session.transcript[0]["content"][-1]["text"].startswith("please x")
    assert all("please x" not in str(m) for m in ran.messages if m["role"] == "user")
    about = team.stores[agent_id].records[0]
    assert (about["agent"], about["parent"]) == ("general-purpose", "s1")


async def test_several_tasks_of_one_reply_run_side_by_side():
    """Seed: "Task Tool: parallel task execution"."""
    met = asyncio.Barrier(2)

    async def meet(call, what: str = "") -> str:
        """Wait for the other."""
        async with asyncio.timeout(10):
            await met.wait()
        return what

    team = Team([[call("meet", what="1")], "one"], [[call("meet", what="2")], "two"])
    team.base = Toolset([*team.base.values(), tool(meet)])
    ran = await team.play([task("a"), task("b")], "done")
    assert "one" in ran.result_texts()[0]
    assert "two" in ran.result_texts()[1]


async def test_looks_before_a_task_run_before_it_and_calls_after_it_after_it():
    team = Team([[call("look", what="child")], "ok"])
    await team.play([call("look", what="1"), task("a"), call("look", what="2")], "done")
    assert team.ran == ["look 1", "look child", "look 2"]


async def test_a_call_after_a_task_is_decided_when_the_task_has_ended():
    order: list[str] = []

    class Watching(Policy):
        async def decide(self, tool, given):
            order.append(f"decide {tool.name}")
            return await super().decide(tool, given)

    team = Team(["ok"])
    base = team.tools()
    agent = Agent(
        ScriptedModel([[task("a"), call("change", what="x")], "done"]),
        base,
        Watching(Mode.BYPASS),
        Person(),
        spawn=spawn,
    )
    async for event in run(agent, team.session(base), [text_block("do")], prompt="do"):
        if isinstance(event, CallEnded):
            order.append(f"ended {event.name}")
    assert order == ["decide task", "ended task", "decide change", "ended change"]


async def test_changes_of_subagents_side_by_side_go_one_after_another():
    inside: list[str] = []
    most: list[int] = []

    async def alone(call, what: str) -> str:
        """Change something slowly."""
        inside.append(what)
        most.append(len(inside))
        for _ in range(5):
            await asyncio.sleep(0)
        inside.remove(what)
        return what

    team = Team([[call("alone", what="1")], "one"], [[call("alone", what="2")], "two"])
    team.base = Toolset([*team.base.values(), tool(kind=Kind.RUN_CELL)(alone)])
    await team.play([task("a"), task("b")], "done", mode=Mode.BYPASS)
    assert most == [1, 1]


async def test_approvals_of_a_subagent_go_to_the_person_with_its_name():
    person = Person(True)
    team = Team([[call("change", what="x = 1")], "ok"])
    ran = await team.play(task("fix it"), "done", person=person)
    assert person.asked[0].agent == "general-purpose (fix it)"
    (asked,) = nested(ran, ApprovalAsked)
    assert (asked.approval["hash"], asked.approval["agent"]) == (person.asked[0].hash, person.asked[0].agent)
    assert team.ran == ["change x = 1"]


async def test_a_change_that_waited_for_another_subagents_is_decided_anew():
    """What was allowed when it was decided may be another thing after what ran meanwhile."""
    first, second = asyncio.Event(), []

    async def slow(call, what: str) -> str:
        """Change something while the other waits."""
        if what == "1":
            await first.wait()
        return what

    def kind(given: dict) -> Kind:
        second.append(given["what"])
        if given["what"] == "2" and second.count("2") == 1:
            asyncio.get_running_loop().call_soon(first.set)
        return Kind.PROTECTED if second.count("2") > 1 and given["what"] == "2" else Kind.RUN_CELL

    team = Team([[call("slow", what="1")], "one"], [[call("slow", what="2")], "two"])
    team.base = Toolset([*team.base.values(), tool(kind=kind)(slow)])
    ran = await team.play([task("a"), task("b")], "done", mode=Mode.BYPASS)
    ends = {str(e.content): e.status for e in nested(ran, CallEnded)}
    assert sorted(map(str, ends.values())) == ["denied", "ok"]
    assert any("another subagent" in text for text in ends)


async def test_a_bare_deny_of_a_subagents_call_ends_the_run():
    team = Team([[call("change", what="x")]])
    ran = await team.play([task("a")], person=Person(False))
    assert ran.end.reason == Reason.DENIED
    assert team.ran == []


async def test_a_deny_with_words_is_told_to_the_subagent_and_it_goes_on():
    team = Team([[call("change", what="x")], "then not"])
    ran = await team.play(task("a"), "done", person=Person(Answered(False, words="not that")))
    assert "then not" in ran.result_texts()[0]
    assert "not that" in str(next(iter(team.sessions.values())).transcript[2])


async def test_where_nobody_is_there_a_subagent_is_denied_like_its_parent():
    person = Person(Answered(False, words="nobody is there", by="policy"), present=False)
    team = Team([[call("change", what="x")], "could not"])
    ran = await team.play(task("a"), "done", person=person)
    assert team.ran == []
    assert ran.end.reason == Reason.END_TURN


async def test_a_kind_that_only_looks_changes_nothing_even_in_bypass():
    """Seed: "Explore Subagent: read-only", "Plan Subagent: read-only"."""
    team = Team([[call("change", what="x")], "no"])
    await team.play(task("a", agent="Explore"), "done", mode=Mode.BYPASS)
    assert team.ran == []


async def test_a_parent_in_plan_mode_has_children_in_plan_mode():
    team = Team([[call("change", what="x")], "no"])
    await team.play(task("a"), "done", mode=Mode.PLAN)
    assert team.ran == []


# ── how far it may go ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_max_turns_is_per_task_and_the_subagent_says_what_is_done_and_left():
    """Seed: "Setting max_turns per task type"; "check the final stop_reason and implement a fallback path"."""
    team = Team([[call("look", what="a")], "done: a. left: b"])
    ran = await team.play(task("a", agent="short"), "done")
    text = ran.result_texts()[0]
    assert text.startswith("NOT FINISHED (max_turns)")
    assert "done: a. left: b" in text
    assert "stop_reason=max_turns, 1 turns" in text
    assert ran.end.reason == Reason.END_TURN
    (ended,) = nested(ran, RunEnded)
    assert ended.reason == Reason.MAX_TURNS


async def test_a_summary_at_the_limit_runs_no_call():
    team = Team([[call("look", what="a")], [say("left: b"), call("look", what="b")]])
    ran = await team.play(task("a", agent="short"), "done")
    assert team.ran == ["look a"]
    assert "left: b" in ran.result_texts()[0]


@pytest.mark.parametrize(("how", "turns"), [("quick", 5), ("medium", 25), ("very thorough", 50)])
async def test_the_limit_of_turns_follows_the_thoroughness(how: str, turns: int):
    """Seed: the table of max_turns: a lookup 5, research 20 to 30, autonomous 50."""
    team = Team(["ok"])
    ran = await team.play(task("a", thoroughness=how), "done")
    assert nested(ran, RunStarted)[0].max_turns == turns


async def test_a_failing_model_comes_back_as_an_error_that_says_so():
    team = Team([[call("look", what="a")], Rejected("the server says no")])
    ran = await team.play(task("a"), "done")
    assert ran.last_results()[0]["is_error"]
    assert "the server says no" in ran.result_texts()[0]
    assert ran.end.reason == Reason.END_TURN


async def test_an_unknown_kind_is_answered_with_those_that_there_are():
    team = Team()
    ran = await team.play(task("a", agent="explore"), "done")
    assert "Did you mean Explore?" in ran.result_texts()[0]


async def test_a_subagent_has_no_subagents_unless_the_depth_allows_it():
    """Seed: "depth=1 sub-agents"."""
    team = Team([[task("deeper")], "no"])
    ran = await team.play(task("a"), "done")
    assert "There is no tool 'task'" in str(next(iter(team.sessions.values())).transcript[2])
    team = Team([[task("deeper")], "middle"], [[call("look", what="deep")], "deep"], depth=2)
    ran = await team.play(task("a"), "done")
    assert team.ran == ["look deep"]
    assert any(isinstance(innermost(e), CallStarted) and innermost(e).name == "look" for e in ran.events)


# ── what it costs ────────────────────────────────────────────────────────────────────────────────────────────────────


def used(text: str, tokens: int) -> Turn:
    return Turn(text, usage=Usage(input=tokens))


async def test_tokens_of_subagents_count_in_the_run_above_and_in_its_session():
    team = Team([used("one", 100)], [used("two", 1000)])
    ran = await team.play([task("a"), task("b")], used("done", 10))
    assert ran.end.usage.total >= 1110
    assert ran.session.usage.total == ran.end.usage.total
    assert {e.usage.total for e in nested(ran, RunEnded)} == {100, 1000}


async def test_the_budget_of_the_run_stops_its_subagents():
    spends = Turn([call("count")], usage=Usage(input=600))
    team = Team([spends, spends, spends, "never"])
    ran = await team.play(task("a"), "done", limits=Limits(tokens=1000))
    assert len(team.ran) == 2
    assert "NOT FINISHED (budget)" in ran.result_texts()[0]
    assert ran.end.reason == Reason.BUDGET


# ── how it is stopped ────────────────────────────────────────────────────────────────────────────────────────────────


async def driven(team: Team, stop: Stop, *turns, seconds: float | None = None) -> tuple[RunEnded, list[Event], Session]:
    tools = team.tools()
    agent = Agent(ScriptedModel(turns), tools, Policy(Mode.BYPASS), Person(), Limits(seconds=seconds), spawn=spawn)
    session, events = team.session(tools), []
    events_of = run(agent, session, [text_block("do it")], prompt="do it", stop=stop)
    ended = await drive(events_of, events.append, agent=agent, session=session, stop=stop)
    check_transcript(session.transcript)
    for child in team.sessions.values():
        check_transcript(child.transcript)
    return ended, events, session


async def stopped(act: Callable[[Stop], None], *after, scripts: tuple | None = None) -> tuple:
    scripts = scripts or ([[call("hang")], "after"],)
    team, stop = Team(*scripts), Stop()
    calls = [task(str(n)) for n in range(len(scripts))]
    going = asyncio.create_task(driven(team, stop, calls, *after))
    async with asyncio.timeout(10):
        await team.rig.hanging.wait()
        act(stop)
        return (*await going, team)


async def test_stop_ends_a_subagent_at_once_and_both_transcripts_are_whole():
    ended, _, session, team = await stopped(lambda stop: stop.now())
    assert ended.reason == Reason.INTERRUPTED
    assert "Interrupted" in str(next(iter(team.sessions.values())).transcript[-1])
    assert "Interrupted" in str(session.transcript[-1])


async def test_a_stop_between_two_calls_reaches_a_subagent():
    team, stop = Team([[call("look", what="1"), call("change", what="2")], "never"]), Stop()

    async def look(call, what: str = "") -> str:
        """Look, and be stopped meanwhile."""
        stop.ask()
        return what

    team.base = Toolset([tool(look), *(t for t in team.base.values() if t.name != "look")])
    ended, _, _ = await driven(team, stop, [task("a")], "never")
    assert team.ran == []
    assert ended.reason == Reason.INTERRUPTED


async def test_the_time_limit_reaches_a_subagent():
    team = Team([[call("hang")]])
    ended, _, _ = await driven(team, Stop(), [task("a")], seconds=0.05)
    assert ended.reason == Reason.TIMEOUT


async def test_interrupting_what_a_subagent_runs_lets_it_go_on():
    ended, _, _, team = await stopped(lambda stop: stop.spare(), "done")
    assert ended.reason == Reason.END_TURN
    assert "interrupted this call" in str(next(iter(team.sessions.values())).transcript[2])


async def test_interrupting_a_subagent_that_thinks_lets_the_run_go_on_with_what_it_had_done():
    thinking = asyncio.Event()

    class Slow(ScriptedModel):
        async def stream(self, request):
            if self.played == 1:
                thinking.set()
                await asyncio.Event().wait()
            async for event in super().stream(request):
                yield event

    team, stop = Team(Slow([[say("looked at a"), call("look", what="a")], "never"])), Stop()
    going = asyncio.create_task(driven(team, stop, [task("a")], "done"))
    async with asyncio.timeout(10):
        await thinking.wait()
        stop.spare()
        ended, events, _ = await going
    assert ended.reason == Reason.END_TURN
    (result,) = [e for e in events if isinstance(e, CallEnded)]
    assert result.status is Status.ERROR
    assert "looked at a" in str(result.content)


async def test_every_subagent_ends_with_one_end_whatever_stops_it():
    _, events, _, _ = await stopped(lambda stop: stop.spare(), "done", scripts=([[call("hang")], "x"], ["y"]))
    ends = [e.agent_id for e in events if isinstance(e, AgentReported) and isinstance(e.event, RunEnded)]
    assert len(ends) == len(set(ends)) == 2


# ── hooks, ids, logs ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_hooks_hear_of_the_start_and_the_end_of_a_subagent_and_may_keep_it_going():
    hooks = NoHooks({HookEvent.SUBAGENT_START: Verdict(context=("begin well",)), HookEvent.SUBAGENT_STOP: Verdict()})
    team = Team(["ok"])
    await team.play(task("a", agent="Explore"), "done", hooks=hooks)
    start, stop = hooks.fired
    (agent_id,) = team.sessions
    assert (start.agent_id, start.agent_type) == (agent_id, "Explore")
    assert stop.agent_transcript_path == f"/s1/agents/{agent_id}.jsonl"
    assert stop.last_assistant_message == "ok"
    assert "begin well" in str(team.sessions[agent_id].transcript[0])


async def test_hooks_within_a_subagent_are_told_the_session_of_the_person_and_the_agent():
    told = []

    class Listening(NoHooks):
        async def fire(self, payload, where, report):
            told.append(where)
            return Verdict()

    team = Team([[call("look", what="a")], "ok"])
    await team.play(task("a"), "done", hooks=Listening({HookEvent.PRE_TOOL_USE: Verdict()}))
    of_task, of_look = told
    assert (of_task.session_id, of_task.agent_id) == ("s1", "")
    assert (of_look.session_id, of_look.agent_id) == ("s1", next(iter(team.sessions)))


async def test_two_subagents_whose_server_gives_the_same_ids_get_different_ones():
    same = {"type": "tool_use", "id": "call_0", "name": "look", "input": {"what": "a"}}
    team = Team([[same], "one"], [[same], "two"])
    ran = await team.play([task("a"), task("b")], "done")
    ids = [e.call_id for e in nested(ran, CallStarted)]
    assert len(ids) == len(set(ids)) == 2


async def test_every_event_of_a_subagent_comes_back_from_json_and_the_log_has_no_pieces_of_text():
    team = Team([[call("change", what="x")], "ok"])
    ran = await team.play(task("a"), "done", person=Person(True))
    for event in ran.events:
        back = from_json(json.loads(json.dumps(to_json(event))))
        assert json.dumps(to_json(back)) == json.dumps(to_json(event))
        ran.session.log(event)
    logged = [r["event"] for r in team.rig.store.records if r["type"] == "event"]
    inner = [e["event"] for e in logged if e["type"] == "agent_reported"]
    assert {"run_started", "call_started", "run_ended"} <= {e["type"] for e in inner}
    assert not {"text_delta", "input_delta"} & {e["type"] for e in inner}
    assert all("new" not in e for e in inner)


async def test_no_more_than_so_many_subagents_run_at_a_time():
    going: list[int] = []
    now = [0]

    class Counting(ScriptedModel):
        async def stream(self, request):
            now[0] += 1
            going.append(now[0])
            async for event in super().stream(request):
                yield event
            now[0] -= 1

    team = Team(*(Counting(["ok"]) for _ in range(4)))
    team.tasks._places = asyncio.Semaphore(2)
    await team.play([task(str(n)) for n in range(4)], "done")
    assert max(going) == 2


async def test_a_subagents_answer_waits_for_nobody_else():
    team = Team(["quick"], [[call("hang")], "slow"])
    stop = Stop()
    going = asyncio.create_task(driven(team, stop, [task("a"), task("b")], "done"))
    async with asyncio.timeout(10):
        await team.rig.hanging.wait()
        await until(lambda: len(team.sessions) == 2)
        stop.spare()
        ended, events, _ = await going
    first = next(e for e in events if isinstance(e, CallEnded))
    assert "quick" in str(first.content)
    assert ended.reason == Reason.END_TURN
