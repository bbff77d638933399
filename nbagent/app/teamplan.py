"""What a team is begun with, as a value, and where it is written down so that later cells and kernels find it.

Must not know how a team works. Read `TeamPlan`, then `TeamFile`.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from nbagent.core.board import LEAD
from nbagent.core.errors import ConfigError
from nbagent.core.files import private_folder

FOLDER = ".nbagent/teams"
NAMES = (
    "ada",
    "ben",
    "cleo",
    "dan",
    "eva",
    "finn",
    "gil",
    "hana",
    "ivo",
    "jun",
    "kim",
    "leo",
    "mia",
    "ned",
    "ola",
    "pia",
)
"""What teammates are called where nobody names them."""
MOST = len(NAMES)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_TEAM = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")


@dataclass(frozen=True, slots=True)
class TeamPlan:
    """A team: its goal, the names of its teammates, and how it works.

    `options` are those of the lead's `%%agent` line as written, `teammate_model` the model of the others ("": the lead's).
    `plan_first`: every task is planned, and the lead approves the plan, before it is done. `worktrees`: each works on a
    copy of the repository; else all in the folder itself, one at a time. `uncommitted`: the copies start from the files as
    they are, else from the last commit.
    """

    goal: str
    names: tuple[str, ...]
    options: str = ""
    teammate_model: str = ""
    plan_first: bool = False
    worktrees: bool = True
    uncommitted: bool = True
    team: str = ""
    began: float = 0.0

    @classmethod
    def of(cls, goal: str, workers: int, names: Sequence[str] = (), **more: Any) -> TeamPlan:
        """Check what a team is asked for with; raises `ConfigError` with a sentence."""
        if not goal.strip():
            raise ConfigError('Say what the team should reach: %agent team "Make the failing tests pass" --workers 3')
        if names and workers not in {len(names), 0}:
            raise ConfigError(
                f"{len(names)} names for {workers} teammates: give as many names as workers, or leave one out."
            )
        count = len(names) or workers
        if not 1 <= count <= MOST:
            raise ConfigError(f"A team has 1 to {MOST} teammates, not {count}.")
        chosen = tuple(names) or NAMES[:count]
        for name in chosen:
            if not _NAME.fullmatch(name) or name.lower() in {LEAD, "all", "person"}:
                raise ConfigError(f"{name!r} can't be a teammate's name: take a short word of letters, not {LEAD}.")
        if len({name.lower() for name in chosen}) < len(chosen):
            raise ConfigError("Two teammates have the same name.")
        return cls(goal.strip(), tuple(name.lower() for name in chosen), team=_team(goal), began=time.time(), **more)


def _team(goal: str) -> str:
    """Return a name for a team: the first words of its goal and four letters that make it its own."""
    words = re.findall(r"[a-z0-9]+", goal.lower())
    short = "-".join(words[:3])[:24].strip("-")
    return f"{short if short[:1].isalpha() else 'team'}-{secrets.token_hex(2)}"


@dataclass(frozen=True, slots=True)
class TeamFile:
    """What is kept of a team in `.nbagent/teams/TEAM.json`: how it was begun, and how it ended.

    `merged` are files by teammate, `conflicts` both sides in words by teammate; `accepted` says whether the person has it
    in their files, `sessions` where the conversations of all are.
    """

    plan: TeamPlan
    ended: float = 0.0
    text: str = ""
    merged: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Any])
    conflicts: Mapping[str, str] = field(default_factory=dict[str, str])
    accepted: bool = False
    discarded: bool = False
    sessions: Mapping[str, str] = field(default_factory=dict[str, str])

    def write(self, folder: Path) -> None:
        """Keep it; a folder that can't be written to is no reason to end a team."""
        try:
            private_folder(folder / FOLDER)
            place = folder / FOLDER / f"{self.plan.team}.json"
            part = place.with_suffix(".part")
            part.write_text(json.dumps(asdict(self), ensure_ascii=False, indent=1), encoding="utf-8")
            part.replace(place)
        except OSError:
            return

    def forget(self, folder: Path) -> None:
        """Take away what is kept: the team did not begin."""
        with contextlib.suppress(OSError):
            (folder / FOLDER / f"{self.plan.team}.json").unlink()

    def but(self, **changes: Any) -> TeamFile:
        """Return it with some things other."""
        return replace(self, **changes)


def team_file(folder: Path, team: str = "") -> TeamFile | None:
    """Return what is kept of a team, or of the one that began last; raises `ConfigError` for a name that there is not."""
    found = sorted(filter(None, map(_read, (folder / FOLDER).glob("*.json"))), key=lambda one: one.plan.began)
    if not team:
        return found[-1] if found else None
    named = [one for one in found if one.plan.team == team] or [one for one in found if one.plan.team.startswith(team)]
    if len(named) != 1:
        there = ", ".join(one.plan.team for one in found[-8:]) or "none"
        raise ConfigError(f"{team!r} names {'no team' if not named else 'several teams'}. There are: {there}.")
    return named[0]


def _read(place: Path) -> TeamFile | None:
    try:
        said: dict[str, Any] = json.loads(place.read_text("utf-8"))
        plan: dict[str, Any] = said.pop("plan")
        plan["names"] = tuple(map(str, plan["names"]))
        found = TeamFile(TeamPlan(**plan), **said)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return found if _sound(found, place) else None


def _sound(found: TeamFile, place: Path) -> bool:
    """Whether a file says what such a file can say: a folder that was handed on may bring any."""
    plan = found.plan
    texts: tuple[Any, ...] = (plan.goal, plan.options, plan.teammate_model, found.text)
    numbers: tuple[Any, ...] = (plan.began, found.ended)
    lists: Any = found.merged.values() if _is_dict(found.merged) else (None,)
    tables: tuple[Any, ...] = (found.conflicts, found.sessions)
    return (
        plan.team == place.stem
        and _TEAM.fullmatch(plan.team) is not None
        and all(isinstance(one, str) for one in texts)
        and all(isinstance(one, int | float) and one == one for one in numbers)  # noqa: PLR0124  (not a number)
        and all(isinstance(files, list) and all(isinstance(one, str) for one in files) for files in lists)
        and all(_is_dict(one) and all(isinstance(text, str) for text in one.values()) for one in tables)
    )


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)
