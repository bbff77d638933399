"""Where a run asks its hooks: fires an event, shows what hooks do, and keeps what they want told to the model.

A hook that fails at a gate shuts it: the person is asked, and where nobody is there what it was about is held back.
(For calls the policy does that, see `policy.Hooked`.) Must not know how a hook is run. Read `fire`, then `Firing`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from nbagent.core.endings import Ending
from nbagent.core.events import Event, HookEnded, HookStarted, Noted, Reason
from nbagent.core.hooks import Began, Finished, Verdict
from nbagent.core.payloads import GATES, HookEvent, Notification, Payload, Where
from nbagent.core.policy import Mode
from nbagent.core.ports import Question
from nbagent.core.questions import put
from nbagent.core.run import Run

CLAUDE_MODES = {
    Mode.DEFAULT: "default", Mode.ACCEPT_EDITS: "acceptEdits", Mode.PLAN: "plan", Mode.READ_ONLY: "plan",
    Mode.DONT_ASK: "dontAsk", Mode.BYPASS: "bypassPermissions",
}  # fmt: skip
"""Our modes as hooks know them; a read-only run is told as what comes nearest."""

_ABOUT = {
    HookEvent.USER_PROMPT_SUBMIT: "send the prompt",
    HookEvent.PRE_COMPACT: "compact the conversation",
    HookEvent.TASK_CREATED: "create the task",
    HookEvent.TASK_COMPLETED: "mark the task as done",
}
_YES, _NO = "Go on", "Don't"


def where(run: Run) -> Where:
    """Return what every hook of this run is told of the place."""
    mode = CLAUDE_MODES[run.agent.gate.mode]
    top = run.top  # a subagent is part of the session and of the prompt that it works for
    return replace(run.agent.where, session_id=top.session.id, permission_mode=mode, prompt_id=top.id)


async def fire(run: Run, payload: Payload, report: Callable[[Event], None], call_id: str = "") -> Verdict:
    """Ask the hooks about `payload`; `report` gets what the person sees of it. Ends the run where a hook says so."""
    hooks = run.agent.hooks
    if not hooks.listens(payload.event):
        return Verdict()

    def tell(news: Began | Finished) -> None:
        said = {"hook_id": news.id, "hook": news.name, "on": str(news.event), "call_id": call_id}
        if isinstance(news, Began):
            report(run.event(HookStarted, **said, message=news.message))
        else:
            report(run.event(HookEnded, **said, outcome=news.outcome, sentence=news.sentence, seconds=news.seconds,
                             output=news.output))  # fmt: skip

    verdict = await hooks.fire(_masked(payload, run), where(run), tell)
    for message in verdict.messages:
        report(run.event(Noted, text=message))
    run.title = verdict.title or run.title
    if verdict.stop:
        run.ending = run.ending or Ending(Reason.HOOK, verdict.stop)
    elif verdict.failed and payload.event in GATES and payload.event in _ABOUT and not verdict.block:
        return await _shut(run, payload, verdict, report)
    return verdict


def _masked(payload: Payload, run: Run) -> Payload:
    """Return what hooks are told without what must not leave the kernel: some of them are servers elsewhere."""
    told = {field.name: getattr(payload, field.name) for field in dataclasses.fields(payload) if field.init}
    changed = {name: masked for name, value in told.items() if (masked := run.session.mask(value)) != value}
    return dataclasses.replace(payload, **changed) if changed else payload


async def _shut(run: Run, payload: Payload, verdict: Verdict, report: Callable[[Event], None]) -> Verdict:
    """Ask the person whether to go on without the word of the hooks that failed; nobody there: it is held back."""
    why = " ".join(verdict.failed)
    about = _ABOUT[payload.event]
    question = Question(
        f"{run.id}-hook-{run.turn}-{payload.event}", f"{why} Shall it {about} all the same?", (_YES, _NO)
    )
    answer = await put(question, run.agent.approver, run.event, report)
    return verdict if answer == _YES else replace(verdict, block=(f"{why} So nbagent did not {about}.",))


class Firing:
    """One event in a generator: `events()` is what the person sees, in the order in which it happens; then `verdict`."""

    def __init__(self, run: Run, payload: Payload, call_id: str = "") -> None:
        self.verdict = Verdict()
        self.event = payload.event
        self._run, self._payload, self._call_id = run, payload, call_id

    async def events(self) -> AsyncGenerator[Event]:
        """Ask the hooks and yield what they do; raise `Interrupted` where the person interrupted one."""
        if not self._run.agent.hooks.listens(self._payload.event):
            return
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.create_task(fire(self._run, self._payload, queue.put_nowait, self._call_id))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.verdict = task.result()


def told(event: HookEvent, text: str) -> str:
    """Return what a hook says to the model, with who says it."""
    return f"(From a {event} hook, not the person:) {text}"


def tell(run: Run, call_id: str, event: HookEvent, verdict: Verdict) -> None:
    """Keep what hooks say to the model of a call: it is told after the results of the reply."""
    said = [*verdict.block, *verdict.context] if event is not HookEvent.PRE_TOOL_USE else verdict.context
    run.told.setdefault(call_id, []).extend(told(event, text) for text in said)


async def cells(run: Run, call_id: str, tool: str, report: Callable[[Event], None]) -> None:
    """Fire what a call has done to cells, in its order."""
    for deed in run.agent.deeds():
        payload = dataclasses.replace(deed, tool_name=tool, tool_use_id=call_id)
        tell(run, call_id, payload.event, await fire(run, payload, report, call_id))


@asynccontextmanager
async def waiting(run: Run, text: str, kind: str, report: Callable[[Event], None]) -> AsyncGenerator[None]:
    """Fire a notification if what is inside takes longer than `Agent.notify_after` seconds; it holds up nothing."""
    if not run.agent.hooks.listens(HookEvent.NOTIFICATION):
        yield
        return
    begun = asyncio.Event()

    async def notify() -> None:
        try:
            async with asyncio.timeout(run.agent.notify_after):
                await asyncio.Event().wait()
        except TimeoutError:
            begun.set()
            await fire(run, Notification(message=text, title="nbagent", notification_type=kind), report)

    task = asyncio.create_task(notify())
    run.loose.add(task)
    task.add_done_callback(run.loose.discard)
    try:
        yield
    finally:
        if not begun.is_set():
            task.cancel()
