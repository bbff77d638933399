"""Where the copies of a team start: the person's files as they are, without touching their index, stash or branch.

What was not committed becomes a commit that only `refs/nbagent/TEAM/files/base` holds, so it is never in the person's
history. It is made with an index of its own, as `git stash create` does, but with new files too: a notebook that was never
added is what analysts work on. Big new files and folders full of them stay out; each is told. Read `begin`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from nbagent.core.messages import clean
from nbagent.extend.changes import COPIED, COPIED_FILES, LeftOut, Pending, identity, pending, stage
from nbagent.extend.git import Git, GitError

_SHOWN = 5  # names in one sentence
_LONG = 600.0  # seconds for writing all files of a repository
_NO_DATA = frozenset(
    {
        *(".nbagent/", ".ipynb_checkpoints/", "__pycache__/", "node_modules/", ".venv/", "venv/", ".pytest_cache/"),
        *(".mypy_cache/", ".ruff_cache/", ".git/", ".idea/", ".vscode/", ".DS_Store", "dist/", "build/"),
    }
)


@dataclass(frozen=True, slots=True)
class Start:
    """What the copies of a team start from: the commit `base`, and `head`, the person's commit then.

    They differ where `uncommitted` files are in `base`. `notes` are sentences for people about what is in the copies and
    what is not.
    """

    base: str
    head: str
    uncommitted: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def snapshot(self) -> bool:
        """Whether the copies start from files that are not committed."""
        return self.base != self.head


def refs(team: str) -> tuple[str, str]:
    """Return the refs that hold what a team started from: the commit of its copies, and the person's."""
    return f"refs/nbagent/{team}/files/base", f"refs/nbagent/{team}/files/head"


async def begin(git: Git, team: str, *, uncommitted: bool) -> Start:
    """Return what a team starts from; fix it, where that was not done. `git` is at the top of the checkout."""
    return await _told(git, *await started(git, team, uncommitted=uncommitted))


async def started(git: Git, team: str, *, uncommitted: bool = True) -> tuple[str, str]:
    """Do as `begin` does and return its `base` and `head` only, without a look at all files where that was done before."""
    if (known := await _known(git, team)) is not None:
        return known
    head = await git.find("rev-parse", "-q", "--verify", "HEAD")
    if not head:
        raise GitError(
            "This repository has no commit yet, so there is nothing that a team could branch off: make one first "
            '(git add …, git commit -m "Start"), or go on with --no-worktrees.'
        )
    base = head
    if uncommitted:
        await _not_in_a_merge(git)
        what = await pending(git, largest=COPIED, most=COPIED_FILES)
        base = await snapshot(git, what, (head,), "Files that were not committed when the team began") or head
    base_ref, head_ref = refs(team)
    created = f"create {base_ref} {base}\ncreate {head_ref} {head}\n"
    if (await git.run("update-ref", "--stdin", data=created, ok=(0, 128))).code != 0:  # another process was first, or…
        known = await _known(git, team)
        if known is None:
            raise GitError(f"The start of the team could not be kept in {base_ref}: may git write in this repository?")
        base, head = known
    return base, head


async def snapshot(git: Git, what: Pending, parents: Sequence[str], message: str) -> str:
    """Commit changed files to no branch, and return the commit; "" where they are as in the first of `parents`."""
    async with own_index(git) as env:
        await stage(git, what, env)
        tree = await git.text("write-tree", env=env)
    if tree == await git.text("rev-parse", f"{parents[0]}^{{tree}}"):
        return ""
    words = [word for parent in parents for word in ("-p", parent)]
    return await git.text("commit-tree", tree, *words, "-m", message, env=await identity(git, ""))


@asynccontextmanager
async def own_index(git: Git) -> AsyncGenerator[dict[str, str]]:
    """Give an environment in which git works with a copy of the index of the checkout."""
    index = Path(await git.text("rev-parse", "--git-path", "index"))
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="nbagent-index-"))
    try:
        with contextlib.suppress(FileNotFoundError):
            await asyncio.to_thread(shutil.copyfile, git.folder / index, folder / "index")
        yield {"GIT_INDEX_FILE": str(folder / "index")}
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def checked_out(git: Git, path: Path, branch: str, base: str) -> None:
    """See that the worktree at `path` is there, on its branch, which begins at `base` if it is new.

    What a crash left is taken up or made anew: a folder that is gone, a worktree that was still being made.
    """
    entry = await _entry(git, path)
    half_made = entry is not None and "locked initializing" in entry
    whole, files = await asyncio.to_thread(_there, path)
    if entry is not None and whole and not half_made:
        return
    if entry is not None and files and not half_made:
        raise GitError(f"{clean(str(path))} has lost its .git file: move the folder away, then it is made anew.")
    if entry is not None:
        await git.run("worktree", "remove", "--force", "--force", str(path), ok=(0, 128))
        await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
    elif files:
        raise GitError(f"{clean(str(path))} is in the way, and git does not know it as a copy: move it away.")
    there = await git.find("rev-parse", "-q", "--verify", f"refs/heads/{branch}")
    words = (str(path), branch) if there else ("--no-track", "-b", branch, str(path), base)
    try:
        await git.run("worktree", "add", *words, seconds=_LONG)
    except BaseException:
        await asyncio.shield(git.run("worktree", "remove", "--force", "--force", str(path), ok=(0, 128)))
        raise


async def _entry(git: Git, path: Path) -> list[str] | None:
    """Return the lines that git has on the worktree at `path`, None where it knows none."""
    listed = (await git.text("worktree", "list", "--porcelain")).split("\n\n")
    blocks = {_real(lines[0].removeprefix("worktree ")): lines for block in listed if (lines := block.splitlines())}
    return blocks.get(_real(path))


def _real(path: str | Path) -> str:
    return os.path.realpath(path)


def _there(path: Path) -> tuple[bool, bool]:
    """Return whether there is a worktree at `path`, and whether there is anything."""
    return (path / ".git").is_file(), path.is_dir() and any(path.iterdir())


async def _known(git: Git, team: str) -> tuple[str, str] | None:
    base, head = [await git.find("rev-parse", "-q", "--verify", ref) for ref in refs(team)]
    return (base, head) if base and head else None


async def _not_in_a_merge(git: Git) -> None:
    if await git.find("ls-files", "-u"):
        raise GitError(
            "A merge with conflicts is under way in your files: finish it (git commit) or give it up (git merge --abort), "
            "then start the team."
        )


async def _told(git: Git, base: str, head: str) -> Start:
    """Return a start with the sentences about it."""
    inside: tuple[str, ...] = ()
    if base != head:
        inside = tuple((await git.run("diff-tree", "-r", "-z", "--name-only", head, base)).fields)
    now = await pending(git, largest=COPIED, most=COPIED_FILES)
    branch = (await git.find("symbolic-ref", "-q", "--short", "HEAD")) or "no branch"
    if inside:
        told = (
            f"The team starts from your files as they are: {len(inside)} of them not committed yet ({_names(inside)})."
        )
        notes = [f"{told} In your own folder they stay as they are."]
    else:
        notes = [f"The team starts from your last commit ({head[:8]} on {branch})."]
        if now.take:
            notes.append(f"What you did not commit is not in its copies: {_names(now.take)}.")
    if now.left_out:
        told = [f"{one.path} ({one.why})" for one in now.left_out if ".nbagent" not in one.path.split("/")]
        notes += [f"Not in the copies: {_names(told)}; they lie in {clean(str(git.folder))}."] if told else []
    if ignored := await _ignored(git):
        notes.append(f"Ignored by git, so not in the copies: {_names(ignored)}; they lie in {clean(str(git.folder))}.")
    return Start(base, head, inside, now.left_out, (*notes, *await _kinds(git, base)))


async def _ignored(git: Git) -> list[str]:
    words = ("ls-files", "-o", "-i", "--exclude-standard", "--directory", "-z")
    found = (await git.run(*words)).fields
    return [path for path in found if not _NO_DATA & {f"{part}/" for part in path.split("/")} | {path} & _NO_DATA]


async def _kinds(git: Git, base: str) -> list[str]:
    notes: list[str] = []
    if await git.find("rev-parse", "-q", "--verify", f"{base}:.gitmodules"):
        notes.append("Submodules are empty in the copies.")
    if "filter=lfs" in await git.find("cat-file", "blob", f"{base}:.gitattributes"):
        notes.append("Files of Git LFS are pointers in the copies; their contents lie in your own folder.")
    return notes


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(clean(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
