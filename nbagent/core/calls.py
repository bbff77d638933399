"""Runs calls that were decided on, side by side, each to its one result, and lets hooks see it.

This is one of the three places that may catch everything: a tool is somebody else's code. Must not know who decided.
Read `execute`, then `_call` and `_one`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nbagent.core.agents import Child
from nbagent.core.endings import Ending
from nbagent.core.errors import CutOff, Interrupted, ToolError
from nbagent.core.events import (
    CallEnded,
    CallProgress,
    CallStarted,
    Event,
    ModeChanged,
    Reason,
    RunEnded,
    Status,
    TodosChanged,
)
from nbagent.core.hooking import cells, fire, tell, waiting
from nbagent.core.hooks import Verdict
from nbagent.core.messages import Block, Json, plain_text, text_block
from nbagent.core.payloads import Payload, PostToolUse, PostToolUseFailure
from nbagent.core.ports import Preview, Question
from nbagent.core.questions import put_all
from nbagent.core.run import Run
from nbagent.core.session import CUT_OFF, result_block
from nbagent.core.tools import Call, Result, Tool, childless, never_beside

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
    told to the model before the result. `verdict` is what hooks said before the call was decided, `answered` what they
    said in the place of the person.
    """

    id: str
    tool: Tool
    given: Json
    shown: Json
    title: str = ""
    preview: Preview = field(default_factory=Preview)
    note: str = ""
    verdict: Verdict = field(default_factory=Verdict)
    answered: Verdict = field(default_factory=Verdict)


def mcp_server(tool: str) -> str | None:
    """Return the MCP server that a tool's name (mcp__server__tool) names, None for other tools."""
    parts = tool.split("__", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "mcp" else None


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
    tasks = [asyncio.create_task(_call(run, ready, reports)) for ready in batch]
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


async def _call(run: Run, ready: Ready, reports: asyncio.Queue[Event]) -> None:
    """Run one call to its result and tell hooks of it. Only a cancellation escapes, and that only with a result kept."""
    report = reports.put_nowait
    began = time.monotonic()
    status, result, cancelled = await _one(run, ready, report)
    seconds = round(time.monotonic() - began, 3)
    if status is not Status.INTERRUPTED:
        try:
            result = await _seen(run, ready, status, result, round(seconds * 1000), report)
            await cells(run, ready.id, ready.tool.name, report)
        except Interrupted:
            run.ending = Ending(Reason.INTERRUPTED)
        except asyncio.CancelledError:  # the call itself is over: its result counts
            cancelled = run.stop.asked or not await run.stop.spared()
    if ready.note:
        result = replace(result, content=(text_block(ready.note), *result.content))
    _keep(run, ready, status, result)
    report(
        run.event(
            CallEnded,
            call_id=ready.id, name=ready.tool.name, status=status, content=result.content,
            seconds=seconds, summary=result.summary, cells=result.cells, goes_on=result.code == "goes on",
        )
    )  # fmt: skip
    if cancelled:
        raise asyncio.CancelledError


async def _one(run: Run, ready: Ready, report: Callable[[Event], None]) -> tuple[Status, Result, bool]:
    """Run one call; return its status, its result, and whether it was cancelled. Nothing escapes from here."""

    def progress(text: str) -> None:
        report(run.event(CallProgress, call_id=ready.id, text=text))

    async def ask_all(questions: Sequence[Question]) -> list[str]:
        async with waiting(run, questions[0].text, "agent_needs_input", report):
            return await put_all(questions, run.agent.approver, run.event, report)

    async def ask(question: Question) -> str:
        return (await ask_all([question]))[0]

    async def hook(payload: Payload) -> Verdict:
        verdict = await fire(run, payload, report, ready.id)
        tell(run, ready.id, payload.event, replace(verdict, block=()))  # what blocks is the tool's error
        return verdict

    async def spawn(child: Child) -> RunEnded:
        if run.agent.spawn is None:
            return await childless(child)
        return await run.agent.spawn(run, ready.id, child, report)

    async def start(child: Child) -> None:
        await (never_beside(child) if run.agent.start is None else run.agent.start(run, ready.id, child))

    def mode_is(mode: str) -> None:
        report(run.event(ModeChanged, mode=mode))

    def todos_are(todos: Sequence[Json]) -> None:
        report(run.event(TodosChanged, todos=tuple(todos)))

    def answered(text: str) -> None:
        run.text = run.text or text
        run.ending = run.ending or Ending(Reason.END_TURN)

    try:
        call = Call(
            ready.id, progress, ask, run.session.id, run.id, hook, spawn, mode_is, ask_all, todos_are, answered, start,
            lambda text: run.agent.aside(ready.id, text),
        )  # fmt: skip
        result = await ready.tool.run(call, ready.given)
    except ToolError as error:
        return Status.ERROR, Result.of(str(error)), False
    except Interrupted as stopped:
        if not run.stop.asked and await run.stop.spared(_WORD_WAIT):
            return Status.ERROR, _interrupted(stopped.output, _SPARED), False
        run.ending = Ending(Reason.INTERRUPTED)
        return Status.INTERRUPTED, _interrupted(stopped.output), False
    except asyncio.CancelledError as stopped:
        output = stopped.output if isinstance(stopped, CutOff) else ""
        if await run.stop.spared() and not run.stop.asked:
            return Status.ERROR, _interrupted(output, _SPARED), False
        return Status.INTERRUPTED, _interrupted(output), True
    except (KeyboardInterrupt, SystemExit) as stopped:  # must not reach the event loop: it would end the kernel
        run.ending = Ending(Reason.INTERRUPTED)
        return Status.INTERRUPTED, _interrupted(repr(stopped)), False
    except (
        BaseException
    ) as error:  # also groups with an interrupt in them: without a result the run would wait for ever
        return Status.ERROR, Result.of(failed(ready.tool, error)), False
    else:
        return (Status.ERROR if result.is_error else Status.OK), result, False


async def _seen(
    run: Run, ready: Ready, status: Status, result: Result, milliseconds: int, report: Callable[[Event], None]
) -> Result:
    """Show a result to hooks and return what the model sees of it: they may put another in its place."""
    about: dict[str, Any] = {"tool_name": ready.tool.name, "tool_input": ready.shown, "tool_use_id": ready.id,
             "duration_ms": milliseconds}  # fmt: skip
    text = plain_text(list(result.content))
    payload: Payload = (
        PostToolUse(**about, tool_response=text, mcp_server=mcp_server(ready.tool.name))
        if status is Status.OK
        else PostToolUseFailure(**about, error=text, is_interrupt=_SPARED in text)
    )
    verdict = await fire(run, payload, report, ready.id)
    tell(run, ready.id, payload.event, verdict)
    if status is not Status.OK or verdict.updated_output is None:
        return result
    return replace(result, content=Result.of(verdict.updated_output[0]).content)


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
