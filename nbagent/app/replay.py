"""Running a finished agent cell again: shows the record of its run where nothing that the run read has changed.

A finished run is kept with what it read (`keptrun.py`). When the cell is run again, what it read is looked up again:
the same, and the record is shown from the store, drawn anew, and no model is asked; changed, and the record is shown as
STALE with what has changed, and the person is asked, or, where nobody is there, the cell fails with that sentence.
Read `offer`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.app.above import Here, changes_above, here, shown_above
from nbagent.app.consent import before_run
from nbagent.app.extension import Extension
from nbagent.app.place import Place
from nbagent.config import Settings
from nbagent.core.events import Event, FoundStale, RunEnded, ViewCleared, from_json
from nbagent.core.messages import Json
from nbagent.core.policy import Mode
from nbagent.core.ports import Question
from nbagent.core.questions import put
from nbagent.extend.runs import FinishedRun, RunStore, text_key
from nbagent.models import open_model
from nbagent.models.catalog import DEFAULT_MODEL
from nbagent.tools.inputs import differences, weak

_NO_PART = frozenset({
    "again", "stale", "out", "timeout", "cell_timeout", "budget", "budget_tokens", "max_turns", "preset",
})  # fmt: skip
"""Options that don't change the answer of a run that came to its end."""

RUN_AGAIN, KEEP_STALE, KEEP = "Run again", "Keep the old answer, shown as stale", "Keep the answer"
_TOLD = 4


@dataclass(frozen=True, slots=True)
class RunKey:
    """By what a cell's finished runs are found: `text` is its `text_key`. `again`: whatever is found, the model is asked."""

    text: str
    again: bool = False

    @classmethod
    def of(cls, prompt: str, options: Json, mode: Mode, *, again: bool = False) -> RunKey:
        """Take prompt and options of a cell. A run that may only look answers another question than one that may act."""
        given: dict[str, Any] = {name: value for name, value in options.items() if name not in _NO_PART}
        if mode in {Mode.PLAN, Mode.READ_ONLY}:
            given["mode"] = str(mode)
        return cls(text_key(prompt, given), again or bool(options.get("again")))


@dataclass(frozen=True, slots=True)
class Shown:
    """The record of an earlier run that is shown in the place of a new one. `fails`: the cell fails with `stale`."""

    ended: RunEnded
    session: str
    stale: str
    weak: tuple[str, ...]
    fails: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    run: FinishedRun
    events: tuple[Event, ...]
    ended: RunEnded
    changes: tuple[str, ...]

    @property
    def stale(self) -> str:
        """The sentence that says what has changed, "" where nothing has."""
        if not self.changes:
            return ""
        told = [
            *self.changes[:_TOLD],
            *([f"and {len(self.changes) - _TOLD} more"] if len(self.changes) > _TOLD else []),
        ]
        part = weak(self.run.inputs)
        also = f" (Of {'; of '.join(text.replace(':', ',', 1) for text in part[:2])}.)" if part else ""
        return f"STALE: {'; '.join(told)}. This is the answer of {_day(self.run.at)}.{also}"


async def offer(extension: Extension, place: Place, settings: Settings, key: RunKey) -> Shown | None:
    """Show the record of the cell's finished run, if there is one that still counts or the person keeps; None: run it."""
    if key.again or settings.rerun == "live" or (now := await here(extension.shell, place.notebook)) is None:
        return None
    present = place.approver.present
    runs = list(RunStore(extension.folder).of_text(key.text))
    shown = await shown_above(place.notebook, now) if runs else ()
    found = _find(extension, runs, now, shown, open_model(settings.model or DEFAULT_MODEL).name if present else "")
    if found is None:
        return None
    ask = settings.stale == "ask" if found.changes else settings.rerun == "ask"
    if found.changes and settings.stale == "rerun":
        return None
    if ask and present and not await _kept(place, found):
        return None
    _show(place, found, found.events)
    extension.shown[place.document] = (found.run.session, found.run.last)
    fails = bool(found.changes) and ask and not present
    return Shown(found.ended, found.run.session, found.stale, tuple(weak(found.run.inputs)), fails)


def why_failed(stale: str) -> str:
    """Return the sentence with which a cell fails whose answer is stale."""
    return f"{stale} --stale show goes on with it, --stale rerun asks the model again."


def _find(
    extension: Extension, runs: Iterable[FinishedRun], now: Here, shown: Sequence[str], model: str
) -> _Found | None:
    """Return the one of `runs` whose inputs are as they were; else the newest of this cell; else None."""
    stale: _Found | None = None
    for run in runs:
        events = _events(run)
        if events is None or not isinstance(ended := events[-1], RunEnded):
            continue
        gone = now.missing(run.cells)
        if run.cells and len(gone) == len(run.cells):  # of another notebook, or of this one before it was made anew
            continue
        try:
            changes = changes_above(run.above, now, run.shown, shown)
            changes += [f"cells that it made are gone: {len(gone)}"] if gone else []
            changes += differences(run.inputs, extension.kernel.namespace(), extension.folder)
        except (KeyError, TypeError, ValueError, AttributeError):  # a damaged file is not there
            continue
        if model and run.model != model:
            changes.append(f"the model is {model} now, it was {run.model}")
        found = _Found(run, events, ended, tuple(changes))
        if not changes:
            return found
        if stale is None and now.is_cell(run.cell, run.above):
            stale = found
    return stale


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
    question = Question(
        id=f"rerun-{secrets.token_hex(4)}",
        text=found.stale or f"This cell has an answer of {_day(found.run.at)}, and nothing that it read has changed.",
        choices=(RUN_AGAIN, keep),
    )
    try:
        answer = await put(question, place.approver, before_run, place.view.show)
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
