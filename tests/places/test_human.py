"""`-m human` over real kernels: typed where there are no widgets, refused where nobody is, another model where one is named."""

from __future__ import annotations

import json

import pytest

from tests.places.front_end import front_end
from tests.support.messages_server import MessagesServer

pytestmark = [pytest.mark.kernel, pytest.mark.places, pytest.mark.timeout(120)]


async def test_a_person_at_a_keyboard_is_the_model_and_the_runtime_answers_them(tmp_path):
    with MessagesServer() as server:
        typed = ["call list_variabels", "{}", "", "y",  # a tool that is not there, sent all the same
                 "I look at x first.", "call run_python", "x * 2", ".", "", "", "", "y",  # and Yes as the person
                 "It is 42.", ""]  # fmt: skip
        async with front_end(tmp_path, server, typed=typed) as console:
            await console.cell("x = 21")
            cell = await console.cell("%%agent -m human --tools run_python\nDouble x")
            assert cell.reply["status"] == "ok", cell.text
            for part in ("You are the model: reply 1", "Double x", "There is no tool 'list_variabels'", "reply 2", "│ 42",
                         "reply 3", "It is 42.", "✓ Done."):  # fmt: skip
                assert part in cell.text, cell.text
            assert not server.requests, "no server was asked"


async def test_where_nobody_is_there_it_is_refused_or_another_model_answers(tmp_path):
    with MessagesServer() as server:
        async with front_end(tmp_path, server) as job:
            refused = await job.cell("%%agent -m human\nDouble x")
            assert "nobody can be asked here" in refused.text + refused.error
            assert "--fallback MODEL" in refused.text + refused.error
            line = "%%agent -m human --fallback scripted:nbagent.teach.mini:in_a_cell"
            helped = await job.cell(f"{line}\nWhich columns?")
            shown = json.dumps(helped.outputs, ensure_ascii=False)
            assert "Nobody is there to be the model" in shown
            assert "I looked" in helped.text
