"""Act: validate → decide → perhaps ask → run, for every call of one reply.

Read-only calls that stand side by side run side by side; all others run in order. Whatever happens, each call that was
begun has a result in `run.results` when this is over; the rest the transcript answers itself. This is one of the three
places that may catch everything: a tool is somebody else's code.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from nbagent.core.endings import Ending
from nbagent.core.errors import Interrupted, ToolError
from nbagent.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallDecided,
    CallEnded,
    CallProgress,
    CallStarted,
    Event,
    Reason,
    Status,
)
from nbagent.core.messages import CUT_SHORT, Block, Json, text_block
from nbagent.core.policy import Decision
from nbagent.core.ports import Answered, Approval, Preview, Question
from nbagent.core.questions import put
from nbagent.core.run import Run
from nbagent.core.session import CUT_OFF, result_block
from nbagent.core.tools import Call, Kind, Result, Tool

_log = logging.getLogger("nbagent")


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call that may run. `shown` is `given` for people: without the arguments that the model left out for nothing.

    Title and preview are asked of the tool once, when the call is decided: what is shown then is what runs.
    """

    id: str
    tool: Tool
    given: Json
    shown: Json
    title: str = ""
    preview: Preview = field(default_factory=Preview)


async def act(run: Run) -> AsyncGenerator[Event]:
    """Answer every call of `run.reply`; sets `run.ending` where the run must not go on."""
    calls = run.reply.calls
    run.results, run.outcomes = {}, {}
    if run.reply.stop_reason in CUT_SHORT:
        for block in calls:
            yield _settle(run, block, Status.INVALID, _CUT_SHORT)
        return
    side_by_side: list[_Ready] = []
    for block in calls:
        if run.stop.asked or run.ending:
            break
        ready, event = _prepare(run, block)
        if ready is None:
            yield event
            continue
        decided = await _decided(run, ready)
        if isinstance(decided, str):
            yield _settle(run, block, Status.ERROR, decided)
            continue
        ready, decision = decided
        yield run.event(
            CallDecided,
            call_id=ready.id, name=ready.tool.name, input=ready.shown, action=decision.action, rule=decision.rule,
        )  # fmt: skip
        together = decision.action == "allow" and decision.kind is Kind.READ
        if together:
            side_by_side.append(ready)
            continue
        async with aclosing(_in_order(run, side_by_side, ready, decision, block)) as events:
            async for event in events:
                yield event
        side_by_side = []
    if not (run.stop.asked or run.ending):
        async with aclosing(_execute(run, side_by_side)) as events:
            async for event in events:
                yield event


_CUT_SHORT = (
    "This call was cut by the output limit, so it did not run; nor did the other calls of that reply. "
    "Send it again in smaller pieces."
)


def _prepare(run: Run, block: Block) -> tuple[_Ready | None, Event]:
    """Find the tool and validate the input; where that fails the call is settled and its last event returned."""
    call_id, name = str(block["id"]), str(block.get("name"))
    tool = run.agent.tools.get(name)
    if tool is None:
        names = ", ".join(run.agent.tools)
        return None, _settle(run, block, Status.INVALID, f"There is no tool {name!r}. The tools are: {names}.")
    if call_id in run.reply.bad_input:
        text = f"{run.reply.bad_input[call_id]}\nExpected: {tool.signature}"
        return None, _settle(run, block, Status.INVALID, text)
    try:
        given = tool.validate(block["input"])
    except ToolError as error:
        return None, _settle(run, block, Status.INVALID, str(error))
    shown = {name: value for name, value in given.items() if value is not None or name in block["input"]}
    ready = _Ready(call_id, tool, given, shown)
    return ready, run.event(Event)


async def _decided(run: Run, ready: _Ready) -> tuple[_Ready, Decision] | str:
    """Decide about a call and describe it for people; text where that fails: this too is the tool's own code."""
    tool, given = ready.tool, ready.given
    try:
        decision = await run.agent.gate.decide(tool, given)
        return replace(ready, title=tool.title(given), preview=tool.preview(given)), decision
    except Exception as error:
        return _failed(tool, error)


async def _in_order(
    run: Run, before: Sequence[_Ready], ready: _Ready, decision: Decision, block: Block
) -> AsyncGenerator[Event]:
    """Run the read-only calls that came before, then this one, asked about if need be."""
    async with aclosing(_execute(run, before)) as events:
        async for event in events:
            yield event
    if run.stop.asked or run.ending:
        return
    if decision.action == "deny":
        yield _settle(run, block, Status.DENIED, f"Not allowed ({decision.rule}), so it did not run.")
        return
    if decision.action == "ask":
        approval = _approval(run, ready, decision)
        yield run.event(ApprovalAsked, call_id=ready.id, approval=approval.to_json())
        answered = await run.agent.approver.ask(approval)
        if answered.approved and answered.rule:
            run.agent.gate.keep(answered.rule)
        yield run.event(
            ApprovalAnswered,
            call_id=ready.id,
            approved=answered.approved, words=answered.words, rule=answered.rule, by=answered.by,
        )  # fmt: skip
        if not answered.approved:
            yield _denied(run, block, answered)
            return
    async with aclosing(_execute(run, [ready])) as events:
        async for event in events:
            yield event


def _approval(run: Run, ready: _Ready, decision: Decision) -> Approval:
    tool, given = ready.tool, ready.given
    return Approval(
        call_id=ready.id,
        tool=tool.name,
        title=ready.title,
        input=ready.shown,
        preview=ready.preview,
        why=decision.rule,
        offers=run.agent.gate.offers(tool, given),
        notebook=run.agent.notebook,
    )


def _denied(run: Run, block: Block, answered: Answered) -> Event:
    if answered.words:
        text = f"Denied by the person, so it did not run. They say: {answered.words}"
    else:
        text = "Denied by the person, so it did not run."
        sentence = (
            "" if run.agent.approver.present else f"Stopped: {block['name']} needs an approval and nobody can give it."
        )
        run.ending = Ending(Reason.DENIED, sentence)
    return _settle(run, block, Status.DENIED, text)


def _settle(run: Run, block: Block, status: Status, text: str) -> CallEnded:
    """Answer a call that does not run."""
    content = (text_block(text),)
    call_id, name = str(block["id"]), str(block.get("name"))
    run.results[call_id] = result_block(call_id, content, is_error=True)
    run.outcomes[call_id] = (content, ())
    return run.event(CallEnded, call_id=call_id, name=name, status=status, content=content, seconds=0.0, summary=text)


async def _execute(run: Run, batch: Sequence[_Ready]) -> AsyncGenerator[Event]:
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
    try:
        ended = 0
        while ended < len(batch):
            event = await reports.get()
            ended += isinstance(event, CallEnded)
            yield event
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _one(run: Run, ready: _Ready, reports: asyncio.Queue[Event]) -> None:
    """Run one call to its result. Nothing escapes from here but a cancellation, and that only with a result kept."""

    def progress(text: str) -> None:
        reports.put_nowait(run.event(CallProgress, call_id=ready.id, text=text))

    async def ask(question: Question) -> str:
        return await put(question, run.agent.approver, run.event, reports.put_nowait)

    began = time.monotonic()
    status, cancelled = Status.OK, False
    try:
        result = await ready.tool.run(Call(ready.id, progress, ask), ready.given)
        status = Status.ERROR if result.is_error else Status.OK
    except ToolError as error:
        status, result = Status.ERROR, Result.of(str(error))
    except Interrupted as stopped:
        status, result = Status.INTERRUPTED, _interrupted(stopped.output)
        run.ending = Ending(Reason.INTERRUPTED)
    except asyncio.CancelledError:
        status, result, cancelled = Status.INTERRUPTED, _interrupted(""), True
    except (KeyboardInterrupt, SystemExit) as stopped:  # must not reach the event loop: it would end the kernel
        status, result = Status.INTERRUPTED, _interrupted(repr(stopped))
        run.ending = Ending(Reason.INTERRUPTED)
    except (
        BaseException
    ) as error:  # also groups with an interrupt in them: without a result the run would wait for ever
        status, result = Status.ERROR, Result.of(_failed(ready.tool, error))
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


def _failed(tool: Tool, error: BaseException) -> str:
    _log.error("tool %s failed", tool.name, exc_info=error)
    return f"{tool.name} failed: {type(error).__name__}: {_said(error)}"


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its own code may fail, and then the call would have no result and the run no end
        return "(its text cannot be made)"


def _interrupted(output: str) -> Result:
    return Result.of(f"{CUT_OFF} Output so far:\n{output}" if output.strip() else CUT_OFF)


def _keep(run: Run, ready: _Ready, status: Status, result: Result) -> None:
    run.results[ready.id] = result_block(ready.id, result.content, is_error=status is not Status.OK)
    run.outcomes[ready.id] = (result.content, result.cells)
    run.calls_made.append(result.summary or ready.title)
    run.cells.update(dict.fromkeys(result.cells))
