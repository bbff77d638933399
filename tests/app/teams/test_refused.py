"""What a person is told where a team can't begin, or its work can't be taken: a sentence of theirs, and nothing is left."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from nbagent.app.teamafter import tidied
from nbagent.app.teamplan import TeamFile, TeamPlan
from nbagent.core.board import LEAD, Board
from nbagent.core.board_values import Member
from nbagent.extend.boards import Boards
from nbagent.extend.worktrees import Worktrees
from tests.app.teams.project import Function, git, project

TYPED = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "nbagent")
for line in sys.argv[1:]:
    print(">>", line, flush=True)
    shell.run_cell(line)
"""


def typed(folder: Path, *lines: str) -> str:
    """Return what a person reads who types these lines in a new shell."""
    done = subprocess.run(
        [sys.executable, "-c", TYPED, *lines], cwd=folder, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


@pytest.mark.slow
def test_a_team_that_can_not_begin_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    said = typed(tmp_path / "bare", '%agent team "Make the tests pass"')
    assert "nbagent: " in said
    assert "is not the checkout of a git repository" in said
    assert "--no-worktrees" in said
    assert "itself failed" not in said

    repo = project(tmp_path / "project", {"prices": [Function("net", "a + b", "a - b", "(1, 2)")]})
    before = git(repo, "for-each-ref")
    said = typed(repo, '%agent team "Make the tests pass" -m scripted:nowhere:lead', "%agent team acept", "%agent team")
    assert "The script 'nowhere:lead' cannot be imported" in said
    assert "there is no 'acept'" in said
    assert "There was no team here yet" in said
    assert (git(repo, "for-each-ref"), git(repo, "worktree", "list").count("\n")) == (before, 0)


async def _team_that_changed(repo: Path, text: str) -> None:
    """Leave what a team leaves that has ended: a change of `prices.py`, merged in the lead's copy."""
    plan = TeamPlan.of("Make the tests pass", 1, uncommitted=False)
    trees = Worktrees(repo, plan.team)
    await trees.begin(uncommitted=False)
    ada = await trees.add("ada")
    (ada.path / "prices.py").write_text(text)
    await trees.commit(ada, "ada's work")
    await trees.merge("ada")
    TeamFile(plan, ended=2.0, merged={"ada": ["prices.py"]}).write(repo)
    await (await Boards.open(repo, plan.team)).read()


@pytest.mark.slow
@pytest.mark.parametrize(("keep", "wins"), [("mine", "a + b + 0"), ("team", "a + b + 1")])
async def test_where_both_changed_the_same_the_person_says_whose_side_counts(
    tmp_path: Path, keep: str, wins: str
) -> None:
    repo = project(tmp_path / "project", {"prices": [Function("net", "a + b", "a - b", "(1, 2)")]})
    await _team_that_changed(repo, "def net(a, b): return a + b + 1\n")
    (repo / "prices.py").write_text("def net(a, b): return a + b + 0\n")
    git(repo, "commit", "-qam", "My own repair")
    said = await asyncio.to_thread(
        typed,
        repo,
        "%agent team accept",
        "%agent team accept --keep",
        f"%agent team accept --keep {keep}",
        "%agent team",
    )
    first, second, third, last = said.split(">> ")[1:]
    assert "You and the team changed the same in: prices.py" in first and "--keep mine" in first
    assert "--keep takes mine or team" in second
    assert wins in (repo / "prices.py").read_text(), third
    assert "in your files" in last


@pytest.mark.slow
async def test_a_team_without_anything_merged_has_nothing_to_accept_and_one_that_was_cut_off_says_so(
    tmp_path: Path,
) -> None:
    repo = project(tmp_path / "project", {"prices": [Function("net", "a + b", "a - b", "(1, 2)")]})
    plan = TeamPlan.of("Make the tests pass", 1)
    await Worktrees(repo, plan.team).begin()
    await Worktrees(repo, plan.team).lead()
    TeamFile(plan).write(repo)
    begun = Board(members=(Member(LEAD, "lead"), Member("ada"))).create("repair net").claim("ada", 0.0, 60.0)
    await (await Boards.open(repo, plan.team)).change(lambda _: begun)
    said = await asyncio.to_thread(typed, repo, "%agent team accept", "%agent team")
    assert "nothing to accept" in said
    assert "cut off before it ended" in said and "Nothing is merged" in said
    assert "1 pending. Teammates: ada is gone" in said, "nobody works on it any more"


@pytest.mark.slow
async def test_copies_go_by_themselves_only_where_nobody_changed_anything(tmp_path: Path) -> None:
    repo = project(tmp_path / "project", {"prices": [Function("net", "a + b", "a - b", "(1, 2)")]})
    before = git(repo, "for-each-ref")
    plan = TeamPlan.of("Make the tests pass", 1)
    trees = Worktrees(repo, plan.team)
    await trees.begin()
    ada, _ = await trees.add("ada"), await trees.lead()
    (ada.path / "prices.py").write_text("half of it\n")
    assert not (await tidied(trees, TeamFile(plan))).discarded
    assert (ada.path / "prices.py").read_text() == "half of it\n"
    git(ada.path, "checkout", "-q", "prices.py")
    assert (await tidied(trees, TeamFile(plan))).discarded
    assert (git(repo, "for-each-ref"), git(repo, "worktree", "list").count("\n"), ada.path.exists()) == (
        before,
        0,
        False,
    )
