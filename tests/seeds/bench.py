"""A bench for the seeds' checklists: the real loop over the real file, search, shell and variable tools, in a folder of its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from nbagent.core.drive import drive
from nbagent.core.events import Event, RunEnded
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.ports import Model
from nbagent.core.run import Agent, Stop
from nbagent.core.session import NoStore, Session
from nbagent.core.tools import Toolset
from nbagent.tools import control, shell, variables, workspace
from nbagent.tools.results import ResultStore
from tests.core.rig import Person, check_transcript
from tests.tools.desk import EchoKernel


@dataclass
class Bench:
    """Real tools at home in `folder`; stands in for the rig of tests/core in its `play`."""

    folder: Path
    store: NoStore = field(default_factory=NoStore)
    ran: list[str] = field(default_factory=list)
    kernel: EchoKernel = field(default_factory=EchoKernel)

    def tools(self) -> Toolset:
        files = workspace.tools(self.folder)
        return Toolset(
            [*variables.tools(self.kernel), *files, *shell.tools(self.folder), *control.tools(ResultStore())]
        )

    def session(self, tools: Toolset) -> Session:
        return Session("s1", system="be good", tools=tools.params(), store=self.store)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


@dataclass
class Driven:
    """A run in a task of its own, as a cell drives it: what was shown, its session, and its end."""

    shown: list[Event]
    session: Session
    stop: Stop
    task: asyncio.Task[RunEnded]

    async def ended(self, within: float = 20) -> RunEnded:
        """Wait for the end; the transcript must be valid then."""
        ended = await asyncio.wait_for(self.task, within)
        check_transcript(self.session.transcript)
        return ended

    def of(self, kind: type) -> list:
        return [event for event in self.shown if isinstance(event, kind)]

    def result_texts(self) -> list[str]:
        blocks = [b for m in self.session.transcript if m["role"] == "user" for b in m["content"]]
        return ["\n".join(c.get("text", "") for c in b["content"]) for b in blocks if b["type"] == "tool_result"]


def begin(bench: Bench, model: Model, *, mode: Mode = Mode.BYPASS, limits: Limits | None = None,
          person: Person | None = None) -> Driven:  # fmt: skip
    """Begin a run that goes on beside the test."""
    tools = bench.tools()
    session, stop, shown = bench.session(tools), Stop(), []
    agent = Agent(model, tools, Policy(mode), person or Person(present=False), limits or Limits(longest_wait=0.0))
    events = run(agent, session, [text_block("do it")], prompt="do it", stop=stop)
    driving = drive(events, shown.append, agent=agent, session=session, stop=stop)
    return Driven(shown, session, stop, asyncio.create_task(driving))
