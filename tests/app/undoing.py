"""A desk for undo without a kernel: a notebook in memory, files in a folder, names in a dict, and the tools of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbagent.app.undo import Undo
from nbagent.core.tools import Call, Kind, Toolset, tool
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools import notebook as cell_tools
from nbagent.tools import workspace
from tests.conformance.notebook_kit import stream
from tests.support.turns import at_once
from tests.tools.desk import EchoKernel, raw

if TYPE_CHECKING:
    from pathlib import Path

    from nbagent.app.checkpointing import Checkpointing


@tool(kind=Kind.SHELL)
async def send_mail(_call: Call, to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


@tool
async def look_up(_call: Call, word: str) -> str:
    """Look something up."""
    return word


class Desk:
    """A notebook of four cells, a kernel, a folder, and undo."""

    def __init__(self, folder: Path) -> None:
        cells = [raw("a", "a = 1", number=1), raw("b", "b = 1", number=2), raw("own", "%%agent\ngo"), raw("c", "c = 1")]
        cells[0]["outputs"] = [stream("one\n")]
        self.notebook = MemoryNotebook(cells, own_cell="own", path="work.ipynb")
        self.kernel = EchoKernel()
        self.kernel.names = {"df": [1], "n": 1}
        self.folder = folder
        self.undo = Undo(folder, lambda: self.kernel.names)
        self.tools = Toolset(())

    def run(self, prompt: str = "go") -> Any:
        return self.undo.checkpointing(prompt, self.notebook, self.kernel)

    async def call(self, name: str, **arguments: Any) -> Any:
        found = self.tools[name]
        given = found.validate(arguments)
        found.kind(given)
        found.subject(given)
        found.preview(given)
        return await found.run(Call("call", lambda _: None, lambda _: at_once("")), given)

    def take(self, checkpointing: Checkpointing) -> None:
        """Use the tools of a run."""
        made = [
            *cell_tools.tools(checkpointing.notebook, checkpointing.kernel, timeout=5),
            *workspace.tools(self.folder),
            send_mail,
            look_up,
        ]
        self.tools = Toolset(checkpointing.tools(made, [send_mail, look_up]))

    async def edit(self, cell: str, source: str, **options: Any) -> None:
        await self.call("read_cell", cell=cell)
        await self.call("edit_cell", cell=cell, source=source, **options)

    def order(self) -> list[str]:
        return [cell["id"] for cell in self.notebook.cells_]

    def cell(self, cell_id: str) -> dict[str, Any]:
        return next(cell for cell in self.notebook.cells_ if cell["id"] == cell_id)

    async def back(self, run: str = "") -> str:
        return (await self.undo.take_back(self.notebook, run)).text

    async def again(self, run: str = "") -> str:
        return (await self.undo.do_again(self.notebook, run)).text
