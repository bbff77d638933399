"""Tells a conversation which cells of the notebook ran in an earlier kernel, which variables are gone, and how to get them back.

The numbers and outputs in a notebook outlive its kernel, so they look as if everything were there. Read `gone_with`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.core.errors import NotebookError
from nbagent.core.messages import Message
from nbagent.core.ports import Cell, Notebook
from nbagent.tools.cellcode import split
from nbagent.tools.cells import starts_agent
from nbagent.tools.reads import reads

_NAMED = 12
_NAMES = 40
_LOADS = "%load_ext nbagent"
_SCRATCH = "run_python"

RESTARTED = (
    "The kernel was restarted, or is another one, since the messages above: no variable, import, open file or thread of then is "
    "there any more, nor are long results that were kept under a reference. Files and cells are as they were left. Calls "
    "that were cut off were not run again, and must not be taken for done."
)
_OFFER = (
    "If the task needs any of these, offer to rebuild them: run those cells again in this order, from the first one that is "
    "needed (run_cell, or run_all for many). Say so first where one takes long or changes something outside of the kernel."
)


@dataclass(frozen=True, slots=True)
class Gone:
    """What a new kernel has not: `told` is for the model ("" for nothing), `names` are the variables that are known."""

    told: str = ""
    names: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The sentence for the person, "" where no variable is known to be gone."""
        if not self.names:
            return ""
        named = ", ".join(self.names[:_NAMED]) + (" …" if len(self.names) > _NAMED else "")
        return f"The kernel was restarted since these were made: {named}. The agent knows which cells made them."


async def gone_with(notebook: Notebook | None, shell: Any, messages: Sequence[Message] = ()) -> Gone:
    """Return what is gone of what cells made in another kernel; `messages` are those of a session that goes on from there."""
    cells: list[Cell] = []
    if notebook is not None and not notebook.proposes_only:
        try:
            cells = await notebook.cells()
        except NotebookError:
            pass
    history: Sequence[str] = shell.history_manager.input_hist_raw
    gone = gone_of([cell for cell in cells if cell.type == "code" and cell.number is not None], history)
    made = made_by(gone, shell.user_ns)
    loose = tuple(
        name
        for name in scratch_names(messages)
        if name not in shell.user_ns and not any(name in names for names in made.values())
    )
    lines = [RESTARTED] if messages else []
    lines += [sentence(gone)] if gone else []
    if made or loose:
        lines.append(_rebuild(gone, made, loose))
    names = tuple(dict.fromkeys([*(name for names in made.values() for name in names), *loose]))
    return Gone("\n\n".join(lines), names)


def said_of(ran: Sequence[Cell], history: Sequence[str]) -> str:
    """Return the sentence for executed cells, and what this kernel has run, by number from 1 on ([0] is nothing)."""
    gone = gone_of(ran, history)
    return sentence(gone) if gone else ""


def gone_of(ran: Sequence[Cell], history: Sequence[str]) -> list[Cell]:
    """Return those of the executed cells that did not run in this kernel, in the notebook's order."""
    ran = [cell for cell in ran if not starts_agent(cell.source) and cell.source.strip() != _LOADS]
    here = {source.strip() for source in history}
    known = [cell for cell in ran if cell.source.strip() in here and not cell.source.lstrip().startswith("%")]
    late = [cell for cell in ran if (cell.number or 0) >= len(history)]  # this kernel has not come so far
    return list(late if known else ran)


def sentence(gone: Sequence[Cell]) -> str:
    """Return in words that these cells ran in another kernel."""
    named = ", ".join(f"In[{cell.number}] (cell {cell.id})" for cell in gone[:_NAMED])
    more = f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
    return (
        "The kernel was restarted, or is another one, since these cells ran: the variables that they made are gone unless "
        f"they were made anew. {named}{more}. Look at what is there (list_variables) before you use it."
    )


def made_by(gone: Sequence[Cell], there: Container[str]) -> dict[str, tuple[str, ...]]:
    """Return by cell the names that it binds and that are not `there`; in the order in which they ran."""
    found = {cell.id: _bound(cell.source) for cell in sorted(gone, key=lambda cell: cell.number or 0)}
    missing = {cell: tuple(name for name in names if name not in there) for cell, names in found.items()}
    return {cell: names for cell, names in missing.items() if names}


def scratch_names(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the names that the conversation's own scratch code bound: no cell makes them."""
    names: dict[str, None] = {}
    failed = {
        block["tool_use_id"]
        for message in messages
        for block in message["content"]
        if block.get("type") == "tool_result" and block.get("is_error")
    }
    for message in messages:
        for block in message["content"]:
            if block.get("type") == "tool_use" and block.get("name") == _SCRATCH and block["id"] not in failed:
                names.update(dict.fromkeys(_bound(str(block["input"].get("code") or ""))))
    return tuple(names)


def _bound(source: str) -> tuple[str, ...]:
    """Return the names that a cell's code binds, as far as its text tells; private ones are left out."""
    tree = split(source).tree
    if tree is None:
        return ()
    import ast

    return tuple(sorted(name for name in reads(ast.unparse(tree)).bound if not name.startswith("_")))


def _rebuild(gone: Sequence[Cell], made: Mapping[str, tuple[str, ...]], loose: Sequence[str]) -> str:
    numbers = {cell.id: cell.number for cell in gone}
    lines = [f"- In[{numbers[cell]}] (cell {cell}): {_listed(names)}" for cell, names in list(made.items())[:_NAMED]]
    if len(made) > _NAMED:
        lines.append(f"- and {len(made) - _NAMED} more cells")
    if loose:
        lines.append(f"- {_SCRATCH} in this conversation (no cell holds its code): {_listed(loose)}")
    return "\n".join(["Names that are gone, by what made them, in the order in which that ran:", *lines, _OFFER])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")
