"""The worker's end of the link to the hub: asks before each request, reports, has people asked, hears of a stop.

It lives on a thread and a loop of its own, so that a stop is heard and the connection held while the run's own loop
computes. A connection that is lost is made again for ten seconds; then the process that gave the work out counts as gone:
no new request is let through. Must not know what a run is. Read `Link`.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import threading
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict
from typing import Any

from nbagent.core.errors import Interrupted, Spent
from nbagent.core.messages import Json, Usage
from nbagent.core.ports import Answered, Approval, Question
from nbagent.headless.reports import Reports
from nbagent.headless.wire import LONGEST, Address, WireError, greet
from nbagent.models.metered import Estimate

PATIENCE = 10.0
"""Seconds for which a lost connection is made again."""
GONE = "The process that gave this work out is gone."

_AGAIN = 0.1  # seconds between two tries to connect
_PACE = 0.1  # seconds between two batches of reports
_FLUSH = 5.0  # seconds that the last reports have to reach the hub


class Link:
    """One job's link, made of what `Hub.link` gave. `stopped` is called once, on the link's thread, with the reason why the run has to end."""

    def __init__(self, link: Json, job: str, stopped: Callable[[str], None]) -> None:
        self._address, self._job, self._stopped = Address.from_json(link), job, stopped
        self._patience = float(link.get("patience") or PATIENCE)
        self._process = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._talk, name="nbagent-link", daemon=True)
        self._waiting: dict[str, tuple[Json, asyncio.Future[Json]]] = {}
        self._out: deque[Json] = deque()
        self._reports = Reports()
        self._wake = asyncio.Event()
        self._closing = False
        self._over = ""
        self.in_flight: set[str] = set()
        """Requests that were let through and have not ended."""
        self.requests = 0
        """How many requests were let through."""

    def start(self) -> None:
        """Connect, and go on connecting."""
        self._thread.start()

    def close(self) -> None:
        """Send what is left and say that the job is done; waits for the hub for a few seconds at most."""
        self._soon(self._close)
        self._thread.join(_FLUSH)

    def leave(self) -> None:
        """Take it that the process that gave this work out is gone: called from any thread."""
        self._soon(self._end, GONE)

    @property
    def over(self) -> str:
        """Why no request is let through any more, "" while they are."""
        return self._over

    # ── for the run; called on its own loop ──────────────────────────────────────────────────────────────────────────

    async def admit(self, estimate: Estimate) -> str:
        """See `Meter`. Waits in the line of all workers."""
        reply = await self._asked({"op": "admit", **asdict(estimate)})
        if not reply.get("go"):
            raise Spent(str(reply.get("why") or "The budget that all jobs share is used up."))
        self.in_flight.add(ticket := str(reply["re"]))
        self.requests += 1
        return ticket

    def spent(self, request: str, usage: Usage, cost: float | None) -> None:
        """See `Meter`."""
        self.in_flight.discard(request)
        message = {"op": "spent", "id": request, "usage": asdict(usage), "cost": cost}
        self._soon(self._spent, f"spent {request}", message)

    def held(self, seconds: float | None) -> None:
        """See `Meter`."""
        self._soon(self._put, {"op": "held", "seconds": seconds})

    def event(self, event: Json) -> None:
        """Report an event; never waits."""
        self._soon(self._reports.add, event)

    async def ask(self, approval: Approval) -> Answered:
        """Have a person asked. Denied where nobody can be reached, or the answer was given to something else."""
        try:
            reply = await self._asked({"op": "ask", "approval": approval.to_json()})
            answered = Answered(**reply["answer"])
        except (Interrupted, KeyError, TypeError):
            return Answered(False, by="nobody there")
        if reply.get("hash") != approval.hash or (answered.edited is not None and not approval.editable):
            return Answered(False, by="nobody there")
        return answered

    async def question(self, question: Question) -> str:
        """Have a person answer a question, "" where nobody can be reached."""
        try:
            return str((await self._asked({"op": "question", "question": asdict(question)})).get("text") or "")
        except Interrupted:
            return ""

    async def _asked(self, message: Json) -> Json:
        asked = self._reply_to({**message, "id": f"{self._process}-{next(self._numbers)}"})
        try:
            future = asyncio.run_coroutine_threadsafe(asked, self._loop)
        except RuntimeError:  # the loop is closed: the job is done
            asked.close()
            raise Interrupted from None
        return await asyncio.wrap_future(future)

    def _soon(self, call: Callable[..., object], *given: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: the job is done
            self._loop.call_soon_threadsafe(call, *given)

    # ── on the link's own loop ───────────────────────────────────────────────────────────────────────────────────────

    async def _reply_to(self, message: Json) -> Json:
        if self._over:
            raise Interrupted
        future: asyncio.Future[Json] = self._loop.create_future()
        self._waiting[message["id"]] = (message, future)
        self._put(message)
        try:
            return await future
        finally:
            self._waiting.pop(message["id"], None)

    def _spent(self, number: str, message: Json) -> None:
        """Say what a request took, again and again until the hub has heard it."""
        future: asyncio.Future[Json] = self._loop.create_future()
        self._waiting[number] = (message, future)
        future.add_done_callback(lambda _: self._waiting.pop(number, None))
        self._put(message)

    def _put(self, message: Json) -> None:
        self._out.append(message)
        self._wake.set()

    def _close(self) -> None:
        self._closing = True
        self._put({"op": "done"})

    def _talk(self) -> None:
        with closing(self._loop):
            self._loop.run_until_complete(self._live())

    async def _live(self) -> None:
        """Connect, and again where the connection is lost, until the job is done or the hub has been away too long."""
        connected_at = self._loop.time()
        while not self._closing:
            try:
                if await self._connected():
                    connected_at = self._loop.time()
            except (OSError, WireError):
                pass
            if not self._closing and self._loop.time() - connected_at > self._patience:
                self._end(GONE)
                while not self._closing:  # the run goes on to its end, and may still ask
                    self._wake.clear()
                    await self._wake.wait()
            if not self._closing:
                await asyncio.sleep(_AGAIN)
        for _, future in list(self._waiting.values()):
            future.cancel()
        await asyncio.sleep(0)

    async def _connected(self) -> bool:
        """Talk to the hub until the connection ends; return whether there was one."""
        host, port = self._address.host, self._address.port
        async with asyncio.timeout(self._patience):
            reader, writer = await asyncio.open_connection(host, port, limit=LONGEST)
        try:
            wire = await greet(reader, writer, self._address.secret, gives=False)
            wire.send({"op": "hello", "job": self._job, "process": self._process})
            for message, _ in self._waiting.values():  # what was not answered is said again
                if message not in self._out:
                    wire.send(message)
            sending = asyncio.create_task(self._send(wire))
            try:
                while (message := await self._next(wire, sending)) is not None:
                    self._take(message)
            except (OSError, WireError):
                pass
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            return True
        finally:
            writer.close()
            with suppress(OSError):
                async with asyncio.timeout(_FLUSH):
                    await writer.wait_closed()

    async def _next(self, wire: Any, sending: asyncio.Task[None]) -> Json | None:
        """Return the hub's next message, None at the end: its own, or that of what we have to say."""
        receiving = asyncio.ensure_future(wire.receive())
        try:
            await asyncio.wait({receiving, sending}, return_when=asyncio.FIRST_COMPLETED)
            return receiving.result() if receiving.done() else None
        finally:
            receiving.cancel()

    async def _send(self, wire: Any) -> None:
        """Send what there is to send, reports about ten times a second; returns once the job is done and all is said."""
        while True:
            self._wake.clear()
            for report in self._reports.take():
                wire.send({"op": "event", "event": report})
            while self._out:
                message = self._out[0]
                try:
                    wire.send(message)
                except WireError:  # too long: it can't be asked, which is a denial
                    self._refuse(message)
                self._out.popleft()
            await wire.drain()
            if self._closing and not self._out and not self._waiting:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_PACE):
                    await self._wake.wait()

    def _take(self, message: Json) -> None:
        if message.get("op") == "stop":
            self._end(str(message.get("why") or "Stopped from where the work was given out."))
        elif (found := self._waiting.get(str(message.get("re")))) is not None and not found[1].done():
            found[1].set_result(message)

    def _refuse(self, message: Json) -> None:
        found = self._waiting.get(str(message.get("id")))
        if found is not None and not found[1].done():
            found[1].set_exception(Interrupted())

    def _end(self, why: str) -> None:
        """Let no request through any more, and have the run ended."""
        if self._over:
            return
        self._over = why
        for number, (_, future) in list(self._waiting.items()):
            if not number.startswith("spent ") and not future.done():
                future.set_exception(Interrupted())
        self._stopped(why)
