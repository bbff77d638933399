"""What the cell tools of one run share: the notebook that they are bound to, and what may be done to its cells.

Two promises are kept here. The agent changes only what it has read, and what runs is exactly what was shown when the
call was decided on: each question about a call (its kind, title, subject, preview) binds it to the cell as it was seen
then, and `checked` compares again before anything happens. This module must not know which host holds the notebook.
Read `Bound.decide`, `Bound.checked`, then `Bound.execute`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nbagent.core.errors import CutOff, Interrupted, NotebookError, ToolError
from nbagent.core.messages import Block, Json, plain_text
from nbagent.core.ports import Anchor, Cell, CellType, Kernel, Notebook, Output, Ran, is_whole
from nbagent.core.tools import Call, Kind, Result
from nbagent.tools import effects, marks
from nbagent.tools.cells import find_cell, first_line, ran_result, starts_agent
from nbagent.tools.data.pictures import Pictures, looked_at
from nbagent.tools.lasting import LastingCode, Piece, as_tried, looked, within
from nbagent.tools.ledger import Ledger
from nbagent.tools.progress import Saying, of_outputs, watched
from nbagent.tools.results import output_blocks
from nbagent.tools.seen import Places, Seen
from nbagent.tools.times import RunTimes, duration

HURRIED = 2.0
"""Seconds for which the notebook is waited for when the call was cancelled: who stopped it waits, too."""
AGENT_CELL = "it starts with %%agent, and an agent can't run another agent's cell"


@dataclass(frozen=True, slots=True)
class Done:
    """A run of one cell: `ran` is None where it was interrupted; `lost` says what the notebook did not take.

    `far` says how far code that was stopped had come, if it told.
    `cancelled`: the interrupt has cancelled the call's task, and raising `stopped` hands that on.
    """

    ran: Ran | None
    outputs: tuple[Output, ...]
    seconds: float
    lost: str = ""
    said: str = ""
    cancelled: bool = False
    far: str = ""

    def stopped(self, output: str) -> Interrupted | CutOff:
        """Return what to raise where the run was interrupted; `output` is told of the call so far."""
        output = "\n".join(filter(None, (output, self.far)))
        return CutOff(output) if self.cancelled else Interrupted(output)


class Bound:
    """The notebook, the kernel, what the model has seen, and what this run has done. Made anew for each run."""

    def __init__(
        self,
        notebook: Notebook,
        kernel: Kernel,
        *,
        timeout: float | None,
        seen: Seen,
        ledger: Ledger,
        times: RunTimes,
        pictures: Pictures | None = None,
        lasting: LastingCode | None = None,
    ) -> None:
        self.notebook = notebook
        self.kernel = kernel
        self.timeout = timeout
        self.seen = seen
        self.ledger = ledger
        self.times = times
        self.pictures = pictures
        self.lasting = lasting if lasting is not None else LastingCode(None)
        self.places = Places()
        self._shown: dict[str, list[Cell | None]] = {}
        self._amended: set[str] = set()
        self._own: str | None = None

    # ── what is asked about a call ───────────────────────────────────────────────────────────────────────────────────

    def show(self, given: Json) -> Cell | None:
        """Return the call's cell as last seen and bind the call to it; None if it can't be changed.

        Every question about a call comes through here; if two got different answers, the call is refused.
        """
        cell_id = given["cell"].strip()
        cell = self.seen.cells.get(cell_id) if cell_id != self.notebook.own_cell else None
        self._shown.setdefault(cell_id, []).append(cell)
        return cell

    def decide(self, given: Json) -> Cell | None:
        """Do what `show` does for a new decision: its first question, what kind of call this is."""
        cell_id = given["cell"].strip()
        if cell_id in self._amended:
            self._amended.remove(cell_id)
        else:
            self._shown.pop(cell_id, None)
        return self.show(given)

    def shown(self, given: Json) -> Cell:
        """Return what `show` does, or an empty cell."""
        return self.show(given) or Cell("", "code", "", 0)

    def amended(self, given: Json, body: str) -> Json:
        """Put the person's text into an edit; it is decided anew, and stays bound to what they were shown before."""
        self._amended.add(given["cell"].strip())
        return {**given, "source": body}

    def kind_of(self, code: str, cell: Cell | None = None) -> Kind:
        """Return what kind of call it is to run `code` as a cell, `cell` being the one that it runs in."""
        if cell is not None and marks.is_kept(cell):
            return Kind.KEPT
        kind = effects.kind_of(code, Kind.RUN_CELL, self.kernel.namespace())
        return Kind.LONG_RUN if cell is not None and kind is not Kind.PROTECTED and self.times.is_long(cell) else kind

    def caution(self, cell: Cell) -> str:
        """Return why a person should think before this cell runs again, "" where nothing speaks against it."""
        said = ["it is marked “don't rerun”"] if marks.is_kept(cell) else []
        if self.times.is_long(cell):
            said.append(f"its last run took {duration(self.times.last(cell) or 0)}")
        return " and ".join(said)

    def careful(self, cell: Cell) -> str:
        """Return `caution` as the end of a title."""
        said = self.caution(cell)
        return f" ({said})" if said else ""

    def effects(self, code: str) -> tuple[str, ...]:
        """Return what running `code` would do, in plain words."""
        return effects.hints(code, self.kernel.namespace())

    # ── what is done ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def read(self, given: str) -> Cell:
        """Return the cell with the id `given`, outputs included; the error for any other text names the real ids."""
        try:
            return await self.notebook.read(given.strip())
        except NotebookError:
            return await self.notebook.read(find_cell(given, await self.listed()).id)

    async def listed(self) -> list[Cell]:
        """Return all cells, without outputs, and remember their order."""
        cells = await self.notebook.cells()
        self.seen.listing = list(cells)
        return cells

    async def checked(self, given: str, doing: str, *, runs: bool = False) -> Cell:
        """Return the cell that a call may change: not the agent's own, read before, and still as it was shown.

        Where the call `runs` it, what speaks against running it must have been shown too.
        """
        cell = await self.read(given)
        self.may_touch(cell, doing)
        shown = self._shown.pop(cell.id, [])
        if not shown or None in shown:
            raise ToolError(f"you have not read cell {cell.id}: read it first with read_cell, then {doing} it")
        if any(old and old.hash != cell.hash for old in shown):
            raise NotebookError(f"cell {cell.id} changed since you read it: read it again with read_cell, then decide")
        if runs and any(old and self.caution(old) != self.caution(cell) for old in shown):
            raise NotebookError(f"cell {cell.id}: {self.caution(cell)}. Read it again with read_cell, then decide")
        return cell

    def may_touch(self, cell: Cell, doing: str) -> None:
        """Raise ToolError for the agent's own cell, and for one that still runs."""
        if cell.id == self.notebook.own_cell:
            raise ToolError(
                f"cell {cell.id} is your own cell, the one that this task is written in: you can't {doing} it"
            )
        if cell.id == self.lasting.cell:
            raise ToolError(
                f"cell {cell.id} still runs: wait for it or stop it with wait_for_cell before you {doing} it"
            )

    async def insert(
        self, call: Call, source: str, cell_type: CellType, *, after: str | None, before: str | None
    ) -> tuple[Cell, str]:
        """Insert a cell where the call wants it, or near where that was; return it and a sentence's end: where it is."""
        if after and before:
            raise ToolError("give after or before, not both")
        before_that = Seen(listing=self.seen.listing)
        listed = await self.listed() if after else None
        anchor = await self._anchor(after, before, listed)
        metadata = marks.written(call)
        aside = ""
        try:
            cell = await self.notebook.insert(anchor, cell_type, source, metadata=metadata)
        except NotebookError as error:
            gone = anchor.id
            anchor = await self._instead(after or before, anchor, error, before_that)
            aside = f" (cell {gone} is not there any more, so the cell went beside where that was)"
            cell = await self.notebook.insert(anchor, cell_type, source, metadata=metadata)
        self.seen.inserted(self.written(cell, source))
        if after:
            self.places.inserted_after(after.strip(), cell.id, listed or ())
        self.places.inserted(cell.id, anchor)
        if not self.notebook.proposes_only:
            self.ledger.added(cell)
        return cell, f"{anchor.where} {anchor.id}{aside}" if anchor.id else "as the first cell"

    async def _anchor(self, after: str | None, before: str | None, listed: list[Cell] | None) -> Anchor:
        """Return where a new cell goes. Without an anchor: below the last one added, or the agent's own cell, or at the end."""
        if self._own != self.notebook.own_cell:  # another run begins again below its own cell
            self._own, self.places = self.notebook.own_cell, Places()
        if before:
            return Anchor(before.strip(), "before")
        if after:
            return Anchor(self.places.after(after.strip(), listed or ()))
        if last := (self.places.added[-1] if self.places.added else self.notebook.own_cell):
            return Anchor(last)
        cells = await self.listed()
        return Anchor(cells[-1].id if cells else "")

    async def _instead(self, asked: str | None, anchor: Anchor, error: NotebookError, old: Seen) -> Anchor:
        """Return where to insert when `anchor` was not taken: beside where `old` had it; raise where it was invented."""
        cells = await self.listed()
        ids = {cell.id for cell in cells}
        if anchor.id in ids:
            raise error
        if (near := old.near(anchor.id, cells)) is not None:
            return near
        if asked is not None:
            return replace(anchor, id=find_cell(asked, cells).id)
        mine = [*(cell_id for cell_id in reversed(self.places.added) if cell_id in ids), self.notebook.own_cell]
        found = next((cell_id for cell_id in mine if cell_id in ids), None) or (cells[-1].id if cells else "")
        return Anchor(found)

    async def execute(
        self, call: Call, cell: Cell, source: str, did: str, verb: str, limit: float | None = None
    ) -> Result:
        """Run `source` as `cell` and return its result, or how far it is: see `LastingCode.run`.

        `did` begins the sentence for the model, `verb` the summary for people. After `limit` seconds, by which the model
        only tries how far it comes, the code is stopped. Raises `Done.stopped` with the output.
        """
        if starts_agent(source):
            raise ToolError(f"{did}, but it was not run: {AGENT_CELL}")
        piece = Piece(f"cell {cell.id}", f"the cell “{first_line(source, 40)}”", lambda: self.partial(cell.id), cell.id)
        return await self.lasting.run(call, piece, lambda saying: self._execute(saying, cell, source, did, verb, limit))

    async def partial(self, cell_id: str) -> Sequence[Output]:
        """Return the outputs of a cell that runs, as the model may see them; none where the notebook does not answer."""

        async def read() -> Sequence[Output]:
            return (await self.notebook.read(cell_id)).outputs

        return await looked(read)

    async def _execute(
        self, saying: Saying, cell: Cell, source: str, did: str, verb: str, limit: float | None
    ) -> Result:
        done = await self.run(cell, source, saying, limit)
        if done.ran is None:
            raise done.stopped(done.said or (plain_text(output_blocks(done.outputs)) if done.outputs else ""))
        blocks = await self.blocks(done.outputs or done.ran.outputs, f"{did} and ran.")
        said = " ".join(filter(None, (done.lost, done.far)))
        result = ran_result(cell.id, f"{did} and ran", verb, done.ran, blocks, said)
        return as_tried(result, done.ran, limit)

    async def blocks(self, outputs: Sequence[Output], did: str = "") -> list[Block]:
        """Return outputs as the model sees them, with the pictures of figures.

        `did` is told where the call is cancelled meanwhile: what it did has happened.
        """
        try:
            return output_blocks(await looked_at(outputs, self.pictures))
        except asyncio.CancelledError:
            raise CutOff(f"{did}\n{plain_text(output_blocks(outputs))}".strip()) from None

    async def run(self, cell: Cell, source: str, saying: Saying, limit: float | None = None) -> Done:
        """Run `source` as `cell` and say how far it is; the cell gets the outputs as they come and is idle again whatever happens.

        Code is stopped at the time limit, and after `limit` seconds.

        A cancellation is not raised here but in what is returned: the caller raises it with all that the call has done.
        """
        current = (await self.notebook.set_metadata(cell.id, said)) if (said := marks.fresh(cell)) else cell
        sink = await self.notebook.begin_run(cell.id)
        began = time.monotonic()
        ran: Ran | None = None
        said_so_far, lost, cancelled = "", "", False
        outputs: tuple[Output, ...] = ()
        try:
            async with watched(sink.emit, saying) as watch:
                ran = await self.kernel.run(source, emit=watch.emit, timeout=within(limit, self.timeout))
        except Interrupted as interrupt:
            said_so_far = interrupt.output
        except asyncio.CancelledError:
            cancelled = True
        finally:
            seconds = ran.seconds if ran else time.monotonic() - began
            self._ran(replace(current, source=source, number=ran.number if ran else None), ran, seconds)
            try:
                ending = sink.end(ran.number if ran else None)
                outputs = await (asyncio.wait_for(ending, HURRIED) if cancelled else ending)
            except TimeoutError:
                lost = "The outputs did not reach the notebook in time."
            except NotebookError as error:  # the run itself counts, and a cancellation must not be covered by this
                lost = f"The outputs did not reach the notebook: {error}"
        shown = outputs or (ran.outputs if ran else ())
        far = of_outputs(shown) if ran is None or ran.status == "timeout" else None
        return Done(
            ran, outputs, seconds, lost, said_so_far, cancelled, f"It had come to: {far.text()}." if far else ""
        )

    def _ran(self, cell: Cell, ran: Ran | None, seconds: float) -> None:
        ended: Literal["ok", "error", "timeout", "interrupted"] = ran.status if ran else "interrupted"
        self.seen.learn(cell)
        self.ledger.ran(cell, ended)
        self.times.took(cell.id, seconds)

    def written(self, cell: Cell, source: str) -> Cell:
        """Return a cell as the model knows it after writing `source`: it has not seen what the person typed there since."""
        return cell if self.notebook.proposes_only else replace(cell, source=source)

    async def mark_stale(self, cell: Cell, source: str) -> str:
        """Mark the outputs that an edited `cell` (as it was before `source`) still has as old; return a sentence on it, or "".

        A cell that ran and showed nothing is one that has not run again.
        """
        if cell.type != "code" or (cell.number is None and not cell.outputs):
            return ""
        if not is_whole(cell.outputs):
            return " Its outputs are from before the edit; they are too large to be marked so in the notebook."
        try:
            if not cell.outputs:
                not_run = await self.notebook.set_outputs(cell.id, (), None)
                self.seen.learn(self.written(not_run, source))
                self.ledger.edited(not_run)  # known by its id from here on
                return ""
            marked = await self.notebook.set_outputs(cell.id, marks.as_stale(cell.outputs), cell.number)
            self.seen.learn(self.written(marked, source))
        except NotebookError as error:  # the edit is made and must be told
            return f" Its outputs are from before the edit; they could not be marked so: {error}."
        return " Its outputs are from before the edit and are marked as stale until it runs."
