"""A person's files get the team's work when they accept it, and nothing of theirs is lost by that."""

from __future__ import annotations

import json
import subprocess

import pytest

from nbagent.extend.worktrees import Answers, NotAccepted
from nbagent.headless.memory import MemoryNotebook
from tests.extend.git_rig import Repo, lines, notebook, sources
from tests.extend.test_worktrees import work

pytestmark = pytest.mark.slow


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path)


async def merged(repo, team, **files):
    """A team of one did its work."""
    await work(repo, team, "ana", **files)
    await team.merge("ana")


def as_told(repo, undo):
    """Run the command that a sentence tells."""
    command = undo.partition(" (in ")[0]
    subprocess.run(command, shell=True, cwd=repo.top, env=repo.env, check=True)


# ── from a commit ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_branch_goes_forward_to_what_the_team_merged(repo):
    head = repo.git("rev-parse", "HEAD")
    team = repo.team()
    await merged(repo, team, b__txt=lines(l1="ana"), sub="x")
    before = repo.looks()
    told = await repo.team().differs()
    assert [(one.path, one.kind, one.added, one.removed) for one in told] == [
        ("b.txt", "changed", 1, 1),
        ("sub", "added", 1, 0),
    ]
    assert "+ana" in await team.patch()
    assert (await team.patch(largest=9)).endswith("more characters)")
    assert repo.looks() == before
    accepted = await team.accept()
    assert (accepted.files, accepted.committed) == (told, True)
    assert repo.git("rev-parse", "main") == accepted.sha == repo.git("rev-parse", "nbagent/fix/lead")
    assert repo.read("b.txt") == lines(l1="ana")
    assert repo.git("status", "--short") == ""
    assert accepted.sentence == (
        f"2 files changed (b.txt, sub), commit {accepted.sha[:8]}. To take it back: git reset --keep {head[:12]}"
    )
    again = await team.accept()
    assert again.sentence == "Your files have all that the team did already."
    await team.remove()
    as_told(repo, accepted.undo)
    assert (repo.git("rev-parse", "HEAD"), repo.read("b.txt")) == (head, lines())


async def test_what_the_person_committed_and_changed_in_other_files_stays(repo):
    team = repo.team()
    await merged(repo, team, b__txt=lines(l1="ana"))
    repo.write("b.txt", lines(l9="Pat"))
    head = repo.commit()
    repo.write("a.txt", "not committed\n")
    repo.write("new.txt", "new\n")
    accepted = await team.accept()
    assert repo.read("b.txt") == lines(l1="ana", l9="Pat")
    assert repo.git("log", "-1", "--format=%s") == "Merge what was done since in the checkout"
    assert repo.git("status", "--short").split() == ["M", "a.txt", "??", "new.txt"]
    as_told(repo, accepted.undo)
    assert repo.git("rev-parse", "HEAD") == head
    assert (repo.read("a.txt"), repo.read("b.txt")) == ("not committed\n", lines(l9="Pat"))


@pytest.mark.parametrize(
    ("path", "data"), [("b.txt", "mine\n"), ("c.txt", "mine, and in no commit\n"), ("d.log", "mine, and ignored\n")]
)
async def test_a_file_of_the_person_that_would_be_overwritten_is_named_and_nothing_changes(repo, path, data):
    repo.write(".gitignore", "*.log\n")
    repo.commit()
    team = repo.team()
    await merged(repo, team, b__txt=lines(l1="ana"), c__txt="ana", a__txt="ana\n")
    copy = await team.add("ana")
    repo.write("d.log", "ana", copy.path)
    repo.git("add", "-f", "d.log", at=copy.path)
    repo.git("commit", "-q", "-m", "log", at=copy.path)
    await team.merge("ana")
    repo.write(path, data)
    before = repo.looks()
    with pytest.raises(
        NotAccepted, match=r"Your own .* would be overwritten: commit or move what you have there"
    ) as told:
        await team.accept()
    assert told.value.files == (path,)
    assert repo.looks() == before
    (repo.top / path).rename(repo.tmp / "moved")
    if path == "b.txt":
        repo.git("checkout", "-q", "b.txt")
    assert (await team.accept()).committed


async def test_what_both_changed_is_reported_with_both_sides_and_a_side_settles_it(repo):
    team = repo.team()
    await merged(repo, team, b__txt=lines(l1="ana", l5="ana"))
    repo.write("b.txt", lines(l1="Pat"))
    repo.commit()
    before = repo.looks()
    with pytest.raises(
        NotAccepted, match=r"You and the team changed the same in: b\.txt \(line 1\)\. Nothing was"
    ) as told:
        await team.accept()
    assert [(h.ours, h.theirs) for h in told.value.conflicts[0].hunks] == [("ana\n", "Pat\n")]
    assert [(one.path, one.added) for one in await team.differs()] == [("b.txt", 2)]
    assert repo.looks() == before
    await team.accept(answers=Answers(sides={"b.txt": "theirs"}))
    assert repo.read("b.txt") == lines(l1="Pat", l5="ana")


async def test_files_that_need_a_filter_of_the_repository_are_left_to_the_person(repo):
    repo.write(".gitattributes", "*.txt filter=secret\n")
    repo.commit()
    team = repo.team()
    await merged(repo, team, a__txt="ana\n")
    repo.git("config", "filter.secret.smudge", "cat")
    with pytest.raises(
        NotAccepted, match=r"a\.txt needs a filter of this repository's own settings.*git merge [0-9a-f]{12}"
    ):
        await team.accept()


# ── from files that are not committed ────────────────────────────────────────────────────────────────────────────────


async def test_files_that_were_not_committed_get_the_work_and_nothing_is_committed(repo):
    repo.write("b.txt", lines(l9="Pat"))
    repo.git("add", "b.txt")
    repo.write("new.txt", lines())
    team = repo.team()
    await merged(repo, team, b__txt=lines(l1="ana", l9="Pat"), new__txt=lines(l1="ana"), made__txt="x")
    repo.write("new.txt", lines(l9="later"))  # the person goes on while the team works
    repo.write("mine.txt", "mine")
    head, index = repo.git("rev-parse", "HEAD"), repo.git("ls-files", "-s")
    accepted = await team.accept()
    assert (repo.git("rev-parse", "HEAD"), repo.git("ls-files", "-s")) == (head, index)
    assert accepted.sentence.startswith("3 files changed (b.txt, made.txt, new.txt); nothing is committed. To take it")
    assert repo.read("b.txt") == lines(l1="ana", l9="Pat")
    assert repo.read("new.txt") == lines(l1="ana", l9="later")
    assert (repo.read("made.txt"), repo.read("mine.txt")) == ("x", "mine")
    await work(repo, team, "ana", new__txt=lines(l1="ana", l5="ana"))  # and the team, after that
    await team.merge("ana")
    assert [file.path for file in (await team.accept()).files] == ["new.txt"]
    assert repo.read("new.txt") == lines(l1="ana", l5="ana", l9="later")
    assert (await team.accept()).files == ()
    await team.remove()
    repo.write("new.txt", lines(l1="ana", l9="later"))
    as_told(repo, accepted.undo)
    assert (repo.read("b.txt"), repo.read("new.txt")) == (lines(l9="Pat"), lines(l9="later"))
    assert not (repo.top / "made.txt").exists()


async def test_a_file_changed_on_both_sides_without_a_commit_is_a_conflict_too(repo):
    repo.write("b.txt", lines(l9="Pat"))
    team = repo.team()
    await merged(repo, team, b__txt=lines(l1="ana", l9="Pat"), made__txt="x")
    repo.write("b.txt", lines(l1="Pat", l9="Pat"))
    repo.write("made.txt", "mine")
    before = repo.looks()
    with pytest.raises(NotAccepted) as told:
        await team.accept()
    assert told.value.files == ("b.txt", "made.txt")
    assert repo.looks() == before
    repo.write("b.txt", lines(l9="Pat"))
    (repo.top / "made.txt").unlink()
    repo.write("made.txt", b"x" * 6_000_000)  # too big to be looked at as one of theirs
    with pytest.raises(NotAccepted, match=r"Your own made\.txt would be overwritten"):
        await team.accept()


# ── open notebooks ───────────────────────────────────────────────────────────────────────────────────────────────────


def opened(repo, path="work/n.ipynb", own=None):
    """The notebook as a page has it: saved only when it is told to."""
    raw = json.loads(repo.read(path))

    def save():
        repo.write(path, json.dumps(raw, indent=1) + "\n")

    return MemoryNotebook(raw["cells"], path=path, own_cell=own, on_save=save)


async def test_a_notebook_that_a_page_has_open_is_not_written_under_it(repo):
    team = repo.team()
    await merged(repo, team, **{"work/n__ipynb": notebook(a="x = 10", b="y = 2", c="z = 3")}, a__txt="ana\n")
    before = repo.looks()
    with pytest.raises(NotAccepted, match=r"changed work/n\.ipynb, which is open in a page: save and close it") as told:
        await team.accept({repo.top / "work" / "n.ipynb": None, repo.tmp / "elsewhere.ipynb": None})
    assert told.value.notebooks == ("work/n.ipynb",)
    assert repo.looks() == before


async def test_cells_are_brought_into_the_page_and_the_other_files_are_written(repo):
    page = opened(repo, own="c")
    await page.edit("c", "%%agent team\nGo", (await page.read("c")).hash)  # not saved when the team begins
    team = repo.team()
    theirs = json.loads(notebook(a="x = 10", n="new", b="y = 2"))
    theirs["cells"][0] |= {"outputs": [{"output_type": "stream", "name": "stdout", "text": "10"}], "execution_count": 7}
    await merged(repo, team, **{"work/n__ipynb": json.dumps(theirs, indent=1)}, a__txt="ana\n")
    await page.edit("b", "y = 22", (await page.read("b")).hash)  # nor while it works
    with pytest.raises(NotAccepted, match=r"deleted on one side"):
        await team.accept({repo.top / "work" / "n.ipynb": page})
    accepted = await team.accept({repo.top / "work" / "n.ipynb": page}, Answers(sides={"work/n.ipynb": "theirs"}))
    assert not accepted.committed
    assert [(cell.id, cell.source) for cell in await page.cells()] == [
        ("a", "x = 10"), ("n", "new"), ("b", "y = 22"), ("c", "%%agent team\nGo")
    ]  # fmt: skip
    first = await page.read("a")
    assert (first.number, first.outputs[0]["text"]) == (7, "10")
    assert sources(repo.read("work/n.ipynb")) == {cell.id: cell.source for cell in await page.cells()}
    assert repo.read("a.txt") == "ana\n"
    assert (await team.accept()).files == ()
    assert repo.git("log", "--format=%s") == "one"  # what is in no commit of theirs does not get into one later either


async def test_cells_that_moved_went_and_changed_their_type_are_brought_in_too(repo):
    page = opened(repo)
    team = repo.team()
    theirs = json.loads(notebook(c="z = 3", a="x = 1", n="new"))
    theirs["cells"][1] = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "x = 1"}
    await merged(repo, team, **{"work/n__ipynb": json.dumps(theirs, indent=1)})
    await team.accept({repo.top / "work" / "n.ipynb": page})
    assert [(cell.id, cell.type) for cell in await page.cells()] == [("c", "code"), ("a", "markdown"), ("n", "code")]
