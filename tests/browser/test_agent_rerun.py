"""A finished agent cell run again in a real JupyterLab: Restart & Run All, and the question about a stale answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from tests.browser.lab import Lab
    from tests.browser.page import Notebook
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(180)

DATA = "rows = open('sales.csv').read().split()[1:]"
KEEP = "Keep the old answer, shown as stale"


def plain(notebook: Notebook) -> str:
    """The notebook's file without execution counts and times."""
    saved: dict[str, Any] = json.loads(notebook.path.read_text("utf-8"))
    for cell in saved["cells"]:
        cell.pop("execution_count", None)
        cell["metadata"].pop("execution", None)
        for output in cell.get("outputs", ()):
            output.pop("execution_count", None)
    return json.dumps(saved, indent=1)


async def restart_and_run_all(notebook: Notebook) -> None:
    await notebook.restart()
    await notebook.run_all(patience=60)
    await notebook.kernel_idle()
    await notebook.save()


async def test_restart_and_run_all_is_free_and_a_stale_answer_is_asked_about(lab: Lab, server: MessagesServer) -> None:
    """The file is byte-equal but for counts and times; then data changes, and the person decides with the mouse."""
    sales = lab.root / "sales.csv"
    sales.write_text("amount\n1\n2\n3\n")
    cells = (DATA, "%%agent\nHow many sales?", "print('below', _.text)")
    async with agent_notebook(lab, server, *cells, env={"NBAGENT_RERUN": "replay"}) as desk:
        notebook = desk.notebook
        await notebook.run(1)
        server.push(
            calls("inspect_variable", name="rows"), calls("add_cell", source="len(rows)"), say("There are **3**.")
        )
        await desk.start(2)
        await desk.approve(2)
        await desk.done()
        await notebook.run(3)
        await restart_and_run_all(notebook)
        await notebook.see(2, "There are 3.")
        before, asked = plain(notebook), len(server.requests)
        assert len(await notebook.sources()) == 5
        await restart_and_run_all(notebook)
        assert plain(notebook) == before
        await notebook.reload()
        await restart_and_run_all(notebook)
        assert plain(notebook) == before
        assert len(server.requests) == asked == 3

        sales.write_text("amount\n1\n2\n3\n4\n")
        await notebook.run(1)
        await desk.start(2)
        await notebook.see(2, "STALE: rows changed: 3 items then, 4 now.")
        await notebook.see(2, "There are 3.")  # the old record is before the eyes of who decides
        await notebook.click(2, KEEP)
        await desk.done()
        text = await notebook.text(2)
        assert text.startswith("STALE: rows changed: 3 items then, 4 now.") and "There are **3**." in text
        await notebook.see(2, "STALE: rows changed")

        server.push(calls("inspect_variable", name="rows"), say("There are **4**."))
        await desk.start(2)
        await notebook.click(2, "Run again")
        await desk.done()
        text = await notebook.text(2)
        assert text.startswith("There are **4**.") and "STALE" not in text
        await notebook.see(2, "There are 4.")
        await expect(notebook.output(2)).not_to_contain_text("There are 3.")
        assert len(server.requests) == asked + 2
