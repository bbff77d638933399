"""The queue of the main thread by itself, on a plain loop: who comes first, what is told, and that it never sticks."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import Context
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.ports import Ran
from nbagent.core.tools import Call, Kind, tool
from nbagent.jupyter.mainthread import MainThread
from nbagent.jupyter.queued import QueuedKernel, queued_tool
from tests.support.turns import turns, until

SOON = 6  # turns of the loop in which all that is due has happened


class Crowd:
    """Tasks that want a turn each, have it until they are told to end, and write down what happens."""

    def __init__(self) -> None:
        self.main = MainThread(None)
        self.inside: list[str] = []
        self.began: list[str] = []
        self.told: list[tuple[str, str]] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}

    async def come(self, who: str) -> None:
        self._ends[who] = asyncio.Event()
        self.tasks[who] = asyncio.create_task(self._turn(who))
        await turns(SOON)

    async def _turn(self, who: str) -> None:
        async with self.main.turn(who, lambda text: self.told.append((who, text))):
            self.began.append(who)
            self.inside.append(who)
            try:
                await self._ends[who].wait()
            finally:
                self.inside.remove(who)

    async def end(self, who: str) -> None:
        self._ends[who].set()
        await self.tasks[who]
        await turns(SOON)

    async def stop(self, *names: str) -> None:
        for who in names:
            self.tasks[who].cancel()
        await asyncio.wait([self.tasks[who] for who in names])
        await turns(SOON)


async def test_who_comes_first_has_the_turn_first_and_the_others_read_whom_they_wait_for():
    crowd = Crowd()
    for who in ("a", "b", "c"):
        await crowd.come(who)
    assert (crowd.main.holder, crowd.main.waiting, crowd.inside) == ("a", ("b", "c"), ["a"])
    await crowd.end("a")
    assert (crowd.main.holder, crowd.main.waiting, crowd.inside) == ("b", ("c",), ["b"])
    await crowd.end("b")
    await crowd.end("c")
    assert (crowd.main.holder, crowd.main.waiting, crowd.began) == ("", (), ["a", "b", "c"])
    assert crowd.told == [
        ("b", "waits for a"), ("c", "waits for a"), ("c", "waits for b"), ("b", ""), ("c", "")
    ]  # fmt: skip


async def test_who_is_stopped_while_waiting_leaves_the_line_and_nobody_waits_for_it():
    crowd = Crowd()
    for who in ("a", "b", "c"):
        await crowd.come(who)
    await crowd.stop("b")
    assert crowd.main.waiting == ("c",) and ("b", "") in crowd.told
    await crowd.end("a")
    assert crowd.inside == ["c"]


async def test_who_is_stopped_in_the_moment_in_which_its_turn_comes_gives_it_on():
    crowd, go = Crowd(), asyncio.Event()

    async def stops_the_next() -> None:
        async with crowd.main.turn("a"):
            await go.wait()
        assert crowd.main.holder == "b"
        crowd.tasks["b"].cancel()

    first = asyncio.create_task(stops_the_next())
    await turns(SOON)
    await crowd.come("b")
    await crowd.come("c")
    go.set()
    await first
    await turns(SOON)
    assert (crowd.inside, crowd.began) == (["c"], ["c"])


async def test_a_listener_that_fails_does_not_stop_the_line():
    crowd, heard = Crowd(), asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda *_: heard.set())

    def fails(_: str) -> None:
        raise ValueError("the view is gone")

    async def one() -> None:
        async with crowd.main.turn("b", fails):
            crowd.began.append("b")

    await crowd.come("a")
    task = asyncio.create_task(one())
    await turns(SOON)
    await crowd.end("a")
    await task
    assert crowd.began == ["a", "b"] and heard.is_set() and crowd.main.holder == ""


async def test_a_turn_inside_of_a_turn_is_the_same_turn():
    main = MainThread(None)
    async with main.turn("a"), main.turn("a"):
        assert (main.holder, main.waiting) == ("a", ())
    assert main.holder == ""


async def test_what_was_started_in_a_turn_takes_its_own_when_that_is_over():
    crowd, main, began = Crowd(), MainThread(None), asyncio.Event()
    crowd.main = main

    async def later() -> None:
        await began.wait()
        async with main.turn("later"):
            crowd.began.append("later")

    async with main.turn("first"):
        task = asyncio.create_task(later())
    await crowd.come("b")
    began.set()
    await turns(SOON)
    assert main.waiting == ("later",)
    await crowd.end("b")
    await task
    assert crowd.began == ["b", "later"]


async def test_a_lent_turn_lets_the_named_in_one_by_one_and_is_over_when_the_last_has_ended():
    crowd = Crowd()
    left = asyncio.Event()

    async def lender() -> None:
        async with crowd.main.turn("lender"):
            await turns(SOON)
            async with crowd.main.lend("a", "b"):
                await wanted.wait()
            left.set()
            await done.wait()

    wanted, done = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(lender())
    for who in ("x", "a", "b"):
        await crowd.come(who)
    await until(lambda: crowd.inside == ["a"])
    assert (crowd.main.holder, crowd.main.waiting) == ("a", ("x", "b"))
    wanted.set()
    await turns(SOON)
    assert not left.is_set(), "the lender goes on while a lent turn is under way"
    await crowd.end("a")
    await until(left.is_set)
    assert (crowd.main.holder, crowd.inside) == ("lender", []), "b came in although the loan is over"
    done.set()
    await task
    await turns(SOON)
    assert crowd.inside == ["x"]


async def test_a_lender_that_is_stopped_twice_leaves_the_turn_to_whom_it_was_lent():
    crowd = Crowd()

    async def lender() -> None:
        async with crowd.main.turn("lender"), crowd.main.lend():
            await asyncio.Event().wait()

    task = asyncio.create_task(lender())
    await turns(SOON)
    await crowd.come("a")
    await crowd.come("x")
    for _ in range(2):
        task.cancel()
        await turns(SOON)
    with suppress(asyncio.CancelledError):
        await task
    assert (crowd.main.holder, crowd.main.waiting) == ("a", ("x",))
    await crowd.end("a")
    assert crowd.inside == ["x"]


async def test_without_a_turn_there_is_nothing_to_lend():
    crowd = Crowd()
    await crowd.come("a")
    async with crowd.main.lend():
        await crowd.come("b")
    assert (crowd.inside, crowd.main.waiting) == (["a"], ("b",))


NAMES = st.sampled_from("abcdef")
STEPS = st.lists(st.tuples(st.sampled_from(["come", "end", "stop", "stop two"]), NAMES, NAMES), max_size=40)


@given(STEPS)
def test_whatever_happens_in_whatever_order_one_runs_at_a_time_and_the_line_is_kept(steps: list[tuple[str, str, str]]):
    asyncio.run(_happens(steps))


async def _happens(steps: list[tuple[str, str, str]]) -> None:
    crowd, line = Crowd(), list[str]()
    for deed, who, other in steps:
        if deed == "come" and who not in line:
            await crowd.come(who)
            line.append(who)
        elif deed == "end" and line:
            await crowd.end(line.pop(0))
        elif deed.startswith("stop") and who in line:
            names = [who, *([other] if deed == "stop two" and other in line and other != who else [])]
            await crowd.stop(*names)
            line = [one for one in line if one not in names]
        assert crowd.inside == line[:1]
        assert ((crowd.main.holder,) if line else (), crowd.main.waiting) == (tuple(line[:1]), tuple(line[1:]))
    if line:
        await crowd.stop(*line)
    assert (crowd.main.holder, crowd.main.waiting) == ("", ())


# ── the wrappers ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Kernel:
    """A kernel that runs nothing until it is told to; `log` has what was asked of it."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.go = asyncio.Event()

    def namespace(self) -> dict[str, Any]:
        return {"x": 1}

    async def run(self, code: str, *, emit: Any, timeout: float | None) -> Ran:
        self.log.append(f"run {code}")
        await self.go.wait()
        return Ran("ok", (), 1, 0.0)

    async def scratch(self, code: str, *, timeout: float | None, emit: Any = None) -> Ran:
        self.log.append(f"scratch {code}")
        await self.go.wait()
        return Ran("ok", (), None, 0.0)


async def test_code_and_tools_of_an_agent_wait_for_their_turn_and_say_so():
    main, kernel, told = MainThread(None), Kernel(), list[str]()
    queued = QueuedKernel(kernel, main, "Explore (dates)", told.append)

    @tool(kind=Kind.READ, title=lambda _: "look")
    async def look(_call: Call) -> str:
        """Look."""
        kernel.log.append("tool")
        return "seen"

    waits = queued_tool(look, main, "Plan (cuts)", told.append)
    crowd = Crowd()
    crowd.main = main
    await crowd.come("In[7]")
    deeds = [
        asyncio.create_task(queued.run("a", emit=lambda _: None, timeout=None)),
        asyncio.create_task(queued.scratch("b", timeout=None)),
        asyncio.create_task(waits.run(Call("1", "look", {}), {})),
    ]
    await turns(SOON)
    assert (kernel.log, told) == ([], ["waits for In[7]"] * 3)
    assert main.waiting == ("Explore (dates)", "Explore (dates)", "Plan (cuts)")
    assert queued.namespace() == {"x": 1}
    await crowd.end("In[7]")
    await until(lambda: kernel.log == ["run a"])
    kernel.go.set()
    await asyncio.gather(*deeds)
    assert kernel.log == ["run a", "scratch b", "tool"]
    assert waits.name == "look" and waits.schema == look.schema


async def test_code_that_is_stopped_while_it_waits_never_runs():
    crowd, kernel = Crowd(), Kernel()
    await crowd.come("In[7]")
    queued = QueuedKernel(kernel, crowd.main, "Explore (dates)")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await queued.run("a", emit=lambda _: None, timeout=None)
    await crowd.end("In[7]")
    assert (kernel.log, crowd.main.holder, crowd.main.waiting) == ([], "", ())


@pytest.mark.slow
async def test_a_tool_that_looks_does_so_while_code_of_the_same_agent_awaits() -> None:
    main, told = MainThread(object()), list[str]()

    @tool
    async def look(_call: Call) -> str:
        """Look."""
        return "seen"

    mine = queued_tool(look, main, "Explore (dates)", told.append, looks=True)
    async with main.turn("Explore (dates)"):
        async with asyncio.timeout(10):
            assert await asyncio.create_task(mine.run(Call("1", print, print), {}), context=Context())
    assert told == []
