"""Writes into the record of a run, in its cell's output, whether the run is taken back.

Must not know how that is done. Read `write_down`, then `stamped`.
"""

from __future__ import annotations

import logging
import re
from html import escape
from typing import TYPE_CHECKING, Any

from nbagent.app.undo import Outcome, clock
from nbagent.core.errors import NotebookError
from nbagent.core.ports import Output

if TYPE_CHECKING:
    from nbagent.extend.checkpoints import Head
    from nbagent.jupyter.notebook import LiveNotebook

_log = logging.getLogger("nbagent")

_BANNER = re.compile(r"<!--taken back-->.*?<!--/taken back-->", re.DOTALL)
_FIRST_TAG = re.compile(r"\A\s*<div[^>]*>")
_PLAIN = re.compile(r"\A(?:\*\*)?Taken back at [^\n]*\n\n")
_UNDO, _REDO = "%agent undo</a> takes this run back", "%agent redo</a> does it again"


async def write_down(notebook: LiveNotebook | None, outcome: Outcome) -> bool:
    """Write into the run's record whether it is taken back, and save; return whether the record says it now."""
    head = outcome.head
    if notebook is None or not outcome.did or head is None:
        return False
    try:
        written = head.own_cell is not None and await _stamp(notebook, head.own_cell, head, outcome.text)
        await notebook.save()
    except NotebookError as error:  # its cell is gone, or the page: what was done is done
        _log.info("the record could not be changed: %s", error)
        return False
    return written


async def _stamp(notebook: LiveNotebook, cell_id: str, head: Head, text: str) -> bool:
    cell = await notebook.read(cell_id)
    outputs = [stamped(output, head, text) for output in cell.outputs]
    if list(cell.outputs) == outputs:
        return False
    if cell_id == notebook.own_cell:
        await notebook.set_record(outputs, cell.number)
    else:
        await notebook.set_outputs(cell_id, outputs, cell.number)
    return True


def stamped(output: Output, head: Head, text: str) -> Output:
    """Return an output of the run's cell as it must be now: its record says whether the run is taken back."""
    data = output.get("data")
    html = _joined(data.get("text/html")) if isinstance(data, dict) else ""
    if not isinstance(data, dict) or not re.search(rf'"#nbagent-(?:undo|redo)-{re.escape(head.run)}"', html):
        return output
    back = bool(head.undone)
    html = _BANNER.sub("", html)
    old, new = ("undo", "redo") if back else ("redo", "undo")
    html = html.replace(f'"#nbagent-{old}-{head.run}"', f'"#nbagent-{new}-{head.run}"')
    html = html.replace(*((_UNDO, _REDO) if back else (_REDO, _UNDO)))
    changed: dict[str, Any] = {**data, "text/html": html}
    when = f"Taken back at {clock(head.undone_at)}."
    if back:
        first = _FIRST_TAG.match(html)
        place = first.end() if first else 0
        changed["text/html"] = f"{html[:place]}{_banner(when, text)}{html[place:]}"
    for mime, line in (("text/markdown", f"**{when}**"), ("text/plain", when)):
        if mime in data:
            rest = _PLAIN.sub("", _joined(data[mime]))
            changed[mime] = f"{line}\n\n{rest}" if back else rest
    return {**output, "data": changed}


def _banner(when: str, text: str) -> str:
    lines = "<br>".join(escape(line).replace("  ", "&nbsp; ") for line in text.split("\n")[1:])
    return f"<!--taken back--><p><b>{escape(when)}</b><br>{lines}</p><p>What the run said:</p><!--/taken back-->"


def _joined(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")
