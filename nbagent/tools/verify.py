"""The tool with which an agent has the notebook run in a clean kernel and compared with what is shown.

It must not know how clean runs are made: that is handed in. Read `Verifying`, then `verify_tool`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.messages import Json, text_block
from nbagent.core.ports import Cell, Kernel, Notebook, Preview
from nbagent.core.tools import Call, Kind, Result, Tool, tool
from nbagent.tools import effects
from nbagent.tools.seen import Seen
from nbagent.tools.verdict import Verdict, hash_of, is_verifiable

NAME = "verify_notebook"
TIMEOUT = 600
"""Seconds that one clean run may take, if nothing else is said."""
_HOW = (
    "Runs all code of this notebook once more, from top to bottom, in a new kernel that is gone afterwards, and compares what "
    "comes out with what is shown. Agent cells are left out. {files} Whatever else the code does (network, databases) "
    "happens once more; where outputs differ, twice."
)


class Verify(Protocol):
    """Makes the clean runs. Raises `ToolError` where none can be made."""

    async def __call__(
        self, cells: Sequence[Cell], *, timeout: float, seed: bool, call_id: str, progress: Callable[[str], None]
    ) -> Verdict:
        """Return the verdict over `cells`, which hold their outputs."""
        ...


def verify_tool(notebook: Notebook, kernel: Kernel, seen: Seen, verify: Verify, files: Callable[[], str]) -> Tool:
    """Return `verify_notebook`; `files` says in a sentence what becomes of files."""
    shown: list[str] = []

    def code() -> list[Cell]:
        return [cell for cell in seen.listing or () if is_verifiable(cell)]

    def kind(_: Json) -> Kind:
        shown.clear()
        cells = code()
        shown.append(hash_of(cells))
        if not cells:
            return Kind.READ
        kinds = {effects.kind_of(cell.source, Kind.RUN_ALL, kernel.namespace()) for cell in cells}
        return next((one for one in (Kind.PROTECTED, Kind.RISKY_CODE) if one in kinds), Kind.RUN_ALL)

    def preview(_: Json) -> Preview:
        hints = dict.fromkeys(hint for cell in code() for hint in effects.hints(cell.source, {}))
        return Preview("text", _HOW.format(files=files()), language="text", effects=tuple(hints)[:12])

    @tool(
        name=NAME,
        kind=kind,
        subject=lambda _: "\n\n".join(cell.source for cell in code()),
        title=lambda _: "run the notebook in a clean kernel and compare",
        preview=preview,
        exact=True,
    )
    async def verify_notebook(call: Call, timeout: int = TIMEOUT, seed: bool = False) -> Result:
        """Run a copy of the notebook in a clean kernel and say what differs from what is shown, cell by cell, and why.

        Only after this may you call it verified or reproducible, and only until a cell changes. Read the notebook first.

        Args:
            timeout: seconds for a run.
            seed: true to try also whether a random seed at the top makes random cells the same.
        """
        if not shown or seen.listing is None:
            raise ToolError("you have not read the notebook: read it first with read_notebook, then verify it")
        listed = await notebook.cells()
        seen.listing = list(listed)
        if hash_of(listed) != shown[-1]:
            raise NotebookError("the notebook changed since it was listed: read it again, then verify it again")
        if not code():
            raise ToolError("there is no code in the notebook that could be run")
        cells = await with_outputs(notebook, listed)
        verdict = await verify(cells, timeout=max(timeout, 1), seed=seed, call_id=call.id, progress=call.progress)
        return Result((text_block(verdict.text()),), verdict.headline)

    return verify_notebook


async def with_outputs(notebook: Notebook, listed: Sequence[Cell]) -> list[Cell]:
    """Return cells with their outputs; those of text cells as they are."""
    return [await notebook.read(cell.id) if is_verifiable(cell) else cell for cell in listed]
