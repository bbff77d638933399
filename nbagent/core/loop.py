"""The loop: think, act, observe, until done. Read `run` first; the rest of the house serves it.

`run` is an async generator: it stands still until its consumer takes the next event, so whoever shows, logs or steps a
run also sets its pace. Close it (`aclosing`) in the task that opened it; closing stops what runs and completes the
transcript. It knows nothing of who consumes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from nbagent.core.closing import closing, nearing
from nbagent.core.dispatch import act
from nbagent.core.endings import Ending, refused
from nbagent.core.errors import ContextFull, Interrupted, NbagentError, Spent
from nbagent.core.events import Event, Noted, QuestionAnswered, QuestionAsked, Reason, ResultsAppended, State
from nbagent.core.lasting import code_ended, outlasting
from nbagent.core.messages import CUT_SHORT, Block, text_block
from nbagent.core.openings import Opening, stopping
from nbagent.core.ports import Question
from nbagent.core.run import Agent, Run, Stop, Turnstile
from nbagent.core.session import Session
from nbagent.core.summing import with_room

_CUT_REPLIES, _CUT_TEXTS = 2, 4
"""So many replies in a row that are cut off at the output limit end a run: in a call, or before any word; in a text."""


async def run(agent: Agent, session: Session, blocks: list[Block], *, prompt: str = "", stop: Stop | None = None,
              run_id: str = "run", above: Run | None = None, changing: Turnstile | None = None) -> AsyncGenerator[Event]:  # fmt: skip
    """Run the agent on what the person asks (`blocks`; `prompt` is its readable part) and yield every event.

    The last event is a `RunEnded`, unless the generator is closed or cancelled before. Raises nothing of its own.
    `above` is the run in whose call this one goes on, if it is a subagent's; `changing` lets its calls that change something
    through (None: that of `above`).
    """
    this = Run(agent, session, stop or Stop(), run_id, above=above)
    this.changing = changing or this.changing
    opening = Opening(this, blocks, prompt)
    async with aclosing(opening.events()) as events:
        async for event in events:
            yield event
    try:
        if not this.ending:
            session.transcript.ask(opening.blocks)
            agent.inbox.told()
        while not this.over(this.limit_reached()):
            this.turn += 1
            for this.state, phase in ((State.THINK, with_room), (State.ACT, act), (State.OBSERVE, observe)):
                async with aclosing(phase(this)) as events:
                    async for event in events:
                        yield event
                if this.state is State.THINK and this.over(_after_reply(this)):
                    for before_end in (outlasting, stopping):
                        async with aclosing(before_end(this)) as events:
                            async for event in events:
                                yield event
                    break
        for phase in (outlasting, closing):
            async with aclosing(phase(this)) as events:
                async for event in events:
                    yield event
    except ContextFull as error:
        this.ending = Ending(Reason.CONTEXT_FULL, str(error))
    except Spent as error:
        this.ending = Ending(Reason.BUDGET, str(error))
    except Interrupted:
        this.ending = Ending(Reason.INTERRUPTED)
    except NbagentError as error:
        this.ending = Ending(Reason.ERROR, str(error))
    finally:
        this.let_go()
        await this.agent.lasting.stop()
        this.session.transcript.answer(this.results)
    for event in code_ended(this):
        yield event
    yield this.ended()


def _after_reply(this: Run) -> Ending | None:
    """Whether a reply ends the run, by its stop reason. None: its calls are run, or the model is asked again."""
    if this.stop.asked:
        return Ending(this.stop.reason or Reason.INTERRUPTED)
    reply, reason = this.reply, this.reply.stop_reason
    this.cut_replies = this.cut_replies + 1 if reason in CUT_SHORT else 0
    match reason:
        case "refusal":
            return Ending(Reason.REFUSAL, refused(reply.stop_details or {}))
        case "model_context_window_exceeded":
            this.window_full = True
            return None if this.agent.compaction is not None else Ending(Reason.CONTEXT_FULL)
        case "max_tokens":
            in_text = bool(reply.text) and not reply.calls
            return Ending(Reason.MAX_TOKENS) if this.cut_replies >= (_CUT_TEXTS if in_text else _CUT_REPLIES) else None
        case "pause_turn":
            return None
        case "end_turn" | "stop_sequence" | "tool_use":
            if reply.calls or (not reply.text and this.calls_made and not this.nudged):
                return None
            return Ending(Reason.END_TURN, _without_words(this))
        case _:
            return Ending(Reason.ERROR, f"The model stopped for a reason that nbagent does not know ({reason!r}).")


def _without_words(this: Run) -> str:
    """What to say of a run whose last reply has no text, "" where it has."""
    if this.reply.text:
        match this.reply.stop_reason:
            case "tool_use":
                return "Done, though the model announced a call and made none."
            case "stop_sequence":
                return "Done: the model's reply ended at a stop sequence, which this server sets."
            case _:
                return ""
    if not this.calls_made:
        return "The model answered with nothing. Ask again, or try another model with -m."
    return f"Done, without a closing word. What ran: {this.done_so_far()}"


async def observe(this: Run) -> AsyncGenerator[Event]:
    """Append one message with a result for every call, and look whether the run goes in circles."""
    calls = this.reply.calls
    for event in code_ended(this):
        yield event
    hooked, this.told = this.told, {}
    if not calls:
        said, ask = _without_calls(this)
        yield this.event(Noted, text=said, level="info")
        if ask:
            this.session.transcript.ask([text_block(ask)])
        return
    words = [text for call in calls for text in hooked.get(str(call["id"]), ())]
    if this.ending is None and not this.stop.asked:
        seen = [(str(c["name"]), c["input"], *this.outcomes.get(str(c["id"]), ((), ()))) for c in calls]
        count = this.guard.add(seen)
        if count > 1:
            async with aclosing(_in_circles(this, count, words)) as events:
                async for event in events:
                    yield event
    arrived = this.agent.inbox.take()
    this.session.transcript.answer(this.results, [*words, *nearing(this), *this.agent.lasting.news(), *arrived])
    this.agent.inbox.told()
    this.results = {}
    if arrived:
        yield this.event(Noted, text=_ARRIVED, level="info")
    yield this.event(ResultsAppended, call_ids=tuple(str(c["id"]) for c in calls))


def _without_calls(this: Run) -> tuple[str, str]:
    """Return what the person and what the model is told of a reply without calls that is not the last one."""
    match this.reply.stop_reason:
        case "pause_turn":
            return "The server paused a long reply; the model goes on with it.", ""
        case "model_context_window_exceeded":
            return "The reply ended where the model's context window was full.", ""
        case "max_tokens" if this.reply.text:
            this.cut_text = this.text
            return "The reply reached its output limit; the model goes on where it stopped.", _CUT_TEXT
        case "max_tokens":
            return "The reply reached its output limit before any words; the model is asked for less.", _CUT_THOUGHT
        case _:
            this.nudged = True
            return "The model stopped without a word; it was asked once for an answer.", _NUDGE


_ARRIVED = "What an agent in the background found was told to the model."
_CUT_TEXT = (
    "(From the runtime, not the person:) Your reply was cut off at the output limit. Go on exactly where it stopped, and "
    "repeat nothing."
)
_CUT_THOUGHT = (
    "(From the runtime, not the person:) Your reply reached the output limit before it said anything. Answer now in few "
    "words, or take one small step."
)
_NUDGE = "(From the runtime, not the person:) Your last reply was empty. Answer the person now, in a few sentences."
_SAME = (
    "(From the runtime, not the person:) This was the same call with the same result as before; you have that result. "
    "Take the next step with another call, for example write the code for it, or answer with what you know."
)
_GO_ON, _STOP = "Go on", "End the run"
_LAST_WARNING = 3


async def _in_circles(this: Run, count: int, words: list[str]) -> AsyncGenerator[Event]:
    """Ask the person what to do with a model that repeats itself; where nobody is there warn it once, then stop."""
    if not this.agent.approver.present:
        words.append(_SAME)
        yield this.event(Noted, text="The model made the same call with the same result again; it was told so.")
        if count >= _LAST_WARNING:
            this.ending = Ending(Reason.REPEATED)
        return
    question = Question(
        id=f"{this.id}-repeat-{this.turn}",
        text="The model made the same call with the same result again. Let it go on, stop it, or say what to do instead.",
        choices=(_GO_ON, _STOP),
    )
    yield this.event(QuestionAsked, question_id=question.id, text=question.text, choices=question.choices)
    answer = await this.agent.approver.question(question)
    yield this.event(QuestionAnswered, question_id=question.id, text=answer)
    if answer in {_STOP, ""}:
        this.ending = Ending(Reason.REPEATED)
        return
    this.guard.forget()
    words.append(_SAME if answer == _GO_ON else f"The person says: {answer}")
