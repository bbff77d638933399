"""Rows of FAILURES.md group (c) that the cell tools answer for: what is said of the notebook is so, in the right cell."""

from __future__ import annotations

import json

import pytest

from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.messages import plain_text
from nbagent.core.policy import Mode, Policy, Rule
from nbagent.core.tools import Kind
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools import notebook as cell_tools
from nbagent.tools.results import ResultStore, capped
from tests.conformance.notebook_kit import PNG, display, stream
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, calls
from tests.tools.calling import Calling
from tests.tools.desk import Desk, EchoKernel, raw

pytestmark = [pytest.mark.timeout(120)]

PLOT = {
    "output_type": "display_data",
    "data": {"image/png": PNG, "text/plain": "<Figure size 640x480>"},
    "metadata": {},
}


def said(result):
    return plain_text(list(result.content))


# ── 70: invented cell ids ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("invented", ["import pandas", "3", "df = load()", "", None])
@pytest.mark.parametrize("name", ["edit_cell", "run_cell", "delete_cell", "read_cell"])
async def test_an_invented_id_touches_nothing_and_gets_the_real_ids_with_their_first_lines(name, invented):
    """Row 70: an id that is made up, is the source's text, is a number, or is nothing."""
    desk = Desk()
    await desk.call("read_notebook")
    before = desk.sources()
    with pytest.raises(ToolError) as refused:
        await desk.call(name, cell=invented, **({"source": "x"} if name == "edit_cell" else {}))
    assert (desk.sources(), desk.kernel.ran) == (before, [])
    wanted = "cell: input should be a valid string" if invented is None else "load"
    assert wanted in str(refused.value)
    if invented in {"import pandas", "df = load()", ""}:
        assert "- load (code): df = load()" in str(refused.value)


# ── 71: inserts at the top ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("own", ["mine", None])
async def test_three_inserts_keep_their_order_and_never_land_at_the_top(own):
    """Row 71: without an anchor below the agent's cell, or at the end where there is none; with one right below it."""
    desk = Desk()
    desk.notebook.own_cell = own
    for name in "abc":
        assert "after " in said(await desk.call("add_cell", source=name, run=False))
    for name in "xyz":
        await desk.call("add_cell", source=name, after="load", run=False)
    below = ["%%agent\ngo", "a", "b", "c", "df"] if own else ["%%agent\ngo", "df", "a", "b", "c"]
    assert desk.sources() == ["# Penguins", "df = load()", "x", "y", "z", *below]


# ── 73: edits that are not there ─────────────────────────────────────────────────────────────────────────────────────


class Deaf(MemoryNotebook):
    """A notebook whose front end takes every edit and keeps its own text."""

    async def edit(self, cell_id, source, expected_hash, *, metadata=None):
        return await self.read(cell_id)

    async def insert(self, anchor, cell_type, source, *, metadata=None, cell_id=None):
        return await super().insert(anchor, cell_type, "", metadata=metadata)


async def test_what_is_not_in_the_notebook_after_the_edit_is_neither_reported_as_done_nor_run():
    """Row 73: the tool reads back what it wrote and says what it finds."""
    kernel = EchoKernel()
    call = Calling(cell_tools.tools(Deaf([raw("a", "old")], own_cell=None), kernel, timeout=None))
    await call("read_notebook")
    with pytest.raises(NotebookError, match=r"cell a holds another text after the edit.*it has not run"):
        await call("edit_cell", cell="a", source="new", run=True)
    with pytest.raises(NotebookError, match="holds another text: read it; it has not run"):
        await call("add_cell", source="x")
    assert kernel.ran == []


async def test_where_a_cell_landed_is_told_from_what_is_there():
    """Row 73: the report names the cell beside which the new one stands."""
    desk = Desk()
    assert "added after load" in said(await desk.call("add_cell", source="x", after="load"))
    assert "cell 5 of 5" in said(await desk.call("move_cell", cell="load", after="end"))


async def test_where_edits_are_only_proposed_the_model_is_told_so_and_nothing_is_called_done():
    """Row 73, the other way: a notebook that can't be reached."""
    desk = Desk(proposes_only=True)
    assert desk.call.kind("add_cell", source="x") is Kind.EDIT_CELL
    assert desk.call.title("add_cell", source="x") == "propose a code cell"
    added = await desk.call("add_cell", source="x")
    assert "was only proposed to the person and has not run" in said(added)
    assert "don't report it as done" in said(added)
    assert added.summary == "proposed a code cell"
    await desk.call("read_notebook")
    for name, arguments in (
        ("edit_cell", {"source": "df = 2", "run": True}),
        ("move_cell", {"after": "end"}),
        ("delete_cell", {}),
    ):
        assert "only proposed" in said(await desk.call(name, cell="load", **arguments)), name
    assert desk.kernel.ran == []
    assert "nothing of it was changed or run" in desk.closing()


# ── 86, 87: outputs and the context ──────────────────────────────────────────────────────────────────────────────────


async def test_outputs_of_a_rich_notebook_stay_small_and_plots_are_images_not_text():
    """Row 86: ten plots, a plotly figure, a table of 5 MB of HTML: named in a line each, seen as images on request."""
    plotly = {
        "application/vnd.plotly.v1+json": {"data": ["p" * 200_000]},
        "text/html": "<div>" + "q" * 3_000_000 + "</div>",
    }
    table = {"text/html": "<table><tr><td>" + "r" * 5_000_000 + "</td></tr></table>", "text/plain": "table of 9 rows"}
    cells = [raw(f"plot{n}", "plt.plot()", number=n) for n in range(10)]
    cells += [raw("figure", "fig", number=11), raw("table", "df", number=12)]
    for cell in cells:
        cell["outputs"] = [{"output_type": "display_data", "data": {"image/png": PNG * 200}, "metadata": {}}]
    cells[0]["outputs"] = [PLOT]
    cells[10]["outputs"] = [{"output_type": "display_data", "data": plotly, "metadata": {}}]
    cells[11]["outputs"] = [{"output_type": "display_data", "data": table, "metadata": {}}]
    made = cell_tools.tools(MemoryNotebook(cells), EchoKernel(), timeout=None)
    call = Calling([capped(tool, ResultStore()) for tool in made])
    overview = await call.text("read_notebook")
    assert len(overview) < 3_000
    assert PNG not in overview
    assert overview.count("[image ") == 10
    one = await call("read_cell", cell="plot0")
    assert [block["type"] for block in one.content] == ["text", "image"]
    for cell_id in ("figure", "table"):
        assert len(said(await call("read_cell", cell=cell_id))) < 13_000
    assert "table of 9 rows" in await call.text("read_cell", cell="table")


@pytest.mark.parametrize("outputs", [[PLOT], [stream("a\n"), PLOT], [stream("a\n"), PLOT, stream("b\n")], [PLOT, PLOT]])
async def test_an_image_among_outputs_stays_an_image_wherever_it_stands(outputs):
    """Row 87: an image first, last, alone or between texts, read and run."""
    desk = Desk()
    desk.user_run("load", 3, *outputs)
    read = await desk.call("read_cell", cell="load")
    kinds = ["image" if output is PLOT else "text" for output in outputs]
    assert [block["type"] for block in read.content] == ["text", *kinds]
    assert "[image 1x1]" in await desk.call.text("read_notebook")
    desk.kernel.answers["df = load()"] = "image"
    assert [b["type"] for b in (await desk.call("run_cell", cell="load")).content] == ["text", "image"]


# ── 89: stale outputs ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_output_of_an_edited_cell_is_marked_as_old_until_the_cell_runs():
    """Row 89: for the person in the notebook, for the model when it reads, and at the end of the run."""
    desk = Desk()
    desk.user_run("load", 3, display("42 rows"))
    await desk.call("read_cell", cell="load")
    await desk.call("edit_cell", cell="load", source="df = other()")
    first, old = desk.raw("load")["outputs"]
    assert first["data"]["text/plain"] == "Outputs from before the last edit"
    assert old["data"]["text/plain"] == "42 rows"
    assert "stale" in await desk.call.text("read_cell", cell="load")
    assert desk.closing() == "Not run since it was edited: In[3]."
    await desk.call("run_cell", cell="load")
    assert [o["output_type"] for o in desk.raw("load")["outputs"]] == ["stream"]
    assert "stale" not in await desk.call.text("read_cell", cell="load")


# ── 90: expensive runs ───────────────────────────────────────────────────────────────────────────────────────────────

TWO_HOURS = {"iopub.execute_input": "2026-11-29T10:00:00.000Z", "shell.execute_reply": "2026-11-29T12:00:05.000Z"}


async def test_running_everything_again_is_its_own_permission_with_the_list_and_the_last_durations():
    """Row 90: a NameError must not lead to a training of two hours without a question."""
    desk = Desk()
    desk.raw("load")["metadata"] = {"execution": TWO_HOURS}
    await desk.call("read_notebook")
    tool, given = desk.call.tools["run_all"], desk.call.given("run_all")
    rules = tuple(Rule.parse("allow", name) for name in ("run_cell", "add_cell", "edit_cell", "run_all"))
    assert (await Policy(Mode.ACCEPT_EDITS, rules).decide(tool, given)).action == "ask"
    assert desk.call.title("run_all") == "run 2 cells (their last runs took 2 h)"
    assert desk.call.preview("run_all").body.splitlines()[0].split(maxsplit=1) == ["In[3]", "df = load()  2 h"]


def checked(room):
    """What the ends of the runs said of the cells, by the session's records."""
    records = [
        json.loads(line)
        for path in (room.folder / ".nbagent" / "sessions").glob("*.jsonl")
        for line in path.read_text("utf-8").split("\n")
        if line
    ]
    return [r["event"]["checked"] for r in records if r["type"] == "event" and r["event"]["type"] == "run_ended"]


@pytest.mark.kernel
async def test_long_and_kept_cells_do_not_run_unasked_and_the_end_says_what_a_restart_would_break(tmp_path):
    """Rows 90, 91: nobody is there; every rule allows; a cell of two hours, a kept one, a name of a deleted cell."""
    rules = {"NBAGENT_ALLOW": "run_cell\nrun_all\nadd_cell\nedit_cell"}
    with MessagesServer() as server:
        async with Room(tmp_path, server, **rules) as room:
            gone = (await room.cell("secret = 41")).cell
            trained = (await room.cell("trained = 1\nprint('trained')")).cell
            kept = (await room.cell("print('kept')")).cell
            marked = await room.cell("%agent keep")
            assert "is marked" in marked.seen
            assert kept.metadata["nbagent"] == {"keep": True}
            trained.metadata["execution"] = TWO_HOURS
            room.page.document.cells.remove(gone)
            boom = (await room.cell("boom")).cell
            shown = await room.cell(
                "%%agent\nWhat is the secret?",
                calls("read_notebook"),
                calls("run_cell", cell=trained.id),
                calls("run_all"),
                calls("edit_cell", cell=kept.id, source="print('other')", run=True),
                calls("add_cell", source="secret + 1"),
                "It is 42.",
            )
            shown.says("It is 42.")
            _, single, every, edit, added = room.results()
            assert "its last run took 2 h" in single and "was not done" in single
            assert "their last runs took 2 h" in every
            assert "marked “don't rerun”" in edit
            assert "42" in added
            assert kept.source == "print('kept')"
            opening = json.dumps(room.transcripts()[-1][0], ensure_ascii=False)
            assert "Cells whose last run failed" in opening and "NameError: name 'boom' is not defined" in opening
            assert "uses `secret`, which no cell above it makes" in checked(room)[-1]
            # the next agent cell knows what was read before, and names a cell that failed only once
            shown = await room.cell(
                "%%agent\nRepair it.", calls("edit_cell", cell=boom.id, source="boom = 1\nboom", run=True), "Repaired."
            )
            shown.says("Repaired.")
            assert boom.source == "boom = 1\nboom" and boom.outputs[0].data["text/plain"] == "1"
            assert boom.metadata["nbagent"].keys() == {"session", "run", "call"}
            assert json.dumps(room.transcripts()[-1], ensure_ascii=False).count("Cells whose last run failed") == 1
            assert checked(room)[-1].startswith("Ran after the last edit: In[")
            await room.still_works()
        server.assert_clean()


# ── 91: hidden state ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_that_cells_ran_here_is_never_taken_for_running_after_a_restart():
    """Row 91: x comes from a deleted cell: the end of the run says which cell needs it, and that nothing is verified."""
    desk = Desk()
    desk.user_edit("load", "df = 1")
    await desk.call("read_notebook")
    await desk.call("add_cell", source="x + df")
    assert desk.closing() == (
        "Ran: In[1]. Not verified from a clean kernel: In[1] uses `x`, which no cell above it makes."
    )
    await desk.call("add_cell", source="df")
    assert "In[2] uses" not in desk.closing()
