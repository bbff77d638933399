"""What hooks have to say before a run's first turn and before its end.

A prompt that they hold back never reaches the model, the transcript or the log; an end that they hold back becomes one
more turn. In a subagent's run the events are its own: it has no prompt of the person's. Read `Opening` and `stopping`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from nbagent.core.endings import Ending
from nbagent.core.errors import Interrupted
from nbagent.core.events import Event, Noted, Reason
from nbagent.core.hooking import Firing, told, where
from nbagent.core.hooks import Verdict
from nbagent.core.messages import Block, text_block
from nbagent.core.payloads import HookEvent, Payload, SessionStart, Stop, SubagentStart, SubagentStop, UserPromptSubmit
from nbagent.core.run import Run

STOPS_BLOCKED = 8
"""How often in a row hooks may keep a run from its end."""

HELD_BACK = "(held back by a hook)"


class Opening:
    """The beginning of a run: afterwards `blocks` are what the model is told, unless the run has ended already."""

    def __init__(self, run: Run, blocks: list[Block], prompt: str) -> None:
        self.blocks = blocks
        self._run, self._prompt = run, prompt

    async def events(self) -> AsyncGenerator[Event]:
        """Ask the hooks, then yield the run's first event: it has the prompt only if they let it pass."""
        run, verdict = self._run, Verdict()
        try:
            for payload in self._payloads():
                firing = Firing(run, payload)
                async with aclosing(firing.events()) as events:
                    async for event in events:
                        yield event
                verdict = firing.verdict
                self._take(payload.event, verdict)
                if run.ending:
                    break
        except Interrupted:
            run.ending = Ending(Reason.INTERRUPTED)
        yield run.started(HELD_BACK if verdict.block else self._prompt)

    def _payloads(self) -> tuple[Payload, ...]:
        run, place = self._run, where(self._run)
        if place.agent_id:
            return (SubagentStart(agent_id=place.agent_id, agent_type=place.agent_type),)
        submitted = UserPromptSubmit(prompt=self._prompt)
        if not run.agent.begins:
            return (submitted,)
        return (SessionStart(source=run.agent.begins, model=run.agent.model.name), submitted)

    def _take(self, event: HookEvent, verdict: Verdict) -> None:
        if verdict.block:
            self._run.ending = Ending(Reason.HOOK, f"A hook held back the prompt: {verdict.why_blocked}")
        said = [text_block(told(event, text)) for text in verdict.context]
        self.blocks = [*said, *(text_block(text) for text in verdict.opening), *self.blocks]


async def stopping(run: Run) -> AsyncGenerator[Event]:
    """Ask hooks whether a run that is done may end; where not, take its ending away and tell the model why."""
    if run.ending is None or run.ending.reason is not Reason.END_TURN:
        return
    ending, run.ending = run.ending, None  # a hook may end the run with words of its own
    firing = Firing(run, _stop(run))
    async with aclosing(firing.events()) as events:
        async for event in events:
            yield event
    verdict = firing.verdict
    why = [*verdict.block, *verdict.context]
    if run.ending or not why:
        run.ending = run.ending or ending
        return
    if run.stops_blocked >= STOPS_BLOCKED:
        yield run.event(Noted, text=f"Hooks kept this run going {STOPS_BLOCKED} times; now it ends.")
        run.ending = ending
        return
    run.stops_blocked += 1
    run.session.transcript.ask([text_block(told(firing.event, text)) for text in why])


def _stop(run: Run) -> Stop | SubagentStop:
    place, again = where(run), run.stops_blocked > 0
    if not place.agent_id:
        return Stop(stop_hook_active=again, last_assistant_message=run.text)
    return SubagentStop(
        agent_id=place.agent_id,
        agent_type=place.agent_type,
        agent_transcript_path=place.transcript_path,
        stop_hook_active=again,
        last_assistant_message=run.text,
    )
