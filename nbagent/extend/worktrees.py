"""Copies of a repository for a team: a worktree and a branch for each teammate, and one of the lead's, where work is merged.

The copies lie in `.nbagent/worktrees/TEAM/NAME` at the top of the person's checkout, their branches are
`nbagent/TEAM/NAME`, and where they start is kept in `refs/nbagent/TEAM/`, so that other processes and machines that share
the repository find the same team. Analysts seldom commit, so the copies start from the files as they are, not as they
were last committed: a commit that no branch of the person's holds (see `snapshots`). The person's own checkout, index,
stash and settings stay as they are until they accept, and nothing is ever forced. It must not know of agents or models.
Read `Worktrees`, then `merging.merge` and `accepting.accept`.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nbagent.core.files import private_folder
from nbagent.core.messages import clean
from nbagent.extend import accepting, merging, snapshots
from nbagent.extend.accepting import Accepted, NotAccepted, Notebooks
from nbagent.extend.changes import LeftOut, identity, pending, stage
from nbagent.extend.git import Git, GitError, NotARepository
from nbagent.extend.merging import Answers, Change, Conflicted, Merged, Side
from nbagent.extend.snapshots import Start

__all__ = [
    "Accepted",
    "Answers",
    "Change",
    "Conflicted",
    "GitError",
    "LeftOut",
    "Merged",
    "NotARepository",
    "NotAccepted",
    "Notebooks",
    "Progress",
    "Start",
    "Worktree",
    "Worktrees",
]

LEAD = "lead"
_NOT_IN_NAMES = re.compile(r"[^\w-]+")
_LONGEST = 40
_WINDOWS = re.compile(r"con|prn|aux|nul|com\d|lpt\d")  # names that no file can have there


@dataclass(frozen=True, slots=True)
class Worktree:
    """A copy of the repository: whose it is, its top folder, its branch and the commit that it began with.

    `folder` stands in it for the notebook's folder.
    """

    name: str
    path: Path
    folder: Path
    branch: str
    base: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a teammate is: how many commits of its own, their files, how many files are not yet committed.

    `merged`: the lead has all of it; `conflicts`: the files that were in conflict when it was last merged.
    """

    name: str
    branch: str
    commits: int
    files: tuple[str, ...]
    uncommitted: int
    merged: bool
    conflicts: tuple[str, ...]


class Worktrees:
    """The copies of one team. `root` is the notebook's folder, anywhere in the checkout; `team` the name of the team.

    Every method raises GitError (`NotARepository` outside of one) with a sentence that says what to do.
    """

    def __init__(self, root: Path, team: str, environment: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.team = plain_name(team)
        self._git = Git(root, environment)
        self._top: Path | None = None
        self._one_merge = asyncio.Lock()  # an index has room for one
        self._conflicts: dict[
            str, tuple[str, tuple[str, ...]]
        ] = {}  # name → the commit that was in conflict, and where

    # ── where a team starts ──────────────────────────────────────────────────────────────────────────────────────────

    async def begin(self, *, uncommitted: bool = True) -> Start:
        """Fix what all copies start from, once for a team; asked again, the answer is the same.

        `uncommitted`: from the files as they are; else from the last commit.
        """
        return await snapshots.begin(await self._here(), self.team, uncommitted=uncommitted)

    # ── copies ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def add(self, name: str) -> Worktree:
        """Return the copy of a teammate; it is made where there is none, and taken up again where its branch is there."""
        name = plain_name(name)
        if name == LEAD:
            raise GitError(f'A teammate can\'t be named "{LEAD}": that is whose copy the work is merged in.')
        return await self._add(name)

    async def lead(self) -> Worktree:
        """Return the lead's own copy, where the work of the others is merged."""
        return await self._add(LEAD)

    async def commit(self, worktree: Worktree, message: str) -> str:
        """Commit all that changed in a copy and may be committed, and return the commit; "" where nothing is to do.

        Never committed: `.nbagent`, files of keys, what is too big; `left_out` tells which.
        """
        git = self._git.at(worktree.path)
        await self._check(worktree, git)
        if await git.find("ls-files", "-u"):  # a command of the teammate's; the marks in its files are no work
            raise GitError(
                f"In the copy of {worktree.name} a merge stopped at conflicts: settle them (git add, git commit) or give it up "
                f"(git merge --abort, git reset --merge) in {clean(str(worktree.path))}."
            )
        await stage(git, await pending(git))
        if (await git.run("diff-index", "--cached", "--quiet", "HEAD", ok=(0, 1))).code == 0:
            return ""
        text = f"{clean(message).strip() or 'Work in progress'}\n\nTeammate: {worktree.name}\n"
        who = await identity(git, worktree.name)
        await git.run("commit", "-q", "--no-verify", "--no-gpg-sign", "-F", "-", data=text, env=who)
        return await git.text("rev-parse", "HEAD")

    async def left_out(self, worktree: Worktree) -> tuple[LeftOut, ...]:
        """Return what changed in a copy and is not committed by `commit`, each with the reason."""
        return (await pending(self._git.at(worktree.path))).left_out

    # ── merging ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def merge(self, name: str) -> Merged | Conflicted:
        """Merge what a teammate committed into the lead's copy; where that conflicts, all stays as it was before."""
        return await self.resolve(name, {})

    async def resolve(
        self, name: str, texts: Mapping[str, str | None], sides: Mapping[str, Side] | None = None
    ) -> Merged | Conflicted:
        """Merge what a teammate committed, with answers to its conflicts.

        `texts`: path → the whole text that the file shall have (None: deleted). `sides`: path → "ours" (the lead's) or
        "theirs" (the teammate's) for what conflicts in it; the rest of the file is merged. Where a conflict has no answer
        it is reported again, and nothing is changed.
        """
        lead = await self._add(LEAD)
        name = plain_name(name)
        branch = self._branch(name)
        told = await self._merged(lead, branch, f"Merge the work of {name}", Answers(texts, sides or {}))
        tip = await (await self._here()).find("rev-parse", "-q", "--verify", f"refs/heads/{branch}")
        self._conflicts.pop(name, None)
        if isinstance(told, Conflicted):
            self._conflicts[name] = (tip, tuple(file.path for file in told.files))
        return told

    async def update(self, worktree: Worktree, answers: Answers | None = None) -> Merged | Conflicted:
        """Merge what the lead has into a teammate's copy, so that it goes on from the others' work.

        What it changed itself is committed before. `answers` settle conflicts: "ours" is the teammate's side there.
        """
        return await self._merged(worktree, self._branch(LEAD), "Merge the work of the others", answers or Answers())

    async def take(self, worktree: Worktree, name: str) -> Merged | Conflicted:
        """Merge what another teammate committed into a teammate's copy: its next task builds on it."""
        name = plain_name(name)
        return await self._merged(worktree, self._branch(name), f"Merge the work of {name}", Answers())

    # ── what comes out of it ─────────────────────────────────────────────────────────────────────────────────────────

    async def differs(self) -> tuple[Change, ...]:
        """Return the files in which what the lead merged is other than the person's files, as the team last saw them."""
        tip = await self._tip()
        return await merging.changed(await self._here(), await self._seen(), tip) if tip else ()

    async def patch(self, *, largest: int = 200_000) -> str:
        """Return what the team changed as a text patch of at most `largest` characters."""
        git, tip = await self._here(), await self._tip()
        if not tip:
            return ""
        words = ("diff-tree", "-p", "-r", "--no-ext-diff", "--no-textconv", "--no-color", await self._seen(), tip)
        text = (await git.run(*words)).out.decode("utf-8", "replace")
        return text if len(text) <= largest else f"{text[:largest]}\n… ({len(text) - largest:,} more characters)"

    async def state(self) -> tuple[Progress, ...]:
        """Return how far each teammate is, by name; the lead is not among them."""
        if not (names := [name for name in await self.names() if name != LEAD]):
            return ()  # asking begins no team
        git, base, lead = await self._here(), await self._base(), await self._tip()
        return tuple([await self._progress(git, name, base, lead) for name in names])

    async def names(self) -> tuple[str, ...]:
        """Return the names that have a branch in this team, the lead's too."""
        listed = await (await self._here()).text(
            "for-each-ref", "--format=%(refname)", f"refs/heads/{self._branch('')}"
        )
        return tuple(sorted(line.rpartition("/")[2] for line in listed.splitlines()))

    async def accept(self, notebooks: Notebooks | None = None, answers: Answers | None = None) -> Accepted:
        """Give the person's checkout what the lead merged.

        Where the team started from a commit, the branch goes forward to the lead's (after a merge of what was committed
        since); where it started from files that were not committed, those get the team's changes and nothing is
        committed. `notebooks` are the files that are open in a page, each with the port to change its cells, or None.
        `answers` settle what both the person and the team changed: "ours" is the team's side, "theirs" the person's.
        Raises `NotAccepted` with the files, and changes nothing, where something of the person's is in the way.
        """
        lead = await self._add(LEAD)
        async with self._one_merge:
            git = self._git.at(lead.path)
            await self._ready(lead, git)
            return await accepting.accept(await self._here(), git, self.team, notebooks or {}, answers or Answers())

    async def remove(self, *, unmerged: bool = False) -> None:
        """Take the copies and the branches of the team away.

        Raises GitError that names them, and removes nothing, where a copy holds work that was not accepted, unless
        `unmerged`.
        """
        git = await self._here()
        if not unmerged and (kept := await self._unaccepted(git)):
            raise GitError(
                f"Not yet in your files: the work of {', '.join(kept)}. Accept it first, or throw it away with discard."
            )
        folder = await asyncio.to_thread(_unlinked, self._folder(git))
        for name in await self.names():
            await self._forget(git, name)
        for ref in (await git.text("for-each-ref", "--format=%(refname)", f"refs/nbagent/{self.team}/files")).split():
            await git.run("update-ref", "-d", ref)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def discard(self) -> None:
        """Take the copies and branches away with all that was not accepted."""
        await self.remove(unmerged=True)

    # ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _here(self) -> Git:
        """Return git at the top of the person's checkout."""
        if self._top is None:
            self._top = await self._git.top()
        return self._git.at(self._top)

    async def _base(self) -> str:
        return (await snapshots.started(await self._here(), self.team))[0]

    async def _seen(self) -> str:
        """Return the commit that is as the person's files were when they were last looked at."""
        return await accepting.known(await self._here(), self.team) or await self._base()

    async def _tip(self) -> str:
        return await (await self._here()).find("rev-parse", "-q", "--verify", f"refs/heads/{self._branch(LEAD)}")

    def _folder(self, git: Git) -> Path:
        return git.folder / ".nbagent" / "worktrees" / self.team

    def _branch(self, name: str) -> str:
        return f"nbagent/{self.team}/{name}"

    async def _add(self, name: str) -> Worktree:
        git, base = await self._here(), await self._base()
        folder = await asyncio.to_thread(_unlinked, self._folder(git), name)
        try:
            await asyncio.to_thread(private_folder, folder)
        except OSError as error:
            raise GitError(f"{clean(str(folder))} can't be made: {(error.strerror or str(error)).lower()}.") from error
        worktree = self._worktree(git, name, base)
        await snapshots.checked_out(git, worktree.path, worktree.branch, base)
        return worktree

    def _worktree(self, git: Git, name: str, base: str) -> Worktree:
        path = self._folder(git) / name
        inside = self.root.resolve().relative_to(git.folder.resolve())
        return Worktree(name, path, path / inside, self._branch(name), base)

    async def _check(self, worktree: Worktree, git: Git) -> None:
        """See that a copy is still what it was: a command of a teammate's may have changed its branch."""
        if not (worktree.path / ".git").is_file():
            raise GitError(f"The copy of {worktree.name} is gone: {clean(str(worktree.path))}.")
        found = await git.find("symbolic-ref", "-q", "HEAD")
        if found != f"refs/heads/{worktree.branch}":
            at = found.removeprefix("refs/heads/") or "no branch"
            raise GitError(
                f"The copy of {worktree.name} is on {at} instead of {worktree.branch}: "
                f"go back with git checkout {worktree.branch} in {clean(str(worktree.path))}."
            )

    async def _merged(self, worktree: Worktree, branch: str, message: str, answers: Answers) -> Merged | Conflicted:
        git = self._git.at(worktree.path)
        async with self._one_merge:
            await self._ready(worktree, git)
            tip = await git.find("rev-parse", "-q", "--verify", f"refs/heads/{branch}")
            if not tip:
                raise GitError(f"There is no branch {branch} to merge: nobody of that name has a copy in this team.")
            return await merging.merge(git, tip, branch, message, answers, await identity(git, worktree.name))

    async def _ready(self, worktree: Worktree, git: Git) -> None:
        """Make a copy ready for a merge: one that a crash cut short is taken back, and what is loose is committed."""
        await self._check(worktree, git)
        await merging.aborted(git)
        await self.commit(worktree, "Own changes before a merge")

    async def _progress(self, git: Git, name: str, base: str, lead: str) -> Progress:
        branch = self._branch(name)
        tip = await git.text("rev-parse", f"refs/heads/{branch}")
        count, files = await merging.own_work(git, base, tip)
        path = self._folder(git) / name
        waiting = len((await pending(self._git.at(path))).take) if (path / ".git").is_file() else 0
        merged = bool(lead) and await merging.contains(git, lead, tip)
        was, where = self._conflicts.get(name, ("", ()))
        conflicts = where if was == tip and not merged else ()
        return Progress(name, branch, count, files, waiting, merged, conflicts)

    async def _unaccepted(self, git: Git) -> list[str]:
        """Return who has commits or changed files that the person's files never got."""
        if not (names := await self.names()):
            return []
        base, found = await self._base(), []
        held = [*await accepting.accepted(git, self.team), base]
        if head := await git.find("rev-parse", "-q", "--verify", "HEAD"):
            held.append(head)
        for name in names:
            tip = await git.text("rev-parse", f"refs/heads/{self._branch(name)}")
            path = self._folder(git) / name
            loose = (path / ".git").is_file() and bool((await pending(self._git.at(path))).take)
            if loose or int(await git.text("rev-list", "--count", "--no-merges", tip, "--not", *held)):
                found.append(name)
        return [name for name in found if name != LEAD] or found  # the lead's has the others' work in it

    async def _forget(self, git: Git, name: str) -> None:
        path = self._folder(git) / name
        await git.run("worktree", "remove", "--force", "--force", str(path), ok=(0, 128))  # 128: it was not there
        await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
        await git.run("update-ref", "-d", f"refs/heads/{self._branch(name)}")


def _unlinked(folder: Path, name: str = "") -> Path:
    """Return the folder of a team's copies; raise GitError where a link stands on the way: what it leads to is not a team's.

    A folder that somebody handed on may bring such a link; what is made or removed behind it would be the person's own.
    """
    for place in (folder.parents[1], folder.parent, folder, folder / name):
        if place.is_symlink() or getattr(place, "is_junction", bool)():
            raise GitError(
                f"{clean(str(place))} is a link, so nothing is made or removed there. Remove the link first."
            )
    return folder


def plain_name(name: str) -> str:
    """Return a name as part of a path and of a branch: lower case, letters, digits and dashes; raise GitError for none."""
    text = unicodedata.normalize("NFC", name).lower()
    plain = _NOT_IN_NAMES.sub("-", text).strip("-_")[:_LONGEST].strip("-_")
    if not plain:
        raise GitError(f'"{clean(name)[:_LONGEST]}" can\'t be the name of a branch: use letters and digits.')
    return f"{plain}_" if _WINDOWS.fullmatch(plain) else plain
