"""Code of a run that goes on after the call that began it has returned, so that the model can think meanwhile.

A call waits for its code for `patience` seconds. Then the model gets how far it is, and the code goes on: one piece at a
time, for the kernel has one. What the model sees of its outputs comes from who holds them (`Piece.look`), which holds back
what is hidden. How the loop treats it at the run's end: core/lasting.py. Must not know what a cell is. Read
`LastingCode.run`, then `wait_tools`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from nbagent.core.errors import CutOff, Interrupted, NotebookError, ToolError
from nbagent.core.lasting import Ended, How
from nbagent.core.messages import Block, plain_text, text_block
from nbagent.core.ports import WITHHELD, Output, Ran
from nbagent.core.tools import Call, Result, Tool, tool
from nbagent.tools.progress import Saying, of_outputs
from nbagent.tools.results import clip, fold_terminal
from nbagent.tools.times import duration

_NEW = 3_000  # characters of new output that are told
_NEWS = 6_000  # characters of a result that is told beside others
_LONGEST = 600.0
_HELD = 0.2  # seconds by which the loop is late when code held it
_ENDING = 5.0  # seconds in which code that has let go of the loop has its outputs in the page
_NONE = "no code of yours is running: there is nothing to wait for"


@dataclass(eq=False, slots=True)
class Piece:
    """Code that a call begins: how the model and how people know it, and what looks at its outputs so far.

    `cell` is the cell that it runs in now, "" where it is none; `call_id` the call that began it.
    """

    name: str
    label: str
    look: Callable[[], Awaitable[Sequence[Output]]]
    cell: str = ""
    call_id: str = ""
    began: float = 0.0
    goes_on: bool = False
    task: asyncio.Task[Result] | None = None
    call: Call | None = None
    shown: str = ""
    looks: int = 0
    stopped: bool = False

    def now(self, text: str) -> None:
        """Say how far it is in the call that waits for it, if one does."""
        if self.call is not None:
            self.call.progress(text)

    def soon(self, text: str) -> None:
        """Do so from a thread."""
        if (call := self.call) is not None:
            call.soon(text)


class LastingCode:
    """The code of one run; `core.lasting.Lasting` for its loop. Used on the loop only.

    Args:
        patience: seconds after which a call returns while its code goes on; None: each call waits for its code.
        waits: what the code waits for before it may begin ("" where it has begun).
        clock: seconds, monotonic.
        above: the code of the run that this one is a subagent's of.
    """

    def __init__(
        self,
        patience: float | None,
        waits: Callable[[], str] = str,
        clock: Callable[[], float] = time.monotonic,
        above: LastingCode | None = None,
    ) -> None:
        self.patience = patience
        self._waits, self._clock, self._above = waits, clock, above
        self._piece: Piece | None = None
        self._over: list[str] = []
        self._endings: list[Ended] = []

    # ── for tools that run code ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def cell(self) -> str:
        """The id of the cell that runs now, "" where none does."""
        return self._piece.cell if self._piece is not None and not _ended(self._piece) else ""

    @property
    def running(self) -> str:
        """What runs now, as the model knows it; "" where nothing does."""
        return self._piece.name if self._piece is not None and not _ended(self._piece) else ""

    def free(self) -> None:
        """Raise ToolError where code is under way: no other can run beside it."""
        self._gather()
        if self._above is not None and self._above.running:
            raise ToolError(
                f"{self._above.running} of the agent that you work for still runs, and one piece of code runs at a time: look only, or say so"
            )
        if (piece := self._piece) is not None:
            raise ToolError(
                f"{piece.name} still runs ({self._so_far(piece)}), and one piece of code runs at a time. Wait for it or "
                "stop it with wait_for_cell; looking at variables and cells works meanwhile"
            )

    async def run(self, call: Call, piece: Piece, go: Callable[[Saying], Awaitable[Result]]) -> Result:
        """Run `go`, which tells how far it is, and return its result, or after `patience` seconds how far it is.

        Raises what `go` raises. An interrupt of the call ends the code.
        """
        self.free()
        if self.patience is None:
            return await go(Saying(call.progress, call.soon))
        self._piece, piece.began, piece.call_id = piece, self._clock(), call.id
        piece.task = asyncio.ensure_future(_result(go, Saying(piece.now, piece.soon)))
        result = await self._wait(call, piece, self.patience)
        piece.goes_on = self._piece is piece
        return dataclasses.replace(result, code="goes on") if piece.goes_on else result

    # ── for `wait_for_cell` ──────────────────────────────────────────────────────────────────────────────────────────

    async def wait(self, call: Call, seconds: float) -> Result:
        """Wait further, `seconds` at most: the result of the code, or what is new. Raises ToolError where none runs."""
        return await self._wait(call, self._there(), seconds)

    async def end(self) -> Result:
        """End the code, and return what it did until then. Raises ToolError where none runs."""
        piece = self._there()
        if not _ended(piece):
            piece.stopped = True
            await _stop(piece)
        self._let_go(piece)
        return _as_result(piece, self._so_far(piece))

    def _there(self) -> Piece:
        if self._piece is None:
            raise ToolError("\n\n".join([_NONE, *self.news()]))
        return self._piece

    async def _wait(self, call: Call, piece: Piece, seconds: float) -> Result:
        task = _task(piece)
        piece.call = call
        try:
            await _seen_for(task, seconds)
        except asyncio.CancelledError:
            await _stop(piece)
            self._let_go(piece)
            raise _cut_off(task) from None
        finally:
            piece.call = None
        if not task.done():
            return await self._still(piece)
        self._let_go(piece)
        return task.result()

    async def _still(self, piece: Piece) -> Result:
        """Return how far code is that goes on."""
        if why := self._waits():
            return Result((text_block(f"{piece.name} has not begun yet: it {why}. {_GOES_ON}"),), why)
        outputs = await piece.look()
        new, piece.shown = _new(piece.shown, _text(outputs))
        piece.looks += 1  # told, so that looks that find nothing new are not taken for going in circles
        far = of_outputs(outputs)
        so_far = self._so_far(piece)
        head = f"{piece.name} still runs: {so_far} so far{f', {far.text()}' if far else ''} (look {piece.looks})."
        shown = f"New output:\n{new}" if new.strip() else "No new text."
        rich = sum(1 for output in outputs if output.get("output_type") in {"display_data", "execute_result"})
        more = f" It has {rich} other output{'s' * (rich > 1)} so far." if rich else ""
        text = f"{head}{more} {_GOES_ON}\n{shown}"
        cells = (piece.cell,) if piece.cell else ()
        return Result((text_block(text),), f"still runs after {so_far}{f' · {far.text()}' if far else ''}", cells=cells)

    def _let_go(self, piece: Piece) -> None:
        """Have a piece that has ended be the current one no more, and keep how it ended if it outlasted its call."""
        self._piece = None
        if piece.goes_on:
            self._endings.append(Ended(piece.call_id, _how(piece), self._clock() - piece.began))

    def _so_far(self, piece: Piece) -> str:
        return duration(self._clock() - piece.began)

    # ── for the loop ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def label(self) -> str:
        """What runs, or has ended untold, as people know it; "" where there is nothing of which the model must hear."""
        return self._piece.label if self._piece is not None else ""

    @property
    def since(self) -> tuple[str, float]:
        """The call that began what runs now, and the seconds since; ("", 0.0) where nothing runs."""
        piece = self._piece
        return (piece.call_id, self._clock() - piece.began) if piece is not None and self.running else ("", 0.0)

    def endings(self) -> Sequence[Ended]:
        """Return, once, what has ended of the code that went on after its call, whoever waited for it."""
        self._gather()
        told, self._endings = self._endings, []
        return told

    def news(self) -> Sequence[str]:
        """Return, once, how code has ended that ended while no call waited for it."""
        self._gather()
        told, self._over = self._over, []
        return told

    async def ended(self) -> Sequence[Block]:
        """Wait for the code, and return what the model is told of its end."""
        if (piece := self._piece) is None:
            return [text_block(text) for text in self.news()]
        task = _task(piece)
        await asyncio.wait({task})
        self._let_go(piece)
        if not task.cancelled() and isinstance(error := task.exception(), Interrupted):
            raise error
        result = _as_result(piece, self._so_far(piece))
        return [text_block(_ENDED.format(piece.name)), *result.content]

    async def stop(self) -> None:
        """End the code, if some runs, and wait until it has ended."""
        if (piece := self._piece) is not None:
            try:
                await _stop(piece)
            finally:
                self._let_go(piece)

    def _gather(self) -> None:
        """Put by what has ended."""
        if (piece := self._piece) is not None and _ended(piece):
            self._let_go(piece)
            text = plain_text(list(_as_result(piece, self._so_far(piece)).content))
            self._over.append(f"{_ENDED.format(piece.name)}\n{clip(text, _NEWS)}")


_GOES_ON = "It goes on; you can look at variables and cells meanwhile. wait_for_cell waits further or stops it."
_ENDED = "(From the runtime, not the person:) {} has ended:"


def wait_tools(lasting: LastingCode) -> list[Tool]:
    """Return `wait_for_cell`, where calls return before their code has ended."""
    if lasting.patience is None:
        return []

    @tool(
        title=lambda given: f"{'stop' if given['stop'] else 'wait for'} {lasting.label or 'code that runs'}",
        subject=lambda given: "stop" if given["stop"] else "wait",
    )
    async def wait_for_cell(call: Call, seconds: float = 60, stop: bool = False) -> Result:
        """Wait for your code that still runs: until it ends (you get its result) or for `seconds` (you get what is new).

        Args:
            seconds: at most this long.
            stop: true to stop it now.
        """
        if stop:
            return await lasting.end()
        return await lasting.wait(call, min(max(seconds, 0.0), _LONGEST))

    return [wait_for_cell]


async def _result(go: Callable[[Saying], Awaitable[Result]], saying: Saying) -> Result:
    return await go(saying)


async def _seen_for(task: asyncio.Task[Result], seconds: float) -> None:
    """Wait for the task's end, `seconds` at most; longer where its code held the loop, as it may be at its end then."""
    loop = asyncio.get_running_loop()
    due = loop.time() + seconds
    await asyncio.wait({task}, timeout=seconds)
    if loop.time() - due > _HELD:
        await asyncio.wait({task}, timeout=_ENDING)


def _task(piece: Piece) -> asyncio.Task[Result]:
    if piece.task is None:
        raise RuntimeError("the code has not begun")
    return piece.task


def _ended(piece: Piece) -> bool:
    return piece.task is not None and piece.task.done()


async def _stop(piece: Piece) -> None:
    """Cancel the code and see it end, whatever else is cancelled meanwhile."""
    task, again = _task(piece), False
    task.cancel()
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            again = True
            task.cancel()
    if again:
        raise _cut_off(task)


def _cut_off(task: asyncio.Task[Result]) -> CutOff:
    """Return the cancellation to hand on, with what the code had done."""
    try:
        return CutOff(plain_text(list(task.result().content)))  # it ended at the same moment
    except (CutOff, Interrupted) as stopped:
        return CutOff(stopped.output)
    except asyncio.CancelledError:
        return CutOff()
    except ToolError as error:
        return CutOff(str(error))


def _how(piece: Piece) -> How:
    task = _task(piece)
    if task.cancelled() or isinstance(error := task.exception(), CutOff | Interrupted):
        return "stopped" if piece.stopped else "interrupted"
    if error is not None:
        return "failed"
    result = task.result()
    return "limit" if result.code == "limit" else "failed" if result.is_error else "ended"


def _as_result(piece: Piece, so_far: str) -> Result:
    """Return how code ended as a result, also where it was stopped or has failed."""
    cells = (piece.cell,) if piece.cell else ()
    try:
        return _task(piece).result()
    except (CutOff, Interrupted) as stopped:
        output = stopped.output
    except asyncio.CancelledError:
        output = ""
    except ToolError as error:
        return Result((text_block(str(error)),), "failed", is_error=True, cells=cells)
    who = "Stopped" if piece.stopped else "It was interrupted by the person"
    text = f"{who} after {so_far}. What ran before that has happened. Output so far:\n{output.strip() or '(none)'}"
    return Result((text_block(text),), f"stopped after {so_far}", is_error=not piece.stopped, cells=cells)


def _text(outputs: Sequence[Output]) -> str:
    """Return all that was printed, as a screen shows it; of an output that is held back, the words that say so."""
    parts: list[str] = []
    for output in outputs:
        text = output.get("text") if output.get("output_type") == "stream" else None
        if text is None and (output.get("metadata") or {}):
            text = (output.get("data") or {}).get("text/plain") if WITHHELD in output["metadata"] else None
        parts.append("".join(map(str, text)) if isinstance(text, list) else str(text or ""))
    return fold_terminal("".join(parts))


def _new(before: str, now: str) -> tuple[str, str]:
    """Return what of `now` is new after `before`, at most its end, and `now`; lines that were drawn over count as new."""
    known = before[: before.rfind("\n") + 1]
    if now == before:
        return "", now
    new = now.removeprefix(known)
    return ("…" + new[-_NEW:] if len(new) > _NEW else new), now


async def looked(read: Callable[[], Awaitable[Sequence[Output]]]) -> Sequence[Output]:
    """Return what `read` gives, nothing where the notebook does not answer: the code runs all the same."""
    try:
        return await read()
    except NotebookError:
        return ()


# ── trying how far code comes ────────────────────────────────────────────────────────────────────────────────────────


def within(limit: float | None, timeout: float | None) -> float | None:
    """Return the seconds after which code is stopped: the model's own limit and the time limit of all code, the smaller.

    Raises ToolError for a limit that is none.
    """
    if limit is None:
        return timeout
    if not 0 < limit < math.inf:
        raise ToolError(f"limit = {limit:g} must be a number of seconds above 0")
    return limit if timeout is None else min(limit, timeout)


def as_tried(result: Result, ran: Ran, limit: float | None) -> Result:
    """Return the result of code that the model only tried: that its own limit stopped it is no error."""
    if ran.status != "timeout":
        return result
    return dataclasses.replace(result, code="limit", is_error=result.is_error and limit is None)
