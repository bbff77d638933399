"""Every stop reason of the API and every ending of ours, made to happen on the real loop, and how a window fills.

Nothing here says what an ending means: the scripts make it happen, and what is shown is what the run's events said
(`nbagent.core.endings`). Must not know of a screen. Read `ended`, then `of_the_api` and `of_ours`.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from textwrap import indent
from typing import Any

from nbagent.core.drive import drive
from nbagent.core.errors import Rejected
from nbagent.core.events import CallEnded, Event, Noted, Reason, RetryScheduled, RunEnded
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import Message, Usage, text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.ports import Answered
from nbagent.core.run import Agent, Run, Stop
from nbagent.core.session import NoStore, Session
from nbagent.core.summary import SUM_UP, Compaction
from nbagent.core.tools import Call, Kind, Tool, Toolset, tool
from nbagent.models.scripted import Scripted, ScriptedModel, Turn, Value, call, last_results
from nbagent.teach.bench import Nobody, Says


@tool
async def look(_: Call, what: str) -> str:
    """Look at something; it looks the same each time.

    Args:
        what: What to look at.
    """
    return f"This is {what}."


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that was made to end: the last event, and all of them."""

    end: RunEnded
    events: tuple[Event, ...]

    @property
    def noted(self) -> tuple[str, ...]:
        """What happened on the way that is not the usual: what the loop noted, retries, calls that did not run to their end."""
        return tuple(dict.fromkeys(text for event in self.events if (text := _unusual(event))))

    def __repr__(self) -> str:
        on_the_way = [f"  · {text}" for text in self.noted]
        over = f"{self.end.reason} after {self.end.turns} turn{'s' * (self.end.turns != 1)}: {self.end.sentence}"
        return "\n".join([*on_the_way, over, *[f"  next: {self.end.next_step}"] * bool(self.end.next_step)])


def _unusual(event: Event) -> str:
    match event:
        case Noted():
            return event.text
        case RetryScheduled():
            return f"{event.why} It is asked for again."
        case CallEnded() if event.status != "ok":
            return f"The call of {event.name} is answered as {event.status}."
        case _:
            return ""


async def ended(
    script: Sequence[Scripted],
    *tools: Tool,
    limits: Limits | None = None,
    approver: Nobody | Says | None = None,
    stop: Stop | None = None,
    should_continue: Callable[[Run], str | None] | None = None,
    compaction: Compaction | None = None,
) -> Ended:
    """Run a script on the real loop, driven as a cell drives it, until it ends; the tool `look` is always there."""
    offered, stop, seen = Toolset([look, *tools]), stop or Stop(), list[Event]()
    agent = Agent(
        model=ScriptedModel(script),
        tools=offered,
        gate=Policy(Mode.DEFAULT),
        approver=approver or Nobody(),
        limits=limits or Limits(longest_wait=0.0),
        should_continue=should_continue,
        compaction=compaction,
    )
    session = Session("lesson", system="Answer briefly.", tools=offered.params(), store=NoStore())
    async with aclosing(run(agent, session, [text_block("What is 4 + 4?")], prompt="", stop=stop)) as events:
        end = await drive(events, seen.append, agent=agent, session=session, stop=stop)
    return Ended(end, tuple(seen))


# ── the stop reasons of the API ──────────────────────────────────────────────────────────────────────────────────────

_ANSWER = "It is 8."

API: dict[str, tuple[Scripted, ...]] = {
    "end_turn": (_ANSWER,),
    "tool_use": (call("look", what="4 + 4"), _ANSWER),
    "max_tokens, in a text": (Turn("It is", "max_tokens"), " 8."),
    "max_tokens, in a call": (Turn(call("look", what="4 +"), "max_tokens"), _ANSWER),
    "max_tokens, again": (Turn(call("look", what="4 +"), "max_tokens"),) * 2,
    "stop_sequence": (Turn(_ANSWER, "stop_sequence"),),
    "pause_turn": (Turn("I search the web.", "pause_turn"), _ANSWER),
    "refusal": (Turn("I would rather not.", "refusal"),),
    "model_context_window_exceeded": (Turn("It", "model_context_window_exceeded"),),
    "a new one": (Turn(_ANSWER, "tired"),),
    "none: the stream broke off": (Turn(_ANSWER, cut=3), _ANSWER),
}
"""A script for each `stop_reason` that a server may send."""


async def of_the_api() -> Endings:
    """Make each stop reason of the API happen, and show what the loop did with it."""
    return Endings("stop_reason", {name: await ended(script) for name, script in API.items()})


# ── the endings of ours ──────────────────────────────────────────────────────────────────────────────────────────────


def _looks(count: int) -> list[Scripted]:
    return [call("look", what=f"place {n}") for n in range(count)]


def _doing(name: str, deed: Callable[[], Any], kind: Kind = Kind.READ) -> Tool:
    async def do(_: Call) -> str:
        """Do what the lesson wants."""
        deed()
        return "done"

    return tool(name=name, kind=kind)(do)


async def _waits(_: Call) -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return ""


async def of_ours() -> Endings:
    """Make each ending of `nbagent.core.event.Reason` happen, and show the sentence and the next step that a person gets."""
    pressed, deleted = Stop(), Stop()
    full = Turn("It", "model_context_window_exceeded")
    used = Turn(call("look", what="it"), usage=Usage(input=900, output=200))
    found = {
        Reason.END_TURN: await ended([_ANSWER]),
        Reason.MAX_TURNS: await ended([*_looks(2), "I have seen two of four places."], limits=Limits(max_turns=2)),
        Reason.BUDGET: await ended([used], limits=Limits(tokens=1000)),
        Reason.TIMEOUT: await ended([call("waits")], tool(name="waits")(_waits), limits=Limits(seconds=0.05)),
        Reason.REPEATED: await ended([call("look", what="it")] * 3),
        Reason.DENIED: await ended([call("change")], _doing("change", str, Kind.RUN_CELL), approver=Says(Answered(False))),
        Reason.INTERRUPTED: await ended([call("press")], _doing("press", pressed.ask), stop=pressed),
        Reason.REFUSAL: await ended([Turn("I would rather not.", "refusal")]),
        Reason.MAX_TOKENS: await ended(API["max_tokens, again"]),
        Reason.CONTEXT_FULL: await ended([full]),
        Reason.HOOK: await ended(_looks(1), should_continue=lambda run: f"{run.turn} turn is enough, says your function."),
        Reason.CELL_GONE: await ended([call("delete")], _doing("delete", lambda: deleted.now(Reason.CELL_GONE)), stop=deleted),
        Reason.ERROR: await ended([Rejected("The model's server does not know this model.")]),
    }  # fmt: skip
    return Endings("made to happen", {str(reason): one for reason, one in found.items()})


@dataclass(frozen=True, slots=True)
class Endings:
    """Runs by what was made to happen (`what` heads that column). Shows itself as a table."""

    what: str
    runs: dict[str, Ended]

    def __repr__(self) -> str:
        return "\n".join(f"{name}\n{indent(repr(one), '    ')}" for name, one in self.runs.items())

    def _repr_html_(self) -> str:
        rows = [
            (
                _cell(name, f"→ {one.end.reason}" * (name != one.end.reason)),
                _cell(one.end.sentence, *one.noted),
                _cell(one.end.next_step),
            )
            for name, one in self.runs.items()
        ]
        head = (f"{self.what} → the run ended with", "sentence, and what happened on the way", "next step")
        titles = "".join(f'<th style="{_LEFT}">{html.escape(title)}</th>' for title in head)
        body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
        return f'<table style="table-layout:fixed;width:100%"><tr>{titles}</tr>{body}</table>'


_LEFT = "text-align:left;vertical-align:top;overflow-wrap:break-word"


def _cell(text: str, *more: str) -> str:
    return f'<td style="{_LEFT}">{"<br>".join(map(_words, (text, *filter(None, more))))}</td>'


# ── how a window fills ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Filling:
    """How many tokens each request was (estimated), before which of them the conversation was summed up, and how big the window is."""

    sizes: tuple[int, ...]
    summed: tuple[int, ...]
    window: int
    at: float


async def fill(turns: int = 14, *, window: int = 3_000, at: float = 0.8, summing: bool = True) -> Filling:
    """Play a run that reads a page of text in each turn, in a window of so many tokens, and look how it fills.

    `at` is the share of the window from which the conversation is summed up; without `summing` it only grows.
    """
    compaction = Compaction(at=at, window=lambda _: window) if summing else None
    model = ScriptedModel(_reader(turns))
    offered = Toolset([tool(name="read_page")(_page)])
    agent = Agent(
        model=model, tools=offered, gate=Policy(), approver=Nobody(), limits=Limits(longest_wait=0.0), compaction=compaction
    )  # fmt: skip
    session = Session("filling", system="Answer briefly.", tools=offered.params(), store=NoStore())
    sizes, summed = list[int](), list[int]()
    async with aclosing(run(agent, session, [text_block("Read the book.")], prompt="")) as events:
        async for event in _requests(events, session, sizes):
            if event.type == "compacted":
                summed.append(len(sizes))
    return Filling(tuple(sizes), tuple(summed), window, at)


async def _requests(events: AsyncGenerator[Event], session: Session, sizes: list[int]) -> AsyncGenerator[Event]:
    """Hand on the events; keep the size of each request for a reply, summaries left out."""
    async with aclosing(events):
        async for event in events:
            if event.type == "request_sent" and not _asks_for_summary(event):
                sizes.append(session.newest.size())
            yield event


def _asks_for_summary(event: Event) -> bool:
    return any(
        block.get("text", "").startswith(SUM_UP[:60]) for m in getattr(event, "new", ()) for block in m["content"]
    )


def _reader(turns: int) -> list[Scripted]:
    pages = iter(range(1, turns))

    def turn(seen: Sequence[Message]) -> Value:
        if any(block.get("text", "").startswith(SUM_UP[:60]) for block in seen[-1]["content"]):
            return "Task: read the book. Done: some pages. Found: nothing yet. Left: the rest."
        page = next(pages, None)
        return "I have read it." if page is None else call("read_page", number=page)

    return [turn] * (4 * turns)


async def _page(_: Call, number: int) -> str:
    """Read a page.

    Args:
        number: Its number.
    """
    return f"Page {number}. " + "The penguins walk to the sea, and back again in the evening. " * 20


def in_a_cell() -> list[Scripted]:
    """A script for a cell: it looks at what is loaded, and says how much that is."""

    def answer(seen: Sequence[Message]) -> Value:
        lines = [line for line in last_results(seen)[0].splitlines() if line.strip()]
        return f"I looked at what is loaded: {len(lines)} lines about your variables."

    return [call("list_variables"), answer]


def _words(text: str) -> str:
    """Return a sentence as HTML: what stands in backticks is code, as where the person reads it."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
