"""A real kernel with a page and a model over HTTP: secrets, hidden variables, what was sent, what would be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, call

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(150)]

KEY = "ghp_" + "a1B2c3D4e5F6" * 3
PASSWORD = "hunter2-of-the-lake"
NAME = "Ada Lovelace"
DATA = "patients = open('people.txt').read().split(','); adults = patients[:1]; n = 3"


def _kept(folder: Path) -> dict[str, str]:
    """Every file that nbagent keeps beside the notebook, but for undo's copies of what was there."""
    files = [path for path in (folder / ".nbagent").rglob("*") if path.is_file() and "undo" not in path.parts]
    return {str(path): path.read_text("utf-8", "replace") for path in files if "checkpoints" not in path.parts}


def _placeholder(text: str) -> str:
    at = text.index("⟦secret:", text.index("token = "))
    return text[at : text.index("⟧", at) + 1]


async def test_secrets_and_hidden_variables_stay_in_the_kernel_and_the_person_sees_what_was_sent(
    tmp_path: Path,
) -> None:
    with MessagesServer() as server:
        async with Room(tmp_path, server, NBAGENT_MODE="bypass", MY_PASSWORD=PASSWORD) as room:
            await room.cell(f"token = {KEY!r}\nprint('ok', token)")
            (tmp_path / "people.txt").write_text(f"{NAME},Alan")
            await room.cell(DATA)
            await room.cell("patients")
            hidden = await room.cell("%agent hide patients")
            hidden.says("Hidden from the model: patients")

            # ── what would be sent: nothing happens
            before = _kept(tmp_path)
            dry = await room.cell("%%agent --dry-run\nWhat is here?")
            dry.says("Nothing was sent", "What is here?", "127.0.0.1")
            assert KEY not in dry.seen and "⟦secret:" in dry.seen
            assert not server.requests and _kept(tmp_path) == before

            # ── a run: the model looks, then writes the secret back where it belongs
            cell = room.page.nb.cells[1]["id"]
            look = [
                call("list_variables"), call("read_cell", cell=cell), call("inspect_variable", name="adults"),
                call("run_python", code="import os; print(os.environ['MY_PASSWORD'], token)"),
                call("run_python", code="print(adults)"), call("run_python", code="print(n)"),
            ]  # fmt: skip
            server.push(look)

            secret = _placeholder(dry.seen)
            write = [
                call("edit_cell", cell=cell, source=f"token = '{secret}'  # by the agent"),
                call("write_file", path="key.txt", content=secret),
            ]
            server.push(write, [call("run_python", code="x = '⟦secret:00000000⟧'")], "Done with it.")
            shown = await room.cell(f"%%agent\nUse {KEY} well.")
            assert not shown.error, shown.seen
            bodies = [json.dumps(request.body, ensure_ascii=False) for request in server.requests]
            results = room.results()
            sent = await room.cell("%agent sent")
            raw = await room.cell("%agent sent --raw 2")
            outputs = json.dumps([output for o in (shown, sent, raw, dry) for output in o.cell.outputs], default=str)

            assert room.page.document.cells[1]["source"] == f"token = '{KEY}'  # by the agent"
            assert (tmp_path / "key.txt").read_text() == KEY
            for text in (*bodies, *_kept(tmp_path).values(), outputs):
                assert KEY not in text and KEY[-10:] not in text
                assert PASSWORD not in text
                assert NAME not in text
            assert "hidden by the person" in results[0] and "held back" in results[4] and "3" in results[5]
            assert "stands for no secret" in results[-1]
            sent.says("Request 1 to 127.0.0.1", "Use ⟦secret:", "⟦secret:…⟧ stands for a secret")
            assert json.loads(raw.record)["messages"] == json.loads(bodies[1])["messages"]

            # ── shown again
            await room.cell("%agent show patients")
            await room.cell("%%agent --again\nAnd now?", [call("run_python", code="print(adults)")], "Seen.")
            assert NAME in room.results()[-1]
            server.assert_clean()
