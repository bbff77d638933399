"""Fixtures of the browser tests: one browser and one JupyterLab a worker, one notebook and kernel a test.

All browser tests of a worker share its session's event loop (the browser lives on it) and its home; workers share nothing.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

from tests.browser.desk import Desk, Desks
from tests.browser.lab import Lab, start_browser
from tests.browser.page import PATIENCE, SLOWER
from tests.support.messages_server import MessagesServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator

    from playwright.async_api import Browser

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            item.add_marker(pytest.mark.browser)
            if SLOWER > 1 and (limit := item.get_closest_marker("timeout")):
                item.add_marker(pytest.mark.timeout(limit.args[0] * SLOWER), append=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Let nothing be finalized while pytest words a failure.

    It parses source for that, and so does the word of a browser's future that nobody awaited; Python up to 3.11.7 can't do
    the one in the other ("AST constructor recursion depth mismatch"), which took the whole worker down.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The system's Chromium, headless."""
    async with async_playwright() as playwright:
        expect.set_options(timeout=PATIENCE * 1000)
        browser = await start_browser(playwright)
        yield browser
        await browser.close()


@pytest.fixture(scope="session")
def lab_server(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Lab]:
    """One JupyterLab (with --front-end notebook: Notebook 7) for the session."""
    lab = Lab(tmp_path_factory.mktemp("lab"), browser, pytestconfig.getoption("--front-end"))
    try:
        yield lab.start()
    finally:
        lab.stop()


@pytest.fixture
def lab(lab_server: Lab) -> Lab:
    """The session's JupyterLab, with nothing in the kernels' environment from the test before."""
    lab_server.set_env({})
    return lab_server


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    """The model, played over HTTP; at the end all that it was asked was right, and all that was scripted was said."""
    with MessagesServer() as running:
        yield running
        running.assert_clean()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def desks(lab_server: Lab) -> AsyncIterator[Desks]:
    """The page and kernel that tests with a `desk` share."""
    kept = Desks(lab_server)
    yield kept
    await kept.close()


@pytest_asyncio.fixture(loop_scope="session")
async def desk(desks: Desks) -> AsyncIterator[Desk]:
    """A clean notebook with nbagent, in the page and kernel of the test before, and a server of its own."""
    async with desks.desk() as fit:
        yield fit
