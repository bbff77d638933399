"""Every promise of the Notebook port, one async function each, for every host of it.

A host's test makes a `NotebookHost` and awaits each of `PROMISES` with it, e.g.

    @pytest.mark.parametrize("promise", PROMISES, ids=promise_name)
    async def test_keeps_the_promise(promise, host):
        await promise(host)

A promise begins by adding cells of its own at the end, so one notebook may serve all of them, and none depends on
what else is in it. It only talks through the port and through `user_edit`, the one thing that a host must provide: it
changes a cell's source as the person would. All can be awaited in a kernel too: nothing here needs pytest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nbagent.core.errors import NotebookError
from nbagent.core.ports import Anchor, Cell, Notebook, Output, source_hash

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


@dataclass(frozen=True)
class NotebookHost:
    """A notebook with at least one cell, and how its person changes a cell's source."""

    notebook: Notebook
    user_edit: Callable[[str, str], Awaitable[None]]


Promise = Callable[[NotebookHost], Awaitable[None]]


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
    await run(host, a, [stream("kept\n")])
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
        await refused(host.notebook.begin_run(invented))
    assert [cell.id for cell in await host.notebook.cells()] == every, "a refused operation changed the notebook"


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


async def saving_keeps_everything(host: NotebookHost) -> None:
    (a,) = await add(host, "x = 1")
    await run(host, a, [stream("out\n")])
    before = await host.notebook.read(a)
    await host.notebook.save()
    assert (await host.notebook.read(a)).hash == before.hash
    assert text((await host.notebook.read(a)).outputs[0]["text"]) == "out\n"


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
    outputs_arrive_in_order_and_typed,
    pieces_of_a_stream_become_one,
    a_redrawn_line_shows_its_last_state,
    a_display_is_updated_where_it_is,
    clear_output_clears_at_once_or_with_the_next_output,
    a_run_sets_the_number_and_the_next_starts_empty,
    the_person_may_edit_a_cell_while_it_runs,
    outputs_follow_a_cell_that_moves_while_it_runs,
    nothing_arrives_after_the_end,
    only_code_cells_run,
    saving_keeps_everything,
)
