"""The cell tools that run what is in the notebook already: one cell, or all of them in order.

Running all is a permission of its own: the person sees the list, with what each cell took the last time. What they share
with the other cell tools is in bound.py. Read `_Plan`, then `run_all`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from nbagent.core.errors import CutOff, NotebookError, ToolError
from nbagent.core.messages import Block, Json, text_block
from nbagent.core.ports import Cell, Preview
from nbagent.core.tools import Call, Kind, Result, Tool, tool
from nbagent.tools import marks
from nbagent.tools.bound import Bound, Done
from nbagent.tools.cells import describe_outputs, find_cell, first_line, starts_agent
from nbagent.tools.lasting import Piece
from nbagent.tools.ledger import label_of
from nbagent.tools.progress import Saying
from nbagent.tools.times import duration

_ELSEWHERE = "cells of this notebook can't be run from here: the person has to run them"
_INTERRUPTED = "It was interrupted."
_KINDS = (Kind.KEPT, Kind.PROTECTED, Kind.LONG_RUN, Kind.RISKY_CODE)


def run_tools(bound: Bound) -> list[Tool]:
    """Return `run_cell` and `run_all`."""
    return [_run_cell(bound), _run_all(bound)]


def _run_cell(bound: Bound) -> Tool:
    seen = bound.seen

    def kind(given: Json) -> Kind:
        cell = bound.decide(given)
        return Kind.READ if cell is None else bound.kind_of(cell.source, cell)

    def preview(given: Json) -> Preview:
        source = bound.shown(given).source
        return Preview("code", source, effects=bound.effects(source))

    def title(given: Json) -> str:
        careful = bound.careful(bound.shown(given))
        return f"run {seen.label(given['cell'])}{' again' if careful else ''}{careful}"

    @tool(
        kind=kind,
        subject=lambda given: bound.shown(given).source,
        title=title,
        preview=preview,
        exact=True,
        target=lambda given: given["cell"].strip(),
    )
    async def run_cell(call: Call, cell: str, limit: float | None = None) -> Result:
        """Run a code cell that is already in the notebook, as it is. Read the cell first.

        Args:
            cell: the cell's id (not In[n]).
            limit: seconds after which it is stopped, to try how far it comes.
        """
        bound.lasting.free()
        found = await bound.checked(cell, "run", runs=True)
        if found.type != "code":
            raise ToolError(f"cell {found.id} is a {found.type} cell: only code cells run")
        if bound.notebook.proposes_only:
            raise ToolError(_ELSEWHERE)
        return await bound.execute(call, found, found.source, f"Cell {found.id} was not changed", "ran", limit)

    return run_cell


@dataclass(frozen=True, slots=True)
class _Plan:
    """The cells that one call of `run_all` speaks of, in order, and those of them that it leaves out: they are to be kept."""

    all: tuple[Cell, ...] = ()
    kept: tuple[Cell, ...] = ()

    @classmethod
    def of(cls, cells: Sequence[Cell], given: Json, own: str | None) -> _Plan:
        """Choose from all cells of the notebook; raises for an id that is not there."""
        ids = [cell.id for cell in cells]
        start = ids.index(find_cell(given["first"], cells).id) if given["first"] else 0
        end = ids.index(find_cell(given["last"], cells).id) + 1 if given["last"] else len(cells)
        code = [cell for cell in cells[start:end] if cell.type == "code" and cell.source.strip()]
        code = [cell for cell in code if cell.id != own and not starts_agent(cell.source)]
        kept = () if given["kept"] else tuple(cell for cell in code if marks.is_kept(cell))
        return cls(tuple(code), kept)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that run."""
        return tuple(cell for cell in self.all if cell not in self.kept)

    @property
    def source(self) -> str:
        """All that runs, as one text."""
        return "\n\n".join(cell.source for cell in self.cells)

    @property
    def shown(self) -> tuple[object, ...]:
        """What must not have changed between the question and the run."""
        return tuple((cell.id, cell.hash) for cell in self.cells), tuple(cell.id for cell in self.kept)


class _Plans:
    """The plan of the call that comes next, as each question about it saw it."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._shown: list[_Plan | None] = []

    def decide(self, given: Json) -> _Plan | None:
        """Begin a new decision; None where nothing can run: the notebook was not listed, or an id is wrong."""
        self._shown.clear()
        return self.show(given)

    def show(self, given: Json) -> _Plan | None:
        """Return the plan by what was last listed, and bind the call to it."""
        listing = self._bound.seen.listing
        try:
            plan = None if listing is None else _Plan.of(listing, given, self._bound.notebook.own_cell)
        except ToolError:
            plan = None
        self._shown.append(plan)
        return plan

    async def checked(self, given: Json) -> _Plan:
        """Return the plan by what is there now, if it is what was shown."""
        shown, self._shown = self._shown, []
        unread = self._bound.seen.listing is None
        plan = _Plan.of(await self._bound.listed(), given, self._bound.notebook.own_cell)
        if unread or not shown or None in shown:
            raise ToolError("you have not read the notebook: read it first with read_notebook, then run its cells")
        cautions = [self._bound.caution(cell) for cell in plan.cells]
        for old in shown:
            if old and (old.shown != plan.shown or [self._bound.caution(cell) for cell in old.cells] != cautions):
                raise NotebookError("the notebook changed since it was listed: read it again, then call run_all again")
        return plan


def _run_all(bound: Bound) -> Tool:
    plans = _Plans(bound)

    def kind(given: Json) -> Kind:
        plan = plans.decide(given)
        if plan is None or not plan.cells:
            return Kind.READ
        found = {bound.kind_of(cell.source, cell) for cell in plan.cells}
        return next((kind for kind in _KINDS if kind in found), Kind.RUN_ALL)

    def title(given: Json) -> str:
        plan = plans.show(given) or _Plan()
        long = [cell for cell in plan.cells if bound.times.is_long(cell)]
        known = [bound.times.last(cell) or 0.0 for cell in plan.cells]
        took = f" (their last runs took {duration(sum(known))})" if long else ""
        kept = [label_of(cell) for cell in plan.cells if marks.is_kept(cell)]
        marked = f", with {', '.join(kept)} that you marked “don't rerun”" if kept else ""
        return f"run {_count(len(plan.cells))}{marked}{took}"

    def preview(given: Json) -> Preview:
        plan = plans.show(given) or _Plan()
        hints = dict.fromkeys(hint for cell in plan.cells for hint in bound.effects(cell.source))
        return Preview("text", _listed(bound, plan), language="text", effects=tuple(hints))

    @tool(
        kind=kind,
        subject=lambda given: (plans.show(given) or _Plan()).source,
        title=title,
        preview=preview,
        exact=True,
    )
    async def run_all(call: Call, first: str | None = None, last: str | None = None, kept: bool = False) -> Result:
        """Run all code cells of the notebook in order, as they are, and stop at the first error. Read the notebook first.

        Only for when the person wants all of it to run, for example to check that it works from top to bottom. After an
        edit run the cells that need it, with run_cell. Agent cells never run.

        Args:
            first: id of the cell to begin with, instead of the first.
            last: id of the last cell to run, instead of the last of the notebook.
            kept: true to run also the cells that the person marked "don't rerun".
        """
        bound.lasting.free()
        plan = await plans.checked({"first": first, "last": last, "kept": kept})
        if bound.notebook.proposes_only:
            raise ToolError(_ELSEWHERE)
        if not plan.cells:
            raise ToolError(f"there is no code cell to run there. {_left_out(plan)}".strip())
        running = _Running(bound, plan)
        return await bound.lasting.run(call, running.piece, running.to_the_end)

    return run_all


class _Running:
    """One call of `run_all` while it goes: what happened to each cell so far."""

    def __init__(self, bound: Bound, plan: _Plan) -> None:
        self._bound = bound
        self._plan = plan
        self._saying = Saying(_nobody)
        self.piece = Piece("run_all", f"“{_count(len(plan.cells))} in order”", lambda: bound.partial(self.piece.cell))
        self._lines: list[str] = []
        self._ran: list[str] = []

    async def to_the_end(self, saying: Saying) -> Result:
        """Run the cells until one fails, has changed meanwhile, or is interrupted (raises `Interrupted` or `CutOff`)."""
        self._saying = saying
        try:
            return await self._go()
        except CutOff:
            raise
        except asyncio.CancelledError:  # between two cells
            raise CutOff(self._text(_INTERRUPTED)) from None

    async def _go(self) -> Result:
        cells = self._plan.cells
        last: Done | None = None
        for place, cell in enumerate(cells, 1):
            where = f"{place} of {len(cells)}: {label_of(cell)} {first_line(cell.source)}"
            self._saying.now(where)
            self.piece.cell, self.piece.shown = "", ""
            if why := await self._changed(cell):
                self._lines.append(f"- {_name(cell)}: not run: {why}")
                return self._result(stopped=f"It stopped before {label_of(cell)}.")
            self.piece.cell = cell.id
            last = await self._bound.run(cell, cell.source, self._saying.after(where))
            self._ran.append(cell.id)
            self._lines.append(_line(cell, last))
            if last.ran is None:
                raise last.stopped(self._text(_INTERRUPTED) + ("\n" + last.said if last.said else ""))
            if last.ran.status != "ok":
                blocks = await self._bound.blocks(last.outputs or last.ran.outputs)
                return self._result(stopped=f"It stopped at {_name(cell)}: {last.ran.status}.", blocks=blocks)
        return self._result()

    async def _changed(self, cell: Cell) -> str:
        """Return why a cell is not what the person was shown any more, "" where it is."""
        try:
            now = await self._bound.notebook.read(cell.id)
        except NotebookError:
            return "it is gone"
        return "" if now.hash == cell.hash else "it was edited meanwhile"

    def _text(self, stopped: str) -> str:
        cells = self._plan.cells
        head = f"Ran {len(self._ran)} of {_count(len(cells))}, in order."
        rest = [f"- {_name(cell)}: not started" for cell in cells[len(self._lines) :]]
        left = [f"- {_name(cell)}: left out, marked “don't rerun”" for cell in self._plan.kept]
        return "\n".join([f"{head} {stopped}".strip(), *self._lines, *rest, *left])

    def _result(self, *, stopped: str = "", blocks: Sequence[Block] = ()) -> Result:
        total = len(self._plan.cells)
        summary = f"ran {len(self._ran)} of {_count(total)}" if stopped else f"ran {_count(total)}"
        content = (text_block(self._text(stopped)), *blocks)
        return Result(content, summary, is_error=bool(stopped), cells=tuple(self._ran))


def _nobody(_: str) -> None:
    """Nobody waits yet."""


def _line(cell: Cell, done: Done) -> str:
    if done.ran is None:
        return f"- {_name(cell)}: interrupted after {duration(done.seconds)}"
    number = f" as In[{done.ran.number}]" if done.ran.number is not None else ""
    shown = describe_outputs(done.outputs or done.ran.outputs, 120)
    more = f" … (+{len(shown) - 1} more outputs)" if len(shown) > 1 else ""
    outputs = f" → {shown[-1]}{more}" if shown and done.ran.status == "ok" else ""
    lost = f" {done.lost}" if done.lost else ""
    return f"- {_name(cell)}: {done.ran.status}{number} in {duration(done.seconds)}{outputs}{lost}"


def _listed(bound: Bound, plan: _Plan) -> str:
    """Return the list of a plan for the person: number, first line, what the last run took."""
    left = "left out: marked “don't rerun”"
    rows = [
        (label_of(cell), first_line(cell.source), left if cell in plan.kept else _took(bound, cell))
        for cell in plan.all
    ]
    wide = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    return "\n".join(f"{label:<{wide[0]}}  {line:<{wide[1]}}  {took}".rstrip() for label, line, took in rows)


def _took(bound: Bound, cell: Cell) -> str:
    seconds = bound.times.last(cell)
    took = "" if seconds is None else duration(seconds)
    return ", ".join(part for part in (took, "marked “don't rerun”" if marks.is_kept(cell) else "") if part)


def _left_out(plan: _Plan) -> str:
    named = ", ".join(_name(cell) for cell in plan.kept)
    return f"Left out, because the person marked them “don't rerun”: {named}." if named else ""


def _name(cell: Cell) -> str:
    return f"{label_of(cell)} ({cell.id})" if cell.number is not None else f"cell {cell.id}"


def _count(number: int) -> str:
    return f"{number} cell{'s' * (number != 1)}"
