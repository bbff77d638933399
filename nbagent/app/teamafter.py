"""What becomes of a team's work when the team has ended: accepted into the person's files, or thrown away.

Must not know how a team runs. Read `accept`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from nbagent.app.document import find_document
from nbagent.app.teamplan import TeamFile, team_file
from nbagent.core.errors import ConfigError
from nbagent.extend.accepting import Accepted, NotAccepted, Notebooks
from nbagent.extend.git import GitError
from nbagent.extend.merging import Answers, Side
from nbagent.extend.worktrees import Worktrees

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

Keep = Literal["", "mine", "team"]
"""Whose side counts where the person and the team changed the same place."""

_SIDES: dict[Keep, Side] = {"mine": "theirs", "team": "ours"}
NOTHING = "Nothing of the team {} was merged, so there is nothing to accept."
WHICH = "{} Yours counts with %agent team accept --keep mine, the team's with --keep team; in all else both count."


async def accept(extension: Extension, team: str = "", keep: Keep = "") -> str:
    """Put what a team merged into the person's files and return what they got.

    `keep` says whose side counts where both changed the same place. Raises `ConfigError`, and `GitError` with the reason.
    """
    kept = _with_copies(extension, team)
    with held(extension, kept.plan.team):
        trees = Worktrees(extension.folder, kept.plan.team)
        if not kept.accepted and not any(kept.merged.values()) and not await trees.differs():
            return NOTHING.format(kept.plan.team)
        async with find_document(extension.shell) as notebook:
            there = {extension.folder / notebook.path: notebook} if notebook is not None and notebook.path else {}
            accepted = await _accepted(trees, there, keep)
        kept.but(accepted=True).write(extension.folder)
    return accepted.sentence


async def _accepted(trees: Worktrees, there: Notebooks, keep: Keep) -> Accepted:
    try:
        return await trees.accept(there)
    except NotAccepted as refused:
        if not refused.conflicts:
            raise
        if not keep:
            raise NotAccepted(
                WHICH.format(refused), files=refused.files, notebooks=refused.notebooks, conflicts=refused.conflicts
            ) from refused
        return await trees.accept(there, Answers(sides=dict.fromkeys(refused.files, _SIDES[keep])))


async def tidied(trees: Worktrees, kept: TeamFile) -> TeamFile:
    """Take the copies of a team that has ended away where nobody changed anything in them; return what is kept of it."""
    try:
        await trees.remove()
    except GitError:  # there is work in them, or they can't be looked at now
        return kept
    return kept.but(discarded=True)


async def discard(extension: Extension, team: str = "") -> str:
    """Take a team's copies and branches away, with all that was not accepted."""
    kept = _with_copies(extension, team)
    with held(extension, kept.plan.team):
        await Worktrees(extension.folder, kept.plan.team).discard()
        kept.but(discarded=True).write(extension.folder)
    return f"The copies and branches of the team {kept.plan.team} are gone. Your files stay as they are."


def at_work(extension: Extension, team: str) -> bool:
    """Whether a team works now, in this kernel or in another one of the folder."""
    hold = _hold(team)
    return extension.holds.here(hold) or extension.holds.elsewhere(hold)


def _hold(team: str) -> str:
    return f"team {team}"


@contextmanager
def held(extension: Extension, team: str) -> Generator[None]:
    """Have a team to oneself, in all kernels of the folder: two would take each other's merges for those of a crash."""
    hold = _hold(team)
    if extension.holds.here(hold) or not extension.holds.take(hold):
        raise ConfigError(f"The team {team} is at work right now. Wait until it has ended, or stop it first.")
    try:
        yield
    finally:
        extension.holds.drop(hold)


def _with_copies(extension: Extension, team: str) -> TeamFile:
    kept = known(extension, team)
    if kept.discarded:
        raise ConfigError(
            f"The copies and branches of the team {kept.plan.team} are gone: there is nothing to accept or discard."
        )
    if not kept.plan.worktrees:
        raise ConfigError(
            f"The team {kept.plan.team} worked in your folder itself: there is nothing to accept or discard."
        )
    return kept


def known(extension: Extension, team: str = "") -> TeamFile:
    """Return what is kept of a team ("": the last one); raises `ConfigError` where there is none."""
    kept = team_file(extension.folder, team)
    if kept is None:
        raise ConfigError(
            'There was no team here yet. Begin one: %agent team "Make the failing tests pass" --workers 3'
        )
    return kept
