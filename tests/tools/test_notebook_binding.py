"""The cell tools change and run only what was read and shown, whatever happens between the question and the answer."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.messages import plain_text
from nbagent.core.policy import Policy
from nbagent.core.tools import Kind
from tests.tools.desk import Desk


@pytest.fixture
def desk():
    return Desk()


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


async def test_an_edit_is_made_and_was_shown_as_a_diff(desk):
    await desk.call("read_cell", cell="load")
    preview = desk.call.preview("edit_cell", cell="load", source="df = 2")
    assert (preview.kind, preview.old, preview.body) == ("diff", "df = load()", "df = 2")
    result = await desk.call("edit_cell", cell="load", source="df = 2")
    assert desk.sources()[1] == "df = 2"
    assert "It has not run since" in plain_text(list(result.content))
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


async def test_an_edit_to_the_same_source_is_refused_and_runs_nothing():
    desk = Desk()
    await desk.call("read_cell", cell="load")
    with pytest.raises(ToolError, match="has exactly that source already"):
        await desk.call("edit_cell", cell="load", source="df = load()", run=True)
    assert desk.kernel.ran == []


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


async def test_code_that_would_run_and_reach_beyond_the_notebook_is_asked_about_in_plain_words(desk):
    await desk.call("read_notebook")
    for name, arguments in (("add_cell", {}), ("edit_cell", {"cell": "load", "run": True})):
        arguments["source"] = "```\n!rm x\n```"
        assert desk.call.kind(name, **arguments) is Kind.RISKY_CODE
        assert any("x" in said and "delete" in said for said in desk.call.preview(name, **arguments).effects)
        arguments["run"] = False
        assert desk.call.kind(name, **arguments) is Kind.EDIT_CELL
    assert desk.call.kind("add_cell", source="!rm x", cell_type="markdown") is Kind.EDIT_CELL
    assert desk.call.preview("add_cell", source="!rm x", cell_type="markdown").effects == ()
    desk.user_edit("end", "sp.run(cmd)")
    await desk.call("read_cell", cell="end")
    assert desk.call.kind("run_cell", cell="end") is Kind.RUN_CELL
    desk.kernel.names["sp"] = subprocess
    assert desk.call.kind("run_cell", cell="end") is Kind.RISKY_CODE
    assert desk.call.preview("run_cell", cell="end").effects


async def test_a_person_reads_which_variables_the_code_would_rebind(desk):
    await desk.call("read_notebook")
    desk.kernel.names["df"] = [1]
    said = desk.call.preview("edit_cell", cell="end", source="df = 2", run=True).effects
    assert any("df" in line for line in said)


async def test_a_title_is_bound_to_what_runs_like_every_other_question(desk):
    await desk.call("read_cell", cell="load")
    desk.call.kind("run_cell", cell="load")
    desk.user_edit("load", "!rm x")
    await desk.call("read_cell", cell="load")
    desk.call.title("run_cell", cell="load")
    with pytest.raises(NotebookError, match="changed"):
        await desk.call.carry_out("run_cell", cell="load")
    assert desk.kernel.ran == []


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
    assert desk.call.title("add_cell", source="x", after="load") == "add and run a code cell after In[3]"
    assert desk.call.title("move_cell", cell="load", before="end") == "move In[3] before cell end"


# ── any order of things ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@settings(max_examples=40 * settings.default.max_examples // 100)
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


@pytest.mark.slow
@settings(max_examples=40 * settings.default.max_examples // 100)
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


async def test_an_approval_for_one_source_never_covers_another_that_was_read_meanwhile(desk):
    await desk.call("read_cell", cell="load")
    desk.call.kind("run_cell", cell="load")  # decided: allowed by a rule, nobody is asked
    desk.user_edit("load", "exit()")
    await desk.call("read_cell", cell="load")
    desk.call.preview("run_cell", cell="load")  # the start of the call is reported with what it shows now
    with pytest.raises(NotebookError, match="changed"):
        await desk.call.carry_out("run_cell", cell="load")
    assert desk.kernel.ran == []


async def test_a_reading_while_the_person_is_asked_does_not_change_what_they_approve(desk):
    await desk.call("read_cell", cell="load")
    desk.call.kind("run_cell", cell="load")
    desk.user_edit("load", "exit()")
    await desk.call("read_cell", cell="load")
    tool, given = desk.call.tools["run_cell"], desk.call.given("run_cell", cell="load")
    Policy().offers(tool, given, Kind.RUN_CELL)  # asked when the card is made
    with pytest.raises(NotebookError, match="changed"):
        await desk.call.carry_out("run_cell", cell="load")
    assert desk.kernel.ran == []


async def test_after_a_denial_and_a_new_reading_the_cell_can_be_run(desk):
    await desk.call("read_cell", cell="load")
    desk.call.kind("run_cell", cell="load")
    desk.call.preview("run_cell", cell="load")
    desk.user_edit("load", "df = 2")
    await desk.call("read_cell", cell="load")
    desk.call.kind("run_cell", cell="load")
    assert desk.call.preview("run_cell", cell="load").body == "df = 2"
    await desk.call.carry_out("run_cell", cell="load")
    assert desk.kernel.ran == ["df = 2"]
