"""Where nobody can be asked (papermill, nbconvert, any client without input): nothing waits, the policy decides.

A refused call fails the cell, with one clear sentence, only if the run could not finish. Row 67.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.places.front_end import front_end
from tests.support.messages_server import MessagesServer, Reply, call, calls

pytestmark = [pytest.mark.kernel, pytest.mark.places, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
HOLDS = "holds = 'a file is there'"


def results(server):
    """The text of all results that the model got."""
    blocks = [b for m in server.requests[-1].body["messages"] if m["role"] == "user" for b in m["content"]]
    return ["\n".join(c["text"] for c in b["content"]) for b in blocks if b["type"] == "tool_result"]


async def test_a_refused_call_can_be_allowed_for_the_next_run_by_who_has_read_its_code_and_by_nobody_else(tmp_path):
    """Row 27: the typed fallback that needs neither widgets nor input(). Row 111: a notebook can't allow by itself."""
    with MessagesServer() as server:
        async with front_end(tmp_path, server) as client:
            for early in ("%agent allow", "%agent allow 1", "%agent allow 1 0000", "%agent deny"):
                assert "No question is open" in (await client.cell(early)).text
            server.push(calls("run_python", code=HOLDS), calls("run_python", code="40 + 2"), "I was not allowed to.")
            cell = await client.cell("%%agent\ngo")
            assert cell.reply["status"] == "ok", "the run could finish, so the cell does not fail"
            assert not cell.alive
            assert ["Nobody is there" in text for text in results(server)] == [True, True]
            [one, two] = re.findall(r"%agent allow \d \w+", cell.text)
            assert one[:-4] == "%agent allow 1 " and two[:-4] == "%agent allow 2 "

            guess = await client.cell("%agent allow 2 0000x")
            assert "is not the code of call 2" in guess.error and two in guess.error
            assert "to allow exactly this" in (await client.cell("%agent allow 2")).text
            kept = await client.cell(two)
            assert "Allowed, exactly as it was" in kept.text and "Run the agent's cell again" in kept.text

            server.push(
                calls("run_python", code="40 + 2"),
                calls("run_python", code="40 + 3"),
                calls("run_python", code=HOLDS),
                "42.",
            )
            cell = await client.cell("%%agent --new\ngo")
            assert ["42" in text for text in results(server)] == [True, False, False], "exactly that, in any session"
            assert "has since allowed" in str(server.requests[-1].body["messages"][0])

            for _ in range(3):
                await client.cell("%agent allow 1 zzzz")
            [one, *_] = re.findall(r"%agent allow \d \w+", cell.text)
            assert "No question is open" in (await client.cell(one)).text, "who guesses can allow nothing any more"

            server.push(calls("run_python", code=HOLDS), "No.")
            await client.cell("%%agent --new\nonce more")
            assert "The model is told" in (await client.cell("%agent deny look at the folder instead")).text
            server.push("I will.")
            await client.cell("%%agent\nand then")
            assert "look at the folder instead" in str(server.requests[-1].body["messages"][-1])
        server.assert_clean()


async def test_a_run_that_could_not_finish_fails_its_cell_with_one_sentence(tmp_path):
    with MessagesServer() as server:
        async with front_end(tmp_path, server) as client:
            server.push(calls("run_python", code="1"), "It is all left.")
            cell = await client.cell("%%agent --max-turns 1\ngo")
            assert cell.reply["status"] == "error"
            assert cell.error.count("\n") == 0 and "limit of 1 turn" in cell.error
            assert not cell.alive
        server.assert_clean()


async def test_commands_that_look_at_the_notebook_say_that_they_can_not_and_the_job_goes_on(tmp_path):
    with MessagesServer() as server:
        async with front_end(tmp_path, server) as client:
            for line, said in (
                ("verify", "Not verified: a job such as papermill"),
                ("tidy", "Nothing was tidied: a job"),
            ):
                cell = await client.cell(f"%agent {line}")
                assert cell.reply["status"] == "ok"
                assert said in cell.text
        server.assert_clean()


def job(tmp_path: Path, server: MessagesServer, *cells: str, **env: str) -> tuple[Path, dict]:
    path = tmp_path / "in.ipynb"
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=[new_code_cell(c) for c in ("%load_ext nbagent", *cells)], metadata=spec), path)
    given = {**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk", "PYTHONPATH": str(ROOT), **env}
    return path, {"cwd": tmp_path, "env": given, "capture_output": True, "text": True, "timeout": 120}


COMMANDS = {
    "papermill": ["-m", "papermill", "in.ipynb", "out.ipynb", "--no-progress-bar"],
    "nbconvert": ["-m", "nbconvert", "--execute", "--to", "notebook", "--output", "out.ipynb", "in.ipynb"],
}


@pytest.mark.parametrize("by", COMMANDS)
def test_papermill_and_nbconvert_finish_and_the_policy_decides(tmp_path, by):
    """Row 67: nobody is there to click, and nothing waits."""
    with MessagesServer() as server:
        _, options = job(tmp_path, server, "%%agent\ngo", "print('after', _.stop_reason)", NBAGENT_ALLOW="run_python")
        server.push(
            Reply([call("run_python", code="print(6 * 7)"), call("add_cell", source="made = 1")]),
            calls("ask_user", questions=[{"question": "Which?"}]),
            "It is 42; I could not add the cell.",
        )
        done = subprocess.run([sys.executable, *COMMANDS[by]], check=False, **options)
        assert done.returncode == 0, done.stderr
        assert (
            "42" in results(server)[0]
            and "Nobody is there" in results(server)[1]
            and "Nobody can" in results(server)[2]
        )
        out = nbformat.read(tmp_path / "out.ipynb", as_version=4)
        nbformat.validate(out)
        [record] = out.cells[1].outputs
        assert "It is 42; I could not add the cell." in record["data"]["text/markdown"]
        assert "`nbagent run … --allow add_cell`" in record["data"]["text/plain"], (
            "advice that can be followed without this kernel"
        )
        assert "by the person" not in str(results(server)), "nobody was there"
        assert "application/vnd.jupyter.widget-view+json" not in record["data"]
        assert out.cells[2].outputs[0].text == "after end_turn\n"
        server.assert_clean()


@pytest.mark.parametrize("by", COMMANDS)
def test_papermill_and_nbconvert_stop_at_a_run_that_could_not_finish_with_one_sentence(tmp_path, by):
    with MessagesServer() as server:
        _, options = job(tmp_path, server, "%%agent --max-turns 2\ngo", "print('never')")
        server.push(calls("run_python", code="1"), calls("run_python", code="2"), "It is all left.")
        done = subprocess.run([sys.executable, *COMMANDS[by]], check=False, **options)
        assert done.returncode != 0
        assert "nbagent: Stopped at the limit of 2 turns" in done.stderr
        if by == "papermill":  # nbconvert writes nothing after a failure
            out = nbformat.read(tmp_path / "out.ipynb", as_version=4)
            cells = [cell for cell in out.cells if "papermill-error" not in str(cell.metadata)]
            assert not any("never" in str(cell.get("outputs", "")) for cell in cells)
        server.assert_clean()


def test_papermill_runs_an_allowed_agent_to_its_end_with_cells_proposed_in_the_record(tmp_path):
    """Without our page in nbclient no cell can be added: it is proposed, the record holds it, the model is told."""
    with MessagesServer() as server:
        _, options = job(tmp_path, server, "%%agent\ngo", NBAGENT_ALLOW="add_cell")
        server.push(calls("add_cell", source="made = 6 * 7\nmade"), "I propose a cell.")
        done = subprocess.run([sys.executable, *COMMANDS["papermill"]], check=False, **options)
        assert done.returncode == 0, done.stderr
        assert "only proposed" in results(server)[0]
        out = nbformat.read(tmp_path / "out.ipynb", as_version=4)
        assert "```python\nmade = 6 * 7\nmade\n```" in out.cells[1].outputs[0]["data"]["text/markdown"]
        server.assert_clean()
