"""`%agent fix`: which cell failed, what the model is told of it, and that the repair is an edit of that very cell."""

from __future__ import annotations

import asyncio
import atexit
import json
import sys
from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from nbagent.app.fix import Failure, NothingFailed, find, last_error, loaded, task, values_of
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools.marks import as_stale
from tests.failures.room import Room
from tests.places.front_end import front_end
from tests.support.messages_server import MessagesServer, Reply, call, calls

APPROVE = '"description": "Approve"'


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    settings = Config()
    settings.HistoryManager.enabled = False
    made = InteractiveShell(config=settings)
    monkeypatch.delattr(sys, "last_value", raising=False)
    yield made
    made.atexit_operations()
    atexit.unregister(made.atexit_operations)


async def failing(shell: InteractiveShell, *cells: str) -> None:
    for cell in cells:
        await shell.run_cell_async(cell, store_history=True, transformed_cell=shell.transform_cell(cell))


# ── which cell ───────────────────────────────────────────────────────────────────────────────────────────────────────


def error(name: str = "ValueError", value: str = "x") -> dict:
    return {"output_type": "error", "ename": name, "evalue": value, "traceback": [f"\x1b[31m{name}\x1b[0m: {value}"]}


def notebook(*cells: tuple[str, int | None, bool], own: int | None = None) -> MemoryNotebook:
    """Cells as (source, In[n], whether it failed)."""
    made = [
        {"id": f"c{place}", "cell_type": "code", "source": source, "execution_count": number, "metadata": {},
         "outputs": [error()] if failed else []}
        for place, (source, number, failed) in enumerate(cells)
    ]  # fmt: skip
    return MemoryNotebook(made, own_cell=None if own is None else f"c{own}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "own", "expected"),
    [
        ((("a", 1, True), ("b", 2, False), ("%agent fix", None, False)), 2, "c0"),
        ((("a", 5, True), ("b", 2, True), ("%agent fix", None, False)), 2, "c1"),  # the one right above is meant
        ((("a", 5, True), ("b", 7, True), ("c", 6, False), ("%agent fix", None, False)), 3, "c1"),
        ((("%agent fix", None, False), ("a", 5, True), ("b", 7, True)), 0, "c2"),
        (
            (("a", 3, True), ("%%agent\nx", 9, True), ("# c\n%%agent\nx", 10, True), ("%agent fix", None, False)),
            3,
            "c0",
        ),
        ((("a", 3, True),), None, "c0"),
    ],
)
async def test_the_cell_right_above_is_meant_if_it_failed_else_the_one_that_failed_last(cells, own, expected, shell):
    assert (await find(notebook(*cells, own=own), shell)).id == expected


@pytest.mark.slow
async def test_the_old_error_of_a_cell_that_was_edited_since_is_not_meant(shell):
    cells = notebook(("a", 1, True), ("b", 2, True))
    await cells.set_outputs("c1", as_stale((error(),)), 2)
    assert (await find(cells, shell)).id == "c0"


@pytest.mark.slow
async def test_where_nothing_failed_one_sentence_says_so(shell):
    for none in (notebook(), notebook(("a", 1, False), ("%%agent\nx", 2, True))):
        with pytest.raises(NothingFailed, match="No cell has failed"):
            await find(none, shell)
    with pytest.raises(NothingFailed, match="No cell has failed"):
        await find(None, shell)


@pytest.mark.slow
async def test_without_a_page_what_ipython_remembers_is_the_failing_cell(shell):
    await failing(shell, "a = 1", "def half(n):\n    return n / a0", "half(a)", "a = 2")
    found = await find(None, shell)
    assert (found.number, found.source, found.ename, found.id) == (3, "half(a)", "NameError", "")
    assert "name 'a0' is not defined" in found.traceback and "\x1b" not in found.traceback
    await failing(shell, "x = (1,\ny = 2")
    assert (await find(None, shell)).ename == "SyntaxError"


# ── the variables involved ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_variables_of_the_failing_line_and_of_the_functions_frames_are_described(shell):
    await failing(
        shell,
        "df = {'a': [1, 2]}\nother = 5\nfactor = 'two'\ntoken = 'sk-ant-' + 'x' * 40",
        "def scale(values):\n    total = sum(values)\n    unused = 1\n    return total * factor / len(values), token",
        "first = other\nscale(df['a'])",
    )
    failure = await find(None, shell)
    told = values_of(failure, shell.user_ns, last_error())
    assert (
        "total (in scale): 3" in told
        and "values (in scale): list of 2" in told
        and "factor: str of 3 characters" in told
    )
    assert "df: dict of 1" in told
    assert "other" not in told and "unused" not in told and "sk-ant-" not in told


def test_variables_are_found_by_the_traceback_where_the_frames_are_gone():
    failure = Failure("c1", 4, "a = b\nc = d['x']", "KeyError", "'x'", "Cell In[4], line 2\n----> 2 c = d['x']")
    assert values_of(failure, {"b": 1, "d": {}, "len": 3}, None) == "d: dict of 0"
    assert loaded("!ls\nfor n in names:\n    total += n\n", 3) == ["n"]
    assert loaded("x = (", 1) == []


def test_the_task_is_bounded_and_names_the_cell():
    failure = Failure("c1", 4, "x" * 100_000, "E", "e", "t" * 100_000)
    text = task(failure, "only the types", "v: 1")
    assert len(text) < 25_000
    assert "id c1" in text and 'edit_cell(cell="c1", run=true)' in text and "only the types" in text
    assert "No cell can be edited from here" in task(Failure("", 4, "1/0", "E", "e", "t"), "", "")


@pytest.mark.slow
async def test_a_flood_of_huge_variables_stays_small(shell):
    names = ", ".join(f"v{n}" for n in range(40))
    shell.user_ns.update({f"v{n}": ["y" * 10_000] * 1000 for n in range(40)})
    await failing(shell, f"print([{names}], missing)")
    assert len(values_of(await find(None, shell), shell.user_ns, last_error())) < 8_000


# ── a real kernel ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_the_repair_is_an_edit_of_that_very_cell_and_runs_after_the_approval(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True) as room:
            assert "No cell has failed" in (await room.cell("%agent fix")).seen
            await room.cell("prices = [1, 2, 'three']")
            failed = await room.cell("total = sum(prices)\ntotal")
            assert "TypeError" in failed.error
            broken = room.page.document.cells[-1]["id"]
            asking = asyncio.create_task(room.seen(APPROVE))
            running = asyncio.create_task(
                room.cell(
                    "%agent fix keep the list as it is",
                    calls("read_cell", cell=broken),
                    Reply([call("edit_cell", cell=broken, source="total = sum(p for p in prices if p != 'three')\ntotal", run=True)]),
                    "The third price was text; it is left out of the sum.",
                )
            )  # fmt: skip
            await asking
            assert "for p in" not in room.page.document.cells[-2]["source"], "nothing happens before the yes"
            while not running.done():
                room.page.click("Approve")
                await asyncio.wait({running}, timeout=0.2)
            shown = await running
            shown.says("The third price was text", "edit and run In[")
            (record,) = shown.cell.outputs
            assert "failed with TypeError. keep the list as it is" in record["data"]["text/markdown"]
            repaired = next(cell for cell in room.page.document.cells if cell["id"] == broken)
            assert repaired["source"].startswith("total = sum(p for p")
            assert [o["output_type"] for o in repaired["outputs"]] == ["execute_result"]
            assert await room.value("total") == 3
            told = json.dumps(server.requests[0].body["messages"][-1], ensure_ascii=False)
            assert "unsupported operand" in told and "prices: list of 3" in told and broken in told
            assert "\\u001b" not in told
            cells = len(room.page.document.cells)
            assert "No cell has failed" in (await room.cell("%agent fix")).seen
            assert len(room.page.document.cells) == cells + 1
            await room.still_works()
        server.assert_clean()


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_where_no_page_answers_the_repair_of_that_cell_is_proposed(tmp_path):
    with MessagesServer() as server:
        async with front_end(tmp_path, server, typed=["y"] * 5) as console:
            await console.cell("word = 'a'")
            await console.cell("word + 1")
            server.push(
                calls("read_cell", cell="in-3"), calls("edit_cell", cell="in-3", source="word + '1'"), "I propose it."
            )
            cell = await console.cell("%agent fix")
            assert "word + '1'" in cell.text and cell.next_inputs and "word + '1'" in cell.next_inputs[0]
            told = json.dumps(server.requests[0].body["messages"][0])
            assert "In[3], id in-3" in told, told
            assert "interactiveshell.py" not in told
            assert "can only concatenate str" in told and "word: str of 1" in told
        server.assert_clean()
