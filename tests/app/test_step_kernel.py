"""`%%agent --step` in a real kernel where nobody can press, and in one whose person types."""

from __future__ import annotations

import pytest

from tests.app.test_terminal import server, terminal, type_cell  # noqa: F401  (fixtures)
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, calls, say

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]


async def test_where_nobody_can_press_it_plays_on_and_says_so(tmp_path):
    with MessagesServer() as model:
        async with Room(tmp_path, model) as room:
            shown = await room.cell("%%agent --step --pace 60s\ngo", calls("list_variables"), say("Nothing there."))
            shown.says("Nothing there.")
            pages = [output.get("data", {}).get("text/html", "") for output in shown.cell.outputs]
            assert "Nobody can press Next here, so this run plays on by itself" in "".join(pages)
        model.assert_clean()


def test_a_person_at_a_terminal_types_enter_t_and_p(server, terminal):  # noqa: F811  (fixtures)
    server.push(calls("list_variables"), say("Nothing there."))
    type_cell(terminal, "%%agent --step", "go")
    terminal.expect_exact("event 1: run_started. Enter = next, t = next turn, p = play: ")
    assert server.requests == []
    terminal.sendline("")
    terminal.expect_exact("event 2: request_sent")
    assert server.requests == [], "the request goes out when the next event is pulled"
    terminal.sendline("what?")
    terminal.expect_exact("Enter = next, t = next turn, p = play: ")
    terminal.sendline("t")
    terminal.expect_exact("turn 2")
    terminal.sendline("p")
    terminal.expect_exact("Nothing there.")
    terminal.expect(r"In \[3\]: ")
