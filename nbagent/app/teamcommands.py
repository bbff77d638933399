"""`%agent team`: begin a team, see how the last one stands, accept or discard what it did, read its log.

Read `team`.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import time
from typing import TYPE_CHECKING, cast

from nbagent.app.answer import RunFailed
from nbagent.app.options import names as agent_options
from nbagent.app.options import parse, parser
from nbagent.app.team import Team
from nbagent.app.teamafter import Keep, accept, at_work, discard, known
from nbagent.app.teamtools import summary
from nbagent.core.board import LEAD, Board
from nbagent.core.errors import BoardError, ConfigError, NbagentError
from nbagent.core.shown import visible_plain
from nbagent.extend.board_store import StoreError
from nbagent.extend.boards import Boards
from nbagent.extend.git import GitError
from nbagent.tools import team as team_tools
from nbagent.view.text import one_line

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.teamplan import TeamFile

_logger = logging.getLogger("nbagent")

HELP = (
    '%agent team "goal" [--workers 3] [--names ada,ben] [--teammate-model MODEL] [--plan-first] [--no-worktrees]\n'
    "    [--committed] [options of %%agent]: a lead and teammates work on it side by side, each on a copy of the repository\n"
    "%agent team                 how the last team stands\n"
    "%agent team accept [TEAM]   put what it merged into your files; --keep mine|team: whose side counts where both changed the same\n"
    "%agent team discard [TEAM]  throw its copies and branches away\n"
    "%agent team log [TEAM]      its tasks with results, its messages, and where the conversations are"
)
_FLAGS = ("--plan-first", "--no-worktrees", "--committed")
_VALUES = ("--workers", "--names", "--teammate-model")
_KEEP = (
    "Whose side counts where you and the team changed the same: %agent team accept [TEAM] --keep mine, or --keep team."
)


def _words(rest: str) -> list[str]:
    """Split what stands after `%agent team` into words, as a shell does; quotes that don't close count as letters."""
    try:
        return shlex.split(rest)
    except ValueError:
        return rest.split()


async def team(extension: Extension, rest: str) -> str:
    """Carry out `%agent team …`; raises `ConfigError`, also for what git or the board refuse."""
    try:
        return await _carried_out(extension, rest)
    except (GitError, BoardError, StoreError) as error:
        raise ConfigError(str(error)) from error


async def _carried_out(extension: Extension, rest: str) -> str:
    words = _words(rest)
    quoted = rest.lstrip()[:1] in {'"', "'"}
    if not words:
        return await _state(extension)
    if not quoted and words[0] == "accept" and (len(words) <= 2 or any(word.startswith("--keep") for word in words)):
        return await _accept(extension, words[1:])
    if not quoted and len(words) <= 2 and words[0] in _COMMANDS:
        return await _COMMANDS[words[0]](extension, words[1] if len(words) > 1 else "")
    if not quoted and len(words) == 1:
        raise ConfigError(f"%agent team: there is no {words[0]!r}. A goal of one word stands in quotes.\n{HELP}")
    asked = _asked_for(words)
    if not asked.in_background:
        await asked.run_in(extension)
        return ""
    running = asyncio.create_task(asked.run_in(extension))
    extension.teams.add(running)
    running.add_done_callback(extension.teams.discard)
    running.add_done_callback(_retrieved)
    begun = asyncio.create_task(asked.begun.wait())
    await asyncio.wait({running, begun}, return_when=asyncio.FIRST_COMPLETED)
    begun.cancel()
    if running.done():
        await running
    return ""


def _retrieved(running: asyncio.Task[object]) -> None:
    """Keep what a team in the background ended with, which nobody awaits: a bug of ours for `%agent traceback`."""
    if running.cancelled() or (error := running.exception()) is None or isinstance(error, RunFailed):
        return  # why a run has failed stands in its panel
    known = isinstance(error, NbagentError)
    _logger.log(logging.INFO if known else logging.ERROR, "a team in the background failed: %s", error, exc_info=error)


def _asked_for(words: list[str]) -> Team:
    """Return the team that the words ask for: the options of teams, those of `%%agent`, and the goal."""
    takes = {t for a in parser()._actions if a.nargs != 0 for t in a.option_strings}  # noqa: SLF001  (no public list)
    goal: list[str] = []
    line: list[str] = []
    given: dict[str, str] = {}
    flags: set[str] = set()
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        if name in _FLAGS:
            flags.add(name)
        elif name in _VALUES:
            given[name] = value if equals else next(left, "")
        elif name in agent_options():
            line += [word] if equals or name not in takes else [word, next(left, "")]
        elif word.startswith("--"):
            raise ConfigError(f"%agent team: there is no option {name}. It takes these:\n{HELP}")
        else:
            goal.append(word)
    if parse(" ".join(line))[1]:
        raise ConfigError(
            "%agent team: a value of these options can't hold spaces. Set it in your settings, or with %config."
        )
    workers = given.get("--workers", "0")
    if not workers.isdecimal():
        raise ConfigError(f"%agent team: --workers takes a number, not {workers!r}.")
    names = tuple(name for name in given.get("--names", "").replace(",", " ").split() if name)
    return Team(
        " ".join(goal), int(workers), names=names, teammate_model=given.get("--teammate-model", ""),
        plan_first="--plan-first" in flags, worktrees="--no-worktrees" not in flags,
        uncommitted="--committed" not in flags, options=" ".join(line),
    )  # fmt: skip


async def _board(extension: Extension, kept: TeamFile) -> Board:
    return await (await Boards.open(extension.folder, kept.plan.team)).read()


async def _accept(extension: Extension, words: list[str]) -> str:
    """Carry out `%agent team accept [TEAM] [--keep mine|team]`."""
    left = iter(words)
    team, side = "", ""
    for word in left:
        name, equals, value = word.partition("=")
        if name == "--keep":
            side = value if equals else next(left, "")
        elif not team and not word.startswith("-"):
            team = word
        else:
            raise ConfigError(f"%agent team accept: {word!r} is one too many. {_KEEP}")
    if side not in {"", "mine", "team"} or ("--keep" in words and not side):
        raise ConfigError(f"%agent team accept: --keep takes mine or team, not {side!r}. {_KEEP}")
    return await accept(extension, team, cast("Keep", side))


async def _state(extension: Extension) -> str:
    kept = known(extension)
    board = await _board(extension, kept)
    cut_off = not kept.ended and not at_work(extension, kept.plan.team)
    for one in board.members if cut_off else ():  # nobody was left to say so, and nobody watches their leases
        board = board.now_is(one.name, "gone")
    lines = [f"{kept.plan.team}: {one_line(kept.plan.goal, 120)}", summary(board)]
    if cut_off:
        lines.append("It was cut off before it ended: nobody works on it any more.")
    for name, files in kept.merged.items():
        lines.append(f"merged from {name}: {', '.join(files) or 'nothing'}")
    for name, conflict in kept.conflicts.items():
        lines.append(f"not merged from {name}: {one_line(conflict, 160)}  (%agent team log shows both sides)")
    if kept.plan.worktrees:
        lines.append(_next_step(kept))
    return visible_plain("\n".join(lines))


def _next_step(kept: TeamFile) -> str:
    if kept.discarded:
        return "Its copies and branches are gone."
    if kept.accepted:
        return "What was merged is in your files. %agent team discard takes its copies away."
    if not any(kept.merged.values()):
        return "Nothing is merged. %agent team discard takes its copies away."
    return "Your files are as they were: %agent team accept takes what was merged, %agent team discard throws it away."


async def _log(extension: Extension, name: str) -> str:
    kept = known(extension, name)
    board = await _board(extension, kept)
    lines = [f"{kept.plan.team}: {kept.plan.goal}", team_tools.listed(board)]
    for task in board.tasks:
        lines.append(
            f"\n{task.id}. {task.title} — {task.state.replace('_', ' ')}{f' by {task.owner}' if task.owner else ''}"
        )
        lines += [f"   {line}" for line in task.result.splitlines()]
    lines += ["", "Messages:"]
    for letter in board.letters:
        when = time.strftime("%H:%M:%S", time.localtime(letter.at))
        lines.append(
            f"{when} {letter.sender} → {'all' if letter.to == '*' else letter.to}: "
            f"{one_line(letter.text, 300) or letter.kind.replace('_', ' ')}"
        )
    for who, conflict in kept.conflicts.items():
        lines += ["", f"Not merged from {who}:", conflict]
    if kept.sessions:
        lines += ["", "Conversations:", *(f"{who}: {where}" for who, where in kept.sessions.items() if who != LEAD)]
        lines += [f"lead: %agent sessions {kept.sessions[LEAD]}"] if LEAD in kept.sessions else []
    return visible_plain("\n".join(lines))


async def _help(_: Extension, __: str) -> str:
    return HELP


_COMMANDS = {"discard": discard, "log": _log, "help": _help}
