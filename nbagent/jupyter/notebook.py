"""The notebook port over the bridge: the notebook that a person has open in a page.

Every operation is done, or refused, in the page at the moment of writing; what is returned was read back there.
Outputs flow while the cell's code runs, synchronous code included: they are patched from whatever thread they come,
at most `RATE` times a second. Must not know of agents. Read `LiveNotebook`, then `PageSink`.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from nbagent.core.errors import NotebookError, Unsure
from nbagent.core.messages import Json
from nbagent.core.ports import Anchor, Cell, CellSink, CellType, Output, source_hash
from nbagent.jupyter.bridge import Bridge, Hello, PageRefused
from nbagent.jupyter.mirror import Mirror
from nbagent.tools.cells import unknown_cell

RATE = 20
SAVE_TIMEOUT = 30.0
"""Seconds: a save goes through the server to a disk that may be slow."""
END_TRIES = 3
MISSING = "what cell {} shows is not all that it printed: outputs were lost on the way, or something else changed them"


class LiveNotebook:
    """The open notebook of a page that said hello. `own_cell` is the kernel's word, else the page's."""

    def __init__(self, bridge: Bridge, hello: Hello, *, own_cell: str | None = None) -> None:
        self._bridge = bridge
        self._added: list[str] = []
        self._unsaved = False
        self._own_cell = own_cell or bridge.cell or hello.own_cell

    @property
    def path(self) -> str:
        """The notebook's path as the page knows it now: a notebook that is renamed in mid-run stays the same one."""
        return self._bridge.path

    @property
    def document(self) -> str:
        """What the notebook is known by as long as the kernel lives, under any name."""
        return self._bridge.document

    @property
    def own_cell(self) -> str | None:
        """The id of the cell that runs now."""
        return self._own_cell

    @property
    def unsaved(self) -> bool:
        """Whether something was changed through here since the last save began."""
        return self._unsaved

    @property
    def proposes_only(self) -> bool:
        """False: edits are made."""
        return False

    async def cells(self) -> list[Cell]:
        """Return all cells in order, without outputs."""
        return [_cell(item) for item in (await self._call("list"))["cells"]]

    async def read(self, cell_id: str) -> Cell:
        """Return one cell with its outputs; outputs too large for one message are replaced by a line saying so."""
        return _cell((await self._call("read", cell=cell_id))["cell"])

    async def insert(
        self,
        anchor: Anchor,
        cell_type: CellType,
        source: str,
        *,
        metadata: Json | None = None,
        cell_id: str | None = None,
    ) -> Cell:
        """Insert a cell; its id is chosen here or given, so that a repeated request is recognised and inserts nothing."""
        place = {"id": anchor.id, "where": anchor.where}
        new = cell_id or uuid.uuid4().hex[:8]  # as short as nbformat makes them: the model repeats it often
        more = metadata or {}  # None goes along: it takes away the trust that the page gives a new cell
        done = await self._call("insert", cell=new, anchor=place, cell_type=cell_type, source=source, metadata=more)
        self._added.append(new)
        return _as_written(_cell(done["cell"]), source)

    async def edit(self, cell_id: str, source: str, expected_hash: str, *, metadata: Json | None = None) -> Cell:
        """Replace a cell's source; the page compares it with what the hash was made of in the moment of writing."""
        expected = await self._expected(cell_id, expected_hash)
        done = await self._call("edit", cell=cell_id, source=source, expected=expected, metadata=metadata or {})
        return _as_written(_cell(done["cell"]), source)

    async def delete(self, cell_id: str, expected_hash: str) -> None:
        """Delete a cell if it is still what the hash was made of."""
        if cell_id == self._own_cell:
            raise NotebookError(f"cell {cell_id} is the one that you run in: it can't delete itself")
        expected = await self._expected(cell_id, expected_hash)
        await self._call("delete", cell=cell_id, expected=expected)

    async def move(self, cell_id: str, anchor: Anchor) -> Cell:
        """Move a cell; the page makes a new view of it, so the running cell itself is refused."""
        if cell_id == self._own_cell:
            raise NotebookError(f"cell {cell_id} is the one that you run in: it can't move itself")
        done = await self._call("move", cell=cell_id, anchor={"id": anchor.id, "where": anchor.where})
        return _cell(done["cell"])

    async def begin_run(self, cell_id: str) -> CellSink:
        """Clear a code cell's outputs and mark it as running."""
        if cell_id == self._own_cell:
            raise NotebookError(f"cell {cell_id} is the one that you run in: it can't run itself")
        run = uuid.uuid4().hex
        await self._call("begin", cell=cell_id, run=run)
        return PageSink(self._bridge, cell_id, run)

    async def set_outputs(self, cell_id: str, outputs: Sequence[Output], number: int | None) -> Cell:
        """Replace a code cell's outputs; those of the running cell itself are the record's (`set_record`)."""
        if cell_id == self._own_cell:
            raise NotebookError(f"cell {cell_id} is the one that you run in: its output is the record of this run")
        given = [_sendable(output) for output in outputs]
        cell = _cell((await self._call("set_outputs", cell=cell_id, outputs=given, number=number))["cell"])
        if (len(cell.outputs), cell.number) != (len(given), number):
            raise Unsure(f"the outputs of cell {cell_id} were set but read back differently: read it again")
        return cell

    async def set_metadata(self, cell_id: str, metadata: Json) -> Cell:
        """Merge `metadata` into a cell's; None takes a key away."""
        return _cell((await self._call("set_metadata", cell=cell_id, metadata=metadata))["cell"])

    async def save(self) -> None:
        """Save the notebook through the page, so that nothing that the person typed is lost; other tabs then follow."""
        self._unsaved = False
        await self._bridge.call("save", timeout=SAVE_TIMEOUT)
        self._bridge.follow()

    async def set_record(self, outputs: Sequence[Output], number: int | None) -> None:
        """Put the finished record on the running cell itself. Write it last: what is printed later comes after it."""
        written: Json = {"outputs": list(outputs), "number": number, "added": self._added}
        await self._bridge.call("record", cell=self._own_cell, **written)

    async def _expected(self, cell_id: str, expected_hash: str) -> str:
        found = await self._call("read", cell=cell_id, outputs=False)
        source = str(found["cell"]["source"])
        if source_hash(source) != expected_hash:
            raise NotebookError(f"cell {cell_id} changed since you read it: read it again")
        return source

    async def _call(self, op: str, **arguments: Any) -> Json:
        self._unsaved = self._unsaved or op not in ("list", "read")
        try:
            return await self._bridge.call(op, **arguments)
        except PageRefused as refused:
            if refused.code != "unknown_cell":
                raise
            missing = arguments["cell"] if op != "insert" else arguments["anchor"]["id"]
            cells = await self.cells()
            if op == "move" and any(cell.id == missing for cell in cells):
                missing = arguments["anchor"]["id"]
            raise unknown_cell(missing, cells) from None


class PageSink:
    """Takes the outputs of one running cell on any thread and patches the page, at most `RATE` times a second.

    A piece carries a sequence number; a page that missed one asks for all, and the end is checked once more.
    """

    def __init__(self, bridge: Bridge, cell: str, run: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._bridge = bridge
        self._cell = cell
        self._run = run
        self._clock = clock
        self._mirror = Mirror()
        self._lock = threading.RLock()
        self._seq = 0
        self._flushed = -1.0
        self._timer: threading.Timer | None = None
        self._ended = False
        bridge.on_resend(run, self._resend)

    def emit(self, output: Output) -> None:
        """Take one output (see `ports.CellSink.emit`)."""
        with self._lock:
            if self._ended:
                return
            self._mirror.take(output)
            self._schedule()

    async def end(self, number: int | None) -> tuple[Output, ...]:
        """Send the rest, mark the cell as idle with count `number`, and return the outputs.

        A cell that was deleted in the meantime ends like any other; raises NotebookError where no page answers, or where
        the page has other outputs than these after all tries (the cell is idle all the same).
        """
        with self._lock:
            self._mirror.close()
            self._flush()
            self._ended = True
        try:
            for tries_left in reversed(range(END_TRIES)):
                arguments: Json = {"seq": self._seq, "count": len(self._mirror), "number": number}
                arguments["last"] = not tries_left  # the cell must not look as if it ran for ever
                done = await self._bridge.call("end", cell=self._cell, run=self._run, **arguments)
                if not done.get("gap"):
                    break
                if not tries_left:
                    raise NotebookError(MISSING.format(self._cell))
                self._resend(now=True)
        except PageRefused as refused:
            if refused.code != "unknown_cell":
                raise
        finally:
            self._bridge.on_resend(self._run, None)
        return self._mirror.outputs

    def _resend(self, *, now: bool = False) -> None:
        with self._lock:
            self._mirror.resend()
            if now:
                self._flush()
            else:
                self._schedule()

    def _schedule(self) -> None:
        """Flush now if the last time is long enough ago, else let a timer do it: the main thread may be busy."""
        if self._timer is not None:
            return
        wait = self._flushed + 1 / RATE - self._clock()
        if wait <= 0:
            self._flush()
            return
        self._timer = threading.Timer(wait, self._flush)
        self._timer.daemon = True
        self._timer.start()

    def _flush(self) -> None:
        with self._lock:  # held while sending: the order of the pieces is the order of their numbers
            timer, self._timer = self._timer, None
            if timer is not None:
                timer.cancel()
            self._flushed = self._clock()
            patch = self._mirror.patch()
            if patch is not None and not _sent(
                self._bridge, cell=self._cell, run=self._run, seq=self._seq, patch=patch
            ):
                self._mirror.resend()
            self._seq += patch is not None


def _sent(bridge: Bridge, **arguments: Any) -> bool:
    """Tell the page; a failure (a value that JSON can't carry, a socket that is gone) must not reach the user's print."""
    try:
        bridge.tell("outputs", **arguments)
    except Exception:  # noqa: BLE001  (the one place where the transport may raise anything; a snapshot follows)
        return False
    return True


def _sendable(output: Output) -> Output:
    """Return an output as the page keeps it: streams as one string, nothing that is meant for us only."""
    kept = {key: value for key, value in output.items() if not key.startswith("_")}
    if isinstance(text := kept.get("text"), list):
        kept["text"] = "".join(text)
    return kept


def _cell(item: Json) -> Cell:
    number = item.get("number")
    return Cell(
        id=str(item["id"]),
        type=str(item["type"]),
        source=str(item["source"]),
        index=int(item["index"]),
        number=int(number) if number is not None else None,
        outputs=tuple(item.get("outputs") or ()),
        metadata=dict(item.get("metadata") or {}),
    )


def _as_written(cell: Cell, source: str) -> Cell:
    if cell.source != source:
        raise Unsure(f"cell {cell.id} was written but reads back differently: read it again")
    return cell
