"""A process that starts runs which are killed: a forked child for each, so that what is slow is imported once.

Reads commands as JSON lines: {"folder", "kill": [sign, n] or null}. The child goes on in the folder's session, or begins
one, with the real store, the real loop and a real HTTP model, and kills itself with SIGKILL at the n-th time that it comes
to `sign`: nothing of Python runs after that, exactly as with `kill -9`. What it did outside is one line in effects.txt for
each call that ran. Without `kill` it writes how often it came to each sign. Answers with the child's status.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from nbagent.app.conversation import Conversation
from nbagent.app.model import model_of
from nbagent.config import Settings
from nbagent.core.drive import drive
from nbagent.core.events import CallDecided, CallStarted, Event, RequestSent, ResultsAppended, TextDelta, ThinkingDelta
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.ports import Answered, Approval, Question
from nbagent.core.run import Agent, Stop
from nbagent.core.tools import Call, Kind, Tool, Toolset, tool
from nbagent.extend.seals import Seals
from nbagent.extend.sessions import FOLDER, JsonlStore, read_session
from nbagent.models import warm_up

SIGNS = (
    "streaming",
    "waiting",
    "before a call",
    "running",
    "after its effect",
    "writing",
    "torn",
    "written",
    "between",
)


class Signs:
    """Counts the signs that a run comes to, and kills the process at the one that is wanted."""

    def __init__(self, wanted: list[Any] | None) -> None:
        self.seen: Counter[str] = Counter()
        self._wanted = wanted

    def due(self, sign: str) -> bool:
        """Count a sign; whether this is where to die."""
        self.seen[sign] += 1
        return self._wanted == [sign, self.seen[sign]]

    def come_to(self, sign: str) -> None:
        if self.due(sign):
            die()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingStore(JsonlStore):
    """The real store, in a process that may die before a line, in the middle of one, or after it."""

    signs: Signs

    def append(self, record: dict[str, Any]) -> None:
        self.signs.come_to("writing")
        if self.signs.due("torn"):
            before = self.path.read_bytes() if self.path.exists() else b""
            super().append(record)
            line = self.path.read_bytes()[len(before) :]
            self.path.write_bytes(before + line[: max(1, len(line) // 2)])
            die()
        super().append(record)
        self.signs.come_to("written")


class Person:
    """Says yes to everything, after the card was shown."""

    present = True

    def __init__(self, signs: Signs) -> None:
        self._signs = signs

    async def ask(self, _approval: Approval) -> Answered:
        self._signs.come_to("waiting")
        return Answered(True, by="person")

    async def question(self, _question: Question) -> str:
        return ""


def tools(folder: Path, signs: Signs) -> list[Tool]:
    @tool(kind=Kind.SHELL)
    async def effect(_call: Call, token: str) -> str:
        """Do something outside that can't be taken back."""
        signs.come_to("running")
        with (folder / "effects.txt").open("a", encoding="utf-8") as file:
            file.write(f"{token}\n")
        signs.come_to("after its effect")
        return f"did {token}"

    return [effect]


def conversation(folder: Path, settings: Settings, made: list[Tool], signs: Signs) -> Conversation:
    """Go on in the folder's session, or begin one, as a notebook does; its store may die."""
    seals = Seals(folder / "keys")
    paths = sorted((folder / FOLDER).glob("*.jsonl"))
    found = read_session(paths[0], seals) if paths else None
    if found is None:
        for path in paths:  # it died in the first line of all: there is nothing yet
            path.unlink()
        opened = Conversation.begin(settings, lambda _: made, folder, "n.ipynb", seals=seals)
    else:
        assert found.sealed, "a line that is torn does not make the others somebody else's"
        again = Conversation.reopen(found, settings, lambda _: made, folder, "n.ipynb", seals=seals)
        assert again is not None
        opened = again
        opened.moved(own=True, kernel="test")
    opened.store.signs = signs  # type: ignore[attr-defined]
    opened.store.__class__ = DyingStore
    return opened


async def one_run(folder: Path, signs: Signs) -> None:
    settings = Settings()
    made = tools(folder, signs)
    opened = conversation(folder, settings, made, signs)
    agent = Agent(model_of(settings), Toolset(made), Policy(Mode.DEFAULT), Person(signs), Limits(longest_wait=0.0))

    def show(event: Event) -> None:
        match event:
            case TextDelta() | ThinkingDelta():
                signs.come_to("streaming")
            case CallDecided() | CallStarted():
                signs.come_to("before a call")
            case ResultsAppended() | RequestSent():
                signs.come_to("between")
            case _:
                pass

    stop = Stop()
    events = run(agent, opened.session, [text_block("Go on.")], prompt="Go on.", stop=stop)
    ended = await drive(events, show, agent=agent, session=opened.session, stop=stop)
    assert ended.reason == "end_turn", ended


def main() -> None:
    warm_up()
    model_of(Settings())
    for line in sys.stdin:
        wanted = json.loads(line)
        folder = Path(wanted["folder"])
        child = os.fork()
        if child == 0:
            signs, failed = Signs(wanted["kill"]), 1
            try:
                asyncio.run(one_run(folder, signs))
                (folder / "signs.json").write_text(json.dumps(signs.seen))
                failed = 0
            finally:
                sys.stderr.flush()
                os._exit(failed)
        _, status = os.waitpid(child, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


if __name__ == "__main__":
    main()
