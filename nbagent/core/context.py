"""What the model is told of the notebook in front of each prompt: first an overview, later only what changed.

It goes into a new message each time, never into the prefix. Pure functions of cells; who reads the cells is elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from nbagent.core.ports import Cell

Outputs = Mapping[str, str]
"""A short text of each cell's outputs, by cell id."""

_NONE: Mapping[str, str] = MappingProxyType({})
_FAILING = 10
_SOURCE_CHARS = 400
_OUTPUT_CHARS = 600
_TOTAL_CHARS = 8_000


@dataclass(slots=True)
class NotebookMemory:
    """What the model knows of the notebook: the source's hash and the execution count of each cell, by id."""

    known: dict[str, tuple[str, int | None]] = field(default_factory=dict[str, tuple[str, int | None]])
    met: bool = False

    def unknown(self, cells: Sequence[Cell], own_cell: str | None) -> list[Cell]:
        """Return the cells that are new, edited or run again since they were last told of."""
        return [c for c in cells if c.id != own_cell and self.known.get(c.id) != (c.hash, c.number)]

    def news(
        self,
        path: str,
        cells: Sequence[Cell],
        outputs: Outputs,
        own_cell: str | None,
        failed: Mapping[str, str] = _NONE,
    ) -> str:
        """Return what to tell the model now, "" where nothing changed, and remember it as told.

        `failed` says, by id, with which error cells ended that it has not been told of: each is named once, and again
        when it has failed anew, however little of the notebook there is room for.
        """
        others = [cell for cell in cells if cell.id != own_cell]
        there = {cell.id for cell in cells}
        gone = [cell_id for cell_id in self.known if cell_id not in there]
        text = self._changes(others, gone, outputs) if self.met else _overview(path, others, outputs, own_cell)
        failing = _failing(others, failed)
        text = f"{text}\n\n{failing}" if text and failing else text or failing
        self.met, self.known = True, {}
        self.learn(cells)
        return text

    def learn(self, cells: Sequence[Cell]) -> None:
        """Take these cells as known, without a word: what the model did itself it need not be told."""
        self.known.update({cell.id: (cell.hash, cell.number) for cell in cells})

    def forget(self, cell_ids: Iterable[str]) -> None:
        """Take it as known, without a word, that these cells are gone."""
        for cell_id in cell_ids:
            self.known.pop(cell_id, None)

    def _changes(self, cells: Sequence[Cell], gone: Sequence[str], outputs: Outputs) -> str:
        lines: list[str] = []
        for cell in cells:
            before, out = self.known.get(cell.id), outputs.get(cell.id, "")
            if before is None:
                lines.append(f"New cell {_describe(cell, out)}")
            elif before[0] != cell.hash:
                lines.append(f"Edited cell {_describe(cell, out)}")
            elif before[1] != cell.number:
                shown = _cut(out, _OUTPUT_CHARS) or "(no output)"
                lines.append(f"Cell {cell.id} ran again ({_label(cell)}); its output now:\n{shown}")
        if gone:
            lines.append(f"Deleted cells: {', '.join(gone)}")
        if not lines:
            return ""
        return _cut("The notebook changed since your last turn:\n\n" + "\n\n".join(lines), _TOTAL_CHARS)


def _overview(path: str, cells: Sequence[Cell], outputs: Outputs, own_cell: str | None) -> str:
    head = f"The open notebook is {path or 'unnamed'}. Your own %%agent cell is {own_cell or 'not known'}."
    if not cells:
        return f"{head} It has no other cells."
    body = "\n\n".join(f"Cell {_describe(cell, outputs.get(cell.id, ''))}" for cell in cells)
    return _cut(f"{head} Its other cells, in order:\n\n{body}", _TOTAL_CHARS)


def _failing(cells: Sequence[Cell], failed: Mapping[str, str]) -> str:
    """Return a line for each cell that failed, the one that ran last first."""
    found = sorted((cell for cell in cells if cell.id in failed), key=lambda cell: -(cell.number or 0))
    lines = [
        f"- {cell.id} ({_label(cell)}): {_cut(failed[cell.id], 160)}; it begins: {_cut(_first_line(cell.source), 80)}"
        for cell in found[:_FAILING]
    ]
    if len(found) > _FAILING:
        lines.append(f"- and {len(found) - _FAILING} more")
    return "Cells whose last run failed:\n" + "\n".join(lines) if lines else ""


def _first_line(source: str) -> str:
    return next((line.strip() for line in source.splitlines() if line.strip()), "(empty)")


def _describe(cell: Cell, output: str) -> str:
    text = f"{cell.id} ({_label(cell)}):\n{_cut(cell.source, _SOURCE_CHARS) or '(empty)'}"
    return f"{text}\nOutput:\n{_cut(output, _OUTPUT_CHARS)}" if output.strip() else text


def _label(cell: Cell) -> str:
    if cell.type != "code":
        return cell.type
    return f"In[{cell.number}]" if cell.number is not None else "code, not run"


def _cut(text: str, limit: int) -> str:
    """Keep head and tail of a long text and say how much was left out."""
    text = text.strip()
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
