"""The cycle of a teammate: what it does with tasks, plans, letters and hooks, and how it goes. Its work is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from nbagent.app.teammate import Done, Teammate
from nbagent.core.board import APPROVED, LEAD, Board
from nbagent.core.board_values import Member, Task
from nbagent.core.hooks import Verdict
from nbagent.core.payloads import HookEvent, Payload
from nbagent.core.seat import Seat
from tests.core.team_rig import MemoryBoards
from tests.support.turns import until

Step = Callable[[str], Done]


@dataclass
class Work:
    """The double of the port: `does` is what comes of each prompt; all that happened is in `log`, in order."""

    does: Step = lambda _: Done("did it", "end_turn")
    verdicts: dict[HookEvent, list[Verdict]] = field(default_factory=dict)
    hangs: bool = False
    log: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    going: asyncio.Event = field(default_factory=asyncio.Event)
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, prompt: str, *, only_look: bool = False) -> Done:
        self.log.append("plan" if only_look else "run")
        self.prompts.append(prompt)
        self.going.set()
        if self.hangs:
            await self._stopped.wait()
            return Done("", "interrupted")
        return self.does(prompt)

    def stop(self) -> None:
        self.log.append("stop")
        self._stopped.set()

    async def bring_in(self, names: Sequence[str]) -> str:
        self.log.append(f"bring in {', '.join(names)}")
        return ""

    async def commit(self, message: str) -> str:
        self.log.append(f"commit {message}")
        return "abc"

    async def ask(self, payload: Payload) -> Verdict:
        left = self.verdicts.get(payload.event, [])
        return left.pop(0) if left else Verdict()


class Team:
    """A board with a lead, and one teammate named ada at it."""

    def __init__(self, work: Work, **more: bool) -> None:
        self.boards = MemoryBoards()
        self.work = work
        self.lead = Seat(self.boards, LEAD)
        self.ada = Teammate(Seat(self.boards, "ada", lease=30.0), work, "t", rest=30.0, **more)

    async def begin(self, *tasks: Task) -> asyncio.Task[str]:
        def begun(board: Board) -> Board:
            board = board.join(Member(LEAD)).join(Member("ada", state="idle")).join(Member("ben", state="idle"))
            for one in tasks:
                board = board.create(
                    one.title, one.description, needs=one.needs, owner=one.owner, wants_plan=one.wants_plan
                )
            return board

        await self.boards.change(begun)
        return asyncio.create_task(self.ada.live())

    @property
    def board(self) -> Board:
        return self.boards.board

    def member(self, name: str = "ada") -> str:
        return self.board.member(name).state

    def told(self, kind: str) -> list[str]:
        return [one.text for one in self.board.letters if one.sender == "ada" and one.kind == kind]

    async def let_go(self, living: asyncio.Task[str]) -> str:
        await self.lead.post("ada", "", kind="shutdown_request")
        async with asyncio.timeout(10):
            return await living


def named(title: str, **more: object) -> Task:
    return replace(Task("", title), **more)  # type: ignore[arg-type]


async def test_does_every_free_task_commits_before_it_completes_and_goes_when_it_is_let_go() -> None:
    states: list[str] = []
    team = Team(Work())
    team.work.does = lambda prompt: Done(f"result of {prompt.splitlines()[0]}", "end_turn")
    commit = team.work.commit

    async def watched(message: str) -> str:
        states.append(team.board.task("1").state)
        return await commit(message)

    team.work.commit = watched  # type: ignore[method-assign]
    living = await team.begin(named("first"), named("second", owner="ben"), named("third"))
    await until(lambda: team.member() == "idle" and team.board.task("3").state == "completed")
    assert await team.let_go(living) == "lead let it go"
    assert [one.state for one in team.board.tasks] == ["completed", "pending", "completed"], "ben's task is ben's"
    assert team.board.task("1").result == "result of Your task 1: first"
    assert states[0] == "in_progress", "what is merged at completion must be there"
    assert team.work.log == ["run", "commit first (task 1)", "run", "commit third (task 3)"]
    assert (team.member(), team.told("idle"), len(team.told("shutdown_approved"))) == (
        "gone",
        ["I have nothing to do."],
        1,
    )


async def test_brings_in_what_its_task_builds_on_and_is_told_its_result() -> None:
    team = Team(Work())
    living = await team.begin(named("base", owner="ben"), named("top", needs=("1",)))
    await until(lambda: team.member() == "idle")
    ben = Seat(team.boards, "ben")
    await ben.claim()
    await ben.complete("1", "it is in base.py")
    await until(lambda: team.board.is_done)
    await team.let_go(living)
    assert team.work.log == ["bring in ben", "run", "commit top (task 2)"]
    assert "Task 1 (base) gave: it is in base.py" in team.work.prompts[0]


async def test_what_it_cannot_do_becomes_the_leads_and_is_not_tried_again() -> None:
    team = Team(Work(lambda _: Done("NOT DONE: the file is missing", "end_turn")))
    living = await team.begin(named("impossible"))
    await until(lambda: team.told("idle"))
    task = team.board.task("1")
    assert (task.state, task.owner) == ("pending", LEAD)
    assert "the file is missing" in team.told("notice")[0]
    assert team.work.log == ["run", "commit Unfinished: impossible (task 1)"]
    await team.let_go(living)


async def test_stops_and_claims_nothing_more_when_its_run_was_stopped() -> None:
    team = Team(Work(lambda _: Done("", "budget", "The budget of 1 USD is used up.")))
    living = await team.begin(named("dear"), named("dearer"))
    async with asyncio.timeout(10):
        assert await living == "The budget of 1 USD is used up."
    assert (team.member(), team.work.log.count("run"), team.board.task("2").state) == ("gone", 1, "pending")


async def test_plans_until_the_plan_is_approved_and_only_then_works() -> None:
    team = Team(Work(lambda prompt: Done("step one" if "say more" not in prompt else "step one, two", "end_turn")))
    living = await team.begin(named("delicate", wants_plan=True))
    await until(lambda: team.board.task("1").plan == "step one")
    assert team.work.log == ["plan"]
    await team.boards.change(lambda board: board.answer_plan("1", "say more"))
    await until(lambda: team.board.task("1").plan == "step one, two")
    assert team.told("plan") == ["step one", "step one, two"]
    await team.boards.change(lambda board: board.answer_plan("1", APPROVED))
    await until(lambda: team.board.is_done)
    await team.let_go(living)
    assert team.work.log == ["plan", "plan", "run", "commit delicate (task 1)"]
    assert "step one, two" in team.work.prompts[-1]


async def test_a_task_that_is_taken_from_it_stops_its_run_and_keeps_the_new_owners_result() -> None:
    team = Team(Work(hangs=True))
    team.ada.seat.lease = 0.03
    living = await team.begin(named("contested"))
    await team.work.going.wait()
    await team.boards.change(lambda board: board.assign("1", "ben"))
    ben = Seat(team.boards, "ben")
    await ben.claim()
    await ben.complete("1", "ben's")
    await until(lambda: "stop" in team.work.log)
    await team.let_go(living)
    assert team.board.task("1").result == "ben's"


async def test_letters_reach_it_in_the_middle_of_its_work_and_a_wish_to_go_waits_for_the_tasks_end() -> None:
    team = Team(Work(hangs=True))
    living = await team.begin(named("long"))
    await team.work.going.wait()
    await team.lead.post("ada", "Mind the tests.")
    await team.lead.post("ada", "", kind="shutdown_request")
    text = await team.ada.letters()
    assert "[lead]\nMind the tests." in text
    assert "[lead asks you to end when your task is done; answer with answer_shutdown]" in text
    assert await team.ada.letters() == "", "each letter is told once"
    team.work.hangs = False
    team.work.stop()
    async with asyncio.timeout(10):
        await living
    assert team.member() == "gone"


async def test_a_letter_counts_as_delivered_when_it_is_kept_and_comes_again_where_the_run_was_cut_off_before() -> None:
    team = Team(Work(hangs=True))
    living = await team.begin(named("long"))
    await team.work.going.wait()
    await team.lead.post("ada", "Mind the tests.")
    assert "Mind the tests." in await team.ada.letters()
    assert len(team.board.letters_for("ada")) == 1, "it stands in no conversation yet"
    team.work.stop()
    async with asyncio.timeout(10):
        await living
    assert len(team.board.letters_for("ada")) == 1, "who takes its place reads it"
    again = Teammate(Seat(team.boards, "ada"), team.work, "t")
    assert "Mind the tests." in await again.letters()
    await again.mail.kept()
    assert team.board.letters_for("ada") == ()


async def test_a_message_that_could_not_be_read_is_told_to_the_lead_and_not_tried_for_ever() -> None:
    team = Team(Work(lambda _: Done("", "error", "The server is away.")))
    living = await team.begin()
    await team.lead.post("ada", "Look at the orders.")
    await until(lambda: team.told("idle"))
    assert team.told("notice") == ["Messages could not be read: The server is away."]
    assert team.work.log == ["run"]
    await team.let_go(living)


async def test_a_teammate_that_is_stopped_while_it_reads_a_message_goes_and_the_message_stays() -> None:
    team = Team(Work(lambda _: Done("", "interrupted")))
    living = await team.begin()
    await team.lead.post("ada", "Look at the orders.")
    async with asyncio.timeout(10):
        assert await living == "interrupted"
    assert [one.text for one in team.board.letters_for("ada")] == ["Look at the orders."]


async def test_a_letter_without_a_task_is_read_at_once() -> None:
    team = Team(Work())
    living = await team.begin()
    await until(lambda: team.member() == "idle")
    await team.lead.post("ada", "What do you know of the orders?")
    await until(lambda: team.work.prompts)
    assert "What do you know of the orders?" in team.work.prompts[0]
    await team.let_go(living)


async def test_hooks_keep_it_at_work_before_it_rests_and_before_a_task_counts_as_completed() -> None:
    verdicts = {
        HookEvent.TASK_COMPLETED: [Verdict(block=("run the linter",))],
        HookEvent.TEAMMATE_IDLE: [Verdict(block=("tidy up",))],
    }
    team = Team(Work(verdicts=verdicts))
    living = await team.begin(named("checked"))
    await until(lambda: team.told("idle"))
    await team.let_go(living)
    assert [prompt.splitlines()[0] for prompt in team.work.prompts] == [
        "Your task 1: checked",
        "run the linter",
        "tidy up",
    ]
    assert team.board.task("1").state == "completed"


async def test_in_one_folder_only_one_task_is_in_hand_at_a_time() -> None:
    team = Team(Work(), alone=True)
    await team.boards.change(
        lambda board: board.join(Member(LEAD)).join(Member("ben")).create("ben's").claim("ben", 0, 60)
    )
    await team.boards.change(lambda board: board.create("next"))
    living = asyncio.create_task(team.ada.live())
    await until(lambda: team.told("idle"))
    assert team.work.log == []
    await team.boards.change(lambda board: board.complete("1", "ben", 1, "done"))
    await until(lambda: team.board.is_done)
    await team.let_go(living)


async def test_whatever_goes_wrong_it_is_gone_and_its_task_is_free() -> None:
    def breaks(_: str) -> Done:
        raise OSError("the disk is full")

    team = Team(Work(breaks))
    living = await team.begin(named("doomed"))
    async with asyncio.timeout(10):
        await asyncio.wait({living})
    assert isinstance(living.exception(), OSError)
    assert (team.member(), team.board.task("1").state, team.board.task("1").owner) == ("gone", "pending", "")
