"""A front end without widgets that takes input (a console; VS Code and Colab without our module): text, typed answers.

Cells are proposed: in the reply's payload, where a front end finds its next cell, and in the text, to be copied.
"""

from __future__ import annotations

import pytest

from tests.places.front_end import front_end
from tests.support.messages_server import MessagesServer, Reply, call, calls

pytestmark = [pytest.mark.kernel, pytest.mark.places, pytest.mark.timeout(120)]


def results(server):
    """The text of all results that the model got."""
    blocks = [b for m in server.requests[-1].body["messages"] if m["role"] == "user" for b in m["content"]]
    return ["\n".join(c["text"] for c in b["content"]) for b in blocks if b["type"] == "tool_result"]


async def test_a_person_reads_text_and_types_their_answers_and_nothing_looks_alive_afterwards(tmp_path):
    """Row 27: no widget, no page, and still a yes, a no with words, a rule and a choice reach the run."""
    with MessagesServer() as server:
        typed = ["y", "use 2 instead", "a", "1"]
        async with front_end(tmp_path, server, typed=typed) as console:
            await console.cell("x = 40")
            server.push(
                calls("run_python", code="print(x + 2)"),
                calls("run_python", code="print(x + 3)"),
                calls("run_python", code="print(x + 4)"),
                calls(
                    "ask_user",
                    questions=[{"question": "Which?", "options": [{"label": c} for c in ["the first", "the second"]]}],
                ),
                "It is **42**.",
            )
            cell = await console.cell("%%agent\ngo")
            assert cell.reply["status"] == "ok"
            assert not cell.alive, "no widget is left behind"
            assert [*map(str.strip, results(server))] == [
                "42",
                "Denied by the person, so it did not run. They say: use 2 instead",
                "44",
                "The person answered: the first",
            ]
            assert "allow run_python(sha256:" in (await console.cell("%agent rules")).text, "the rule is kept"
            assert len(cell.asked) == 4
            for part in ("print(x + 2)", "in mode default you are asked first", "It is **42**.", "✓ Done."):
                assert part in cell.text, cell.text
            assert "Looking for the page" not in cell.text, "what stood there before the answer is gone"
            assert (await console.cell("1 + 1")).text == "2"
            asked = console.hellos
            assert asked, "it was looked for"
            server.push("It is **42** still.")
            assert "still" in (await console.cell("%%agent\nand now?")).text
            assert console.hellos == asked + 1, "that no page answers is known by now: only the first cell waits"
        server.assert_clean()


async def test_added_and_edited_cells_are_proposed_in_one_next_cell_and_in_the_text_and_the_model_is_told(tmp_path):
    """Only one next input survives an execution: all proposals of a run are in it, told apart by comments."""
    with MessagesServer() as server:
        async with front_end(tmp_path, server, typed=["y"] * 9) as console:
            await console.cell("x = 1\nx + 1")
            server.push(
                calls("read_cell", cell="in-2"),
                calls("edit_cell", cell="in-2", source="x = 2\nx + 1"),
                calls("add_cell", source="y = x * 2"),
                calls("add_cell", source="# What we saw", cell_type="markdown"),
                Reply([call("delete_cell", cell="in-2"), call("run_cell", cell="in-2")]),
                "I propose it.",
            )
            cell = await console.cell("%%agent --mode default\ngo")
            assert cell.next_inputs == [
                "# ── 1 of 2: instead of In[2] ──\nx = 2\nx + 1\n\n# ── 2 of 2: a new cell ──\ny = x * 2\n"
            ]
            for part in ("x = 2\nx + 1\n", "y = x * 2\n", "# What we saw\n", "instead of In[2]", "Proposed, not added"):
                assert part in cell.text, cell.text
            said = results(server)
            assert "x + 1" in said[0] and "2" in said[0], "the cell that ran is read with its value"
            assert all("only proposed" in text for text in said[1:4]) and all(
                "has not run" in text for text in said[1:3]
            ), said
            assert "can't be deleted from here" in said[4] and "from here" in said[5], said
            opening = str(server.requests[0].body["messages"][0])
            assert "does not let you reach the notebook" in opening and "Cell in-2 (In[2])" in opening, opening
            assert "In[3]" not in opening, "the agent's own cell is no cell of the person's"
            assert await console.value("x, 'y' in globals()") == "(1, False)", "nothing ran"

            server.push(calls("add_cell", source="total = sum(range(4))"), "One cell.")
            cell = await console.cell("%%agent\nanother")
            assert cell.next_inputs == ["total = sum(range(4))"], (
                "one cell alone is as it is, and the old ones are gone"
            )
        server.assert_clean()


async def test_an_interrupt_while_the_person_is_asked_ends_the_run_and_leaves_nothing_open(tmp_path):
    with MessagesServer() as server:
        async with front_end(tmp_path, server, typed=[]) as console:
            server.push(Reply([call("run_python", code="ran = 1"), call("run_python", code="ran = 2")]))

            def interrupt() -> None:
                console.manager.provisioner.process.send_signal(2)

            console.on_input = interrupt
            cell = await console.cell("%%agent\ngo")
            assert "Stopped by you." in cell.text
            assert "Traceback" not in cell.error
            assert await console.value("'ran' in globals()") == "False"
            console.on_input, console.typed = None, ["y"]
            server.push(calls("run_python", code="6 * 7"), "It is 42.")
            assert "It is 42." in (await console.cell("%%agent\nand now")).text
            assert "42" in results(server)[-1]
        server.assert_clean()


async def test_the_time_limit_of_a_run_holds_while_a_typed_question_is_open(tmp_path):
    """A line typed afterwards, into the box that still stands there, answers nothing that is asked later."""
    with MessagesServer() as server:
        async with front_end(tmp_path, server, typed=[]) as console:
            server.push("I am here.")
            await console.cell("%%agent\nhello")  # the first run of a kernel imports much
            server.push(calls("run_python", code="ran = 1"))
            cell = await console.cell("%%agent --timeout 10\ngo")
            assert "time limit" in cell.text and len(cell.asked) == 1, cell.text
            console.typed = ["y", "n"]
            server.push(calls("run_python", code="ran = 2"))
            await console.cell("%%agent\nand now")
            assert await console.value("'ran' in globals()") == "False"
        server.assert_clean()
