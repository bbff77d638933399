"""A lead's side of a team: what teammates ask comes to the person, one budget, a teammate that dies, the person's yes."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from nbagent.app.jobs import Job, Outcome
from nbagent.app.team import _granted, _texts
from nbagent.app.teamcrew import Crew
from nbagent.app.teamlead import Lead
from nbagent.app.teammeter import less
from nbagent.app.teamplan import TeamPlan
from nbagent.app.teamtools import Desk
from nbagent.config import Settings
from nbagent.core.board import LEAD, Board
from nbagent.core.board_values import Member
from nbagent.core.errors import ToolError
from nbagent.core.events import ApprovalAnswered, ApprovalAsked, CallEnded, Event, Status, TeamChanged
from nbagent.core.limits import Limits
from nbagent.core.messages import Usage
from nbagent.core.policy import Mode, Policy, Rule
from nbagent.core.ports import Answered, Approval, Preview
from nbagent.core.rules import Source
from nbagent.core.run import Agent
from nbagent.core.seat import Seat, Shared
from nbagent.core.session import NoStore, Session
from nbagent.core.tools import Toolset
from nbagent.extend.board_store import StoreError
from nbagent.headless.admission import Spending
from nbagent.models.scripted import ScriptedModel
from tests.core.rig import Person
from tests.core.team_rig import MemoryBoards
from tests.support.turns import until

PLAN = TeamPlan.of("go", 2)


class Slots(Executor):
    """An executor whose jobs end when a test says so."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]


def boards_of() -> MemoryBoards:
    boards = MemoryBoards()
    members = (Member(LEAD), Member("ada", state="working"), Member("ben", state="working"))
    boards.board = Board(members=members).create("one").claim("ada", 0, 60)
    return boards


async def _nobody(*_: object) -> Any:
    return ""


def crew_of(boards: MemoryBoards, slots: Executor) -> Crew:
    return Crew(lambda name, number: Job(f"{name}-{number}", "go", "/"), Seat(boards, LEAD), limits=Limits(), ask=_nobody,
                question=_nobody, executor=slots)  # fmt: skip


@dataclass
class Seen:
    lead: Lead
    events: list[Event]


def lead_of(person: Person) -> Seen:
    events: list[Event] = []
    boards = boards_of()
    lead = Lead(PLAN, Desk(Seat(boards, LEAD), None, _NoOthers()), None, lambda *_: crew_of(boards, Slots()))
    agent = Agent(ScriptedModel([]), Toolset(), Policy(), person)
    lead.joined(agent, events.append, Session("s", system="", tools=(), store=NoStore()))
    return Seen(lead, events)


async def test_a_board_that_can_t_be_read_for_a_moment_is_watched_on() -> None:
    seen = lead_of(Person(Answered(True)))
    seen.lead.desk.seat.boards = boards = _AwayOnce(seen.lead.desk.seat.boards)
    await boards.change(lambda board: board.create("two"))
    watching = asyncio.create_task(seen.lead._watch())
    await until(lambda: any(isinstance(one, TeamChanged) for one in seen.events))
    watching.cancel()
    assert boards.away == 1


class _AwayOnce:
    """A board that can't be reached when it is looked at for the first time."""

    def __init__(self, boards: Shared) -> None:
        self._boards = boards
        self.read, self.change, self.free = boards.read, boards.change, boards.free
        self.away = 0

    async def changed(self, since: int, timeout: float) -> Board:
        if not self.away:
            self.away += 1
            raise StoreError("the disk is away")
        return await self._boards.changed(since, timeout)


class _NoOthers:
    def start(self, name: str) -> None:
        raise AssertionError(name)


ASKED = Approval(
    "c1",
    "shell",
    "run ls",
    {"command": "ls"},
    Preview("command", "ls", effects=("lists",)),
    "in mode default",
    ("shell(ls)",),
)


async def test_what_a_teammate_asks_is_shown_under_its_name_and_answered_by_the_person() -> None:
    person = Person(Answered(True, rule="shell(ls)"))
    seen = lead_of(person)
    answered = await seen.lead.ask("ada", ASKED.to_json())
    assert (answered.approved, answered.rule) == (True, "shell(ls)")
    (shown,) = person.asked
    assert (shown.agent, shown.call_id, shown.preview, shown.offers) == ("ada", "ada-c1", ASKED.preview, ASKED.offers)
    assert [type(one) for one in seen.events] == [ApprovalAsked, ApprovalAnswered, CallEnded]
    asked = seen.events[0]
    assert isinstance(asked, ApprovalAsked)
    assert asked.approval["hash"] == shown.hash, "what is shown is what is answered"


async def test_two_teammates_may_ask_at_once_and_each_has_its_own_answer() -> None:
    person = Person(Answered(True), Answered(False, words="not that"))
    seen = lead_of(person)
    one, two = await asyncio.gather(seen.lead.ask("ada", ASKED.to_json()), seen.lead.ask("ben", ASKED.to_json()))
    assert (one.approved, two.approved, two.words) == (True, False, "not that")
    ends = [one for one in seen.events if isinstance(one, CallEnded)]
    assert {one.call_id: one.status for one in ends} == {"ada-c1": Status.OK, "ben-c1": Status.DENIED}


async def test_where_nobody_is_there_a_teammate_is_denied_and_nothing_is_shown() -> None:
    seen = lead_of(Person(present=False))
    assert not (await seen.lead.ask("ada", ASKED.to_json())).approved
    assert seen.events == []


async def test_a_teammate_whose_process_dies_is_gone_its_task_free_and_the_lead_told() -> None:
    boards, slots = boards_of(), Slots()
    crew = crew_of(boards, slots)
    crew.open()
    try:
        crew.start("ada")
        with pytest.raises(ToolError, match="ada is there already"):
            crew.start("ada")
        slots.futures[0].set_result(Outcome("ada-1", "failed", problem="killed by signal 9").to_json())
        await until(lambda: boards.board.member("ada").state == "gone")
        task = boards.board.task("1")
        assert (task.state, task.owner) == ("pending", "")
        (letter,) = boards.board.letters_for(LEAD)
        assert "killed by signal 9" in letter.text
        crew.start("ada")
        assert len(slots.futures) == 2, "it can be started again"
        slots.futures[1].set_exception(RuntimeError("the worker was lost"))
        await until(lambda: crew.outcomes["ada"].problem == "the worker was lost")
    finally:
        await crew.close()


async def test_an_executor_that_takes_no_more_work_is_named_and_nobody_counts_as_started() -> None:
    boards, pool = boards_of(), ThreadPoolExecutor(1)
    pool.shutdown()
    crew = crew_of(boards, pool)
    crew.open()
    try:
        with pytest.raises(ToolError, match=r"ada can't be started\. The executor takes no work any more"):
            crew.start("ada")
        assert crew.there == ()
    finally:
        await crew.close()


async def test_closing_asks_everyone_to_go() -> None:
    boards, slots = boards_of(), Slots()
    crew = crew_of(boards, slots)
    crew.open()
    for name in ("ada", "ben"):
        crew.start(name)
    closing = asyncio.create_task(crew.close())
    await until(lambda: any(one.kind == "shutdown_request" for one in boards.board.letters))
    for future in slots.futures:
        future.set_result(Outcome("x", "done").to_json())
    async with asyncio.timeout(10):
        await closing
    with pytest.raises(ToolError, match="the team ends"):
        crew.start("ada")


# ── what a teammate may do ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Kernel:
    folder: Path = Path("/home/ann/project")

    def settings(self) -> Settings:
        return Settings(model="opus", hide=("raw_*",), secrets=("tok-*",))


def granted(mode: Mode, *rules: Rule) -> dict[str, Any]:
    agent = Agent(ScriptedModel([]), Toolset(), Policy(mode, rules), Person())
    return _granted(Kernel(), agent, PLAN, Path("/copy"))  # type: ignore[arg-type]


def test_a_teammate_has_the_leads_mode_and_rules_and_what_is_kept_from_models() -> None:
    rules = (
        Rule.parse("allow", "shell(ls)"),
        Rule.parse("deny", "read_file(secret/**)"),
        Rule.parse("ask", "web_fetch"),
    )
    found = granted(Mode.ACCEPT_EDITS, *rules)
    assert found["mode"] == "accept-edits"
    assert (found["allow"], found["deny"], found["ask"]) == (["shell(ls)"], ["read_file(secret/**)"], ["web_fetch"])
    assert (found["hide"], found["secrets"], found["model"]) == (["raw_*"], ["tok-*"], "opus")


@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.READ_ONLY])
def test_where_the_lead_only_looks_teammates_only_look(mode: Mode) -> None:
    assert granted(mode)["mode"] == "read-only"


def test_what_a_projects_file_allows_is_not_handed_on_to_a_copy_that_nobody_trusted() -> None:
    rule = Rule.parse("allow", "shell", Source("project", ".claude/settings.json"))
    assert "allow" not in granted(Mode.DEFAULT, rule)


def test_a_deny_that_names_a_place_in_the_persons_folder_holds_in_the_copy_too() -> None:
    rule = Rule.parse("deny", "read_file(//home/ann/project/keys/**)")
    assert _texts(rule, Path("/home/ann/project"), Path("/copy")) == [
        "read_file(//home/ann/project/keys/**)", "read_file(//copy/keys/**)",
    ]  # fmt: skip


def test_what_others_spent_is_never_below_nothing() -> None:
    whole, part = Spending(Usage(10, 1), 0.5), Spending(Usage(4, 2), 0.1)
    assert less(whole, part) == Spending(Usage(6, 0), 0.4)
    assert less(replace(whole, cost=None), part).cost is None
