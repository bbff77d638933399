"""The notebook in memory keeps every promise of its port, and stays valid nbformat while it does."""

from __future__ import annotations

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import NotebookError
from nbagent.core.ports import Anchor
from nbagent.headless.memory import MemoryNotebook
from tests.conformance.notebook_kit import NotebookHost, promise_name, promises, stream, text


def first_cell():
    return {
        "id": "first",
        "cell_type": "code",
        "metadata": {},
        "source": "# first",
        "outputs": [],
        "execution_count": 1,
    }


def valid(notebook):
    whole = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(notebook.cells_)}
    nbformat.validate(nbformat.from_dict(whole))


@pytest.fixture
def notebook():
    return MemoryNotebook([first_cell()])


@pytest.fixture
def host(notebook):
    async def user_edit(cell_id, source):
        next(raw for raw in notebook.cells_ if raw["id"] == cell_id)["source"] = source

    return NotebookHost(notebook, user_edit)


@pytest.mark.slow
@pytest.mark.parametrize("promise", promises(), ids=promise_name)
async def test_keeps_the_promise(promise, host, notebook):
    await promise(host)
    valid(notebook)


async def test_cells_that_it_makes_can_be_what_the_list_holds():
    notebook = MemoryNotebook([nbformat.from_dict(first_cell())], make=nbformat.from_dict)
    new = await notebook.insert(Anchor("first"), "code", "x")
    sink = await notebook.begin_run(new.id)
    sink.emit(stream("hi"))
    await sink.end(2)
    assert notebook.cells_[1].outputs[0].text == "hi"


async def test_cells_without_a_usable_id_get_one():
    raw = [
        first_cell(),
        first_cell(),
        {**first_cell(), "id": "not valid!"},
        {"cell_type": "raw", "metadata": {}, "source": "r"},
    ]
    notebook = MemoryNotebook(raw)
    ids = [cell.id for cell in await notebook.cells()]
    assert ids[0] == "first"
    assert len(set(ids)) == 4
    valid(notebook)


async def test_an_empty_notebook_takes_its_first_cell():
    notebook = MemoryNotebook()
    await notebook.insert(Anchor(""), "markdown", "# hello")
    assert [cell.source for cell in await notebook.cells()] == ["# hello"]
    with pytest.raises(NotebookError):
        await notebook.insert(Anchor(""), "markdown", "# again")


async def test_a_source_stored_as_lines_is_read_as_text():
    notebook = MemoryNotebook([{**first_cell(), "source": ["a\n", "b"]}])
    assert (await notebook.read("first")).source == "a\nb"


async def test_half_a_surrogate_never_enters_a_cell_or_an_output(notebook):
    new = await notebook.insert(Anchor("first"), "code", "x = '\ud800'")
    sink = await notebook.begin_run(new.id)
    sink.emit(stream("\ud800"))
    sink.emit({"output_type": "display_data", "data": {"text/plain": "\udfff"}, "metadata": {}})
    await sink.end(1)
    repr(notebook.cells_).encode()
    valid(notebook)


async def test_colours_stay_where_nothing_was_written_over(notebook):
    sink = await notebook.begin_run("first")
    sink.emit(stream("\x1b[31mred\x1b[0m\n"))
    (output,) = await sink.end(1)
    assert output["text"] == "\x1b[31mred\x1b[0m\n"


async def test_a_long_progress_bar_stays_small_while_it_is_drawn(notebook):
    sink = await notebook.begin_run("first")
    for step in range(20_000):
        sink.emit(stream(f"\r{step:6d}"))
    (output,) = await sink.end(1)
    assert output["text"] == " 19999"


async def test_saving_tells_the_owner():
    saved = []
    notebook = MemoryNotebook(on_save=lambda: saved.append(True))
    await notebook.save()
    assert saved == [True]


async def test_a_cell_is_marked_while_it_runs(notebook):
    sink = await notebook.begin_run("first")
    assert notebook.running == {"first"}
    await sink.end(2)
    assert notebook.running == set()


@pytest.mark.slow
@given(st.lists(st.text(alphabet="ab\n", max_size=4), max_size=12))
async def test_a_stream_is_the_same_however_it_was_cut(pieces):
    notebook = MemoryNotebook([first_cell()])
    sink = await notebook.begin_run("first")
    for piece in pieces:
        sink.emit(stream(piece))
    outputs = await sink.end(1)
    assert "".join(text(output["text"]) for output in outputs) == "".join(pieces)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["after", "before", "move after", "move before", "delete"]),
            st.integers(0, 30),
            st.integers(0, 30),
        )
    )
)
async def test_any_row_of_operations_gives_the_order_of_a_plain_list(operations):
    notebook = MemoryNotebook([first_cell()])
    model = ["first"]
    for number, (what, pick, other) in enumerate(operations):
        target, moved = model[pick % len(model)], model[other % len(model)]
        if what in {"after", "before"}:
            new = await notebook.insert(Anchor(target, what), "code", f"cell {number}")
            model.insert(model.index(target) + (what == "after"), new.id)
        elif what == "delete":
            if len(model) > 1:
                await notebook.delete(target, (await notebook.read(target)).hash)
                model.remove(target)
        else:
            await notebook.move(moved, Anchor(target, what.removeprefix("move ")))
            if moved != target:
                model.remove(moved)
                model.insert(model.index(target) + (what == "move after"), moved)
        assert [cell.id for cell in await notebook.cells()] == model
    valid(notebook)
