"""Takes down a run as it goes, and keeps it when it has finished, so that its cell can be run again for nothing.

Stands between a run and its kernel, its tools and its view. A run that was cut off, failed, or was denied something by
a rule is not kept: it would be another one the next time. Read `KeptRun`.
"""

from __future__ import annotations

import ast
import logging
from collections.abc import Callable, Iterable
from typing import Any

from nbagent.app.above import here, shown_above
from nbagent.app.conversation import Conversation
from nbagent.app.extension import Extension
from nbagent.app.place import Place, View
from nbagent.app.replay import RunKey
from nbagent.core.events import (
    ApprovalAnswered,
    CallEnded,
    Event,
    Reason,
    RequestSent,
    RunEnded,
    RunStarted,
    Status,
    to_json,
)
from nbagent.core.messages import Json
from nbagent.core.ports import Kernel
from nbagent.core.tools import Tool
from nbagent.extend.runs import FinishedRun, RunStore
from nbagent.jupyter.kernel import transformed
from nbagent.tools.inputs import Inputs, NotingKernel, watched
from nbagent.view.fold import coalesce

_log = logging.getLogger("nbagent")


class KeptRun:
    """One run on its way to the store. Put `kernel`, `tools(…)` and `view` in the place of the run's own."""

    def __init__(self, extension: Extension, place: Place, key: RunKey) -> None:
        self._extension, self._place, self._key = extension, place, key
        self._events: list[Event] = []
        self._conversation: Conversation | None = None
        self._first = 0
        self._cell = (place.notebook.own_cell if place.notebook is not None else None) or ""
        own = place.notebook.path if place.notebook is not None else ""
        kernel = extension.kernel
        self._inputs = Inputs(kernel.namespace, extension.folder, own=own, plain=_plain(extension.shell))
        self.kernel: Kernel = NotingKernel(kernel, self._inputs)
        self.view: View = _Taking(place.view, self._events)

    def tools(self, tools: Iterable[Tool]) -> list[Tool]:
        """Return `tools` with what their calls read taken down."""
        return [watched(tool, self._inputs) for tool in tools]

    def begin(self, conversation: Conversation) -> None:
        """Say which conversation the run is of; its first message is the next one."""
        self._conversation, self._first = conversation, len(conversation.session.transcript)

    async def end(self, ended: RunEnded) -> None:
        """Keep the run if it has finished."""
        conversation, cell = self._conversation, self._cell
        if conversation is None:
            return
        conversation.began.pop(cell, None)  # a run that is cut off is gone on with when its cell is run again
        if ended.reason is not Reason.END_TURN or self._refused():
            return
        if cell:
            conversation.began[cell] = self._first
        now = await here(self._extension.shell, self._place.notebook)
        if now is None:
            return
        run = FinishedRun(
            run=self._run(),
            text=self._key.text,
            cell=now.cell,
            at=FinishedRun.now(),
            model=self._model(),
            above=now.above,
            shown=await shown_above(self._place.notebook, now),
            cells=tuple(cell for cell in ended.cells if now.ids is None or cell in now.ids),
            inputs=self._inputs.to_json(),
            events=tuple(_stored(event) for event in coalesce(self._events)),
            session=conversation.session.id,
            first=self._first,
            last=len(conversation.session.transcript),
        )
        if problem := RunStore(self._extension.folder).keep(run):
            _log.warning(problem)

    def _refused(self) -> bool:
        """Whether a call was denied, and not by a person."""
        by_person = {e.call_id for e in self._events if isinstance(e, ApprovalAnswered) and e.by == "person"}
        denied = {e.call_id for e in self._events if isinstance(e, CallEnded) and e.status is Status.DENIED}
        return bool(denied - by_person)

    def _run(self) -> str:
        return next((event.run_id for event in self._events if isinstance(event, RunStarted)), "")

    def _model(self) -> str:
        return next((event.model for event in self._events if isinstance(event, RequestSent)), "")


def _stored(event: Event) -> Json:
    record = to_json(event)
    record.pop("new", None)  # the messages of a request are in the session, and no record shows them
    return record if not isinstance(event, RequestSent) else {**record, "new": []}


def _plain(shell: Any) -> Callable[[str], str]:
    """Return what makes Python of a cell's source: the magics in it become calls."""

    def plain(source: str) -> str:
        try:
            ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return transformed(shell, source)[0]
        return source

    return plain


class _Taking:
    """A view that takes down every event that it shows."""

    def __init__(self, view: View, events: list[Event]) -> None:
        self._view, self._events = view, events

    def show(self, event: Event) -> None:
        """Take one event."""
        self._events.append(event)
        self._view.show(event)
