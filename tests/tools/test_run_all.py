"""run_all: a permission of its own, with the list before it and what happened to each cell after it."""

from __future__ import annotations

import asyncio

import pytest

from nbagent.core.errors import CutOff, Interrupted, NotebookError, ToolError
from nbagent.core.messages import plain_text
from nbagent.core.policy import Mode, Policy, Rule
from nbagent.core.tools import Kind
from tests.tools.desk import Desk, raw


@pytest.fixture
def desk():
    desk = Desk()
    desk.user_insert(2, "fit", "model.fit(df)\nmodel")
    desk.user_insert(5, "again", "  # a task\n%%agent\nmore")
    desk.notebook.cells_.append(raw("blank", "  \n"))
    return desk


def said(result):
    return plain_text(list(result.content))


@pytest.mark.slow
async def test_all_code_cells_run_in_order_and_never_an_agents(desk):
    await desk.call("read_notebook")
    result = await desk.call("run_all")
    assert desk.kernel.ran == ["df = load()", "model.fit(df)\nmodel", "df"]
    assert [desk.raw(cell_id)["execution_count"] for cell_id in ("load", "fit", "end")] == [1, 2, 3]
    assert desk.raw("fit")["outputs"][0]["text"] == "did model.fit(df)\nmodel\n"
    assert result.cells == ("load", "fit", "end")
    assert result.summary == "ran 3 cells"
    assert "Ran 3 of 3 cells" in said(result)
    assert "- In[3] (load): ok as In[1] in 0.3 s → stdout: did df = load()" in said(result)
    assert desk.notebook.running == set()
    assert [line.split(":")[0] for line in desk.call.progress] == ["1 of 3", "2 of 3", "3 of 3"]


async def test_it_stops_at_the_first_error_and_says_what_was_not_started(desk):
    desk.kernel.answers["model.fit(df)\nmodel"] = "error"
    await desk.call("read_notebook")
    result = await desk.call("run_all")
    assert desk.kernel.ran == ["df = load()", "model.fit(df)\nmodel"]
    assert result.is_error
    assert "It stopped at cell fit: error" in said(result)
    assert "- cell end: not started" in said(result)
    assert "NameError: no df" in said(result)
    assert result.summary == "ran 2 of 3 cells"


async def test_a_time_limit_stops_it_too(desk):
    desk.kernel.answers["df = load()"] = "timeout"
    await desk.call("read_notebook")
    assert "timeout" in said(await desk.call("run_all"))
    assert len(desk.kernel.ran) == 1


async def test_an_interrupt_leaves_the_rest_not_started(desk):
    desk.kernel.answers["model.fit(df)\nmodel"] = "interrupt"
    await desk.call("read_notebook")
    with pytest.raises(Interrupted) as stop:
        await desk.call("run_all")
    assert "cell fit: interrupted" in stop.value.output
    assert "cell end: not started" in stop.value.output
    assert desk.raw("fit")["outputs"][0]["text"] == "half\n"
    assert desk.notebook.running == set()
    assert len(desk.kernel.ran) == 2


async def cancelled(desk, started):
    """Cancel `run_all` as soon as `started` is set, as an interrupt of awaiting code does; return what it says."""

    async def call():
        try:
            await desk.call("run_all")
        except CutOff as cut:
            return cut.output

    await desk.call("read_notebook")
    task = asyncio.ensure_future(call())
    await asyncio.wait_for(started.wait(), 5)
    task.cancel()
    return await task


async def test_a_cancelled_run_leaves_no_cell_running_and_says_what_happened_to_each(desk):
    """An interrupt of awaiting code cancels the call, and what ran before it did run all the same."""
    desk.kernel.answers["model.fit(df)\nmodel"] = started = asyncio.Event()
    output = await cancelled(desk, started)
    assert (desk.notebook.running, desk.kernel.ran) == (set(), ["df = load()", "model.fit(df)\nmodel"])
    assert "Ran 2 of 3 cells, in order. It was interrupted." in output
    assert "- In[3] (load): ok as In[1] in 0.3 s → stdout: did df = load()" in output
    assert "- cell fit: interrupted" in output
    assert "- cell end: not started" in output


async def test_a_run_that_is_cancelled_between_two_cells_says_what_ran(desk):
    read, between = desk.notebook.read, asyncio.Event()

    async def waits(cell_id):
        if cell_id == "fit" and desk.kernel.ran:
            between.set()
            await asyncio.Event().wait()
        return await read(cell_id)

    desk.notebook.read = waits
    output = await cancelled(desk, between)
    assert desk.kernel.ran == ["df = load()"]
    assert "- In[3] (load): ok" in output
    assert "- cell fit: not started" in output


async def test_it_can_begin_and_end_at_a_cell(desk):
    await desk.call("read_notebook")
    await desk.call("run_all", first="fit", last="fit")
    await desk.call("run_all", first="fit")
    assert desk.kernel.ran == ["model.fit(df)\nmodel", "model.fit(df)\nmodel", "df"]
    for wrong in ({"first": "ghost"}, {"last": "In[1]"}):
        assert desk.call.kind("run_all", **wrong) is Kind.READ
        with pytest.raises(ToolError, match=r"there is no cell .*(ghost|In\[1\])"):
            await desk.call("run_all", **wrong)
    with pytest.raises(ToolError, match="no code cell"):
        await desk.call("run_all", first="intro", last="intro")


# ── what the person is asked ─────────────────────────────────────────────────────────────────────────────────────────


async def test_the_list_is_shown_with_numbers_first_lines_durations_and_what_is_left_out(desk):
    desk.times.took("load", 7300)
    desk.raw("fit")["metadata"] = {"nbagent": {"keep": True}}
    await desk.call("read_notebook")
    shown = desk.call.preview("run_all")
    assert shown.body.splitlines() == [
        "In[3]     df = load()    2 h 1 min",
        "cell fit  model.fit(df)  left out: marked “don't rerun”",
        "cell end  df",
    ]
    assert desk.call.title("run_all") == "run 2 cells (their last runs took 2 h 1 min)"
    assert "left out, marked “don't rerun”" in said(await desk.call("run_all"))
    assert desk.kernel.ran == ["df = load()", "df"]


async def test_kept_cells_run_only_when_asked_for_and_then_a_person_is_asked(desk):
    desk.raw("end")["metadata"] = {"nbagent": {"keep": True}}
    await desk.call("read_notebook")
    assert desk.call.kind("run_all") is Kind.RUN_ALL
    assert desk.call.kind("run_all", kept=True) is Kind.KEPT
    assert "cell end that you marked “don't rerun”" in desk.call.title("run_all", kept=True)
    await desk.call("run_all", kept=True)
    assert desk.kernel.ran[-1] == "df"


async def test_a_rule_for_running_cells_is_none_for_running_all(desk):
    await desk.call("read_notebook")
    tool, given = desk.call.tools["run_all"], desk.call.given("run_all")

    async def action(mode=Mode.DEFAULT, *rules):
        return (await Policy(mode, tuple(Rule.parse("allow", rule) for rule in rules)).decide(tool, given)).action

    assert await action(Mode.DEFAULT, "run_cell", "add_cell", "edit_cell") == "ask"
    assert await action(Mode.DEFAULT, "run_all") == "allow"
    assert await action(Mode.ACCEPT_EDITS) == "ask"
    assert await action(Mode.PLAN, "run_all") == "deny"
    desk.times.took("fit", 40)
    assert await action(Mode.DEFAULT, "run_all") == "ask"
    assert await action(Mode.BYPASS) == "allow"


async def test_one_risky_cell_makes_the_whole_a_risky_call(desk):
    desk.user_edit("fit", "!rm x")
    await desk.call("read_notebook")
    assert desk.call.kind("run_all") is Kind.RISKY_CODE
    assert any("x" in said and "delete" in said for said in desk.call.preview("run_all").effects)
    assert desk.call.kind("run_all", first="end") is Kind.RUN_ALL
    desk.user_edit("end", "exit()")
    await desk.call("read_notebook")
    assert desk.call.kind("run_all") is Kind.PROTECTED


# ── what runs is what was shown ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_notebook_that_was_not_read_is_not_run(desk):
    assert desk.call.kind("run_all") is Kind.READ
    with pytest.raises(ToolError, match="read_notebook"):
        await desk.call("run_all")
    assert desk.kernel.ran == []


CHANGES = {
    "a cell was edited": lambda desk: desk.user_edit("fit", "other"),
    "a cell was added": lambda desk: desk.user_insert(1, "new", "rm()"),
    "a cell was deleted": lambda desk: desk.user_delete("fit"),
    "cells were swapped": lambda desk: desk.notebook.cells_.insert(0, desk.notebook.cells_.pop(2)),
    "a cell was marked": lambda desk: desk.raw("fit").update(metadata={"nbagent": {"keep": True}}),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_notebook_that_changed_after_the_question_is_not_run(desk, change):
    await desk.call("read_notebook")
    desk.call.kind("run_all")
    desk.call.preview("run_all")
    CHANGES[change](desk)
    with pytest.raises(NotebookError, match="changed since it was listed"):
        await desk.call.carry_out("run_all")
    assert desk.kernel.ran == []
    desk.call.kind("run_all")
    await desk.call.carry_out("run_all")
    assert desk.kernel.ran


async def test_what_the_agent_did_itself_needs_no_new_reading(desk):
    await desk.call("read_notebook")
    added = (await desk.call("add_cell", source="mine", after="load", run=False)).cells[0]
    await desk.call("edit_cell", cell="fit", source="fit2")
    await desk.call("move_cell", cell="end", before="load")
    await desk.call("delete_cell", cell=added)
    await desk.call("run_all", first="end", last="load")
    await desk.call("run_all")
    assert desk.kernel.ran == ["df", "df = load()", "df", "df = load()", "fit2"]


async def test_a_cell_that_the_person_changes_while_it_goes_is_not_run(desk):
    await desk.call("read_notebook")
    run = desk.kernel.run

    async def edited_meanwhile(code, *, emit, timeout):
        desk.user_edit("end", "the person's")
        return await run(code, emit=emit, timeout=timeout)

    desk.kernel.run = edited_meanwhile
    result = await desk.call("run_all")
    assert desk.kernel.ran == ["df = load()", "model.fit(df)\nmodel"]
    assert "cell end: not run: it was edited meanwhile" in said(result)
    assert result.is_error


async def test_where_cells_are_only_proposed_nothing_runs():
    desk = Desk(proposes_only=True)
    await desk.call("read_notebook")
    with pytest.raises(ToolError, match="the person has to run"):
        await desk.call("run_all")
    assert desk.kernel.ran == []
