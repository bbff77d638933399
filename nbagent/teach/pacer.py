"""Holds a run at its `yield` until somebody lets it go on: a generator between the loop and its consumer that stops pulling.

That is all that step mode is: the loop is an async generator, and one that isn't pulled stands still. What was seen is kept, so
that earlier states can be looked at; nothing is ever run again for that. Must not know of buttons or of a terminal: a `Hand`
presses. Read `Pacer.events`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, contextmanager
from typing import Any

from nbagent.core.events import Event
from nbagent.core.run import Stop
from nbagent.core.timelimit import TimeLimit
from nbagent.teach.steps import Break, Until, Walk, breaks_of, is_step, rests, walk

Hand = Callable[["Pacer"], Awaitable[None]]
"""Waits until a person wants a resting run to go on, and presses for those who can't; the rest is over when it returns."""


async def buttons(pacer: Pacer) -> None:
    """A hand for where others press: wait for them."""
    await pacer.pressed()


def _nobody(_: Pacer) -> None:
    """Nobody looks."""


class Pacer:
    """Paces one run. All of it is used on the thread of the loop.

    Args:
        hand: waits for the person while the run rests.
        until: how far the run goes at first.
        pace: seconds between two events while it plays; 0: as fast as it goes.
        breaks: the breakpoints.
        stop: the run's; a stop that was asked for ends every rest.
        limit: the run's time limit, held while the run rests.
        changed: told whenever there is something else to see.
    """

    def __init__(
        self,
        hand: Hand = buttons,
        *,
        until: Until = Until.EVENT,
        pace: float = 0.0,
        breaks: tuple[Break, ...] = (),
        stop: Stop | None = None,
        limit: TimeLimit | None = None,
        changed: Callable[[Pacer], None] = _nobody,
    ) -> None:
        self._hand, self._stop, self._limit, self.changed = hand, stop or Stop(), limit or TimeLimit(None), changed
        self.until, self.pace, self.breaks = until, pace, breaks
        self.walk = Walk()
        self.seen: list[Event] = []
        self.at = 0
        """How many of the events in `seen` the person looks at; as many as there are: the present."""
        self.resting = ""
        """Why the run rests now, "" while it goes on."""
        self.touched = False
        """Whether a person has ever pressed anything."""
        self._turn = 0
        self._pressed = asyncio.Event()

    async def events(self, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        """Hand every event on, in order, and don't pull the next one before that is wanted. Closes what it wraps."""
        async with aclosing(events):
            async for event in events:
                self._take(event)
                yield event
                await self._after(event)

    def _take(self, event: Event) -> None:
        self.walk = walk(self.walk, event, self.breaks)
        if is_step(event):
            present = self.at == len(self.seen)
            self.seen.append(event)
            self.at = len(self.seen) if present else self.at

    async def _after(self, event: Event) -> None:
        """Rest as long as it takes, or for the pace, or not at all."""
        why = rests(self.walk, self.until, self._turn)
        if not why and self.pace and self.walk.may_rest and not self.walk.over:
            await self._rest("", self.pace)
            why = rests(self.walk, self.until, self._turn)  # the person may have pressed Pause meanwhile
        if why and not self._stop.asked:
            await self._rest(why, math.inf)
        elif is_step(event):
            self.changed(self)

    async def _rest(self, why: str, seconds: float) -> None:
        """Wait until the hand returns, a stop is asked for, or so many seconds have passed."""
        with self._held(why):
            hand = self.pressed() if seconds < math.inf else self._hand(self)
            waits: list[asyncio.Future[Any]] = [
                asyncio.ensure_future(hand),
                asyncio.ensure_future(self._stop.wait(seconds)),
            ]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
                ended = await asyncio.gather(*waits, return_exceptions=True)
            if isinstance(ended[0], Exception):
                raise ended[0]

    @contextmanager
    def _held(self, why: str) -> Generator[None]:
        self.resting = why
        self._pressed.clear()
        self._limit.hold()
        self.changed(self)
        try:
            yield
        finally:
            self.resting = ""
            self._limit.go_on()
            self.changed(self)

    async def pressed(self) -> None:
        """Return when one of the methods below has let the run go on."""
        await self._pressed.wait()

    @property
    def was_pressed(self) -> bool:
        """Whether the rest at hand is over."""
        return self._pressed.is_set()

    # ── what a person may press ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def playing(self) -> bool:
        """Whether the run goes on by itself but for breakpoints."""
        return self.until is Until.PLAY

    @property
    def looks_back(self) -> bool:
        """Whether the person looks at an earlier state; the run rests or goes on all the same."""
        return self.at < len(self.seen)

    def next(self) -> None:
        """Go on to the next event; from an earlier state come to the present first. Where the run plays: pause."""
        if self.resting and self.looks_back:
            self.present()
        else:
            self._go(Until.EVENT)

    def next_turn(self) -> None:
        """Go on to the first event of the next turn."""
        self._go(Until.TURN)

    def play(self) -> None:
        """Go on to the next breakpoint, or to the end."""
        self._go(Until.PLAY)

    def pause(self) -> None:
        """Rest at the next event that one may rest at."""
        self.until, self.touched = Until.EVENT, True
        if not self.resting:
            self._pressed.set()  # it may be in the wait between two events
        self.changed(self)

    def back(self) -> None:
        """Look one event further back. Nothing is run again."""
        self._look(self.at - 1)

    def forward(self) -> None:
        """Look one event further on, up to the present."""
        self._look(self.at + 1)

    def present(self) -> None:
        """Look at the present."""
        self._look(len(self.seen))

    def break_at(self, text: str) -> None:
        """Have these breakpoints from now on; raises `ConfigError` for what is none."""
        self.breaks, self.touched = breaks_of(text), True
        self.changed(self)

    def _look(self, at: int) -> None:
        self.at, self.touched = min(max(at, 1), len(self.seen)), True
        self.changed(self)

    def _go(self, until: Until) -> None:
        self.until, self._turn, self.at, self.touched = until, self.walk.turn, len(self.seen), True
        self._pressed.set()
        self.changed(self)
