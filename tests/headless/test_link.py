"""Hub and link: who knows the secret takes part, a lost connection is made again, and the default of every question is no."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

import pytest

from nbagent.core.errors import Interrupted, Overloaded, Spent
from nbagent.core.limits import Limits
from nbagent.core.messages import Json, Usage
from nbagent.core.ports import Answered, Approval, Preview, Question, Request
from nbagent.headless.hub import Hub, Nobody, OnLoop
from nbagent.headless.link import Link
from nbagent.headless.wire import LONGEST, Wire, WireError, greet
from nbagent.models.metered import Estimate, MeteredModel
from nbagent.models.scripted import ScriptedModel, Turn
from tests.support.turns import until, wait_until

pytestmark = pytest.mark.timeout(60)

SMALL = Estimate(10, 10, None)
APPROVAL = Approval("call_1", "shell", "Run ls", {"command": "ls"}, Preview("command", "ls"), "in mode default", ())


class Person(Nobody):
    """Hears all, and gives one answer."""

    def __init__(self, answered: Answered) -> None:
        self.events: list[Json] = []
        self.here: list[str] = []
        self.threads: set[str] = set()
        self._answered = answered

    def event(self, job: str, event: Json) -> None:
        self.events.append(event)

    def came(self, job: str) -> None:
        self.here.append(f"came {job}")

    def left(self, job: str) -> None:
        self.here.append(f"left {job}")

    async def ask(self, job: str, approval: Json) -> Answered:
        self.threads.add(threading.current_thread().name)
        return self._answered

    async def question(self, job: str, question: Json) -> str:
        return f"{job}: {question['choices'][0]}"


@contextmanager
def linked(hub: Hub, job: str = "j") -> Iterator[tuple[Link, list[str]]]:
    why: list[str] = []
    link = Link(hub.link(), job, why.append)
    link.start()
    try:
        yield link, why
    finally:
        link.close()


async def test_a_person_at_the_hub_is_asked_on_their_own_loop_and_told_what_happens() -> None:
    person = Person(Answered(True, words="go", edited=None))
    with Hub(OnLoop(person, asyncio.get_running_loop())) as hub:
        with linked(hub) as (link, _):
            assert await link.ask(APPROVAL) == Answered(True, words="go")
            assert await link.question(Question("q", "Which?", ("A", "B"))) == "j: A"
            for text in ("He", "llo", "x" * 50_000):
                link.event({"type": "text_delta", "turn": 1, "index": 0, "text": text})
            link.event({"type": "run_ended", "text": "whole"})
            await until(lambda: person.events and person.events[-1]["type"] == "run_ended")
        await until(lambda: person.here == ["came j", "left j"])
    assert person.threads == {threading.current_thread().name}
    assert "".join(event["text"] for event in person.events).startswith("Hello")
    assert len(json.dumps(person.events)) < 30_000


async def test_an_answer_counts_for_what_was_shown_only_and_nobody_means_no() -> None:
    with Hub(Person(Answered(True, edited="rm -r ."))) as hub, linked(hub) as (link, _):
        assert not (await link.ask(APPROVAL)).approved  # it may not be edited
        assert (await link.ask(replace(APPROVAL, editable=True))).edited == "rm -r ."
        huge = replace(APPROVAL, editable=True, preview=Preview("command", "x" * LONGEST))
        assert not (await link.ask(huge)).approved  # it could not be shown
    with Hub() as hub, linked(hub) as (link, _):
        assert not (await link.ask(APPROVAL)).approved
        assert await link.question(Question("q", "Which?", ("A",))) == ""


async def test_requests_are_counted_and_refused_once_the_budget_is_used_up() -> None:
    model = ScriptedModel([Turn("one", usage=Usage(40, 20)), Turn("two", usage=Usage(40, 20)), "three"])
    with Hub(limits=Limits(tokens=100)) as hub, linked(hub) as (link, _):
        metered = MeteredModel(model, link)
        for _ in range(2):
            assert [event["type"] async for event in metered.stream(Request("", (), ()))][-1] == "message_stop"
        with pytest.raises(Spent, match="100 tokens is used up"):
            [event async for event in metered.stream(Request("", (), ()))]
        assert (hub.spending.usage, hub.spending.requests, model.played) == (Usage(80, 40), 2, 2)
        assert not link.in_flight


async def test_one_worker_that_meets_an_overloaded_server_makes_all_wait() -> None:
    first = ScriptedModel([Overloaded("too much", retry_after=0.3)])
    with Hub() as hub, linked(hub, "a") as (a, _), linked(hub, "b") as (b, _):
        with pytest.raises(Overloaded):
            [event async for event in MeteredModel(first, a).stream(Request("", (), ()))]
        await b.question(Question("q", "", ("x",)))  # the word of the first is there by now
        began = asyncio.get_running_loop().time()
        await a.admit(SMALL)
        await b.admit(SMALL)
        assert asyncio.get_running_loop().time() - began > 0.1


async def test_a_stop_reaches_a_job_before_and_after_it_has_begun_and_no_other() -> None:
    with Hub() as hub, linked(hub, "a") as (a, why_a), linked(hub, "b") as (b, why_b):
        await a.admit(SMALL)
        hub.stop("a", "Enough.")
        hub.stop("c", "Not at all.")
        await until(lambda: why_a == ["Enough."])
        with pytest.raises(Interrupted):
            await a.admit(SMALL)
        await b.admit(SMALL)
        with linked(hub, "c") as (_, why_c):
            await until(lambda: why_c == ["Not at all."])
        assert why_b == []


async def test_a_lost_connection_is_made_again_and_nothing_counts_twice() -> None:
    person = Person(Answered(True))
    with Hub(person) as hub:
        carrier = await Carrier.start(hub.link())
        link = Link({**hub.link(), "port": carrier.port}, "j", lambda _: None)
        link.start()
        ticket = await link.admit(SMALL)
        carrier.cut()
        link.spent(ticket, Usage(7, 3), None)
        assert (await link.ask(APPROVAL)).approved
        assert await link.admit(SMALL) != ticket
        assert hub.spending.usage.total == 10
        link.close()
        await carrier.stop()
        assert person.here.count("came j") >= 2


ASKED: Json = {"op": "admit", "input": 10, "output": 10, "usd": None}


class Raw:
    """Connections to a hub as workers have them, spoken by hand; all are closed in the end."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._writers: dict[Wire, asyncio.StreamWriter] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for wire in list(self._writers):
            await self.end(wire)

    async def begin(self, job: str, process: str) -> Wire:
        address = self._hub.link()
        reader, writer = await asyncio.open_connection(address["host"], address["port"])
        wire = await greet(reader, writer, address["secret"], gives=False)
        self._writers[wire] = writer
        wire.send({"op": "hello", "job": job, "process": process})
        return wire

    async def end(self, wire: Wire) -> None:
        writer = self._writers.pop(wire)
        writer.close()
        await writer.wait_closed()

    async def heard(self) -> None:
        """Wait until the hub has heard all that was said before."""
        for number in range(3):
            wire = await self.begin(f"look {number}", "p")
            wire.send({"op": "question", "id": "1", "question": {}})
            await wire.receive()


async def test_an_old_connection_that_ends_late_takes_no_place_in_the_line_along() -> None:
    with Hub(limits=Limits(tokens=30)) as hub:
        async with Raw(hub) as raw, asyncio.timeout(10):
            other, old, new = await raw.begin("o", "p"), await raw.begin("j", "q"), await raw.begin("j", "q")
            other.send({**ASKED, "id": "o-1"})
            assert await other.receive() == {"re": "o-1", "go": True}
            old.send({**ASKED, "id": "q-1"})
            await raw.heard()
            new.send({**ASKED, "id": "q-1"})
            await raw.heard()
            await raw.end(old)
            await raw.heard()
            other.send({"op": "spent", "id": "o-1", "usage": {"input": 1, "output": 1}, "cost": None})
            assert await new.receive() == {"re": "q-1", "go": True}


async def test_what_a_dead_worker_had_under_way_holds_nobody_up_once_its_job_is_begun_anew() -> None:
    with Hub(limits=Limits(tokens=30), patience=0.2) as hub:
        async with Raw(hub) as raw, asyncio.timeout(10):
            dead = await raw.begin("j", "dead")
            dead.send({**ASKED, "id": "dead-1"})
            assert await dead.receive() == {"re": "dead-1", "go": True}
            await raw.end(dead)
            again = await raw.begin("j", "again")
            again.send({**ASKED, "id": "again-1"})
            assert await again.receive() == {"re": "again-1", "go": True}
        assert hub.spending.usage.total == 10  # its prompt was read


async def test_a_hub_that_is_gone_ends_the_job_and_lets_no_request_through() -> None:
    hub = Hub(patience=0.3).start()
    with linked(hub) as (link, why):
        await link.admit(SMALL)
        hub.close()
        refused = asyncio.ensure_future(link.admit(SMALL))
        await until(lambda: bool(why))
        with pytest.raises(Interrupted):
            await refused
        assert not (await link.ask(APPROVAL)).approved
    assert len(why) == 1
    assert "gone" in why[0]


async def test_who_does_not_know_the_secret_or_changes_a_line_takes_no_part() -> None:
    heard = Person(Answered(True))
    with Hub(heard) as hub:
        address = hub.link()
        reader, writer = await asyncio.open_connection(address["host"], address["port"])
        with pytest.raises(WireError):
            await greet(reader, writer, "00" * 32, gives=False)
        writer.close()
        reader, writer = await asyncio.open_connection(address["host"], address["port"])
        wire = await greet(reader, writer, address["secret"], gives=False)
        wire.send({"op": "hello", "job": "j", "process": "p"})
        await until(lambda: heard.here == ["came j"])
        writer.write(b"0" * 32 + b'{"op":"event","event":{"type":"noted"}}\n')
        assert await wire.receive() is None
        writer.close()
        assert heard.events == []


def test_a_hub_can_be_closed_with_workers_connected() -> None:
    hub = Hub(patience=0.1).start()
    with linked(hub) as (_, why):
        wait_until(lambda: hub.working == ("j",))
        hub.close()
        wait_until(lambda: bool(why))


class Carrier:
    """Carries connections to a hub, and can cut them."""

    def __init__(self, to: Json) -> None:
        self._to = to
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @classmethod
    async def start(cls, to: Json) -> Carrier:
        made = cls(to)
        made._server = server = await asyncio.start_server(made._carry, "127.0.0.1", 0)
        made.port = server.sockets[0].getsockname()[1]
        return made

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._to["host"], self._to["port"])
        self._writers += [writer, back]
        for source, target in ((reader, back), (there, writer)):
            task = asyncio.ensure_future(self._pass(source, target))
            self._tasks.add(task)

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                target.write(data)
        except OSError:
            pass
        target.close()
