"""What the file tools do with notebooks: read one as cells, change the source of a cell, write a whole one. Never raw text.

The notebook that is open in this run is left to the cell tools: its page would write over the file, or lose what is in
the editor. It must not know of policy or of previews. Read `edit`, then `is_open`.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.messages import Json, clean
from nbagent.core.ports import Cell, Notebook
from nbagent.core.tools import Call
from nbagent.tools import ipynb, marks
from nbagent.tools.cells import clean_source, overview
from nbagent.tools.ipynb import CellText, NotebookText
from nbagent.tools.keeping import Keeper
from nbagent.tools.paths import Place

SUFFIX = ".ipynb"
MOST = 64 * 1024 * 1024


def is_notebook(place: Place) -> bool:
    """Whether a path is that of a notebook, by its name."""
    return place.path.suffix.lower() == SUFFIX


def is_open(place: Place, root: Path, notebook: Notebook | None) -> bool:
    """Whether a path is that of the open notebook of this run, as far as its path can tell.

    A page knows its notebook by a path that begins at the server's root, which need not be the working folder.
    """
    if notebook is None or not notebook.path:
        return False
    said = notebook.path
    if os.path.realpath(root / said) == str(place.path):
        return True
    parts = tuple(part for part in PurePosixPath(said.partition(":")[2] or said).parts if part not in {"/", "."})
    same = place.path.parts[-len(parts) :] == parts
    return same and (len(parts) > 1 or str(place.path.parent) == os.path.realpath(root))


def refuse_open(place: Place, root: Path, notebook: Notebook | None) -> None:
    """Raise `ToolError` for the open notebook of this run."""
    if is_open(place, root, notebook):
        raise ToolError(
            f"{place.shown} is the open notebook of this run, and writing its file would lose what is in the editor: "
            "use the cell tools (read_notebook, add_cell, edit_cell)"
        )


def read(place: Place) -> str:
    """Return a notebook as the numbered overview of its cells; images and tables don't come as raw JSON."""
    keeper = Keeper(place.path, place.shown)
    data = keeper.content()
    if data is None:
        raise ToolError(f"{place.shown}: no such file")
    cells = [_cell(cell, index) for index, cell in enumerate(ipynb.read(data, place.shown).cells)]
    return clean(overview(cells, total=len(cells), own=None)[0])


def write(keeper: Keeper, content: str) -> str:
    """Write a whole notebook, new or over an old one, and return what was done; anything but valid nbformat 4 is refused."""
    data = keeper.content()
    old = ipynb.read(data, keeper.shown) if data is not None else None
    try:
        new = keeper.write(clean(content), old)
    except NotebookError as error:
        if "is not JSON" not in str(error):
            raise
        raise NotebookError(
            f"{error}. A notebook file holds nbformat JSON; its cells are changed with edit_file"
        ) from None
    return f"wrote {keeper.shown}: {len(new.cells)} cells"


def edit(keeper: Keeper, call: Call, old_text: str, new_text: str, *, every: bool) -> str:
    """Replace a piece of text in the source of a cell, and return what was done; everything else stays as it is.

    Outputs of a code cell that is changed are marked as old. Raises `ToolError` unless the text is in exactly one place.
    """
    data = keeper.content()
    if data is None:
        raise ToolError(f"{keeper.shown}: no such file")
    if not old_text:
        raise ToolError("old_text is empty: say which text of a cell to replace")
    notebook = ipynb.read(data, keeper.shown)
    old_text = old_text.replace("\r\n", "\n")
    sources = [ipynb.normal(cell.raw["source"]) for cell in notebook.cells]
    count = sum(source.count(old_text) for source in sources)
    if not count:
        raise ToolError(f"old_text is in no cell of {keeper.shown}: read it with read_file and copy the text exactly")
    if count > 1 and not every:
        raise ToolError(f"old_text is {count} times in {keeper.shown}: give more lines around it, or replace_all=true")
    changed = [
        (cell, _edited(cell, index, call, clean_source(source.replace(old_text, new_text), cell.raw["cell_type"])[0]))
        for index, (cell, source) in enumerate(zip(notebook.cells, sources, strict=True))
        if old_text in source
    ]
    _put(keeper, notebook, changed)
    places = ", ".join(str(notebook.cells.index(cell) + 1) for cell, _ in changed)
    return f"edited {keeper.shown} in {count} place(s): cell {places}. Nothing was run; old outputs are marked as such"


def _put(keeper: Keeper, notebook: NotebookText, changed: list[tuple[CellText, Json]]) -> None:
    now = {id(cell): raw for cell, raw in changed}
    cells = [(cell, now.get(id(cell), _as_it_is(cell))) for cell in notebook.cells]
    keeper.write(ipynb.written(notebook, cells), notebook, [raw for _, raw in changed])


def _as_it_is(cell: CellText) -> Json:
    return {**cell.raw, "source": ipynb.normal(cell.raw["source"])}


def _edited(cell: CellText, index: int, call: Call, source: str) -> Json:
    before = _cell(cell, index)
    stale = before.type == "code" and bool(before.outputs)
    metadata = {**before.metadata, **marks.written(call, before, stale=stale)}
    raw = {**cell.raw, "source": source, "metadata": {k: v for k, v in metadata.items() if v is not None}}
    return raw | ({"outputs": list(marks.as_stale(before.outputs))} if stale else {})


def _cell(cell: CellText, index: int) -> Cell:
    raw = cell.raw
    return Cell(
        id=str(raw.get("id", f"#{index + 1}")),
        type=raw["cell_type"],
        source=ipynb.normal(raw["source"]),
        index=index,
        number=raw.get("execution_count"),
        outputs=tuple(raw.get("outputs", ())),
        metadata=dict(raw.get("metadata", {})),
    )
