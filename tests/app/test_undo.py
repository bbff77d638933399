"""Undo without a kernel: a notebook in memory, files in a folder, names in a dict; what is told, and what is never touched."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from nbagent.app.restore import best_place
from nbagent.app.undo import Undo
from nbagent.core.errors import NotebookError, Unsure
from nbagent.core.ports import Anchor
from nbagent.extend.checkpoint_files import CheckpointFolder
from nbagent.extend.checkpoints import FILE_LIMIT, OUTPUT_LIMIT, Checkpoint, FileChange, Head
from nbagent.headless.memory import MemoryNotebook
from tests.app.undoing import Desk
from tests.conformance.notebook_kit import stream
from tests.tools.desk import raw

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_again_takes_back_the_run_before_and_redo_goes_the_way_forward(desk: Desk) -> None:
    for number in (1, 2, 3):
        with desk.run(f"task {number}") as checkpointing:
            desk.take(checkpointing)
            await desk.edit("a", f"a = {number * 10}")
    assert "task 3" in await desk.back()
    assert "task 2" in await desk.back()
    assert desk.cell("a")["source"] == "a = 10"
    assert "task 2" in await desk.again()
    assert desk.cell("a")["source"] == "a = 20"
    assert "task 3" in await desk.again()
    assert desk.cell("a")["source"] == "a = 30"
    for number in (3, 2, 1):
        assert f"task {number}" in await desk.back()
    assert desk.cell("a")["source"] == "a = 1"
    assert "nothing to take back" in await desk.back()


async def test_a_run_out_of_its_turn_keeps_what_a_later_run_has_changed(desk: Desk) -> None:
    with desk.run("first") as first:
        desk.take(first)
        await desk.edit("a", "a = 10")
        await desk.edit("b", "b = 10")
    with desk.run("second") as second:
        desk.take(second)
        await desk.edit("a", "a = 20")
    said = await desk.back(first.run)
    assert "“a = 20” keeps its text: it was edited since" in said
    assert [desk.cell(i)["source"] for i in "ab"] == ["a = 20", "b = 1"]


async def test_a_second_undo_of_the_same_run_does_nothing_and_says_so(desk: Desk) -> None:
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
    await desk.back(checkpointing.run)
    before = str(desk.notebook.cells_)
    assert "taken back already" in await desk.back(checkpointing.run)
    assert "Nothing is known of this run" in await desk.back("run-0000")
    assert str(desk.notebook.cells_) == before
    await desk.again(checkpointing.run)
    assert "was not taken back" in await desk.again(checkpointing.run)


async def test_deleted_and_moved_cells_come_back_to_their_place_with_all_they_had(desk: Desk) -> None:
    desk.cell("a")["metadata"] = {"tags": ["keep"]}
    before = str(desk.notebook.cells_)
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.call("read_cell", cell="a")
        await desk.call("move_cell", cell="c", before="a")
        await desk.call("delete_cell", cell="a")
        await desk.call("move_cell", cell="b", after="own")
        await desk.call("add_cell", source="new", before="c")
    assert desk.order()[1:] == ["c", "own", "b"]
    said = await desk.back()
    assert "restored In[1] “a = 1”" in said
    assert str(desk.notebook.cells_) == before


async def test_a_deleted_cell_finds_its_place_among_those_that_are_left(desk: Desk) -> None:
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.call("read_cell", cell="b")
        await desk.call("delete_cell", cell="b")
    del desk.notebook.cells_[0]  # its neighbour above
    desk.notebook.cells_.insert(0, raw("mine", "mine"))
    await desk.back()
    assert desk.order() == ["mine", "b", "own", "c"]


async def test_a_cell_that_the_person_ran_again_keeps_its_output(desk: Desk) -> None:
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.call("read_cell", cell="a")
        await desk.call("run_cell", cell="a")
        await desk.edit("b", "b = 2", run=True)
    desk.cell("a").update(outputs=[stream("mine\n")], execution_count=77)
    desk.cell("b").update(outputs=[stream("mine\n")], execution_count=78)
    said = await desk.back()
    assert "In[77] “a = 1” keeps its output: it ran since" in said
    assert "In[78] “b = 1” keeps its output: it ran since" in said
    assert desk.cell("a")["outputs"] == [stream("mine\n")]
    assert (desk.cell("b")["source"], desk.cell("b")["execution_count"]) == ("b = 1", 78)


async def test_what_the_person_wrote_between_two_edits_of_the_run_is_what_comes_back(desk: Desk) -> None:
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
        desk.cell("a")["source"] = "a = 'mine'"
        await desk.edit("a", "a = 20")
        await desk.call("add_cell", source="new = 1", after="a", run=False)
        new = desk.order()[1]
        desk.cell(new)["source"] = "new = 'mine'"
        await desk.call("read_cell", cell=new)
        await desk.call("delete_cell", cell=new)
    said = await desk.back()
    assert "(as you had left it during the run)" in said
    assert desk.cell("a")["source"] == "a = 'mine'"
    assert desk.cell(new)["source"] == "new = 'mine'", "what was theirs is not lost with the cell"


async def test_an_edit_that_the_notebook_refused_is_no_change(desk: Desk) -> None:
    with desk.run() as checkpointing:
        assert checkpointing.notebook is not None
        with pytest.raises(NotebookError):
            await checkpointing.notebook.edit("a", "a = 10", "wrong hash")
        with pytest.raises(NotebookError):
            await checkpointing.notebook.delete("nowhere", "")
        with pytest.raises(NotebookError):
            await checkpointing.notebook.insert(Anchor("nowhere"), "code", "x")
        with pytest.raises(NotebookError):
            await checkpointing.notebook.insert(Anchor("a"), "code", "x", cell_id="b")
        assert checkpointing.checkpoint.is_empty
    assert "nothing to take back" in await desk.back()
    assert not list(desk.folder.glob(".nbagent/checkpoints/*"))


class Stuck(MemoryNotebook):
    """A notebook that takes an edit and never answers."""

    async def edit(self, *arguments: Any, **options: Any) -> Any:
        await super().edit(*arguments, **options)
        await asyncio.Event().wait()


async def test_an_edit_whose_answer_never_came_is_taken_back(desk: Desk) -> None:
    desk.notebook = Stuck(desk.notebook.cells_, own_cell="own", path="work.ipynb")
    with desk.run() as checkpointing:
        assert checkpointing.notebook is not None
        edit = checkpointing.notebook.edit("a", "a = 10", (await desk.notebook.read("a")).hash)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(edit, 0.01)
    desk.notebook = MemoryNotebook(desk.notebook.cells_, own_cell="own", path="work.ipynb")
    assert desk.cell("a")["source"] == "a = 10"
    await desk.back()
    assert desk.cell("a")["source"] == "a = 1"


async def test_without_a_page_files_and_names_are_restored_and_the_cells_wait(desk: Desk) -> None:
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
        await desk.call("write_file", path="x.txt", content="x")
        desk.kernel.names["n"] = 2
    said = (await desk.undo.take_back(None)).text
    assert "the cells: no page that shows the notebook has answered" in said
    assert "removed x.txt" in said
    assert "restored the variables n" in said
    assert desk.cell("a")["source"] == "a = 10"
    said = await desk.back()
    assert "restored the text" in said
    assert "x.txt" not in said
    assert desk.cell("a")["source"] == "a = 1"
    assert "taken back already" in await desk.back(checkpointing.run)
    await desk.again()
    assert desk.cell("a")["source"] == "a = 10"
    assert (desk.folder / "x.txt").read_text() == "x"
    assert desk.kernel.names["n"] == 2


async def test_files_that_changed_since_stay_and_folders_with_something_else_in_them_too(desk: Desk) -> None:
    (desk.folder / "old.bin").write_bytes(b"\x00\xff\r\n")
    (desk.folder / "other.txt").write_text("other")
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.call("write_file", path="old.bin", content="text")
        await desk.call("write_file", path="new/deep/made.txt", content="made")
        await desk.call("write_file", path="other.txt", content="agent's")
        await desk.call("edit_file", path="other.txt", old_text="agent", new_text="agent again")
    (desk.folder / "other.txt").write_text("mine")
    (desk.folder / "new" / "mine.txt").write_text("mine")
    said = await desk.back()
    assert "other.txt stays as it is: it was changed since" in said
    assert (desk.folder / "old.bin").read_bytes() == b"\x00\xff\r\n"
    assert (desk.folder / "other.txt").read_text() == "mine"
    assert sorted(str(path.relative_to(desk.folder)) for path in (desk.folder / "new").rglob("*")) == ["new/mine.txt"]
    await desk.again()
    assert (desk.folder / "new" / "deep" / "made.txt").read_text() == "made"
    assert (desk.folder / "old.bin").read_text() == "text"


async def test_a_file_that_was_written_back_to_what_it_was_needs_no_undo(desk: Desk) -> None:
    (desk.folder / "x.txt").write_text("as it was")
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.call("write_file", path="x.txt", content="other")
        (desk.folder / "x.txt").write_text("mine, in the middle of the run")
        await desk.call("write_file", path="x.txt", content="agent's")
    assert "restored x.txt" in await desk.back()
    assert (desk.folder / "x.txt").read_text() == "mine, in the middle of the run"


@pytest.mark.slow
async def test_what_is_too_large_is_not_kept_and_is_said(desk: Desk) -> None:
    (desk.folder / "big.txt").write_bytes(b"x" * (FILE_LIMIT + 1))
    desk.cell("a")["outputs"] = [stream("x" * (OUTPUT_LIMIT + 1))]
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.call("write_file", path="big.txt", content="small")
        await desk.edit("a", "a = 10", run=True)
    said = await desk.back()
    assert "big.txt stays as it is: it was too large to keep" in said
    assert "keeps its output: the old one was too large to keep" in said
    assert desk.cell("a")["source"] == "a = 1"
    assert (desk.folder / "big.txt").read_text() == "small"


async def test_what_cant_be_taken_back_is_said_in_plain_words(desk: Desk) -> None:
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.call("add_cell", source="df.append(2)\nimport subprocess\nsubprocess.run(['ls'])")
        await desk.call("add_cell", source="df = [3]\ndf.append(4)")
        await desk.call("send_mail", to="someone")
        await desk.call("look_up", word="word")
    said = await desk.back()
    assert said.count("what is in `df`: In[1] has probably changed it in place") == 1
    assert "what In[1] also did, by its code: " in said
    assert "what the tool send_mail did" in said
    assert "look_up" not in said


async def test_only_the_last_three_runs_keep_their_variables(desk: Desk) -> None:
    for number in range(5):
        with desk.run(f"task {number}") as checkpointing:
            desk.take(checkpointing)
            await desk.edit("a", f"a = {number * 10}")
            desk.kernel.names["n"] = number + 100
    for number in (4, 3, 2):
        assert "restored the variables n" in await desk.back()
        assert desk.kernel.names["n"] == (number + 99 if number else 1)
    said = await desk.back()
    assert "only those of the last 3 runs are kept" in said
    assert desk.kernel.names["n"] == 101


async def test_a_run_of_another_notebook_is_not_this_ones_last(desk: Desk, tmp_path: Path) -> None:
    with desk.run("elsewhere") as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
    later = Undo(tmp_path, dict)
    other = MemoryNotebook([raw("z", "z")], path="other.ipynb")
    assert "nothing to take back" in (await later.take_back(other)).text
    assert "elsewhere" in (await later.take_back(desk.notebook)).text
    assert desk.cell("a")["source"] == "a = 1"


async def test_forgetting_lets_go_of_disk_and_objects_and_says_how_much(desk: Desk) -> None:
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
        desk.kernel.names.update(df=[2], more=3)
    said = await desk.undo.forget(desk.notebook)
    assert said.startswith("Forgotten: 1 run, ")
    assert "2 variables in memory" in said
    assert not list(desk.folder.glob(".nbagent/checkpoints/*"))
    assert "nothing to take back" in await desk.back()
    assert await desk.undo.forget(desk.notebook) == "There was nothing to forget."


# ── places ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ids", "before", "after", "place"),
    [
        ("acd", "a", "cd", 1),
        ("auc", "a", "c", 1),  # what came since goes below
        ("xyz", "a", "c", 0),
        ("uc", "a", "c", 1),  # its neighbour above is gone: right before the one below
        ("au", "a", "c", 1),
        ("cab", "ab", "c", 3),
        ("", "a", "c", 0),
    ],
)
def test_a_cell_goes_where_the_fewest_old_neighbours_are_on_the_wrong_side(
    ids: str, before: str, after: str, place: int
) -> None:
    assert best_place(tuple(ids), (tuple(before), tuple(after))) == place


# ── whose it is ──────────────────────────────────────────────────────────────────────────────────────────────────────


def on_disk(desk: Desk, path: Path, shown: str) -> str:
    """A sealed checkpoint of an earlier kernel, which would write `path`; return its run."""
    checkpoint = Checkpoint(Head(f"run-{path.name}", 1.0, "look", "work.ipynb", "own", "before"))
    CheckpointFolder(desk.folder).journal(checkpoint)
    checkpoint.set_file(FileChange(str(path), shown, b"evil", ""))
    return checkpoint.head.run


async def test_after_a_restart_nothing_is_written_outside_or_where_it_would_run_and_the_real_path_is_told(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("home") / "startup.py"
    for path in (outside, desk.folder / ".git" / "hook"):
        said = await desk.back(on_disk(desk, path, "notes.txt"))
        assert f"{path} stays as it is" in said
        assert not path.exists()
    assert "restored real.txt" in await desk.back(on_disk(desk, desk.folder / "real.txt", "notes.txt"))
    assert (desk.folder / "real.txt").read_bytes() == b"evil"


async def test_undo_in_another_notebook_of_the_kernel_leaves_this_ones_run_alone(desk: Desk) -> None:
    with desk.undo.checkpointing("first", desk.notebook, desk.kernel, "document 1") as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
    other = MemoryNotebook([raw("a", "a = 10")], own_cell=None, path="other.ipynb")
    assert "nothing to take back" in (await desk.undo.take_back(other, document="document 2")).text
    said = (await desk.undo.take_back(other, checkpointing.run, document="document 2")).text
    assert "they are in another notebook (work.ipynb)" in said
    assert (await other.read("a")).source == "a = 10"
    assert "nothing to forget" in await desk.undo.forget(other, document="document 2")
    assert "restored the text" in (await desk.undo.take_back(desk.notebook, document="document 1")).text
    assert desk.cell("a")["source"] == "a = 1"


async def test_after_a_rename_and_a_restart_the_run_is_named_with_its_notebook(desk: Desk) -> None:
    with desk.run("old task") as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
    later, renamed = Undo(desk.folder, dict), MemoryNotebook(desk.notebook.cells_, own_cell="own", path="new.ipynb")
    said = (await later.take_back(renamed)).text
    assert "work.ipynb" in said
    assert f"%agent undo {checkpointing.run}" in said
    assert "restored the text" in (await later.take_back(renamed, checkpointing.run)).text


class Lost(MemoryNotebook):
    """A notebook that takes an edit and whose answer is lost."""

    async def edit(self, *arguments: Any, **options: Any) -> Any:
        await super().edit(*arguments, **options)
        raise Unsure("the page is gone")


async def test_an_edit_whose_answer_was_lost_is_taken_back(desk: Desk) -> None:
    cells = desk.notebook.cells_
    desk.notebook = Lost(cells, own_cell="own", path="work.ipynb")
    with desk.run() as checkpointing:
        assert checkpointing.notebook is not None
        with pytest.raises(Unsure):
            await checkpointing.notebook.edit("a", "a = 10", (await desk.notebook.read("a")).hash)
    desk.notebook = MemoryNotebook(cells, own_cell="own", path="work.ipynb")
    await desk.back()
    assert desk.cell("a")["source"] == "a = 1"


async def test_a_deleted_cell_comes_back_trusted_only_if_it_was(desk: Desk) -> None:
    asked: list[Any] = []

    class Asked(MemoryNotebook):
        async def insert(self, *arguments: Any, **options: Any) -> Any:
            asked.append((options["metadata"] or {}).get("trusted"))
            return await super().insert(*arguments, **options)

    desk.cell("b")["metadata"] = {"trusted": True}
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        for cell in ("a", "b"):
            await desk.call("read_cell", cell=cell)
            await desk.call("delete_cell", cell=cell)
    desk.notebook = Asked(desk.notebook.cells_, own_cell="own", path="work.ipynb")
    await desk.back()
    assert sorted(asked, key=str) == [None, True]


def test_a_run_is_known_only_in_the_cell_that_it_was_in(desk: Desk) -> None:
    with desk.run() as checkpointing:
        pass
    assert desk.undo.has_run(checkpointing.run, "own")
    assert not desk.undo.has_run(checkpointing.run, "a")
    assert not desk.undo.has_run("run-dead0001", "own")
