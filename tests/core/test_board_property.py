"""Whatever a team does in whatever order, with owners that die and come back: no task is worked on by two, none is lost."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nbagent.core.board import Board
from nbagent.core.board_changes import changes
from nbagent.core.errors import BoardError
from nbagent.core.leases import Watch

OWNERS = ("Ana", "Ben", "Cy")
LEASE = 10.0
owners = st.sampled_from(OWNERS)


class Team(RuleBasedStateMachine):
    """Three owners at one board, each with a watch and a clock of its own; what each believes to have in hand is `claims`."""

    def __init__(self) -> None:
        super().__init__()
        self.board, self.before = Board(), Board()
        self.claims: dict[str, tuple[str, int]] = {}
        self.watches = dict.fromkeys(OWNERS, Watch())
        self.clocks = {"Ana": 0.0, "Ben": 5e6, "Cy": -3.0}
        self.signs: dict[str, float] = {}  # task → when its owner was last heard, in true time
        self.true = 0.0
        self.results: dict[str, str] = {}
        self.says = 0

    def do(self, new: Board) -> None:
        self.before, self.board = self.board, new

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.board.tasks]

    @rule(needs=st.sets(st.integers(1, 8), max_size=3), owner=st.sampled_from(["", *OWNERS]))
    def create(self, needs: set[int], owner: str) -> None:
        self.do(self.board.create("t", needs=[n for n in map(str, needs) if n in self.ids], owner=owner))

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def needs(self, data: st.DataObject) -> None:
        task, need = data.draw(st.sampled_from(self.ids)), data.draw(st.sampled_from(self.ids))
        with suppress(BoardError):
            self.do(self.board.edit(task, needs=[*self.board.task(task).needs, need]))

    @rule(owner=owners)
    def claim(self, owner: str) -> None:
        if self.board.held(owner):
            return
        self.do(self.board.claim(owner, self.true, LEASE))
        for task in self.board.held(owner):
            assert not self.board.open_needs(task)
            assert self.before.task(task.id).state == "pending"
            self.claims[owner] = (task.id, task.claims)
            self.signs[task.id] = self.true

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), deed=st.sampled_from(["renew", "complete", "release", "die"]))
    def act(self, data: st.DataObject, deed: str) -> None:
        owner = data.draw(st.sampled_from(sorted(self.claims)))
        task_id, number = self.claims[owner]
        self.says += 1
        try:
            match deed:
                case "renew":
                    self.do(self.board.renew(task_id, owner, number))
                    self.signs[task_id] = self.true
                case "complete":
                    self.do(self.board.complete(task_id, owner, number, f"{owner} {self.says}"))
                    assert task_id not in self.results
                    self.results[task_id] = f"{owner} {self.says}"
                case "release":
                    self.do(self.board.release(task_id, owner, number))
                case _:
                    pass
        except BoardError:
            now = self.board.task(task_id)  # refused only where another claim counts, or none
            assert (now.state, now.owner, now.claims) != ("in_progress", owner, number)
        if deed != "renew":
            del self.claims[owner]

    @rule(owner=owners, seconds=st.sampled_from([1.0, 4.0, 30.0]))
    def time_goes_by(self, owner: str, seconds: float) -> None:
        """All clocks go on, and all but `owner`, who is away, look every second."""
        for _ in range(round(seconds)):
            self.true += 1
            for name in OWNERS:
                self.clocks[name] += 1
                if name != owner:
                    self.watches[name] = self.watches[name].look(self.board, self.clocks[name])

    @rule(owner=owners)
    def free(self, owner: str) -> None:
        self.watches[owner] = self.watches[owner].look(self.board, self.clocks[owner])
        self.do(self.board.free(self.watches[owner].overdue(self.board)))
        for task in self.before.tasks:
            if task.state == "in_progress" and self.board.task(task.id).state == "pending":
                assert self.true - self.signs[task.id] >= LEASE  # never while its lease holds

    @invariant()
    def it_is_well(self) -> None:
        for task in self.board.tasks:
            assert task.state == "pending" or (task.owner and not self.board.open_needs(task))
            assert (task.state == "completed") == (task.id in self.results)
            assert task.result == self.results.get(task.id, "")
        assert all(len(self.board.held(owner)) <= 1 for owner in OWNERS)
        assert (
            self.board.is_done
            or self.board.held("Ana")
            or self.board.held("Ben")
            or self.board.held("Cy")
            or any(self.board.claimable(owner) for owner in OWNERS)
        )  # there is always something to do: no circle, nothing lost
        assert Board.from_json(json.loads(json.dumps(self.board.to_json()))) == self.board
        silent = [replace(task, beat=0) for task in self.before.tasks] == [
            replace(task, beat=0) for task in self.board.tasks
        ]
        assert bool(changes(self.before, self.board)) != silent  # what people can see is said, and nothing else


TestTeam = pytest.mark.slow(Team.TestCase)
TestTeam.settings = settings(max_examples=60, stateful_step_count=40)


def watched(watch: Watch, board: Board, *times: float) -> Watch:
    for now in times:
        watch = watch.look(board, now)
    return watch


def test_a_lease_ends_after_it_was_watched_whole():
    board = Board().create("a").claim("Ana", 0, LEASE)
    assert watched(Watch(), board, 0, 4, 8).overdue(board) == {}
    assert watched(Watch(), board, 0, 4, 8, 10).overdue(board) == {"1": 1}


def test_a_sign_of_life_begins_a_lease_anew():
    board = Board().create("a").claim("Ana", 0, LEASE)
    watch = watched(Watch(), board, 0, 4, 8)
    board = board.renew("1", "Ana", 1)
    assert watched(watch, board, 12, 16, 20).overdue(board) == {}
    assert watched(watch, board, 12, 16, 20, 22).overdue(board) == {"1": 2}


@pytest.mark.parametrize("wrote", [-1e9, 0.0, 1e12])
def test_what_time_it_is_on_the_owner_s_machine_does_not_count(wrote: float):
    board = Board().create("a").claim("Ana", wrote, LEASE)
    assert watched(Watch(), board, 1000, 1001).overdue(board) == {}


def test_a_watcher_that_was_away_begins_anew():
    board = Board().create("a").claim("Ana", 0, LEASE)
    assert watched(Watch(), board, 0, 100).overdue(board) == {}
    assert watched(Watch(), board, 0, 100, 104, 108, 111).overdue(board) == {"1": 1}


def test_a_new_claim_is_not_taken_for_the_one_before_that_was_watched():
    board = Board().create("a").claim("Ana", 0, LEASE)
    watch = watched(Watch(), board, 0, 4, 8)
    board = board.release("1", "Ana", 1).claim("Ben", 0, LEASE)
    assert watched(watch, board, 12).overdue(board) == {}
