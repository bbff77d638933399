"""ReAct: an agent whose calls are lines of text, as they were before models had tools. It stands beside the real loop, to compare.

The model is asked to write `Thought:`, `Action:` and `Input:`; the program looks for these words in what it wrote, and answers
with an `Observation:`. Works with any model of the house; knows nothing of the real loop. Read `parse`, then `react`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from nbagent.core.messages import CUT_SHORT, Message, ReplyBuilder, text_block
from nbagent.core.ports import Model, Request

FORMAT = """Write exactly these lines, and nothing else:

Thought: what you think
Action: the name of one tool
Input: what the tool gets

Then stop. You will be told: Observation: what the tool gave
When you know the answer, write instead:

Thought: what you think
Answer: the answer

The tools are: {tools}."""
"""What the model is told. Nothing makes it write so: the format is a wish."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call, as it was read from a text."""

    thought: str
    tool: str
    input: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a run, as it was read from a text."""

    thought: str
    text: str


@dataclass(frozen=True, slots=True)
class Unread:
    """A reply that could not be read; `why` is a sentence for the model."""

    why: str


Read = Step | Answer | Unread
Reader = Callable[[str], Read]
Tools = Mapping[str, Callable[[str], str]]

_LABEL = re.compile(r"^(Thought|Action|Input|Answer):", re.MULTILINE)


def parse(text: str) -> Read:
    """Read a reply: a label at the beginning of a line begins a part, which goes on until the next label. Raises nothing."""
    pieces = _LABEL.split(text)
    parts = {label: part.strip() for label, part in zip(pieces[1::2], pieces[2::2], strict=True)}
    if "Answer" in parts:
        return Answer(parts.get("Thought", ""), parts["Answer"])
    missing = [label for label in ("Action", "Input") if label not in parts]
    if missing:
        return Unread(f"There is no line that begins with {' or '.join(f'{label}:' for label in missing)}.")
    return Step(parts.get("Thought", ""), parts["Action"], parts["Input"])


def written(reply: Step | Answer) -> str:
    """Write a reply as the format asks for it: what `parse` reads."""
    if isinstance(reply, Answer):
        return f"Thought: {reply.thought}\nAnswer: {reply.text}"
    return f"Thought: {reply.thought}\nAction: {reply.tool}\nInput: {reply.input}"


_MENDED = (
    (re.compile(r"^\s*Observation:.*", re.MULTILINE | re.DOTALL), ""),  # the runtime's words, written by the model
    (re.compile(r"^\s*```.*\n?", re.MULTILINE), ""),
    (re.compile(r"^([ \t]*)\*\*(\w+):?\*\*:?", re.MULTILINE), r"\1\2:"),
    (re.compile(r"^[ \t]*(thought|action|input|answer):", re.MULTILINE | re.IGNORECASE), lambda m: f"{m[1].title()}:"),
    (re.compile(r"^(Action:[ \t]*\w+):[ \t]*$", re.MULTILINE), r"\1"),  # the stray colon
)


def careful(text: str) -> Read:
    """Read a reply after mending what models often do to the format: each line of `_MENDED` was once a bug report."""
    for pattern, instead in _MENDED:
        text = pattern.sub(instead, text)
    return parse(text)


@dataclass(frozen=True, slots=True)
class Happened:
    """One thing that a ReAct run reports: `kind` is said, acted, told (nothing ran, the model hears why) or ended."""

    kind: str
    text: str
    step: Step | None = None


async def react(
    model: Model, prompt: str, tools: Tools, *, read: Reader = parse, max_turns: int = 10
) -> AsyncGenerator[Happened]:
    """Run a ReAct loop and yield what happens; the last is `ended`, with the answer or "max_turns". Close it to end early.

    `read` is the parser; a tool gets one text and returns one.
    """
    system = FORMAT.format(tools=", ".join(tools))
    messages: list[Message] = [{"role": "user", "content": [text_block(prompt)]}]
    for _ in range(max_turns):
        reply = await _reply(model, Request(system, (), messages))
        yield Happened("said", reply.text)
        found = Unread("The reply was cut off.") if reply.stop_reason in CUT_SHORT else read(reply.text)
        if isinstance(found, Answer):
            yield Happened("ended", found.text)
            return
        happened = _done(found, tools)
        yield happened
        messages += [
            {"role": "assistant", "content": [text_block(reply.text)]},
            {"role": "user", "content": [text_block(f"Observation: {happened.text}")]},
        ]
    yield Happened("ended", "max_turns")


async def _reply(model: Model, request: Request) -> ReplyBuilder:
    reply = ReplyBuilder()
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            reply.feed(event)
    return reply


def _done(found: Step | Unread, tools: Tools) -> Happened:
    """Carry out what was read."""
    if isinstance(found, Unread):
        return Happened("told", f"{found.why} Write the lines again.")
    if found.tool not in tools:
        return Happened("told", f"There is no tool {found.tool!r}. The tools are: {', '.join(tools)}.")
    return Happened("acted", tools[found.tool](found.input), found)
