"""Does a cell that an agent adds cost more, the more it has added? `python -m tests.benchmarks.added_cells`

A notebook of 500 cells gets 100 more, each with an output. Measured for each: the page's work in a real JupyterLab (our
module on the open document, no kernel; JupyterLab's own drawing in the thread's time), the kernel's (a whole `add_cell` in
nbclient, which has no browser), and both (a whole `add_cell` in JupyterLab). The first and the last 20 stand side by side,
with their ratio; of each the lower quartile, since a busy machine only ever adds. Exit code 1 if a ratio is above 2. Takes
about two minutes. Read `main`.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from playwright.async_api import CDPSession, async_playwright

from nbagent.esm import module
from nbagent.jupyter import channel
from tests.browser.desk import LOAD, environment
from tests.browser.lab import Lab, start_browser
from tests.browser.page import Notebook
from tests.conftest import isolate
from tests.failures.room import Room
from tests.support.messages_replies import Reply, call
from tests.support.messages_server import MessagesServer

CELLS, ADDED, AT_ONCE, ENDS = 500, 100, 10, 20
LIMIT = 2.0
TASK = "%%agent --again --max-turns 200\nAdd them."
SOURCE = "\n".join(f"# line {n} of a cell such as people write" for n in range(8))
PATIENCE = 300.0

BRIDGE = """
const url = URL.createObjectURL(new Blob([text], {type: 'text/javascript'}));
const bridge = (await import(url)).default;
let receive, page, number = 0;
const waiting = new Map();
const model = {widget_manager: {context: panel().context}, off() {}, on: (_, f) => (receive = f), send(message) {
  page = message.page;
  waiting.get(message.id)?.(message);
}};
bridge.initialize({model});
window.__ask = (op, more) => new Promise((done, fail) => {
  const id = `ask-${number++}`;
  waiting.set(id, (reply) => reply.ok ? done(reply.result) : fail(new Error(reply.error)));
  receive({v: 1, id, page, op, ...more});
});
"""
"""Our module on the open document, with us in the kernel's place."""

ADD_SOME = """
const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
const took = [];
for (let n = from; n < to; n++) {
  const cell = `new-${n}`, id = shared().cells.at(-1).getId();
  const begin = performance.now();
  await __ask('insert', {cell, cell_type: 'code', source: `x${n} = ${n}`, metadata: {}, anchor: {id, where: 'after'}});
  await __ask('begin', {cell, run: cell});
  const add = [{output_type: 'stream', name: 'stdout', text: `${n}\\n`}];
  await __ask('outputs', {cell, run: cell, seq: 0, patch: {base: 0, keep: 0, drop: 0, text: '', add}});
  await __ask('end', {cell, run: cell, seq: 1, count: 1, number: n});
  took.push((performance.now() - begin) / 1000);
  await frame();
}
await frame();
return took;
"""


def notebook() -> nbformat.NotebookNode:
    """A notebook of `CELLS` cells with outputs, cell 0 loads nbagent, the last one is the agent's."""
    made = nbformat.v4.new_notebook()
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    out = nbformat.v4.new_output("stream", text="something that was printed\n" * 5)
    cells = [nbformat.v4.new_code_cell(f"{SOURCE}\n{n}", outputs=[out], execution_count=n) for n in range(CELLS - 2)]
    made.cells = [nbformat.v4.new_code_cell(LOAD), *cells, nbformat.v4.new_code_cell(TASK)]
    return made


def replies() -> list[Reply]:
    """What the model says: `AT_ONCE` calls of add_cell in each reply, then that it is done."""
    asked = [call("add_cell", source=f"print({n})\nx{n} = {n}") for n in range(ADDED)]
    return [*(Reply(asked[n : n + AT_ONCE]) for n in range(0, ADDED, AT_ONCE)), Reply("Added.")]


def seconds(folder: Path) -> list[float]:
    """How long each call of the one session in `folder` took, as its log says."""
    [path] = (folder / ".nbagent" / "sessions").glob("*.jsonl")
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    ended = [r["event"] for r in records if r["type"] == "event" and r["event"]["type"] == "call_ended"]
    assert [e["status"] for e in ended] == ["ok"] * ADDED, ended[-1]
    return [e["seconds"] for e in ended]


async def in_kernel() -> list[float]:
    """Seconds of each added cell in a kernel whose page is nbclient."""
    folder = Path(tempfile.mkdtemp(prefix="nbagent-bench-"))
    with MessagesServer() as server:
        async with Room(folder, server, NBAGENT_MODE="bypass") as room:
            room.page.document.cells[:0] = notebook().cells[1:-1]
            shown = await room.cell(TASK, *replies(), within=PATIENCE)
            assert "Added." in shown.record, shown.seen
    return seconds(folder)


async def in_page(lab: Lab) -> tuple[list[float], list[float]]:
    """Of each cell added in the page alone: seconds of the operations, and of the page's thread for all that follows."""
    text = module(Path(channel.__file__).parent / "static", "bridge.js")
    operations: list[float] = []
    thread: list[float] = []
    async with lab.open(notebook()) as page:
        meter = await page.page.context.new_cdp_session(page.page)
        await meter.send("Performance.enable", {"timeDomain": "threadTicks"})  # other processes do not count
        await page.js(f"const text = {json.dumps(text)}; {BRIDGE}")
        for start in range(0, ADDED, AT_ONCE):
            before = await _worked(meter)
            operations += await page.js(f"const from = {start}, to = {start + AT_ONCE}; {ADD_SOME}")
            thread += [(await _worked(meter) - before) / AT_ONCE] * AT_ONCE
    return operations, thread


async def _worked(meter: CDPSession) -> float:
    metrics = (await meter.send("Performance.getMetrics"))["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


async def in_lab(lab: Lab) -> list[float]:
    """Seconds of each cell that an agent adds in JupyterLab."""
    with MessagesServer() as server:
        server.push(*replies())
        async with lab.open(notebook(), env=environment(server, NBAGENT_MODE="bypass")) as page:
            await page.run(0)
            await page.run(CELLS - 1, patience=PATIENCE)
            await _has_record(page)
    return seconds(lab.root)


async def _has_record(page: Notebook) -> None:
    record: Any = (await page.outputs(CELLS - 1))[0]
    assert "Added." in str(record["data"]), record


def row(name: str, took: Sequence[float]) -> tuple[str, float]:
    """One line of the table, and its ratio."""
    assert len(took) == ADDED, len(took)
    first, last = (statistics.quantiles(part, n=4)[0] for part in (took[:ENDS], took[-ENDS:]))
    return f"{name:<46} {first * 1000:>9.1f} {last * 1000:>9.1f} {last / first:>7.2f}", last / first


async def main() -> int:
    """Measure, print the table, and return the exit code."""
    home = Path(tempfile.mkdtemp(prefix="nbagent-bench-home-"))
    isolate(home)
    kernel = await in_kernel()
    async with async_playwright() as playwright:
        browser = await start_browser(playwright)
        lab = Lab(home, browser)
        lab.start()
        try:
            operations, thread = await in_page(lab)
            both = await in_lab(lab)
        finally:
            lab.stop()
            await browser.close()
    rows = [
        row("page: insert, begin, output, end", operations),
        row("page: its thread's whole work for a cell", thread),
        row("kernel: a whole add_cell, page in nbclient", kernel),
        row("both: a whole add_cell in JupyterLab", both),
    ]
    print(
        f"{CELLS} cells, {ADDED} added; ms, lower quartiles{'':<8} {f'first {ENDS}':>9} {f'last {ENDS}':>9} {'ratio':>7}"
    )
    print("\n".join(line for line, _ in rows))
    return int(any(ratio > LIMIT for _, ratio in rows))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
