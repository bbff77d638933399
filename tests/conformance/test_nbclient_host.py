"""The live notebook keeps every promise of its port: from inside a real kernel, over a real comm, to the page in nbclient."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from nbagent.headless.page import run_notebook
from tests.conformance.notebook_kit import promise_name, promises

pytestmark = pytest.mark.kernel

ROOT = Path(__file__).parents[2]

KEEP_ALL = """
import json, traceback
from nbagent.jupyter.bridge import Bridge
from nbagent.jupyter.front_end import reach, running_cell
from nbagent.jupyter.notebook import LiveNotebook
from tests.conformance.notebook_kit import NotebookHost, promise_name, promises

bridge = Bridge(cell=running_cell(get_ipython()))
broken = {}
async with reach(bridge, get_ipython()) as hello:
    live = LiveNotebook(bridge, hello)

    async def user_edit(cell_id, source):  # straight to the page, past the port
        await bridge.call("edit", cell=cell_id, source=source, expected=(await live.read(cell_id)).source)

    for promise in promises():
        try:
            await promise(NotebookHost(live, user_edit))
            broken[promise_name(promise)] = None
        except Exception:
            broken[promise_name(promise)] = traceback.format_exc()
bridge.close()
print(json.dumps(broken))
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    import asyncio

    folder = tmp_path_factory.mktemp("host")
    notebook = new_notebook(cells=[new_code_cell(KEEP_ALL, id="agent")])
    work = run_notebook(
        notebook, path=folder / "in.ipynb", save_to=folder / "out.ipynb", env={"PYTHONPATH": str(ROOT)}, timeout=60
    )
    asyncio.run(work)
    nbformat.validate(nbformat.read(folder / "out.ipynb", as_version=4))
    return notebook


@pytest.mark.parametrize("promise", promises(), ids=promise_name)
def test_the_live_notebook_keeps_the_promise(promise, ran) -> None:
    agent = next(cell for cell in ran.cells if cell.id == "agent")
    said = json.loads(agent.outputs[0].text)
    assert said[promise_name(promise)] is None, said[promise_name(promise)]


def test_the_cells_are_in_the_notebook_afterwards_and_it_is_valid(ran) -> None:
    nbformat.validate(ran)
    assert len(ran.cells) > len(promises())
