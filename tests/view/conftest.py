"""A page for widgets in process: comms that keep what was sent (`comm.create_comm` is the way in that kernels use)."""

from __future__ import annotations

import asyncio
from typing import Any

import comm
import pytest
from comm.base_comm import BaseComm

from tests.view.person import Person


class Page(list[tuple[str, str, dict[str, Any]]]):
    """All messages of all widgets; `arrival` is set when one comes."""

    arrival: asyncio.Event | None = None


class PageComm(BaseComm):
    """Keeps every message of one widget as (type, data)."""

    def __init__(self, *args: Any, page: Page, **kwargs: Any) -> None:
        self.page = page
        super().__init__(*args, **kwargs)

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        self.page.append((self.comm_id, msg_type, data or {}))
        if self.page.arrival is not None:
            self.page.arrival.set()


@pytest.fixture
def page():
    """All that was sent to the page by any widget: (comm id, message type, data)."""
    sent = Page()
    before = comm.create_comm
    comm.create_comm = lambda *args, **kwargs: PageComm(*args, page=sent, **kwargs)
    yield sent
    comm.create_comm = before


@pytest.fixture
async def person(page):
    someone = Person(page)
    yield someone
    someone.view.close()
