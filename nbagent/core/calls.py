"""Runs calls that were decided on, side by side, each to its one result.

This is one of the three places that may catch everything: a tool is somebody else's code. Must not know who decided.
Read `execute`, then `_one`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace

from nbagent.core.endings import Ending
from nbagent.core.errors import CutOff, Interrupted, ToolError
from nbagent.core.events import CallEnded, CallProgress, CallStarted, Event, Reason, Status
from nbagent.core.messages import Block, Json, text_block
from nbagent.core.ports import Preview, Question
from nbagent.core.questions import put
from nbagent.core.run import Run
from nbagent.core.session import CUT_OFF, result_block
from nbagent.core.tools import Call, Result, Tool

_log = logging.getLogger("nbagent")

_SPARED = (
    "The person interrupted this call (not the run), so it may have taken effect in part. Look at what is there, then go "
    "on in another way, or ask them."
)
_WORD_WAIT = 0.3


@dataclass(frozen=True, slots=True)
class Ready:
    """A call that may run. `shown` is `given` for people: without the arguments that the model left out for nothing.

    Title and preview are asked of the tool once, when the call is decided: what is shown then is what runs. `note` is
    told to the model before the result.
    """

    id: str
    tool: Tool
    given: Json
    shown: Json
    title: str = ""
    preview: Preview = field(default_factory=Preview)
    note: str = ""


def settle(run: Run, block: Block, status: Status, text: str) -> CallEnded:
    """Answer a call that does not run; return its last event."""
    content = (text_block(text),)
    call_id, name = str(block["id"]), str(block.get("name"))
    run.results[call_id] = result_block(call_id, content, is_error=True)
    run.outcomes[call_id] = (content, ())
    return run.event(CallEnded, call_id=call_id, name=name, status=status, content=content, seconds=0.0, summary=text)


async def execute(run: Run, batch: Sequence[Ready]) -> AsyncGenerator[Event]:
    """Run calls side by side and yield what they report, in the order in which it happens."""
    if not batch:
        return
    reports: asyncio.Queue[Event] = asyncio.Queue()
    for ready in batch:
        yield run.event(
            CallStarted,
            call_id=ready.id, name=ready.tool.name, input=ready.shown,
            title=ready.title, preview=ready.preview.to_json(),
        )  # fmt: skip
    tasks = [asyncio.create_task(_one(run, ready, reports)) for ready in batch]
    run.stop.bind_calls(lambda: [task.cancel() for task in tasks])
    try:
        ended = 0
        while ended < len(batch):
            event = await reports.get()
            ended += isinstance(event, CallEnded)
            yield event
    finally:
        run.stop.bind_calls(None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _one(run: Run, ready: Ready, reports: asyncio.Queue[Event]) -> None:
    """Run one call to its result. Nothing escapes from here but a cancellation, and that only with a result kept."""

    def progress(text: str) -> None:
        reports.put_nowait(run.event(CallProgress, call_id=ready.id, text=text))

    async def ask(question: Question) -> str:
        return await put(question, run.agent.approver, run.event, reports.put_nowait)

    began = time.monotonic()
    status, cancelled = Status.OK, False
    try:
        call = Call(ready.id, progress, ask, run.session.id, run.id)
        result = await ready.tool.run(call, ready.given)
        status = Status.ERROR if result.is_error else Status.OK
    except ToolError as error:
        status, result = Status.ERROR, Result.of(str(error))
    except Interrupted as stopped:
        if await run.stop.spared(_WORD_WAIT):
            status, result = Status.ERROR, _interrupted(stopped.output, _SPARED)
        else:
            status, result = Status.INTERRUPTED, _interrupted(stopped.output)
            run.ending = Ending(Reason.INTERRUPTED)
    except asyncio.CancelledError as stopped:
        output = stopped.output if isinstance(stopped, CutOff) else ""
        status, result, cancelled = Status.INTERRUPTED, _interrupted(output), True
        if await run.stop.spared() and not run.stop.asked:
            status, result, cancelled = Status.ERROR, _interrupted(output, _SPARED), False
    except (KeyboardInterrupt, SystemExit) as stopped:  # must not reach the event loop: it would end the kernel
        status, result = Status.INTERRUPTED, _interrupted(repr(stopped))
        run.ending = Ending(Reason.INTERRUPTED)
    except (
        BaseException
    ) as error:  # also groups with an interrupt in them: without a result the run would wait for ever
        status, result = Status.ERROR, Result.of(failed(ready.tool, error))
    if ready.note:
        result = replace(result, content=(text_block(ready.note), *result.content))
    _keep(run, ready, status, result)
    reports.put_nowait(
        run.event(
            CallEnded,
            call_id=ready.id, name=ready.tool.name, status=status, content=result.content,
            seconds=round(time.monotonic() - began, 3), summary=result.summary, cells=result.cells,
        )
    )  # fmt: skip
    if cancelled:
        raise asyncio.CancelledError


def failed(tool: Tool, error: BaseException) -> str:
    """Log what a tool's own code raised, and return it as a sentence for the model."""
    _log.error("tool %s failed", tool.name, exc_info=error)
    return f"{tool.name} failed: {type(error).__name__}: {_said(error)}"


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its own code may fail, and then the call would have no result and the run no end
        return "(its text cannot be made)"


def _interrupted(output: str, why: str = CUT_OFF) -> Result:
    return Result.of(f"{why} Output so far:\n{output}" if output.strip() else why)


def _keep(run: Run, ready: Ready, status: Status, result: Result) -> None:
    run.results[ready.id] = result_block(ready.id, result.content, is_error=status is not Status.OK)
    run.outcomes[ready.id] = (result.content, result.cells)
    run.calls_made.append(result.summary or ready.title)
    run.cells.update(dict.fromkeys(result.cells))
