"""One notebook that two hands write in: the agent's tools, and the person, who acts whenever the tools wait.

`TwoHands` calls `turn` before and after everything that is done through the port, and in the middle of it where it reads
back; a kernel calls it while code runs. Read `TwoHands`, then `Truth`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbagent.core.ports import Output, Ran
from nbagent.headless.memory import MemoryNotebook
from tests.conformance.notebook_kit import stream
from tests.tools.desk import EchoKernel

Turn = Callable[[], None]


class TwoHands(MemoryNotebook):
    """The notebook in memory, in which everything takes time enough for the person to act: each calls `turn` around itself."""

    turn: Turn = staticmethod(lambda: None)

    async def begin_run(self, cell_id: str) -> Any:
        self.turn()
        sink = await super().begin_run(cell_id)
        self.turn()
        return _Sink(sink, self)


def _waiting(name: str) -> Any:
    async def operation(self: TwoHands, *arguments: Any, **options: Any) -> Any:
        self.turn()
        done = await getattr(MemoryNotebook, name)(self, *arguments, **options)
        self.turn()
        return done

    return operation


for _name in ("cells", "read", "insert", "edit", "delete", "move", "set_outputs", "set_metadata"):
    setattr(TwoHands, _name, _waiting(_name))


class _Sink:
    def __init__(self, sink: Any, notebook: TwoHands) -> None:
        self.emit = sink.emit
        self._sink = sink
        self._notebook = notebook

    async def end(self, number: int | None) -> tuple[Output, ...]:
        self._notebook.turn()
        outputs = await self._sink.end(number)
        self._notebook.turn()
        return outputs


class BusyKernel(EchoKernel):
    """A kernel whose code runs for so long that the person acts meanwhile."""

    def __init__(self, notebook: TwoHands) -> None:
        super().__init__()
        self._notebook = notebook

    async def run(self, code: str, *, emit: Callable[[Output], None], timeout: float | None) -> Ran:
        self._notebook.turn()
        emit(stream("began\n"))
        self._notebook.turn()
        ran = await super().run(code, emit=emit, timeout=timeout)
        self._notebook.turn()
        return ran


@dataclass
class Truth:
    """What is true of one cell, and what undo must bring back.

    `text`, `kind`, `number`, `outputs` (as JSON) are as they are now. `mine` is the text that the person (or the time before
    the run) has last given it, None for a cell of the agent's that they never wrote in; `by_agent`: the agent wrote last;
    `agent_wrote`: it has written in this run. `my_number` and `my_outputs` are of the person's last run; `loose`: they
    changed those while the agent was at them, so that either state may come back; `retyped`: they have made another kind of cell of it.
    """

    text: str
    mine: str | None
    kind: str = "code"
    by_agent: bool = False
    agent_wrote: bool = False
    number: int | None = None
    outputs: str = "[]"
    my_number: int | None = None
    my_outputs: str = "[]"
    loose: bool = False
    retyped: bool = False

    @classmethod
    def of(cls, cell: dict[str, Any], mine: str | None) -> Truth:
        """The truth of a cell as it is."""
        number, outputs = shown(cell)
        return cls(cell["source"], mine, cell["cell_type"], False, False, number, outputs, number, outputs)


def shown(cell: dict[str, Any]) -> tuple[int | None, str]:
    """The count and the outputs of a cell, the latter as JSON."""
    return cell.get("execution_count"), json.dumps(cell.get("outputs"))
