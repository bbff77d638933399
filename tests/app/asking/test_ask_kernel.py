"""`%%ask`, `%agent explain` and `%agent review` in a real kernel: they answer by looking, and nothing is added or asked."""

from __future__ import annotations

import pytest

from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Reply, call, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]

LEAKS = """from statistics import mean
rows = [3, 4, None, 8]
known = [r for r in rows if r is not None]
train, test = known[:2], known[2:]
centre = mean(known)"""

REVIEW = """### 1. low: No seed
`In[3]:9` `random.shuffle(rows)`
The order is another one each time.
Check: set one.

### 2. high: The centre knows the test rows
`In[3]:4` `centre = mean(known)`
It is computed from all rows.
Check: use train only.

### Sound
The rest."""


async def test_a_question_is_answered_by_looking_only_whatever_the_model_tries(tmp_path):
    (tmp_path / ".nbagent").mkdir()
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True, NBAGENT_MODE="bypass") as room:
            await room.cell("df = [1, 2, 3]")
            room.page.saw = (seen := []).append
            tries = [
                call("add_cell", source="x = 1"), call("run_python", code="df.append(9)"), call("enter_plan"),
                call("write_file", path="a.txt", content="a"), call("shell", command="touch b.txt"),
                call("task", description="do it", prompt="add a cell", agent="general-purpose", run_in_background=True),
                call("inspect_variable", name="df"),
            ]  # fmt: skip
            asked = await room.cell("%%ask -m opus\nHow long is df?", Reply(content=tries), "It has **3** items.")
            asked.says("It has **3** items.")
            assert not asked.error and "Done" not in asked.record and "How long" not in asked.record, asked.seen
            assert not any('"description": "Approve"' in text for text in seen)
            assert len(room.page.nb.cells) == 3 and await room.value("df") == [1, 2, 3]
            assert not (tmp_path / "a.txt").exists() and not (tmp_path / "b.txt").exists()
            results = {r["tool_use_id"]: str(r["content"]) for r in room.transcripts()[-1][2]["content"]}
            refused = [text for text in results.values() if "not allowed" in text.lower() or "it only looks" in text]
            assert len(refused) >= 4 and any("list of 3" in text for text in results.values()), results
            # the same conversation: what was asked is known to the run after it, which may act again
            after = await room.cell("%%agent\nAdd one", calls("add_cell", source="df.append(4)"), "Added.")
            assert not after.error and await room.value("df") == [1, 2, 3, 4]
            told = str(room.transcripts()[-1])
            assert len(room.transcripts()) == 1 and "How long is df?" in told and "mode is now bypass" in told
            # again for nothing, and as lines
            again = await room.cell("%ask how long now?", "Four.")
            assert "Four." in again.record and not again.error
            line = await room.cell("%agent ask and its last?", "4.")
            assert "4." in line.record and len(server.requests) == 6
            none = await room.cell("%%ask --mode bypass\nx")
            assert "goes with no --mode" in none.error
            (await room.cell("%%ask")).says("Write the question below")


async def test_explain_takes_what_is_meant_and_review_marks_lines_that_are_not_there(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell("import random")
            await room.cell(LEAKS)
            (await room.cell("%agent explain why the mean?", "Because.")).says("Because.")
            assert "Explain In[3]. why the mean?" in str(server.requests[-1]) and "centre = mean" in str(
                server.requests[-1]
            )
            await room.cell("1 / (rows[0] - 3)")
            (await room.cell("%agent explain", "A zero.")).says("A zero.")
            assert "error of In[5], ZeroDivisionError" in str(server.requests[-1])
            for words, told in (("rows", "variable rows"), ("cell 3", "Explain In[3]."), ("notebook", "this notebook")):
                await room.cell(f"%agent explain {words}", "So.")
                assert told in str(server.requests[-1])
            assert "has no output" in (await room.cell("%agent explain output 3")).error
            assert "no cell '77'" in (await room.cell("%agent explain cell 77")).error
            reviewed = await room.cell("%agent review cell 3", REVIEW)
            prompt = str(server.requests[-1].body["messages"][-1])
            assert "  5| centre = mean(known)" in prompt and "1| import random" not in prompt and "Check:" in prompt
            reviewed.says("1. high: The centre", "2. low: No seed", "In[3]:9", "not found: the cell has 5 lines")
            html = reviewed.cell.outputs[0].data["text/html"]
            cell = next(c.id for c in room.page.nb.cells if c.source == LEAKS)
            assert f'href="#nbagent-cell-{cell}.5"' in html and "In[3]:5" in html  # the line where the quote stands
