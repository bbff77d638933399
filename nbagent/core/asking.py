"""Asks a person about calls, several changes of one reply in one card, and runs those that they approve.

Each call keeps an approval and an answer of its own: one may be left out, and its text may be changed before it is
approved; then it is decided anew, and the model is told what really ran. Read `ask`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace

from nbagent.core.calls import Ready, execute, settle
from nbagent.core.consulting import Decide, Hooking
from nbagent.core.endings import Ending
from nbagent.core.errors import ToolError
from nbagent.core.events import ApprovalAnswered, ApprovalAsked, CallEnded, CallStarted, Event, Reason, Status
from nbagent.core.hooking import waiting
from nbagent.core.hooks import Verdict
from nbagent.core.messages import Block
from nbagent.core.policy import Decision
from nbagent.core.ports import Answered, Approval
from nbagent.core.run import Run
from nbagent.core.tools import Kind

_WITHOUT_RUNNING = frozenset({Kind.READ, Kind.EDIT_CELL, Kind.WRITE_FILE})
_AFTER_FAILURE = (
    "Not run: an earlier call that was approved in the same card did not succeed. Look at its result, then send again "
    "what is still right."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that a person must be asked about."""

    ready: Ready
    decision: Decision
    block: Block

    @property
    def target(self) -> str | None:
        """What the call changes, "" for something new; None: it is asked about alone."""
        tool = self.ready.tool
        return None if tool.target is None else tool.target(self.ready.given)

    @property
    def runs(self) -> bool:
        """Whether the call would run code."""
        return self.decision.kind not in _WITHOUT_RUNNING


async def ask(run: Run, asked: Sequence[Asked], decide: Decide) -> AsyncGenerator[Event]:
    """Ask about `asked` in one card and run what is approved, in order.

    Once one of them fails, the others that would run code do not run: as Run All stops at the first error.
    """
    group = f"{run.id}-{asked[0].ready.id}" if len(asked) > 1 else ""
    approvals = [replace(_approval(run, item), group=group, of=len(asked)) for item in asked]
    for approval in approvals:
        yield run.event(ApprovalAsked, call_id=approval.call_id, approval=approval.to_json())
    late: list[Event] = []
    async with waiting(run, f"nbagent needs your permission: {approvals[0].title}", "permission_prompt", late.append):
        given = await _answers(run, approvals)
    for event in late:
        yield event
    answers = [(item, _kept(item, answer)) for item, answer in zip(asked, given, strict=True)]
    for item, answered in answers:
        if answered.approved and answered.rule:
            run.agent.gate.keep(answered.rule)
        yield run.event(
            ApprovalAnswered,
            call_id=item.ready.id,
            approved=answered.approved, words=answered.words, rule=answered.rule, by=answered.by,
            edited=_edited(item, answered) is not None,
        )  # fmt: skip
    failed = ran_code = False
    for item, answered in answers:
        if run.stop.asked or (run.ending and answered.approved):
            return
        async with aclosing(_one(run, item, answered, decide, failed=failed, ran_code=ran_code)) as events:
            async for event in events:
                failed = failed or (
                    isinstance(event, CallEnded) and answered.approved and event.status is not Status.OK
                )
                ran_code = ran_code or (isinstance(event, CallStarted) and item.runs)
                yield event


async def _answers(run: Run, approvals: Sequence[Approval]) -> list[Answered]:
    """Put all questions side by side; where one ends with an error (an interrupt), the others are not put or waited for."""
    tasks: list[asyncio.Task[Answered]] = []
    try:
        for approval in approvals:
            tasks.append(asyncio.ensure_future(run.agent.approver.ask(approval)))
            await asyncio.sleep(0)  # who types has answered after this: the next question is not put before that
            if tasks[-1].done():
                tasks[-1].result()
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _kept(item: Asked, answered: Answered) -> Answered:
    """Take a rule out of the answer where the text was changed: it was offered for what was shown."""
    return answered if _edited(item, answered) is None else replace(answered, rule="")


async def _one(
    run: Run, item: Asked, answered: Answered, decide: Decide, *, failed: bool, ran_code: bool
) -> AsyncGenerator[Event]:
    """Do with one call what was answered about it; `failed` and `ran_code` tell of those of the card before it."""
    if not answered.approved:
        yield _denied(run, item.block, answered)
        return
    if (edited := _edited(item, answered)) is not None:
        changed = _amended(item, edited)
        if isinstance(changed, Ready):  # the person's text is a new input: hooks have not seen it
            hooks = Hooking(run, changed, final=True)
            async with aclosing(hooks.events(decide)) as events:
                async for event in events:
                    yield event
            if run.stop.asked or run.ending:
                return
            changed = _decided_anew(item, hooks)
        if isinstance(changed, str):
            yield settle(run, item.block, Status.DENIED, changed)
            return
        item = changed
    if failed and item.runs:
        yield settle(run, item.block, Status.SKIPPED, _AFTER_FAILURE)
        return
    async with AsyncExitStack() as held:
        waited = not item.ready.tool.beside and await held.enter_async_context(run.changing.through(run))
        if run.stop.asked or run.ending:
            return
        if (ran_code or waited) and edited is None and (why := await _forbidden(run, item, decide)):
            yield settle(run, item.block, Status.DENIED, why)
            return
        async with aclosing(execute(run, [item.ready])) as events:
            async for event in events:
                yield event


async def _forbidden(run: Run, item: Asked, decide: Decide) -> str:
    """Decide again about an approved call, after code has run; return why it may not run now, "" where it may.

    What a person approved is not asked about twice; but nothing else may run than what they were shown.
    """
    decided = await decide(run, item.ready)
    if isinstance(decided, str):
        return decided
    ready, decision = decided
    if decision.action == "deny":
        return f"After what ran before it, this is not allowed any more ({decision.rule}), so it did not run."
    now, shown = ready.preview, item.ready.preview
    if (now.kind, now.body, now.old) != (shown.kind, shown.body, shown.old):
        return "What this is about is not as it was shown to the person any more, so it did not run. Look, then send it again."
    return ""


def _edited(item: Asked, answered: Answered) -> str | None:
    """The text that the person put in place of the one they were shown, None where they left it."""
    same = answered.edited is None or answered.edited == item.ready.preview.body
    return None if same or not answered.approved or item.ready.tool.amend is None else answered.edited


def _amended(item: Asked, edited: str) -> Ready | str:
    """Return the call with the person's text; a sentence for the model where it may not run so."""
    ready = item.ready
    assert ready.tool.amend is not None
    try:
        given = ready.tool.validate(ready.tool.amend(ready.given, edited))
    except ToolError as error:
        return f"The person changed the text before approving, and it can't run so: {error}"
    return replace(ready, given=given, shown={**ready.shown, **_changed(ready.given, given)}, note="",
                   verdict=Verdict(), answered=Verdict())  # fmt: skip


def _decided_anew(item: Asked, hooks: Hooking) -> Asked | str:
    """Return the call with the person's text as it was decided; a sentence for the model where it may not run so."""
    if isinstance(hooks.decided, str):
        return hooks.decided
    ready, decision = hooks.decided
    if decision.action == "deny":
        return f"The person changed the text before approving; so it is not allowed ({decision.rule}) and did not run."
    if hooks.rewritten:
        return (
            "The person changed the text before approving, and then a hook changed it again, so it did not run. Send the "
            f"call again as the hook wants it, and they are asked: {hooks.rewritten}"
        )
    note = f"The person changed the text before they approved. This is what was used:\n{ready.preview.body}"
    return Asked(replace(ready, note=note), decision, item.block)


def _changed(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in after.items() if before.get(name) != value}


def _approval(run: Run, item: Asked) -> Approval:
    ready = item.ready
    return Approval(
        call_id=ready.id,
        tool=ready.tool.name,
        title=ready.title,
        input=ready.shown,
        preview=ready.preview,
        why=item.decision.rule,
        offers=tuple(map(run.session.mask, run.agent.gate.offers(ready.tool, ready.given, item.decision.kind))),
        notebook=run.agent.notebook(),
        editable=ready.tool.amend is not None and ready.preview.kind != "none",
        agent=run.agent.name,
    )


def _denied(run: Run, block: Block, answered: Answered) -> Event:
    if answered.words and answered.by != "person":  # by the policy, or because the run was closed
        text = f"It did not run. {answered.words}"
    elif answered.words:
        text = f"Denied by the person, so it did not run. They say: {answered.words}"
    else:
        text = "Denied by the person, so it did not run."
        sentence = (
            "" if run.agent.approver.present else f"Stopped: {block['name']} needs an approval and nobody can give it."
        )
        run.ending = Ending(Reason.DENIED, sentence)
    return settle(run, block, Status.DENIED, text)
