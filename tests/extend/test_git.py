"""Git runs without a shell, without questions, and without anything that a repository brings along."""

from __future__ import annotations

import asyncio
import os

import pytest

from nbagent.extend.git import Git, GitError, NotARepository
from nbagent.extend.worktrees import Merged
from tests.extend.git_rig import Repo, lines, notebook, sources

pytestmark = pytest.mark.slow
HOOKS = (
    *("post-checkout", "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit", "post-merge"),
    *("reference-transaction", "post-index-change", "pre-auto-gc", "post-rewrite", "fsmonitor-watchman", "applypatch-msg"),
)  # fmt: skip


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path)


async def whole_life(repo, folder="."):
    """All that a team does: two copies, commits, merges of texts and notebooks, accepted, removed."""
    team = repo.team(folder)
    for name, line, cell in (("ana", "l1", "a"), ("bo", "l10", "c")):
        copy = await team.add(name)
        repo.write("b.txt", lines(**{line: name}), copy.path)
        repo.write("work/n.ipynb", notebook(**{"a": "x = 1", "b": "y = 2", "c": "z = 3", cell: name}), copy.path)
        repo.write(f"{name}.dat", name, copy.path)
        assert await team.commit(copy, f"Work of {name}")
    told = [await team.merge(name) for name in ("ana", "bo")]
    await team.state()
    await team.patch()
    accepted = await team.accept()
    await team.remove()
    return told, accepted


def evil_settings(repo, evil):
    """Settings that a repository may bring, each with a program."""
    return f"""
[core]
\tfsmonitor = {evil}
\thooksPath = {repo.tmp / "hooks"}
\teditor = {evil}
\tpager = {evil}
\tsshCommand = {evil}
\taskPass = {evil}
[commit]
\tgpgSign = true
[gpg]
\tprogram = {evil}
[filter "evil"]
\tclean = {evil}
\tsmudge = {evil}
\trequired = true
[filter "a=b"]
\tprocess = {evil}
[merge]
\tdefault = evil
[merge "evil"]
\tdriver = {evil} %O %A %B
[diff]
\texternal = {evil}
[diff "evil"]
\tcommand = {evil}
\ttextconv = {evil}
[credential]
\thelper = "!{evil}"
[pull]
\ttwohead = evil
[branch "nbagent/fix/lead"]
\tmergeOptions = -s evil
[hook "evil"]
\tevent = post-commit
\tevent = post-checkout
\tevent = reference-transaction
\tcommand = {evil}
[extensions]
\tworktreeConfig = true
"""


async def test_nothing_of_the_repository_runs_in_a_whole_life_of_a_team(repo):
    evil, ran = repo.evil()
    for folder in (repo.top / ".git" / "hooks", repo.tmp / "hooks"):
        folder.mkdir(exist_ok=True)
        for hook in HOOKS:
            (folder / hook).symlink_to(evil)
    (repo.tmp / "git-merge-evil").symlink_to(evil)
    repo.env["PATH"] = f"{repo.env['PATH']}{os.pathsep}{repo.tmp}"
    repo.write(".gitattributes", "*.txt merge=evil diff=evil\n*.ipynb filter=a=b diff=evil\n*.bin filter=evil\n")
    repo.write("c.bin", "c")
    repo.commit()
    with (repo.top / ".git" / "config").open("a") as file:
        file.write(evil_settings(repo, evil))
    repo.write(".git/config.worktree", f'[filter "evil"]\n\tclean = {evil}\n')
    assert "post-commit" in ran.read_text()  # the person's own git does run them
    ran.unlink()
    told, accepted = await whole_life(repo)
    assert not ran.exists(), ran.read_text()
    assert [type(one) for one in told] == [Merged, Merged]
    assert [file.path for file in accepted.files] == ["ana.dat", "b.txt", "bo.dat"]  # notebooks need the filter
    repo.git("-c", "core.hooksPath=", "checkout", "-q", "HEAD~1", "--", "b.txt")
    assert "evil" in ran.read_text()


@pytest.mark.parametrize("scope", ["local", "worktree", "global"])
async def test_a_hook_that_settings_name_has_nothing_to_run(repo, scope):
    """Git runs such hooks since 2.54, wherever core.hooksPath leads; of two commands of one name the last one counts."""
    if scope == "worktree":
        repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("config", f"--{scope}", "hook.a=b.command", "evil")
    repo.git("config", f"--{scope}", "hook.a=b.event", "reference-transaction")
    git = repo.plumbing()
    assert (await git.text("-c", "x.y=1", "config", "hook.a=b.command")) == ":"
    assert dict((await git.programs()).settings) == {"hook.a=b.command": ":", "hook.a=b.enabled": "false"}


@pytest.mark.parametrize(
    "key",
    [
        "core.sshCommand",
        "credential.helper",
        "credential.https://x.org.helper",
        "remote.origin.uploadpack",
        "remote.origin.vcs",
    ],
)
async def test_a_program_of_the_repositorys_settings_talks_to_no_server(repo, key):
    evil, ran = repo.evil()
    repo.git("clone", "-q", "--bare", str(repo.top), str(repo.tmp / "server.git"))
    repo.git("remote", "add", "origin", str(repo.tmp / "server.git"))
    git = repo.plumbing()
    with pytest.raises(GitError, match=r"transport 'file' not allowed"):
        await git.run("ls-remote", "origin")
    assert "refs/heads/main" in await git.talking().text("ls-remote", "origin")
    repo.git("config", key, str(evil))
    with pytest.raises(
        GitError, match=r"name a program for talking to servers \(.*\), which is not run: set it in your own"
    ):
        await git.talking().run("ls-remote", "origin")
    assert not ran.exists()


async def test_lines_that_a_repository_would_merge_by_a_program_are_merged_by_us(repo):
    repo.write(".gitattributes", "*.txt merge=evil\n")
    repo.commit()
    repo.git("config", "merge.evil.driver", "true")  # it would take our side for all
    told, _ = await whole_life(repo)
    assert [type(one) for one in told] == [Merged, Merged]
    assert repo.read("b.txt") == lines(l1="ana", l10="bo")


async def test_filters_of_the_person_run_and_those_of_the_repository_do_not(repo):
    repo.config.write_text(repo.config.read_text() + '[filter "up"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n')
    repo.write(".gitattributes", "*.up filter=up\n*.own filter=own\n")
    repo.commit()
    repo.git("config", "filter.own.clean", "tr a-z A-Z")
    team = repo.team()
    copy = await team.add("ana")
    repo.write("x.up", "abc\n", copy.path)
    repo.write("y.own", "abc\n", copy.path)
    await team.commit(copy, "Two files")
    assert repo.git("show", f"{copy.branch}:x.up") == "ABC"
    (left,) = await team.left_out(copy)
    assert left.path == "y.own"
    assert "needs the filter own of this repository's own settings" in left.why
    repo.git("config", "filter.up.clean", "exit 1")  # the repository's word for the same name does not count
    repo.write("x.up", "abcd\n", copy.path)
    await team.commit(copy, "Again")
    assert repo.git("show", f"{copy.branch}:x.up") == "ABCD"


@pytest.mark.parametrize(
    "name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"]
)
async def test_the_callers_environment_does_not_lead_git_elsewhere(repo, name):
    other = Repo(repo.tmp / "elsewhere")
    before = other.looks()
    found = await Git(repo.top, {**repo.env, name: str(other.top / ".git")}).text("rev-parse", "--show-toplevel")
    assert found == str(repo.top)
    assert other.looks() == before


async def test_what_goes_wrong_is_one_sentence(repo, tmp_path):
    git = repo.plumbing()
    with pytest.raises(GitError, match=r"^git cat-file failed: Not a valid object name nothing\.$"):
        await git.run("cat-file", "blob", "nothing")
    with pytest.raises(GitError, match=r"took longer than 0\.2 seconds and was stopped"):
        await git.run(
            "cat-file", "--batch-all-objects", "--batch", "--buffer", "--unordered", seconds=0.2, **slow(repo)
        )
    old = repo.write("../bin/git", "#!/bin/sh\necho git version 2.25.1\n")
    old.chmod(0o755)
    with pytest.raises(GitError, match=r"git version 2\.25\.1 is too old for teams: 2\.31 or newer is needed"):
        await Git(repo.top, {"PATH": str(old.parent)}).top()
    with pytest.raises(GitError, match="git is not installed here"):
        await Git(repo.top, {"PATH": ""}).run("version")
    with pytest.raises(GitError, match=r"git can't be started in .*nowhere: no such file or directory"):
        await Git(tmp_path / "nowhere", repo.env).run("version")
    (repo.top / ".git" / "index.lock").touch()
    with pytest.raises(GitError, match=r"Another git is at work in .*delete its index\.lock"):
        await git.run("read-tree", "HEAD")


def slow(repo):
    """Make git wait for longer than a test: an alternate that is a pipe with nobody at the other end."""
    os.mkfifo(repo.tmp / "pipe")
    return {"env": {"GIT_CONFIG_GLOBAL": str(repo.tmp / "pipe")}}


async def test_a_git_that_is_cancelled_is_ended(repo):
    waiting = slow(repo)
    task = asyncio.create_task(repo.plumbing().run("version", **waiting))
    writer = await asyncio.to_thread(os.open, repo.tmp / "pipe", os.O_WRONLY)  # git has opened it to read
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(BrokenPipeError):  # nobody reads any more
        await asyncio.to_thread(_write_for_ever, writer)
    os.close(writer)


def _write_for_ever(writer):
    while True:
        os.write(writer, b"#\n" * 4096)


async def test_outside_of_a_checkout_people_are_told_what_to_do(tmp_path):
    repo = Repo(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    with pytest.raises(NotARepository, match=r"is not the checkout of a git repository.*git init.*--no-worktrees"):
        await Git(outside, repo.env).top()
    repo.git("clone", "-q", "--bare", str(repo.top), str(tmp_path / "bare.git"))
    for place in (tmp_path / "bare.git", repo.top / ".git"):
        with pytest.raises(NotARepository):
            await Git(place, repo.env).top()
    repo.git("config", "core.worktree", str(tmp_path))  # a repository that says it is about another folder
    with pytest.raises(NotARepository):
        await repo.plumbing().top()


async def test_commits_have_the_persons_name_or_ours_and_no_setting_changes(repo):
    team = repo.team()
    copy = await team.add("ana")
    repo.write("one.txt", "1", copy.path)
    await team.commit(copy, "One")
    assert (
        repo.git("log", "-1", "--format=%an <%ae> %cn%n%B", copy.branch)
        == "Pat <pat@example.org> Pat\nOne\n\nTeammate: ana"
    )
    repo.config.write_text("")
    settings = repo.read(".git/config")
    repo.write("one.txt", "2", copy.path)
    await team.commit(copy, "Two")
    assert repo.git("log", "-1", "--format=%an <%ae> %cn", copy.branch) == "nbagent ana <nbagent@localhost> nbagent ana"
    assert (repo.read(".git/config"), repo.config.read_text()) == (settings, "")


async def test_a_notebooks_folder_that_is_not_the_top_works_too(repo):
    told, accepted = await whole_life(repo, "work")
    assert [type(one) for one in told] == [Merged, Merged]
    assert accepted.committed
    assert sources(repo.read("work/n.ipynb")) == {"a": "ana", "b": "y = 2", "c": "bo"}
