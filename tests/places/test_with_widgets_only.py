"""A front end with widgets that can't reach the notebook's document (as Colab and VS Code): buttons, and proposals."""

from __future__ import annotations

import asyncio

import pytest

from tests.bridge.pages import Page
from tests.places.front_end import front_end
from tests.support.messages_server import MessagesServer, calls

pytestmark = [pytest.mark.kernel, pytest.mark.places, pytest.mark.timeout(120)]


@pytest.mark.parametrize("over", ["main shell", "subshell"])
async def test_buttons_answer_and_cells_are_proposed(tmp_path, over):
    """Row 27: comm messages over the main shell (VS Code) or a subshell (Colab does not, JupyterLab does)."""
    with MessagesServer() as server:
        page = Page("colab", None)
        async with front_end(tmp_path, server, page, typed=[]) as colab:
            info = await colab.info()
            if over == "subshell" and "kernel subshells" in info.get("supported_features", []):
                colab.subshell = await colab.open_subshell()
            server.push(
                calls("add_cell", source="y = 1", cell_type="code"), calls("run_python", code="40 + 2"), "Done."
            )
            running = asyncio.create_task(colab.cell("%%agent\ngo"))
            for _ in range(2):
                await colab.click("Approve")
            cell = await running
            assert cell.next_inputs == ["y = 1"]
            assert not cell.alive
            [record] = [o for o in cell.outputs if "text/html" in o.get("data", {})]
            for kind in ("text/html", "text/markdown", "text/plain"):
                assert "Proposed, not added: a new cell" in record["data"][kind]
            assert "```python\ny = 1\n```" in record["data"]["text/markdown"]
            assert not cell.asked, "nothing is typed where there are buttons"
        server.assert_clean()
