"""How far running code is, from what it prints: tqdm, rich, plain lines; and what says nothing."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import ipywidgets
import pytest
from rich.console import Console
from rich.progress import Progress as RichBar
from tqdm import tqdm

from nbagent.core.ports import Cell
from nbagent.tools.cells import overview
from nbagent.tools.progress import Saying, Watch, of_text, of_widget, watched
from nbagent.tools.times import RunTimes


def test_a_bar_of_tqdm_is_read() -> None:
    shown = io.StringIO()
    bar = tqdm(total=200, desc="Load", file=shown, mininterval=0)
    bar.update(84)
    bar.refresh()
    found = of_text(shown.getvalue())
    bar.close()
    assert found is not None
    assert (found.name, found.percent) == ("Load", 42)
    assert found.left is not None


def test_a_bar_of_rich_is_read() -> None:
    shown = io.StringIO()
    with RichBar(console=Console(file=shown, force_terminal=True, width=100), auto_refresh=False) as bar:
        bar.update(bar.add_task("Fit", total=8), completed=2)
        bar.refresh()
        found = of_text(shown.getvalue())
    assert found is not None
    assert (found.name, found.percent) == ("Fit", 25)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("step\rEpoch 3/10 loss 0.4", "Epoch 30 %"),
        (" 42%|████▏     | 42/100 [00:09<00:12,  4.6it/s]", "42 %, 12 s left"),
        ("Download: 10%|█ | 1/10 [01:00<1:02:03, 2s/it]\nother line\n", "Download 10 %, 1 h 2 min left"),
        ("done 100%\n", "done 100 %"),
        ("[Parallel(n_jobs=1)]: Done  42 out of 100 | elapsed:    1.2s\n", "42 %"),
        ("\r 3/10 ━━━━━━━━━━━━━━━━━━━━ 0s 4ms/step - loss: 0.3", "30 %"),
    ],
)
def test_lines_that_tell_how_far_it_is_are_read(printed: str, said: str) -> None:
    found = of_text(printed)
    assert found is not None
    assert found.text() == said


@pytest.mark.parametrize(
    "printed", ["", "mean 3.5\n", "2024/01/02 10:00 ok", "ratio 1/0", "accuracy 250 %", "x" * 9000]
)
def test_other_output_tells_no_progress(printed: str) -> None:
    assert of_text(printed) is None


def test_a_bar_that_is_a_widget_is_read_by_its_id() -> None:
    bar = ipywidgets.IntProgress(value=30, min=0, max=40)
    box = ipywidgets.HBox([ipywidgets.HTML("Load:  75%"), bar, ipywidgets.HTML(" 30/40 [00:03&lt;00:01]")])
    found = of_widget({"application/vnd.jupyter.widget-view+json": {"model_id": box.model_id}})
    assert found is not None
    assert (found.name, found.percent) == ("Load", 75)
    assert of_widget({"application/vnd.jupyter.widget-view+json": {"model_id": "gone"}}) is None


def test_a_watch_hands_on_every_output_and_says_time_and_progress() -> None:
    taken: list[Any] = []
    now = [0.0]
    watch = Watch(taken.append, lambda: now[0])
    watch.emit({"output_type": "stream", "name": "stdout", "text": "reading\n"})
    now[0] = 75.0
    assert watch.text() == "runs for 1 min 15 s · last output: reading"
    watch.emit({"output_type": "stream", "name": "stderr", "text": "\r50%|█████     | 1/2 [01:15<01:15]"})
    assert watch.text() == "runs for 1 min 15 s · 50 %, 1 min 15 s left"
    assert len(taken) == 2


@pytest.mark.slow
async def test_what_code_awaits_is_told_each_second_until_it_ends() -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    async with watched(lambda _: None, Saying(told.put_nowait)) as watch:
        watch.emit({"output_type": "stream", "name": "stdout", "text": "\r 3/4 |###"})
        said = await asyncio.wait_for(told.get(), 10)
    assert said.endswith("75 %")
    assert told.empty()


def test_a_listing_tells_how_long_slow_cells_took() -> None:
    times = RunTimes()
    cell = Cell("a", "code", "fit()", 0, number=3)
    times.took("a", 250.0)
    assert "1. a code In[3] (last took 4 min 10 s)" in overview([cell], total=1, own=None, took=times.told)[0]
    times.took("a", 0.2)
    assert "last took" not in overview([cell], total=1, own=None, took=times.told)[0]
