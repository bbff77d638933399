"""In a kernel: three agents in the background whose calls run code and are asked about, and marks that tell what ran when.

Each agent is a run of the real loop with the real tools on a `QueuedKernel`; a script of random calls stands for its
model, and the person is played by messages of a comm, as clicks are. When one ends the next begins. Read `Crowd`.
"""

from __future__ import annotations

import asyncio
import random
import signal
import threading
from collections.abc import Generator
from contextlib import aclosing, contextmanager
from typing import Any

from nbagent.app.extension import current
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.ports import Answered, Approval, Preview
from nbagent.core.run import Agent, Stop
from nbagent.core.session import NoStore, Session
from nbagent.core.tools import Call, Kind, Tool, Toolset, tool
from nbagent.jupyter.queued import QueuedKernel, queued_tool
from nbagent.models.scripted import ScriptedModel, call
from nbagent.tools import python, variables
from tests.core.rig import check_transcript
from tests.support.turns import turns

AGENTS = 3
PIECES = (
    "with mark({name!r}): pass",
    "with mark({name!r}): sum(range(100_000))",
    "with mark({name!r}):\n    from tests.support.turns import turns\n    await turns(30)",
    "with mark({name!r}): 1 / 0",
    "with mark({name!r}):\n    from tests.support.turns import turns\n    await turns(3000)",
)
FOREVER = "with mark({name!r}):\n    import asyncio\n    await asyncio.Event().wait()"


class Crowd:
    """All that goes on in one kernel, and what is known of it."""

    def __init__(self, shell: Any, seed: int) -> None:
        self.random = random.Random(seed)
        self.extension = current(shell)
        self.main = self.extension.main
        self.marks: list[tuple[str, str]] = []
        self.asking: dict[str, tuple[Approval, asyncio.Future[bool]]] = {}
        self.answered: dict[str, bool] = {}
        self.heard: dict[str, bool] = {}
        self.stopped: set[str] = set()  # questions of agents that were stopped while they asked
        self.numbers: list[tuple[int, str]] = []
        self.ended: list[str] = []
        self.problems: list[str] = []
        self.present = True
        self.stops: dict[str, Stop] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.counter = 0
        shell.user_ns["mark"] = self.mark
        self.loop = asyncio.get_running_loop()
        shell.kernel.comm_manager.register_target("crowd", lambda comm, _: comm.on_msg(self.clicked))

    @contextmanager
    def mark(self, name: str) -> Generator[None]:
        """Say that code of this name runs now."""
        self.marks.append(("in", name))
        try:
            yield
        finally:
            self.marks.append(("out", name))

    # ── the person, by clicks ───────────────────────────────────────────────────────────────────────────────────────

    def clicked(self, message: Any) -> None:
        """Take a click, on whatever thread it comes."""
        self.loop.call_soon_threadsafe(self.told, message["content"]["data"]["deed"])

    def told(self, deed: str) -> None:
        """Do what a click says: yes or no to the oldest question, or stop an agent: the one whose code runs, or any."""
        if deed in {"yes", "no"} and self.asking:
            asked, (_, future) = next(iter(self.asking.items()))
            del self.asking[asked]
            self.answered[asked] = deed == "yes"
            future.set_result(deed == "yes")
        elif deed == "stop holder" and self.main.holder in self.stops:
            self.stops[self.main.holder].now()
        elif deed == "stop" and self.stops:
            self.stops[self.random.choice(sorted(self.stops))].now()
        elif deed == "start":
            while len(self.tasks) < AGENTS:
                self.counter += 1
                task = asyncio.get_running_loop().create_task(self.live(f"agent {self.counter}"))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
        elif deed == "end all":
            self.present = False
            for stop in list(self.stops.values()):
                stop.now()

    async def ask(self, approval: Approval) -> Answered:
        """Ask about a call, as a card does."""
        future = asyncio.get_running_loop().create_future()
        self.asking[approval.call_id] = (approval, future)
        try:
            self.heard[approval.call_id] = approved = await future
            return Answered(approved, words="" if approved else "not that one")
        except asyncio.CancelledError:
            self.stopped.add(approval.call_id)
            raise
        finally:
            self.asking.pop(approval.call_id, None)

    async def question(self, _: object) -> str:
        """Go on, whatever is asked."""
        return ""

    # ── agents ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def live(self, who: str) -> None:
        """Run one agent to its end, however it ends."""
        self.main.leave()
        stop, tools = Stop(), Toolset(self.tools(who))
        self.stops[who] = stop
        session = Session(who, system="", tools=tools.params(), store=NoStore())
        script = [self.calls(who, n) for n in range(self.random.randint(2, 6))]
        agent = Agent(ScriptedModel([*script, "done"]), tools, Policy(Mode.DEFAULT, ()), self, Limits(longest_wait=0.0))
        task = asyncio.current_task()
        stop.bind(task.cancel if task is not None else None)
        try:
            async with aclosing(run(agent, session, [text_block("go")], prompt="go", stop=stop)) as events:
                async for event in events:
                    last = event
            self.ended.append(str(getattr(last, "reason", "")))
            check_transcript(session.transcript)
        except asyncio.CancelledError:
            self.ended.append("cancelled")
        except AssertionError as wrong:
            self.problems.append(f"{who}: {wrong}")
        finally:
            del self.stops[who]

    def calls(self, who: str, n: int) -> list[Any]:
        """Return the calls of one turn."""
        made = []
        for k in range(self.random.randint(1, 2)):
            name = f"{who}, call {n}.{k}"
            piece = FOREVER if self.random.random() < 0.04 else self.random.choice(PIECES)
            code = piece.format(name=name)
            made.append(
                self.random.choice(
                    [call("cell", code=code), call("cell", code=code), call("run_python", code=code),
                     call("list_variables"), call("own", name=name)]
                )
            )  # fmt: skip
        return made

    def tools(self, who: str) -> list[Tool]:
        """Return the tools of one agent."""
        kernel = QueuedKernel(self.extension.kernel, self.main, who)

        @tool(kind=Kind.RUN_CELL, subject="code", exact=True, preview=lambda given: Preview("code", given["code"]))
        async def cell(_call: Call, code: str) -> str:
            """Run a cell.

            Args:
                code: its code.
            """
            outputs: list[Any] = []
            ran = await kernel.run(code, emit=outputs.append, timeout=30)
            if ran.number is not None:
                self.numbers.append((ran.number, code))
            return f"{ran.status} {who}"

        @tool(kind=Kind.RUN_CELL)
        async def own(_call: Call, name: str) -> str:
            """Do what a tool of the person's does, which awaits.

            Args:
                name: of the mark.
            """
            with self.mark(name):
                await turns(5)
            return name

        looks = [queued_tool(one, self.main, who) for one in (*variables.tools(kernel), own)]
        return [cell, *python.tools(kernel, timeout=30), *looks]

    # ── what came of it ─────────────────────────────────────────────────────────────────────────────────────────────

    def report(self) -> dict[str, Any]:
        """Return all that is wrong, which should be nothing, and how much there was of everything."""
        wrong, open_now = list(self.problems), ""
        for what, name in self.marks:
            if (what == "in") != (open_now == "") or (what == "out" and open_now != name):
                wrong.append(f"{what} {name!r} while {open_now!r} ran")
            open_now = name if what == "in" else ""
        wrong += [f"{name} was answered and not heard" for name in {*self.answered} - {*self.heard} - self.stopped]
        wrong += [
            f"{name} heard another answer" for name, yes in self.heard.items() if self.answered.get(name) is not yes
        ]
        inputs = self.extension.shell.user_ns["In"]
        wrong += [f"In[{n}] is {inputs[n]!r}, not {code!r}" for n, code in self.numbers if inputs[n] != code]
        late = [thread.name for thread in threading.enumerate() if thread.name == "nbagent-time-limit"]
        if self.main.holder.startswith("agent") or self.main.waiting or self.tasks or late or self.asking:
            wrong.append(f"left over: {self.main.holder!r} {self.main.waiting} {self.tasks} {late} {self.asking}")
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            wrong.append(f"SIGINT is with {signal.getsignal(signal.SIGINT)}")
        if self.extension.shell.kernel.saved_sigint_handler is not signal.SIG_IGN:
            wrong.append(f"SIGINT goes to {self.extension.shell.kernel.saved_sigint_handler}")
        ran = len(self.marks) // 2
        return {
            "wrong": wrong,
            "ran": ran,
            "asked": len(self.heard),
            "agents": self.counter,
            "ends": sorted({*self.ended}),
        }
