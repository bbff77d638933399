"""What a cell says about itself in its metadata and outputs: who wrote it, that it is to be kept, that its outputs are old.

All of ours stands under one key of the metadata, `nbagent`; what is there of others' stays. Pure functions of cells:
no port is called here. A mark may come with a foreign notebook, so none of them ever allows anything. Read `written`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nbagent.core.messages import Json
from nbagent.core.ports import Cell, Output
from nbagent.core.tools import Call

KEY = "nbagent"
STALE = "Outputs from before the last edit"
_STALE_HTML = f'<small style="opacity:0.7">{STALE}</small>'


def ours(cell: Cell) -> Json:
    """Return what nbagent keeps in a cell's metadata, {} where that is nothing or no object."""
    found = cell.metadata.get(KEY)
    return dict(found) if isinstance(found, dict) else {}


def is_agents(cell: Cell) -> bool:
    """Whether an agent wrote or last edited the cell, by its metadata."""
    return "call" in ours(cell) or "run" in ours(cell)


def is_kept(cell: Cell) -> bool:
    """Whether a person marked the cell as one not to be run again without asking (`%agent keep`)."""
    return ours(cell).get("keep") is True


def keeping(cell: Cell, *, on: bool) -> Json:
    """Return the metadata that marks a cell as to be kept, or takes the mark away."""
    return {KEY: {**_without(ours(cell), "keep"), **({"keep": True} if on else {})} or None}


def written(call: Call, before: Cell | None = None, *, stale: bool = False) -> Json:
    """Return the metadata of a cell that `call` writes, over what the cell said `before`: session, run and call.

    `stale` says that its outputs are from before this edit.
    """
    by = {name: value for name, value in (("session", call.session), ("run", call.run), ("call", call.id)) if value}
    kept = _without(ours(before), "stale", "session", "run", "call") if before is not None else {}
    return {KEY: {**kept, **by, **({"stale": True} if stale else {})} or None}


def fresh(cell: Cell) -> Json | None:
    """Return the metadata that no longer calls a cell's outputs old, None where it does not."""
    said = ours(cell)
    return {KEY: _without(said, "stale") or None} if "stale" in said else None


def is_stale(cell: Cell) -> bool:
    """Whether the outputs of a cell (read with its outputs) are from before its last edit.

    The outputs themselves say so: a person who runs the cell again takes the mark away with them, while the flag in the
    metadata stays until we next write there.
    """
    return bool(cell.outputs) and is_marker(cell.outputs[0])


def is_marker(output: Output) -> bool:
    """Whether an output is our mark that those after it are old."""
    metadata = output.get("metadata")
    said = metadata.get(KEY) if isinstance(metadata, dict) else None
    return isinstance(said, dict) and said.get("stale") is True


def as_stale(outputs: Sequence[Output]) -> tuple[Output, ...]:
    """Return outputs under one mark that they are old, however many marks they had."""
    marker: Output = {
        "output_type": "display_data",
        "data": {"text/plain": STALE, "text/html": _STALE_HTML},
        "metadata": {KEY: {"stale": True}},
    }
    return (marker, *(output for output in outputs if not is_marker(output)))


def last_timing(cell: Cell) -> tuple[float, float] | None:
    """Return when the cell's last run ended (seconds since 1970) and how many seconds it took, as JupyterLab wrote it.

    None where it did not: that is a setting of its own, "Record timing". An end that came before the start is of a run
    that was cut off.
    """
    written_down = cell.metadata.get("execution")
    if not isinstance(written_down, dict):
        return None
    began = _moment(written_down.get("iopub.execute_input") or written_down.get("iopub.status.busy"))
    ended = _moment(written_down.get("shell.execute_reply") or written_down.get("iopub.status.idle"))
    return (ended, ended - began) if began is not None and ended is not None and ended >= began else None


def _moment(text: object) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def _without(said: Json, *names: str) -> Json:
    return {name: value for name, value in said.items() if name not in names}
