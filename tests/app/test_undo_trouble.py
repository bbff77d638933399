"""Undo where something is wrong: the disk, the checkpoint, another kernel, a second click, a run under way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from nbagent.app.undo import Undo
from nbagent.extend.checkpoint_files import RUNS
from tests.app.undoing import Desk
from tests.support.disk import full_disk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_a_checkpoint_that_can_not_be_written_is_told_once_and_serves_all_the_same(desk: Desk) -> None:
    (desk.folder / ".nbagent").write_text("a file where the folder should be")
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
    assert checkpointing.problem.startswith("The checkpoint of this run is kept only as long as this kernel lives")
    assert "Not a directory" in checkpointing.problem
    said = await desk.back()
    assert desk.cell("a")["source"] == "a = 1"
    assert said.count("kept only as long as this kernel lives") == 1
    (desk.folder / ".nbagent").unlink()
    assert "as long as" not in await desk.again()
    later = Undo(desk.folder, dict)
    assert "restored the text" in (await later.take_back(desk.notebook)).text


@pytest.mark.slow
async def test_a_file_for_which_the_disk_has_no_room_waits_for_the_next_undo(desk: Desk) -> None:
    (desk.folder / "big.txt").write_bytes(b"x" * 100_000)
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
        await desk.call("write_file", path="big.txt", content="small")
    with full_disk(50_000):
        said = await desk.back()
    assert "big.txt could not be restored: File too large" in said
    assert "%agent undo tries again what could not be done." in said
    assert "kept only as long as this kernel lives" in said
    assert sorted(path.name for path in desk.folder.iterdir()) == [".nbagent", "big.txt"]
    assert ((desk.folder / "big.txt").read_text(), desk.cell("a")["source"]) == ("small", "a = 1")
    assert "restored big.txt" in await desk.back()
    assert (desk.folder / "big.txt").read_bytes() == b"x" * 100_000


async def test_a_damaged_checkpoint_is_told_and_what_can_be_read_of_it_is_used(desk: Desk) -> None:
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
        await desk.edit("b", "b = 10")
    [path] = desk.folder.glob(".nbagent/checkpoints/*")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line if '"b"' not in line else line[:-9] for line in lines) + "\n")
    said = await desk.back()
    assert "Can't be taken back:\n  what it did last: its checkpoint breaks off" in said
    assert [desk.cell(i)["source"] for i in "ab"] == ["a = 1", "b = 10"]
    path.write_text("no checkpoint")
    assert "The checkpoint of this run can't be read any more" in await desk.again(checkpointing.run)
    assert "Nothing is known of this run any more" in await desk.again(checkpointing.run)


async def test_of_two_kernels_each_sees_what_the_other_took_back(desk: Desk) -> None:
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
        desk.kernel.names["n"] = 2
    other = Undo(desk.folder, dict)
    said = (await other.take_back(desk.notebook)).text
    assert "restored the text" in said
    assert "the variables: they were only in the memory of the kernel that ran it, and this is another one" in said
    assert "taken back already" in await desk.back(checkpointing.run)
    assert desk.cell("a")["source"] == "a = 1"
    said = await desk.again()
    assert "the variables: another kernel has taken this run back, or done it again, since" in said
    assert (desk.cell("a")["source"], desk.kernel.names["n"]) == ("a = 10", 2)


async def test_an_undo_that_is_asked_for_twice_at_once_is_made_once(desk: Desk) -> None:
    with desk.run("first") as first:
        desk.take(first)
        await desk.edit("a", "a = 10")
    with desk.run("second") as second:
        desk.take(second)
        await desk.edit("a", "a = 20")
    said = await asyncio.gather(desk.back(second.run), desk.back(second.run))
    assert [text.partition(":")[0] for text in said] == ["Taken back", "This run was taken back already"]
    assert desk.cell("a")["source"] == "a = 10"


async def test_while_an_agent_runs_nothing_is_taken_back_done_again_or_forgotten(desk: Desk) -> None:
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
    busy = Undo(desk.folder, dict, running=lambda: True)
    said = [
        (await busy.take_back(desk.notebook)).text,
        (await busy.do_again(desk.notebook)).text,
        await busy.forget(desk.notebook),
    ]
    assert said == ["An agent is running. Stop it first, or wait for it: then its run can be taken back."] * 3
    assert "restored the text" in await desk.back()


async def test_redo_leaves_what_the_person_edited_since_the_undo_and_does_the_rest_again(desk: Desk) -> None:
    (desk.folder / "x.txt").write_text("old")
    with desk.run() as checkpointing:
        desk.take(checkpointing)
        await desk.edit("a", "a = 10")
        await desk.edit("b", "b = 10")
        await desk.call("write_file", path="x.txt", content="agent's")
        await desk.call("read_cell", cell="c")
        await desk.call("delete_cell", cell="c")
        desk.kernel.names["n"] = 2
    await desk.back()
    desk.cell("a")["source"] = "a = 'mine'"
    desk.cell("c")["source"] = "c = 'mine'"
    (desk.folder / "x.txt").write_text("mine")
    desk.kernel.names["n"] = 3
    said = await desk.again()
    assert "“a = 'mine'” keeps its text: it was edited since" in said
    assert "“c = 'mine'” stays: it was edited since" in said
    assert "x.txt stays as it is: it was changed since" in said
    assert "variables that were set anew since: n" in said
    assert [desk.cell(i)["source"] for i in "abc"] == ["a = 'mine'", "b = 10", "c = 'mine'"]


@pytest.mark.slow
async def test_without_a_disk_only_so_many_runs_are_kept(desk: Desk) -> None:
    (desk.folder / ".nbagent").write_text("a file where the folder should be")
    for number in range(RUNS + 5):
        with desk.run(str(number)) as checkpointing:
            desk.take(checkpointing)
            await desk.edit("a", f"a = {number + 100}")
    assert len(desk.undo._entries) == RUNS
