"""The cell tools: what they do to a notebook, what they refuse, and that what runs is what was shown."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import Interrupted, NotebookError, ToolError
from nbagent.core.messages import plain_text
from nbagent.core.ports import Ran
from nbagent.core.tools import Kind
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools import notebook as cell_tools
from nbagent.tools.cells import clean_source, starts_agent
from tests.conformance.notebook_kit import PNG, display, stream
from tests.tools.calling import Calling


class EchoKernel:
    """A kernel that keeps what it was asked to run and answers with what `answers` says for that code."""

    def __init__(self):
        self.ran = []
        self.answers = {}

    def namespace(self):
        return {}

    async def run(self, code, *, emit, timeout):
        self.ran.append(code)
        answer = self.answers.get(code, "ok")
        if isinstance(answer, asyncio.Event):
            answer.set()
            await asyncio.Event().wait()
        if answer == "interrupt":
            emit(stream("half\n"))
            raise Interrupted
        if answer == "error":
            error = {"output_type": "error", "ename": "NameError", "evalue": "no df", "traceback": ["NameError: no df"]}
            emit(error)
            return Ran("error", (error,), len(self.ran), 0.1)
        if answer == "timeout":
            emit(stream("so far\n"))
            return Ran("timeout", (), None, 2.0, "stopped after 2 s")
        if answer == "image":
            emit({"output_type": "display_data", "data": {"image/png": PNG}, "metadata": {}})
        elif answer == "ok":
            emit(stream(f"did {code}\n"))
        return Ran("ok", (), len(self.ran), 0.3)

    async def scratch(self, code, *, timeout):
        raise NotImplementedError


def raw(cell_id, source, cell_type="code", number=None):
    cell = {"id": cell_id, "cell_type": cell_type, "metadata": {}, "source": source}
    return cell | ({"outputs": [], "execution_count": number} if cell_type == "code" else {})


class Desk:
    """A notebook of four cells with the agent's own in the middle, its tools and its kernel."""

    def __init__(self, **options):
        cells = [
            raw("intro", "# Penguins", "markdown"),
            raw("load", "df = load()", number=3),
            raw("mine", "%%agent\ngo"),
            raw("end", "df"),
        ]
        self.notebook = MemoryNotebook(cells, own_cell="mine", **options)
        self.kernel = EchoKernel()
        self.call = Calling(cell_tools.tools(self.notebook, self.kernel, timeout=5))

    def sources(self):
        return [cell["source"] for cell in self.notebook.cells_]

    def user_edit(self, cell_id, source):
        next(c for c in self.notebook.cells_ if c["id"] == cell_id)["source"] = source


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


async def test_a_cancelled_call_leaves_no_cell_running(desk):
    desk.kernel.answers["forever"] = started = asyncio.Event()
    task = asyncio.ensure_future(desk.call("add_cell", source="forever"))
    await asyncio.wait_for(started.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert desk.notebook.running == set()


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


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CHANGES = {"edit_cell": {"source": "new"}, "delete_cell": {}, "run_cell": {}}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_cell_that_was_not_read_is_neither_changed_nor_run_nor_asked_about(desk, name):
    before = desk.sources()
    assert desk.call.kind(name, cell="load", **CHANGES[name]) is Kind.READ
    with pytest.raises(ToolError, match="read it first with read_cell"):
        await desk.call(name, cell="load", **CHANGES[name])
    assert (desk.sources(), desk.kernel.ran) == (before, [])


@pytest.mark.parametrize("name", CHANGES)
async def test_a_cell_that_the_person_changed_since_is_neither_changed_nor_run(desk, name):
    await desk.call("read_cell", cell="load")
    desk.user_edit("load", "the person's")
    with pytest.raises(NotebookError, match="changed since you read it: read it again"):
        await desk.call(name, cell="load", **CHANGES[name])
    assert (desk.sources()[1], desk.kernel.ran) == ("the person's", [])


@pytest.mark.parametrize("name", CHANGES)
async def test_a_cell_that_changed_between_the_question_and_the_answer_is_left_alone(desk, name):
    await desk.call("read_cell", cell="load")
    desk.call.kind(name, cell="load", **CHANGES[name])
    desk.user_edit("load", "another")
    await desk.call("read_cell", cell="load")  # the model saw it meanwhile, the person who was asked did not
    with pytest.raises(ToolError):
        await desk.call.carry_out(name, cell="load", **CHANGES[name])
    assert (desk.sources()[1], desk.kernel.ran) == ("another", [])


@pytest.mark.parametrize("name", CHANGES)
async def test_a_read_in_the_same_reply_does_not_turn_a_refusal_into_an_unasked_run(desk, name):
    assert desk.call.kind(name, cell="load", **CHANGES[name]) is Kind.READ
    await desk.call("read_cell", cell="load")
    with pytest.raises(ToolError, match="read it first"):
        await desk.call.carry_out(name, cell="load", **CHANGES[name])
    assert desk.kernel.ran == []


@pytest.mark.parametrize("name", CHANGES)
async def test_the_agents_own_cell_is_never_changed_or_run(desk, name):
    await desk.call("read_cell", cell="mine")
    assert desk.call.kind(name, cell="mine", **CHANGES[name]) is Kind.READ
    with pytest.raises(ToolError, match="your own cell"):
        await desk.call(name, cell="mine", **CHANGES[name])
    with pytest.raises(ToolError, match="your own cell"):
        await desk.call("move_cell", cell="mine", after="end")
    assert desk.sources()[2] == "%%agent\ngo"


async def test_an_edit_is_made_shown_as_a_diff_and_its_old_output_goes(desk):
    await desk.call("read_cell", cell="load")
    desk.notebook.cells_[1]["outputs"] = [display("old")]
    preview = desk.call.preview("edit_cell", cell="load", source="df = 2")
    assert (preview.kind, preview.old, preview.body) == ("diff", "df = load()", "df = 2")
    result = await desk.call("edit_cell", cell="load", source="df = 2")
    assert desk.sources()[1] == "df = 2"
    assert (desk.notebook.cells_[1]["outputs"], desk.notebook.cells_[1]["execution_count"]) == ([], None)
    assert "old output was cleared" in plain_text(list(result.content))
    assert result.summary == "edited In[3]"
    assert desk.kernel.ran == []


async def test_an_edit_can_run_and_needs_no_second_reading(desk):
    await desk.call("read_notebook")
    result = await desk.call("edit_cell", cell="load", source="df = 2", run=True)
    assert desk.kernel.ran == ["df = 2"]
    assert result.summary == "edited In[1]"
    await desk.call("edit_cell", cell="load", source="df = 3", run=True)
    await desk.call("run_cell", cell="load")
    assert desk.kernel.ran == ["df = 2", "df = 3", "df = 3"]


async def test_a_markdown_cell_is_edited_and_not_run(desk):
    await desk.call("read_cell", cell="intro")
    assert desk.call.kind("edit_cell", cell="intro", source="```\nx\n```", run=True) is Kind.EDIT_CELL
    await desk.call("edit_cell", cell="intro", source="```\nx\n```", run=True)
    assert desk.sources()[0] == "```\nx\n```"
    assert desk.kernel.ran == []
    with pytest.raises(ToolError, match="only code cells run"):
        await desk.call("run_cell", cell="intro")


async def test_a_deleted_cell_is_shown_before_it_goes(desk):
    await desk.call("read_cell", cell="load")
    preview = desk.call.preview("delete_cell", cell="load")
    assert (preview.kind, preview.old, preview.body) == ("diff", "df = load()", "")
    result = await desk.call("delete_cell", cell="load")
    assert "df = load()" not in desk.sources()
    assert result.summary == "deleted In[3]"


async def test_a_cell_moves_and_its_new_place_is_told(desk):
    assert "cell 4 of 4" in await desk.call.text("move_cell", cell="load", after="end")
    assert desk.sources()[3] == "df = load()"
    for wrong in ({}, {"after": "end", "before": "end"}):
        with pytest.raises(ToolError, match="exactly one"):
            await desk.call("move_cell", cell="load", **wrong)


# ── what the policy sees ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_kinds_follow_what_a_call_would_do(desk):
    kind = desk.call.kind
    await desk.call("read_notebook")
    assert kind("add_cell", source="x") is Kind.RUN_CELL
    assert kind("add_cell", source="x", run=False) is Kind.EDIT_CELL
    assert kind("add_cell", source="x", cell_type="markdown") is Kind.EDIT_CELL
    assert kind("add_cell", source="exit()") is Kind.PROTECTED
    assert kind("add_cell", source="```\nexit()\n```") is Kind.PROTECTED
    assert kind("edit_cell", cell="load", source="x") is Kind.EDIT_CELL
    assert kind("edit_cell", cell="load", source="x", run=True) is Kind.RUN_CELL
    assert kind("edit_cell", cell="load", source="exit()", run=True) is Kind.PROTECTED
    assert kind("run_cell", cell="load") is Kind.RUN_CELL
    assert kind("delete_cell", cell="load") is Kind.RUN_CELL
    assert kind("move_cell", cell="load", after="end") is Kind.EDIT_CELL
    desk.user_edit("end", "exit()")
    await desk.call("read_cell", cell="end")
    assert kind("run_cell", cell="end") is Kind.PROTECTED


async def test_a_rule_for_a_cell_that_does_not_run_never_fits_one_that_runs(desk):
    await desk.call("read_notebook")
    subject = desk.call.subject
    assert subject("add_cell", source="x") == "x"
    assert subject("add_cell", source="x", run=False) != "x"
    assert subject("edit_cell", cell="load", source="x", run=True) == "x"
    assert subject("edit_cell", cell="load", source="x") != "x"
    assert subject("run_cell", cell="load") == "df = load()"
    assert all(desk.call.tools[name].exact for name in ("add_cell", "edit_cell", "run_cell", "delete_cell"))


async def test_previews_and_titles_say_what_will_happen(desk):
    await desk.call("read_notebook")
    shown = desk.call.preview("add_cell", source="# T", cell_type="markdown")
    assert (shown.kind, shown.body, shown.language) == ("code", "# T", "markdown")
    assert desk.call.preview("run_cell", cell="load").body == "df = load()"
    assert desk.call.title("add_cell", source="x") == "add and run a code cell"
    assert desk.call.title("edit_cell", cell="load", source="x", run=True) == "edit and run In[3]"
    assert desk.call.title("delete_cell", cell="end") == "delete cell end"


async def test_where_edits_are_only_proposed_nothing_runs_and_that_is_said():
    desk = Desk(proposes_only=True)
    assert desk.call.kind("add_cell", source="x") is Kind.EDIT_CELL
    said = await desk.call.text("add_cell", source="x")
    assert "proposed, not inserted; it has not run" in said
    assert desk.kernel.ran == []
    await desk.call("read_notebook")
    with pytest.raises(ToolError, match="the person has to run"):
        await desk.call("run_cell", cell="load")


# ── any order of things ──────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.sampled_from(["", "intro", "load", "end"]), max_size=12))
async def test_added_cells_stand_in_the_order_in_which_they_were_added(anchors):
    desk = Desk()
    added = {anchor: [] for anchor in anchors}
    every = []
    for number, anchor in enumerate(anchors):
        source = f"x{number}"
        result = await desk.call("add_cell", source=source, run=False, **({"after": anchor} if anchor else {}))
        added[anchor].append(source)
        every.append(result.cells[0])
        if not anchor:  # without an anchor: right after the one before
            before = f"x{number - 1}" if number else "%%agent\ngo"
            assert desk.sources()[desk.sources().index(source) - 1] == before
    sources = desk.sources()
    added.pop("", None)
    for names in added.values():
        assert sorted(names, key=sources.index) == names
    assert [s for s in sources if s in {"# Penguins", "df = load()", "%%agent\ngo", "df"}] == [
        "# Penguins",
        "df = load()",
        "%%agent\ngo",
        "df",
    ]
    assert len(every) == len(set(every))


@given(st.lists(st.sampled_from(["read", "person", "agent", "run"]), max_size=12))
async def test_the_agent_never_overwrites_or_runs_what_it_has_not_seen(steps):
    desk = Desk()
    seen = None
    for number, step in enumerate(steps):
        now = desk.sources()[1]
        if step == "read":
            await desk.call("read_cell", cell="load")
            seen = now
        elif step == "person":
            desk.user_edit("load", f"person {number}")
        else:
            arguments = {"source": f"agent {number}"} if step == "agent" else {}
            name = "edit_cell" if step == "agent" else "run_cell"
            try:
                await desk.call(name, cell="load", **arguments)
            except ToolError:
                assert seen != now
                assert desk.sources()[1] == now
            else:
                assert seen == now
                seen = desk.sources()[1]
    assert all(
        code == seen or "agent" in code or code == "df = load()" or code.startswith("person")
        for code in desk.kernel.ran
    )
