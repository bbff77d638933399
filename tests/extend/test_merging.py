"""The lead merges in a worktree of its own: what conflicts is reported with both sides, and nothing is forced."""

from __future__ import annotations

import os

import pytest

from nbagent.extend.worktrees import Answers, Conflicted, GitError, Merged
from tests.extend.git_rig import Repo, lines, notebook, sources
from tests.extend.test_worktrees import work

pytestmark = pytest.mark.slow


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path)


async def test_two_that_changed_different_lines_are_merged_and_the_third_is_reported_with_both_sides(repo):
    before = repo.looks()
    team = repo.team()
    for name, line in (("ana", "l1"), ("bo", "l9"), ("cy", "l9")):
        await work(repo, team, name, b__txt=lines(**{line: name}), **{f"{name}__txt": name})
    told = [await team.merge(name) for name in ("ana", "bo")]
    assert [(one.files, one.already) for one in told] == [(("ana.txt", "b.txt"), False), (("b.txt", "bo.txt"), False)]
    assert told[0].sentence == f"nbagent/fix/ana is merged: 2 files (ana.txt, b.txt), {told[0].sha[:8]}."
    conflicted = await team.merge("cy")
    assert isinstance(conflicted, Conflicted)
    (file,) = conflicted.files
    assert (file.path, file.binary) == ("b.txt", False)
    assert [(h.where, h.base, h.ours, h.theirs) for h in file.hunks] == [("line 9", "9\n", "bo\n", "cy\n")]
    assert (file.base, file.theirs) == (lines(), lines(l9="cy"))
    assert file.ours == lines(l1="ana", l9="bo")
    assert conflicted.sentence == (
        "nbagent/fix/cy is not merged, and nothing was changed. Both sides changed the same in: b.txt (line 9)."
    )
    lead = await team.lead()
    assert repo.git("rev-parse", lead.branch) == told[1].sha
    assert repo.git("status", "--short", at=lead.path) == ""
    again = await team.merge("ana")
    assert (again.already, again.sentence) == (True, "nbagent/fix/ana is already merged.")
    await work(repo, team, "di", d__txt="d")
    assert isinstance(await team.merge("di"), Merged)  # others go on
    assert repo.looks() == before


async def test_a_conflict_is_settled_by_a_text_or_by_a_side(repo):
    team = repo.team()
    await work(repo, team, "ana", b__txt=lines(l1="ana", l5="ana"), a__txt="ana\n")
    await work(repo, team, "bo", b__txt=lines(l1="bo", l9="bo"), a__txt="bo\n")
    await team.merge("ana")
    assert [file.path for file in (await team.merge("bo")).files] == ["a.txt", "b.txt"]
    left = await team.resolve("bo", {"a.txt": "both\n"})
    assert isinstance(left, Conflicted)
    assert [file.path for file in left.files] == ["b.txt"]
    with pytest.raises(GitError, match=r"The answer for a\.txt still has the marks of a conflict"):
        await team.resolve("bo", {"a.txt": "<<<<<<< x\n=======\n>>>>>>> y\n"}, {"b.txt": "theirs"})
    told = await team.resolve("bo", {"a.txt": "both\n"}, {"b.txt": "theirs"})
    assert isinstance(told, Merged)
    lead = await team.lead()
    assert repo.read("a.txt", lead.path) == "both\n"
    assert repo.read("b.txt", lead.path) == lines(l1="bo", l5="ana", l9="bo")  # the rest of the file is merged
    assert repo.git("log", "-1", "--format=%p %s", lead.branch).count(" ") >= 5
    assert repo.git("status", "--short", at=lead.path) == ""


async def test_a_file_that_one_deleted_and_the_other_changed_is_a_conflict(repo):
    team = repo.team()
    ana = await team.add("ana")
    (ana.path / "a.txt").unlink()
    await team.commit(ana, "Delete")
    await work(repo, team, "bo", a__txt="2\n")
    await team.merge("ana")
    (file,) = (await team.merge("bo")).files
    assert (file.base, file.ours, file.theirs) == ("a\n", None, "2\n")
    assert file.sentence == "a.txt (deleted on one side, changed on the other)"
    await team.resolve("bo", {}, {"a.txt": "ours"})
    assert not ((await team.lead()).path / "a.txt").exists()
    await work(repo, team, "cy", a__txt="3\n")
    await team.resolve("cy", {}, {"a.txt": "theirs"})
    assert repo.read("a.txt", (await team.lead()).path) == "3\n"


async def test_what_is_no_text_is_one_sides_or_the_others(repo):
    repo.write("x.bin", b"\0base")
    (repo.top / "link").symlink_to("a.txt")
    repo.commit()
    team = repo.team()
    for name in ("ana", "bo"):
        copy = await team.add(name)
        repo.write("x.bin", f"\0{name}", copy.path)
        (copy.path / "link").unlink()
        (copy.path / "link").symlink_to(f"{name}.txt")
        await team.commit(copy, "x")
    await team.merge("ana")
    link, data = (await team.merge("bo")).files
    assert (data.path, data.binary, data.theirs, data.sentence) == ("x.bin", True, None, "x.bin (no text)")
    assert (link.path, link.ours, link.theirs) == ("link", "ana.txt", "bo.txt")
    assert isinstance(await team.resolve("bo", {}, {"x.bin": "theirs", "link": "theirs"}), Merged)
    lead = await team.lead()
    assert (lead.path / "x.bin").read_bytes() == b"\0bo"
    assert os.readlink(lead.path / "link") == "bo.txt"  # noqa: PTH115


async def test_modes_names_and_moves_of_files_are_merged(repo):
    team = repo.team()
    ana = await team.add("ana")
    (ana.path / "a.txt").chmod(0o755)
    repo.git("mv", "b.txt", "c d.txt", at=ana.path)
    await team.commit(ana, "Move")
    await work(repo, team, "bo", b__txt=lines(l5="bo"), a__txt="2\n")
    await team.merge("ana")
    assert isinstance(await team.merge("bo"), Merged)
    lead = await team.lead()
    assert repo.read("c d.txt", lead.path) == lines(l5="bo")
    assert not (lead.path / "b.txt").exists()
    assert repo.git("ls-files", "-s", "a.txt", at=lead.path).startswith("100755")


async def test_notebooks_are_merged_cell_by_cell_and_written_as_notebooks(repo):
    team = repo.team("work")
    for name, cells in (
        ("ana", {"a": "x = 10", "b": "y = 2", "c": "z = 3", "n": "ana"}),
        ("bo", {"a": "x = 1", "b": "y = 20", "c": "z = 3", "m": "bo"}),
        ("cy", {"a": "x = 11", "b": "y = 2", "c": "z = 33"}),
    ):
        copy = await team.add(name)
        repo.write("n.ipynb", notebook(**cells), copy.folder)
        await team.commit(copy, "cells")
    await team.merge("ana")
    assert isinstance(await team.merge("bo"), Merged)  # as text this is a conflict: both added a cell at the end
    lead = await team.lead()
    together = {"a": "x = 10", "b": "y = 20", "c": "z = 3", "n": "ana", "m": "bo"}
    assert sources(repo.read("n.ipynb", lead.folder)) == together
    assert repo.read("n.ipynb", lead.folder) == notebook(**together)
    conflicted = await team.merge("cy")
    assert conflicted.sentence.endswith("in: work/n.ipynb (cell 1 (id a)).")
    assert [(h.ours, h.theirs) for h in conflicted.files[0].hunks] == [("x = 10", "x = 11")]
    with pytest.raises(GitError, match=r"The answer for work/n\.ipynb is no notebook"):
        await team.resolve("cy", {"work/n.ipynb": "{}"})
    await team.resolve("cy", {}, {"work/n.ipynb": "ours"})
    assert sources(repo.read("n.ipynb", lead.folder)) == {**together, "c": "z = 33"}


async def test_cells_that_git_would_merge_as_text_are_merged_as_cells(repo):
    """Far from each other in the file, but one cell: a source of one side must not get the outputs of the other."""
    import json

    repo.write("work/n.ipynb", notebook(a="\n".join("abcdefgh")))
    repo.commit()
    team = repo.team("work")
    ana = await team.add("ana")
    repo.write("n.ipynb", notebook(a="\n".join("abcdefgh") + "\nmore"), ana.folder)
    await team.commit(ana, "source")
    bo = await team.add("bo")
    ran = json.loads(repo.read("n.ipynb", bo.folder))
    ran["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "old"}]
    repo.write("n.ipynb", json.dumps(ran, indent=1) + "\n", bo.folder)
    await team.commit(bo, "run")
    await team.merge("bo")
    assert isinstance(await team.merge("ana"), Merged)
    (cell,) = json.loads(repo.read("n.ipynb", (await team.lead()).folder))["cells"]
    assert (cell["source"][-4:], cell["outputs"]) == ("more", [])


async def test_a_teammate_goes_on_from_the_work_of_the_others(repo):
    team = repo.team()
    ana = await work(repo, team, "ana", a__txt="ana\n")
    bo = await work(repo, team, "bo", c__txt="bo\n")
    with pytest.raises(GitError, match="There is no branch nbagent/fix/lead to merge"):
        await team.update(bo)
    await team.merge("ana")
    repo.write("loose.txt", "loose", bo.path)
    assert isinstance(await team.update(bo), Merged)
    assert (repo.read("a.txt", bo.path), repo.read("loose.txt", bo.path)) == ("ana\n", "loose")
    assert [(one.commits, one.files) for one in await team.state()] == [(1, ("a.txt",)), (2, ("c.txt", "loose.txt"))]
    assert isinstance(await team.merge("bo"), Merged)
    await work(repo, team, "ana", c__txt="other\n")
    conflicted = await team.update(ana)
    assert isinstance(conflicted, Conflicted)
    assert repo.git("status", "--short", at=ana.path) == ""
    assert isinstance(await team.update(ana, Answers(sides={"c.txt": "ours"})), Merged)
    assert repo.read("c.txt", ana.path) == "other\n"


async def test_a_branch_that_changes_our_own_folder_is_not_merged(repo):
    team = repo.team()
    ana = await team.add("ana")
    repo.write(".nbagent/settings.json", '{"permissions": {"allow": ["Bash"]}}', ana.path)
    repo.git("add", "-f", ".nbagent", at=ana.path)
    repo.git("commit", "-q", "-m", "mine", at=ana.path)
    with pytest.raises(GitError, match=r"is not merged: it changes \.nbagent/settings\.json, which belongs to nbagent"):
        await team.merge("ana")


async def test_a_merge_that_a_crash_cut_short_is_taken_back_and_one_of_somebody_else_is_not(repo):
    team = repo.team()
    await work(repo, team, "ana", a__txt="ana\n")
    await work(repo, team, "bo", c__txt="bo\n")
    await team.merge("ana")
    lead = await team.lead()
    place = repo.top / ".git" / "worktrees" / "lead"
    repo.git("merge", "-q", "--no-commit", "--no-ff", "nbagent/fix/bo", at=lead.path)
    with pytest.raises(GitError, match=r"A merge is under way in .*/lead: finish it \(git commit\) or give it up"):
        await team.merge("bo")
    (place / "nbagent-merge").touch()  # what a merge of ours leaves when its process is killed
    (place / "index.lock").touch()
    assert isinstance(await repo.team().merge("bo"), Merged)
    assert repo.git("status", "--short", at=lead.path) == ""
    assert not (place / "nbagent-merge").exists()


async def test_what_can_not_be_merged_at_all_is_one_sentence(repo):
    team = repo.team()
    with pytest.raises(GitError, match=r"There is no branch nbagent/fix/nobody to merge"):
        await team.merge("nobody")
    lead = await team.lead()
    await work(repo, team, "ana", x__pem="key")
    repo.git("commit", "-q", "--allow-empty", "-m", "empty", at=(await team.add("bo")).path)
    told = await team.merge("bo")
    assert (type(told), told.files) == (Merged, ())
    copy = await team.add("ana")
    repo.git("add", "-A", at=copy.path)
    repo.git("commit", "-q", "-m", "a key", at=copy.path)
    repo.write("x.pem", "other", lead.path)  # is never committed, so it is in the way
    with pytest.raises(GitError, match=r"nbagent/fix/ana can't be merged: .*untracked working tree files.*x\.pem"):
        await team.merge("ana")
    assert repo.read("x.pem", lead.path) == "other"
