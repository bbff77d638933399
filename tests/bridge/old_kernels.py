"""Try the bridge by hand on other versions of ipykernel (CI runs the newest; this is no test).

    python -m tests.bridge.old_kernels /root/venvs/ipk-6.31.0/bin/python …

Each Python must be able to import ipykernel, ipywidgets, anywidget and jupyter_ui_poll. For each: the port's promises
through the page in nbclient, the same without a subshell (a front end that opens none), and that cells that were queued
behind a cell with a pump run after it, in order.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

from jupyter_client.manager import start_new_async_kernel
from nbformat.v4 import new_code_cell, new_notebook

from nbagent.headless.page import PageClient
from tests.conformance.test_nbclient_host import KEEP_ALL, ROOT

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
QUEUED = (FIRST, "log.append(2)", "log.append(3)")


class WithoutSubshell(PageClient):
    async def _open_subshell(self) -> None: ...


async def promises(client_class: type[PageClient], name: str) -> str:
    notebook = new_notebook(cells=[new_code_cell(KEEP_ALL, id="agent")])
    client = client_class(notebook, kernel_name=name, timeout=90)
    await client.async_execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    agent = next(cell for cell in notebook.cells if cell.id == "agent")
    broken = [key for key, why in json.loads(agent.outputs[-1].text).items() if why]
    return f"broken: {broken}" if broken else "kept"


async def order(name: str) -> str:
    manager, client = await start_new_async_kernel(kernel_name=name, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        for code in QUEUED:
            client.execute(code)
        reply = await client.execute_interactive(
            "", user_expressions={"log": "log"}, output_hook=lambda _: None, timeout=60
        )
        return reply["content"]["user_expressions"]["log"]["data"]["text/plain"]
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


async def try_all(name: str, python: str) -> None:
    for what, tried in (
        ("promises", promises(PageClient, name)),
        ("promises without a subshell", promises(WithoutSubshell, name)),
        ("order of queued cells", order(name)),
    ):
        print(f"{python}: {what}: {await tried}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JUPYTER_PATH"] = folder
        for number, python in enumerate(sys.argv[1:]):
            name = f"old-{number}"
            spec = Path(folder, "kernels", name, "kernel.json")
            spec.parent.mkdir(parents=True)
            argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            spec.write_text(json.dumps({"argv": argv, "display_name": name, "language": "python"}))
            asyncio.run(try_all(name, python))


if __name__ == "__main__":
    main()
