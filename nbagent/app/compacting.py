"""A notebook's conversation that gets too long: where it goes on, what is told anew, and `%agent compact`.

How one is summed up is told in core/summing.py. Read `compaction_of`, then `compact`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from nbagent.app.conversation import Conversation
from nbagent.app.model import RunModel, run_model
from nbagent.app.underway import LiveRun
from nbagent.app.undo import new_run_id
from nbagent.config import Settings
from nbagent.core.errors import ConfigError, ModelError
from nbagent.core.events import Compacted, Event, Noted
from nbagent.core.hooks import NoHooks
from nbagent.core.messages import Block, text_block
from nbagent.core.payloads import Where
from nbagent.core.ports import Answered, Approval, Model, Question
from nbagent.core.run import Agent, Run, Stop
from nbagent.core.session import Session
from nbagent.core.summary import Compaction
from nbagent.core.summing import sum_up
from nbagent.core.tools import Toolset
from nbagent.extend.render import attached_again
from nbagent.extend.sessions import new_session_id
from nbagent.models.catalog import facts
from nbagent.tools import todo
from nbagent.view.words import summed_up

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

NOTHING = "There is no conversation to sum up yet."
RUNNING = "An agent is running. Sum the conversation up when it is done; a run does it by itself where it must."

Opening = Callable[[], Awaitable[Sequence[Block]]]


def window_of(settings: Settings, model: Model) -> int | None:
    """Return the tokens of a model's context window: the person's word, else what is known of it; None where nothing is."""
    known = getattr(model, "facts", None) or facts(model.name)
    return settings.context_window or known.context


def compaction_of(
    extension: Extension, conversation: Conversation, settings: Settings, opening: Opening | None
) -> Compaction:
    """Return how this conversation is summed up; `opening` makes what is told anew (None: the next prompt tells it)."""

    async def standing(ended: Session) -> Sequence[Block]:
        told = [] if opening is None else [block for block in await opening() if block.get("text") != "(empty)"]
        skills, todos = attached_again(conversation.called), todo.reminder(todo.of_messages(ended.transcript))
        more = [f"<context>\n{skills}\n</context>" if skills else "", todos]
        return [*told, *(text_block(text) for text in more if text)]

    def moved(session: Session) -> None:
        extension.hooks.moved(conversation.session.id, session.id)
        extension.holds.take(session.id)
        extension.underway.moved(conversation.session.id, session.id)
        conversation.goes_on_in(session)

    return Compaction(
        at=min(settings.compact_at, 1.0),
        window=lambda model: window_of(settings, model),
        standing=standing,
        moved=moved,
        begins=lambda: (new_session_id(), {**conversation.about(), "kernel": extension.kernel_id}),
    )


class _Nobody:
    """Outside a run nobody is asked: what a hook would have asked about is held back."""

    present = False

    async def ask(self, approval: Approval) -> Answered:  # noqa: ARG002  (the port's shape)
        """Deny."""
        return Answered(approved=False, by="policy")

    async def question(self, question: Question) -> str:  # noqa: ARG002  (the port's shape)
        """Answer nothing."""
        return ""


async def compact(extension: Extension, wishes: str) -> str:
    """Carry out `%agent compact [WORDS]`: sum up the last conversation now; WORDS say what the summary should keep.

    Raises `ConfigError` with a sentence where that can't be done; the conversation is then as it was.
    """
    if extension.stop is not None:
        raise ConfigError(RUNNING)
    conversation = extension.last
    if conversation is None or not conversation.session.transcript:
        return NOTHING
    if (using := extension.underway.in_session(conversation.session.id)) is not None:
        raise ConfigError(f"“{using.who}” goes on in this conversation. {using.how_to_end}")
    run = _run(extension, conversation)
    live = extension.begin(LiveRun(new_run_id(), "summing up", "", "", run.stop, session=conversation.session.id))
    events: list[Event] = []
    try:
        async with aclosing(sum_up(run, "manual", wishes.strip())) as stream:
            async for event in stream:
                run.session.newest.log(event)
                events.append(event)
    except ModelError as error:
        raise ConfigError(f"The conversation could not be summed up: {error}") from None
    finally:
        extension.underway.remove(live)
        if isinstance(run.agent.model, RunModel):
            await run.agent.model.aclose()
    notes = [event.text for event in events if isinstance(event, Noted)]
    done = [f"{summed_up(event)}\n\n{event.summary}" for event in events if isinstance(event, Compacted)]
    return "\n".join([*done, *notes])


def _run(extension: Extension, conversation: Conversation) -> Run:
    settings, session = extension.settings(), conversation.session
    table = extension.hooks.table(session.id)
    agent = Agent(
        model=run_model(settings, extension.metered),
        tools=Toolset(()),
        gate=settings.policy(conversation.kept),
        approver=_Nobody(),
        limits=settings.limits(),
        hooks=table or NoHooks(),
        where=replace(Where(), transcript_path=str(conversation.store.path), cwd=str(extension.folder)),
        compaction=compaction_of(extension, conversation, settings, None),
    )
    return Run(agent, session, Stop(), "compact")
