"""Takes down a run as it goes, and keeps it when it has finished, so that its cell can be run again for nothing.

Stands between a run and its kernel, its tools and its view. A run that was cut off, failed, or was denied something by
a rule is not kept: it would be another one the next time. Read `KeptRun`.
"""

from __future__ import annotations

import ast
import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from nbagent.app.above import here, shown_above, untold
from nbagent.app.conversation import Conversation
from nbagent.app.extension import Extension
from nbagent.app.forks import past_hashes
from nbagent.app.place import Place, View
from nbagent.app.replay import RunKey
from nbagent.core.events import (
    AgentReported,
    ApprovalAnswered,
    BlockStarted,
    CallEnded,
    Event,
    InputDelta,
    Reason,
    RequestSent,
    RunEnded,
    RunStarted,
    Status,
    TextDelta,
    ThinkingDelta,
    innermost,
)
from nbagent.core.events_json import to_json
from nbagent.core.messages import Json
from nbagent.core.ports import Kernel
from nbagent.core.session import Session
from nbagent.core.tools import Tool
from nbagent.extend.runs import FinishedRun
from nbagent.jupyter.kernel import transformed
from nbagent.tools.inputs import Inputs
from nbagent.tools.noting import NotingKernel, unwatched, watched
from nbagent.tools.unseen import not_compared
from nbagent.view.fold import coalesce

_log = logging.getLogger("nbagent")

_PIECES = (TextDelta, ThinkingDelta, InputDelta, BlockStarted)


class KeptRun:
    """One run on its way to the store. Put `kernel`, `tools(…)` and `view` in the place of the run's own."""

    def __init__(self, extension: Extension, place: Place, key: RunKey) -> None:
        self._extension, self._place, self._key = extension, place, key
        self._events: list[Event] = []
        self._conversation: Conversation | None = None
        self._first = 0
        self._session: Session | None = None
        self._cell = (place.notebook.own_cell if place.notebook is not None else None) or ""
        own = place.notebook.path if place.notebook is not None else ""
        kernel = extension.kernel
        self._inputs = Inputs(kernel.namespace, extension.folder, own=own, plain=_plain(extension.shell))
        self.kernel: Kernel = NotingKernel(kernel, self._inputs)
        self.view: View = _Taking(place.view, self._events, self._with_not_compared)

    def tools(self, tools: Iterable[Tool], own: Iterable[Tool]) -> list[Tool]:
        """Return `tools` with what their calls read taken down; of `own`, the person's and of others, it can't be seen."""
        names = {tool.name for tool in own}
        return [(unwatched if tool.name in names else watched)(tool, self._inputs) for tool in tools]

    def reads(self, path: Path) -> None:
        """Take down a file that the answer depends on."""
        self._inputs.file(str(path), asked=True)

    def looks(self, name: str) -> None:
        """Take down a variable that the answer depends on."""
        self._inputs.name(name)

    def begin(self, conversation: Conversation) -> None:
        """Say which conversation the run is of; its first message is the next one."""
        self._conversation, self._first = conversation, len(conversation.session.transcript)
        self._session = conversation.session
        if self._cell:  # until it ends: if the kernel goes away, the cell goes on with what was cut off
            conversation.finished(self._cell, None)

    def not_compared(self, ended: RunEnded) -> str:
        """Return what will not be compared when the cell is run again, in a sentence; "" for nothing, and if it isn't kept."""
        kept = self._is_kept(ended) and getattr(self._extension.shell, "kernel", None) is not None
        return not_compared(self._inputs.seen()) if kept else ""

    def _with_not_compared(self, ended: RunEnded) -> RunEnded:
        """Say so at the end of the record, where it stands when the record is shown again, too."""
        said = self.not_compared(ended)
        return replace(ended, checked=" ".join(filter(None, (ended.checked, said)))) if said else ended

    def _is_kept(self, ended: RunEnded) -> bool:
        return ended.reason is Reason.END_TURN and not self._refused()

    async def end(self, ended: RunEnded) -> None:
        """Keep the run if it has finished."""
        conversation, cell = self._conversation, self._cell
        if conversation is None:
            return
        began_in, ended_in = self._session or conversation.session, conversation.session
        if (
            ended.reason is Reason.REFUSAL and cell and ended_in is began_in
        ):  # put differently, it is asked without that
            conversation.finished(cell, self._first)
        kept = self._is_kept(ended)  # a run that is cut off is gone on with when its cell is run again
        if not kept:
            return
        if cell and ended_in is began_in:
            conversation.finished(cell, self._first)
        now = self._extension.privacy.where(await here(self._extension.shell, self._place.notebook))
        if now is None:
            return
        past = await asyncio.to_thread(past_hashes, began_in.transcript[: self._first])
        messages, first = ended_in.transcript[:], self._first
        if ended_in is not began_in:  # summed up on the way: it goes on from the summary
            first = 1 + (messages[0]["role"] == "assistant")
        run = FinishedRun(
            run=self._run(),
            text=self._key.text,
            cell=now.cell,
            at=FinishedRun.now(),
            model=self._model(),
            above=now.above,
            shown=await shown_above(self._place.notebook, now),
            texts=now.texts,
            untold=await asyncio.to_thread(untold, now, [*began_in.transcript, *messages]),
            past=past[-1],
            cells=tuple(cell for cell in ended.cells if now.ids is None or cell in now.ids),
            inputs=await asyncio.to_thread(self._inputs.to_json),
            events=tuple(_stored(event) for event in coalesce(self._events) if not _streamed(event)),
            session=ended_in.id,
            first=first,
            last=len(messages),
        )
        if problem := await asyncio.to_thread(self._extension.runs.keep, run):
            _log.warning(problem)

    def _refused(self) -> bool:
        """Whether a call was denied, and not by a person."""
        events = [innermost(event) for event in self._events]
        by_person = {e.call_id for e in events if isinstance(e, ApprovalAnswered) and e.by == "person"}
        denied = {e.call_id for e in events if isinstance(e, CallEnded) and e.status is Status.DENIED}
        return bool(denied - by_person)

    def _run(self) -> str:
        return next((event.run_id for event in self._events if isinstance(event, RunStarted)), "")

    def _model(self) -> str:
        return next((event.model for event in self._events if isinstance(event, RequestSent)), "")


def _stored(event: Event) -> Json:
    inner = record = to_json(event)
    while isinstance(inner.get("event"), dict):
        inner = inner["event"]
    if "new" in inner:  # the messages of a request are in the session, and no record shows them
        inner["new"] = []
    return record


def _streamed(event: Event) -> bool:
    """Whether it is a piece of a subagent's reply: its whole replies are enough for a record."""
    return isinstance(event, AgentReported) and isinstance(innermost(event), _PIECES)


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
    """A view that takes down every event that it shows; the last one is completed by `last`."""

    def __init__(self, view: View, events: list[Event], last: Callable[[RunEnded], RunEnded]) -> None:
        self._view, self._events, self._last = view, events, last

    def show(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, RunEnded):
            event = self._last(event)
        self._events.append(event)
        self._view.show(event)
