"""`nbagent ask --notebook`: the agent works on the cells of a file, code runs in the asking process, the file has it all."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from nbagent.headless.file import FileNotebook
from tests.support.messages_server import MessagesServer, calls, say
from tests.tools.test_servers import Jupyter

pytestmark = pytest.mark.kernel

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server():
    with MessagesServer() as server:
        yield server
        server.assert_clean()


@pytest.fixture
def ask(tmp_path, server):
    def run(*arguments):
        runtime = tmp_path / "runtime"
        runtime.mkdir(exist_ok=True)
        env = {**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk", "PYTHONPATH": str(ROOT)}
        env |= {"JUPYTER_RUNTIME_DIR": str(runtime), "COLUMNS": "200"}
        command = [sys.executable, "-m", "nbagent", "ask", *arguments]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    return run


def notebook(path, *sources):
    cells = [
        {"cell_type": "code", "execution_count": None, "metadata": {"tags": ["t"]}, "outputs": [], "source": [s]}
        for s in sources
    ]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=2) + "\n")
    return path


def test_cells_of_the_file_are_read_edited_added_and_run(tmp_path, server, ask):
    path = notebook(tmp_path / "n.ipynb", "a = 1", "b = 2")
    server.push(calls("read_notebook"))

    first, _ = asyncio.run(FileNotebook(path).cells())  # ids that the next reader makes up too
    server.push(calls("edit_cell", cell=first.id, source="a = 20", run=True))
    server.push(calls("add_cell", source="print(a + 1)"))
    server.push(say("It is 21."))
    ended = ask("--notebook", "n.ipynb", "--mode", "bypass", "Make a twenty and say one more.")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    raw = json.loads(path.read_text())
    nbformat.validate(raw)
    assert [cell["source"] for cell in raw["cells"]] == [["a = 20"], ["b = 2"], ["print(a + 1)"]]
    assert raw["cells"][2]["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["21\n"]}]
    assert raw["cells"][0]["metadata"]["tags"] == ["t"]
    assert raw["cells"][1] == {**raw["cells"][1], "metadata": {"tags": ["t"]}, "execution_count": None, "outputs": []}
    assert not any("id" in cell for cell in raw["cells"])
    assert "n.ipynb" in json.dumps(server.requests[0].body["messages"])  # the model is told which notebook it is


def test_a_notebook_that_can_not_be_taken_is_one_sentence(tmp_path, server, ask):
    (tmp_path / "broken.ipynb").write_text("{")
    with Jupyter(tmp_path, ["open.ipynb"]) as jupyter:
        (tmp_path / "runtime").mkdir()
        jupyter.says_so(tmp_path / "runtime")
        notebook(tmp_path / "open.ipynb", "x")
        for name, words in (
            ("broken.ipynb", "is not JSON"),
            ("open.ipynb", f"is open in Jupyter ({jupyter.url})"),
        ):
            ended = ask("--notebook", name, "go")
            assert ended.returncode == 1
            assert words in ended.stderr
            assert "Traceback" not in ended.stderr
    assert server.requests == []
