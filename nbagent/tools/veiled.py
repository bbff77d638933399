"""A kernel and a notebook as the model may see them: what is hidden is told by name, its outputs are held back.

What the person sees is not touched. Must not know who hides what (`veil` says it each time). Read `Veiled`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from nbagent.core.errors import CutOff, Interrupted
from nbagent.core.ports import Cell, CellSink, Kernel, Notebook, Output, Ran
from nbagent.core.wrapped import WrappedNotebook
from nbagent.tools.veil import Veil

_HELD_BACK = "(The output so far is held back: the person has hidden what the code reads.)"


class Veiled:
    """The `kernel` and the `notebook` of a run behind what is hidden now; `meet` gets the variables after code has run."""

    def __init__(self, veil: Callable[[], Veil], meet: Callable[[Mapping[str, Any]], None] = lambda _: None) -> None:
        self.veil, self.meet = veil, meet
        self.running = ""
        """The code that ran last."""

    def kernel(self, kernel: Kernel) -> Kernel:
        """Return `kernel` with hidden variables told by what may be told of them."""
        return _VeiledKernel(self, kernel)

    def notebook(self, notebook: Notebook, kernel: Kernel) -> Notebook:
        """Return `notebook` with the outputs held back of cells that read what is hidden in `kernel`."""
        return _VeiledNotebook(self, notebook, kernel)


class _Names(Mapping[str, Any]):
    def __init__(self, names: Mapping[str, Any], veil: Veil) -> None:
        self._names, self._veil = names, veil

    def __getitem__(self, name: str) -> Any:
        return self._veil.told(name, self._names[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _VeiledKernel:
    def __init__(self, veiled: Veiled, kernel: Kernel) -> None:
        self._veiled, self._kernel = veiled, kernel

    def namespace(self) -> Mapping[str, Any]:
        """Return the variables, hidden ones as what may be told of them."""
        names, veil = self._kernel.namespace(), self._veiled.veil()
        return _Names(names, veil) if veil else names

    async def run(self, code: str, *, emit: Callable[[Output], None], timeout: float | None) -> Ran:
        """Run code; `emit` gets all outputs (they are the person's), what is returned only what the model may see."""
        self._veiled.running = code
        try:
            return self._seen(code, await self._kernel.run(code, emit=emit, timeout=timeout))
        except (Interrupted, CutOff) as stopped:
            raise self._stopped(code, stopped) from None

    async def scratch(self, code: str, *, timeout: float | None, emit: Callable[[Output], None] | None = None) -> Ran:
        """Run code to look; what is returned and emitted is what the model may see: nothing yet, where it reads what is hidden."""
        emit = None if self._reads_hidden(code) else emit
        try:
            return self._seen(code, await self._kernel.scratch(code, timeout=timeout, emit=emit))
        except (Interrupted, CutOff) as stopped:
            raise self._stopped(code, stopped) from None

    def _seen(self, code: str, ran: Ran) -> Ran:
        names = self._kernel.namespace()
        self._veiled.meet(names)
        outputs = self._veiled.veil().outputs(code, ran.outputs, names)
        return dataclasses.replace(ran, outputs=outputs)

    def _stopped(self, code: str, stopped: Interrupted | CutOff) -> Interrupted | CutOff:
        return type(stopped)(_HELD_BACK) if self._reads_hidden(code) else stopped

    def _reads_hidden(self, code: str) -> bool:
        veil, names = self._veiled.veil(), self._kernel.namespace()
        return bool(veil.reached(code, names) or veil.reached_columns(code, names))


class _VeiledNotebook(WrappedNotebook):
    def __init__(self, veiled: Veiled, notebook: Notebook, kernel: Kernel) -> None:
        super().__init__(notebook)
        self._veiled, self._kernel = veiled, kernel

    def _seen(self, cell: Cell) -> Cell:
        return dataclasses.replace(cell, outputs=self._outputs(cell.source, cell.outputs)) if cell.outputs else cell

    def _outputs(self, source: str, outputs: Sequence[Output]) -> tuple[Output, ...]:
        return self._veiled.veil().outputs(source, outputs, self._kernel.namespace())

    async def read(self, cell_id: str) -> Cell:
        """Return one cell with the outputs that the model may see."""
        return self._seen(await self._notebook.read(cell_id))

    async def begin_run(self, cell_id: str) -> CellSink:
        """Mark a cell as running."""
        return _VeiledSink(
            await self._notebook.begin_run(cell_id), lambda out: self._outputs(self._veiled.running, out)
        )

    async def set_outputs(self, cell_id: str, outputs: Sequence[Output], number: int | None) -> Cell:
        """Replace a cell's outputs."""
        return self._seen(await self._notebook.set_outputs(cell_id, outputs, number))


class _VeiledSink:
    def __init__(self, sink: CellSink, seen: Callable[[Sequence[Output]], tuple[Output, ...]]) -> None:
        self._sink, self._seen = sink, seen

    def emit(self, output: Output) -> None:
        """Take one output: the person sees it."""
        self._sink.emit(output)

    async def end(self, number: int | None) -> tuple[Output, ...]:
        """Mark the cell as idle; return the outputs that the model may see."""
        return self._seen(await self._sink.end(number))
