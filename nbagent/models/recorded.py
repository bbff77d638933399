"""A model that is recorded while it answers, and a model that answers from a recording.

Both are wrappers: the loop asks them as it asks any model, and everything else (tools, rules, the view) is as in any run. Must
not know where a file lies nor who asks. Read `Recording.stream`, then `Replayed.stream`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from nbagent.core import errors
from nbagent.core.errors import ModelError, NbagentError, Rejected, Transient
from nbagent.core.messages import Json, Usage
from nbagent.core.ports import Model, Request
from nbagent.models.likeness import Likeness, key_of, pattern_of
from nbagent.models.passing import Passing
from nbagent.models.recording import REPLAYED, Cleaning, Failure, File, Piece, Recorded, Tape
from nbagent.models.streamed import changed, retexted


class Recording(Passing):
    """`model`, with each request and its stream written to `tape`."""

    def __init__(self, model: Model, tape: Tape) -> None:
        super().__init__(model)
        self._tape = tape

    async def stream(self, request: Request) -> AsyncGenerator[Json]:
        """Yield the events of one reply as they come; when it has ended, in whatever way, it is in the recording."""
        asked, begun = self._tape.cleaning.asked(request), time.monotonic()
        pieces: list[Piece] = []
        failure, cut = None, True
        try:
            async with aclosing(self._asked.stream(request)) as events:
                async for event in events:
                    pieces.append(Piece(round((time.monotonic() - begun) * 1000), event))
                    yield event
            cut = False
        except NbagentError as error:
            text = self._tape.cleaning.clean(str(error))
            failure = Failure(type(error).__name__, text, getattr(error, "retry_after", None))
            raise
        finally:
            clean = self._tape.cleaning.clean
            events_ = retexted([piece.event for piece in pieces], clean)
            cleaned = [Piece(piece.at, event) for piece, event in zip(pieces, events_, strict=True)]
            self._tape.add(asked, cleaned, self.name, failure, cut=cut and failure is None)


Pace = Callable[[Piece, float], float]
"""How many seconds to wait for a piece, if that many have passed since the request."""


def at_once(piece: Piece, passed: float) -> float:  # noqa: ARG001 - the shape of a pace
    """Wait for nothing."""
    return 0.0


def as_recorded(piece: Piece, passed: float) -> float:
    """Wait until the piece comes as late as it came from the model."""
    return max(0.0, piece.at / 1000 - passed)


class Replayed:
    """Answers each request with what was recorded for it. A request that is not the recorded one is refused, with where it departs.

    `cleaning` does to the requests of now what was done to the recorded ones; `pace` says how long to wait for a piece. One for
    each run: what it has played it does not play again.
    """

    def __init__(self, file: File, *, cleaning: Cleaning | None = None, pace: Pace = at_once) -> None:
        self.file = file
        self._pace = pace
        self._cleaning = cleaning or Cleaning.here()
        self._pattern = pattern_of(file.volatile)
        self._likeness = Likeness(self._pattern)
        self._left = list(file.requests)
        self._keys = {one.number: key_of(one.asked, self._pattern) for one in file.requests}

    @property
    def name(self) -> str:
        """Who answered when it was recorded, and that this is a replay."""
        return self.file.model + REPLAYED

    @property
    def left(self) -> int:
        """How many recorded requests were not asked for so far."""
        return len(self._left)

    def cost(self, usage: Usage) -> float | None:  # noqa: ARG002 - the port's signature
        """Return 0: nobody is asked."""
        return 0.0

    async def stream(self, request: Request) -> AsyncGenerator[Json]:
        """Yield the recorded events. Raises the recorded error, and `Rejected` for a request that was not recorded."""
        found = self._taken(self._cleaning.asked(request))
        begun = time.monotonic()
        for piece, event in zip(found.pieces, self._of_now(found), strict=True):
            await asyncio.sleep(self._pace(piece, time.monotonic() - begun))
            yield event
        if found.cut:
            raise Rejected(f"The recording {self.file.path.name} was stopped here, in request {found.number}.")
        if found.failure is not None:
            raise _error(found.failure)

    def assert_complete(self) -> None:
        """Raise AssertionError unless every recorded request was asked for."""
        if self._left:
            asked = len(self.file.requests) - len(self._left)
            raise AssertionError(
                f"{self.file.path.name} has {len(self.file.requests)} requests, {asked} were asked for"
            )

    def _taken(self, asked: Json) -> Recorded:
        found = self._found(asked)
        self._left.remove(found)
        return found

    def _found(self, asked: Json) -> Recorded:
        if not self._left:
            raise Rejected(self._over())
        alike = self._alike(asked)
        for one in alike:
            if self._likeness.departure(one.asked, asked) is None:
                return one
        one = (alike or self._left)[0]
        departure = self._likeness.departure(one.asked, asked)
        raise Rejected(
            f"The replay departs from its recording {self.file.path.name} at request {one.number}, {departure}. "
            "Record it again, or play it with --replay-loose, which compares nothing."
        )

    def _alike(self, asked: Json) -> list[Recorded]:
        key = key_of(asked, self._pattern)
        return [one for one in self._left if self._keys[one.number] == key]

    def _over(self) -> str:
        count = len(self.file.requests)
        return (
            f"The recording {self.file.path.name} has {count} request{'s' * (count != 1)}, and one more was asked for. "
            "Record it again."
        )

    def _of_now(self, found: Recorded) -> list[Json]:
        raw = [piece.event for piece in found.pieces]
        return retexted(raw, lambda text: self._cleaning.put_back(self._likeness.now(text)))


class Loose(Replayed):
    """The same, without comparing: a request that was not recorded gets the next reply all the same."""

    def _found(self, asked: Json) -> Recorded:
        if not self._left:
            raise Rejected(self._over())
        one = (self._alike(asked) or self._left)[0]
        for before, now in zip(one.asked["messages"], asked["messages"], strict=False):
            self._likeness.departure(before, now)  # only to learn which ids stand for which
        return one


def _error(failure: Failure) -> ModelError:
    """Return the error that was recorded; a try that is repeated is repeated at once."""
    kind = getattr(errors, failure.kind, ModelError)
    if not (isinstance(kind, type) and issubclass(kind, ModelError)):
        kind = ModelError
    return kind(failure.text, retry_after=0.0) if issubclass(kind, Transient) else kind(failure.text)


def recorded_results(file: File, cleaning: Cleaning) -> dict[str, Json]:
    """Return what each call of a recording gave, by its id, with the folder of now in it."""
    return {call: changed(block, cleaning.put_back) for call, block in file.results().items()}
