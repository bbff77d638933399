"""Teammates get copies of their own; the person's checkout, index, stash and settings stay as they are."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys

import pytest

from nbagent.extend.worktrees import GitError, Merged, Worktrees, plain_name
from tests.extend.git_rig import Repo, lines, notebook, sources
from tests.source import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path)


async def work(repo, team, name, **files):
    """A teammate writes files into a copy and commits; `__` in a name is a dot."""
    copy = await team.add(name)
    for path, text in files.items():
        repo.write(path.replace("__", "."), text, copy.path)
    await team.commit(copy, f"Work of {name}")
    return copy


async def test_copies_have_branches_and_places_of_their_own(repo):
    before = repo.looks()
    team = repo.team("work", "Fix the Tests!")
    copy = await team.add("Ana")
    assert (copy.name, copy.branch) == ("ana", "nbagent/fix-the-tests/ana")
    assert copy.path == repo.top / ".nbagent" / "worktrees" / "fix-the-tests" / "ana"
    assert copy.folder == copy.path / "work"
    assert sources(repo.read("n.ipynb", copy.folder)) == {"a": "x = 1", "b": "y = 2", "c": "z = 3"}
    assert copy.base == repo.git("rev-parse", "main") == repo.git("rev-parse", copy.branch)
    assert await team.add("ana") == copy
    assert repo.looks() == before
    with pytest.raises(GitError, match='A teammate can\'t be named "lead"'):
        await team.add("Lead")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        *(("-rf", "rf"), ("a b", "a-b"), ("../../x", "x"), ("Zoë", "zoë"), ("x.lock", "x-lock"), ("@{-1}", "1")),
        *(("日本", "日本"), ("CON", "con_"), ("a" * 90, "a" * 40), ("refs/heads/main", "refs-heads-main")),
    ],
)
async def test_any_name_makes_a_branch_and_a_folder(repo, name, plain):
    copy = await repo.team(name=name).add(name)
    assert (copy.name, copy.branch) == (plain, f"nbagent/{plain}/{plain}")
    assert (copy.path / "a.txt").is_file()


@pytest.mark.parametrize("name", ["", "--", "...", "/"])
def test_a_name_without_letters_is_refused(name):
    with pytest.raises(GitError, match="can't be the name of a branch"):
        plain_name(name)


# ── what a team starts from ──────────────────────────────────────────────────────────────────────────────────────────


async def test_copies_start_from_the_files_as_they_are(repo):
    repo.write("a.txt", "changed\n")
    repo.git("add", "a.txt")
    repo.write("a.txt", "changed again\n")
    repo.write("new notebook é.ipynb", notebook(a="1"))
    (repo.top / "b.txt").unlink()
    repo.write(".env", "KEY=1")
    repo.write("big.csv", b"x" * (6 * 1024 * 1024))
    for n in range(501):
        repo.write(f"many/of/{n}.json", "{}")
    repo.write(".gitignore", "cache/\n*.tmp\n")
    repo.write("cache/x.parquet", "x")
    before = repo.looks()
    team = repo.team()
    start = await team.begin()
    assert start.snapshot
    assert start.uncommitted == (".gitignore", "a.txt", "b.txt", "new notebook é.ipynb")
    copy = await team.add("ana")
    assert repo.read("a.txt", copy.path) == "changed again\n"
    assert sources(repo.read("new notebook é.ipynb", copy.path)) == {"a": "1"}
    assert not {"b.txt", ".env", "big.csv", "many", "cache"} & {file.name for file in copy.path.iterdir()}
    notes = " ".join(start.notes)
    for words in (
        "your files as they are: 4 of them not committed yet (.gitignore, a.txt, b.txt, new notebook é.ipynb)",
        *("In your own folder they stay as they are.",),
        f"many/ (has 501 files that were never committed), .env (may hold keys or passwords), big.csv (has 6 MB); they lie in {repo.top}.",
        f"Ignored by git, so not in the copies: cache/; they lie in {repo.top}.",
    ):
        assert words in notes
    assert repo.looks() == before
    assert await team.begin() == start


async def test_copies_may_start_from_the_last_commit_instead(repo):
    head = repo.git("rev-parse", "--short=8", "HEAD")
    repo.write("a.txt", "changed\n")
    team = repo.team()
    start = await team.begin(uncommitted=False)
    assert start.notes == (
        f"The team starts from your last commit ({head} on main).",
        "What you did not commit is not in its copies: a.txt.",
    )
    assert repo.read("a.txt", (await team.add("ana")).path) == "a\n"


async def test_where_no_team_can_start_people_are_told_why(repo, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    repo.git("init", "-q", at=empty)
    with pytest.raises(GitError, match=r"no commit yet.*git commit -m"):
        await Worktrees(empty, "fix", repo.env).begin()
    repo.git("checkout", "-q", "-b", "other")
    repo.write("a.txt", "other\n")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.write("a.txt", "main\n")
    repo.commit()
    with pytest.raises(subprocess.CalledProcessError):
        repo.git("merge", "-q", "other")
    with pytest.raises(GitError, match=r"A merge with conflicts is under way in your files: finish it"):
        await repo.team().begin()


async def test_submodules_and_pointers_are_told(repo):
    other = Repo(repo.tmp / "other")
    repo.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", str(other.top), "sub")
    repo.write(".gitattributes", "*.bin filter=lfs diff=lfs\n")
    repo.commit()
    notes = (await repo.team().begin()).notes
    assert "Submodules are empty in the copies." in notes
    assert "Files of Git LFS are pointers in the copies; their contents lie in your own folder." in notes
    copy = await work(repo, repo.team(), "ana", a__txt="1\n")
    assert not any((copy.path / "sub").iterdir())
    assert isinstance(await repo.team().merge("ana"), Merged)
    assert [file.path for file in (await repo.team().accept()).files] == ["a.txt"]
    await repo.team().remove()
    assert (repo.top / "sub" / "a.txt").is_file()


async def test_a_checkout_without_a_branch_and_one_with_a_part_of_the_files_will_do(repo):
    repo.git("checkout", "-q", "--detach")
    repo.git("sparse-checkout", "set", "work")
    team = repo.team("work")
    await work(repo, team, "ana", a__txt="1\n")
    await team.merge("ana")
    accepted = await team.accept()
    assert [file.path for file in accepted.files] == ["a.txt"]
    assert repo.git("rev-parse", "HEAD") == accepted.sha
    assert repo.git("show", "HEAD:a.txt") == "1"
    assert repo.git("status", "--short") == ""


async def test_a_disk_that_can_not_be_written_is_one_sentence(repo):
    (repo.top / ".nbagent").write_text("a file")
    with pytest.raises(GitError, match=r"\.nbagent/worktrees/fix can't be made: "):
        await repo.team().add("ana")
    (repo.top / ".nbagent").unlink()
    (repo.top / ".nbagent").symlink_to(repo.tmp)
    with pytest.raises(GitError, match="is a link, so nothing is made"):
        await repo.team().add("ana")


# ── commits ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_commit_has_what_changed_and_never_keys_our_own_files_or_what_is_too_big(repo):
    team = repo.team()
    copy = await team.add("ana")
    assert await team.commit(copy, "Nothing") == ""
    repo.write("-weird name\n.txt", "x", copy.path)
    repo.write("a.txt", "2\n", copy.path)
    (copy.path / "b.txt").unlink()
    repo.write(".env", "KEY=1", copy.path)
    repo.write("sub/.nbagent/sessions/s.jsonl", "{}", copy.path)
    repo.write("huge.bin", b"\0" * (21 * 1024 * 1024), copy.path)
    repo.git("init", "-q", "inner", at=copy.path)
    repo.write("inner/x.txt", "x", copy.path)
    repo.git("add", ".env", "sub", at=copy.path)  # as a teammate's own command may
    sha = await team.commit(copy, "  -F Three files\n")
    assert sha == repo.git("rev-parse", copy.branch)
    names = repo.git("show", "--format=%s", "--name-status", "-z", sha).split("\0")
    assert [name.strip() for name in names if name.strip()] == [
        "-F Three files",
        "A",
        "-weird name\n.txt",
        "M",
        "a.txt",
        "D",
        "b.txt",
    ]
    left = {one.path: one.why for one in await team.left_out(copy)}
    assert left == {
        ".env": "may hold keys or passwords",
        "sub/.nbagent/sessions/s.jsonl": "belongs to nbagent itself",
        "huge.bin": "has 21 MB",
        "inner/": "is a repository of its own",
    }  # fmt: skip
    assert await team.commit(copy, "Nothing more") == ""


async def test_a_copy_that_is_on_another_branch_in_a_conflict_or_gone_is_not_committed_to(repo):
    team = repo.team()
    copy = await team.add("ana")
    repo.git("checkout", "-q", "-b", "mine", at=copy.path)
    with pytest.raises(GitError, match=r"copy of ana is on mine instead of nbagent/fix/ana: go back with git checkout"):
        await team.commit(copy, "x")
    repo.git("checkout", "-q", copy.branch, at=copy.path)
    for branch, text in (("mine", "mine\n"), (copy.branch, "ana\n")):
        repo.git("checkout", "-q", branch, at=copy.path)
        repo.write("a.txt", text, copy.path)
        repo.git("commit", "-q", "-a", "-m", text, at=copy.path)
    with pytest.raises(subprocess.CalledProcessError):
        repo.git("cherry-pick", "mine", at=copy.path)
    with pytest.raises(GitError, match=r"In the copy of ana a merge stopped at conflicts: settle them"):
        await team.commit(copy, "x")
    shutil.rmtree(copy.path)
    with pytest.raises(GitError, match="The copy of ana is gone"):
        await team.commit(copy, "x")


# ── after a crash ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_team_is_taken_up_again_by_another_process_and_after_its_folder_was_deleted(repo):
    copy = await work(repo, repo.team(), "ana", a__txt="2\n")
    shutil.rmtree(copy.path)
    again = await repo.team().add("ana")
    assert again == copy
    assert repo.read("a.txt", copy.path) == "2\n"


async def test_a_copy_that_was_being_made_when_all_died_is_made_anew(repo):
    team = repo.team()
    copy = await team.add("ana")
    admin = repo.top / ".git" / "worktrees" / "ana"
    (admin / "locked").write_text("initializing")
    (copy.path / "a.txt").unlink()
    assert await repo.team().add("ana") == copy
    assert repo.read("a.txt", copy.path) == "a\n"
    (admin / "locked").write_text("by a person")
    await repo.team().remove()
    assert not copy.path.exists()


async def test_what_is_in_the_way_is_not_deleted(repo):
    team = repo.team()
    copy = await team.add("ana")
    await team.add("bo")
    (copy.path / ".git").unlink()
    with pytest.raises(GitError, match=r"ana has lost its \.git file: move the folder away"):
        await team.add("ana")
    repo.write(".nbagent/worktrees/fix/cy/mine.txt", "mine")
    with pytest.raises(GitError, match="cy is in the way, and git does not know it as a copy"):
        await team.add("cy")
    repo.git("checkout", "-q", "-b", "nbagent/fix/di")
    with pytest.raises(GitError, match=r"'nbagent/fix/di' is already (checked out|used by worktree) at"):
        await team.add("di")
    assert repo.read(".nbagent/worktrees/fix/cy/mine.txt") == "mine"


ONE = """
import asyncio, sys
from pathlib import Path
from nbagent.extend.worktrees import Worktrees
async def main():
    team = Worktrees(Path(sys.argv[1]), "fix")
    copy = await team.add(sys.argv[2])
    for n in range(5):
        (copy.path / f"{sys.argv[2]}{n}.txt").write_text(str(n))
        assert await team.commit(copy, f"number {n}")
asyncio.run(main())
"""


async def test_processes_start_and_commit_side_by_side(repo):
    env = {**repo.env, "PYTHONPATH": str(ROOT)}
    names = ("ana", "bo", "cy")
    started = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", ONE, str(repo.top), name, env=env) for name in names
    ]
    assert [await process.wait() for process in started] == [0, 0, 0]
    team = repo.team()
    assert [isinstance(await team.merge(name), Merged) for name in names] == [True] * 3
    assert [(one.name, one.commits, one.merged) for one in await team.state()] == [(name, 5, True) for name in names]


# ── how far they are, and taking away ────────────────────────────────────────────────────────────────────────────────


async def test_the_state_says_how_far_each_is(repo):
    team = repo.team()
    ana = await work(repo, team, "ana", b__txt=lines(l1="ana"))
    await work(repo, team, "bo", b__txt=lines(l1="bo"), c__txt="c")
    repo.write("later.txt", "x", ana.path)
    await team.merge("ana")
    await team.merge("bo")
    first, second = await team.state()
    assert (first.name, first.commits, first.files, first.uncommitted) == ("ana", 1, ("b.txt",), 1)
    assert (first.merged, first.conflicts) == (True, ())
    assert (second.files, second.merged, second.conflicts) == (("b.txt", "c.txt"), False, ("b.txt",))
    await team.resolve("bo", {}, {"b.txt": "theirs"})
    assert [(one.merged, one.conflicts) for one in await team.state()] == [(True, ()), (True, ())]


async def test_what_is_not_accepted_is_only_removed_when_told_so(repo):
    before = repo.looks()
    team = repo.team()
    await work(repo, team, "ana", a__txt="2\n")
    bo = await team.add("bo")
    repo.write("loose.txt", "x", bo.path)
    await team.lead()
    with pytest.raises(GitError, match=r"Not yet in your files: the work of ana, bo\. Accept it first"):
        await team.remove()
    assert (bo.path / "loose.txt").is_file()
    await team.discard()
    assert repo.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert repo.git("worktree", "list", "--porcelain").count("worktree ") == 1
    assert not (repo.top / ".nbagent" / "worktrees" / "fix").exists()
    assert repo.looks() == before
    await team.remove()  # there is nothing any more
    assert (await team.state(), await team.differs(), await team.patch()) == ((), (), "")
    assert repo.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"  # asking begins nothing
    assert (await team.begin()).head == repo.git("rev-parse", "HEAD")


@pytest.mark.parametrize("link", [".nbagent/worktrees", ".nbagent/worktrees/fix", ".nbagent"])
async def test_behind_a_link_that_a_folder_brought_nothing_is_made_or_removed(repo, link):
    mine = repo.top.parent / "mine"
    for place in (mine, mine / "fix", mine / "worktrees" / "fix"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "thesis.txt").write_text("precious")
    before = sorted(mine.rglob("*"))
    (repo.top / link).parent.mkdir(parents=True, exist_ok=True)
    (repo.top / link).symlink_to(mine)
    team = repo.team()
    with pytest.raises(GitError, match="is a link, so nothing is made or removed there"):
        await team.discard()
    with pytest.raises(GitError, match="is a link"):
        await team.add("ana")
    assert sorted(mine.rglob("*")) == before
    assert repo.git("worktree", "list", "--porcelain").count("worktree ") == 1
