"""Kernels that hold messages back until a cell ends, and front ends that open no subshell: the pump delivers them.

On ipykernel 7.4 there is nothing to pump and the same must hold; `make test-places` runs this on the older ones.
"""

from __future__ import annotations

import asyncio
import json
import os

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from nbagent.headless.page import PageClient
from tests.conformance.test_nbclient_host import KEEP_ALL, ROOT
from tests.places.front_end import FrontEnd, kernel
from tests.support.messages_server import MessagesServer

pytestmark = [pytest.mark.kernel, pytest.mark.places, pytest.mark.timeout(180)]

FIRST = """
import asyncio
from contextlib import nullcontext
from nbagent.jupyter.pump import can_pump, pumping
ip, log = get_ipython(), []
async with pumping(ip) if can_pump(ip.kernel) else nullcontext():
    for n in range(5):
        ip.run_cell("1;")
        await asyncio.sleep(0.1)
    log.append(1)
"""


class WithoutSubshell(PageClient):
    """A front end as VS Code's: its comm messages go to the main shell."""

    async def _open_subshell(self) -> None: ...


async def test_the_live_notebook_keeps_its_promises_to_a_front_end_that_opens_no_subshell(tmp_path):
    notebook = new_notebook(cells=[new_code_cell(KEEP_ALL, id="agent")])
    client = WithoutSubshell(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    await client.async_execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    agent = next(cell for cell in notebook.cells if cell.id == "agent")
    broken = {name: why for name, why in json.loads(agent.outputs[-1].text).items() if why}
    assert not broken, "\n".join(f"{name}\n{why}" for name, why in broken.items())


async def test_cells_that_were_queued_behind_a_pumped_cell_run_after_it_in_order_and_each_ends(tmp_path):
    with MessagesServer() as server:
        async with kernel(tmp_path, server) as manager, FrontEnd(manager) as front:
            cells = [asyncio.create_task(front.cell(code)) for code in (FIRST, "log.append(2)", "log.append(3)")]
            assert [(await cell).error for cell in cells] == ["", "", ""]
            assert await front.value("log") == "[1, 2, 3]"
        server.assert_clean()
