"""Going on with a run that was stopped before it was done: `%agent continue`, and the button Continue in its record.

The same conversation goes on, with the options of the run that was stopped; nothing has to be written again. Must not
know how a run goes. Read `continue_run`, then `going_on`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbagent.app.options import parse
from nbagent.core.endings import GOES_ON
from nbagent.core.events import RunEnded
from nbagent.core.messages import Json
from nbagent.core.ports import Notebook

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

NOTHING = "There is nothing to go on with: the last run came to its end. Write the next task in a %%agent cell."
GO_ON = "Go on."
ONLY_LAST = "Only the last run can go on, and this is not it. Say in a %%agent cell what to do next."

_TOLD = (
    "(From the runtime, not the person:) The last run ended before the task was done: {} The person wants you to go on."
)
_EITHER = ({"preset", "max_turns"}, {"budget", "budget_tokens"})
_NOT_AGAIN = frozenset({"new", "again", "stale", "go_on", "session", "fork"})


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The last run, which was stopped: its id, its cell, the options that it had, and why it ended.

    `session` is the one that it ran in beside the notebook's own conversation, "" if it ran in that.
    """

    run: str
    cell: str
    given: Json
    sentence: str
    session: str = ""


def unfinished(run: str, cell: str, given: Json, ended: RunEnded, session: str = "") -> Unfinished | None:
    """Return what can be gone on with of a run, None where it came to its end."""
    return Unfinished(run, cell, given, ended.sentence, session) if ended.reason in GOES_ON else None


async def continue_run(extension: Extension, rest: str) -> str:
    """Carry out `%agent continue [options] [WORDS]`: a run in this cell that goes on with the last one."""
    from nbagent.app.cell import agent_cell

    options, words = parse(rest)
    last = extension.unfinished
    if last is None and not words:
        return NOTHING
    line = _line({**_kept(last.given if last is not None else {}, options), **_where(last), **options})
    await agent_cell(extension, f"{line} {words or GO_ON}".strip(), "", going_on(extension))
    return ""


def going_on(extension: Extension, *, in_its_cell: bool = False) -> GoingOn:
    """Return what makes the prompt; `in_its_cell`: the text of the cell is the task, which was asked for already."""
    return GoingOn(extension.unfinished, in_its_cell=in_its_cell)


class GoingOn:
    """Makes the prompt of a run that goes on: the person's words, and for the model why it had ended."""

    def __init__(self, last: Unfinished | None, *, in_its_cell: bool) -> None:
        self._last, self._in_its_cell = last, in_its_cell

    def options(self, given: Json) -> Json:
        """Return the options of the cell as they count: where it says to begin anew, it goes on all the same."""
        if not self._in_its_cell:
            return given
        return {**_kept(given, ()), **_where(self._last)}

    async def __call__(self, notebook: Notebook | None, words: str) -> tuple[str, str]:  # noqa: ARG002  (the port's shape)
        """Return what people read and what the model is told more."""
        told = "" if self._last is None else _TOLD.format(self._last.sentence.replace("\n", " "))
        return (GO_ON if self._in_its_cell else words), told


def _where(last: Unfinished | None) -> Json:
    return {"session": last.session} if last is not None and last.session else {}


def _kept(given: Mapping[str, object], options: Collection[str]) -> Json:
    """Return the options of the last run that still count beside those that are given now."""
    gone = {name for group in _EITHER if group & set(options) for name in group}
    return {name: value for name, value in given.items() if name not in gone | _NOT_AGAIN}


def _line(options: Mapping[str, object]) -> str:
    """Return options as they are written."""
    flags = {name.replace("_", "-"): value for name, value in options.items()}
    return " ".join(f"--{name}" if value is True else f"--{name}={value}" for name, value in flags.items())
