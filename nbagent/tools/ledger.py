"""What one run did to the notebook's cells, in order, and the sentence about it that ends the run.

It keeps to what happened, whatever the model says of it. Must not know of the model or of any notebook. Read `closing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nbagent.core.ports import Cell
from nbagent.tools.cells import first_line
from nbagent.tools.hidden import unmade

_LINE = 40
Ending = Literal["ok", "error", "timeout", "interrupted"]


@dataclass(slots=True)
class _Touched:
    """One cell: the step in which it was last written (0: never) and last run (0: never), and how that run ended."""

    label: str
    written: int = 0
    added: bool = False
    ran: int = 0
    ended: Ending = "ok"


class Ledger:
    """Takes what is done to cells, in the order in which it is done. One for a run."""

    def __init__(self) -> None:
        self._step = 0
        self._last_edit = 0
        self._cells: dict[str, _Touched] = {}
        self._deleted: list[str] = []
        self._proposed = 0

    def added(self, cell: Cell) -> None:
        """A cell was added; it has not run."""
        self._write(cell, added=True)

    def edited(self, cell: Cell) -> None:
        """A cell's source was replaced; it has not run since."""
        self._write(cell, added=False)
        if cell.type == "code":
            self._last_edit = self._step

    def ran(self, cell: Cell, ended: Ending) -> None:
        """A cell ran, and so it ended; its number is the new one."""
        self._step += 1
        touched = self._cells.pop(cell.id, None) or _Touched("")
        touched.label, touched.ran, touched.ended = _known(cell), self._step, ended
        self._cells[cell.id] = touched  # at the end: told in the order of the runs

    def deleted(self, cell: Cell) -> None:
        """A cell is gone."""
        self._step += 1
        self._cells.pop(cell.id, None)
        self._deleted.append(_known(cell))
        if cell.type == "code":
            self._last_edit = self._step

    def proposed(self) -> None:
        """A change was proposed to the person and not made."""
        self._proposed += 1

    def closing(self, listing: Sequence[Cell] = ()) -> str:
        """Return what the end of the run says of the cells, "" where none was touched.

        `listing` are all cells of the notebook in order, as far as they are known: with them it names what a cell that
        ran uses and no cell above it makes.
        """
        cells = self._cells.values()
        valid = [cell for cell in cells if cell.ran > cell.written]
        since = [_with_ending(cell) for cell in valid if cell.ran > self._last_edit]
        before = [_with_ending(cell) for cell in valid if cell.ran < self._last_edit]
        parts = [
            _listed("Ran after the last edit" if self._last_edit else "Ran", since),
            _listed("Ran before it" if since else "Ran before the last edit", before),
            _listed("Not run since it was edited", [c.label for c in cells if c.ran < c.written and not c.added]),
            _listed("Added but not run", [c.label for c in cells if c.ran < c.written and c.added]),
            _listed("Deleted", self._deleted),
            "What was proposed was not done: nothing of it was changed or run." if self._proposed else "",
        ]
        if any(cell.ran for cell in cells):
            parts.append(self._clean(listing))
        return " ".join(part for part in parts if part)

    def _clean(self, listing: Sequence[Cell]) -> str:
        ran = {cell_id: cell.label for cell_id, cell in self._cells.items() if cell.ran}
        found = [
            f"{ran[cell_id]} uses {', '.join(f'`{name}`' for name in names[:5])}, which no cell above it makes"
            for cell_id, names in unmade(listing, ran).items()
        ]
        return (
            f"Not verified from a clean kernel: {'; '.join(found)}." if found else "Not verified from a clean kernel."
        )

    def _write(self, cell: Cell, *, added: bool) -> None:
        self._step += 1
        if cell.type != "code":
            return
        touched = self._cells.setdefault(cell.id, _Touched(_known(cell), added=added))
        touched.label, touched.written = _known(cell), self._step


def label_of(cell: Cell) -> str:
    """Return how people know a cell: In[n], or the start of its id if it has not run."""
    return f"In[{cell.number}]" if cell.number is not None else f"cell {cell.id[:8]}"


def _known(cell: Cell) -> str:
    """Return how a person finds a cell: In[n], or its first line if it has not run, for an id is nowhere to be seen."""
    if cell.number is not None:
        return label_of(cell)
    line = first_line(cell.source, _LINE).replace("`", "'")
    return f"`{line}`"


def _listed(head: str, labels: list[str]) -> str:
    return f"{head}: {', '.join(labels)}." if labels else ""


def _with_ending(cell: _Touched) -> str:
    return cell.label if cell.ended == "ok" else f"{cell.label} ({cell.ended})"
