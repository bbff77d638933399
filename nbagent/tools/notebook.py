"""The cell tools: the model reads, adds, changes, moves, deletes and runs cells of the open notebook.

Two promises are kept here. The agent changes only what it has read, and what runs is exactly what was shown when the
call was decided on (`Seen.shown`, set by each tool's `kind`, checked again before anything happens). This module must
not know which host holds the notebook. Read `tools` first, then `_Cells.execute`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from nbagent.core.errors import Interrupted, NotebookError, ToolError
from nbagent.core.messages import Json, plain_text, text_block
from nbagent.core.ports import Anchor, Cell, Kernel, Notebook, Output, Preview, Ran
from nbagent.core.tools import Call, Kind, Result, Tool, tool
from nbagent.tools.cells import Seen, clean_source, find_cell, noted, overview, ran_result, starts_agent
from nbagent.tools.effects import effects, in_words, kind_of
from nbagent.tools.results import output_blocks

_AGENT_CELL = "it starts with %%agent, and an agent can't run another agent's cell"


def tools(notebook: Notebook, kernel: Kernel, *, timeout: float | None) -> list[Tool]:
    """Return the seven cell tools for one open notebook.

    `timeout` is how many seconds one cell may run (None: as long as it takes).
    """
    cells = _Cells(notebook, kernel, timeout)
    return [*_reading(cells), *_writing(cells), *_placing(cells), _running(cells)]


class _Cells:
    """What the seven tools share: the notebook, the kernel, and what the model has seen."""

    def __init__(self, notebook: Notebook, kernel: Kernel, timeout: float | None) -> None:
        self.notebook = notebook
        self.kernel = kernel
        self.timeout = timeout
        self.seen = Seen()
        self._own: str | None = None

    def show(self, given: Json) -> Cell | None:
        """Return the call's cell as last seen and bind the call to its source; None if it can't be changed.

        Every question about a call comes through here; if two got different answers, the call is refused.
        """
        cell_id = given["cell"].strip()
        cell = self.seen.cells.get(cell_id) if cell_id != self.notebook.own_cell else None
        self.seen.shown.setdefault(cell_id, []).append(cell)
        return cell

    def decide(self, given: Json) -> Cell | None:
        """Do what `show` does for a new decision: its first question, what kind of call this is."""
        self.seen.shown.pop(given["cell"].strip(), None)
        return self.show(given)

    def shown(self, given: Json) -> Cell:
        """Return what `show` does, or an empty cell."""
        return self.show(given) or Cell("", "code", "", 0)

    def kind_of(self, code: str) -> Kind:
        """Return what kind of call it is to run `code` as a cell."""
        return kind_of(code, Kind.RUN_CELL, self.kernel.namespace())

    def does(self, code: str) -> str:
        """Return what running `code` might do beyond the notebook, as the end of a title."""
        return in_words(effects(code, self.kernel.namespace()))

    async def checked(self, given: str, doing: str) -> Cell:
        """Return the cell that a call may change: not the agent's own, read before, and still as it was shown."""
        cell = find_cell(given, await self.notebook.cells())
        if cell.id == self.notebook.own_cell:
            raise ToolError(
                f"cell {cell.id} is your own cell, the one that this task is written in: you can't {doing} it"
            )
        shown = self.seen.shown.pop(cell.id, [])
        if not shown or None in shown:
            raise ToolError(f"you have not read cell {cell.id}: read it first with read_cell, then {doing} it")
        if any(old and old.hash != cell.hash for old in shown):
            raise NotebookError(f"cell {cell.id} changed since you read it: read it again with read_cell, then decide")
        return cell

    async def place(self, after: str | None, before: str | None) -> Anchor:
        """Return where a new cell goes; a fresh run begins again below its own cell."""
        if self._own != self.notebook.own_cell:
            self._own, self.seen.last_added = self.notebook.own_cell, None
        if after and before:
            raise ToolError("give after or before, not both")
        cells = await self.notebook.cells()
        if before:
            return Anchor(find_cell(before, cells).id, "before")
        if after:
            return Anchor(self.seen.end_of_chain(cells, find_cell(after, cells).id))
        ids = [cell.id for cell in cells]
        for candidate in (self.seen.last_added, self.notebook.own_cell):
            if candidate in ids:
                return Anchor(candidate)
        return Anchor(ids[-1] if ids else "")

    def added(self, cell: Cell, anchor: Anchor, after: str | None) -> None:
        """Remember a cell inserted at `anchor`, so that the next one comes after it; `after` is what was asked for."""
        self.seen.learn(cell)
        self.seen.last_added = cell.id
        if after:
            self.seen.after.setdefault(after.strip(), set()).add(cell.id)
        for chain in self.seen.after.values():
            if anchor.id in chain:
                chain.add(cell.id)

    async def execute(self, cell: Cell, source: str, did: str, verb: str) -> Result:
        """Run `source` as `cell`; the cell gets the outputs as they come and is idle again whatever happens.

        `did` begins the sentence for the model, `verb` the summary for people. Raises `Interrupted` with the output.
        """
        if starts_agent(source):
            raise ToolError(f"{did}, but it was not run: {_AGENT_CELL}")
        sink = await self.notebook.begin_run(cell.id)
        ran: Ran | None = None
        stop: Interrupted | None = None
        outputs: tuple[Output, ...] = ()
        lost = ""
        try:
            ran = await self.kernel.run(source, emit=sink.emit, timeout=self.timeout)
        except Interrupted as interrupt:
            stop = interrupt
        finally:
            try:
                outputs = await sink.end(ran.number if ran else None)
            except NotebookError as error:  # the run itself counts, and a cancellation must not be covered by this
                lost = f"The outputs did not reach the notebook: {error}"
        self.seen.learn(replace(cell, source=source, number=ran.number if ran else None))
        if ran is None:
            blocks = output_blocks(outputs)
            raise Interrupted((stop.output if stop else "") or (plain_text(blocks) if outputs else "")) from None
        blocks = output_blocks(outputs or ran.outputs)
        return ran_result(cell.id, f"{did} and ran", verb, ran, blocks, lost)

    async def clear_outputs(self, cell: Cell) -> str:
        """Take away outputs that an edited source did not make; return a sentence about it, or ""."""
        if cell.type != "code" or (cell.number is None and not cell.outputs):
            return ""
        await (await self.notebook.begin_run(cell.id)).end(None)
        return " Its old output was cleared, since the new source did not make it."


def _unless_running(source: str, *, runs: bool, what: str) -> str:
    """Return a rule's subject: code that runs is itself; a rule for a cell that does not run never lets it run."""
    return source if runs else f"({what}, not run)\n{source}"


def _reading(cells: _Cells) -> list[Tool]:
    notebook, seen = cells.notebook, cells.seen

    @tool(title=lambda _: "read the notebook", subject=lambda _: "")
    async def read_notebook(_call: Call, start: int = 1, limit: int = 40) -> Result:
        """See the cells of the open notebook, in order: each one's id, type, In[n], source and a line per output.

        Use it first, to learn the cell ids that the other cell tools need. Long cells are shortened: read_cell shows all.

        Args:
            start: the place of the first cell to show, from 1.
            limit: how many cells to show.
        """
        every = await notebook.cells()
        start, limit = max(start, 1), max(limit, 1)
        page = [await notebook.read(cell.id) if cell.type == "code" else cell for cell in every[start - 1 :][:limit]]
        text, whole = overview(page, total=len(every), own=notebook.own_cell)
        for cell in whole:
            seen.learn(cell)
        rest = len(every) - (start - 1 + len(page))
        if rest > 0:
            text += f"\n\n… {rest} more: read_notebook(start={start + len(page)})"
        return Result((text_block(text),), f"{len(page)} of {len(every)} cells")

    @tool(title=lambda given: f"read {seen.label(given['cell'])}")
    async def read_cell(_call: Call, cell: str) -> Result:
        """Read one cell: its whole source and its outputs, images included. Read a cell before you edit or run it.

        Args:
            cell: the cell's id, as read_notebook shows it (not In[n]).
        """
        found = await notebook.read(find_cell(cell, await notebook.cells()).id)
        seen.learn(found)
        number = f" In[{found.number}]" if found.number is not None else ""
        head = f"Cell {found.id} ({found.type}{number}), source:\n{found.source or '(empty)'}"
        if found.type != "code":
            return Result((text_block(head),), seen.label(found.id))
        said = output_blocks(found.outputs) if found.outputs else [text_block("(no output)")]
        return Result((text_block(f"{head}\n\nOutputs:"), *said), seen.label(found.id))

    return [read_notebook, read_cell]


def _writing(cells: _Cells) -> list[Tool]:
    return [_add_cell(cells), _edit_cell(cells)]


def _add_cell(cells: _Cells) -> Tool:
    notebook = cells.notebook

    def runs(given: Json) -> bool:
        return given["run"] and given["cell_type"] == "code" and not notebook.proposes_only

    def source_of(given: Json) -> str:
        return clean_source(given["source"], given["cell_type"])[0]

    @tool(
        kind=lambda given: cells.kind_of(source_of(given)) if runs(given) else Kind.EDIT_CELL,
        subject=lambda given: _unless_running(source_of(given), runs=runs(given), what=given["cell_type"]),
        title=lambda given: (
            f"add and run a code cell{cells.does(source_of(given))}"
            if runs(given)
            else f"add a {given['cell_type']} cell"
        ),
        preview=lambda given: Preview(
            "code", source_of(given), language="python" if given["cell_type"] == "code" else "markdown"
        ),
        exact=True,
    )
    async def add_cell(
        _call: Call,
        source: str,
        cell_type: Literal["code", "markdown"] = "code",
        after: str | None = None,
        before: str | None = None,
        run: bool = True,
    ) -> Result:
        """Add a new cell to the notebook and run it. This is how you do work: one small step in one cell.

        The variables that the code makes stay, and you get the output back. Without after and before the cell goes
        below the last one that you added.

        Args:
            source: the whole text of the cell, without ``` fences.
            cell_type: "code" for Python, "markdown" for text.
            after: id of the cell to put it after.
            before: id of the cell to put it before.
            run: false to add the code without running it. Markdown never runs.
        """
        source, note = clean_source(source, cell_type)
        anchor = await cells.place(after, before)
        cell = await notebook.insert(anchor, cell_type, source)
        where = f"{anchor.where} {anchor.id}" if anchor.id else "as the first cell"
        if notebook.proposes_only:
            said = f"The cell was proposed, not inserted; it has not run. The person must accept it. {note}"
            return Result((text_block(said.strip()),), "proposed a cell")
        cells.added(cell, anchor, after)
        if cell.source != source:
            raise NotebookError(f"cell {cell.id} was added {where}, but holds another text: read it; it has not run")
        did = f"Cell {cell.id} added {where}"
        if run and cell_type == "code":
            return noted(await cells.execute(cell, source, did, "added"), note)
        has_not = "" if cell_type == "markdown" else " It has not run."
        return noted(Result((text_block(f"{did}.{has_not}"),), f"added a {cell_type} cell", cells=(cell.id,)), note)

    return add_cell


def _edit_cell(cells: _Cells) -> Tool:
    notebook, seen = cells.notebook, cells.seen

    def source_of(given: Json) -> str:
        return clean_source(given["source"], cells.shown(given).type)[0]

    def runs(given: Json) -> bool:
        return given["run"] and cells.shown(given).type == "code" and not notebook.proposes_only

    def kind(given: Json) -> Kind:
        if cells.decide(given) is None:
            return Kind.READ  # nothing can happen: the call will be told to read the cell first
        return cells.kind_of(source_of(given)) if runs(given) else Kind.EDIT_CELL

    def title(given: Json) -> str:
        label = seen.label(given["cell"])
        return f"edit and run {label}{cells.does(source_of(given))}" if runs(given) else f"edit {label}"

    def preview(given: Json) -> Preview:
        language = "python" if cells.shown(given).type == "code" else "markdown"
        return Preview("diff", source_of(given), old=cells.shown(given).source, language=language)

    @tool(
        kind=kind,
        subject=lambda given: _unless_running(source_of(given), runs=runs(given), what="edit"),
        title=title,
        preview=preview,
        exact=True,
    )
    async def edit_cell(_call: Call, cell: str, source: str, run: bool = False) -> Result:
        """Replace the whole source of a cell, e.g. to correct an error. Read the cell first.

        Args:
            cell: the cell's id (not In[n]).
            source: the new whole text of the cell, without ``` fences.
            run: true to run the cell after the edit.
        """
        found = await cells.checked(cell, "edit")
        source, note = clean_source(source, found.type)
        label = seen.label(found.id)
        before = await notebook.read(found.id)
        if before.source == source:
            raise NotebookError(
                f"cell {found.id} has exactly that source already, so nothing was changed and nothing ran. To correct "
                "an error send a source that differs; to run the cell as it is use run_cell"
            )
        edited = await notebook.edit(found.id, source, found.hash)
        if notebook.proposes_only:
            return Result((text_block("The edit was proposed, not made; nothing has run."),), "proposed an edit")
        seen.learn(edited)
        if edited.source != source:
            raise NotebookError(f"cell {found.id} holds another text after the edit: read it again; it has not run")
        did = f"Cell {found.id} edited"
        if run and found.type == "code":
            return noted(await cells.execute(edited, source, did, "edited"), note)
        cleared = await cells.clear_outputs(before) if edited.source != before.source else ""
        has_not = " It has not run since." if found.type == "code" else ""
        return noted(Result((text_block(f"{did}.{has_not}{cleared}"),), f"edited {label}", cells=(found.id,)), note)

    return edit_cell


def _placing(cells: _Cells) -> list[Tool]:
    notebook, seen = cells.notebook, cells.seen

    @tool(
        kind=lambda given: Kind.READ if cells.decide(given) is None else Kind.RUN_CELL,
        title=lambda given: f"delete {seen.label(given['cell'])}",
        preview=lambda given: Preview("diff", "", old=cells.shown(given).source),
        exact=True,
    )
    async def delete_cell(_call: Call, cell: str) -> Result:
        """Delete a cell. Read the cell first. Variables that it made stay.

        Args:
            cell: the cell's id (not In[n]).
        """
        found = await cells.checked(cell, "delete")
        label = seen.label(found.id)
        await notebook.delete(found.id, found.hash)
        if notebook.proposes_only:
            return Result((text_block("The deletion was proposed, not made."),), "proposed a deletion")
        seen.cells.pop(found.id, None)
        return Result((text_block(f"Cell {found.id} deleted."),), f"deleted {label}", cells=(found.id,))

    @tool(kind=Kind.EDIT_CELL, title=lambda given: f"move {seen.label(given['cell'])}", exact=True)
    async def move_cell(_call: Call, cell: str, after: str | None = None, before: str | None = None) -> Result:
        """Move a cell to another place. Give exactly one of after and before.

        Args:
            cell: id of the cell to move (not In[n]).
            after: id of the cell to put it after.
            before: id of the cell to put it before.
        """
        if bool(after) == bool(before):
            raise ToolError("give exactly one of after and before: the id of the cell to put it next to")
        every = await notebook.cells()
        found, target = find_cell(cell, every), find_cell(after or before or "", every)
        anchor = Anchor(target.id, "after" if after else "before")
        if found.id == notebook.own_cell:
            raise ToolError(
                f"cell {found.id} is your own cell, the one that this task is written in: you can't move it"
            )
        moved = await notebook.move(found.id, anchor)
        if notebook.proposes_only:
            return Result((text_block("The move was proposed, not made."),), "proposed a move")
        said = f"Cell {found.id} moved {anchor.where} {target.id}: it is now cell {moved.index + 1} of {len(every)}."
        return Result((text_block(said),), f"moved {seen.label(found.id)}", cells=(found.id,))

    return [delete_cell, move_cell]


def _running(cells: _Cells) -> Tool:
    seen = cells.seen

    def kind(given: Json) -> Kind:
        cell = cells.decide(given)
        return Kind.READ if cell is None else cells.kind_of(cell.source)

    @tool(
        kind=kind,
        subject=lambda given: cells.shown(given).source,
        title=lambda given: f"run {seen.label(given['cell'])}{cells.does(cells.shown(given).source)}",
        preview=lambda given: Preview("code", cells.shown(given).source),
        exact=True,
    )
    async def run_cell(_call: Call, cell: str) -> Result:
        """Run a code cell that is already in the notebook, as it is. Read the cell first.

        Args:
            cell: the cell's id (not In[n]).
        """
        found = await cells.checked(cell, "run")
        if found.type != "code":
            raise ToolError(f"cell {found.id} is a {found.type} cell: only code cells run")
        if cells.notebook.proposes_only:
            raise ToolError("cells of this notebook can't be run from here: the person has to run them")
        return await cells.execute(found, found.source, f"Cell {found.id} was not changed", "ran")

    return run_cell
