"""A member's place at the board: what it has claimed is its own until it is taken, and a sign of life keeps it."""

from __future__ import annotations

import pytest

from nbagent.core.board_values import Task
from nbagent.core.errors import BoardError
from nbagent.core.hooks import Verdict
from nbagent.core.payloads import Payload
from nbagent.core.seat import Seat
from nbagent.core.team_hooks import may_complete, may_create, may_idle
from tests.core.team_rig import MemoryBoards
from tests.support.turns import until


async def seated(*titles: str, lease: float = 60.0) -> tuple[MemoryBoards, Seat, Seat]:
    boards = MemoryBoards("lead", "Ana", "Ben")
    for title in titles:
        await boards.change(lambda old, title=title: old.create(title))
    return boards, Seat(boards, "Ana", lease=lease), Seat(boards, "Ben", lease=lease)


async def let_go_by(boards: MemoryBoards, seconds: float) -> None:
    """Let time go by while somebody watches."""
    for _ in range(round(seconds)):
        boards.clock += 1
        await boards.read()


async def test_a_task_goes_from_hand_to_hand_to_done():
    boards, ana, ben = await seated("a", "b")
    first, second = await ana.claim(), await ben.claim()
    assert first and second
    assert (first.id, second.id, ana.claims) == ("1", "2", {"1": 1})
    assert (await ana.complete("1", "fine")).task("1").result == "fine"
    assert await ana.claim() is None
    await ben.release("2")
    assert (ben.claims, boards.board.task("2").state) == ({}, "pending")


async def test_what_a_dead_owner_had_is_had_by_the_next_who_claims_and_the_dead_one_is_refused():
    boards, ana, ben = await seated("a")
    await ana.claim()
    await let_go_by(boards, 59)
    assert await ben.claim() is None
    await let_go_by(boards, 2)
    got = await ben.claim()
    assert got and (got.owner, got.claims) == ("Ben", 2)
    with pytest.raises(BoardError, match="Ben works on it now"):
        await ana.complete("1", "late")
    assert await ana.renew() == ("1",)
    assert ana.claims == {}


async def test_signs_of_life_keep_a_claim():
    boards, ana, ben = await seated("a")
    await ana.claim()
    for _ in range(5):
        await let_go_by(boards, 40)
        assert await ana.renew() == ()
    assert await ben.claim() is None
    await ana.complete("1")


async def test_signs_of_life_are_given_by_themselves_and_a_lost_task_is_told():
    boards, ana, _ = await seated("a", lease=0.03)
    await ana.claim()
    lost: list[str] = []
    async with ana.alive(lost.append):
        await until(lambda: boards.board.task("1").beat > 3)
        await boards.change(lambda old: old.assign("1", "Ben"))
        await until(lambda: lost)
    assert (lost, ana.claims) == (["1"], {})


async def test_a_claim_that_was_cut_off_or_of_a_process_before_is_begun_anew():
    boards, ana, _ = await seated("a")
    await ana.claim()
    again = Seat(boards, "Ana")
    got = await again.claim()
    assert got and got.claims == 2
    with pytest.raises(BoardError, match="a later claim of Ana counts"):
        await ana.complete("1")
    with pytest.raises(BoardError, match="has task 1 in hand"):
        await again.claim()


@pytest.mark.parametrize("deed", ["complete", "release"])
async def test_what_was_not_claimed_can_t_be_completed_or_given_back(deed: str):
    _, ana, ben = await seated("a")
    await ben.claim()
    with pytest.raises(BoardError, match="Ana has not claimed task 1: claim it first"):
        await getattr(ana, deed)("1")


async def test_letters_are_given_until_it_is_said_that_they_arrived():
    _, ana, ben = await seated()
    await ana.post("*", "hello")
    await ana.post("Ben", "you")
    letters = await ben.letters()
    assert [one.text for one in letters] == ["hello", "you"] == [one.text for one in await ben.letters()]
    await ben.delivered(letters)
    assert await ben.letters() == ()


async def test_a_plan_goes_to_the_lead_as_a_letter():
    boards, ana, _ = await seated("a")
    await boards.change(lambda old: old.edit("1", wants_plan=True))
    await ana.claim()
    await ana.propose("1", "look, then do", "lead")
    assert [(one.kind, one.about, one.text) for one in boards.board.letters_for("lead")] == [
        ("plan", "1", "look, then do")
    ]
    await ana.now_is("idle")
    assert boards.board.member("Ana").state == "idle"


async def test_hooks_are_told_claude_s_fields_and_hold_back_or_end():
    told: list[dict] = []

    def says(verdict: Verdict):
        async def ask(payload: Payload) -> Verdict:
            told.append({k: getattr(payload, k) for k in payload.__dataclass_fields__ if k != "event"})
            return verdict

        return ask

    task = Task("3", "Fix it", "by hand")
    assert not await may_create(says(Verdict()), "3", "Fix it", "by hand")
    held = await may_complete(says(Verdict(block=("no tests",))), task, "Ana")
    assert held and (held.why, held.stop) == ("no tests", "")
    ended = await may_idle(says(Verdict(stop="enough")), "Ana", "demo")
    assert ended and (ended.why, ended.stop) == ("", "enough")
    fields = {"task_id": "3", "task_subject": "Fix it", "task_description": "by hand"}
    assert told == [
        {**fields, "teammate_name": None},
        {**fields, "teammate_name": "Ana"},
        {"teammate_name": "Ana", "team_name": "demo"},
    ]
