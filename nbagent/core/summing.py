"""Sums up a conversation that gets too long, and has it go on in a session of its own that begins with the summary.

Only between two turns, when every call has its result; so no call is ever parted from it. The transcript that was is
never changed. Hooks may hold it back. Must not know what the model has to be told anew (`Compaction.standing`). Read
`with_room`, then `sum_up`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from nbagent.core import sizes
from nbagent.core.errors import ContextFull, ModelError
from nbagent.core.events import Compacted, Event, Noted, RequestSent
from nbagent.core.hooking import Firing, told
from nbagent.core.messages import Block, Message, Usage, text_block
from nbagent.core.payloads import HookEvent, PostCompact, PreCompact, SessionStart
from nbagent.core.ports import Request
from nbagent.core.run import Run
from nbagent.core.session import Session
from nbagent.core.summary import DIGEST_SYSTEM, SUM_UP, Compaction, asked_for, digest, going_on
from nbagent.core.think import think, whole_reply

_DIGESTS = (200_000, 60_000, 15_000)
_CHARS = 3.0
_OFTEN = 3
_NEW = "Start a new session with %%agent --new."


async def with_room(run: Run) -> AsyncGenerator[Event]:
    """Think, and sum the conversation up before it fills the model's window, or where it turns out that it does.

    Raises `ContextFull` with a sentence for the person where that did not help, and what `think` raises.
    """
    compaction = run.agent.compaction
    if compaction is None:
        why = ""
    elif run.window_full:
        why = "The conversation fills the model's context window."
    else:
        why = _nearly_full(run, compaction)
    if why:
        async with aclosing(_make_room(run, why, must=run.window_full)) as events:
            async for event in events:
                yield event
        if run.ending or run.stop.asked:
            return
    try:
        async with aclosing(think(run)) as events:
            async for event in events:
                yield event
    except ContextFull as error:
        if compaction is None:
            raise
        full = str(error)
    else:
        return
    async with aclosing(_make_room(run, full, must=True)) as events:
        async for event in events:
            yield event
    if run.ending or run.stop.asked:
        return
    async with aclosing(think(run)) as events:
        async for event in events:
            yield event


def _nearly_full(run: Run, compaction: Compaction) -> str:
    """Return the sentence that says how full the window is, "" where there is room, or it was tried in vain."""
    window = compaction.window(run.agent.model)
    if not window or run.room_refused or len(run.session.transcript) < 2:
        return ""
    share = run.session.size() / window
    return f"The conversation fills {share:.0%} of the model's context window." if share >= compaction.at else ""


async def _make_room(run: Run, why: str, *, must: bool) -> AsyncGenerator[Event]:
    """Sum up; where it can't be done the run goes on as long as there is room, and else raises `ContextFull`."""
    often = run.summed_at[-_OFTEN:]
    if len(often) == _OFTEN and run.turn - often[0] <= _OFTEN:
        raise ContextFull(f"The conversation was full again each time it was summed up. {_NEW}")
    problem = ""
    yield run.event(Noted, text=f"{why} It is summed up first.", level="info")
    before = run.session
    try:
        async with aclosing(sum_up(run, "auto")) as events:
            async for event in events:
                yield event
    except ModelError as error:
        problem = f"It could not be summed up: {error}"
    if run.session is not before:
        run.summed_at.append(run.turn)
        run.window_full = False
        return
    run.room_refused = True
    if must and run.ending is None and not run.stop.asked:
        raise ContextFull(" ".join(filter(None, (why, problem or "A hook kept it from being summed up.", _NEW))))
    if problem:
        yield run.event(Noted, text=f"{problem} The run goes on as long as there is room.")


async def sum_up(run: Run, trigger: str, instructions: str = "") -> AsyncGenerator[Event]:
    """Sum up the run's conversation and have it go on in a new session; `trigger` is manual or auto.

    Raises `ModelError` where no summary could be had; the session is then what it was. Where a hook holds it back nothing
    happens but that it is said.
    """
    firing = Firing(run, PreCompact(trigger=trigger, custom_instructions=instructions))
    async with aclosing(firing.events()) as events:
        async for event in events:
            yield event
    if firing.verdict.block:
        yield run.event(Noted, text=f"A hook kept the conversation from being summed up: {firing.verdict.why_blocked}")
    if firing.verdict.block or run.ending:
        return
    wishes = "\n".join(filter(None, (instructions, *firing.verdict.context)))
    old, size = run.session, run.session.size()
    asking = _Asking(run, wishes)
    async with aclosing(asking.events()) as events:
        async for event in events:
            yield event
    if not asking.summary:
        return  # stopped meanwhile
    async with aclosing(_go_on(run, asking, trigger)) as events:
        async for event in events:
            yield event
    yield run.event(
        Compacted, trigger=trigger, before=size, after=run.session.size(), summary=asking.summary, session_id=run.session.id,
        compacted_from=old.id, usage=asking.usage, cost=asking.cost,
    )  # fmt: skip
    firing = Firing(run, PostCompact(trigger=trigger, compact_summary=asking.summary))
    async with aclosing(firing.events()) as events:
        async for event in events:
            yield event


class _Asking:
    """Asks for a summary, in up to three ways; afterwards `summary` is its text, "" after a stop."""

    def __init__(self, run: Run, wishes: str) -> None:
        self.summary = ""
        self.block: Block | None = None
        self.usage = Usage()
        self.cost: float | None = 0.0
        self._run, self._wishes = run, wishes

    async def events(self) -> AsyncGenerator[Event]:
        """Have the API sum up where it can; else ask for a summary; else, where that is too long, of a cut text of it."""
        run, session = self._run, self._run.session
        ask = f"{SUM_UP}\nThe person adds, for this summary: {self._wishes}" if self._wishes else SUM_UP
        messages: list[Message] = list(session.messages())
        wanted: Message = {"role": "user", "content": [text_block(ask)]}
        ways = [Request(session.system, session.tools, [*messages, wanted])]
        if getattr(run.agent.model, "compacts", False):
            given = ask if self._wishes else ""
            ways.insert(0, Request(session.system, session.tools, messages, compaction=given))
        failed: ModelError | None = None
        for request in (*ways, *self._digests(messages, ask)):
            failed = None
            yield run.event(RequestSent, model=run.agent.model.name, new=(wanted,), prefix=session.transcript.prefix)
            try:
                async with aclosing(whole_reply(run, request, shown=False)) as events:
                    async for event in events:
                        yield event
                if not run.reply.complete:
                    return
                self._take()
            except ContextFull as error:
                failed = error
            except ModelError as error:
                if request.compaction is None:
                    raise
                failed = error
            if self.summary:
                return
            if failed is None and request.compaction is None:
                raise ModelError("The model gave no summary.")
        raise failed or ModelError("The model gave no summary.")

    def _digests(self, messages: Sequence[Message], ask: str) -> Sequence[Request]:
        """Requests with the conversation as a text that gets shorter each time; none for what is as short already."""
        compaction = self._run.agent.compaction or Compaction()
        window = compaction.window(self._run.agent.model)
        whole = round(_CHARS * sum(sizes.of_message(message) for message in messages))
        rooms = [room for room in _DIGESTS if not window or room <= window * _CHARS / 2] or [_DIGESTS[-1] // 2]
        texts = [digest(messages, min(room, whole // 2)) for room in rooms]
        return [
            Request(
                DIGEST_SYSTEM, (), [{"role": "user", "content": [text_block(f"{text}\n\n{ask}")]}], max_tokens=4_000
            )
            for text in dict.fromkeys(texts)
        ]

    def _take(self) -> None:
        reply, usage = self._run.reply, Usage.of(self._run.reply.usage)
        cost = self._run.spend(usage)
        self.usage += usage
        self.cost = None if self.cost is None or cost is None else self.cost + cost
        found = next((b for b in reply.content if b.get("type") == "compaction" and b.get("content")), None)
        self.block = found
        self.summary = str(found["content"]) if found is not None else reply.text.strip()
        if reply.stop_reason == "refusal":
            self.summary, self.block = "", None


async def _go_on(run: Run, asked: _Asking, trigger: str) -> AsyncGenerator[Event]:
    """Begin the session that goes on, with the summary; the old one stays the run's until the new one is whole."""
    compaction, old = run.agent.compaction or Compaction(), run.session
    heir = old.successor(*compaction.begins())
    compaction.moved(heir)
    try:
        standing = await compaction.standing(old)
        run.session = heir
        if run.above is None:
            firing = Firing(run, SessionStart(source="compact", model=run.agent.model.name))
            async with aclosing(firing.events()) as events:
                async for event in events:
                    yield event
            said = (*firing.verdict.context, *firing.verdict.opening)
            standing = [*standing, *(text_block(told(HookEvent.SESSION_START, text)) for text in said)]
        _begin(run, old, heir, asked, standing, in_run=trigger == "auto")
    except BaseException:
        run.session = old
        compaction.moved(old)
        raise


def _begin(run: Run, old: Session, heir: Session, asked: _Asking, standing: Sequence[Block], *, in_run: bool) -> None:
    window = (run.agent.compaction or Compaction()).window(run.agent.model)
    room = {} if not window else {"room": min(60_000, round(window * _CHARS / 4))}
    words = asked_for(old.transcript, whole_first=run.above is not None)
    if asked.block is not None:
        heir.transcript.reply([asked.block])
    blocks = going_on(asked.summary, words, standing, by_api=asked.block is not None, in_run=in_run, **room)
    heir.transcript.ask(blocks)
    old.hand_on(heir)
