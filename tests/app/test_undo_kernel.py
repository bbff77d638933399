"""`%agent undo`, `redo` and `forget` in a real kernel with a page: cells, files and variables, and what they say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Reply, call, calls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    """The model, played over HTTP."""
    with MessagesServer() as running:
        yield running
        running.assert_clean()


def room(tmp_path: Path, server: MessagesServer, **options: Any) -> Room:
    return Room(tmp_path, server, interactive=True, NBAGENT_MODE="bypass", **options)


def cells(room: Room) -> list[tuple[str, str]]:
    """Id and source of the cells, in order."""
    return [(cell["id"], cell["source"]) for cell in room.page.document.cells]


async def test_undo_restores_cells_files_and_variables_and_redo_gives_them_again(
    tmp_path: Path, server: MessagesServer
) -> None:
    (tmp_path / "notes.txt").write_text("mine\n")
    async with room(tmp_path, server) as there:
        await there.cell("df = [1, 2, 3]\nseries = [0]\nold = 1")
        load = await there.cell("print('before')")
        load_id = load.cell["id"]
        shown = await there.cell(
            "%%agent\nmake the report",
            calls("read_cell", cell=load_id),
            Reply(
                [
                    call("edit_cell", cell=load_id, source="print('after')", run=True),
                    call("add_cell", source="df = [4]\nnew = 2\ndel old\nseries.append(1)"),
                    call("add_cell", source="# Done", cell_type="markdown"),
                    call("write_file", path="notes.txt", content="the agent's\n"),
                    call("write_file", path="out/new.txt", content="made\n"),
                    call("shell", command="touch made-by-shell"),
                ]
            ),
            "It is made.",
        )
        assert not shown.error, shown.seen
        made = cells(there)
        assert load.cell["outputs"][0]["text"] == "after\n"
        assert await there.value("[df, new, 'old' in globals()]") == [[4], 2, False]

        undone = await there.cell("%agent undo")
        undone.says(
            "Taken back: “make the report”",
            "removed In[",
            "restored the text and output of In[",
            "removed out/new.txt",
            "restored notes.txt",
            "restored the variables df, old",
            "removed the variables new",
            "what is in `series`",
            "touch made-by-shell",
            "%agent redo does it again.",
        )
        assert load.cell["source"] == "print('before')"
        assert load.cell["outputs"][0]["text"] == "before\n"
        assert len(cells(there)) == len(made) - 2 + 2  # two went; the cells of the look and of the undo came
        assert (tmp_path / "notes.txt").read_text() == "mine\n"
        assert not (tmp_path / "out").exists()
        assert (tmp_path / "made-by-shell").exists()
        assert await there.value("[df, old, 'new' in globals(), series]") == [[1, 2, 3], 1, False, [0, 1]]
        record = shown.cell["outputs"][0]["data"]
        assert record["text/plain"].startswith("Taken back at ")
        assert "#nbagent-redo-run-" in record["text/html"]
        assert "#nbagent-undo-" not in record["text/html"]

        (await there.cell("%agent undo")).says("There is nothing to take back")
        redone = await there.cell("%agent redo")
        redone.says(
            "Done again: “make the report”", "restored In[", "restored out/new.txt", "restored the variables df, new"
        )
        assert [pair for pair in cells(there) if pair in made] == made
        assert load.cell["outputs"][0]["text"] == "after\n"
        assert (tmp_path / "out" / "new.txt").read_text() == "made\n"
        assert await there.value("[df, new, 'old' in globals()]") == [[4], 2, False]
        assert "Taken back" not in shown.cell["outputs"][0]["data"]["text/plain"]
        (await there.cell("%agent redo")).says("There is nothing to do again")

        (await there.cell("%agent forget")).says("Forgotten: 1 run, ", "variables in memory")
        (await there.cell("%agent undo")).says("There is nothing to take back")
        assert list((tmp_path / ".nbagent" / "checkpoints").glob("*.jsonl")) == []


async def test_what_the_person_changed_since_stays_and_is_named(tmp_path: Path, server: MessagesServer) -> None:
    async with room(tmp_path, server) as there:
        first = await there.cell("x = 1")
        second = await there.cell("y = 1\ny")
        ids = [first.cell["id"], second.cell["id"]]
        await there.cell(
            "%%agent\nchange both",
            Reply([call("read_cell", cell=ids[0]), call("read_cell", cell=ids[1])]),
            Reply(
                [
                    call("edit_cell", cell=ids[0], source="x = 2", run=True),
                    call("run_cell", cell=ids[1]),
                    call("add_cell", source="z = 1"),
                    call("write_file", path="a.txt", content="agent"),
                    call("delete_cell", cell=ids[1]),
                ]
            ),
            "Changed.",
        )
        added = next(cell for cell in there.page.document.cells if cell["source"] == "z = 1")
        first.cell["source"] = "x = 3  # mine"
        added["source"] = "z = 2  # mine too"
        (tmp_path / "a.txt").write_text("mine")
        await there.cell("x = 'mine'")
        undone = await there.cell("%agent undo")
        undone.says(
            "restored In[",
            "In[", "“x = 3  # mine” keeps its text: it was edited since",
            "“z = 2  # mine too” stays: it was edited since",
            "a.txt stays as it is: it was changed since",
            "variables that were set anew since: x",
            "removed the variables z",
        )  # fmt: skip
        sources = dict(cells(there))
        assert sources[ids[0]] == "x = 3  # mine"
        assert sources[ids[1]] == "y = 1\ny"
        order = [cell_id for cell_id, _ in cells(there)]
        assert order.index(ids[1]) == order.index(ids[0]) + 1, "it is back at its old place"
        back = next(cell for cell in there.page.document.cells if cell["id"] == ids[1])
        assert back["outputs"][0]["data"]["text/plain"] == "1"
        assert (tmp_path / "a.txt").read_text() == "mine"
        assert await there.value("x") == "mine"


async def test_an_interrupted_run_is_taken_back_too_and_one_that_is_not_on_disk_says_so(
    tmp_path: Path, server: MessagesServer
) -> None:
    (tmp_path / ".nbagent").mkdir()
    (tmp_path / ".nbagent" / "checkpoints").write_text("a file where the folder should be")
    async with room(tmp_path, server) as there:
        await there.cell("n = 1")
        code = "n = 2\nprint('turn' + 'ing', flush=True)\nimport time\nwhile True: time.sleep(0.01)"
        began = asyncio.create_task(there.seen("turning"))
        running = asyncio.create_task(there.cell("%%agent\nloop", calls("add_cell", source=code)))
        await asyncio.wait_for(began, 20)
        there.interrupt()
        record = (await running).cell["outputs"][0]["data"]["text/html"]
        assert "The checkpoint of this run is kept only as long as this kernel lives" in record
        assert await there.value("n") == 2
        (await there.cell("%agent undo")).says("restored the variables n", "removed ")
        assert await there.value("n") == 1
        assert code not in [source for _, source in cells(there)]


async def test_after_a_restart_cells_and_files_are_restored_and_variables_are_said_to_be_gone(
    tmp_path: Path, server: MessagesServer
) -> None:
    async with room(tmp_path, server) as there:
        await there.cell("v = 1")
        await there.cell(
            "%%agent\ngo",
            Reply([call("add_cell", source="v = 2"), call("write_file", path="b.txt", content="b")]),
            "Done.",
        )
        kept = list((tmp_path / ".nbagent" / "checkpoints").glob("*.jsonl"))
        assert [oct(path.stat().st_mode & 0o777) for path in kept] == ["0o600"]
        assert (tmp_path / ".nbagent" / ".gitignore").read_text() == "*\n"
        document = there.page.document
    async with room(tmp_path, server) as again:
        again.page.document.cells[:] = [*document.cells, *again.page.document.cells]
        undone = await again.cell("%agent undo")
        undone.says(
            "removed In[", "removed b.txt", "the variables: they were only in the memory of the kernel that ran it"
        )
        assert "v = 2" not in [source for _, source in cells(again)]
        assert not (tmp_path / "b.txt").exists()
        (await again.cell("%agent redo")).says("restored In[", "restored b.txt")
        assert [source for _, source in cells(again)][2:4] == ["%%agent\ngo", "v = 2"]
