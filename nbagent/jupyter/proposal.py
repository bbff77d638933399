"""A notebook that can't be reached from here: what the kernel knows of its cells, and proposals for the person.

The host where no page with the document answers. Cells are those that ran (IPython's history); new and changed cells
are proposed: offered as the next input where the front end takes one, and shown in the record to copy. Nothing here
changes a notebook, and no proposal runs. Only one next input survives an execution (ipykernel keeps the last payload of
a kind), so all proposals of a run go into one. Must not know how proposals are shown. Read `ProposalNotebook.insert`,
then `next_input`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from nbagent.core.errors import NotebookError
from nbagent.core.messages import Json, clean
from nbagent.core.ports import Anchor, Cell, CellSink, CellType, Output
from nbagent.tools.cells import starts_agent, unknown_cell
from nbagent.tools.describe import brief

_FROM_HERE = "this front end does not let the kernel reach the notebook"
_AGENT = "an agent can't propose another agent's cell"


@dataclass(frozen=True, slots=True)
class Proposal:
    """One proposed cell. `number` is that of the executed cell which it should replace, None for a new one."""

    id: str
    type: CellType
    source: str
    number: int | None = None

    @property
    def what(self) -> str:
        """What the person is to do with it, in a few words."""
        kind = "cell" if self.type == "code" else f"{self.type} cell"
        return f"a new {kind}" if self.number is None else f"instead of In[{self.number}]"


class ProposalNotebook:
    """The Notebook port over one run's view of `shell`'s history. `path` is "" where the notebook is not known.

    Ids are made up and stay as they are: in-7 is what ran as In[7], proposed-1 the first proposal of this run. A proposal
    can be edited again, as long as the run goes on; a second proposal for the same cell takes the place of the first.
    """

    def __init__(self, shell: Any, *, path: str = "") -> None:
        self._shell = shell
        self._proposals: list[Proposal] = []
        self._count = 0
        self.path = path
        self.own_cell: str | None = None
        self.proposes_only = True

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """What was proposed in this run, in the order in which the cells should stand."""
        return tuple(self._proposals)

    async def cells(self) -> list[Cell]:
        """Return the cells that ran, agent cells left out, then the proposals of this run."""
        ran = _ran(self._shell)
        there = [Cell(f"in-{number}", "code", source, i, number) for i, (number, source) in enumerate(ran)]
        mine = [Cell(p.id, p.type, p.source, len(ran) + i) for i, p in enumerate(self._proposals)]
        return [*there, *mine]

    async def read(self, cell_id: str) -> Cell:
        """Return one cell; of its outputs the kernel knows only the value, told in a line without running its code."""
        cell = await self._find(cell_id)
        values: dict[int, Any] = self._shell.user_ns.get("_oh") or {}
        if cell.number is None or cell.number not in values:
            return cell
        output: Output = {
            "output_type": "execute_result",
            "data": {"text/plain": brief(values[cell.number])},
            "metadata": {},
            "execution_count": cell.number,
        }
        return replace(cell, outputs=(output,))

    async def insert(
        self,
        anchor: Anchor,
        cell_type: CellType,
        source: str,
        *,
        metadata: Json | None = None,  # noqa: ARG002  (a proposal is text: nothing else reaches the person's cell)
        cell_id: str | None = None,
    ) -> Cell:
        """Propose a new cell and return it. Proposals keep the order that their anchors ask for."""
        if cell_id is not None:
            self._refuse(f"a cell can't be put back: {_FROM_HERE}")
        place = len(self._proposals)
        if anchor.id or await self.cells():
            target = await self._find(anchor.id)
            mine = [p.id for p in self._proposals]
            if target.id in mine:
                place = mine.index(target.id) + (anchor.where == "after")
        self._count += 1
        return await self._propose(Proposal(f"proposed-{self._count}", cell_type, clean(source)), place)

    async def edit(self, cell_id: str, source: str, expected_hash: str, *, metadata: Json | None = None) -> Cell:  # noqa: ARG002
        """Propose another source for a cell that ran, or change a proposal; return what is proposed now."""
        cell = await self._find(cell_id)
        if cell.hash != expected_hash:
            raise NotebookError(f"cell {cell_id} changed since you read it: read it again")
        for place, old in enumerate(self._proposals):
            if old.id == cell.id or (cell.number is not None and old.number == cell.number):
                return await self._propose(replace(old, source=clean(source)), place, instead=True)
        self._count += 1
        made = Proposal(f"proposed-{self._count}", "code", clean(source), cell.number)
        return await self._propose(made, len(self._proposals))

    async def delete(self, cell_id: str, expected_hash: str) -> None:  # noqa: ARG002
        """Refuse."""
        await self._find(cell_id)
        self._refuse(f"cells can't be deleted from here: {_FROM_HERE}. Ask the person to do it")

    async def move(self, cell_id: str, anchor: Anchor) -> Cell:  # noqa: ARG002
        """Refuse."""
        await self._find(cell_id)
        self._refuse(f"cells can't be moved from here: {_FROM_HERE}. Ask the person to do it")

    async def begin_run(self, cell_id: str) -> CellSink:
        """Refuse."""
        await self._find(cell_id)
        self._refuse(f"cells can't be run from here: {_FROM_HERE}. The person has to run them")

    async def set_outputs(self, cell_id: str, outputs: Sequence[Output], number: int | None) -> Cell:  # noqa: ARG002
        """Refuse."""
        await self._find(cell_id)
        self._refuse(f"outputs can't be changed from here: {_FROM_HERE}")

    async def set_metadata(self, cell_id: str, metadata: Json) -> Cell:  # noqa: ARG002
        """Refuse."""
        await self._find(cell_id)
        self._refuse(f"metadata can't be changed from here: {_FROM_HERE}")

    async def save(self) -> None:
        """There is nothing to save: what was proposed is kept by the run's record."""

    async def _propose(self, proposal: Proposal, place: int, *, instead: bool = False) -> Cell:
        if starts_agent(proposal.source):
            self._refuse(_AGENT)
        self._proposals[place : place + instead] = [proposal]
        self._shell.set_next_input(next_input(self._proposals), replace=False)
        return await self._find(proposal.id)

    async def _find(self, cell_id: str) -> Cell:
        every = await self.cells()
        for cell in every:
            if cell.id == cell_id:
                return cell
        raise unknown_cell(cell_id, every)

    def _refuse(self, why: str) -> NoReturn:
        raise NotebookError(why)


def _ran(shell: Any) -> list[tuple[int, str]]:
    """Return what the person ran, as they wrote it, with its number; empty inputs and cells of %agent left out."""
    raw: list[str] = list(shell.history_manager.input_hist_raw)
    return [(n, source) for n, source in enumerate(raw) if n and source.strip() and not starts_agent(source)]


def next_input(proposals: Sequence[Proposal]) -> str:
    """Return the one next input that holds `proposals`, "" for none; comment lines tell several apart.

    Where the texts can't be joined (a cell magic must be the first line of its cell) it holds the first one only, and
    Markdown stands in it only by itself: the record shows all.
    """
    code = [p for p in proposals if p.type == "code"]
    if not code:
        return f"%%markdown\n{proposals[0].source}" if proposals else ""
    if any(p.source.lstrip().startswith("%%") for p in code):
        return code[0].source
    if len(code) == 1:
        return code[0].source if code[0].number is None else f"# {code[0].what}:\n{code[0].source}"
    parts = [f"# ── {n} of {len(code)}: {p.what} ──\n{p.source.rstrip()}" for n, p in enumerate(code, 1)]
    return "\n\n".join(parts) + "\n"
