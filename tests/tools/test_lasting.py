"""Code that goes on after its call: still running, waited for, stopped, interrupted, and at the end of a run."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from nbagent.core.errors import CutOff, Interrupted, ToolError
from nbagent.core.messages import plain_text
from nbagent.core.ports import Ran
from nbagent.core.tools import Kind
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools import notebook as cell_tools
from nbagent.tools import python
from nbagent.tools.lasting import LastingCode, wait_tools
from tests.conformance.notebook_kit import stream
from tests.support.turns import turns, until
from tests.tools.calling import Calling
from tests.tools.desk import EchoKernel, raw

BAR = "\rLoad:  42%|████▏     | 42/100 [00:09<00:12,  4.6it/s]"


class SlowKernel(EchoKernel):
    """A kernel whose code prints what it is given, piece by piece, and ends when it is told to."""

    def __init__(self):
        super().__init__()
        self.goes, self.emit, self.limits = asyncio.Event(), None, []
        self.ends: asyncio.Future[Ran] | None = None

    async def run(self, code, *, emit, timeout):
        self.ran.append(code)
        self.limits.append(timeout)
        if code == "fast()":
            return Ran("ok", (stream("fast\n"),), len(self.ran), 0.1)
        self.emit, self.ends = emit, asyncio.get_running_loop().create_future()
        self.goes.set()
        try:
            return await self.ends
        except asyncio.CancelledError:
            emit(stream("cut\n"))
            raise

    async def scratch(self, code, *, timeout, emit=None):
        return await self.run(code, emit=emit, timeout=timeout)


class Slow:
    """A notebook of one slow cell, whose calls wait for `patience` seconds of real time."""

    def __init__(self, patience=0.01):
        self.now = 0.0
        self.notebook = MemoryNotebook(
            [raw("mine", "%%agent\ngo"), raw("fit", "await fit()"), raw("end", "fast()")], own_cell="mine"
        )
        self.kernel = SlowKernel()
        self.lasting = LastingCode(patience, clock=lambda: self.now)
        tools = cell_tools.tools(self.notebook, self.kernel, timeout=600, lasting=self.lasting)
        tools += python.tools(self.kernel, timeout=600, lasting=self.lasting)
        self.call = Calling([*tools, *wait_tools(self.lasting)])

    async def begun(self):
        await self.call("read_notebook")
        return await self.call.text("run_cell", cell="fit")

    def ends(self, status="ok", *outputs):
        self.kernel.ends.set_result(Ran(status, outputs, 7, 75.0))


@asynccontextmanager
async def slow(patience=0.01):
    """A slow desk, whose code is stopped at the end."""
    made = Slow(patience)
    yield made
    await made.lasting.stop()


async def test_a_cell_that_takes_longer_goes_on_and_what_is_new_of_it_is_told_until_it_ends():
    async with slow() as desk:
        said = await desk.begun()
        assert "cell fit still runs: 0.0 s so far (look 1)." in said
        assert "No new text." in said
        assert desk.lasting.label == "the cell “await fit()”"
        desk.kernel.emit(stream("reading\n" + BAR))
        desk.now = 65.0
        said = await desk.call.text("wait_for_cell", seconds=0)
        assert "1 min 5 s so far, Load 42 %, 12 s left (look 2)" in said
        assert "reading\nLoad:  42%" in said
        desk.kernel.emit(stream("\nnext\n"))
        said = await desk.call.text("wait_for_cell", seconds=0)
        assert "reading" not in said
        assert said.endswith("4.6it/s]\nnext\n")
        desk.ends("ok")
        said = await desk.call.text("wait_for_cell")
        assert "ran as In[7] in 75.0 s: ok." in said
        assert "next" in said
        assert desk.lasting.label == ""
        assert desk.notebook.cells_[1]["execution_count"] == 7


async def test_while_code_runs_others_are_refused_and_looks_are_not():
    async with slow() as desk:
        await desk.begun()
        for name, given in (("run_cell", {"cell": "end"}), ("run_python", {"code": "1"}), ("run_all", {}),
                            ("add_cell", {"source": "x"}), ("edit_cell", {"cell": "end", "source": "y", "run": True})):  # fmt: skip
            with pytest.raises(ToolError, match="cell fit still runs"):
                await desk.call(name, **given)
        with pytest.raises(ToolError, match="cell fit still runs: wait for it"):
            await desk.call("edit_cell", cell="fit", source="z")
        desk.kernel.emit(stream("half\n"))
        assert "half" in await desk.call.text("read_cell", cell="fit")
        assert [cell["id"] for cell in desk.notebook.cells_] == ["mine", "fit", "end"]
        await desk.call("edit_cell", cell="end", source="y")
        assert desk.kernel.ran == ["await fit()"]


async def test_the_agent_stops_its_code_and_reads_what_it_did_until_then():
    async with slow() as desk:
        await desk.begun()
        assert desk.call.kind("wait_for_cell", stop=True) is Kind.READ  # it ends only what it was let begin
        desk.now = 80.0
        result = await desk.call("wait_for_cell", stop=True)
        assert plain_text(list(result.content)) == (
            "Stopped after 1 min 20 s. What ran before that has happened. Output so far:\ncut"
        )
        assert not result.is_error
        with pytest.raises(ToolError, match="nothing to wait for"):
            await desk.call("wait_for_cell")
        assert "fast" in await desk.call.text("run_cell", cell="end")


async def test_an_interrupt_of_the_wait_ends_the_code_with_what_it_printed():
    async with slow() as desk:
        await desk.begun()
        wait = asyncio.create_task(desk.call.carry_out("wait_for_cell"))
        await turns(3)
        wait.cancel()
        with pytest.raises(CutOff) as stopped:
            await wait
        assert "cut" in stopped.value.output
        assert desk.lasting.label == ""


async def test_code_that_ended_while_nobody_waited_is_told_once():
    async with slow() as desk:
        await desk.begun()
        assert desk.lasting.news() == []
        desk.ends()
        await until(lambda: not desk.lasting.running)
        (told,) = desk.lasting.news()
        assert "cell fit has ended:\nCell fit was not changed and ran as In[7]" in told
        assert desk.lasting.news() == []
        assert desk.lasting.label == ""


async def test_what_a_run_is_told_at_its_end_is_the_result_and_an_interrupt_is_one():
    async with slow() as desk:
        await desk.begun()
        desk.ends("ok")
        text = plain_text(list(await desk.lasting.ended()))
        assert "ran as In[7]" in text
    async with slow() as desk:
        await desk.begun()
        desk.kernel.ends.set_exception(Interrupted("half"))
        with pytest.raises(Interrupted):
            await desk.lasting.ended()


async def test_scratch_code_goes_on_too_and_the_panel_hears_how_far_it_is():
    async with slow() as desk:
        said = await desk.call.text("run_python", code="await fit()")
        assert "the code of run_python still runs" in said
        desk.kernel.emit(stream(BAR))
        assert "Load 42 %" in await desk.call.text("wait_for_cell", seconds=0)
        desk.ends("ok", stream("done\n"))
        assert await desk.call.text("wait_for_cell") == "done"


async def test_all_cells_in_order_go_on_too():
    async with slow() as desk:
        await desk.call("read_notebook")
        assert "run_all still runs" in await desk.call.text("run_all")
        desk.ends()
        assert "Ran 2 of 2 cells" in (await desk.call.text("wait_for_cell")).replace("Ran 2 cells", "Ran 2 of 2 cells")


async def test_the_model_s_own_limit_is_the_smaller_and_reaching_it_is_no_error():
    async with slow(None) as desk:
        assert "wait_for_cell" not in desk.call.tools
        await desk.call("read_notebook")
        run = asyncio.create_task(desk.call("run_cell", cell="fit", limit=30))
        await desk.kernel.goes.wait()
        desk.kernel.emit(stream(BAR))
        desk.ends("timeout")
        result = await run
        assert not result.is_error
        assert "It had come to: Load 42 %, 12 s left." in plain_text(list(result.content))
        assert desk.kernel.limits == [30]
        with pytest.raises(ToolError, match="limit = 0 must be"):
            await desk.call("run_python", code="1", limit=0)
        with pytest.raises(ToolError, match="limit = -1 must be"):
            await desk.call("run_cell", cell="end", limit=-1)


async def test_code_that_goes_on_is_said_to_and_its_end_is_told_once_with_how_it_came():
    async def ends(how):
        async with slow() as desk:
            await desk.call("read_notebook")
            assert (await desk.call("run_cell", cell="fit")).code == "goes on"
            desk.now = 80.0
            assert desk.lasting.since[1] == 80.0
            await how(desk)
            assert desk.lasting.since == ("", 0.0)
            ((end,), again) = desk.lasting.endings(), desk.lasting.endings()
            assert not again
            assert end.seconds == 80.0
            return end.how

    def by_itself(status, error=None):
        async def how(desk):
            if error is not None:
                desk.kernel.ends.set_exception(error)
            else:
                desk.ends(status)
            await until(lambda: not desk.lasting.running)

        return how

    async def waited(desk):
        desk.ends()
        assert (await desk.call("wait_for_cell")).code == ""

    assert [await ends(by_itself(status)) for status in ("ok", "error", "timeout")] == ["ended", "failed", "limit"]
    assert await ends(by_itself("", Interrupted("half"))) == "interrupted"
    assert await ends(lambda desk: desk.call("wait_for_cell", stop=True)) == "stopped"
    assert await ends(lambda desk: desk.lasting.stop()) == "interrupted"
    assert await ends(waited) == "ended"
    async with slow(60) as desk:
        begun = asyncio.create_task(desk.begun())
        await desk.kernel.goes.wait()
        desk.ends()
        assert "ran as In[7]" in await begun
        assert not desk.lasting.endings(), "no code went on"
