"""What cells say about themselves: who wrote them, that their outputs are old, that they are not to be run again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.messages import plain_text
from nbagent.core.policy import Mode, Policy, Rule
from nbagent.core.ports import Cell
from nbagent.core.tools import Kind
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools import marks
from nbagent.tools import notebook as cell_tools
from nbagent.tools.cells import error_of
from nbagent.tools.times import RunTimes, duration
from tests.conformance.notebook_kit import display, stream
from tests.tools.calling import Calling
from tests.tools.desk import Desk, EchoKernel

ERROR = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": []}


@pytest.fixture
def desk():
    return Desk()


def words(result):
    return plain_text(list(result.content))


# ── who wrote it ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_cell_says_which_session_run_and_call_wrote_it(desk):
    added = (await desk.call("add_cell", source="x")).cells[0]
    assert desk.raw(added)["metadata"] == {"nbagent": {"session": "s1", "run": "run-1", "call": "call_1"}}
    await desk.call("read_cell", cell="load")
    desk.begin("run-2")
    await desk.call("edit_cell", cell="load", source="df = 2", run=True)
    assert desk.raw("load")["metadata"]["nbagent"] == {"session": "s1", "run": "run-2", "call": "call_1"}
    markdown = (await desk.call("add_cell", source="# T", cell_type="markdown")).cells[0]
    assert desk.raw(markdown)["metadata"]["nbagent"]["call"] == "call_2"


async def test_running_a_persons_cell_does_not_make_it_the_agents(desk):
    await desk.call("read_cell", cell="load")
    await desk.call("run_cell", cell="load")
    assert desk.raw("load")["metadata"] == {}


async def test_what_others_keep_in_the_metadata_stays(desk):
    desk.raw("load")["metadata"] = {"tags": ["a"], "nbagent": {"keep": True, "future": 1}}
    await desk.call("read_cell", cell="load")
    await desk.call("edit_cell", cell="load", source="df = 2")
    metadata = desk.raw("load")["metadata"]
    assert metadata["tags"] == ["a"]
    assert (metadata["nbagent"]["keep"], metadata["nbagent"]["future"]) == (True, 1)


async def test_the_model_is_told_which_cells_an_agent_wrote(desk):
    added = (await desk.call("add_cell", source="x")).cells[0]
    said = await desk.call.text("read_notebook")
    assert f"{added} code In[1] (written by an agent)" in said
    assert "2. load code In[3]\n" in said
    assert "(written by an agent)" in await desk.call.text("read_cell", cell=added)


@pytest.mark.parametrize("odd", [None, [], "keep", {"keep": "yes"}, {"stale": {}}, 3])
def test_odd_metadata_of_a_foreign_notebook_means_nothing(odd):
    cell = Cell("a", "code", "x", 0, metadata={"nbagent": odd, "execution": odd})
    assert not marks.is_kept(cell)
    assert not marks.is_agents(cell)
    assert not marks.is_stale(cell)
    assert marks.last_timing(cell) is None
    assert marks.keeping(cell, on=True)["nbagent"]["keep"] is True


# ── old outputs ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_edited_cell_keeps_its_outputs_under_a_mark_that_they_are_old(desk):
    desk.user_run("load", 3, stream("old\n"), display("older"))
    await desk.call("read_cell", cell="load")
    result = await desk.call("edit_cell", cell="load", source="df = 2")
    marker, *kept = desk.raw("load")["outputs"]
    assert marker["data"]["text/plain"] == "Outputs from before the last edit"
    assert "Outputs from before the last edit" in marker["data"]["text/html"]
    assert [o["output_type"] for o in kept] == ["stream", "display_data"]
    assert desk.raw("load")["metadata"]["nbagent"]["stale"] is True
    assert desk.raw("load")["execution_count"] == 3
    assert "marked as stale until it runs" in words(result)


async def test_marks_do_not_pile_up_and_a_run_takes_them_away(desk):
    desk.user_run("load", 3, stream("old\n"))
    await desk.call("read_cell", cell="load")
    for source in ("df = 2", "df = 3", "df = 4"):
        await desk.call("edit_cell", cell="load", source=source)
    assert [marks.is_marker(o) for o in desk.raw("load")["outputs"]] == [True, False]
    await desk.call("run_cell", cell="load")
    assert [o["text"] for o in desk.raw("load")["outputs"]] == ["did df = 4\n"]
    assert "stale" not in desk.raw("load")["metadata"]["nbagent"]
    await desk.call("edit_cell", cell="load", source="df = 5")
    await desk.call("edit_cell", cell="load", source="df = 6", run=True)
    assert not any(map(marks.is_marker, desk.raw("load")["outputs"]))
    assert "stale" not in desk.raw("load")["metadata"]["nbagent"]


async def test_the_model_reads_that_outputs_are_old(desk):
    desk.user_run("load", 3, stream("old\n"))
    await desk.call("read_cell", cell="load")
    await desk.call("edit_cell", cell="load", source="df = 2")
    for said in (await desk.call.text("read_notebook"), await desk.call.text("read_cell", cell="load")):
        assert "stale" in said
        assert "old" in said


async def test_when_the_person_ran_it_again_its_outputs_are_not_called_old(desk):
    desk.user_run("load", 3, stream("old\n"))
    await desk.call("read_cell", cell="load")
    await desk.call("edit_cell", cell="load", source="df = 2")
    desk.user_run("load", 4, stream("new\n"))  # the flag in the metadata stays, as a front end leaves it
    assert desk.raw("load")["metadata"]["nbagent"]["stale"] is True
    assert "stale" not in await desk.call.text("read_cell", cell="load")
    assert "stale" not in await desk.call.text("read_notebook")


async def test_an_edited_cell_that_had_shown_nothing_counts_as_not_run(desk):
    await desk.call("read_cell", cell="load")
    await desk.call("edit_cell", cell="load", source="df = 2")
    assert (desk.raw("load")["outputs"], desk.raw("load")["execution_count"]) == ([], None)
    assert "stale" not in desk.raw("load")["metadata"]["nbagent"]


async def test_outputs_too_large_to_read_back_are_never_written_over(desk):
    cut = display("[image/png: 5000000 characters, too large to read back]")
    desk.user_run("load", 3, cut)
    await desk.call("read_cell", cell="load")
    said = words(await desk.call("edit_cell", cell="load", source="df = 2"))
    assert desk.raw("load")["outputs"] == [cut]
    assert "outputs are from before the edit" in said


class NoOutputs(MemoryNotebook):
    """A notebook whose outputs can't be set."""

    async def set_outputs(self, cell_id, outputs, number):
        raise NotebookError("the page is gone")


async def test_an_edit_that_was_made_is_told_even_where_the_outputs_could_not_be_marked():
    cell = {"id": "a", "cell_type": "code", "metadata": {}, "source": "x", "outputs": [stream("old\n")]}
    call = Calling(cell_tools.tools(NoOutputs([cell | {"execution_count": 1}]), EchoKernel(), timeout=None))
    await call("read_cell", cell="a")
    result = await call("edit_cell", cell="a", source="y")
    assert "Cell a edited" in words(result)
    assert "could not be marked so: the page is gone" in words(result)


async def test_an_edit_to_an_agent_cell_does_not_run_and_its_outputs_are_marked(desk):
    desk.user_run("load", 3, stream("old\n"))
    await desk.call("read_cell", cell="load")
    with pytest.raises(ToolError, match="edited, but it was not run"):
        await desk.call("edit_cell", cell="load", source="%%agent\nhi", run=True)
    assert marks.is_marker(desk.raw("load")["outputs"][0])


def test_an_error_of_old_outputs_is_no_error_of_the_cell():
    assert error_of(Cell("a", "code", "x", 0, outputs=(ERROR,))) == "KeyError: 'x'"
    assert error_of(Cell("a", "code", "x", 0, outputs=(stream("a\n"), {**ERROR, "evalue": ""}))) == "KeyError"
    assert error_of(Cell("a", "code", "x", 0, outputs=(stream("a\n"),))) == ""
    assert error_of(Cell("a", "code", "x", 0, outputs=marks.as_stale((ERROR,)))) == ""


@pytest.mark.slow
@settings(max_examples=60 * settings.default.max_examples // 100)
@given(st.lists(st.sampled_from(["edit", "edit and run", "run", "person runs", "person edits", "read"]), max_size=14))
async def test_old_outputs_are_called_old_and_new_ones_never(steps):
    desk = Desk()
    desk.user_run("load", 3, stream("out 0\n"))
    made_for, text = "df = load()", "df = load()"
    await desk.call("read_cell", cell="load")
    for number, step in enumerate(steps, 10):
        if step.startswith("edit"):
            text = f"x = {number}"
            await desk.call("edit_cell", cell="load", source=text, run="run" in step)
            made_for = text if "run" in step else made_for
        elif step == "run":
            await desk.call("run_cell", cell="load")
            made_for = text
        elif step == "person runs":
            desk.user_run("load", number, stream(f"out {number}\n"))
            made_for = text
        elif step == "person edits":
            text = f"p = {number}"
            desk.user_edit("load", text)
            await desk.call("read_cell", cell="load")
        read = await desk.notebook.read("load")
        outputs = [o for o in read.outputs if not marks.is_marker(o)]
        assert outputs
        assert len(read.outputs) - len(outputs) <= 1
        if step.startswith("edit"):
            assert marks.is_stale(read) == (made_for != text)
        if made_for == text and step in {"run", "person runs", "edit and run"}:
            assert not marks.is_stale(read)


# ── don't rerun ──────────────────────────────────────────────────────────────────────────────────────────────────────

KEEP = {"nbagent": {"keep": True}}
EVERYTHING = (Rule.parse("allow", "run_cell"), Rule.parse("allow", "edit_cell"))


async def action(desk, name, mode=Mode.DEFAULT, rules=EVERYTHING, **arguments):
    tool = desk.call.tools[name]
    return (await Policy(mode, rules).decide(tool, desk.call.given(name, **arguments))).action


RERUNS = {"run_cell": {}, "edit_cell": {"source": "df = 2", "run": True}}


@pytest.mark.parametrize("name", RERUNS)
async def test_a_kept_cell_is_asked_about_whatever_is_allowed(desk, name):
    desk.raw("load")["metadata"] = KEEP
    await desk.call("read_cell", cell="load")
    for mode in (Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.BYPASS):
        assert await action(desk, name, mode, cell="load", **RERUNS[name]) == "ask", mode
    for mode in (Mode.PLAN, Mode.READ_ONLY, Mode.DONT_ASK):
        assert await action(desk, name, mode, cell="load", **RERUNS[name]) == "deny", mode
    assert "marked “don't rerun”" in desk.call.title(name, cell="load", **RERUNS[name])
    assert Policy().offers(desk.call.tools[name], desk.call.given(name, cell="load", **RERUNS[name]), Kind.KEPT) == ()


@pytest.mark.parametrize("name", RERUNS)
async def test_a_cell_that_took_long_is_asked_about_with_its_duration(desk, name):
    desk.times.took("load", 125)
    await desk.call("read_cell", cell="load")
    assert await action(desk, name, cell="load", **RERUNS[name]) == "ask"
    assert await action(desk, name, Mode.ACCEPT_EDITS, cell="load", **RERUNS[name]) == "ask"
    assert await action(desk, name, Mode.BYPASS, cell="load", **RERUNS[name]) == "allow"
    assert await action(desk, name, Mode.DONT_ASK, cell="load", **RERUNS[name]) == "deny"
    assert "its last run took 2 min 5 s" in desk.call.title(name, cell="load", **RERUNS[name])
    desk.times.took("load", 3)
    assert await action(desk, name, cell="load", **RERUNS[name]) == "allow"


async def test_editing_a_kept_cell_without_running_it_is_an_edit_like_any_other(desk):
    desk.raw("load")["metadata"] = KEEP
    await desk.call("read_cell", cell="load")
    assert desk.call.kind("edit_cell", cell="load", source="df = 2") is Kind.EDIT_CELL
    assert "rerun" not in desk.call.title("edit_cell", cell="load", source="df = 2")
    assert "marked “don't rerun” by the person" in await desk.call.text("read_notebook")


async def test_ending_the_kernel_stays_what_it_is_in_a_long_cell(desk):
    desk.times.took("end", 60)
    desk.user_edit("end", "exit()")
    await desk.call("read_cell", cell="end")
    assert desk.call.kind("run_cell", cell="end") is Kind.PROTECTED


@pytest.mark.parametrize("name", RERUNS)
async def test_a_cell_that_was_marked_after_the_question_does_not_run(desk, name):
    await desk.call("read_cell", cell="load")
    desk.call.kind(name, cell="load", **RERUNS[name])
    desk.raw("load")["metadata"] = KEEP
    with pytest.raises(NotebookError, match="don't rerun"):
        await desk.call.carry_out(name, cell="load", **RERUNS[name])
    assert desk.kernel.ran == []


async def test_the_agents_own_runs_are_remembered_with_their_times(desk):
    added = (await desk.call("add_cell", source="x")).cells[0]
    assert desk.times.last(await desk.notebook.read(added)) == 0.3


# ── times ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def timed(began, ended):
    return Cell(
        "a", "code", "x", 0, metadata={"execution": {"iopub.execute_input": began, "shell.execute_reply": ended}}
    )


def test_the_duration_is_read_from_what_jupyterlab_recorded():
    cell = timed("2026-11-30T03:00:00.250Z", "2026-11-30T03:02:05.250Z")
    assert RunTimes().last(cell) == 125
    assert RunTimes().is_long(cell)


@pytest.mark.parametrize(
    ("began", "ended"),
    [(None, None), ("2026-11-30T03:00:00Z", None), ("2026-11-30T03:00:00Z", "2026-11-30T02:00:00Z"), ("soon", "later")],
)
def test_a_record_without_a_whole_run_says_nothing(began, ended):
    assert RunTimes().last(timed(began, ended)) is None


def test_of_two_runs_the_later_one_counts():
    cell = timed("2026-11-30T03:00:00Z", "2026-11-30T03:02:00Z")
    at = marks.last_timing(cell)[0]
    before, after = RunTimes(lambda: at - 500), RunTimes(lambda: at + 500)
    for times in (before, after):
        times.took("a", 1)
    assert (before.last(cell), after.last(cell)) == (120, 1)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.04, "0.0 s"), (9.96, "10.0 s"), (42.4, "42 s"), (60, "1 min"), (125, "2 min 5 s"), (7200, "2 h"), (6000, "1 h 40 min")],
)  # fmt: skip
def test_durations_are_said_as_people_say_them(seconds, said):
    assert duration(seconds) == said
