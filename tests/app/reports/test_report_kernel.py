"""`%agent report` in a real kernel: with a summary that an agent writes by looking only, and its numbers looked up."""

from __future__ import annotations

import pytest

from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]

SUMMARY = "## Summary\n\nThe mean is 4.33 (In[2]), and 98.6 % are well.\n\n## Findings\n\n- 3 rows\n\n## Limits\n\nFew."


async def test_a_report_is_written_with_a_summary_whose_numbers_are_looked_up(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell("print(13 / 3)")
            await room.cell("%%agent\nAdd a cell", calls("add_cell", source="print(77.25)"), "It says 77.25.")
            done = await room.cell(
                "%agent report --write --title 'My birds'", calls("add_cell", source="x = 1"), SUMMARY
            )
            done.says("The report is in room-report.html", "98.6 % (not found: in no output)".replace(" (", " **("))
            assert not done.error, done.seen
            page = (tmp_path / "room-report.html").read_text("utf-8")
            assert "<h1>My birds</h1>" in page and ">4.33</a>" in page and "1 not found: 98.6 % (in no output)" in page
            assert "It says" in page and "agent (claude" in page and "x = 1" not in page
            # nobody can be asked here, so what is there stays, unless that is wanted
            (tmp_path / "room-report.html").write_text("mine")
            (await room.cell("%agent report")).says("Nothing was written")
            assert (tmp_path / "room-report.html").read_text() == "mine"
            (await room.cell("%agent report --to md --no-code")).says("The report is in room-report.md")
            await room.cell("%config NbAgent.deny = ['write_file(secret/**)']")
            assert "keeps secret/r.html" in (await room.cell("%agent report -o secret/r.html")).error
            assert len(server.requests) == 4
