"""However a run is stopped, it stops at once, the kernel lives, and the next `%%agent` works.

Each of them would go on without end: that it is done at all is what stopped it. `make bench` holds it to a second.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page import PATIENCE
from tests.support.messages_server import Reply, Silence, calls

if TYPE_CHECKING:
    from tests.browser.desk import Desk

pytestmark = pytest.mark.timeout(120)

AT_ONCE = PATIENCE / 2  # seconds: this machine may be many times slower at any moment, so only what does not come fails
LOOP = "print('it loops')\nwhile True: pass"


async def run_endless_code(desk: Desk) -> int:
    """Start a run whose agent loops without end in synchronous code; return the number of its cell."""
    await desk.set_env(NBAGENT_MODE="bypass")
    agent = await desk.ask(calls("add_cell", source=LOOP))
    await desk.notebook.see(agent + 1, "it loops")
    return agent


async def test_stop_ends_synchronous_code_for_the_page_interrupts_the_kernel_itself(desk: Desk) -> None:
    agent = await run_endless_code(desk)
    seconds = await desk.seconds(lambda: desk.notebook.click(agent, "Stop"))
    assert seconds <= 2 * AT_ONCE  # the page first waits a moment for the kernel to take the click
    await desk.notebook.see(agent, "Stopped by you.")
    await desk.set_env(NBAGENT_MODE=None)
    await desk.works()


async def test_jupyterlabs_interrupt_ends_a_loop_of_the_agent_and_nothing_else(desk: Desk) -> None:
    agent = await run_endless_code(desk)
    seconds = await desk.seconds(desk.notebook.interrupt)
    assert seconds <= AT_ONCE
    assert "stopped: interrupted by hand" in await desk.notebook.text(agent + 1)
    await desk.notebook.see(agent, "Stopped by you.")
    await desk.set_env(NBAGENT_MODE=None)
    await desk.works()


@pytest.mark.parametrize("silence", [Silence(), Reply("a b c d e f", ping_after=3), Reply("a b c d e f", hang_after=6)],
                         ids=["no-answer", "pings", "hanging"])  # fmt: skip
async def test_stop_ends_a_silent_stream_at_once(desk: Desk, silence: Silence | Reply) -> None:
    agent = await desk.ask(silence)
    [seen] = await desk.requests(1)
    assert await desk.seconds(lambda: desk.notebook.click(agent, "Stop")) <= AT_ONCE
    await desk.notebook.see(agent, "Stopped by you.")
    if not (isinstance(silence, Reply) and silence.ping_after):  # there the server sees a broken pipe instead
        assert await asyncio.to_thread(seen.gone.wait, PATIENCE), "the connection is closed"


async def test_jupyterlabs_interrupt_ends_a_silent_stream_at_once(desk: Desk) -> None:
    agent = await desk.ask(Silence())
    await desk.requests(1)
    assert await desk.seconds(desk.notebook.interrupt) <= AT_ONCE
    await desk.notebook.see(agent, "Stopped by you.")
    await desk.works()


async def test_jupyterlabs_interrupt_while_the_person_is_asked_ends_the_run(desk: Desk) -> None:
    agent = await desk.ask(calls("add_cell", source="never = 1"))
    await expect(desk.notebook.button(agent, "Approve")).to_be_enabled()
    assert await desk.seconds(desk.notebook.interrupt) <= AT_ONCE
    await desk.notebook.see(agent, "Stopped by you.")
    assert "never = 1" not in await desk.notebook.sources()
    await desk.works()


async def test_stop_while_the_person_is_asked_ends_the_run(desk: Desk) -> None:
    agent = await desk.ask(calls("add_cell", source="never = 1"))
    await expect(desk.notebook.button(agent, "Approve")).to_be_enabled()
    assert await desk.seconds(lambda: desk.notebook.click(agent, "Stop")) <= AT_ONCE
    await desk.notebook.see(agent, "Stopped by you.")
    assert await desk.notebook.evaluate("'never' in globals()") == "False"
