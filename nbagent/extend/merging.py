"""Merges one branch into the branch of a worktree: files as git does, notebooks cell by cell, and nothing by force.

Where both sides changed the same thing, both are reported, and the worktree is as it was before. The merge is done
again with answers to its conflicts (`Answers`). Read `merge`, then `_settled`. It must not know whose branches they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from nbagent.core.messages import clean
from nbagent.extend import conflicts, nbmerge
from nbagent.extend.conflicts import Conflict, Hunk
from nbagent.extend.git import Git, GitError

__all__ = ["Answers", "Change", "Conflict", "Conflicted", "Hunk", "Merged", "Side", "changed", "contains", "merge"]

Side = Literal["ours", "theirs"]
_MARKER = "nbagent-merge"
_NONE = "0" * 40
_FILES = ("100644", "100755")


@dataclass(frozen=True, slots=True)
class Change:
    """One file that a commit has other than another: its path from the top, and added, changed or deleted.

    `added` and `removed` are lines; both 0 for a file that is no text.
    """

    path: str
    kind: Literal["added", "changed", "deleted"]
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class Merged:
    """What was merged: the branch, the files that it changed here, and the commit that came of it.

    `already`: there was nothing to do.
    """

    branch: str
    files: tuple[str, ...]
    sha: str
    already: bool = False

    @property
    def sentence(self) -> str:
        """What happened, for people and models."""
        if self.already:
            return f"{self.branch} is already merged."
        return f"{self.branch} is merged: {conflicts.counted(len(self.files), 'file')} ({conflicts.names(self.files)}), {self.sha[:8]}."


@dataclass(frozen=True, slots=True)
class Conflicted:
    """A branch that was not merged, and the files of which both sides changed the same thing."""

    branch: str
    files: tuple[Conflict, ...]

    @property
    def sentence(self) -> str:
        """What happened, for people and models."""
        told = conflicts.names([file.sentence for file in self.files])
        return f"{self.branch} is not merged, and nothing was changed. Both sides changed the same in: {told}."


@dataclass(frozen=True, slots=True)
class Answers:
    """How conflicts are settled: path → the whole text (None: deleted), or path → the side that counts where they differ."""

    texts: Mapping[str, str | None] = field(default_factory=dict)
    sides: Mapping[str, Side] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _File:
    """One version of a file: git's mode and the name of its content."""

    mode: str
    oid: str


_Versions = dict[int, _File]  # 1 the base, 2 ours, 3 theirs, as git counts them


async def merge(
    git: Git, tip: str, label: str, message: str, answers: Answers, who: Mapping[str, str]
) -> Merged | Conflicted:
    """Merge the commit `tip` into the branch that is checked out at `git`, the top of a worktree without changes.

    `label` is what people call it; `who` names who commits. Raises GitError where git can't merge at all.
    """
    head = await git.text("rev-parse", "HEAD")
    if await contains(git, head, tip):
        return Merged(label, (), head, already=True)
    base = (await git.find("merge-base", head, tip)).split("\n")[0]
    if not base:
        raise GitError(f"{label} can't be merged: it has no commit in common with what is here.")
    await _nothing_of_ours(git, base, tip, label)
    marker = await _marker(git)
    await asyncio.to_thread(marker.touch)
    try:
        told = await _tried(git, (head, base, tip), label, answers, who)
        if not told:
            await git.run(
                "commit", "-q", "--no-verify", "--no-gpg-sign", "-F", "-", data=f"{clean(message)}\n", env=who
            )
    except BaseException:
        await asyncio.shield(aborted(git))
        raise
    if told:
        await aborted(git)
        return Conflicted(label, tuple(told))
    await asyncio.to_thread(marker.unlink, missing_ok=True)
    sha = await git.text("rev-parse", "HEAD")
    return Merged(label, tuple(await _names(git, head, sha)), sha)


async def aborted(git: Git) -> None:
    """Bring a worktree back to where it was before a merge of ours that did not end, by a conflict or by a crash.

    Raises GitError where a merge is under way that somebody else began.
    """
    marker = await _marker(git)
    if marker.exists():
        with contextlib.suppress(FileNotFoundError):  # who held it died: here only we merge
            (await _path(git, "index.lock")).unlink()
        await git.run("reset", "--hard", "-q", "HEAD")
        marker.unlink(missing_ok=True)
    elif await git.find("rev-parse", "-q", "--verify", "MERGE_HEAD"):
        place = clean(str(git.folder))
        raise GitError(f"A merge is under way in {place}: finish it (git commit) or give it up (git merge --abort).")


async def contains(git: Git, commit: str, other: str) -> bool:
    """Whether the history of `commit` has `other` in it."""
    return (await git.run("merge-base", "--is-ancestor", other, commit, ok=(0, 1))).code == 0


async def changed(git: Git, before: str, after: str) -> tuple[Change, ...]:
    """Return the files in which `after` is other than `before`, by path."""
    words = ("diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")
    kinds = (await git.run(*words, "--name-status", before, after)).fields
    lines: dict[str, tuple[int, int]] = {}
    for entry in (await git.run(*words, "--numstat", before, after)).fields:
        added, removed, path = entry.split("\t", 2)
        lines[path] = (int(added), int(removed)) if added != "-" else (0, 0)
    named: dict[str, Literal["added", "deleted"]] = {"A": "added", "D": "deleted"}
    return tuple(
        Change(path, named.get(kind[0], "changed"), *lines.get(path, (0, 0)))
        for kind, path in zip(kinds[::2], kinds[1::2], strict=True)
    )


async def own_work(git: Git, base: str, tip: str) -> tuple[int, tuple[str, ...]]:
    """Return how many commits were made on a branch since `base`, without what was merged into it, and their files."""
    listed = await git.text("rev-list", "--first-parent", "--no-merges", tip, f"^{base}")
    words = ("diff-tree", "--stdin", "-r", "-z", "--no-renames", "--name-only", "--no-commit-id")
    files = (await git.run(*words, data=f"{listed}\n")).fields if listed else []
    return len(listed.split()), tuple(sorted(set(files)))


# ── one merge ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _tried(
    git: Git, commits: tuple[str, str, str], label: str, answers: Answers, who: Mapping[str, str]
) -> list[Conflict]:
    """Merge without a commit, settle what can be settled, and return what can't; `commits`: ours, before, theirs."""
    head, base, tip = commits
    words = ("merge", "--no-ff", "--no-commit", "--no-verify", "--no-stat", "--no-edit", "-q", "--no-rerere-autoupdate")
    ran = await git.run(*words, tip, ok=(0, 1, 2, 128), env=who, seconds=600)  # git asks for a name here, too
    if not await git.find("rev-parse", "-q", "--verify", "MERGE_HEAD"):
        told = " ".join((ran.said.strip() or ran.text).split())
        raise GitError(f"{label} can't be merged: {told.removeprefix('error: ') or 'git does not say why'}")
    found: list[Conflict] = []
    for path, versions in {**await _unmerged(git), **await _notebooks(git, head, base, tip)}.items():
        settled = await _settled(git, path, versions, answers)
        if isinstance(settled, Conflict):
            found.append(settled)
        else:
            await _write(git, path, settled, _mode(versions))
    return found


async def _unmerged(git: Git) -> dict[str, _Versions]:
    found: dict[str, _Versions] = {}
    for entry in (await git.run("ls-files", "-u", "-z")).fields:
        facts, _, path = entry.partition("\t")
        mode, oid, stage = facts.split(" ")
        found.setdefault(path, {})[int(stage)] = _File(mode, oid)
    return found


async def _notebooks(git: Git, head: str, base: str, tip: str) -> dict[str, _Versions]:
    """Return the notebooks that both sides changed: merged as text they may have cells twice and outputs of another cell."""
    both = set(await _names(git, base, head)) & set(await _names(git, base, tip))
    found: dict[str, _Versions] = {}
    for path in sorted(path for path in both if path.endswith(".ipynb")):
        versions = {
            stage: file
            for stage, commit in ((1, base), (2, head), (3, tip))
            if (file := await _file(git, commit, path)) is not None
        }
        if versions.get(2) != versions.get(3):
            found[path] = versions
    return found


async def _settled(git: Git, path: str, versions: _Versions, answers: Answers) -> bytes | Conflict | None:
    """Return what a file is after the merge (None: deleted), or the conflict."""
    if path in answers.texts:
        return _answered(path, answers.texts[path])
    side = answers.sides.get(path)
    whole = any(file.mode not in _FILES for file in versions.values())
    base, ours, theirs = [await _data(git, versions.get(stage)) for stage in (1, 2, 3)]
    if not whole and ours is not None and theirs is not None:
        if path.endswith(".ipynb"):
            told = nbmerge.merge_files(path, base, ours, theirs, side)
            if told is not None:
                return told
        elif not conflicts.binary(base, ours, theirs):
            return await conflicts.merge_texts(git, path, base or b"", ours, theirs, side)
    if side is not None:
        return ours if side == "ours" else theirs
    return conflicts.of_whole(path, base, ours, theirs)


def _answered(path: str, text: str | None) -> bytes | None:
    if text is None:
        return None
    starts = {line[:8] for line in text.splitlines()}
    if {"<<<<<<< ", ">>>>>>> "} <= starts:
        raise GitError(
            f"The answer for {clean(path)} still has the marks of a conflict (<<<<<<<, >>>>>>>): take them out."
        )
    data = text.encode()
    if path.endswith(".ipynb") and (problem := nbmerge.problem_of(data)):
        raise GitError(f"The answer for {clean(path)} is no notebook: {problem}.")
    return data


async def _data(git: Git, file: _File | None) -> bytes | None:
    if file is None:
        return None
    if file.mode == "160000":
        return f"the commit {file.oid} of a submodule".encode()
    return (await git.run("cat-file", "blob", file.oid)).out


async def _file(git: Git, commit: str, path: str) -> _File | None:
    for entry in (await git.run("ls-tree", "-z", commit, "--", path)).fields:
        mode, _, oid = entry.partition("\t")[0].split(" ")
        return _File(mode, oid)
    return None


def _mode(versions: _Versions) -> str:
    """Return the mode of a file after a merge: the one that a side changed it to."""
    base, ours, theirs = (versions[stage].mode if stage in versions else "" for stage in (1, 2, 3))
    return (theirs if ours in {"", base} else ours) or ours or "100644"


async def _write(git: Git, path: str, data: bytes | None, mode: str) -> None:
    """Put a file into the index, instead of its versions, and into the worktree."""
    gone = f"0 {_NONE} 0\t{path}\0"
    if data is None:
        await git.run("update-index", "-z", "--index-info", data=os.fsencode(gone))
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            await asyncio.to_thread((git.folder / path).unlink)
        return
    oid = (await git.run("hash-object", "-w", "--stdin", data=data)).text
    await git.run("update-index", "-z", "--index-info", data=os.fsencode(f"{gone}{mode} {oid} 0\t{path}\0"))
    await git.run("checkout-index", "-f", "-q", "--", path)


async def _names(git: Git, before: str, after: str) -> list[str]:
    return (await git.run("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, after)).fields


async def _nothing_of_ours(git: Git, base: str, tip: str, label: str) -> None:
    """Refuse a branch that changes `.nbagent`, where permissions and hooks lie: a teammate may not write them."""
    ours = [path for path in await _names(git, base, tip) if ".nbagent" in path.lower().split("/")]
    if ours:
        raise GitError(f"{label} is not merged: it changes {conflicts.names(ours)}, which belongs to nbagent itself.")


async def _marker(git: Git) -> Path:
    return await _path(git, _MARKER)


async def _path(git: Git, name: str) -> Path:
    return git.folder / await git.text("rev-parse", "--git-path", name)
