"""A notebook with nbagent in a real JupyterLab, whose kernel outlives a test, and a model played over real HTTP.

Each test finds a clean notebook and a `MessagesServer` of its own, but the page and the kernel are those of the test
before, which is what a person has too: a run must leave both fit for the next. Where a test breaks them, the next one
gets new ones. Read `Desk.ask` first.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.browser.page import PATIENCE, Notebook
from tests.support.messages_server import MessagesServer, Seen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from playwright.async_api import Locator

    from tests.browser.lab import Lab
    from tests.support.messages_replies import Scripted

KEY = "sk-test-of-nbagent"
LOAD = "%load_ext nbagent"


def environment(server: MessagesServer, **more: str) -> dict[str, str]:
    """The environment of a kernel that asks `server`, each time: the same task in the next test is no finished run."""
    return {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY, "NBAGENT_RERUN": "live", **more}


class Desk:
    """A notebook, and the server that plays its model. Cell 0 loads nbagent."""

    def __init__(self, notebook: Notebook, server: MessagesServer) -> None:
        self.notebook = notebook
        self.server = server

    async def set_env(self, **values: str | None) -> None:
        """Set variables in the kernel's environment; None takes one away."""
        changes = json.dumps(values)
        await self.notebook.evaluate(
            f"[__import__('os').environ.pop(k, None) if v is None else __import__('os').environ.__setitem__(k, v) "
            f"for k, v in __import__('json').loads({changes!r}).items()]"
        )

    async def lay(self, *cells: str) -> None:
        """Put `cells` below cell 0, in place of all that is there."""
        sources = json.dumps(list(cells))
        await self.notebook.js(
            "const all = shared(); all.transact(() => { all.deleteCellRange(1, all.cells.length);"
            f"all.insertCells(1, {sources}.map(source => ({{cell_type: 'code', source, metadata: {{trusted: true}}}}))) }})"
        )

    async def ask(self, *replies: Scripted, line: str = "", task: str = "do it", new: bool = True) -> int:
        """Add an agent cell at the end, start it with `replies` as what the model says; return its number."""
        self.server.push(*replies)
        options = " ".join(part for part in ("--new" if new else "", line) if part)
        cell = await self.notebook.add(f"%%agent {options}\n{task}".replace(" \n", "\n"))
        await self.start(cell)
        return cell

    async def start(self, cell: int) -> None:
        """Run a cell and return at once; `done` waits for it."""
        await self.notebook.activate(cell)
        await self.notebook.js(
            "window.__done = window.jupyterapp.commands.execute('notebook:run-cell').then(() => performance.now())"
        )

    async def done(self, *, patience: float = PATIENCE) -> float:
        """Return when the started cell is done: when that was, in ms of the page's clock."""
        async with asyncio.timeout(patience):
            ended: float = await self.notebook.js("return window.__done")
        return ended

    async def seconds(self, action: Callable[[], Awaitable[Any]]) -> float:
        """Do `action` and return the seconds from then to the end of the started cell."""
        await self.notebook.js(
            "window.__began = 0; for (const kind of ['pointerdown', 'keydown'])"
            "document.addEventListener(kind, () => window.__began ||= performance.now(), {capture: true, once: true})"
        )
        asked = await self.notebook.now()
        await action()
        ended = await self.done()
        return (ended - (await self.notebook.page.evaluate("window.__began") or asked)) / 1000

    async def approve(self, cell: int) -> None:
        """Click Approve as soon as a click counts."""
        await self.notebook.click(cell, "Approve")

    async def requests(self, count: int) -> list[Seen]:
        """Return the requests to the model, when there are `count`."""
        return await asyncio.to_thread(self.server.wait_for_requests, count)

    def results(self, request: int) -> str:
        """The text of the tool results in the last message of a request."""
        content = self.server.requests[request].body["messages"][-1]["content"]
        return "\n".join(json.dumps(block["content"], ensure_ascii=False) for block in content if "content" in block)

    def view(self, cell: int) -> Locator:
        """The live view in a cell's output."""
        return self.notebook.output(cell).locator(".nbagent-view")

    def card(self, cell: int) -> Locator:
        """The card that asks the person, in a cell's output."""
        return self.view(cell).locator(".nbagent-card")

    async def works(self) -> None:
        """Fail unless the next `%%agent` works: it makes a cell that computes in the same kernel."""
        from tests.support.messages_server import calls, say

        cell = await self.ask(calls("run_python", code="print(6 * 7)"), say("It works."))
        await self.approve(cell)
        await self.done()
        assert "42" in self.results(-1)
        await self.notebook.see(cell, "It works.")


class Desks:
    """Keeps one page and kernel for the tests that follow each other, as long as they are fit."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._open: Any = None
        self._notebook: Notebook | None = None

    @asynccontextmanager
    async def desk(self) -> AsyncIterator[Desk]:
        """A desk with an empty notebook; after a failure its page and kernel are given up."""
        with MessagesServer() as server:
            if self._notebook is None:
                self._open = self._lab.open([LOAD], env=environment(server))
                self._notebook = await self._open.__aenter__()
                await self._notebook.run(0)
            desk = Desk(self._notebook, server)
            await desk.set_env(**environment(server), NBAGENT_MODE=None)
            await desk.lay()
            try:
                yield desk
                self._notebook.check_own_errors()
                async with asyncio.timeout(PATIENCE):  # nothing runs any more
                    assert "nbagent" in await desk.notebook.evaluate("get_ipython().extension_manager.loaded")
                server.assert_clean()
            except BaseException as error:
                await self._give_up(error)
                raise

    async def _give_up(self, error: BaseException) -> None:
        manager, self._open, self._notebook = self._open, None, None
        try:
            await manager.__aexit__(type(error), error, error.__traceback__)
        except BaseException as same:
            if same is not error:
                raise

    async def close(self) -> None:
        """Close the page and end the kernel."""
        if self._open is not None:
            await self._open.__aexit__(None, None, None)


@asynccontextmanager
async def agent_notebook(lab: Lab, server: MessagesServer, *cells: str, **options: Any) -> AsyncIterator[Desk]:
    """A page and kernel of their own, nbagent loaded in cell 0, then `cells`."""
    env = environment(server, **options.pop("env", {}))
    async with lab.open([LOAD, *cells], env=env, **options) as notebook:
        await notebook.run(0)
        yield Desk(notebook, server)
