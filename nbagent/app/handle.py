"""What stands for a run in the background in the person's code: the value of its cell.

Must not know how the run goes. Read `Handle`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING

from nbagent.app.answer import Answer, RunFailed

if TYPE_CHECKING:
    from nbagent.app.underway import LiveRun
    from nbagent.jupyter.mainthread import MainThread


class Handle:
    """A run that goes on in the background: `answer = await handle` waits for its end.

    Its panel is what people look at, so that showing the value shows nothing again.
    """

    def __init__(self, live: LiveRun, main: MainThread, number: int) -> None:
        self._live, self._main = live, main
        self._over = asyncio.Event()
        self._answer: Answer | None = None
        self._problem = ""
        self.number = number
        """The execution count of the cell that shows it."""

    @property
    def id(self) -> str:
        """The run's id, as `%agent agents` knows it."""
        return self._live.id

    @property
    def name(self) -> str:
        """What the run is called."""
        return self._live.name

    @property
    def session_id(self) -> str:
        """The id of its session, as an `Answer` has it."""
        return self._answer.session_id if self._answer is not None else self._live.session

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._over.is_set()

    @property
    def answer(self) -> Answer | None:
        """Its answer, None while it goes on."""
        return self._answer

    def stop(self) -> None:
        """Stop the run, as the button in its panel does."""
        if not self.done:
            self._live.stop.now()

    def __await__(self) -> Generator[None, None, Answer]:
        """Wait for its end and return its answer; raises `RunFailed` where nbagent itself failed.

        While a cell waits, the run's code runs in the turn of that cell.
        """
        return self._answered().__await__()

    async def _answered(self) -> Answer:
        await self.wait()
        if self._answer is None:
            raise RunFailed(self._problem)
        return self._answer

    async def wait(self) -> None:
        """Wait for its end, however it ends; its code runs in the turn of the cell that waits."""
        async with self._main.lend(self._live.who):
            await self._over.wait()

    def end(self, answer: Answer | None, problem: str = "") -> None:
        """Say how the run has ended: with an answer, or what went wrong."""
        self._answer, self._problem = answer, problem
        self._over.set()

    def __repr__(self) -> str:
        state = self._live.activity if not self.done else self._answer.stop_reason if self._answer else "failed"
        return f"<agent {self.id} “{self.name}”: {state}>"

    def _ipython_display_(self) -> None:
        """Show nothing: the cell's output is the run's panel, and in the end its record."""
