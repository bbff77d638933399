"""Rows 31, 33, 34, 77, 78 (and 29, 27 at the end of real wires): what a place can do to a run, in a real kernel."""

from __future__ import annotations

import asyncio

import pytest

from nbagent.jupyter.whereabouts import notebook_path
from tests.bridge.pages import Page, document
from tests.failures.room import Room
from tests.places.front_end import FrontEnd, front_end, kernel
from tests.support.messages_server import MessagesServer, Reply, call, calls
from tests.support.turns import wait_until

pytestmark = pytest.mark.timeout(120)
IN_KERNEL = pytest.mark.kernel


def results(server):
    """The text of all results that the model got."""
    blocks = [b for m in server.requests[-1].body["messages"] if m["role"] == "user" for b in m["content"]]
    return ["\n".join(c["text"] for c in b["content"]) for b in blocks if b["type"] == "tool_result"]


@IN_KERNEL
async def test_a_click_that_was_lost_is_made_again_and_counts_and_so_does_a_typed_answer_beside_the_cell(tmp_path):
    """Row 31: the page went away in the middle of a question, and its subshell with it; no wait depends on one message."""
    with MessagesServer() as server:
        page = Page("page", None)
        async with front_end(tmp_path, server, page) as front:
            subshells = "kernel subshells" in (await front.info()).get("supported_features", [])
            if subshells:
                front.subshell = await front.open_subshell()
            server.push(calls("run_python", code="20 + 1"), calls("run_python", code="20 + 2"), "Both.")
            running = asyncio.create_task(front.cell("%%agent\ngo"))
            button = await front.button("Approve")
            if subshells:
                await front.control("delete_subshell_request", subshell_id=front.subshell)
                front.press(button)  # to a subshell that is gone: nobody hears it
                front.subshell = await front.open_subshell()
            else:
                front.press("0" * 32)  # to a widget that is gone
            assert not running.done()
            front.press(button)
            await front.rests("Approve")
            await front.button("Approve")
            if subshells:
                said = await front.cell("%agent allow 1", subshell=front.subshell)
                assert "Allowed: " in said.text and "20 + 2" in said.text
            else:
                await front.click("Approve")
            cell = await running
            assert "Both." in cell.text
            assert ["21" in results(server)[0], "22" in results(server)[1]] == [True, True]

            server.push(calls("run_python", code="20 + 3"))
            running = asyncio.create_task(front.cell("%%agent\nmore"))
            await front.button("Approve")
            if subshells:
                assert "Stopping." in (await front.cell("%agent stop", subshell=front.subshell)).text
            else:
                front.press(front.newest("Stop"))
            assert "Stopped by you." in (await running).text
        server.assert_clean()


@IN_KERNEL
async def test_code_with_await_runs_and_asyncio_run_fails_with_the_way_to_say_it(tmp_path):
    """Row 33: the cell's loop runs already; the agent's code gets awaited, and nothing is left never awaited."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, NBAGENT_MODE="bypass") as room:
            shown = await room.cell(
                "%%agent\ngo",
                calls("add_cell", source="import asyncio\nawait asyncio.sleep(0)\nz = 1"),
                calls("add_cell", source="async def main():\n    return 5\nasyncio.run(main())"),
                calls("run_python", code="print(await main() + z)"),
                "I see.",
            )
            awaited, ran, looked = room.results()
            assert "z" not in awaited or "Error" not in awaited
            assert "RuntimeError" in ran and "await" in ran
            assert looked.strip() == "6"
            assert "never awaited" not in shown.seen
            assert await room.value("z") == 1
            await room.still_works()
        server.assert_clean()


@IN_KERNEL
async def test_with_nest_asyncio_applied_runs_are_approved_stopped_and_go_on(tmp_path):
    """Row 34: a first cell patches the loop for good; the agent neither needs that nor is broken by it."""
    with MessagesServer() as server:
        async with front_end(tmp_path, server, Page("page", None)) as front:
            assert not (await front.cell("import nest_asyncio\nnest_asyncio.apply()")).error
            server.push(
                calls("run_python", code="import asyncio\nprint(asyncio.run(asyncio.sleep(0, 7)))"),
                Reply([call("run_python", code="open('begun', 'w').close()\nwhile True: pass")]),
            )
            running = asyncio.create_task(front.cell("%%agent\ngo"))
            await front.click("Approve")
            await asyncio.to_thread(server.wait_for_requests, 2, 60)
            await front.click("Approve")
            await asyncio.to_thread(wait_until, (tmp_path / "begun").exists)
            await front.manager.interrupt_kernel()
            assert "Stopped by you." in (await running).text
            server.push("I am here.")
            assert "I am here." in (await front.cell("%%agent\nAre you there?")).text
            assert results(server)[0].strip() == "7"
            assert "nest_asyncio is applied" in (await front.cell("%agent doctor")).text
        server.assert_clean()


def test_the_path_is_told_by_the_environment_or_not_at_all(tmp_path):
    """Row 77: no network, no guess: not the only notebook of the folder, not one that is not there any more."""
    there = tmp_path / "there.ipynb"
    there.write_text("{}")
    here = str(there)
    assert notebook_path({}, {}) == "", "it is not guessed although it is the only one"
    assert notebook_path({}, {"JPY_SESSION_NAME": here}) == here
    assert notebook_path({"__vsc_ipynb_file__": here}, {}) == here
    renamed = str(tmp_path / "renamed.ipynb")
    assert notebook_path({"__vsc_ipynb_file__": renamed}, {"JPY_SESSION_NAME": here}) == here
    for wrong in (renamed, "there.ipynb", "C:\\work\\there.ipynb", str(tmp_path), "", "\0", here + "\n", "c5b7-4f"):
        assert notebook_path({"__vsc_ipynb_file__": wrong}, {"JPY_SESSION_NAME": wrong}) == ""
    assert notebook_path({"__vsc_ipynb_file__": 7}, {}) == ""


@IN_KERNEL
async def test_without_a_page_the_path_is_said_where_it_is_known_and_the_notebook_is_unnamed_elsewhere(tmp_path):
    """Row 77: VS Code puts the path into the namespace; Jupyter's server into the environment."""
    there = tmp_path / "there.ipynb"
    there.write_text("{}")
    with MessagesServer() as server:
        async with front_end(tmp_path, server) as front:
            server.push("One.")
            await front.cell("%%agent --new\ngo")
            await front.cell(f"__vsc_ipynb_file__ = {str(there)!r}")
            server.push("Two.")
            await front.cell("%%agent --new\nand now")
            first, second = (str(request.body["messages"][0]) for request in server.requests)
            assert "The open notebook is unnamed" in first and "there.ipynb" not in first
            assert "there.ipynb" in second
        server.assert_clean()


@IN_KERNEL
async def test_of_two_notebooks_on_one_kernel_the_one_of_the_cell_is_asked_about_and_changed(tmp_path):
    """Row 78: the approval says which notebook; the binding holds for the run, and the next run has its own."""
    with MessagesServer() as server:
        mine = document("%%agent", path="mine.ipynb", current="agent-mine")
        mine.cells[0]["id"] = "agent-mine"
        yours = document("%%agent", path="yours.ipynb", current=None)
        yours.cells[0]["id"] = "agent-yours"
        async with kernel(tmp_path, server) as manager:
            pages = Page("yours", yours), Page("mine", mine)  # the wrong one is always the first to answer
            async with FrontEnd(manager, *pages) as front:
                await front.cell("%load_ext nbagent")
                for path, other, cell_id in (("mine.ipynb", yours, "agent-mine"), ("yours.ipynb", mine, "agent-yours")):
                    mine.current, yours.current = (
                        cell_id if cell_id == f"agent-{d}" else None for d in ("mine", "yours")
                    )
                    before = len(other.cells)
                    server.push(calls("add_cell", source=f"at = {path!r}"), "Added.")
                    running = asyncio.create_task(front.cell("%%agent --new\ngo", cell_id=cell_id))
                    await front.sees(f"in {path}")
                    await front.click("Approve")
                    await running
                    assert len(other.cells) == before, "nothing lands in the other notebook"
                    assert await front.value("at") == repr(path)
        assert [cell.source for cell in mine.cells][1:] == ["at = 'mine.ipynb'"]
        assert [cell.source for cell in yours.cells][1:] == ["at = 'yours.ipynb'"]
        server.assert_clean()
