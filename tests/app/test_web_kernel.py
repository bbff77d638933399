"""Web search in a real kernel with a page: the person is asked before the run, and sees links, citations and the cost."""

from __future__ import annotations

import asyncio

import pytest

from tests.app.test_web import CITED, SERVED, searched
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Reply

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]


async def test_a_person_agrees_once_and_reads_what_was_found(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True) as room:
            (await room.cell("%agent web on")).says("search and fetch", "you are asked before a run offers it")
            running = asyncio.create_task(
                room.cell("%%agent\nHow big is iris?", Reply([*searched(), *CITED], usage=SERVED))
            )
            async with asyncio.timeout(40):
                while not running.done():  # a click within the card's dead time does not count
                    if "Yes, in this conversation" in room.page._buttons:
                        room.page.click("Yes, in this conversation")
                    await asyncio.wait({running}, timeout=0.2)
            shown = await running
            shown.says("It has 150 rows", "search the web: iris size", "https://example.org/iris?a=1", "1 web search")
            html = "".join(o.get("data", {}).get("text/html", "") for o in shown.cell.outputs)
            assert 'href="https://example.org/iris?a=1"' in html and "<img" not in html
            await room.cell("%%agent\nAnd cotton?", "It is another plant.")
            (await room.cell("%agent model")).says("used by", "this conversation: claude-sonnet-5-5, 2 replies")
            tools = [[t["name"] for t in r.body["tools"] if "type" in t] for r in server.requests]
            assert tools == [["web_fetch", "web_search"]] * 2, "it was not asked again"
        server.assert_clean()
