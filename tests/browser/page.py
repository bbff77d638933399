"""A notebook in a JupyterLab tab as a person sees it: what they can do there (run, click, type, save, reload) and see.

Nothing here sleeps: each wait names what it waits for and is bounded by `PATIENCE`. This module knows nothing of
nbagent, so that it can't agree with it by mistake. Read `Notebook` first.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import nbformat

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Locator, Page

    from tests.browser.lab import Lab

SLOWER = float(os.environ.get("SLOWER", "1"))
"""How many times slower this machine may be than one with two cores of its own (SLOWER=5 make test-browser)."""

PATIENCE = 60.0 * SLOWER
"""Seconds after which something that was awaited is taken as not going to happen."""

BUILD = Path(__file__).parents[2] / "build"
SCREENSHOTS = BUILD / "screenshots"
FAILURES = BUILD / "failures"

ON_EVERY_PAGE = """
window.__tasks = [];
window.__scripts = [];
new PerformanceObserver(list => {
  for (const e of list.getEntries()) window.__tasks.push({start: e.startTime, ms: e.duration});
}).observe({type: 'longtask', buffered: true});
if (PerformanceObserver.supportedEntryTypes.includes('long-animation-frame')) {
  new PerformanceObserver(list => {
    for (const e of list.getEntries()) for (const s of e.scripts)
      window.__scripts.push({start: s.startTime, ms: s.duration, source: s.sourceURL, invoker: s.invoker});
  }).observe({type: 'long-animation-frame', buffered: true});
}
"""

# How the tests reach the notebook that JupyterLab shows: its panel, as an extension would.
PANEL = """
const panel = () => [...window.jupyterapp.shell.widgets('main')].find(w => w.context?.path === name);
const content = () => panel().content;
const shared = () => panel().context.model.sharedModel;
"""


class Notebook:
    """One notebook in one tab: what a person does there and sees there. Cells are numbered from 0 as they stand."""

    page: Page

    def __init__(
        self,
        lab: Lab,
        context: BrowserContext,
        name: str,
        theme: Literal["light", "dark"],
        viewport: tuple[int, int],
        tabs: list[Notebook],
    ) -> None:
        self.lab = lab
        self.name = name
        self.path = lab.root / name
        self.errors: list[str] = []
        """Errors that nobody caught in the page, with their stacks."""
        self.console: list[str] = []
        """What the page wrote to its console as errors."""
        self._context = context
        self._theme: Literal["light", "dark"] = theme
        self._viewport = viewport
        self._tabs = tabs

    async def visit(self, *, kernel: bool = True) -> None:
        """Open the notebook in a tab; return when its cells are there and (if asked) its kernel is idle."""
        page = self.page = await self._context.new_page()
        self._tabs.append(self)
        page.set_default_timeout(PATIENCE * 1000)
        page.on("pageerror", lambda error: self.errors.append(f"{error.message}\n{error.stack}"))
        page.on("console", lambda line: self.console.append(line.text) if line.type == "error" else None)
        await page.emulate_media(color_scheme=self._theme)
        await page.set_viewport_size({"width": self._viewport[0], "height": self._viewport[1]})
        await page.add_init_script(ON_EVERY_PAGE)
        await page.goto(self.lab.address(self.name))
        await self._loaded(kernel=kernel)

    async def reload(self, *, kernel: bool = True) -> None:
        """Reload the page, as by F5."""
        await self.page.reload()
        await self._loaded(kernel=kernel)

    async def _loaded(self, *, kernel: bool) -> None:
        await self.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        await self.until("panel()?.context?.isReady")
        if kernel:
            await self.kernel_idle()

    async def second_tab(self) -> Notebook:
        """Open the same notebook in a second tab of the same browser."""
        other = Notebook(self.lab, self._context, self.name, self._theme, self._viewport, self._tabs)
        await other.visit(kernel=False)  # it may be busy, but it must be known: else running a cell asks for one
        await other.until("panel()?.sessionContext?.isReady && panel().sessionContext.session?.kernel != null")
        return other

    def check_own_errors(self) -> None:
        """Fail on an error that nobody caught in a widget's module (those are served from blob: addresses)."""
        own = [error for error in self.errors if "blob:" in error]
        assert not own, "uncaught in the page:\n" + "\n".join(own)

    # what a person does

    async def activate(self, cell: int) -> None:
        """Select a cell in command mode and scroll it into view."""
        await self.js(f"content().activeCellIndex = {cell}; content().mode = 'command'; content().activate()")
        await self.js(f"return content().scrollToItem({cell}, 'smart')")

    async def enter(self, cell: int) -> None:
        """Put the cursor into a cell, as by Enter: what is typed from now on goes there and is no command."""
        await self.activate(cell)
        await self.press("Enter")
        await self.typing(cell)

    async def typing(self, cell: int) -> None:
        """Return when the cursor is in a cell."""
        await self.until(f"content().widgets[{cell}]?.editor?.hasFocus()")

    async def start(self, cell: int) -> None:
        """Run a cell and return as soon as it runs or is queued."""
        await self.activate(cell)
        await self.js("window.jupyterapp.commands.execute('notebook:run-cell')")

    async def run(self, cell: int, *, patience: float = PATIENCE) -> None:
        """Run a cell and return when it is done."""
        await self.activate(cell)
        async with asyncio.timeout(patience):
            await self.js("return window.jupyterapp.commands.execute('notebook:run-cell')")

    async def run_all(self, *, patience: float = PATIENCE) -> None:
        """Run all cells and return when they are done."""
        async with asyncio.timeout(patience):
            await self.js("return window.jupyterapp.commands.execute('notebook:run-all-cells')")

    async def write(self, cell: int, source: str) -> None:
        """Replace a cell's source, as by typing."""
        await self.js(f"shared().getCell({cell}).setSource({json.dumps(source)})")

    async def add(self, source: str) -> int:
        """Append a code cell; return its number."""
        value = json.dumps({"cell_type": "code", "source": source, "metadata": {"trusted": True}})
        return await self.js(f"shared().insertCell(shared().cells.length, {value}); return shared().cells.length - 1")

    async def click(self, cell: int, button: str) -> None:
        """Click the button of that name in a cell's output."""
        await self.button(cell, button).click()

    async def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        for key in keys:
            await self.page.keyboard.press(key)

    async def save(self) -> nbformat.NotebookNode:
        """Save the notebook and return what is in its file, valid."""
        await self.js("return panel().context.save()")
        return self.saved()

    async def interrupt(self) -> None:
        """Interrupt the kernel, as by JupyterLab's own stop button."""
        await self.js("return window.jupyterapp.commands.execute('notebook:interrupt-kernel')")

    async def restart(self) -> None:
        """Restart the kernel, as by Restart Kernel and its confirmation."""
        await self.js("return panel().sessionContext.restartKernel()")
        await self.kernel_idle()

    # what a person sees

    def cell(self, cell: int) -> Locator:
        """The cell as it is drawn."""
        return self.page.locator(f'.jp-Notebook .jp-Cell[data-windowed-list-index="{cell}"]')

    def output(self, cell: int) -> Locator:
        """The drawn outputs of a cell."""
        return self.cell(cell).locator(".jp-Cell-outputArea")

    def button(self, cell: int, name: str) -> Locator:
        """The button of that exact name in a cell's output."""
        return self.output(cell).get_by_role("button", name=name, exact=True)

    async def see(self, cell: int, text: str, *, patience: float = PATIENCE) -> None:
        """Return when `text` is to be seen in a cell's output."""
        await self.output(cell).get_by_text(text).first.wait_for(timeout=patience * 1000)

    async def done(self, cell: int, *, patience: float = PATIENCE) -> None:
        """Return when a started cell is done: it has a number, and the kernel is idle."""
        await self.until(f"shared().getCell({cell}).execution_count != null", patience=patience)
        await self.kernel_idle(patience=patience)

    async def kernel_idle(self, *, patience: float = PATIENCE) -> None:
        """Return when the kernel waits for work."""
        await self.until("panel()?.sessionContext?.session?.kernel?.status === 'idle'", patience=patience)

    async def kernel_busy(self, *, patience: float = PATIENCE) -> None:
        """Return when the kernel works."""
        await self.until("panel().sessionContext.session?.kernel?.status === 'busy'", patience=patience)

    async def sources(self) -> list[str]:
        """The sources of all cells, in order."""
        return await self.js("return shared().cells.map(c => c.getSource())")

    async def count(self, cell: int) -> int | None:
        """The execution count of a cell: what stands in its In[…]; None before it ran."""
        return await self.js(f"return shared().getCell({cell}).execution_count ?? null")

    async def outputs(self, cell: int) -> list[dict[str, Any]]:
        """The outputs of a cell as they are in the document (nbformat)."""
        found: list[dict[str, Any]] = await self.js(f"return shared().getCell({cell}).toJSON().outputs ?? []")
        return found

    async def text(self, cell: int) -> str:
        """The text of a cell's outputs: streams, text/plain of results, and tracebacks' last lines."""
        parts: list[str] = []
        for output in await self.outputs(cell):
            value = output.get("text") or output.get("data", {}).get("text/plain") or output.get("evalue", "")
            parts.append(value if isinstance(value, str) else "".join(value))
        return "".join(parts)

    async def evaluate(self, expression: str) -> str:
        """The repr of an expression in the kernel, asked without a cell and without history."""
        code = json.dumps({"code": "", "silent": True, "store_history": False, "user_expressions": {"v": expression}})
        async with asyncio.timeout(PATIENCE):  # it waits behind a running cell
            reply = await self.js(
                f"return panel().sessionContext.session.kernel.requestExecute({code}).done.then(r => r.content)"
            )
        value = reply["user_expressions"]["v"]
        assert value["status"] == "ok", value
        text: str = value["data"]["text/plain"]
        return text

    def saved(self) -> nbformat.NotebookNode:
        """What is in the notebook's file now; fails if that is not a valid notebook."""
        notebook = nbformat.read(self.path, as_version=4)
        nbformat.validate(notebook)
        return notebook

    async def long_tasks(self) -> list[dict[str, float]]:
        """Tasks of the browser that took over 50 ms since the page was loaded: `start` and `ms`."""
        found: list[dict[str, float]] = await self.page.evaluate("window.__tasks")
        return found

    async def slow_scripts(self) -> list[dict[str, Any]]:
        """Scripts in frames that took over 50 ms, with `source` (a widget's module is a blob:), `start` and `ms`."""
        found: list[dict[str, Any]] = await self.page.evaluate("window.__scripts")
        return found

    async def now(self) -> float:
        """The page's clock, in ms, on which `start` of tasks and scripts is given."""
        return await self.page.evaluate("performance.now()")

    async def screenshot(self, name: str) -> Path:
        """Write what the tab shows to build/screenshots/NAME.png."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        await self.page.screenshot(path=path)
        return path

    # how it is done

    async def keep_failure(self) -> None:
        """Write what every tab shows, and what the consoles and the server said, to build/failures/."""
        test = re.sub(r"\W+", "-", os.environ.get("PYTEST_CURRENT_TEST", self.name).split("::")[-1].rpartition(" ")[0])
        FAILURES.mkdir(parents=True, exist_ok=True)
        said = [f"{index}: {line}" for index, tab in enumerate(self._tabs) for line in (*tab.errors, *tab.console)]
        (FAILURES / f"{test}.log").write_text("\n".join([*said, "", self.lab.server_log(400)]), encoding="utf-8")
        for index, tab in enumerate(self._tabs):
            if tab.page.is_closed():  # by the test: it shows nothing, and an error here would hide the test's own
                continue
            await tab.page.screenshot(path=FAILURES / f"{test}-tab{index}.png")

    async def js(self, body: str) -> Any:
        """Run JavaScript in the page with `panel()`, `content()` and `shared()` at hand; return what it returns."""
        return await self.page.evaluate(f"(async () => {{ const name = {json.dumps(self.name)}; {PANEL} {body} }})()")

    async def until(self, condition: str, *, patience: float = PATIENCE) -> None:
        """Return when a JavaScript condition holds in the page; fail after `patience` seconds."""
        script = f"(() => {{ const name = {json.dumps(self.name)}; {PANEL} return {condition}; }})()"
        await self.page.wait_for_function(script, timeout=patience * 1000)
