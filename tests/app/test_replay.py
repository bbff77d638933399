"""A finished agent cell run again in a new kernel: free, equal, and honest about what has changed since."""

from __future__ import annotations

import copy
import json
import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from nbagent.headless.page import run_notebook
from tests.support.messages_server import MessagesServer, call, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
READ = "rows = open('sales.csv').read().splitlines()[1:]"
TASK = "%%agent\nHow many sales?"
ADDED = "total = sum(int(row) for row in rows)\nprint('total', total)"


@pytest.fixture
def server():
    with MessagesServer() as server:
        yield server
        server.assert_clean()


class Play:
    """A notebook in a folder with data; each `run` is a kernel of its own, as after Restart & Run All."""

    def __init__(self, folder: Path, server: MessagesServer, *cells: str, **env: str) -> None:
        self.folder, self.server = folder, server
        self.nb = new_notebook(cells=[new_code_cell(source) for source in ("%load_ext nbagent", *cells)])
        base = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk", "PYTHONPATH": str(ROOT)}
        self.env = {**base, "NBAGENT_MODE": "bypass", **env}
        (folder / "sales.csv").write_text("amount\n" + "".join(f"{n}\n" for n in range(5)))

    async def run(self, *replies: object, **env: str) -> list[dict]:
        """Run all cells in a new kernel; return the cells without execution counts and times."""
        self.server.push(*replies)
        env = {**self.env, **env}
        await run_notebook(self.nb, path=self.folder / "play.ipynb", env=env, kernel_name="python3", timeout=20)
        return self.plain()

    def plain(self) -> list[dict]:
        cells = copy.deepcopy(self.nb.cells)
        for cell in cells:
            cell.pop("execution_count", None)
            cell.metadata.pop("execution", None)
            for output in cell.get("outputs", ()):
                output.pop("execution_count", None)
        return json.loads(json.dumps(cells))

    def agent(self) -> nbformat.NotebookNode:
        return next(cell for cell in self.nb.cells if cell.source.startswith("%%agent"))

    def text(self) -> str:
        return "\n".join(o.get("data", {}).get("text/plain", "") for o in self.agent().outputs)


def finished() -> tuple[object, ...]:
    return (
        calls("run_python", code="print(len(rows))"),
        calls("add_cell", source=ADDED),
        "There are 5 sales; see the cell below.",
    )


async def test_restart_and_run_all_is_free_and_gives_the_same_notebook(tmp_path, server):
    play = Play(tmp_path, server, READ, TASK, "after = _")
    before = await play.run(*finished())
    print(play.text())
    asked = len(server.requests)
    assert await play.run() == before
    assert len(server.requests) == asked
