"""The kernel's half of the bridge: asks the page that shows the notebook to do things, and waits for its answer by id.

Protocol (version 1, custom messages of one comm). Kernel to page: `{v, id?, op, page?, ...}`; page to kernel:
`{v, id, page, path, ok: true, result}` or `{v, id, page, path, ok: false, error, code, more?}`, and unasked `ready`, `bye`,
`moved`, `cell-gone` and `resend`. One page writes: the page that answered the hello holds the lease, requests carry its
id, other pages ignore them. A page that goes or stops answering loses the lease, and whoever answers the next hello gets
it; every operation is made so that doing it twice does it once. Of the requests only `hello` and `follow` are for all
pages. No wait depends on a single message, and each has a bound.

Must not know of agents, models, cells' meaning or approvals. Read `Bridge.hello`, then `Bridge.call`; the page's half
is static/bridge.js, the one inside nbclient nbagent/headless/page.py.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from nbagent.core.errors import NotebookError, Unsure
from nbagent.core.messages import Json
from nbagent.jupyter.channel import VERSION, Channel, Hello, PageRefused, WidgetChannel

HELLO_AT = (0.0, 0.5, 1.5, 3.0)
"""Seconds at which the hello is sent: the first is lost on some kernels (measured on 7.2), the second is not."""
HELLO_TOTAL = 3.5
BETTER_PAGE = 0.4
"""Seconds to wait for the page that has the document and started the cell, after another one has answered."""
CALL_TIMEOUT = 12.0
HURRIED = 2.0
"""Seconds for which a page is waited for when the run was stopped: nobody wants to wait for the end of that."""
ALIVE_TIMEOUT = 2.0
"""Seconds in which the page with the lease must show that it is there, when another one has come."""

PAGE_GONE = "the page that shows the notebook does not answer: it was closed, or is still loading"
CLOSED = "the connection to the notebook's page is closed, because this run has ended"


@dataclass(slots=True)
class _Waiting:
    future: asyncio.Future[Json]
    page: str


class Bridge:
    """One run's connection to the page. Make it on the running loop; `cell` is the running cell's id, if known.

    Pages that have a document without that cell never get the lease: one kernel may serve two notebooks.
    """

    def __init__(self, channel: Channel | None = None, *, cell: str | None = None) -> None:
        self.cell = cell
        self.lease: Hello | None = None
        self.heard = False  # whether any page has said anything
        self._loop = asyncio.get_running_loop()
        self._ids = (f"{uuid.uuid4().hex[:8]}-{n}" for n in itertools.count())
        self._lock = threading.Lock()
        self._waiting: dict[str, _Waiting] = {}
        self._hellos: set[str] = set()
        self._answers: asyncio.Queue[Hello] = asyncio.Queue()
        self._asking = asyncio.Lock()
        self._resend: dict[str, Callable[[], None]] = {}
        self._path = self._session = ""
        self._on_gone: Callable[[], None] = lambda: None
        self._beside = False
        self._led = asyncio.Event()
        self._checking: asyncio.Task[None] | None = None
        self._closed = False
        self._within: float | None = None
        self._given_up = False
        self._channel = channel if channel is not None else WidgetChannel()
        self._channel.on_message(self._receive)

    @property
    def path(self) -> str:
        """The notebook's path as the page said it last: it stays with the document when that is renamed."""
        return self._path

    @property
    def document(self) -> str:
        """What the notebook is known by as long as the kernel lives, under any name: its server session, else its path."""
        return self._session or self._path

    # ── asking ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def hello(self, at: Iterable[float] = HELLO_AT, total: float = HELLO_TOTAL) -> Hello | None:
        """Ask who is there until a page answers; give it the lease and return what it said. None: nobody in time.

        `at` are the seconds from now at which to ask, `total` the seconds after which to give up. Where a page holds
        the lease already, that page is returned.
        """
        async with self._asking:
            return self.lease or await self._search(at, total)

    async def _search(self, at: Iterable[float], total: float) -> Hello | None:
        begin = time.monotonic()
        asks = sorted(at)
        second: Hello | None = None
        deadline = begin + total
        while not self._closed and time.monotonic() < deadline:
            if asks and time.monotonic() >= begin + asks[0]:
                asks.pop(0)
                self._send_hello()
            until = min(deadline, begin + asks[0]) if asks else deadline
            answer = await self._next_answer(until - time.monotonic())
            if answer is None:
                continue
            if answer.fits(self.cell) and (answer.running or self.cell is None):
                return self._give_lease(answer)
            if (answer.fits(self.cell) and not (second and second.document)) or (
                second is None and not answer.lacks(self.cell)
            ):
                second, deadline = answer, min(deadline, time.monotonic() + BETTER_PAGE)
        return self._give_lease(second) if second is not None else None

    async def call(self, op: str, *, timeout: float = CALL_TIMEOUT, retry: bool = True, **arguments: Any) -> Json:
        """Do one operation in the page that holds the lease and return its result.

        An operation that is not answered in `timeout` seconds is repeated once with `retry: true`, in whichever page
        answers a new hello. Raises NotebookError with a sentence where the page refuses or none answers.
        """
        hello = self.lease or await self._find_page()
        try:
            return await self._ask(hello, op, arguments, min(timeout, self._within or timeout))
        except TimeoutError:
            self._take_lease(hello)
        if self._within is not None:
            self._given_up = True
            raise Unsure(PAGE_GONE)
        hello = await self._find_page()
        if not retry:
            raise Unsure(PAGE_GONE)
        try:
            return await self._ask(hello, op, {**arguments, "retry": True}, timeout)
        except TimeoutError:
            self._take_lease(hello)
            raise Unsure(PAGE_GONE) from None

    def hurry(self, within: float = HURRIED) -> None:
        """From now on wait `within` seconds at most, also for what is asked already, and do not look twice for a page.

        A page that comes by itself is taken all the same.
        """
        if self._within is not None or self._closed:
            return
        self._within = within
        with self._lock:
            asked = [item.future for item in self._waiting.values()]
        self._loop.call_later(within, lambda: [self._fail(future, TimeoutError()) for future in asked])

    async def led(self) -> Hello:
        """Wait until a page holds the lease, and return what it said; without end where none ever comes."""
        while (hello := self.lease) is None:
            self._led.clear()
            await self._led.wait()
        return hello

    def follow(self) -> None:
        """Have the other pages of this notebook show what its file holds now; those with unsaved changes stay as they are."""
        if (hello := self.lease) is not None and not self._closed:
            message = {"v": VERSION, "op": "follow", "except": hello.page, "path": self._path, "session": self._session}
            self._channel.send(message)

    def on_cell_gone(self, callback: Callable[[], None]) -> None:
        """Call `callback`, on the loop, when the page with the lease says that the running cell is not there any more."""
        self._on_gone = callback

    def cell_ended(self) -> None:
        """Say that the cell has ended and its run goes on beside it: whoever runs it anew sees the run's view in it again."""
        self._beside = True
        self.tell("beside")

    def tell(self, op: str, **arguments: Any) -> None:
        """Send an operation that needs no answer, from any thread; lost where no page holds the lease."""
        hello = self.lease
        if hello is not None and not self._closed:
            self._channel.send({"v": VERSION, "op": op, "page": hello.page, **arguments})

    def on_resend(self, run: str, callback: Callable[[], None] | None) -> None:
        """Call `callback`, on any thread, when a page has missed a piece of `run` or a new page took over."""
        with self._lock:
            self._resend.pop(run, None)
            if callback is not None:
                self._resend[run] = callback

    def close(self) -> None:
        """End all that waits with an error, and the comm with it. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        with self._lock:
            waiting, self._waiting = list(self._waiting.values()), {}
            self._resend.clear()
        if self._checking is not None:
            self._checking.cancel()
        for item in waiting:
            self._fail(item.future, Unsure(CLOSED))
        self._channel.close()

    async def _find_page(self) -> Hello:
        if self._closed:
            raise Unsure(CLOSED)
        if self._given_up:
            raise Unsure(PAGE_GONE)
        hello = await self.hello(total=self._within or HELLO_TOTAL)
        if self._closed:
            raise Unsure(CLOSED)
        if hello is None:
            self._given_up = self._within is not None
            raise Unsure(PAGE_GONE)
        return hello

    async def _ask(self, hello: Hello, op: str, arguments: Json, timeout: float) -> Json:
        if self._closed:
            raise Unsure(CLOSED)
        future: asyncio.Future[Json] = self._loop.create_future()
        key = next(self._ids)
        with self._lock:
            self._waiting[key] = _Waiting(future, hello.page)
        try:
            self._channel.send({"v": VERSION, "id": key, "op": op, "page": hello.page, **arguments})
            reply = await asyncio.wait_for(future, timeout)
        finally:
            with self._lock:
                self._waiting.pop(key, None)
        if reply.get("ok") is True:
            result = reply.get("result")
            return result if isinstance(result, dict) else {}
        raise PageRefused.of(reply)

    # ── the lease ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _send_hello(self) -> None:
        key = next(self._ids)
        with self._lock:
            self._hellos.add(key)
        self._channel.send({"v": VERSION, "id": key, "op": "hello", "cell": self.cell, "beside": self._beside})

    async def _next_answer(self, seconds: float) -> Hello | None:
        try:
            return await asyncio.wait_for(self._answers.get(), max(seconds, 0))
        except TimeoutError:
            return None

    def _give_lease(self, answer: Hello) -> Hello:
        changed = self.lease is None or self.lease.page != answer.page
        self.lease = answer
        self._path, self._session = answer.path, answer.session
        self._led.set()
        while not self._answers.empty():
            self._answers.get_nowait()
        with self._lock:
            self._hellos.clear()  # who answers from now on is too late
            callbacks = list(self._resend.values()) if changed else []
        for callback in callbacks:
            callback()
        return answer

    def _take_lease(self, hello: Hello) -> None:
        if self.lease is hello:
            self.lease = None

    # ── hearing: on any thread ──────────────────────────────────────────────────────────────────────────────────────

    def _receive(self, content: Any) -> None:
        if self._closed or not isinstance(content, dict) or content.get("v") != VERSION:
            return
        self.heard = True
        key, page = content.get("id"), str(content.get("page") or "")
        if (path := content.get("path")) and self.lease is not None and self.lease.page == page:
            self._path = str(path)
        if isinstance(key, str):
            self._take_answer(key, page, content)
        elif content.get("op") == "resend":
            with self._lock:
                callback = self._resend.get(str(content.get("run")))
            if callback is not None:
                callback()
        elif (op := content.get("op")) in ("bye", "ready", "cell-gone"):
            self._on_loop(lambda: self._page_moved(str(op), page))

    def _take_answer(self, key: str, page: str, content: Json) -> None:
        with self._lock:
            is_hello = key in self._hellos
            waiting = self._waiting.get(key)
            if waiting is not None and waiting.page == page:
                del self._waiting[key]
            else:
                waiting = None
        if is_hello and content.get("ok") is True and isinstance(content.get("result"), dict):
            answer = Hello.of(page, content["result"])
            self._on_loop(lambda: self._page_answered(answer))
        elif waiting is not None:
            self._on_loop(lambda: waiting.future.done() or waiting.future.set_result(content))

    def _page_answered(self, answer: Hello) -> None:
        if self._closed or self.lease is not None:
            return
        if self._asking.locked():
            self._answers.put_nowait(answer)
        elif answer.fits(self.cell):  # a page that came back by itself
            self._give_lease(answer)

    def _page_moved(self, op: str, page: str) -> None:
        """A page with the lease that says goodbye gives it back at once, and another may take it."""
        if self._closed:
            return
        holds = self.lease is not None and self.lease.page == page
        if op == "cell-gone" and holds:
            self._on_gone()
        elif op == "bye" and holds:
            self._hand_on()
        elif op == "ready" and self.lease is None:
            self._send_hello()
        elif op == "ready" and not holds and self._checking is None:
            # the page with the lease may have gone without a word: a closed panel has no connection left to say it
            self._checking = self._loop.create_task(self._check())

    async def _check(self) -> None:
        hello = self.lease
        try:
            if hello is not None:
                await self._ask(hello, "ping", {}, ALIVE_TIMEOUT)
        except TimeoutError:
            if self.lease is hello:
                self._hand_on()
        except NotebookError:  # it is there, or this run has ended
            pass
        finally:
            self._checking = None

    def _hand_on(self) -> None:
        """Take the lease away; what the page still owes is asked again, and the pages are asked who takes it."""
        lost, self.lease = self.lease, None
        with self._lock:
            owed = [item.future for item in self._waiting.values() if lost is not None and item.page == lost.page]
        for future in owed:
            self._fail(future, TimeoutError())
        self._send_hello()

    def _on_loop(self, act: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    def _fail(self, future: asyncio.Future[Json], error: Exception) -> None:
        self._on_loop(lambda: future.done() or future.set_exception(error))
