"""What the model has seen of the notebook's cells, and where it has put some: why it changes only what it has read.

Memory only: no port is called here. Read `Seen`, then `Places`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nbagent.core.ports import Anchor, Cell
from nbagent.tools.ledger import label_of


@dataclass(slots=True)
class Seen:
    """Cells as the model last saw them. It lives as long as the conversation: what was read stays read, until it changes.

    `cells`: by id, from each read and write, without their outputs. `listing`: all cells of the notebook in order, as
    they were last listed and as our own changes left them since; None before the first listing.
    """

    cells: dict[str, Cell] = field(default_factory=dict[str, Cell])
    listing: list[Cell] | None = None

    def learn(self, cell: Cell) -> None:
        """Remember `cell` as the model has just seen or written it."""
        cell = replace(cell, outputs=())
        self.cells[cell.id] = cell
        place = self._place(cell.id)
        if self.listing is not None and place is not None:
            self.listing[place] = cell

    def inserted(self, cell: Cell) -> None:
        """Remember a cell that was just inserted."""
        if self.listing is not None and self._place(cell.id) is None:
            self.listing.insert(cell.index, cell)
        self.learn(cell)

    def moved(self, cell: Cell) -> None:
        """Remember that a cell stands somewhere else now."""
        place = self._place(cell.id)
        if self.listing is not None and place is not None:
            self.listing.insert(cell.index, self.listing.pop(place))

    def forget(self, cell_id: str) -> None:
        """Remember that a cell was deleted."""
        self.cells.pop(cell_id, None)
        place = self._place(cell_id)
        if self.listing is not None and place is not None:
            del self.listing[place]

    def label(self, cell_id: str) -> str:
        """Return how people know a cell: In[n], or the start of its id if it has not run."""
        cell_id = cell_id.strip()
        return label_of(self.cells.get(cell_id) or Cell(cell_id, "", "", 0))

    def near(self, gone: str, cells: Sequence[Cell]) -> Anchor | None:
        """Return a place beside which `gone` stood when it was last listed; None where that is not known."""
        there = {cell.id for cell in cells}
        ids = [cell.id for cell in self.listing or ()]
        if gone not in ids:
            return None
        at = ids.index(gone)
        if (before := next((i for i in reversed(ids[:at]) if i in there), None)) is not None:
            return Anchor(before)
        after = next((i for i in ids[at + 1 :] if i in there), None)
        return Anchor(after, "before") if after is not None else None

    def _place(self, cell_id: str) -> int | None:
        return next((at for at, cell in enumerate(self.listing or ()) if cell.id == cell_id), None)


class Places:
    """Where one run has put its cells, so that several inserts keep the order in which they were made."""

    def __init__(self) -> None:
        self.added: list[str] = []
        self._chains: dict[str, _Chain] = {}

    def after(self, anchor: str, cells: Sequence[Cell]) -> str:
        """Return after which cell the next insert after `anchor` goes: the last one inserted there before, or `anchor`.

        Cells that the person put in between don't matter; one that was moved away from there does not lead elsewhere.
        """
        chain = self._chains.get(anchor)
        ids = [cell.id for cell in cells]
        if chain is None or anchor not in ids:
            return anchor
        first = ids.index(anchor) + 1
        end = ids.index(chain.end, first) if chain.end in ids[first:] else len(ids)
        return next((cell_id for cell_id in reversed(ids[first:end]) if cell_id in chain.ids), anchor)

    def inserted(self, cell_id: str, anchor: Anchor) -> None:
        """Remember that `cell_id` was inserted at `anchor`: it is part of the chains that the anchor is in."""
        self.added.append(cell_id)
        for chain in self._chains.values():
            if anchor.id in chain.ids:
                chain.ids.add(cell_id)

    def inserted_after(self, asked: str, cell_id: str, cells: Sequence[Cell]) -> None:
        """Remember that the model wanted `cell_id` after `asked`; `cells` are all cells from before the insert."""
        if asked not in self._chains:
            ids = [cell.id for cell in cells]
            place = ids.index(asked) + 1 if asked in ids else len(ids)
            self._chains[asked] = _Chain(ids[place] if place < len(ids) else None)
        self._chains[asked].ids.add(cell_id)

    def moved(self, cell_id: str) -> None:
        """Forget where a cell was put: it stands somewhere else now."""
        for chain in self._chains.values():
            chain.ids.discard(cell_id)


@dataclass(slots=True)
class _Chain:
    """The cells inserted after one anchor; `end` is the cell that stood after it when the first of them came."""

    end: str | None
    ids: set[str] = field(default_factory=set[str])
