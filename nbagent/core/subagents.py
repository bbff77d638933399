"""Runs a subagent inside a call: the same loop, with a session, a model and tools of its own, behind its parent's gate.

What it spends counts in the runs above it; a stop of theirs stops it; what a person approves for it they approve for the
session. Must not know where specs, tools or files come from (`agents.Child` has them). Read `spawn`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nbagent.core.agents import Child
from nbagent.core.drive import drive
from nbagent.core.endings import Ending
from nbagent.core.errors import Interrupted
from nbagent.core.events import AgentReported, Event, Reason, RunEnded
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.narrowing import Narrowed
from nbagent.core.policy import Gate
from nbagent.core.run import Agent, Run, Stop, Turnstile
from nbagent.core.summary import Compaction

_ALONE = Compaction()
_STOPPED = frozenset({Reason.INTERRUPTED, Reason.TIMEOUT, Reason.CELL_GONE})


async def spawn(parent: Run, call_id: str, child: Child, report: Callable[[Event], None]) -> RunEnded:
    """Run `child` for the call `call_id` of `parent` and return how it ended; what it reports goes to `report`, wrapped.

    Raises `Interrupted`, with what it had done, where it was stopped: whether the run above goes on is decided there. A
    bare Deny ends the run above, too.
    """
    stop, ended = parent.stop.below(), None
    agent = _agent(parent, child)
    parent.session.transcript.call_ids |= child.session.transcript.call_ids
    child.session.transcript.call_ids = parent.session.transcript.call_ids  # no two calls of one view have one id

    def tell(event: Event) -> None:
        report(
            parent.event(
                AgentReported, call_id=call_id, agent_id=child.id, agent=child.spec.name, title=child.title, event=event
            )
        )

    try:
        async with parent.changing.lent(parent):
            events = run(
                agent, child.session, list(child.blocks), prompt=child.prompt, stop=stop, run_id=child.id, above=parent
            )
            ended = await drive(events, tell, agent=agent, session=child.session, stop=stop)
    finally:
        parent.stop.leave(stop)
    if ended.reason in _STOPPED:
        raise Interrupted(_so_far(ended))
    if ended.reason is Reason.DENIED:
        parent.ending = parent.ending or Ending(Reason.DENIED, ended.sentence)
        parent.stop.ask_below(Reason.DENIED)
    return ended


async def beside(
    parent: Run, child: Child, *, gate: Gate, stop: Stop, tell: Callable[[Event], None], wrap: Callable[[Agent], Agent]
) -> RunEnded:
    """Run `child` beside `parent`, to the end of its own; what it reports goes to `tell`. It may end after `parent` has.

    `gate` is that of `parent` as it is now; `stop` the child's own: a stop of `parent` is none of it. What it spends counts
    in `parent` all the same, and a spent budget ends it. `wrap` puts in what it has for itself.
    """
    agent = wrap(replace(_agent(parent, child), gate=Narrowed(gate, child.spec)))
    child.session.transcript.call_ids = parent.session.transcript.call_ids
    events = run(
        agent, child.session, list(child.blocks), prompt=child.prompt, stop=stop, run_id=child.id,
        above=parent, changing=Turnstile(),
    )  # fmt: skip
    return await drive(events, tell, agent=agent, session=child.session, stop=stop)


def _agent(parent: Run, child: Child) -> Agent:
    above = parent.agent
    where = replace(above.where, agent_id=child.id, agent_type=child.spec.name, transcript_path=child.transcript)
    return Agent(
        model=child.model,
        tools=child.tools,
        gate=Narrowed(above.gate, child.spec),
        approver=above.approver,
        limits=Limits(max_turns=child.max_turns, tries=above.limits.tries, longest_wait=above.limits.longest_wait),
        notebook=above.notebook,
        hooks=above.hooks if child.hooks is None else child.hooks,
        where=where,
        deeds=above.deeds,
        notify_after=above.notify_after,
        spawn=above.spawn,
        compaction=above.compaction
        and replace(above.compaction, standing=_ALONE.standing, moved=_ALONE.moved, begins=_ALONE.begins),
        name=f"{child.spec.name} ({child.title})" if child.title else child.spec.name,
    )


def _so_far(ended: RunEnded) -> str:
    return f"{ended.sentence} Its last words: {ended.text}" if ended.text.strip() else ended.sentence
