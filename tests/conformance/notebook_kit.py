"""Every promise of the Notebook port, one async function each, for every host of it.

A host's test makes a `NotebookHost` and awaits each of its promises with it, e.g.

    @pytest.mark.parametrize("promise", promises(), ids=promise_name)
    async def test_keeps_the_promise(promise, host):
        await promise(host)

A host that can't do something says so, to `promises` and in its `NotebookHost`, and nothing is skipped in silence: what it
can't do it must refuse with a sentence, and must leave the notebook as it was. `promises({"run"})`: it runs no cells and
keeps what else there is. `promises({"write"})`: it only proposes (`proposes_only`), and keeps `PROMISES_OF_A_PROPOSAL`.

A promise begins by adding cells of its own at the end, so one notebook may serve all of them, and none depends on
what else is in it. It only talks through the port and through `user_edit`, the one thing that a host must provide: it
changes a cell's source as the person would. All can be awaited in a kernel too: nothing here needs pytest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Literal

from nbagent.core.errors import NotebookError
from nbagent.core.ports import Anchor, Cell, Notebook, Output, source_hash

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


Ability = Literal["write", "run"]
"""What not every host can: change the notebook at all; show a running cell (`begin_run`)."""


@dataclass(frozen=True)
class NotebookHost:
    """A notebook with at least one cell, how its person changes a cell's source, and what the host can't do."""

    notebook: Notebook
    user_edit: Callable[[str, str], Awaitable[None]]
    cannot: Collection[Ability] = ()


Promise = Callable[[NotebookHost], Awaitable[None]]


def promises(cannot: Collection[Ability] = ()) -> tuple[Promise, ...]:
    """Return what a host must keep that can't do `cannot`."""
    if "write" in cannot:
        return PROMISES_OF_A_PROPOSAL
    if "run" in cannot:
        return (*PROMISES, what_does_not_run_is_refused_and_unchanged)
    return (*PROMISES, *PROMISES_OF_RUNS)


def promise_name(promise: Promise) -> str:
    """Name of a promise as a test id."""
    return promise.__name__


async def add(host: NotebookHost, *sources: str) -> list[str]:
    """Add code cells at the end and return their ids."""
    ids = []
    for source in sources:
        last = (await host.notebook.cells())[-1]
        ids.append((await host.notebook.insert(Anchor(last.id), "code", source)).id)
    return ids


async def order(host: NotebookHost, ids: list[str]) -> list[str]:
    """Return those of `ids` that are in the notebook, in its order."""
    return [cell.id for cell in await host.notebook.cells() if cell.id in ids]


async def run(host: NotebookHost, cell_id: str, outputs: list[Output], number: int | None = 7) -> Cell:
    """Give a cell outputs as a run would, check that `end` tells what is there, and return it as read back."""
    sink = await host.notebook.begin_run(cell_id)
    for output in outputs:
        sink.emit(output)
    ended = await sink.end(number)
    cell = await host.notebook.read(cell_id)
    assert [plain(o) for o in ended] == [plain(o) for o in cell.outputs], "end() told other outputs than are there"
    return cell


def plain(output: Output) -> tuple[object, ...]:
    """Return what counts of an output, whichever way a host stores texts."""
    data = {mime: text(value) for mime, value in (output.get("data") or {}).items()}
    return (output["output_type"], output.get("name"), text(output.get("text")), data, output.get("ename"))


def text(value: object) -> str:
    """Join a text that may be stored as a list of lines."""
    return "".join(value) if isinstance(value, list) else str(value or "")


def stream(words: str, name: str = "stdout") -> Output:
    return {"output_type": "stream", "name": name, "text": words}


def display(words: str, display_id: str | None = None, *, update: bool = False) -> Output:
    output: Output = {"output_type": "display_data", "data": {"text/plain": words}, "metadata": {}}
    if display_id:
        output["_display_id"] = display_id
    if update:
        output["_update"] = True
    return output


async def refused(action: Awaitable[object]) -> str:
    """Return the sentence with which an operation was refused."""
    try:
        await action
    except NotebookError as error:
        assert len(str(error)) > 10, "a refusal must be a sentence"
        return str(error)
    raise AssertionError("the notebook took what it must refuse")


# ── places ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def a_cell_goes_right_after_its_anchor(host: NotebookHost) -> None:
    first, last = await add(host, "first", "last")
    new = await host.notebook.insert(Anchor(first, "after"), "code", "between")
    assert await order(host, [first, last, new.id]) == [first, new.id, last]


async def a_cell_goes_right_before_its_anchor(host: NotebookHost) -> None:
    first, last = await add(host, "first", "last")
    new = await host.notebook.insert(Anchor(last, "before"), "code", "between")
    assert await order(host, [first, last, new.id]) == [first, new.id, last]


async def cells_inserted_each_after_the_one_before_keep_their_order(host: NotebookHost) -> None:
    ids = await add(host, "one", "two", "three", "four")
    assert await order(host, ids) == ids
    cells = {cell.id: cell for cell in await host.notebook.cells()}
    assert [cells[i].source for i in ids] == ["one", "two", "three", "four"]
    places = [cells[i].index for i in ids]
    assert places == list(range(places[0], places[0] + 4))


async def a_cell_moves_after_and_before(host: NotebookHost) -> None:
    a, b, c = await add(host, "a", "b", "c")
    moved = await host.notebook.move(a, Anchor(c, "after"))
    assert (moved.id, moved.source) == (a, "a")
    assert await order(host, [a, b, c]) == [b, c, a]
    await host.notebook.move(a, Anchor(b, "before"))
    assert await order(host, [a, b, c]) == [a, b, c]
    await host.notebook.move(b, Anchor(b, "after"))
    assert await order(host, [a, b, c]) == [a, b, c]


async def a_moved_cell_keeps_its_outputs(host: NotebookHost) -> None:
    a, b = await add(host, "a", "b")
    await host.notebook.set_outputs(a, [stream("kept\n")], 7)
    moved = await host.notebook.move(a, Anchor(b))
    assert moved.number == 7
    assert text((await host.notebook.read(a)).outputs[0]["text"]) == "kept\n"


# ── sources ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def what_was_inserted_is_read_back(host: NotebookHost) -> None:
    source = "x = 'é €😀 <b>&amp;'\n\nif x:\n\tprint(x)\n"
    last = (await host.notebook.cells())[-1]
    for kind in ("code", "markdown"):
        new = await host.notebook.insert(Anchor(last.id), kind, source)
        assert (new.type, new.source, new.number, new.outputs) == (kind, source, None, ())
        assert await host.notebook.read(new.id) == new
        listed = [cell for cell in await host.notebook.cells() if cell.id == new.id]
        assert [(cell.type, cell.source, cell.index) for cell in listed] == [(kind, source, new.index)]


async def an_edit_is_read_back(host: NotebookHost) -> None:
    (a,) = await add(host, "old")
    edited = await host.notebook.edit(a, "new\nlines", source_hash("old"))
    assert (edited.id, edited.source) == (a, "new\nlines")
    assert (await host.notebook.read(a)).source == "new\nlines"


async def an_edit_for_another_source_is_refused(host: NotebookHost) -> None:
    (a,) = await add(host, "old")
    said = await refused(host.notebook.edit(a, "new", source_hash("something else")))
    assert a in said and "changed" in said, said
    assert (await host.notebook.read(a)).source == "old"


async def what_the_person_wrote_meanwhile_is_never_overwritten(host: NotebookHost) -> None:
    (a,) = await add(host, "old")
    read = await host.notebook.read(a)
    await host.user_edit(a, "the person's")
    await refused(host.notebook.edit(a, "the agent's", read.hash))
    await refused(host.notebook.delete(a, read.hash))
    again = await host.notebook.read(a)
    assert again.source == "the person's"
    assert (await host.notebook.edit(a, "both", again.hash)).source == "both"


async def a_deleted_cell_is_gone(host: NotebookHost) -> None:
    a, b = await add(host, "a", "b")
    await host.notebook.delete(a, source_hash("a"))
    assert await order(host, [a, b]) == [b]
    await refused(host.notebook.read(a))


async def unknown_ids_are_refused_with_the_real_ones(host: NotebookHost) -> None:
    (a,) = await add(host, "import pandas as pd\nmore")
    every = [cell.id for cell in await host.notebook.cells()]
    for invented in ("import pandas", "3", "no-such-cell", ""):
        said = await refused(host.notebook.edit(invented, "x", source_hash("x")))
        if len(every) <= 12:
            assert a in said and "import pandas as pd" in said and "code" in said, said
        await refused(host.notebook.read(invented))
        await refused(host.notebook.delete(invented, source_hash("x")))
        await refused(host.notebook.insert(Anchor(invented), "code", "x"))
        await refused(host.notebook.move(invented, Anchor(a)))
        await refused(host.notebook.move(a, Anchor(invented)))
        await refused(host.notebook.set_outputs(invented, [], None))
        await refused(host.notebook.set_metadata(invented, {"x": 1}))
        await refused(host.notebook.begin_run(invented))
    assert [cell.id for cell in await host.notebook.cells()] == every, "a refused operation changed the notebook"


async def a_deleted_cell_comes_back_under_its_old_id(host: NotebookHost) -> None:
    a, b = await add(host, "a = 1", "b = 2")
    old = await host.notebook.read(a)
    await host.notebook.delete(a, old.hash)
    back = await host.notebook.insert(Anchor(b, "before"), "code", old.source, cell_id=a)
    assert (back.id, back.source) == (a, "a = 1")
    assert await order(host, [a, b]) == [a, b]


async def an_id_that_is_there_is_not_given_twice(host: NotebookHost) -> None:
    a, b = await add(host, "a", "b")
    count = len(await host.notebook.cells())
    said = await refused(host.notebook.insert(Anchor(b), "code", "another", cell_id=a))
    assert a in said, said
    assert len(await host.notebook.cells()) == count
    assert (await host.notebook.read(a)).source == "a"


# ── metadata ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WHO = {"nbagent": {"session": "s", "run": "r", "call": "c", "n": [1, {"deep": None}]}}


async def metadata_comes_with_a_new_cell(host: NotebookHost) -> None:
    last = (await host.notebook.cells())[-1]
    for kind in ("code", "markdown"):
        new = await host.notebook.insert(Anchor(last.id), kind, "x", metadata={**WHO, "tags": ["t"], "not": None})
        for cell in (new, await host.notebook.read(new.id)):
            assert (cell.metadata["nbagent"], cell.metadata["tags"]) == (WHO["nbagent"], ["t"])
            assert "not" not in cell.metadata


async def metadata_is_merged_key_by_key(host: NotebookHost) -> None:
    (a,) = await add(host, "x")
    await host.notebook.set_metadata(a, {"kept": 1, "goes": 2, "changes": {"old": 1}})
    cell = await host.notebook.set_metadata(a, {"goes": None, "never was": None, "changes": {"new": 2}})
    for read in (cell, await host.notebook.read(a)):
        assert (read.metadata["kept"], read.metadata["changes"]) == (1, {"new": 2})
        assert not {"goes", "never was"} & set(read.metadata)
        assert read.source == "x"
    listed = next(cell for cell in await host.notebook.cells() if cell.id == a)
    assert listed.metadata["changes"] == {"new": 2}


async def an_edit_carries_metadata_and_a_refused_one_does_not(host: NotebookHost) -> None:
    (a,) = await add(host, "old")
    edited = await host.notebook.edit(a, "new", source_hash("old"), metadata=WHO)
    assert (edited.source, edited.metadata["nbagent"]) == ("new", WHO["nbagent"])
    await refused(host.notebook.edit(a, "newer", source_hash("old"), metadata={"nbagent": "not this"}))
    assert (await host.notebook.read(a)).metadata["nbagent"] == WHO["nbagent"]


# ── outputs that are set ─────────────────────────────────────────────────────────────────────────────────────────────


async def outputs_are_set_as_they_were_read(host: NotebookHost) -> None:
    a, b = await add(host, "a", "b")
    image: Output = {
        "output_type": "display_data",
        "data": {"image/png": PNG, "text/plain": "<Figure>"},
        "metadata": {},
    }
    result: Output = {
        "output_type": "execute_result",
        "data": {"text/html": "<b>4</b>"},
        "metadata": {},
        "execution_count": 3,
    }
    error: Output = {"output_type": "error", "ename": "E", "evalue": "e", "traceback": ["one", "two"]}
    lines: Output = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
    first = await host.notebook.set_outputs(a, [lines, image, result, error, stream("oh", "stderr")], 3)
    assert (first.id, first.number, len(first.outputs)) == (a, 3, 5)
    read = await host.notebook.read(a)
    second = await host.notebook.set_outputs(b, read.outputs, read.number)
    for cell in (first, read, second, await host.notebook.read(b)):
        assert [plain(output) for output in cell.outputs] == [plain(o) for o in (lines, image, result, error)] + [
            plain(stream("oh", "stderr"))
        ]
        assert cell.number == 3
        assert list(cell.outputs[3]["traceback"]) == ["one", "two"]


async def outputs_that_are_set_replace_those_that_were_there(host: NotebookHost) -> None:
    (a,) = await add(host, "a")
    await host.notebook.set_outputs(a, [stream("old\n"), display("old")], 3)
    cell = await host.notebook.set_outputs(a, [display("new")], 4)
    assert ([text(o["data"]["text/plain"]) for o in cell.outputs], cell.number) == (["new"], 4)
    cell = await host.notebook.set_outputs(a, [], None)
    assert (cell.outputs, cell.number, cell.source) == ((), None, "a")


async def only_code_cells_have_outputs(host: NotebookHost) -> None:
    last = (await host.notebook.cells())[-1]
    words = await host.notebook.insert(Anchor(last.id), "markdown", "# words")
    await refused(host.notebook.set_outputs(words.id, [stream("x")], 1))


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def outputs_arrive_in_order_and_typed(host: NotebookHost) -> None:
    (a,) = await add(host, "x")
    image = {"output_type": "display_data", "data": {"image/png": PNG, "text/plain": "<Figure>"}, "metadata": {}}
    result = {"output_type": "execute_result", "data": {"text/plain": "42"}, "metadata": {}, "execution_count": 7}
    error = {"output_type": "error", "ename": "NameError", "evalue": "x", "traceback": ["NameError: x"]}
    cell = await run(host, a, [stream("before\n"), image, stream("after\n"), stream("oh\n", "stderr"), result, error])
    kinds = [output["output_type"] for output in cell.outputs]
    assert kinds == ["stream", "display_data", "stream", "stream", "execute_result", "error"]
    assert text(cell.outputs[1]["data"]["image/png"]).strip() == PNG
    assert [text(o.get("text")) for o in cell.outputs if o["output_type"] == "stream"] == [
        "before\n",
        "after\n",
        "oh\n",
    ]
    assert cell.outputs[4]["execution_count"] == 7
    assert not any(key.startswith("_") for output in cell.outputs for key in output)


async def pieces_of_a_stream_become_one(host: NotebookHost) -> None:
    (a,) = await add(host, "x")
    cell = await run(host, a, [stream("one"), stream(" two\nth"), stream("ree\n"), stream("err", "stderr")])
    assert [(o["name"], text(o["text"])) for o in cell.outputs] == [("stdout", "one two\nthree\n"), ("stderr", "err")]


async def a_redrawn_line_shows_its_last_state(host: NotebookHost) -> None:
    (a,) = await add(host, "x")
    redraws = [stream(f"\r{n:3d}%") for n in range(0, 101, 10)]
    cell = await run(host, a, [stream("start\n"), *redraws, stream("\ndone\r"), stream("\n")])
    assert text(cell.outputs[0]["text"]) == "start\n100%\ndone\n"
    cell = await run(host, a, [stream("\rfirst"), stream("\rsecond")])
    assert text(cell.outputs[0]["text"]) == "second"


async def a_display_is_updated_where_it_is(host: NotebookHost) -> None:
    a, b = await add(host, "a", "b")
    await run(host, a, [display("old", "d1"), display("other", "d2"), display("new", "d1", update=True)])
    shown = [text(o["data"]["text/plain"]) for o in (await host.notebook.read(a)).outputs]
    assert shown == ["new", "other"]
    await run(host, b, [display("nobody has it", "d9", update=True)])
    assert (await host.notebook.read(b)).outputs == ()


async def clear_output_clears_at_once_or_with_the_next_output(host: NotebookHost) -> None:
    (a,) = await add(host, "x")
    now: Output = {"output_type": "clear_output", "wait": False}
    later: Output = {"output_type": "clear_output", "wait": True}
    cell = await run(host, a, [stream("gone\n"), now])
    assert cell.outputs == ()
    cell = await run(host, a, [stream("gone\n"), later, stream("there\n")])
    assert [text(o["text"]) for o in cell.outputs] == ["there\n"]
    cell = await run(host, a, [stream("stays\n"), later])
    assert [text(o["text"]) for o in cell.outputs] == ["stays\n"]


async def a_run_sets_the_number_and_the_next_starts_empty(host: NotebookHost) -> None:
    (a,) = await add(host, "x")
    assert (await run(host, a, [stream("first\n")], number=7)).number == 7
    listed = [cell for cell in await host.notebook.cells() if cell.id == a]
    assert (listed[0].number, listed[0].outputs) == (7, ())
    cell = await run(host, a, [], number=8)
    assert (cell.number, cell.outputs) == (8, ())
    assert (await run(host, a, [], number=None)).number is None


async def the_person_may_edit_a_cell_while_it_runs(host: NotebookHost) -> None:
    (a,) = await add(host, "x")
    sink = await host.notebook.begin_run(a)
    sink.emit(stream("one\n"))
    await host.user_edit(a, "y")
    sink.emit(stream("two\n"))
    await sink.end(7)
    cell = await host.notebook.read(a)
    assert (cell.source, text(cell.outputs[0]["text"])) == ("y", "one\ntwo\n")


async def outputs_follow_a_cell_that_moves_while_it_runs(host: NotebookHost) -> None:
    a, b = await add(host, "a", "b")
    sink = await host.notebook.begin_run(a)
    sink.emit(stream("one\n"))
    await host.notebook.move(a, Anchor(b))
    sink.emit(stream("two\n"))
    await sink.end(7)
    assert text((await host.notebook.read(a)).outputs[0]["text"]) == "one\ntwo\n"
    assert (await host.notebook.read(b)).outputs == ()


async def nothing_arrives_after_the_end(host: NotebookHost) -> None:
    (a,) = await add(host, "x")
    sink = await host.notebook.begin_run(a)
    sink.emit(stream("in time\n"))
    await sink.end(7)
    sink.emit(stream("late\n"))
    await host.notebook.save()
    assert [text(o["text"]) for o in (await host.notebook.read(a)).outputs] == ["in time\n"]


async def only_code_cells_run(host: NotebookHost) -> None:
    last = (await host.notebook.cells())[-1]
    words = await host.notebook.insert(Anchor(last.id), "markdown", "# words")
    await refused(host.notebook.begin_run(words.id))


async def a_run_begins_without_the_outputs_that_were_set(host: NotebookHost) -> None:
    (a,) = await add(host, "x")
    await host.notebook.set_outputs(a, [display("old"), stream("old\n")], 3)
    cell = await run(host, a, [stream("new\n")], number=9)
    assert [text(o.get("text")) for o in cell.outputs] == ["new\n"]
    cell = await host.notebook.set_outputs(a, [*cell.outputs, stream("more", "stderr")], 10)
    assert [text(o.get("text")) for o in cell.outputs] == ["new\n", "more"]


async def what_does_not_run_is_refused_and_unchanged(host: NotebookHost) -> None:
    (a,) = await add(host, "x")
    await host.notebook.set_outputs(a, [stream("stays\n")], 3)
    await refused(host.notebook.begin_run(a))
    cell = await host.notebook.read(a)
    assert (cell.number, [text(o["text"]) for o in cell.outputs]) == (3, ["stays\n"])


async def saving_keeps_everything(host: NotebookHost) -> None:
    (a,) = await add(host, "x = 1")
    await host.notebook.set_outputs(a, [stream("out\n")], 7)
    before = await host.notebook.read(a)
    await host.notebook.save()
    assert (await host.notebook.read(a)).hash == before.hash
    assert text((await host.notebook.read(a)).outputs[0]["text"]) == "out\n"


# ── hosts that only propose ──────────────────────────────────────────────────────────────────────────────────────────


async def a_proposal_says_so_and_changes_nothing(host: NotebookHost) -> None:
    notebook = host.notebook
    assert notebook.proposes_only
    before = await notebook.cells()
    new = await notebook.insert(Anchor(before[-1].id), "code", "proposed = 1", metadata=WHO)
    assert new.source == "proposed = 1"
    await notebook.edit(before[-1].id, "proposed = 2", before[-1].hash, metadata=WHO)
    after = {cell.id: cell for cell in await notebook.cells()}
    assert [(c.source, c.number) for c in before] == [(after[c.id].source, after[c.id].number) for c in before]


async def a_proposal_refuses_what_can_only_be_done(host: NotebookHost) -> None:
    notebook = host.notebook
    cell = (await notebook.cells())[0]
    await refused(notebook.begin_run(cell.id))
    await refused(notebook.set_outputs(cell.id, [stream("x")], 1))
    await refused(notebook.set_metadata(cell.id, {"x": 1}))
    await refused(notebook.edit(cell.id, "x", source_hash(cell.source + " ")))
    await refused(notebook.read("no-such-cell"))
    again = (await notebook.cells())[0]
    assert (again.source, again.number) == (cell.source, cell.number)


PROMISES: tuple[Promise, ...] = (
    a_cell_goes_right_after_its_anchor,
    a_cell_goes_right_before_its_anchor,
    cells_inserted_each_after_the_one_before_keep_their_order,
    a_cell_moves_after_and_before,
    a_moved_cell_keeps_its_outputs,
    what_was_inserted_is_read_back,
    an_edit_is_read_back,
    an_edit_for_another_source_is_refused,
    what_the_person_wrote_meanwhile_is_never_overwritten,
    a_deleted_cell_is_gone,
    unknown_ids_are_refused_with_the_real_ones,
    a_deleted_cell_comes_back_under_its_old_id,
    an_id_that_is_there_is_not_given_twice,
    metadata_comes_with_a_new_cell,
    metadata_is_merged_key_by_key,
    an_edit_carries_metadata_and_a_refused_one_does_not,
    outputs_are_set_as_they_were_read,
    outputs_that_are_set_replace_those_that_were_there,
    only_code_cells_have_outputs,
    saving_keeps_everything,
)

PROMISES_OF_RUNS: tuple[Promise, ...] = (
    outputs_arrive_in_order_and_typed,
    pieces_of_a_stream_become_one,
    a_redrawn_line_shows_its_last_state,
    a_display_is_updated_where_it_is,
    clear_output_clears_at_once_or_with_the_next_output,
    a_run_sets_the_number_and_the_next_starts_empty,
    a_run_begins_without_the_outputs_that_were_set,
    the_person_may_edit_a_cell_while_it_runs,
    outputs_follow_a_cell_that_moves_while_it_runs,
    nothing_arrives_after_the_end,
    only_code_cells_run,
)

PROMISES_OF_A_PROPOSAL: tuple[Promise, ...] = (
    a_proposal_says_so_and_changes_nothing,
    a_proposal_refuses_what_can_only_be_done,
)
