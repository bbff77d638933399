"""What a checkpoint keeps and what it recognises, on disk and in memory, and the names of a namespace."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.ports import Cell
from nbagent.extend import checkpoint_files
from nbagent.extend.bindings import Bindings
from nbagent.extend.checkpoint_files import BROKEN_OFF, RUNS, CheckpointFolder
from nbagent.extend.checkpoints import (
    FILE_LIMIT,
    OUTPUT_LIMIT,
    CellChange,
    CellState,
    Checkpoint,
    FileChange,
    Footprint,
    Head,
    outputs_hash,
)
from nbagent.extend.seals import Seals
from tests.support.disk import full_disk

if TYPE_CHECKING:
    from pathlib import Path

HEAD = Head("run-1", 1_000.0, "do it", "work.ipynb", "own", "kernel")


def stream(text: Any) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def cell(source: str = "x", number: int | None = 1, outputs: tuple[dict[str, Any], ...] = ()) -> Cell:
    return Cell("c", "code", source, 0, number, outputs)


# ── recognising ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cell_is_what_was_left_as_long_as_its_text_is() -> None:
    left = Footprint.of(cell("x = 1"))
    assert left.same_text(cell("x = 1"))
    assert not left.same_text(cell("x = 1 "))
    assert not left.same_text(replace(cell("x = 1"), type="markdown"))


def test_a_cell_that_ran_again_is_known_by_its_count_and_in_another_kernel_by_its_outputs() -> None:
    left = Footprint.of(cell(number=3, outputs=(stream("a"),)))
    late = cell(number=3, outputs=(stream("a and late words of a thread"),))
    assert left.same_run(late)
    assert not left.same_run(late, same_kernel=False)
    assert left.same_run(cell(number=3, outputs=(stream(["a"]),)), same_kernel=False)
    assert not left.same_run(cell(number=4, outputs=(stream("a"),)))


def test_outputs_are_the_same_however_a_host_stores_their_text() -> None:
    plot = {"output_type": "display_data", "data": {"text/plain": ["a\n", "b"]}, "metadata": {}}
    assert outputs_hash([plot]) == outputs_hash([{**plot, "data": {"text/plain": "a\nb"}}])
    assert outputs_hash([plot]) != outputs_hash([{**plot, "data": {"text/plain": "a"}}])


def test_outputs_that_are_too_large_are_not_kept_and_no_line_in_their_place_is_taken_for_them() -> None:
    assert CellState.of(cell(outputs=(stream("x" * OUTPUT_LIMIT),))).outputs is None
    line = "[image/png: 5000000 characters, too large to read back]"
    left_out = {"output_type": "display_data", "data": {"text/plain": line}, "metadata": {}}
    assert CellState.of(cell(outputs=(stream("a"), left_out))).outputs is None
    assert CellState.of(cell(outputs=(stream("a"),))).outputs == (stream("a"),)


# ── disk ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def filled(checkpoint: Checkpoint) -> Checkpoint:
    before = CellState("code", "a = 1", 3, (stream("1"),), {"tags": ["x"]}, (("left",), ("right",)))
    checkpoint.set_cell(CellChange("c1", before, Footprint("code", "abc", 4, "def"), keys=("nbagent",)), "c1")
    checkpoint.set_cell(CellChange("c2", None, Footprint("markdown", "abc"), made=True), "c2")
    checkpoint.set_cell(CellChange("c3", before, None, theirs=True), "c3")
    checkpoint.set_cell(CellChange("c1", before, Footprint("code", "new", 5, None, ((), ("c2",))), moved=True), "c1")
    checkpoint.set_file(FileChange("/w/a.bin", "a.bin", b"\x00\xff", "hash", made=("/w/new",)))
    checkpoint.set_file(FileChange("/w/b.csv", "b.csv", None, "hash", lost="it was too large to keep"))
    checkpoint.note("what In[3] did outside")
    return checkpoint


def test_a_checkpoint_comes_back_from_disk_as_it_was_written_fact_by_fact(tmp_path: Path) -> None:
    folder, checkpoint = CheckpointFolder(tmp_path), Checkpoint(HEAD)
    journal = folder.journal(checkpoint)
    path = journal.path
    assert not path.exists(), "nothing is written for a run that changes nothing"
    filled(checkpoint)
    assert journal.end() == ""
    back = folder.load(path)
    assert back is not None
    assert (back.head, back.cells, back.placed, back.files, back.cannot) == (
        HEAD, checkpoint.cells, ["c3", "c1"], checkpoint.files, checkpoint.cannot
    )  # fmt: skip
    assert folder.heads() == [(path, HEAD)]
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / ".nbagent" / ".gitignore").read_text() == "*\n"


def test_a_checkpoint_that_this_person_did_not_write_is_not_there(tmp_path: Path) -> None:
    ours, theirs = Seals(tmp_path / "mine"), Seals(tmp_path / "another's")
    path = CheckpointFolder(tmp_path, theirs).journal(checkpoint := Checkpoint(HEAD)).path
    filled(checkpoint)
    assert CheckpointFolder(tmp_path, ours).heads() == []
    assert CheckpointFolder(tmp_path, ours).load(path) is None
    assert CheckpointFolder(tmp_path, theirs).load(path) is not None


def test_a_line_that_was_changed_or_put_elsewhere_ends_a_checkpoint(tmp_path: Path) -> None:
    folder, checkpoint = CheckpointFolder(tmp_path), Checkpoint(HEAD)
    path = folder.journal(checkpoint).path
    for name in ("a", "b", "c"):
        checkpoint.set_file(FileChange(f"/w/{name}", name, name.encode(), "hash"))
    lines = path.read_text().splitlines()
    changed = [lines[0], lines[1], lines[2].replace("/w/b", "/w/evil"), lines[3]]
    for damaged in (changed, [lines[0], lines[1], lines[3], lines[2]]):
        path.write_text("\n".join(damaged) + "\n")
        back = folder.load(path)
        assert back is not None
        assert list(back.files) == ["/w/a"]
    path.write_text(lines[0].replace("work.ipynb", "other.ipynb"))
    assert folder.heads() == []


def test_the_old_bytes_of_a_file_are_written_once(tmp_path: Path) -> None:
    folder, checkpoint = CheckpointFolder(tmp_path), Checkpoint(HEAD)
    path = folder.journal(checkpoint).path
    change = FileChange("/w/a", "a", b"x" * 10_000, "hash")
    for number in range(20):
        checkpoint.set_file(replace(change, after=f"hash {number}"))
    assert path.stat().st_size < 30_000
    back = folder.load(path)
    assert back is not None
    assert back.files == {"/w/a": replace(change, after="hash 19")}


def test_what_was_before_is_written_once(tmp_path: Path) -> None:
    folder, checkpoint = CheckpointFolder(tmp_path), Checkpoint(HEAD)
    path = folder.journal(checkpoint).path
    before = CellState("code", "a", 1, (stream("x" * 10_000),))
    for number in range(50):
        checkpoint.set_cell(CellChange("c", before, Footprint("code", "h", number)), "c")
    assert path.stat().st_size < 25_000
    back = folder.load(path)
    assert back is not None
    assert back.cells["c"].before == before


def test_a_line_that_was_cut_off_by_a_crash_loses_only_itself_and_is_told(tmp_path: Path) -> None:
    folder, checkpoint = CheckpointFolder(tmp_path), Checkpoint(HEAD)
    path = folder.journal(checkpoint).path
    filled(checkpoint)
    text = path.read_text()
    path.write_text(text[: text.rindex("\n", 0, -1) + 10])
    back = folder.load(path)
    assert back is not None
    assert back.files == checkpoint.files
    assert list(back.cannot) == [BROKEN_OFF]


def test_what_a_full_disk_refused_is_told_and_what_came_before_it_is_there(tmp_path: Path) -> None:
    folder, checkpoint = CheckpointFolder(tmp_path), Checkpoint(HEAD)
    journal = folder.journal(checkpoint)
    checkpoint.set_file(FileChange("/w/a", "a", b"a", "hash"))
    with full_disk(2000):
        checkpoint.set_file(FileChange("/w/b", "b", b"x" * 4000, "hash"))
    assert journal.end() == f"{journal.path}: File too large"
    back = folder.load(journal.path)
    assert back is not None
    assert (list(back.files), list(back.cannot)) == (["/w/a"], [BROKEN_OFF])
    with full_disk(2000):
        assert folder.rewrite(journal.path, checkpoint).endswith(": File too large")
    assert list(folder.folder.iterdir()) == [journal.path], "nothing half-written stays behind"
    assert folder.rewrite(journal.path, checkpoint) == ""
    back = folder.load(journal.path)
    assert back is not None
    assert (back.files, back.cannot) == (checkpoint.files, {})


def test_a_folder_that_is_cleared_away_in_the_middle_of_a_run_loses_nothing(tmp_path: Path) -> None:
    folder, checkpoint = CheckpointFolder(tmp_path), Checkpoint(HEAD)
    journal = folder.journal(checkpoint)
    checkpoint.set_file(FileChange("/w/a", "a", b"a", "hash"))
    journal.path.unlink()
    checkpoint.set_file(FileChange("/w/b", "b", b"b", "hash"))
    assert journal.end() == ""
    back = folder.load(journal.path)
    assert back is not None
    assert (back.files, back.cannot) == (checkpoint.files, {})


@pytest.mark.parametrize("text", ["", "{}\n", "[]\n", "no json\n", '{"type": "run"}\n', "\ud800\n"])
def test_a_file_that_is_no_checkpoint_is_left_out(tmp_path: Path, text: str) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.folder.mkdir(parents=True)
    (folder.folder / "x.jsonl").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert folder.heads() == []
    assert folder.load(folder.folder / "x.jsonl") is None


def test_rewriting_is_whole_or_not_at_all(tmp_path: Path) -> None:
    folder, checkpoint = CheckpointFolder(tmp_path), Checkpoint(HEAD)
    path = folder.journal(checkpoint).path
    filled(checkpoint)
    undone = replace(HEAD, undone=("cells",), undone_at=2.0)
    assert folder.rewrite(path, Checkpoint(undone, files=checkpoint.files)) == ""
    back = folder.load(path)
    assert back is not None
    assert (back.head, back.cells, back.files) == (undone, {}, checkpoint.files)
    assert list(folder.folder.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600


def test_only_so_many_checkpoints_are_kept_and_the_newest_in_any_case(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    for number in range(RUNS + 3):
        checkpoint = Checkpoint(replace(HEAD, run=f"run-{number}", at=number * 60.0))
        folder.journal(checkpoint)
        checkpoint.note("something")
    folder.prune()
    assert [head.run for _, head in folder.heads()] == [f"run-{number}" for number in range(3, RUNS + 3)]
    assert checkpoint_files.FOLDER_LIMIT > 3 * (OUTPUT_LIMIT + FILE_LIMIT)


def test_a_folder_that_cannot_be_written_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / ".nbagent").write_text("a file in the way")
    folder, checkpoint = CheckpointFolder(tmp_path), Checkpoint(HEAD)
    journal = folder.journal(checkpoint)
    path = journal.path
    filled(checkpoint)
    assert journal.end() == f"{path}: Not a directory"
    assert folder.heads() == []
    assert folder.load(path) is None
    assert folder.rewrite(path, checkpoint).endswith(": Not a directory")
    assert folder.remove(path) == 0


def test_records_are_json_and_a_newer_versions_facts_do_no_harm() -> None:
    checkpoint = filled(Checkpoint(HEAD))
    lines = [json.loads(json.dumps(record)) for record in checkpoint.records()]
    back = Checkpoint(HEAD)
    for line in [*lines[1:], {"type": "of a newer version"}]:
        back.take(line)
    assert back.cells == checkpoint.cells


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Table:
    """Something large that weak references reach."""


def test_names_are_put_back_and_the_way_back_leads_to_where_they_were() -> None:
    old, new = Table(), Table()
    space: dict[str, Any] = {"df": old, "gone": 1, "same": 5}
    before = dict(space)
    space.update(df=new, added=2)
    del space["gone"]
    names = Bindings.between(before, space)
    reverse, told = names.restore(space)
    assert space == before
    assert (told.names, told.removed, told.kept) == (("df", "gone"), ("added",), ())
    again, told = reverse.restore(space)
    assert space == {"df": new, "same": 5, "added": 2}
    again.restore(space)
    assert space == before


@pytest.mark.parametrize(
    ("left", "theirs"),
    [
        (Table(), Table()),
        ([1, 2], [1, 2]),
        ({"a": 1}, {"a": 1}),
        ("x" * 100_000, "y" * 100_000),
        (10**40, 10**40 + 1),
        ((1, [2]), (1, [2])),
        ({1}, {1}),
    ],
)
def test_a_name_that_the_person_has_set_since_stays_theirs(left: object, theirs: object) -> None:
    space: dict[str, Any] = {"x": left}
    names = Bindings.between({"x": "old"}, space)
    space["x"] = theirs
    _, told = names.restore(space)
    assert space["x"] is theirs
    assert told.kept == ("x",)


def test_a_name_that_the_person_deleted_since_stays_deleted() -> None:
    names = Bindings.between({"x": "old"}, {"x": "new"})
    space: dict[str, Any] = {}
    assert names.restore(space)[1].kept == ("x",)
    assert space == {}


@pytest.mark.slow
def test_what_a_run_left_can_be_freed_and_only_what_it_replaced_is_kept() -> None:
    replaced, left, other = Table(), Table(), Table()
    watched = {name: weakref.ref(value) for name, value in (("old", replaced), ("new", left), ("other", other))}
    space: dict[str, Any] = {"df": left, "fresh": Table(), "other": other}
    names = Bindings.between({"df": replaced, "other": other}, space)
    space.clear()
    del replaced, left, other
    gc.collect()
    assert watched["old"]() is not None
    assert watched["new"]() is None
    assert watched["other"]() is None
    assert names.held() > 0


@pytest.mark.slow
@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)),
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)),
)
def test_any_change_of_names_is_taken_back(before: dict[str, int], after: dict[str, int]) -> None:
    space: dict[str, Any] = dict(after)
    reverse, _ = Bindings.between(before, after).restore(space)
    assert space == before
    reverse.restore(space)
    assert space == after
