"""The cell tools that change the notebook: add, edit, delete and move a cell.

What they share, and the promises that they keep, are in bound.py. Read `add_cell`, then `edit_cell`.
"""

from __future__ import annotations

from typing import Literal

from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.messages import Json, text_block
from nbagent.core.ports import Anchor, Cell, Preview
from nbagent.core.tools import Call, Kind, Result, Tool, tool
from nbagent.tools import marks
from nbagent.tools.bound import AGENT_CELL, Bound
from nbagent.tools.cellhints import hint_on
from nbagent.tools.cells import clean_source, find_cell, noted, starts_agent
from nbagent.tools.ledger import label_of
from nbagent.tools.sqlcells import head_of, with_head

_PROPOSED = (
    "This notebook can't be changed from here, so {what} was only proposed to the person{not_run}. Unless they take it, the "
    "notebook is as it was: say in your answer that it is a proposal, and don't report it as done."
)


def edit_tools(bound: Bound) -> list[Tool]:
    """Return `add_cell`, `edit_cell`, `delete_cell` and `move_cell`."""
    return [_add_cell(bound), _edit_cell(bound), _delete_cell(bound), _move_cell(bound)]


def _unless_running(source: str, *, runs: bool, what: str) -> str:
    """Return a rule's subject: code that runs is itself; a rule for a cell that does not run never lets it run."""
    return source if runs else f"({what}, not run)\n{source}"


def _proposed(bound: Bound, what: str, cell: Cell | None = None) -> Result:
    """Return what is said of a change that was only proposed; `cell` is the proposal, which can be changed again."""
    bound.ledger.proposed()
    not_run = " and has not run" if cell is not None and cell.type == "code" else ""
    text = _PROPOSED.format(what=what, not_run=not_run)
    if cell is not None:
        text += f" To change the proposal, edit cell {cell.id}."
    return Result((text_block(text),), f"proposed {what}")


def _add_cell(bound: Bound) -> Tool:
    notebook, seen = bound.notebook, bound.seen

    def runs(given: Json) -> bool:
        return given["run"] and given["cell_type"] == "code" and not notebook.proposes_only

    def source_of(given: Json) -> str:
        return clean_source(given["source"], given["cell_type"])[0]

    def title(given: Json) -> str:
        anchor = given["after"] or given["before"]
        place = f" {'after' if given['after'] else 'before'} {seen.label(anchor)}" if anchor else ""
        does = "propose" if notebook.proposes_only else "add and run" if runs(given) else "add"
        return f"{does} a {given['cell_type']} cell{place}"

    def preview(given: Json) -> Preview:
        source, code = source_of(given), given["cell_type"] == "code"
        hints = bound.effects(source) if code else ()
        language = "sql" if code and head_of(source) else "python" if code else "markdown"
        return Preview("code", source, language=language, effects=hints)

    @tool(
        kind=lambda given: bound.kind_of(source_of(given)) if runs(given) else Kind.EDIT_CELL,
        subject=lambda given: _unless_running(source_of(given), runs=runs(given), what=given["cell_type"]),
        title=title,
        preview=preview,
        exact=True,
        amend="source",
        target=lambda _: "",
    )
    async def add_cell(
        call: Call,
        source: str,
        cell_type: Literal["code", "markdown"] = "code",
        after: str | None = None,
        before: str | None = None,
        run: bool = True,
        limit: float | None = None,
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
            limit: seconds after which it is stopped, to try how far it comes.
        """
        source, note = clean_source(source, cell_type)
        if run and cell_type == "code":
            bound.lasting.free()
        cell, where = await bound.insert(call, source, cell_type, after=after, before=before)
        if notebook.proposes_only:
            return noted(_proposed(bound, f"a {cell_type} cell", cell), note)
        if cell.source != source:
            raise NotebookError(f"cell {cell.id} was added {where}, but holds another text: read it; it has not run")
        did = f"Cell {cell.id} added {where}"
        if cell_type == "code":
            note = " ".join(filter(None, (note, hint_on(source, seen.listing or (), cell.id))))
        if run and cell_type == "code":
            return noted(await bound.execute(call, cell, source, did, "added", limit), note)
        has_not = "" if cell_type == "markdown" else " It has not run."
        return noted(Result((text_block(f"{did}.{has_not}"),), f"added a {cell_type} cell", cells=(cell.id,)), note)

    return add_cell


def _edit_cell(bound: Bound) -> Tool:
    notebook, seen = bound.notebook, bound.seen

    def source_of(given: Json) -> str:
        shown = bound.shown(given)
        return with_head(shown.source, clean_source(given["source"], shown.type)[0])

    def runs(given: Json) -> bool:
        return given["run"] and bound.shown(given).type == "code" and not notebook.proposes_only

    def kind(given: Json) -> Kind:
        cell = bound.decide(given)
        if cell is None:
            return Kind.READ  # nothing can happen: the call will be told to read the cell first
        return bound.kind_of(source_of(given), cell) if runs(given) else Kind.EDIT_CELL

    def title(given: Json) -> str:
        label = seen.label(given["cell"])
        if runs(given):
            return f"edit and run {label}{bound.careful(bound.shown(given))}"
        return f"propose an edit of {label}" if notebook.proposes_only else f"edit {label}"

    def preview(given: Json) -> Preview:
        cell, source = bound.shown(given), source_of(given)
        code = cell.type == "code"
        hints = bound.effects(source) if code else ()
        return Preview("diff", source, old=cell.source, language="python" if code else "markdown", effects=hints)

    @tool(
        kind=kind,
        subject=lambda given: _unless_running(source_of(given), runs=runs(given), what="edit"),
        title=title,
        preview=preview,
        exact=True,
        amend=bound.amended,
        target=lambda given: given["cell"].strip(),
    )
    async def edit_cell(call: Call, cell: str, source: str, run: bool = False, limit: float | None = None) -> Result:
        """Replace the whole source of a cell, e.g. to correct an error. Read the cell first.

        Args:
            cell: the cell's id (not In[n]).
            source: the new whole text of the cell, without ``` fences.
            run: true to run the cell after the edit.
            limit: seconds after which it is stopped, to try how far it comes.
        """
        if run:
            bound.lasting.free()
        found = await bound.checked(cell, "edit", runs=run)
        source, note = clean_source(source, found.type)
        source = with_head(found.source, source)
        label = seen.label(found.id)
        if found.source == source:
            raise NotebookError(
                f"cell {found.id} has exactly that source already, so nothing was changed and nothing ran. To correct "
                "an error send a source that differs; to run the cell as it is use run_cell"
            )
        will_run = run and found.type == "code" and not starts_agent(source) and not notebook.proposes_only
        stale = found.type == "code" and bool(found.outputs) and not will_run
        metadata = marks.written(call, found, stale=stale)
        edited = await notebook.edit(found.id, source, found.hash, metadata=metadata)
        seen.learn(bound.written(edited, source))
        if notebook.proposes_only:
            return noted(_proposed(bound, f"an edit of {label}", edited), note)
        bound.ledger.edited(edited)
        if edited.source != source:
            raise NotebookError(f"cell {found.id} holds another text after the edit: read it again; it has not run")
        did = f"Cell {found.id} edited"
        if will_run:
            return noted(await bound.execute(call, edited, source, did, "edited", limit), note)
        marked = await bound.mark_stale(found, source)
        if run and found.type == "code":
            raise ToolError(f"{did}, but it was not run: {AGENT_CELL}.{marked}")
        has_not = " It has not run since." if found.type == "code" else ""
        return noted(Result((text_block(f"{did}.{has_not}{marked}"),), f"edited {label}", cells=(found.id,)), note)

    return edit_cell


def _delete_cell(bound: Bound) -> Tool:
    notebook, seen = bound.notebook, bound.seen

    def preview(given: Json) -> Preview:
        cell = bound.shown(given)
        return Preview("diff", "", old=cell.source, language="python" if cell.type == "code" else "markdown")

    @tool(
        kind=lambda given: Kind.READ if bound.decide(given) is None else Kind.RUN_CELL,
        title=lambda given: f"{'propose to ' * notebook.proposes_only}delete {seen.label(given['cell'])}",
        preview=preview,
        exact=True,
        target=lambda given: given["cell"].strip(),
    )
    async def delete_cell(_call: Call, cell: str) -> Result:
        """Delete a cell. Read the cell first. Variables that it made stay.

        Args:
            cell: the cell's id (not In[n]).
        """
        found = await bound.checked(cell, "delete")
        label = seen.label(found.id)
        await notebook.delete(found.id, found.hash)
        if notebook.proposes_only:
            return _proposed(bound, f"to delete {label}")
        seen.forget(found.id)
        bound.ledger.deleted(found)
        return Result((text_block(f"Cell {found.id} deleted."),), f"deleted {label}", cells=(found.id,))

    return delete_cell


def _move_cell(bound: Bound) -> Tool:
    notebook, seen = bound.notebook, bound.seen

    def title(given: Json) -> str:
        target = given["after"] or given["before"]
        place = f" {'after' if given['after'] else 'before'} {seen.label(target)}" if target else ""
        return f"{'propose to ' * notebook.proposes_only}move {seen.label(given['cell'])}{place}"

    @tool(kind=Kind.EDIT_CELL, title=title, exact=True, target=lambda given: given["cell"].strip())
    async def move_cell(_call: Call, cell: str, after: str | None = None, before: str | None = None) -> Result:
        """Move a cell to another place. Give exactly one of after and before.

        Args:
            cell: id of the cell to move (not In[n]).
            after: id of the cell to put it after.
            before: id of the cell to put it before.
        """
        if bool(after) == bool(before):
            raise ToolError("give exactly one of after and before: the id of the cell to put it next to")
        every = await bound.listed()
        found, target = find_cell(cell, every), find_cell(after or before or "", every)
        bound.may_touch(found, "move")
        anchor = Anchor(target.id, "after" if after else "before")
        moved = await notebook.move(found.id, anchor)
        if notebook.proposes_only:
            return _proposed(bound, f"to move {label_of(found)}")
        seen.moved(moved)
        bound.places.moved(moved.id)
        said = f"Cell {found.id} moved {anchor.where} {target.id}: it is now cell {moved.index + 1} of {len(every)}."
        return Result((text_block(said),), f"moved {label_of(found)}", cells=(found.id,))

    return move_cell
