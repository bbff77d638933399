"""The hub, in the process that gives work out: what all workers share, and where they report.

One budget and one pace for all requests to the model, events, approvals and questions, stopping. It listens on a thread and
a loop of its own, so that workers are answered while the main thread computes. Must not know what a job is, nor who
performs it. Read `Hub`, then `Listener`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Coroutine
from dataclasses import asdict
from typing import Any, Protocol, Self

from nbagent.core.limits import Limits
from nbagent.core.messages import Json, Usage
from nbagent.core.ports import Answered
from nbagent.headless.admission import Admission, Rates, Spending
from nbagent.headless.wire import LONGEST, Address, Wire, WireError, greet
from nbagent.models.metered import Estimate

AWAY = 10.0
"""Seconds after which a worker whose connection is lost counts as gone."""


class Listener(Protocol):
    """Hears what workers report. Everything is called on the hub's thread and loop, and must not raise or block there.

    See `OnLoop` for a listener that lives on another loop.
    """

    def event(self, job: str, event: Json) -> None:
        """Hear one event of a job's run (`core.events_json`); pieces of text come joined, about ten times a second."""
        ...

    async def ask(self, job: str, approval: Json) -> Answered:
        """Answer an approval (`Approval.to_json`). Cancelled where the worker is gone."""
        ...

    async def question(self, job: str, question: Json) -> str:
        """Answer a question, "" to leave it out."""
        ...

    def came(self, job: str) -> None:
        """Hear that a worker has begun, or gone on with, a job."""
        ...

    def left(self, job: str) -> None:
        """Hear that the worker of a job has said that it is done, or is gone."""
        ...


class Nobody:
    """Hears nothing and denies."""

    def event(self, job: str, event: Json) -> None:
        """Pass over an event."""

    async def ask(self, job: str, approval: Json) -> Answered:  # noqa: ARG002  (the port's shape)
        """Deny."""
        return Answered(False, by="nobody there")

    async def question(self, job: str, question: Json) -> str:  # noqa: ARG002  (the port's shape)
        """Leave it out."""
        return ""

    def came(self, job: str) -> None:
        """Pass it over."""

    def left(self, job: str) -> None:
        """Pass it over."""


class OnLoop:
    """Has `listener` called on another loop, e.g. that of a notebook's kernel. Once that is closed nobody is there."""

    def __init__(self, listener: Listener, loop: asyncio.AbstractEventLoop) -> None:
        self._listener, self._loop = listener, loop

    def event(self, job: str, event: Json) -> None:
        """Pass an event on."""
        self._soon(self._listener.event, job, event)

    async def ask(self, job: str, approval: Json) -> Answered:
        """Pass an approval on."""
        return await self._there(self._listener.ask(job, approval))

    async def question(self, job: str, question: Json) -> str:
        """Pass a question on."""
        return await self._there(self._listener.question(job, question))

    def came(self, job: str) -> None:
        """Pass it on."""
        self._soon(self._listener.came, job)

    def left(self, job: str) -> None:
        """Pass it on."""
        self._soon(self._listener.left, job)

    def _soon(self, call: Any, *given: Any) -> None:
        with contextlib.suppress(RuntimeError):  # that loop is closed
            self._loop.call_soon_threadsafe(call, *given)

    async def _there(self, asked: Coroutine[Any, Any, Any]) -> Any:
        try:
            future = asyncio.run_coroutine_threadsafe(asked, self._loop)
        except RuntimeError:
            asked.close()
            raise
        return await asyncio.wrap_future(future)


class Hub:
    """See the module's docstring. Use it as a context manager, or `start` and `close` it; all methods from any thread.

    `limits`: tokens and US dollars of all jobs together; `already`: what counts as spent when it begins. `host` is where it
    listens (this machine only, unless told otherwise), `announced` the name under which workers elsewhere reach it. `patience`
    is for how many seconds either side waits for a connection that was lost.
    """

    def __init__(
        self,
        listener: Listener | None = None,
        *,
        limits: Limits | None = None,
        rates: Rates | None = None,
        already: Spending | None = None,
        host: str = "127.0.0.1",
        announced: str = "",
        patience: float = AWAY,
    ) -> None:
        self._listener: Listener = listener or Nobody()
        self._admission = Admission(limits or Limits(), rates or Rates(), already or Spending())
        self._host, self._announced, self._patience = host, announced, patience
        self._secret = secrets.token_hex(32)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nbagent-hub", daemon=True)
        self._port = 0
        self._workers: dict[str, _Worker] = {}
        self._stopped: dict[str, str] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    # ── for who gives work out ───────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> Self:
        """Listen. Raises `OSError` where the host is not this machine's."""
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        except OSError:
            self._end()
            raise
        return self

    def close(self) -> None:
        """Stop listening. Workers that still work lose their link, and end as they do then."""
        if not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
            self._end()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def link(self) -> Json:
        """Return what `perform` needs to reach this hub. It holds the secret: give it to workers only."""
        address = Address(self._announced or self._host, self._port, self._secret)
        return {**address.to_json(), "patience": self._patience}

    def stop(self, job: str = "", why: str = "") -> None:
        """Stop a job ("" for all), also if it begins later: its run ends as interrupted, with a valid transcript."""
        self._loop.call_soon_threadsafe(self._stop, job, why)

    @property
    def spending(self) -> Spending:
        """What all jobs together have spent so far."""
        return self._admission.spending

    @property
    def used_up(self) -> str:
        """The sentence that says that the budget is used up, "" where it is not."""
        return self._admission.used_up

    @property
    def working(self) -> tuple[str, ...]:
        """The jobs whose workers are connected now."""
        return tuple(self._workers)

    # ── its own loop ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connected, self._host, 0, limit=LONGEST)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._alarm is not None:
            self._alarm.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._start(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one worker until its connection ends."""
        worker: _Worker | None = None
        try:
            wire = await greet(reader, writer, self._secret, gives=True)
            hello = await wire.receive()
            if hello is None or hello.get("op") != "hello":
                return
            worker = self._came(str(hello.get("job")), str(hello.get("process")), wire)
            while (message := await wire.receive()) is not None:
                self._take(worker, message)
        except (WireError, OSError, KeyError, TypeError, ValueError):
            pass  # whoever it was: they have to begin again
        finally:
            writer.close()
            if worker is not None:
                self._lost(worker)

    def _came(self, job: str, process: str, wire: Wire) -> _Worker:
        before = self._workers.get(job)
        worker = _Worker(job, process, wire)
        if before is not None and before.process != process:  # the job was begun anew elsewhere: that one counts
            before.say({"op": "stop", "why": "The job was begun anew by another worker."})
            for ticket in before.tickets:
                self._admission.leave(ticket)
            before.replaced = True
        elif before is not None:  # the old connection may end after the new one has begun, and must take nothing along
            worker.tickets, before.goes_on = before.tickets, True
        self._workers[job] = worker
        for of in (job, ""):
            if of in self._stopped:
                worker.say({"op": "stop", "why": self._stopped[of]})
                break
        self._listener.came(job)
        return worker

    def _lost(self, worker: _Worker) -> None:
        """Take it that a connection has ended: what waits is let go at once, what is under way after a while."""
        for task in worker.asking.values():
            task.cancel()
        if worker.goes_on:
            return
        for ticket in worker.tickets:
            self._admission.leave(ticket)
        if worker.replaced or worker.done:
            self._gone(worker)
        else:
            self._loop.call_later(self._patience, self._gone, worker)
        self._move()

    def _gone(self, worker: _Worker) -> None:
        """Take it that a process has ended; where another one does its job now, what it had under way is over all the same."""
        if worker.goes_on:
            return
        for ticket in worker.tickets:
            self._admission.lost(ticket)
        if self._workers.get(worker.job) is worker:
            del self._workers[worker.job]
            self._listener.left(worker.job)
        self._move()

    def _stop(self, job: str, why: str) -> None:
        self._stopped[job] = why
        for worker in self._workers.values():
            if job in {"", worker.job}:
                worker.say({"op": "stop", "why": why})

    def _take(self, worker: _Worker, message: Json) -> None:
        """Take one message of a worker."""
        match message["op"]:
            case "admit":
                ticket = str(message["id"])
                worker.tickets.add(ticket)
                if self._admission.is_under_way(ticket):  # asked again: the word that it may go was lost
                    worker.say({"re": ticket, "go": True})
                else:
                    usd = message.get("usd")
                    self._admission.ask(ticket, Estimate(int(message["input"]), int(message["output"]), None if usd is None else float(usd)))  # fmt: skip
                self._move()
            case "spent":
                cost = message.get("cost")
                ticket = str(message["id"])
                self._admission.spent(ticket, Usage(**message["usage"]), None if cost is None else float(cost))
                worker.tickets.discard(ticket)
                worker.say({"re": f"spent {ticket}"})
                self._move()
            case "held":
                seconds = message.get("seconds")
                self._admission.hold(None if seconds is None else float(seconds), time.monotonic())
                self._move()
            case "event":
                self._listener.event(worker.job, message["event"])
            case "ask" | "question":
                number = str(message["id"])
                if number not in worker.asking:
                    worker.asking[number] = self._start(self._answer(worker, message))
            case "done":
                worker.done = True
            case _:
                pass  # of a newer nbagent

    async def _answer(self, worker: _Worker, message: Json) -> None:
        """Have an approval or a question answered. An answer says by its hash what was shown."""
        number = str(message["id"])
        try:
            if message["op"] == "ask":
                answered = await self._listener.ask(worker.job, message["approval"])
                reply: Json = {"answer": asdict(answered), "hash": message["approval"]["hash"]}
            else:
                reply = {"text": await self._listener.question(worker.job, message["question"])}
        except RuntimeError:  # the loop of who would answer is closed
            reply = {"answer": asdict(Answered(False, by="nobody there")), "text": ""}
        worker.say({"re": number, **reply})

    def _move(self) -> None:
        """Let through who may go now, and look again when that changes by itself."""
        now = time.monotonic()
        by_ticket = {ticket: worker for worker in self._workers.values() for ticket in worker.tickets}
        for ticket in self._admission.due(now):
            if ticket in by_ticket:
                by_ticket[ticket].say({"re": ticket, "go": True})
        why = self._admission.used_up
        for ticket in self._admission.refused():
            if ticket in by_ticket:
                by_ticket[ticket].say({"re": ticket, "go": False, "why": why})
        if self._alarm is not None:
            self._alarm.cancel()
        pause = self._admission.pause(now)
        self._alarm = None if pause is None else self._loop.call_later(pause + 0.001, self._move)


class _Worker:
    """One connected worker. `replaced`: another process does its job now; `goes_on`: the same one, over a newer connection."""

    def __init__(self, job: str, process: str, wire: Wire) -> None:
        self.job, self.process, self._wire = job, process, wire
        self.tickets: set[str] = set()
        self.asking: dict[str, asyncio.Task[None]] = {}
        self.done = self.replaced = self.goes_on = False

    def say(self, message: Json) -> None:
        """Tell the worker; what can't reach it any more is dropped."""
        with contextlib.suppress(WireError, OSError, RuntimeError):
            self._wire.send(message)
