"""What a model is told of the limits of its run: when they come near, and at the last turn, where it says what is left.

A run that reached its limit of turns asks once more, for words only: what is done and what is left. None of the calls of
that reply is run. Read `closing`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from nbagent.core.errors import ModelError
from nbagent.core.events import Event, Noted, Reason
from nbagent.core.messages import text_block
from nbagent.core.run import Run
from nbagent.core.think import think

TURNS_LEFT = 3
"""So many turns before the limit the model is told of it."""

_FEW = 10
_SPENT = 0.8
_SUM_UP = (
    "(From the runtime, not the person:) The limit of turns is reached. Call no tool any more. Say now, in a few short "
    "paragraphs: what you found or did, with the facts that matter; and what is left of the task."
)
_NEAR = (
    "(From the runtime, not the person:) {} turns are left of {}. Do what matters most first; then answer, and say what "
    "is left."
)
_NEARLY_SPENT = (
    "(From the runtime, not the person:) More than {:.0%} of the budget ({}) is used. Do what matters most first; then "
    "answer, and say what is left."
)


def nearing(run: Run) -> list[str]:
    """Return what to tell the model now of the limits that come near: each once."""
    limits, told = run.agent.limits, list[str]()
    if limits.max_turns >= _FEW and limits.max_turns - run.turn == TURNS_LEFT:
        told.append(_NEAR.format(TURNS_LEFT, limits.max_turns))
    if not run.told_of_budget and limits.share_spent(run.usage, run.cost) >= _SPENT:
        run.told_of_budget = True
        told.append(_NEARLY_SPENT.format(_SPENT, limits.describe()))
    return told


async def closing(run: Run) -> AsyncGenerator[Event]:
    """At the limit of turns, ask the model for what is done and what is left; without an answer the end is as it was."""
    ending = run.ending
    if ending is None:
        return
    if ending.reason is Reason.MAX_TURNS and not run.spent_up() and not run.stop.asked:
        yield run.event(
            Noted, text="The limit of turns is reached; the model is asked what is done and left.", level="info"
        )
        run.session.transcript.ask([text_block(_SUM_UP)])
        try:
            async with aclosing(think(run)) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            yield run.event(Noted, text=f"The model gave no summary: {error}")
    if ending.reason in {Reason.MAX_TURNS, Reason.BUDGET} and not run.text.strip() and run.calls_made:
        run.text = f"Not finished. What ran: {run.done_so_far()}"
