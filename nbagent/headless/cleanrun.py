"""Runs a notebook in a clean kernel of the Python that runs this, cell by cell, and goes on after errors. A program.

`python -P -m nbagent.headless.cleanrun JOB.json` in a process of its own, so that no loop of a kernel is held and all of it
can be killed. It says what it does in JSON lines on its standard output: the kernel's process, each cell as it begins and
ends. It must not know what the results are compared with. Read `clean_run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from nbagent.core.ports import WITHHELD
from nbagent.headless.offspring import adopt, descendants, end_all

SEEDING = """
import random as _nbagent_random, sys as _nbagent_sys
_nbagent_random.seed(0)
try:
    import numpy as _nbagent_numpy
    _nbagent_numpy.random.seed(0)
    del _nbagent_numpy
except Exception:
    pass
del _nbagent_random, _nbagent_sys
"""
"""What a run with a seed at the top begins with."""
_SAME_SETS = {"PYTHONHASHSEED": "0"}
LARGEST = 8_000_000
"""Characters of JSON of one cell's outputs that are told; more can't be compared."""
TOO_LARGE = {"output_type": "display_data", "data": {"text/plain": "too large"}, "metadata": {WITHHELD: True}}


class _ThisPython(KernelSpecManager):
    """Knows one kernel: ipykernel in the Python that runs this."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return the one kernel that there is."""
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name=kernel_name, language="python")


Say = Callable[..., None]


def own_output() -> Say:
    """Return what tells who started this program, by the standard output, which the kernel and what it starts do not get."""
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")  # a copy is not inherited
    os.dup2(2, 1)

    def say(**said: Any) -> None:
        told.write(json.dumps(said) + "\n")
        told.flush()

    return say


async def clean_run(job: dict[str, Any], say: Say) -> None:
    """Run the cells of a job: `cells` ([id, source] in order), `folder`, `timeout` (seconds a cell), `seed`.

    Each cell's end is told with its outputs in nbformat's form, and `problem`: timeout, died (`status` is the exit status of
    the kernel's process, minus the signal that killed it), exit (its code asked for the kernel's end). The kernel is gone when
    this returns.
    """
    cells = [nbformat.v4.new_code_cell(source, id=cell_id) for cell_id, source in job["cells"]]
    notebook = nbformat.v4.new_notebook(cells=cells)
    manager = AsyncKernelManager(kernel_name="nbagent-clean", kernel_spec_manager=_ThisPython())
    client = NotebookClient(
        notebook, km=manager, timeout=job["timeout"], allow_errors=True, resources={"metadata": {"path": job["folder"]}}
    )
    env = {**os.environ, **(_SAME_SETS if job["seed"] else {})}
    pid, started = None, list[Any]()
    try:
        async with client.async_setup_kernel(cleanup_kc=False, env=env):
            pid = getattr(manager.provisioner, "pid", None)
            say(kernel=pid)
            kernel: Any = client.kc
            if job["seed"]:
                await kernel.execute_interactive(SEEDING, silent=True, store_history=False, timeout=60)
            try:
                await _cells(client, notebook, say)
            finally:
                started = descendants(pid)
    finally:
        with contextlib.suppress(RuntimeError, OSError):
            await manager.shutdown_kernel(now=True)
        end_all([*started, *descendants(os.getpid())])


async def _cells(client: NotebookClient, notebook: Any, say: Say) -> None:
    process = getattr(getattr(client.km, "provisioner", None), "process", None)  # held: the provisioner lets go of it
    leaving: list[str] = []

    def replied(cell: Any, cell_index: int, execute_reply: Any) -> None:
        del cell_index
        asked = execute_reply["content"].get("payload") or ()
        leaving.extend(cell.id for one in asked if one.get("source") == "ask_exit" and not one.get("keepkernel"))

    client.on_cell_executed = replied
    for index, cell in enumerate(notebook.cells):
        say(begins=cell.id)
        began, problem, status = time.monotonic(), "", None
        try:
            await client.async_execute_cell(cell, index)
        except CellTimeoutError:
            problem = "timeout"
        except DeadKernelError:
            problem, status = "died", process.poll() if process is not None else None
        if leaving:
            problem = "exit"
        outputs = cell.outputs if len(json.dumps(cell.outputs)) <= LARGEST else [TOO_LARGE]
        say(ends=cell.id, seconds=round(time.monotonic() - began, 3), outputs=outputs, problem=problem, status=status)
        if problem:
            return


def main(path: str) -> None:
    """Perform the job in a file; a SIGTERM ends it early, with the kernel gone (nbclient sees to that)."""
    adopt()
    asyncio.run(clean_run(json.loads(Path(path).read_text("utf-8")), own_output()))


if __name__ == "__main__":
    main(sys.argv[1])
