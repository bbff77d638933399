"""Running a finished agent cell again: shows the record of its run where nothing that the run read has changed.

A finished run is kept with what it read (`keptrun.py`). When the cell is run again, what it read is looked up again:
the same, and the record is shown from the store, drawn anew, and no model is asked; changed, and the record is shown as
STALE with what has changed, and the person is asked, or, where nobody is there, the cell fails with that sentence.
Read `offer`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nbagent.app.above import Here, changes_above, changes_of_texts, here, shown_above
from nbagent.app.consent import before_run
from nbagent.app.extension import Extension
from nbagent.app.forks import Past, PastNow, Point
from nbagent.app.model import model_of
from nbagent.app.place import Place
from nbagent.config import Settings
from nbagent.core.events import Event, FoundStale, RunEnded, ViewCleared
from nbagent.core.events_json import from_json
from nbagent.core.messages import Json
from nbagent.core.policy import Mode
from nbagent.core.questions import choose
from nbagent.extend.runs import FinishedRun, RunStore, text_key
from nbagent.tools.cells import starts_agent
from nbagent.tools.lookup import Lookup
from nbagent.tools.unseen import not_compared

_log = logging.getLogger("nbagent")

_NO_PART = frozenset({
    "again", "stale", "out", "timeout", "cell_timeout", "cell_patience", "budget", "budget_tokens", "max_turns", "preset", "name",
    "trace",
})  # fmt: skip
"""Options that don't change the answer of a run that came to its end."""

RUN_AGAIN, KEEP_STALE, KEEP = "Run again", "Keep the old answer, shown as stale", "Keep the answer"
_SAME = "Nothing of what was compared has changed"
_WHICH = "{}. Ask the model again, or keep the answer of {}?"
_TOLD = 4


@dataclass(frozen=True, slots=True)
class RunKey:
    """By what a cell's finished runs are found: `text` is its `text_key`. `again`: whatever is found, the model is asked.

    `new`: it begins a conversation of its own; `seat`, `branch`: see `starts.Ground`.
    """

    text: str
    again: bool = False
    new: bool = False
    seat: str | None = None
    branch: Past | None = None

    @classmethod
    def of(cls, prompt: str, options: Json, mode: Mode, *, again: bool = False) -> RunKey:
        """Take prompt and options of a cell. A run that may only look answers another question than one that may act."""
        given: dict[str, Any] = {name: value for name, value in options.items() if name not in _NO_PART}
        if mode in {Mode.PLAN, Mode.READ_ONLY}:
            given["mode"] = str(mode)
        return cls(text_key(prompt, given), again or bool(options.get("again")), bool(options.get("new")))


@dataclass(frozen=True, slots=True)
class Shown:
    """The record of an earlier run that is shown in the place of a new one.

    `stale` says what has changed, `not_compared` what can't be told. `fails`: the cell fails with `stale`.
    """

    ended: RunEnded
    session: str
    stale: str
    not_compared: str
    fails: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    run: FinishedRun
    events: tuple[Event, ...]
    ended: RunEnded
    changes: tuple[str, ...]
    not_compared: str
    began: Mapping[str, int]

    @property
    def stale(self) -> str:
        """The sentence that says what has changed, "" where nothing has."""
        if not self.changes:
            return ""
        return f"STALE: {self.told}. This is the answer of {_day(self.run.at)}."

    @property
    def told(self) -> str:
        """What has changed, cut where it is much; "" where nothing has."""
        more = len(self.changes) - _TOLD
        return "; ".join([*self.changes[:_TOLD], *([f"and {more} more"] if more > 0 else [])])


async def offer(extension: Extension, place: Place, settings: Settings, key: RunKey) -> Shown | None:
    """Show the record of the cell's finished run, if there is one that still counts or the person keeps; None: run it."""
    if key.again or settings.rerun == "live" or (now := await _here(extension, place)) is None:
        return None
    present = place.approver.present
    model = model_of(settings).name if present else ""
    if (found := await _find(extension, place, key, now, model)) is None:
        return None
    ask = settings.stale == "ask" if found.changes else settings.rerun == "ask"
    if found.changes and settings.stale == "rerun":
        return None
    if ask and present and not await _kept(place, found):
        return None
    _show(place, found, found.events)
    if key.branch is None:
        seat = place.document if key.seat is None else key.seat
        extension.shown[seat] = Point(found.run.session, found.run.last, found.began)
    fails = bool(found.changes) and ask and not present
    return Shown(found.ended, found.run.session, found.stale, found.not_compared, fails)


async def _here(extension: Extension, place: Place) -> Here | None:
    return extension.privacy.where(await here(extension.shell, place.notebook))


def why_failed(stale: str) -> str:
    """Return the sentence with which a cell fails whose answer is stale."""
    return f"{stale} --stale show goes on with it, --stale rerun asks the model again."


async def _find(extension: Extension, place: Place, key: RunKey, now: Here, model: str) -> _Found | None:
    """Return the one of the cell's runs whose inputs are as they were; else the newest of this cell; else None."""
    stale: _Found | None = None
    state: _State | None = None
    async with aclosing(_runs(extension.runs, key)) as runs:
        async for run in runs:
            state = state or await _State.of(extension, place, key, now, model)
            if (found := await _compared(run, state)) is None:
                continue
            if not found.changes:
                return found
            if stale is None and now.is_cell(run.cell, run.above):
                stale = found
    return stale


async def _compared(run: FinishedRun, state: _State) -> _Found | None:
    """Return a run with what has changed since, None for one that tells nothing of this notebook."""
    events = await asyncio.to_thread(_events, run)
    if events is None or not isinstance(ended := events[-1], RunEnded):
        return None
    gone = state.here.missing(run.cells)
    if run.cells and len(gone) == len(run.cells):  # of another notebook, or of this one before it was made anew
        return None
    try:
        changes = tuple(await state.changes(run))
        return _Found(run, events, ended, changes, not_compared(run.inputs), state.began(run))
    except (KeyError, TypeError, ValueError, AttributeError):  # it is sealed, so this is a fault of ours
        _log.exception("a kept run can't be compared")
        return None


async def _runs(store: RunStore, key: RunKey) -> AsyncGenerator[FinishedRun]:
    """Yield the finished runs of a text, newest first: one at a time is in memory, and is read on another thread."""
    found = store.of_text(key.text)
    while (run := await asyncio.to_thread(next, found, None)) is not None:
        yield run


@dataclass(frozen=True, slots=True)
class _State:
    """All that runs are compared with, as it is now. `model` is "" where that is not compared."""

    here: Here
    shown: tuple[str, ...]
    past: PastNow
    lookup: Lookup
    model: str

    @classmethod
    async def of(cls, extension: Extension, place: Place, key: RunKey, now: Here, model: str) -> _State:
        shown = await shown_above(place.notebook, now)
        past = await PastNow.of(extension, place, new=key.new, seat=key.seat, branch=key.branch)
        return cls(now, shown, past, Lookup(extension.kernel.namespace(), extension.folder), model)

    async def changes(self, run: FinishedRun) -> list[str]:
        """Return in words what is not as it was; raises KeyError, TypeError, ValueError or AttributeError for a damaged run."""
        changes = changes_above(run.above, self.here, run.shown, self.shown)
        if run.cell and self.here.ids is not None:
            changes += changes_of_texts(run.texts, run.untold, self.here)
        if gone := self.here.missing(run.cells):
            changes.append(f"cells that it made are gone: {len(gone)}")
        changes += await self.lookup.differences(run.inputs)
        if not self._has_its_past(run):
            changes.append("the conversation before this cell is another one")
        if self.model and run.model != self.model:
            changes.append(f"the model is {self.model} now, it was {run.model}")
        return changes

    def began(self, run: FinishedRun) -> Mapping[str, int]:
        """Return where the cells' runs began in the conversation that the record of `run` leads to."""
        before = self.past.began if self._has_its_past(run) else {}
        own = {self.here.cell: run.first} if self.here.cell else {}
        return {**{cell: first for cell, first in before.items() if first < run.first}, **own}

    def _has_its_past(self, run: FinishedRun) -> bool:
        return self.past.is_of(run, first=not any(starts_agent(source) for source in self.here.above))


def _events(run: FinishedRun) -> tuple[Event, ...] | None:
    """Return what a run reported, None where the file does not tell it."""
    try:
        events = tuple(event for data in run.events if (event := from_json(data)) is not None)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return events or None


async def _kept(place: Place, found: _Found) -> bool:
    """Show the old record and ask whether it stays; whatever is answered, the view is empty again afterwards."""
    keep = KEEP_STALE if found.changes else KEEP
    _show(place, found, found.events[:-1])  # without its end the view stays open for the question
    text = f"{_WHICH.format(found.told or _SAME, _when(found.run.at))} {found.not_compared}".rstrip()
    try:
        answer = await choose(text, (RUN_AGAIN, keep), place.approver, before_run, place.view.show)
    except asyncio.CancelledError:  # Stop: nothing ran, and what stood there stays
        place.view.show(before_run(ViewCleared))
        _show(place, found, found.events)
        raise
    place.view.show(before_run(ViewCleared))
    return answer != RUN_AGAIN


def _show(place: Place, found: _Found, events: Iterable[Event]) -> None:
    if found.changes:
        place.view.show(before_run(FoundStale, text=found.stale))
    for event in events:
        place.view.show(event)


def _day(at: str) -> str:
    return at[:10] or "an earlier day"


def _when(at: str) -> str:
    """Return the clock time of today, else the day."""
    try:
        then = datetime.fromisoformat(at).astimezone()
    except ValueError:
        return _day(at)
    return f"{then:%H:%M}" if then.date() == datetime.now().astimezone().date() else _day(at)
