"""The cell tools: what they add, run, read, and say about it."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import CutOff, Interrupted, NotebookError, ToolError
from nbagent.core.messages import plain_text
from nbagent.core.tools import Kind
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools import notebook as cell_tools
from nbagent.tools.cells import clean_source, starts_agent
from tests.conformance.notebook_kit import PNG
from tests.tools.calling import Calling
from tests.tools.desk import Desk, EchoKernel, raw


@pytest.fixture
def desk():
    return Desk()


# ── adding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_added_cell_stands_below_the_agents_own_and_has_run(desk):
    result = await desk.call("add_cell", source="x = 1")
    added = desk.notebook.cells_[3]
    assert added["source"] == "x = 1"
    assert added["execution_count"] == 1
    assert added["outputs"][0]["text"] == "did x = 1\n"
    assert result.cells == (added["id"],)
    assert result.summary == "added In[1]"
    assert not result.is_error
    assert plain_text(list(result.content)).startswith(
        f"Cell {added['id']} added after mine and ran as In[1] in 0.3 s: ok."
    )


async def test_several_cells_added_keep_their_order_without_and_with_the_same_anchor(desk):
    for name in "abc":
        await desk.call("add_cell", source=name)
    for name in "xyz":
        await desk.call("add_cell", source=name, after="intro")
    assert desk.sources() == ["# Penguins", "x", "y", "z", "df = load()", "%%agent\ngo", "a", "b", "c", "df"]


async def test_a_cell_goes_before_its_anchor(desk):
    await desk.call("add_cell", source="first", before="intro")
    assert desk.sources()[0] == "first"


async def test_after_and_before_together_are_refused(desk):
    with pytest.raises(ToolError, match="not both"):
        await desk.call("add_cell", source="x", before="intro", after="load")


async def test_a_new_agent_cell_begins_below_itself(desk):
    await desk.call("add_cell", source="a")
    desk.notebook.own_cell = "end"
    await desk.call("add_cell", source="b")
    assert desk.sources()[-1] == "b"


async def test_where_the_last_added_cell_was_deleted_the_next_goes_below_the_agents_own(desk):
    result = await desk.call("add_cell", source="a")
    del desk.notebook.cells_[3]
    await desk.call("add_cell", source="b")
    assert desk.sources()[3] == "b"
    assert result.cells[0] not in [cell["id"] for cell in desk.notebook.cells_]


async def test_the_first_cell_of_an_empty_notebook():
    call = Calling(cell_tools.tools(MemoryNotebook(), EchoKernel(), timeout=None))
    assert "as the first cell" in await call.text("add_cell", source="x")


async def test_markdown_never_runs(desk):
    result = await desk.call("add_cell", source="# Title", cell_type="markdown", run=True)
    assert desk.kernel.ran == []
    assert desk.notebook.cells_[3]["cell_type"] == "markdown"
    assert result.summary == "added a markdown cell"


async def test_code_added_without_running_says_so(desk):
    assert "It has not run" in await desk.call.text("add_cell", source="x", run=False)
    assert desk.kernel.ran == []


async def test_an_error_in_the_code_is_an_error_result_and_the_cell_stays(desk):
    desk.kernel.answers["boom"] = "error"
    result = await desk.call("add_cell", source="boom")
    said = plain_text(list(result.content))
    assert result.is_error
    assert "NameError: no df" in said
    assert f'edit_cell(cell="{result.cells[0]}"' in said
    assert result.summary == "added In[1]: error"
    assert "boom" in desk.sources()


async def test_a_time_limit_is_told_with_the_output_so_far(desk):
    desk.kernel.answers["slow"] = "timeout"
    result = await desk.call("add_cell", source="slow")
    said = plain_text(list(result.content))
    assert result.is_error
    assert "time limit" in said
    assert "stopped after 2 s" in said
    assert "so far" in said


async def test_a_figure_comes_back_as_an_image(desk):
    desk.kernel.answers["plot"] = "image"
    result = await desk.call("add_cell", source="plot")
    assert [block["type"] for block in result.content] == ["text", "image"]


async def test_an_interrupt_ends_the_cell_and_carries_its_output(desk):
    desk.kernel.answers["long"] = "interrupt"
    with pytest.raises(Interrupted) as stop:
        await desk.call("add_cell", source="long")
    assert "half" in stop.value.output
    assert desk.notebook.running == set()
    assert desk.notebook.cells_[3]["outputs"][0]["text"] == "half\n"


async def test_a_cancelled_call_leaves_no_cell_running_and_carries_its_output(desk):
    desk.kernel.answers["forever"] = started = asyncio.Event()
    said = []

    async def call():
        try:
            await desk.call("add_cell", source="forever")
        except CutOff as cut:
            said.append(cut.output)
            raise

    task = asyncio.ensure_future(call())
    await asyncio.wait_for(started.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert desk.notebook.running == set()
    assert "half" in said[0]


class LostNotebook(MemoryNotebook):
    """A notebook whose page goes away while a cell runs."""

    async def begin_run(self, cell_id):
        sink = await super().begin_run(cell_id)

        class LostSink:
            emit = sink.emit

            async def end(self, number):
                raise NotebookError("the page is gone")

        return LostSink()


async def test_a_page_that_went_away_does_not_hide_that_the_code_ran():
    kernel = EchoKernel()
    call = Calling(cell_tools.tools(LostNotebook([raw("a", "x")]), kernel, timeout=None))
    result = await call("add_cell", source="y")
    assert "the page is gone" in plain_text(list(result.content))
    kernel.answers["long"] = started = asyncio.Event()
    task = asyncio.ensure_future(call("add_cell", source="long"))
    await asyncio.wait_for(started.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class SilentNotebook(MemoryNotebook):
    """A notebook whose page says nothing any more."""

    async def begin_run(self, cell_id):
        sink = await super().begin_run(cell_id)

        class SilentSink:
            emit = sink.emit

            async def end(self, number):
                await asyncio.Event().wait()

        return SilentSink()


@pytest.mark.slow
async def test_a_cancelled_call_does_not_wait_for_a_page_that_says_nothing():
    kernel = EchoKernel()
    call = Calling(cell_tools.tools(SilentNotebook([raw("a", "x")]), kernel, timeout=None))
    kernel.answers["long"] = started = asyncio.Event()
    task = asyncio.ensure_future(call("add_cell", source="long"))
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    await asyncio.wait({task}, timeout=20)
    assert task.cancelled()


@pytest.mark.slow
@pytest.mark.parametrize("source", ["%%agent\ngo on", "\n# again\n  %%agent -m x\ngo", "%agent status"])
async def test_an_agent_cell_is_never_run_by_the_agent(desk, source):
    with pytest.raises(ToolError, match="agent"):
        await desk.call("add_cell", source=source)
    assert desk.kernel.ran == []


def test_only_agent_magics_start_an_agent():
    assert not starts_agent("print('%%agent')")
    assert not starts_agent("%%agents\nx")
    assert not starts_agent("agent = 1")


async def test_one_fence_around_all_of_the_code_is_removed_and_that_is_said(desk):
    said = await desk.call.text("add_cell", source="```python\nx = 1\n```")
    assert desk.sources()[3] == "x = 1"
    assert desk.kernel.ran == ["x = 1"]
    assert "fence" in said
    assert desk.call.preview("add_cell", source="```python\nx = 1\n```").body == "x = 1"
    assert desk.call.subject("add_cell", source="```\nx = 1\n```") == "x = 1"


@pytest.mark.parametrize(
    "source", ["a = '''\n```\n'''", "```\nx\n```\nwords\n```\ny\n```", "```python\nx", "# ```", "x\n```"]
)
def test_other_fences_stay(source):
    assert clean_source(source, "code") == (source, "")


def test_a_fence_in_markdown_stays():
    assert clean_source("```\nx\n```", "markdown") == ("```\nx\n```", "")


@pytest.mark.slow
@given(st.text())
def test_a_cleaned_source_can_always_be_stored(source):
    cleaned, _ = clean_source(source + "\ud800\r\n", "code")
    cleaned.encode()
    assert "\r" not in cleaned
    assert clean_source(cleaned, "markdown")[0] == cleaned


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_overview_shows_ids_types_numbers_sources_and_outputs_in_a_line_each(desk):
    desk.kernel.answers |= {"plot": "image", "boom": "error"}
    await desk.call("add_cell", source="plot")
    await desk.call("add_cell", source="boom")
    said = await desk.call.text("read_notebook")
    assert "6 cells" in said
    for part in (
        "1. intro markdown",
        "2. load code In[3]",
        "3. mine code",
        "agent's own",
        "[image 1x1]",
        "error: NameError: no df",
        "df = load()",
    ):
        assert part in said, part
    assert PNG not in said


async def test_the_overview_comes_in_pages_and_shortens_long_cells():
    cells = [raw(f"c{n}", f"x{n} = 1") for n in range(5)]
    cells[0]["source"] = "\n".join(f"line {n}" for n in range(1000))
    call = Calling(cell_tools.tools(MemoryNotebook(cells), EchoKernel(), timeout=None))
    said = await call.text("read_notebook", limit=2)
    assert "line 2" in said
    assert "line 3" not in said
    assert "1000 lines" in said
    assert "3 more: read_notebook(start=3)" in said
    assert "x4" in await call.text("read_notebook", start=5)
    with pytest.raises(ToolError, match="read it first"):  # the whole of it was not seen
        await call("run_cell", cell="c0")


async def test_a_read_cell_comes_with_its_outputs_and_images(desk):
    desk.kernel.answers["plot"] = "image"
    added = (await desk.call("add_cell", source="plot")).cells[0]
    result = await desk.call("read_cell", cell=added)
    assert "plot" in result.content[0]["text"]
    assert result.content[1]["type"] == "image"


async def test_reading_needs_no_permission(desk):
    assert desk.call.kind("read_notebook") is Kind.READ
    assert desk.call.kind("read_cell", cell="load") is Kind.READ


async def test_an_invented_id_gets_the_real_ones(desk):
    with pytest.raises(NotebookError, match=r"import pandas(.|\n)*load \(code\): df = load\(\)"):
        await desk.call("read_cell", cell="import pandas")


@pytest.mark.parametrize("given_as", ["In[3]", "3", "[3]", "in [3]:", "Out[3]"])
async def test_a_number_is_not_taken_for_an_id_but_names_it(desk, given_as):
    with pytest.raises(ToolError, match="'load'"):
        await desk.call("read_cell", cell=given_as)


async def test_a_number_that_two_cells_have_names_none(desk):
    desk.notebook.cells_[3]["execution_count"] = 3
    with pytest.raises(NotebookError, match="The cells are"):
        await desk.call("read_cell", cell="In[3]")


@pytest.mark.parametrize("after", ["insert", "edit", "set_outputs"])
async def test_what_the_person_types_right_after_a_write_is_not_taken_for_read(desk, after):
    """Each write reads back what is there: the model must not be able to overwrite what it was not shown."""
    write = getattr(desk.notebook, after)

    async def typed_over(*arguments, **options):
        cell = await write(*arguments, **options)
        desk.user_edit(cell.id, "the person's")
        return await desk.notebook.read(cell.id)

    setattr(desk.notebook, after, typed_over)
    desk.user_run("load", 3, {"output_type": "stream", "name": "stdout", "text": "old"})
    await desk.call("read_cell", cell="load")
    with contextlib.suppress(NotebookError):
        if after == "insert":
            await desk.call("add_cell", source="x", run=False)
        else:
            await desk.call("edit_cell", cell="load", source="x")
    [written] = [cell["id"] for cell in desk.notebook.cells_ if cell["source"] == "the person's"]
    for tool, more in (("edit_cell", {"source": "y"}), ("run_cell", {}), ("delete_cell", {})):
        with pytest.raises(NotebookError, match="changed since you read it"):
            await desk.call(tool, cell=written, **more)
    assert desk.raw(written)["source"] == "the person's"
    assert desk.kernel.ran == []
