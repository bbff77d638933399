"""The harness itself: a notebook opens, runs, is saved, reloaded, interrupted and restarted, in both themes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser.lab import Lab


async def test_a_cell_runs_and_is_saved_with_its_output(lab: Lab) -> None:
    async with lab.open([("markdown", "# Sums"), "1 + 1", "print('hello')"]) as notebook:
        await notebook.run(1)
        await notebook.see(1, "2")
        await notebook.run(2)
        assert [await notebook.count(n) for n in (1, 2)] == [1, 2]
        assert await notebook.text(1) == "2"
        assert await notebook.text(2) == "hello\n"
        saved = await notebook.save()
        assert saved.cells[1].outputs[0].data["text/plain"] == "2"
        assert notebook.errors == []


async def test_kernels_get_the_environment_that_a_test_asks_for(lab: Lab) -> None:
    async with lab.open(["import os"], env={"ANTHROPIC_API_KEY": "test"}) as notebook:
        await notebook.run(0)
        assert await notebook.evaluate("os.environ['ANTHROPIC_API_KEY']") == "'test'"


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_theme_follows_the_tab(lab: Lab, theme: str) -> None:
    async with lab.open(["1"], theme=theme) as notebook:
        await notebook.until(f"document.body.dataset.jpThemeLight === '{str(theme == 'light').lower()}'")


async def test_a_running_cell_can_be_interrupted_and_the_kernel_restarted(lab: Lab) -> None:
    async with lab.open(["while True: pass", "x = 1", "x"]) as notebook:
        await notebook.start(0)
        await notebook.kernel_busy()
        await notebook.interrupt()
        await notebook.done(0)
        assert (await notebook.outputs(0))[0]["ename"] == "KeyboardInterrupt"
        await notebook.run(1)
        await notebook.restart()
        await notebook.run(2)
        assert (await notebook.outputs(2))[0]["ename"] == "NameError"


async def test_the_page_can_be_reloaded_and_opened_twice(lab: Lab) -> None:
    async with lab.open(["x = 41", "x + 1"]) as notebook:
        await notebook.run(0)
        await notebook.reload()
        other = await notebook.second_tab()
        await other.run(1)
        assert await other.text(1) == "42"
        assert await notebook.sources() == await other.sources() == ["x = 41", "x + 1"]


async def test_a_slow_task_in_the_page_is_seen(lab: Lab) -> None:
    async with lab.open(["1"]) as notebook:
        start = await notebook.now()
        await notebook.page.evaluate("new Promise(done => setTimeout(() => {"
                                     "const end = performance.now() + 300; while (performance.now() < end); done() }))")  # fmt: skip
        await notebook.until(f"window.__tasks.some(t => t.start >= {start} && t.ms >= 300)")


async def test_a_widget_button_is_clicked_by_its_name(lab: Lab) -> None:
    code = "import ipywidgets as w\nb = w.Button(description='Go')\nhits = []\nb.on_click(hits.append)\nb"
    async with lab.open([code]) as notebook:
        await notebook.run(0)
        await notebook.click(0, "Go")
        await notebook.kernel_idle()
        assert await notebook.evaluate("len(hits)") == "1"
        shot = await notebook.screenshot("harness")
        assert shot.stat().st_size > 10_000
