"""What only a lead can do: wait for its team, merge, read both sides of a conflict and settle it; and its team's lanes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nbagent.app.options import parse
from nbagent.app.teamcommands import _asked_for
from nbagent.app.teamlanes import Lanes
from nbagent.app.teamplan import NAMES, TeamFile, TeamPlan, team_file
from nbagent.app.teamtools import Desk, in_order, lead_tools, with_mail
from nbagent.core.board import LEAD, Board
from nbagent.core.board_values import Member
from nbagent.core.errors import BoardError, ConfigError, ToolError
from nbagent.core.messages import plain_text
from nbagent.core.seat import Seat
from nbagent.core.tools import Call, Tool, tool
from nbagent.extend.conflicts import Conflict, Hunk
from nbagent.extend.merging import Conflicted, Merged
from nbagent.teach.team import repair
from tests.core.team_rig import MemoryBoards

CONFLICT = Conflict("a.py", "x = 1\n", "x = 2\n", "x = 3\n", hunks=(Hunk("line 1", "x = 1\n", "x = 2\n", "x = 3\n"),))


@dataclass
class Copies:
    """A lead's copy in which ben's work conflicts until it is settled."""

    asked: list[object] = field(default_factory=list)
    brings: tuple[str, ...] = ("a.py",)

    async def merge(self, name: str) -> Merged | Conflicted:
        return await self.resolve(name, {})

    async def resolve(
        self, name: str, texts: Mapping[str, str | None], sides: Mapping[str, str] | None = None
    ) -> Merged | Conflicted:
        self.asked.append((name, dict(texts), dict(sides or {})))
        if name == "ben" and not texts and not sides:
            return Conflicted("b", (CONFLICT,))
        return Merged(name, self.brings, "abc", already=not self.brings)


class Crew:
    def __init__(self) -> None:
        self.started: list[str] = []

    def start(self, name: str) -> None:
        self.started.append(name)


def desk(**more: object) -> tuple[Desk, MemoryBoards, dict[str, Tool]]:
    boards = MemoryBoards()
    boards.board = Board(members=(Member(LEAD), Member("ada", state="idle"), Member("ben", state="idle")))
    made = Desk(Seat(boards, LEAD), Copies(), Crew(), **more)  # type: ignore[arg-type]
    made.told = boards.board
    return made, boards, {one.name: one for one in lead_tools(made)}


async def _silent(_: object) -> str:
    return ""


async def says(found: Tool, **given: object) -> str:
    call = Call("c1", lambda _: None, _silent)
    return plain_text(list((await found.run(call, found.validate(given))).content))


async def test_waiting_ends_with_what_happened_each_thing_once() -> None:
    _, boards, tools = desk()
    ada = Seat(boards, "ada")
    waiting = asyncio.create_task(says(tools["wait_for_team"]))
    await boards.change(lambda board: board.create("look", now=1.0))
    await ada.claim()
    await ada.complete("1", "found it")
    await ada.post(LEAD, "It was in b.py.")
    async with asyncio.timeout(10):
        text = await waiting
    text += await says(tools["wait_for_team"], seconds=1) if "It was in b.py" not in text else ""
    assert "ada completed task 1 (look)" in text
    assert text.count("[ada]\nIt was in b.py.") == 1
    assert "Nothing new" in await says(tools["wait_for_team"], seconds=1)


async def test_waiting_does_not_hang_where_all_are_gone() -> None:
    made, boards, tools = desk()
    for name in ("ada", "ben"):
        await boards.change(lambda board, name=name: board.now_is(name, "gone"))
    made.told = boards.board
    assert "All teammates are gone." in await says(tools["wait_for_team"])


async def test_a_conflict_is_told_with_both_sides_and_settled_only_by_an_answer() -> None:
    made, _, tools = desk()
    assert "Merged the work of ada: a.py." in await says(tools["merge_teammate"], teammate="ada")
    assert "in conflict" in await says(tools["merge_teammate"], teammate="ben")
    sides = await says(tools["read_conflict"], teammate="ben")
    assert [part in sides for part in ("x = 1", "x = 2", "x = 3", "merged already", "ben")] == [True] * 5
    with pytest.raises(ToolError, match="either text or side"):
        await says(tools["resolve_conflict"], teammate="ben", path="a.py")
    assert "Merged the work of ben" in await says(tools["resolve_conflict"], teammate="ben", path="a.py", side="theirs")
    assert made.conflicts == {}
    assert isinstance(made.merging, Copies)
    assert made.merging.asked[-1] == ("ben", {}, {"a.py": "theirs"})
    with pytest.raises(ToolError, match="no conflict of 'ben'"):
        await says(tools["read_conflict"], teammate="ben")


async def test_what_the_merges_of_a_teammate_brought_adds_up() -> None:
    made, _, tools = desk()
    assert isinstance(made.merging, Copies)
    for files in (("a.py",), ("b.py", "a.py"), ()):
        made.merging.brings = files
        text = await says(tools["merge_teammate"], teammate="ada")
    assert text == "Nothing new of ada: all of it is merged."
    assert made.merged["ada"].files == ("a.py", "b.py")
    assert not made.merged["ada"].already


async def test_only_members_are_merged_and_started() -> None:
    made, _, tools = desk()
    for name in ("merge_teammate", "start_teammate"):
        with pytest.raises(BoardError, match=r"no member 'adda'.*Did you mean ada"):
            await says(tools[name], teammate="adda")
    await says(tools["start_teammate"], teammate="ada")
    assert isinstance(made.others, Crew)
    assert made.others.started == ["ada"]


async def test_results_bring_letters_and_what_must_come_first_comes_first() -> None:
    order: list[str] = []

    @tool
    async def look(_call: Call) -> str:
        """Look."""
        order.append("look")
        return "seen"

    async def mail() -> str:
        order.append("mail")
        return "a letter"

    async def first() -> None:
        order.append("first")

    assert (await says(with_mail(look, mail, first))).split() == ["seen", "a", "letter"]
    assert order == ["first", "look", "mail"]


async def test_calls_side_by_side_run_in_the_order_in_which_they_were_made() -> None:
    order: list[str] = []
    gate = asyncio.Event()

    @tool
    async def note(_call: Call, what: str) -> str:
        """Note.

        Args:
            what: What.
        """
        await gate.wait()
        order.append(what)
        return what

    (noting,) = in_order([note])
    tasks = [asyncio.create_task(says(noting, what=str(number))) for number in range(5)]
    gate.set()
    await asyncio.gather(*tasks)
    assert order == ["0", "1", "2", "3", "4"]


def test_a_lane_has_a_span_for_each_thing_that_a_teammate_does() -> None:
    board = Board(members=(Member(LEAD), Member("ada", state="idle"))).create("t", wants_plan=True)
    lanes = Lanes().after(board, 0.0)
    board = board.claim("ada", 0, 60)
    lanes = lanes.after(board, 1.0)
    board = board.propose("1", "ada", 1, "so")
    lanes = lanes.after(board, 2.0).after(board, 2.5)
    board = board.answer_plan("1", "approved")
    lanes = lanes.after(board, 3.0)
    lanes = lanes.after(board.now_is("ada", "gone"), 4.0)
    ((name, spans),) = lanes.of
    assert name == "ada"
    assert [(one.state, one.start, one.end) for one in spans] == [
        ("idle", 0.0, 1.0), ("planning", 1.0, 2.0), ("waiting", 2.0, 3.0), ("working", 3.0, 4.0), ("gone", 4.0, None),
    ]  # fmt: skip


# ── what a team is asked for with ────────────────────────────────────────────────────────────────────────────────────


def test_a_command_is_read_into_its_goal_its_own_options_and_those_of_the_lead() -> None:
    words = ["Make", "it", "--workers", "2", "pass", "--names=x,y", "-m", "opus", "--budget=2", "--plan-first"]
    team = _asked_for(words)
    assert (team.plan.goal, team.plan.names, team.plan.plan_first) == ("Make it pass", ("x", "y"), True)
    assert parse(team.plan.options)[0] == {"model": "opus", "budget": 2.0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "3"], "Say what the team should reach"),
        (["go", "--workers", "many"], "takes a number"),
        (["go", "--workers", "99"], "1 to 16 teammates"),
        (["go", "--names", "lead"], "can't be a teammate's name"),
        (["go", "--names", "a,A"], "the same name"),
        (["go", "--names", "a,b", "--workers", "3"], "2 names for 3"),
        (["go", "--wrokers", "3"], "no option --wrokers"),
    ],
)
def test_what_is_wrong_with_a_command_is_told_before_anything_begins(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        _asked_for(words)


def test_a_team_is_found_again_by_its_name_its_beginning_or_as_the_last_one(tmp_path: Path) -> None:
    assert team_file(tmp_path) is None
    for number, goal in enumerate(("first things", "second things")):
        plan = TeamPlan.of(goal, 2)
        TeamFile(TeamPlan(**{**{name: getattr(plan, name) for name in plan.__slots__}, "began": float(number)}),
                 merged={"ada": ["a.py"]}).write(tmp_path)  # fmt: skip
    last = team_file(tmp_path)
    assert last is not None
    assert (last.plan.goal, last.plan.names, last.merged) == ("second things", NAMES[:2], {"ada": ["a.py"]})
    found = team_file(tmp_path, "first")
    assert found is not None
    assert found.plan.goal == "first things"
    with pytest.raises(ConfigError, match="names no team"):
        team_file(tmp_path, "third")


@pytest.mark.parametrize(
    "wrong",
    [
        {"merged": 5}, {"merged": {"ada": 5}}, {"merged": {"ada": [1]}}, {"conflicts": {"ada": 5}}, {"sessions": []}, {"text": 1},
        {"plan": 5}, {"plan": {"goal": "x", "names": ["ada"], "team": "evil", "began": "later"}},
        {"plan": {"goal": 5, "names": ["ada"], "team": "evil"}}, {"plan": {"goal": "x", "names": ["ada"], "team": "other"}},
    ],
)  # fmt: skip
def test_a_file_that_says_what_no_team_says_is_no_team(wrong: object, tmp_path: Path) -> None:
    place = tmp_path / ".nbagent" / "teams" / "evil.json"
    place.parent.mkdir(parents=True)
    right = {"plan": {"goal": "x", "names": ["ada"], "team": "evil", "began": 1.0}}
    place.write_text(json.dumps(right))
    assert team_file(tmp_path) is not None
    place.write_text(json.dumps({**right, **wrong}))  # type: ignore[dict-item]
    assert team_file(tmp_path) is None


# ── the script that repairs ──────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=25)
@given(
    st.sampled_from("+-*"),
    st.sampled_from("+-*"),
    st.integers(2, 90),
    st.integers(2, 90),
    st.from_regex(r"[a-z]{3,8}", fullmatch=True),
)
def test_a_repair_is_computed_from_the_function_and_what_it_must_give(
    right: str, wrong: str, a: int, b: int, name: str
) -> None:
    assume(right != wrong)
    name = f"f_{name}"
    wanted = eval(f"{a} {right} {b}")
    source = f"import os\n\ndef {name}(a, b):\n    return a {wrong} b\n"
    found = repair(source, name, f"{name}({a}, {b})", repr(wanted))
    assert found is not None
    names: dict[str, object] = {}
    exec(source.replace(*found), names)
    assert eval(f"{name}({a}, {b})", names) == wanted


def test_a_repair_runs_nothing_that_could_reach_out_or_last() -> None:
    for body in ("__import__('os').getcwd()", "open('x')", "[a for _ in range(10 ** 9)]", "a.__class__"):
        assert repair(f"def f(a, b):\n    return ({body}) + b\n", "f", "f(1, 2)", "3") is None
