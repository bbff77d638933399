"""A finished agent cell run again, headless: free and equal where its inputs are the same, a sentence where they are not.

Each `Play.run` is a kernel of its own, as after Restart & Run All. `test_replay_person.py` has the person.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from nbagent.headless.page import run_notebook
from tests.support.messages_server import MessagesServer, Reply, call, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
DATA = "rows = [int(line) for line in open('sales.csv').read().split()[1:]]"
TASK = "%%agent --out answer\nHow many sales?"
ADDED = "total = sum(rows)\nprint('total', total)"


@pytest.fixture
def server():
    with MessagesServer() as server:
        yield server
        server.assert_clean()


def plain(nb: nbformat.NotebookNode) -> list[dict[str, Any]]:
    """The cells without execution counts and times."""
    cells = copy.deepcopy(nb.cells)
    for cell in cells:
        cell.pop("execution_count", None)
        for name in ("execution", "papermill", "tags", "trusted"):  # the last two: papermill adds and drops them
            cell.metadata.pop(name, None)
        for output in cell.get("outputs", ()):
            output.pop("execution_count", None)
    return json.loads(json.dumps(cells))


class Play:
    """A notebook in a folder with data, and the model that is played to it."""

    def __init__(self, folder: Path, server: MessagesServer, *cells: str) -> None:
        self.folder, self.server = folder, server
        self.nb = new_notebook(cells=[new_code_cell(source) for source in ("%load_ext nbagent", *cells)])
        base = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk", "PYTHONPATH": str(ROOT)}
        self.env = {**os.environ, **base, "NBAGENT_MODE": "bypass"}
        self.sales(1, 2, 3, 4)

    def sales(self, *amounts: int) -> None:
        (self.folder / "sales.csv").write_text("amount\n" + "".join(f"{n}\n" for n in amounts))

    async def run(self, *replies: Any, **env: str) -> list[dict[str, Any]]:
        """Run all cells in a new kernel with our page; return them without execution counts and times."""
        self.server.push(*replies)
        asked = len(self.server.requests)
        try:
            path = self.folder / "play.ipynb"
            await run_notebook(self.nb, path=path, env={**self.env, **env}, kernel_name="python3", timeout=30)
        finally:
            self.requests = len(self.server.requests) - asked
        return plain(self.nb)

    @property
    def agent(self) -> nbformat.NotebookNode:
        return next(cell for cell in self.nb.cells if cell.source.startswith("%%agent"))

    @property
    def seen(self) -> str:
        """The record of the agent's cell as plain text, and its error."""
        texts = [
            o.get("data", {}).get("text/plain", "") + "\n".join(o.get("traceback", ())) for o in self.agent.outputs
        ]
        return "\n".join(texts)

    def write(self) -> Path:
        path = self.folder / "in.ipynb"
        nbformat.write(self.nb, path)
        return path


DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LOOK = (
    "import base64, time\nfrom IPython.display import Image, display\nstarted = time.time()\n"
    f"print(len(rows), open('sales.csv').readline())\ndisplay(Image(base64.b64decode('{DOT}')))"
)
NOT_COMPARED = "Not compared when this cell is run again: the clock."
FINISHED = (
    calls("run_python", code=LOOK),
    Reply([call("add_cell", source=ADDED)], thinking="Let me *see* <b>."),
    "There are 4 sales; see the cell below: $x$ <script>.",
)


async def played(folder: Path, server: MessagesServer) -> Play:
    """A notebook whose agent cell has a finished run."""
    play = Play(folder, server, DATA, TASK)
    await play.run(*FINISHED)
    assert play.requests == 3 and "There are 4 sales" in play.seen
    return play


def sessions(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / ".nbagent" / "sessions").iterdir()}


async def test_restart_and_run_all_gives_the_same_notebook_and_asks_no_model(tmp_path, server):
    """And the answer is there for the cells below, and says where it is from; the session is as it was.

    The record of both says what can't be compared.
    """
    play = await played(tmp_path, server)
    before, session = plain(play.nb), sessions(tmp_path)
    assert "data:image/png" in play.agent.outputs[0].data["text/html"]
    play.nb.cells.append(
        new_code_cell("print(answer.replayed, answer.stop_reason, answer.text, answer.stale, answer.not_compared)")
    )
    assert NOT_COMPARED in play.seen
    after = await play.run(NBAGENT_MODE="default")  # nothing is executed for it, so no mode is needed
    assert after[:-1] == before
    assert play.requests == 0
    assert sessions(tmp_path) == session
    said = play.nb.cells[-1].outputs[0].text
    assert said.startswith("True end_turn There are 4 sales; see the cell below") and said.endswith(f"{NOT_COMPARED}\n")
    assert play.nb.cells[-2].outputs[0].text == "total 10\n"  # the cell that it added ran by itself


async def test_changed_data_fails_the_cell_with_what_changed_unless_told_otherwise(tmp_path, server):
    play = await played(tmp_path, server)
    play.sales(1, 2, 3, 4, 5)
    with pytest.raises(CellExecutionError):
        await play.run()
    assert play.requests == 0
    said = "STALE: rows changed: 4 items then, 5 now; sales.csv changed: 15 bytes then, 17 now. This is the answer of "
    error = play.agent.outputs[-1].traceback[0]
    assert error.startswith(f"nbagent: {said}") and "--stale show" in error and "--stale rerun" in error
    assert play.seen.startswith(said) and "There are 4 sales" in play.seen  # the record, under its banner
    assert "STALE: rows changed" in play.agent.outputs[0].data["text/html"].partition("<blockquote>")[0]

    play.nb.cells.append(new_code_cell("print(answer.stale)"))
    await play.run(NBAGENT_STALE="show")
    assert play.requests == 0 and play.seen.startswith(said)
    assert play.nb.cells[-1].outputs[0].text.startswith(said)

    await play.run(calls("run_python", code="print(len(rows))"), "There are 5 sales now.", NBAGENT_STALE="rerun")
    assert play.requests == 2 and play.seen.startswith("There are 5 sales now.") and "STALE" not in play.seen
    play.sales(1, 2, 3, 4)  # as it was: the older record counts again
    await play.run()
    assert play.requests == 0 and play.seen.startswith("There are 4 sales")


async def test_an_answer_read_from_the_cells_above_is_stale_when_their_output_or_text_has_changed(tmp_path, server):
    """The model was told what the cells above show and say: no variable and no file of the run tells."""
    play = Play(
        tmp_path,
        server,
        "print('total', sum(map(int, open('sales.csv').read().split()[1:])))",
        "%%agent\nWhat is the total?",
    )
    play.nb.cells.insert(1, new_markdown_cell("# Rules\n\nTotals are net."))
    await play.run("The total is 10.")
    again = await play.run()
    assert "The total is 10." in json.dumps(again)
    play.sales(100, 200)
    with pytest.raises(CellExecutionError, match=r"STALE: the output of In\[2\] above changed"):
        await play.run()
    play.sales(1, 2, 3, 4)
    await play.run()
    play.nb.cells[1].source = "# Rules\n\nTotals are gross."
    with pytest.raises(CellExecutionError, match="STALE: a text cell above was edited: # Rules"):
        await play.run()
    assert len(server.requests) == 1


async def test_without_our_page_every_cell_above_must_have_been_run_as_it_was(tmp_path, server):
    """Plain nbclient tells no cell's id and no source: the kernel's history does; and our page takes what it kept."""
    play = Play(tmp_path, server, DATA, TASK)

    async def execute(*replies: Any) -> None:
        server.push(*replies)
        client = NotebookClient(play.nb, timeout=30, resources={"metadata": {"path": str(tmp_path)}})
        await client.async_execute(env=play.env)

    await execute(calls("run_python", code="print(len(rows))"), "Four.")
    record, asked = play.agent.outputs[0].data, len(server.requests)
    await play.run()
    assert play.requests == 0 and play.agent.outputs[0].data == record
    play.nb.cells.insert(1, new_code_cell("# a cell more changes nothing that it read"))
    await execute()
    assert play.agent.outputs[0].data == record
    play.nb.cells[2].source += "\nrows = rows * 2"
    with pytest.raises(CellExecutionError, match="STALE: a cell above was not run here as it was then: rows = "):
        await execute()
    assert len(server.requests) == asked


async def test_papermill_and_nbconvert_run_a_finished_notebook_for_nothing(tmp_path, server):
    """From a copy in another file, as papermill makes it; with changed data it fails with the sentence."""
    play = await played(tmp_path, server)
    before, asked = plain(play.nb), len(server.requests)
    path = play.write()
    tools = {
        "out.ipynb": ["papermill", str(path), "out.ipynb", "--cwd", str(tmp_path), "-k", "python3"],
        "conv.ipynb": ["nbconvert", "--execute", "--to", "notebook", "--output", "conv.ipynb", str(path)],
    }

    def execute(out: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", *tools[out]]
        return subprocess.run(
            command, cwd=tmp_path, env=play.env, capture_output=True, text=True, timeout=90, check=False
        )

    for out in tools:
        done = execute(out)
        assert done.returncode == 0, done.stderr
        assert plain(nbformat.read(tmp_path / out, 4)) == before, out
    play.sales(9)
    done = execute("out.ipynb")
    assert done.returncode != 0 and "STALE: rows changed: 4 items then, 1 now" in done.stderr, done.stderr
    assert len(server.requests) == asked
