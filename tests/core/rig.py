"""A small rig for core tests: tools that count, an approver with written answers, and a run collected into a list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from nbagent.core.errors import ToolError
from nbagent.core.events import Event
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import Message, text_block
from nbagent.core.policy import Mode, Policy, Rule
from nbagent.core.ports import Answered, Approval, Preview, Question
from nbagent.core.run import Agent, Stop
from nbagent.core.session import NoStore, Session
from nbagent.core.tools import Call, Kind, Tool, Toolset, tool
from nbagent.models.scripted import ScriptedModel


class Person:
    """An approver with answers written down: what it is asked is kept in `asked`."""

    def __init__(self, *answers: Answered | bool, replies: Sequence[str] = (), present: bool = True) -> None:
        self.answers = [a if isinstance(a, Answered) else Answered(a) for a in answers]
        self.replies = list(replies)
        self.asked: list[Approval] = []
        self.questions: list[Question] = []
        self._present = present

    @property
    def present(self) -> bool:
        return self._present

    async def ask(self, approval: Approval) -> Answered:
        self.asked.append(approval)
        return self.answers.pop(0)

    async def question(self, question: Question) -> str:
        self.questions.append(question)
        return self.replies.pop(0)


@dataclass
class Rig:
    """Tools `look` (read), `change` (asks by default), `fail`, `crash`, `hang`; `ran` is what ran, in order."""

    ran: list[str] = field(default_factory=list)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    store: NoStore = field(default_factory=NoStore)

    def tools(self) -> Toolset:
        ran, hanging = self.ran, self.hanging

        async def look(call: Call, what: str = "") -> str:
            """Look.

            Args:
                what: What to look at.
            """
            ran.append(f"look {what}".strip())
            return f"seen {what}"

        async def change(call: Call, what: str) -> str:
            """Change something.

            Args:
                what: What to change.
            """
            call.progress("half")
            ran.append(f"change {what}")
            return f"changed {what}"

        async def fail(call: Call) -> str:
            """Fail as tools do."""
            raise ToolError("it failed")

        async def crash(call: Call) -> str:
            """Fail as bugs do."""
            return str(1 / 0)

        async def hang(call: Call) -> str:
            """Hang for ever."""
            hanging.set()
            await asyncio.Event().wait()
            return ""

        async def count(call: Call) -> str:
            """Count: another result each time."""
            ran.append("count")
            return str(len(ran))

        code = tool(kind=Kind.RUN_CELL, exact=True, preview=_code)(change)
        made: list[Tool] = [tool(look), code, tool(fail), tool(crash), tool(hang), tool(count)]
        return Toolset(made)

    def session(self, tools: Toolset) -> Session:
        return Session("s1", system="be good", tools=tools.params(), store=self.store)


def _code(given: dict) -> Preview:
    return Preview("code", given["what"])


@dataclass
class Ran:
    """A finished run: its events, its model, session and rig."""

    events: list[Event]
    session: Session
    model: ScriptedModel
    rig: Rig

    @property
    def end(self) -> Event:
        return self.events[-1]

    @property
    def messages(self) -> list[Message]:
        return list(self.session.transcript)

    def of(self, kind: type) -> list:
        return [e for e in self.events if isinstance(e, kind)]

    def last_results(self) -> list[dict]:
        return [b for m in self.messages if m["role"] == "user" for b in m["content"] if b["type"] == "tool_result"]

    def result_texts(self) -> list[str]:
        return ["\n".join(b.get("text", "") for b in r["content"]) for r in self.last_results()]


async def play(
    *turns,
    model: ScriptedModel | None = None,
    person: Person | None = None,
    mode: Mode = Mode.DEFAULT,
    rules: Sequence[str] = (),
    limits: Limits | None = None,
    stop: Stop | None = None,
    rig: Rig | None = None,
    session: Session | None = None,
    on_event: Callable[[Event], None] = lambda _: None,
    **agent_fields,
) -> Ran:
    """Run a script to its end and collect the events."""
    rig = rig or Rig()
    tools = rig.tools()
    model = model or ScriptedModel(turns)
    parsed = tuple(Rule.parse(*text.split(" ", 1)) for text in rules)
    agent = Agent(
        model=model,
        tools=tools,
        gate=Policy(mode, parsed),
        approver=person or Person(),
        limits=limits or Limits(longest_wait=0.0),
        **agent_fields,
    )
    session = session or rig.session(tools)
    events: list[Event] = []
    async with aclosing(run(agent, session, [text_block("do it")], prompt="do it", stop=stop)) as stream:
        async for event in stream:
            events.append(event)
            on_event(event)
    check_transcript(session.transcript)
    return Ran(events, session, model, rig)


def check_transcript(messages: Sequence[Message]) -> None:
    """Assert the API's rules: user first, every call answered once and in order by the next message, no blank blocks."""
    begins = ["compaction"] if messages and messages[0]["role"] == "assistant" else []
    assert not begins or [block["type"] for block in messages[0]["content"]] == begins, "the person speaks first"
    for index, message in enumerate(messages):
        content = message["content"]
        assert content, "an empty message"
        for block in content:
            if block["type"] == "text":
                assert block["text"].strip()
        calls = [b["id"] for b in content if b["type"] == "tool_use"]
        after = messages[index + 1]["content"] if index + 1 < len(messages) else []
        results = [b["tool_use_id"] for b in after if b["type"] == "tool_result"]
        assert results == calls, f"calls {calls} answered by {results}"
        assert [b["type"] == "tool_result" for b in after] == sorted(
            [b["type"] == "tool_result" for b in after], reverse=True
        ), "results come first"
