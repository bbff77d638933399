"""Letters of the team's board on their way into a conversation: given once, and delivered only when they stand in it.

A letter that counts as delivered before is lost where the run is stopped in between; so it waits on the board until the
message that tells it is kept. Must not know what a letter says. Read `Mail.take`, then `Mail.kept`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from nbagent.core.board_values import Letter
from nbagent.core.errors import NbagentError
from nbagent.core.events import Event, ResultsAppended
from nbagent.core.seat import Seat


class Mail:
    """The letters of who sits at `seat`. Those that were taken are in hand until they are kept, or dropped."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._in_hand: dict[str, Letter] = {}

    async def take(self, *without: str) -> tuple[Letter, ...]:
        """Return the letters that have come and are not in hand yet, but for those of the kinds `without`."""
        new = [one for one in await self._seat.letters() if one.id not in self._in_hand and one.kind not in without]
        self._in_hand |= {one.id: one for one in new}
        return tuple(new)

    async def kept(self) -> None:
        """Say that all in hand stands in the conversation: it is delivered. Raises `BoardError`, and then it stays in hand."""
        letters = tuple(self._in_hand.values())
        await self._seat.delivered(letters)
        for one in letters:
            self._in_hand.pop(one.id, None)

    def dropped(self) -> None:
        """Say that what is in hand may not have reached the conversation: it is given again."""
        self._in_hand.clear()


async def delivering(events: AsyncGenerator[Event], kept: Callable[[], Awaitable[None]]) -> AsyncGenerator[Event]:
    """Pass a run's events on; `kept` is called when the results of calls, and what came with them, stand in the transcript."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, ResultsAppended):
                with contextlib.suppress(NbagentError):  # the board is away for a moment: with the next results
                    await kept()
            yield event
