"""Gives the person's checkout what a team merged, and nothing that would cost them something of theirs.

First what they did since is merged into the lead's branch, in the lead's worktree, where a conflict harms nothing. Then
the result differs from their files only by the team's work. Where the team started from a commit, their branch goes
forward to it. Where it started from files that were not committed, those get the changes and nothing is committed: who
did not commit before is not made to. A file that changed in the meantime, one that is not in git and one that a page has
open are never overwritten. Read `accept`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from nbagent.core.messages import Json, clean
from nbagent.core.ports import Notebook
from nbagent.extend import changes, conflicts, livecells, merging, snapshots
from nbagent.extend.conflicts import Conflict
from nbagent.extend.git import Git, GitError
from nbagent.extend.merging import Answers, Change, Conflicted

Notebooks = Mapping[Path, Notebook | None]
"""The notebooks that are open in a page: the file, and the port through which its cells can be changed (None: none)."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a person's files got: the files, the commit that they are like now, and the command that takes it back.

    `committed`: their branch has it too.
    """

    files: tuple[Change, ...]
    sha: str
    committed: bool
    undo: str

    @property
    def sentence(self) -> str:
        """What happened, for people and models."""
        if not self.files:
            return "Your files have all that the team did already."
        told = f"{conflicts.counted(len(self.files), 'file')} changed ({conflicts.names([file.path for file in self.files])})"
        where = f", commit {self.sha[:8]}" if self.committed else "; nothing is committed"
        return f"{told}{where}. To take it back: {self.undo}"


class NotAccepted(GitError):
    """The team's work can't get into the person's files as they are; nothing was changed.

    `files` are in the way; `notebooks` are those that a page has open; `conflicts` are what both sides changed.
    """

    def __init__(
        self,
        sentence: str,
        *,
        files: Sequence[str] = (),
        notebooks: Sequence[str] = (),
        conflicts: Sequence[Conflict] = (),
    ) -> None:
        super().__init__(sentence)
        self.files = tuple(files)
        self.notebooks = tuple(notebooks)
        self.conflicts = tuple(conflicts)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an acceptance would do: from the person's state `now` to `then`, by these files; `commits` moves their branch."""

    now: str
    then: str
    files: tuple[Change, ...]
    commits: bool


async def accept(git: Git, lead: Git, team: str, notebooks: Notebooks, answers: Answers) -> Accepted:
    """Give the checkout at `git` (its top) what is on the branch of the worktree at `lead`.

    Raises `NotAccepted`, and changes nothing of the person's, where something of theirs is in the way.
    """
    for notebook in notebooks.values():
        if notebook is not None:
            await notebook.save()  # so that the file says what the page shows
    commits = await _commits(git, team)
    plan = await _planned(git, lead, team, answers, commits=commits)
    opened = {name: port for path, port in notebooks.items() if (name := _inside(git, path)) is not None}
    live = {file.path: opened[file.path] for file in plan.files if file.path in opened}
    if commits and any(port is not None for port in live.values()):  # a commit can't wait for a page
        plan = await _planned(git, lead, team, answers, commits=False)
    if closed := [name for name, port in live.items() if port is None]:
        raise NotAccepted(
            f"The team changed {conflicts.names(closed)}, which is open in a page: save and close it, then accept again.",
            notebooks=closed,
        )
    await _see_that_nothing_is_lost(git, plan)
    return await asyncio.shield(_done(git, team, plan, {n: port for n, port in live.items() if port is not None}))


async def known(git: Git, team: str) -> str:
    """Return the commit that is as the person's files were when the team's work was last merged with them, "" for none."""
    return await git.find("rev-parse", "-q", "--verify", _ref(team, "now"))


async def accepted(git: Git, team: str) -> tuple[str, ...]:
    """Return the commits that the person's files once got."""
    found = await git.find("rev-parse", "-q", "--verify", _ref(team, "accepted"))
    return (found,) if found else ()


def _ref(team: str, name: str) -> str:
    return f"refs/nbagent/{team}/files/{name}"


# ── before ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _commits(git: Git, team: str) -> bool:
    """Whether the person's branch can have the work: nothing that they did not commit is in the team's history."""
    base, head = [await git.text("rev-parse", ref) for ref in snapshots.refs(team)]
    seen = await known(git, team)
    return base == head and (not seen or await merging.contains(git, "HEAD", seen))


async def _planned(git: Git, lead: Git, team: str, answers: Answers, *, commits: bool) -> _Plan:
    """Merge what the person did since into the lead's branch, and return what is left to do."""
    head = await git.find("rev-parse", "-q", "--verify", "HEAD")
    if not head:
        raise NotAccepted("Your branch has no commit, so the team's work can't be added to it: switch to one that has.")
    now = head if commits else await _snapshot(git, team, head)
    who = await changes.identity(git, "lead")
    told = await merging.merge(
        lead, now, "What you did since", "Merge what was done since in the checkout", answers, who
    )
    if isinstance(told, Conflicted):
        raise NotAccepted(
            "You and the team changed the same in: "
            f"{conflicts.names([file.sentence for file in told.files])}. Nothing was changed.",
            files=[file.path for file in told.files],
            conflicts=told.files,
        )
    await git.run("update-ref", _ref(team, "now"), now)
    then = await lead.text("rev-parse", "HEAD")
    return _Plan(now, then, await merging.changed(git, now, then), commits)


async def _snapshot(git: Git, team: str, head: str) -> str:
    """Return a commit that is as the person's files are, after what the team knows of them already."""
    before = await known(git, team) or await git.text("rev-parse", snapshots.refs(team)[0])
    what = await _state(git)
    parents = (before,) if await merging.contains(git, before, head) else (before, head)
    return await snapshots.snapshot(git, what, parents, "The files of the checkout, not committed") or before


async def _see_that_nothing_is_lost(git: Git, plan: _Plan) -> None:
    """Raise `NotAccepted` where a file of the plan holds something that git does not have."""
    paths = [file.path for file in plan.files]
    state = await _state(git)
    loose = {one.path for one in state.left_out} | (set(state.take) if plan.commits else set())
    there = {path for path in (f.path for f in plan.files if f.kind == "added") if _exists(git.folder / path)}
    if lost := sorted((set(paths) & loose) | there):
        raise NotAccepted(
            f"Your own {conflicts.names(lost)} would be overwritten: commit or move what you have there, then accept again.",
            files=lost,
        )
    filters = (await git.programs()).filters
    if filters and (bound := await changes.filtered(git, paths, filters)):
        raise NotAccepted(
            f"{conflicts.names(list(bound))} needs a filter of this repository's own settings, which nbagent does not run: "
            f"merge it yourself with git merge {plan.then[:12]}",
            files=list(bound),
        )


async def _state(git: Git) -> changes.Pending:
    return await changes.pending(git, largest=changes.COPIED, most=changes.COPIED_FILES)


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _inside(git: Git, path: Path) -> str | None:
    """Return a path from the top of the checkout as git writes it, None for one that lies elsewhere."""
    real, top = Path(os.path.realpath(path)), Path(os.path.realpath(git.folder))
    return real.relative_to(top).as_posix() if top in real.parents else None


# ── doing it ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _done(git: Git, team: str, plan: _Plan, live: Mapping[str, Notebook]) -> Accepted:
    if not plan.files and not plan.commits:
        return Accepted((), plan.now, committed=False, undo="")
    if plan.commits:
        if plan.now != plan.then:
            await git.run(
                "merge", "--ff-only", "--no-stat", "-q", plan.then, seconds=600, env={"GIT_LFS_SKIP_SMUDGE": "0"}
            )
        undo = f"git reset --keep {plan.now[:12]}"
    else:
        for name, notebook in live.items():  # first: what stops it half-way is the same on both sides the next time
            versions = [await _notebook(git, commit, name) for commit in (plan.now, plan.then)]
            await livecells.bring_in(notebook, *versions)
        await _write_files(git, plan, live)
        undo = f"git diff --binary {plan.then[:12]} {plan.now[:12]} | git apply (in {clean(str(git.folder))})"
    for name in ("now", "accepted"):
        await git.run("update-ref", _ref(team, name), plan.then)
    return Accepted(plan.files, plan.then, plan.commits, undo)


async def _write_files(git: Git, plan: _Plan, leave: Collection[str]) -> None:
    """Write the changes of a plan into the files of the checkout; its own index and branch stay as they are.

    Git itself looks once more that each file is as `plan.now` has it before it writes one.
    """
    async with snapshots.own_index(git) as index:
        env = {**index, "GIT_LFS_SKIP_SMUDGE": "0"}
        then = {**env, "GIT_INDEX_FILE": f"{env['GIT_INDEX_FILE']}-then"}
        await git.run("read-tree", plan.then, env=then)
        await changes.stage(git, await _state(git), env)
        for one in (env, then):
            await _put_back(git, plan.now, leave, one)
        now = await git.text("write-tree", env=env)
        if now != await git.text("rev-parse", f"{plan.now}^{{tree}}"):
            raise NotAccepted("Your files changed while the team's work was about to be accepted: accept again.")
        await git.run("read-tree", "-m", "-u", now, await git.text("write-tree", env=then), env=env, seconds=600)


async def _put_back(git: Git, commit: str, paths: Collection[str], env: Mapping[str, str]) -> None:
    """Make these files in an index as they are in a commit."""
    for path in paths:
        kept = (await git.run("ls-tree", "-z", commit, "--", path)).out
        entry = kept or os.fsencode(f"0 {'0' * 40}\t{path}\0")
        await git.run("update-index", "-z", "--index-info", data=entry, env=env)


async def _notebook(git: Git, commit: str, path: str) -> Json:
    data = (await git.run("cat-file", "blob", f"{commit}:{path}")).out
    try:
        return cast("Json", json.loads(data))
    except ValueError as error:
        raise GitError(f"{clean(path)} is no notebook in {commit[:8]}: {error}.") from error
