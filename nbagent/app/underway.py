"""The runs of one kernel that go on now: the one of the cell that runs, and those in the background.

One place that knows them all, so that commands, the tray and the limits of a kernel ask here. Must not know how a run
goes, nor how it is shown. Everything is called on the kernel's loop. Read `Underway`, then `LiveRun`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nbagent.core.errors import ConfigError
from nbagent.core.ports import Answered, Approval, Approver
from nbagent.core.run import Stop
from nbagent.jupyter.approval import PersonApprover
from nbagent.view.text import one_line

if TYPE_CHECKING:
    from nbagent.app.handle import Handle
    from nbagent.view.fold import ViewModel
    from nbagent.view.widget import AgentView

NAME = 40
"""Characters of a run's name at most."""


@dataclass(slots=True, eq=False)
class LiveRun:
    """One run under way.

    `id` is the run's own (`run-…`; a subagent's: `agent-…`), `name` what people read, `cell` the id of the cell whose
    output shows it ("" where no page tells). `began` is Unix time in seconds. `view` is its live view, `approver` who
    answers for it; both come when its place is known. `parent` is the id of the run that started it, `session` that of its
    own session, `waits` what its code waits for now ("" for nothing), `task` what a background run goes on in, `handle` what
    stands for it in the person's code, `watched` the ids of other cells that show its panel.
    """

    id: str
    name: str
    prompt: str
    cell: str
    stop: Stop
    began: float = field(default_factory=time.time)
    background: bool = False
    view: AgentView | None = None
    approver: Approver | None = None
    parent: str = ""
    agent: str = ""
    session: str = ""
    waits: str = ""
    task: asyncio.Task[Any] | None = None
    handle: Handle | None = None
    watched: set[str] = field(default_factory=set[str])

    @property
    def shown(self) -> ViewModel | None:
        """What is to be seen of it now, None before anything is."""
        return self.view.view if self.view is not None else None

    @property
    def who(self) -> str:
        """The run as people read it in a sentence: its kind, if it has one, and what it is for."""
        return f"{self.agent} ({self.name})" if self.agent else self.name

    @property
    def how_to_end(self) -> str:
        """What a person can do about it, as a sentence."""
        return f"Wait until it is done, or stop it: %agent agents stop {self.id}"

    @property
    def activity(self) -> str:
        """What it does now, in a few words."""
        shown = self.shown
        if self.waits and not (shown is not None and (shown.approvals or shown.questions)):
            return f"Its code {self.waits}"
        return shown.activity if shown is not None else "Starting…"


@dataclass(frozen=True, slots=True)
class Asking:
    """An approval that waits for the person: what is asked, since when (seconds of a clock), and who takes the answer."""

    approval: Approval
    since: float
    to: PersonApprover

    def answer(self, answered: Answered) -> bool:
        """Answer it, as it was shown; return whether that counted. No other run hears of it, whatever it asks."""
        return self.to.answer(self.approval.call_id, self.approval.hash, answered)


def name_of(prompt: str) -> str:
    """Return a short name made of the first words of a prompt."""
    return one_line(prompt, NAME) or "agent"


class Underway:
    """The runs under way by id, in the order in which they began. `on_change` tells of each that comes, goes or waits."""

    def __init__(self) -> None:
        self.runs: dict[str, LiveRun] = {}
        self._listeners: list[Callable[[], None]] = []

    @property
    def foreground(self) -> LiveRun | None:
        """The run of the cell that runs now, None where there is none."""
        return next((run for run in self.runs.values() if not run.background), None)

    @property
    def background(self) -> tuple[LiveRun, ...]:
        """The runs in the background, oldest first."""
        return tuple(run for run in self.runs.values() if run.background)

    def add(self, run: LiveRun) -> LiveRun:
        """Take up a run that begins."""
        self.runs[run.id] = run
        self.changed()
        return run

    def remove(self, run: LiveRun) -> None:
        """Forget a run that is over; a second time nothing happens."""
        if self.runs.pop(run.id, None) is not None:
            self.changed()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` whenever something changes; return what ends that."""
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    def changed(self) -> None:
        """Tell the listeners, which must not raise, that something about a run is new."""
        for listener in list(self._listeners):
            listener()

    def full(self, limit: int, coming: int = 0) -> str:
        """Return a sentence where no further run may go on in the background, `limit` being the most; else "".

        `coming`: how many are about to begin, and are not among the runs yet.
        """
        there = self.background
        count = len(there) + coming
        if count < limit:
            return ""
        running = "; ".join(f"{run.id} “{run.who}” ({run.activity})" for run in there) or "they begin right now"
        return (
            f"{count} agent{'s' * (count != 1)} run in the background already, and no more than {limit} may "
            f"(the setting background_agents): {running}. Wait for one, or stop one: %agent agents stop ID"
        )

    def in_session(self, session: str) -> LiveRun | None:
        """Return the run that writes to a session now, None where none does."""
        return next((run for run in self.runs.values() if session and run.session == session), None)

    def moved(self, before: str, after: str) -> None:
        """Say that the run in the session `before` goes on in `after`."""
        for run in self.runs.values():
            run.session = after if run.session == before else run.session

    def of_cell(self, cell: str) -> LiveRun | None:
        """Return the background run that a cell shows, None where it has none."""
        return next((run for run in self.background if cell and run.cell == cell and not run.parent), None)

    def find(self, word: str) -> LiveRun:
        """Return the run that `word` means: an id, the beginning of one, or a name; raises `ConfigError`."""
        runs = list(self.runs.values())
        exact = [run for run in runs if word in {run.id, run.name}]
        found = exact or [
            run
            for run in runs
            if word and run.id.partition("-")[2].startswith(word.removeprefix("run-").removeprefix("agent-"))
        ]
        if len(found) == 1:
            return found[0]
        there = "; ".join(f"{run.id} “{run.who}”" for run in runs)
        if not runs:
            raise ConfigError("No agent is running.")
        raise ConfigError(f"{word!r} names {'no run' if not found else 'several runs'}. Under way: {there}.")

    @property
    def asks(self) -> tuple[Asking, ...]:
        """The approvals of all runs that wait for the person now, oldest first: the order of the tray."""
        people = {id(run.approver): run.approver for run in self.runs.values()}  # a subagent may share its parent's
        there = [one for one in people.values() if isinstance(one, PersonApprover)]
        found = [Asking(approval, since, one) for one in there for since, approval in one.waiting_since]
        return tuple(sorted(found, key=lambda one: one.since))
