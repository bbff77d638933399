"""The bridge in a real page: the port's promises, one writer among two tabs, a reload in the middle, an interrupt."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conformance.notebook_kit import promises

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.browser.lab import Lab
    from tests.browser.page import Notebook

ROOT = Path(__file__).parents[2]
GO = "go-on"
"""A file beside the notebook that tells a running cell to go on."""

SETUP = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
import asyncio, json, pathlib, time, traceback
from nbagent.core.ports import Anchor
from nbagent.jupyter.bridge import Bridge
from nbagent.jupyter.front_end import reach, running_cell
from nbagent.jupyter.notebook import LiveNotebook
def stream(text): return {{"output_type": "stream", "name": "stdout", "text": text}}
"""


@contextmanager
def go_on(notebook: Notebook) -> Iterator[None]:
    """Let the running cell see the file GO while this is entered."""
    (notebook.path.parent / GO).touch()
    try:
        yield
    finally:
        (notebook.path.parent / GO).unlink()


def agent(*lines: str) -> str:
    """A cell that does `lines` with `live`, `bridge`, `hello` and `own` at hand."""
    body = "\n    ".join(lines)
    return (
        "bridge = Bridge(cell=running_cell(get_ipython()))\n"
        "async with reach(bridge, get_ipython()) as hello:\n"
        "    live = LiveNotebook(bridge, hello)\n"
        "    own = live.own_cell\n"
        f"    {body}\n"
        "bridge.close()"
    )


KEEP_ALL = agent(
    "from tests.conformance.notebook_kit import NotebookHost, promises",
    "async def user_edit(cell_id, source):",
    '    await bridge.call("edit", cell=cell_id, source=source, expected=(await live.read(cell_id)).source)',
    "broken = {}",
    "for promise in promises():",
    "    try: await promise(NotebookHost(live, user_edit))",
    "    except Exception: broken[promise.__name__] = traceback.format_exc()",
    "print(json.dumps([broken, len(promises()), hello.front_end, hello.interactive, live.path]))",
)

DRAWN = """
return content().widgets.filter(w => w.model.type === 'code').map(w => {
  const model = w.model.outputs.toJSON().map(o => [o.output_type, o.text ?? o.data?.['text/plain'] ?? o.evalue]);
  const doc = w.model.sharedModel.getOutputs().map(o => [o.output_type, o.text ?? o.data?.['text/plain'] ?? o.evalue]);
  return [w.model.sharedModel.getId(), JSON.stringify(model), JSON.stringify(doc)];
})
"""


async def test_the_open_notebook_keeps_every_promise_and_draws_what_the_document_holds(lab: Lab) -> None:
    async with lab.open([SETUP, KEEP_ALL]) as notebook:
        await notebook.run(0)
        await notebook.run(1, patience=90)
        broken, count, front_end, interactive, path = json.loads(await notebook.text(1))
        assert broken == {}, "\n".join(broken.values())
        assert (count, front_end, interactive, path) == (len(promises()), "jupyterlab", True, notebook.name)
        for cell, drawn, held in await notebook.js(DRAWN):
            assert drawn == held, f"cell {cell} shows other outputs than the document holds"
        await notebook.save()


async def test_a_cell_appears_with_streamed_output_while_synchronous_code_runs(lab: Lab) -> None:
    code = agent(
        'cell = await live.insert(Anchor(own), "code", "for n in range(3): print(n)")',
        "sink = await live.begin_run(cell.id)",
        'sink.emit(stream("first line\\n"))',
        "end = time.monotonic() + 60",
        f"while not pathlib.Path('{GO}').exists() and time.monotonic() < end: pass",
        "late = time.monotonic() >= end",
        'sink.emit(stream("10%\\r20%\\r30%\\n"))',
        'sink.emit({"output_type": "display_data", "data": {"text/html": "<b>bold</b>"}, "metadata": {}})',
        "await sink.end(42)",
        "await live.save()",
        "print(late)",
    )
    async with lab.open([SETUP, code, "'below'"]) as notebook:
        await notebook.run(0)
        await notebook.start(1)
        await notebook.see(2, "first line")
        assert await notebook.js("return shared().getCell(2).executionState") == "running"
        with go_on(notebook):
            await notebook.done(1)
        assert await notebook.text(1) == "False\n"
        assert await notebook.count(2) == 42
        assert await notebook.sources() == [SETUP, code, "for n in range(3): print(n)", "'below'"]
        assert [o.get("text") for o in await notebook.outputs(2)] == ["first line\n30%\n", None]
        assert await notebook.output(2).locator("b").inner_text() == "bold"
        assert notebook.saved().cells[2].execution_count == 42


async def test_inserting_above_leaves_the_persons_selection_and_cursor(lab: Lab) -> None:
    code = agent(
        f"while not pathlib.Path('{GO}').exists(): await asyncio.sleep(0.02)",
        'await live.insert(Anchor(own, "before"), "markdown", "# above")',
        "last = (await live.cells())[-1]",
        'await live.edit(last.id, last.source + " + 1", last.hash)',
    )
    async with lab.open([SETUP, code, "cursor = here"]) as notebook:
        await notebook.run(0)
        await notebook.start(1)
        await notebook.enter(2)
        await notebook.press("Home", "ArrowRight", "ArrowRight")
        with go_on(notebook):
            await notebook.until("shared().cells[3]?.getSource() === 'cursor = here + 1'")
        await notebook.press("X")
        await notebook.kernel_idle()
        assert (await notebook.sources())[2:] == [code, "cuXrsor = here + 1"]


async def test_of_two_tabs_one_inserts(lab: Lab) -> None:
    code = agent('await live.insert(Anchor(own), "code", "one")', "await live.save()", "print(hello.page)")
    async with lab.open([SETUP, code]) as notebook:
        await notebook.run(0)
        await notebook.save()
        other = await notebook.second_tab()
        await other.kernel_idle()
        await notebook.run(1)
        # a tab follows what the other one saved only if it has not written itself
        await other.until("!panel().context.model.dirty && shared().cells.some(cell => cell.getSource() === 'one')")
        for tab in (notebook, other):
            assert (await tab.sources()).count("one") == 1
        assert [cell.source for cell in notebook.saved().cells].count("one") == 1


async def test_a_page_reloaded_in_the_middle_takes_the_lease_again(lab: Lab) -> None:
    code = agent(
        "print('ready', flush=True)",
        "await live.save()",
        "before = hello.page",
        'cell = await live.insert(Anchor(own), "code", "slow")',
        "sink = await live.begin_run(cell.id)",
        'sink.emit(stream("before\\n"))',
        "await live.save()",
        "end = time.monotonic() + 60",
        "while (bridge.lease is None or bridge.lease.page == before) and time.monotonic() < end: await asyncio.sleep(0.05)",
        'sink.emit(stream("after\\n"))',
        "await sink.end(8)",
        'await live.set_record([{"output_type": "display_data", "data": {"text/plain": "the record"}, "metadata": {}}], 2)',
        "await live.save()",
    )
    async with lab.open([SETUP, code]) as notebook:
        await notebook.run(0)
        await notebook.start(1)
        await notebook.see(2, "before")
        await notebook.until("!panel().context.model.dirty")
        await notebook.reload(kernel=False)
        await notebook.see(2, "after")
        await notebook.see(1, "the record")
        await notebook.until(
            "!panel().context.model.dirty"
        )  # a page that was reloaded does not see that the kernel is busy
        saved = notebook.saved()
        assert [o.get("text") or o["data"]["text/plain"] for o in saved.cells[2].outputs] == ["before\nafter\n"]
        assert saved.cells[1].outputs[0].data["text/plain"] == "the record"
        assert saved.cells[1].execution_count == 2


async def test_the_page_interrupts_the_kernel_when_synchronous_code_blocks_it(lab: Lab) -> None:
    code = agent(
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)",
        "try:",
        "    bridge.tell('interrupt')",
        "    end = time.monotonic() + 60",
        "    while time.monotonic() < end: pass",
        "except KeyboardInterrupt: print('interrupted')",
    )
    async with lab.open([SETUP, code, "1 + 1"]) as notebook:
        await notebook.run(0)
        await notebook.run(1, patience=90)
        assert await notebook.text(1) == "interrupted\n"
        await notebook.run(2)
        assert await notebook.text(2) == "2"


NEVER_FITS = agent(
    'cell = await live.insert(Anchor(own), "code", "slow")',
    "sink = await live.begin_run(cell.id)",
    'sink.emit(stream("shown"))',
    'state = {"cell": cell.id, "run": sink._run, "seq": 99, "count": 5, "number": 7}',
    'tried = await bridge.call("end", last=False, **state)',
    'ended = await bridge.call("end", last=True, **state)',
    "print(json.dumps([tried, ended]))",
)

SAVE_TWICE = agent(
    f"while not pathlib.Path('{GO}').exists(): await asyncio.sleep(0.02)",
    "file = pathlib.Path(hello.path).name",
    "await live.save()",
    "print('saved', flush=True)",
    f"while pathlib.Path('{GO}').exists(): await asyncio.sleep(0.02)",
    "changed = json.loads(pathlib.Path(file).read_text()) | {'metadata': {'by': 'somebody'}}",
    "pathlib.Path(file).write_text(json.dumps(changed))",
    "os.utime(file, (time.time() + 60,) * 2)",
    "try: await live.save()",
    "except NotebookError as error: print(error)",
)


async def test_a_save_goes_on_behind_a_dialog_of_the_persons_and_is_refused_when_the_page_opens_its_own(
    lab: Lab,
) -> None:
    """The page asks about a file that changed on disk for as long as nobody answers: the run must not wait for that."""
    setup = f"{SETUP}import os\nfrom nbagent.core.errors import NotebookError"
    async with lab.open([setup, agent("pass"), NEVER_FITS, SAVE_TWICE]) as notebook:
        await notebook.run(0)
        await notebook.run(1)
        saved = await notebook.save()
        assert saved.cells[1].outputs == [], "a closed bridge leaves nothing in the saved notebook"
        assert "widgets" not in saved.metadata

        await notebook.run(2)
        assert json.loads(await notebook.text(2)) == [{"gap": True}, {"gap": True}]
        states = "return [shared().getCell(3).executionState, shared().getCell(3).execution_count]"
        assert await notebook.js(states) == ["idle", 7], "a cell whose outputs never fit does not run for ever"

        await notebook.start(4)
        await notebook.js("void window.jupyterapp.commands.execute('help:about')")
        await notebook.page.locator(".jp-Dialog").wait_for()
        with go_on(notebook):
            await notebook.until("String(shared().getCell(4).getOutputs()[0]?.text ?? '').includes('saved')")
            await notebook.page.locator(".jp-Dialog").press("Escape")
            await notebook.page.locator(".jp-Dialog").wait_for(state="detached")
        # the page says so: a kernel that waits until it gives up says that no page answers
        await notebook.until(
            "String(shared().getCell(4).getOutputs()[0]?.text ?? '').includes('its file changed on disk')"
        )
        await notebook.page.locator(".jp-Dialog").press("Escape")
        await notebook.page.locator(".jp-Dialog").wait_for(state="detached")


async def test_an_inserted_cell_is_trusted(lab: Lab) -> None:
    code = agent(
        'cell = await live.insert(Anchor(own), "code", "x")',
        "sink = await live.begin_run(cell.id)",
        'sink.emit({"output_type": "display_data", "data": {"text/html": "<style>.t{color:rgb(1,2,3)}</style><i class=t>styled</i>"}, "metadata": {}})',
        "await sink.end(1)",
    )
    async with lab.open([SETUP, code]) as notebook:
        await notebook.run(0)
        await notebook.run(1)
        await notebook.see(2, "styled")
        color = await notebook.output(2).locator("i").evaluate("e => getComputedStyle(e).color")
        assert color == "rgb(1, 2, 3)"


async def test_outputs_too_large_for_a_message_are_read_back_as_a_line(lab: Lab) -> None:
    code = agent("print((await live.read('cell-1')).outputs[0]['data'])")
    big = "display({'application/x-nothing': 'x' * 9_000_000, 'text/plain': 'big'}, raw=True)"
    async with lab.open([SETUP, big, code]) as notebook:
        await notebook.run(0)
        await notebook.run(1)
        await notebook.run(2)
        assert "too large to read back" in await notebook.text(2)
