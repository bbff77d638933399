"""The state of a project: git is asked without running anything of the repository's, and changes are told."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

from nbagent.extend.places import Places
from nbagent.extend.project import DataFile, ProjectState, look, look_now
from tests.extend.project_rig import Rig

ENV = {
    "PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
}  # fmt: skip


@pytest.fixture
def rig(tmp_path):
    rig = Rig(tmp_path)
    (rig.project / ".git").rmdir()
    git(rig, "init", "-q", "-b", "main")
    rig.write("a.txt", "a\n")
    git(rig, "add", ".")
    git(rig, "commit", "-q", "-m", "one")
    return rig


def git(rig, *arguments):
    subprocess.run(["git", *arguments], cwd=rig.project, env=ENV, check=True)


def test_branch_changes_data_and_environment_are_told(rig):
    rig.write("a.txt", "b\n")
    rig.write("work/new file.py", "")
    rig.write("work/data/orders.csv", "x" * 1500)
    rig.write("work/.hidden/secret.csv", "x")
    rig.write("work/package.json", "{}")
    rig.write("work/kept/.gitignore", "*\n")  # the folder of a map: nothing of the person's
    rig.write("work/kept/jobs/1/outcome.json", "{}")
    state = look_now(rig.places, ENV)
    assert state.branch == "main"
    assert len(state.commit) == 40
    assert sorted(state.changes) == ["? work/", "M a.txt"]
    assert [file.path for file in state.files] == ["data/orders.csv"]
    for words in (f"git: main at {state.commit[:10]}; 2 changed", "orders.csv (1.5 KB)", "Python 3.", "ipywidgets"):
        assert words in state.text
    assert state.problem == ""


@pytest.mark.slow
def test_renames_odd_names_and_no_commit_yet_are_read(rig):
    git(rig, "mv", "a.txt", "b\nc.txt")
    assert look_now(rig.places, ENV).changes == ("R b\nc.txt",)
    empty = rig.project / "empty"
    empty.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "start"], cwd=empty, env=ENV, check=True)
    state = look_now(Places.of(empty, {}, home=rig.home, own=rig.own), ENV)
    assert (state.branch, state.commit) == ("start", "")
    assert "start, no commit yet" in state.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attributes", "config"),
    [
        ("", "[core]\n\tfsmonitor = {evil}\n"),
        ("*.txt filter=evil\n", '[filter "evil"]\n\tclean = {evil}\n\trequired = true\n'),
        ("*.txt filter=a=b\n", '[filter "a=b"]\n\tprocess = {evil}\n'),
    ],
)
def test_nothing_of_the_repository_runs(rig, attributes, config):
    """Row 110: a repository's monitor and filters are programs of somebody else's."""
    ran = rig.project / "ran"
    evil = rig.write("evil.sh", f"#!/bin/sh\necho x >> {ran}\ncat\n")
    evil.chmod(0o755)
    rig.write(".gitattributes", attributes)
    with (rig.project / ".git" / "config").open("a") as file:
        file.write(config.format(evil=evil))
    rig.write("a.txt", "b\n")
    state = look_now(rig.places, ENV)
    assert state.branch == "main"
    assert "M a.txt" in state.changes
    assert not ran.exists()
    subprocess.run(["git", "status", "--short"], cwd=rig.project, env=ENV, check=False, capture_output=True)
    assert ran.exists(), "in this repository a plain git status runs something"


async def test_looking_does_not_hold_up_the_loop(rig):
    assert (await look(rig.places, ENV)).branch == "main"


def test_the_environment_of_the_kernel_does_not_lead_git_elsewhere(rig, tmp_path):
    state = look_now(rig.places, {**ENV, "GIT_DIR": str(tmp_path / "elsewhere"), "GIT_WORK_TREE": "/"})
    assert state.branch == "main"


@pytest.mark.slow
def test_a_git_that_is_the_projects_own_or_hangs_is_not_waited_for(rig, tmp_path):
    fake = rig.write("work/bin/git", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    fake.chmod(0o755)
    assert look_now(rig.places, {**ENV, "PATH": str(fake.parent)}).branch == ""
    assert not (tmp_path / "ran").exists()
    slow = rig.write("~/bin/git", "#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    state = look_now(rig.places, {**ENV, "PATH": f"{slow.parent}:/bin:/usr/bin"}, seconds=0.05)
    assert "did not answer in time" in state.text


def test_without_a_repository_or_git_the_rest_is_told(rig, tmp_path):
    assert look_now(rig.places, {"PATH": ""}).branch == ""
    plain = tmp_path / "plain"
    plain.mkdir()
    state = look_now(Places.of(plain, {}, home=rig.home, own=rig.own), ENV)
    assert (state.branch, state.problem) == ("", "")
    assert "git" not in state.text
    assert "Python" in state.text


def test_later_only_what_changed_is_told():
    before = ProjectState(
        "main", "a" * 40, files=(DataFile("a.csv", 1, 1), DataFile("b.csv", 1, 1)), packages=("x 1",), python="3"
    )
    assert before.news(before) == ""
    after = replace(
        before,
        branch="dev",
        changes=("M a.py",),
        files=(DataFile("a.csv", 2, 2), DataFile("c.csv", 1, 1)),
        packages=("x 2",),
    )
    said = after.news(before)
    for words in (
        "now dev at aaaaaaaaaa, before main", "1 changed: M a.py", "files new: c.csv", "files no longer listed: b.csv",
        "files changed: a.csv", "before x 1", "now x 2",
    ):  # fmt: skip
        assert words in said


def test_very_many_files_are_counted_not_listed(rig):
    for number in range(60):
        rig.write(f"work/f{number}.csv", "x")
    state = look_now(rig.places, {"PATH": ""})
    assert len(state.files) + state.more_files == 60
    assert "and 20 more" in state.text
