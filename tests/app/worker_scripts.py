"""Scripts for jobs in workers: found by name in the worker's own process."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from nbagent.core.messages import Usage
from nbagent.models.scripted import ScriptedModel, Turn, call, last_results, prompt_text

_LOOK = "import os, random, uuid\nprint(x, os.getcwd(), random.random(), uuid.uuid4().hex, os.getpid())"


def looks() -> ScriptedModel:
    """Runs scratch code that tells of the process, and answers with what that printed."""
    return ScriptedModel(
        [
            Turn([call("run_python", code=_LOOK)], usage=Usage(100, 10)),
            lambda seen: Turn(last_results(seen)[0], usage=Usage(200, 20)),
        ]
    )


def adds() -> ScriptedModel:
    """Adds a cell to the notebook, which runs, and answers with its output."""
    return ScriptedModel(
        [
            [call("add_cell", source="y = x * 2\ny")],
            lambda seen: "y is " + last_results(seen)[0],
        ]
    )


def spins() -> ScriptedModel:
    """Computes for ever, and says so in a file."""
    return ScriptedModel([[call("run_python", code="open('spins', 'w').close()\nwhile True:\n    pass")], "Done."])


async def waits(*_: object) -> None:
    """A role that waits for something between two runs, for ever, and says so in a file."""
    os.close(os.open("waits", os.O_CREAT))
    await asyncio.Event().wait()


def repeats() -> ScriptedModel:
    """Answers with its prompt, for 100 tokens."""
    return ScriptedModel([lambda seen: Turn(prompt_text(seen), usage=Usage(90, 10))])


def dies_once() -> None:
    """Kill this process as `kill -9` does, the first time in a folder."""
    here = Path("here")
    if not here.exists():
        here.touch()
        os.kill(os.getpid(), signal.SIGKILL)
