"""Act: validate → hooks → decide → perhaps ask → run, for every call of one reply.

Read-only calls that stand side by side run side by side, and so do subagents; all others run in order; changes that stand
side by side and must be asked about are asked about in one card (`asking`). Whatever happens, each call that was begun has a result in
`run.results` when this is over; the rest the transcript answers itself.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from nbagent.core.asking import Asked, ask
from nbagent.core.calls import Ready, execute, failed, settle
from nbagent.core.consulting import Hooking
from nbagent.core.endings import Ending
from nbagent.core.errors import ToolError
from nbagent.core.events import CallDecided, Event, Reason, Status
from nbagent.core.messages import CUT_SHORT, Block
from nbagent.core.policy import Decision, Hooked
from nbagent.core.run import Run
from nbagent.core.tools import Kind


async def act(run: Run) -> AsyncGenerator[Event]:
    """Answer every call of `run.reply`; sets `run.ending` where the run must not go on."""
    run.results, run.outcomes = {}, {}
    waiting = _Waiting()
    for block in run.reply.calls:
        if run.reply.stop_reason in CUT_SHORT:
            yield settle(run, block, Status.INVALID, _CUT_SHORT)
            continue
        if run.stop.asked or run.ending:
            return
        ready = _prepare(run, block)
        if isinstance(ready, str):
            yield settle(run, block, Status.INVALID, ready)
            continue
        if not waiting.takes(ready):  # before it is decided: a decision may hang on what the calls before it change
            async with aclosing(waiting.flush(run)) as events:
                async for event in events:
                    yield event
        if run.stop.asked or run.ending:
            return
        async with aclosing(_decide(run, ready, block, waiting)) as events:
            async for event in events:
                yield event
    async with aclosing(waiting.flush(run)) as events:
        async for event in events:
            yield event


_CUT_SHORT = (
    "This call was cut by the output limit, so it did not run; nor did the other calls of that reply. "
    "Send it again in smaller pieces."
)


class _Waiting:
    """Calls that wait for those after them: to look or to work side by side, or to be asked about in one card."""

    def __init__(self) -> None:
        self.looking: list[Ready] = []
        self.beside: list[Ready] = []
        self.asking: list[Asked] = []

    def takes(self, ready: Ready) -> bool:
        """Whether a call may be decided while those that wait have not run."""
        if self.beside and not ready.tool.beside:
            return False
        if not self.asking:
            return True
        target = None if ready.tool.target is None else ready.tool.target(ready.given)
        return target is not None and (target == "" or all(asked.target != target for asked in self.asking))

    async def flush(self, run: Run) -> AsyncGenerator[Event]:
        """Run those that look and those that work side by side, then ask about and run the others."""
        batches, self.looking, self.beside = (self.looking, self.beside), [], []
        asking, self.asking = self.asking, []
        for batch in batches:
            if not (run.stop.asked or run.ending):
                async with aclosing(execute(run, batch)) as events:
                    async for event in events:
                        yield event
        if asking and not (run.stop.asked or run.ending):
            async with aclosing(ask(run, asking, _decided)) as events:
                async for event in events:
                    yield event


async def _decide(run: Run, ready: Ready, block: Block, waiting: _Waiting) -> AsyncGenerator[Event]:
    """Decide about one call: it waits for its neighbours, is settled, or runs after those that wait."""
    asked = Hooking(run, ready)
    async with aclosing(asked.events(_decided)) as events:
        async for event in events:
            yield event
    if run.stop.asked or run.ending:
        return
    ready, said = asked.ready, asked.decided
    if waiting.asking and (isinstance(said, str) or said[1].action != "ask" or not waiting.takes(ready)):
        # it can't wait with them, so it runs after them: what they change may change what is decided
        async with aclosing(waiting.flush(run)) as events:
            async for event in events:
                yield event
        if run.stop.asked or run.ending:
            return
        said = await _decided(run, ready)
    if isinstance(said, str):
        yield settle(run, block, Status.ERROR, said)
        return
    async with aclosing(_carry_out(run, *said, block, waiting)) as events:
        async for event in events:
            yield event


async def _carry_out(
    run: Run, ready: Ready, decision: Decision, block: Block, waiting: _Waiting
) -> AsyncGenerator[Event]:
    """Do what was decided about one call."""
    yield run.event(
        CallDecided,
        call_id=ready.id, name=ready.tool.name, input=ready.shown, action=decision.action, rule=decision.rule,
    )  # fmt: skip
    if decision.action == "allow" and decision.kind is Kind.READ and not ready.tool.beside:
        waiting.looking.append(ready)
        return
    if decision.action == "allow" and ready.tool.beside and not waiting.looking:
        waiting.beside.append(ready)
        return
    if decision.action == "ask":
        waiting.asking.append(Asked(ready, decision, block))
        if waiting.asking[-1].target is not None:
            return
    async with aclosing(waiting.flush(run)) as events:
        async for event in events:
            yield event
    if run.stop.asked or run.ending or decision.action == "ask":
        return
    if decision.action == "deny":
        yield settle(run, block, Status.DENIED, f"Not allowed ({decision.rule}), so it did not run.")
        if ready.answered.interrupt:
            run.ending = Ending(Reason.HOOK, f"Stopped by a hook: {ready.answered.reason}")
        return
    if ready.tool.beside:  # those that look have run
        waiting.beside.append(ready)
        return
    async with aclosing(_alone(run, ready, block)) as events:
        async for event in events:
            yield event


async def _alone(run: Run, ready: Ready, block: Block) -> AsyncGenerator[Event]:
    """Run one call while no subagent beside this run changes anything; after a wait it is decided anew."""
    async with run.changing.through(run) as waited:
        if run.stop.asked or run.ending:
            return
        said = await _decided(run, ready) if waited else ""
        if not isinstance(said, str) and said[1].action != "allow":
            said = f"After what another subagent did meanwhile, this is not allowed as it was ({said[1].rule}), so it did not run. Look, then send it again."
        elif not isinstance(said, str):
            ready, said = said[0], ""
        if said:
            yield settle(run, block, Status.DENIED, said)
            return
        async with aclosing(execute(run, [ready])) as events:
            async for event in events:
                yield event


def _prepare(run: Run, block: Block) -> Ready | str:
    """Find the tool and validate the input; text for the model where that fails."""
    call_id, name = str(block["id"]), str(block.get("name"))
    tool = run.agent.tools.get(name)
    if tool is None:
        names = ", ".join(run.agent.tools)
        return f"There is no tool {name!r}. The tools are: {names}."
    if call_id in run.reply.bad_input:
        return f"{run.reply.bad_input[call_id]}\nExpected: {tool.signature}"
    try:
        given = tool.validate(block["input"])
    except ToolError as error:
        return str(error)
    shown = {name: value for name, value in given.items() if value is not None or name in block["input"]}
    return Ready(call_id, tool, given, shown)


async def _decided(run: Run, ready: Ready) -> tuple[Ready, Decision] | str:
    """Decide about a call and describe it for people; text where that fails: this too is the tool's own code."""
    tool, given = ready.tool, ready.given
    try:
        decision = await Hooked(run.agent.gate, ready.verdict, ready.answered).decide(tool, given)
        return replace(ready, title=tool.title(given), preview=tool.preview(given)), decision
    except Exception as error:
        return failed(tool, error)
