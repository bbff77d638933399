"""Row 67: a notebook that runs where nobody can click ends in bounded time with a clear text, whatever runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from tests.support.messages_server import MessagesServer, call, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server():
    with MessagesServer() as server:
        yield server
        server.assert_clean()


def environment(server, **more):
    return {**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk", "PYTHONPATH": str(ROOT), **more}


def notebook(*cells):
    return new_notebook(cells=[new_code_cell(source) for source in ("%load_ext nbagent", *cells)])


def record(cell):
    return "".join(o.get("data", {}).get("text/plain", "") for o in cell.outputs)


async def test_plain_nbclient_without_our_page_ends_with_the_denial_in_the_record(tmp_path, server):
    """No page answers: calls that would ask are denied with words, the model goes on, and nothing waits."""
    server.push(
        calls("run_python", code="open('made', 'w')"),
        calls("ask_user", questions=[{"question": "Which?"}]),
        "I was not allowed to.",
    )
    nb = notebook("%%agent\ngo", "print('after', _.stop_reason)")
    await NotebookClient(nb, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).async_execute(
        env=environment(server)
    )
    assert "I was not allowed to." in record(nb.cells[1])
    blocks = [block for message in server.requests[-1].body["messages"] for block in message["content"]]
    results = [block["content"][0]["text"] for block in blocks if block["type"] == "tool_result"]
    assert "Nobody is there" in results[0] and "Nobody can answer" in results[1]
    assert nb.cells[2].outputs[0].text == "after end_turn\n"
    assert not (tmp_path / "made").exists()


async def test_a_wider_mode_asked_for_by_the_cell_alone_fails_the_cell_with_the_way_to_set_it(tmp_path, server):
    nb = notebook("%%agent --mode bypass\ngo")
    client = NotebookClient(nb, timeout=60, resources={"metadata": {"path": str(tmp_path)}})
    with pytest.raises(CellExecutionError, match="needs a person's yes"):
        await client.async_execute(env=environment(server))
    assert "NBAGENT_MODE=bypass" in nb.cells[1].outputs[-1].traceback[0]
    assert len(nb.cells[1].outputs[-1].traceback) == 1


def test_nbconvert_execute_ends_and_the_html_holds_the_record(tmp_path, server):
    """The same with `jupyter nbconvert --execute`, which also turns the record into a page without a dead widget."""
    server.push(calls("run_python", code="1"), "The answer in words.")
    path = tmp_path / "in.ipynb"
    nbformat.write(notebook("%%agent\ngo"), path)
    command = [sys.executable, "-m", "nbconvert", "--execute", "--to", "html", "--output", "out.html", str(path)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(server), capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "out.html").read_text("utf-8")
    assert "The answer in words." in html
    assert '<script type="application/vnd.jupyter.widget-view+json">' not in html, (
        "no view is left in place of the record"
    )


def test_nbagent_run_lets_rules_from_outside_decide(tmp_path, server):
    """The setting for CI: --allow makes the same notebook do its work; a run that can't finish gives exit code 1."""
    server.push(calls("add_cell", source="made = 6 * 7\nmade"), "It is 42.")
    path, out = tmp_path / "in.ipynb", tmp_path / "out.ipynb"
    nbformat.write(notebook("%%agent\ngo", "made"), path)
    command = [sys.executable, "-m", "nbagent", "run", str(path), "-o", str(out), "--mode", "dont-ask"]
    given = {"cwd": tmp_path, "env": environment(server), "capture_output": True, "text": True, "timeout": 90}
    done = subprocess.run([*command, "--allow", "add_cell"], check=False, **given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "It is 42." in done.stdout
    cells = nbformat.read(out, as_version=4).cells
    assert [c.source for c in cells][2] == "made = 6 * 7\nmade"
    assert cells[2].outputs[0].data["text/plain"] == cells[3].outputs[0].data["text/plain"] == "42"
    server.push([call("add_cell", source="made = 1")], "I could not.")
    done = subprocess.run(command, check=False, **given)
    assert done.returncode == 1, done.stdout
    assert "NameError" in done.stderr + done.stdout and "Traceback" not in done.stderr
