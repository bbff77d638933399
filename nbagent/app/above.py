"""The cells above an agent's cell, now and at the end of an earlier run, and in words what differs.

From the document where a page has it: the sources of code and of text cells, and the texts that code cells show, for the
model is told all of it. Without one the kernel knows only what it executed: then every code cell of then must have been
executed, in that order, and the rest is not compared. Read `here`, then `changes_above` and `changes_of_texts`.
"""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.core.errors import NotebookError
from nbagent.core.messages import Message
from nbagent.core.ports import Cell, Notebook, text_hash
from nbagent.tools.cells import first_line, starts_agent

OUTPUTS_TOLD = 30
"""How many cells' outputs are compared: those right above (see conversation.py: as many are told to the model)."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


@dataclass(frozen=True, slots=True)
class Here:
    """Where a cell stands: its id ("" where no page tells it), the code cells above it, and all cells' ids, if known.

    `labels` name the cells above for people, in their order. `texts` are the sources of the text cells above, with their ids.
    """

    cell: str
    above: tuple[str, ...]
    labels: tuple[str, ...]
    ids: frozenset[str] | None
    above_ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    text_ids: tuple[str, ...] = ()

    def missing(self, cells: Iterable[str]) -> list[str]:
        """Return which of `cells` are not in the notebook; [] where that is not known."""
        return [] if self.ids is None else [cell for cell in cells if cell not in self.ids]

    def is_cell(self, cell: str, above: Sequence[str]) -> bool:
        """Whether a run of `cell`, with those cells above it, was one of this cell.

        By the ids where both are known. Without them a copy of the text can't be told from the cell itself; then the
        agent's cells above it must be the same.
        """
        if cell and self.cell:
            return cell == self.cell
        return [text for text in above if starts_agent(text)] == [text for text in self.above if starts_agent(text)]


async def here(shell: Any, notebook: Notebook | None) -> Here | None:
    """Return where the running cell stands, None where there is no notebook (a terminal) or its page is gone."""
    if getattr(shell, "kernel", None) is None:
        return None
    own = notebook.own_cell if notebook is not None else None
    if notebook is None or notebook.proposes_only or own is None:
        return _executed(shell)
    try:
        cells = await notebook.cells()
    except NotebookError:
        return None
    before = [cell for cell in itertools.takewhile(lambda cell: cell.id != own, cells) if cell.source.strip()]
    above = [cell for cell in before if cell.type == "code"]  # those that Run All would run
    texts = [cell for cell in before if cell.type != "code"]
    return Here(
        own,
        tuple(cell.source.rstrip() for cell in above),
        tuple(_label(cell, place) for place, cell in enumerate(above, 1)),
        frozenset(cell.id for cell in cells),
        tuple(cell.id for cell in above),
        tuple(cell.source.rstrip() for cell in texts),
        tuple(cell.id for cell in texts),
    )


def untold(now: Here, messages: Iterable[Message]) -> tuple[str, ...]:
    """Return those of the text cells above that the model was not shown: no message to it names them.

    Of a long notebook it is told head and tail, and it may list and read the rest.
    """
    left = dict(zip(now.text_ids, now.texts, strict=False))
    for message in messages:
        if left and message["role"] == "user":
            said = json.dumps(message)
            left = {cell: source for cell, source in left.items() if cell not in said}
    return tuple(left.values())


async def shown_above(notebook: Notebook | None, now: Here) -> tuple[str, ...]:
    """Return for each cell above a hash of the text in its outputs, "" for an agent's; () where no page tells them.

    Images are left out (they may differ by a pixel), and so are addresses, which differ in every kernel. Of many cells the
    last ones count: more outputs are not told to the model either.
    """
    if notebook is None or not now.above_ids:
        return ()
    shown: list[str] = [""] * len(now.above_ids)
    told = [place for place, source in enumerate(now.above) if not starts_agent(source)][-OUTPUTS_TOLD:]
    try:
        for place in told:
            shown[place] = text_hash(_text_of(await notebook.read(now.above_ids[place])))
    except NotebookError:
        return ()
    return tuple(shown)


def _text_of(cell: Cell) -> str:
    texts: list[str] = []
    for output in cell.outputs:
        said = output.get("text", output.get("evalue", (output.get("data") or {}).get("text/plain", "")))
        texts.append("".join(map(str, said)) if isinstance(said, list) else str(said))
    return _ADDRESS.sub("0x", "".join(texts))


def _label(cell: Cell, place: int) -> str:
    return f"In[{cell.number}]" if cell.number is not None else f"code cell {place}"


def _executed(shell: Any) -> Here:
    """Return what this kernel executed before the running cell."""
    sources: list[str] = list(shell.history_manager.input_hist_raw)
    ran = [(number, source.rstrip()) for number, source in enumerate(sources[1:-1], 1) if source.strip()]
    return Here("", tuple(source for _, source in ran), tuple(f"In[{number}]" for number, _ in ran), None)


def changes_above(
    then: Sequence[str], now: Here, shown_then: Sequence[str] = (), shown_now: Sequence[str] = ()
) -> list[str]:
    """Return in words how the code cells above, and what they show, differ from `then`; [] where they don't."""
    if now.ids is None:
        return _not_executed(then, now.above)
    if list(then) == list(now.above):
        pairs = zip(now.labels, shown_then, shown_now, strict=False)
        return [f"the output of {label} above changed" for label, old, new in pairs if old and new and old != new]
    changes: list[str] = []
    matcher = difflib.SequenceMatcher(None, list(then), list(now.above), autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        both = min(i2 - i1, j2 - j1)
        changes += [f"{label} above was edited" for label in now.labels[j1 : j1 + both]]
        changes += [f"{label} above is new" for label in now.labels[j1 + both : j2]]
        changes += [f"a cell above is gone: {first_line(source, 40)}" for source in then[i1 + both : i2]]
    return changes


def changes_of_texts(then: Sequence[str], untold_then: Sequence[str], now: Here) -> list[str]:
    """Return in words how the text cells above differ from `then`, but for those that the model was not told of."""
    unseen = set(untold_then)
    changes: list[str] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, list(then), list(now.texts), autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        both = min(i2 - i1, j2 - j1)
        edited, gone = (
            [first_line(source, 40) for source in part if source not in unseen]
            for part in (then[i1 : i1 + both], then[i1 + both : i2])
        )
        changes += [f"a text cell above was edited: {line}" for line in edited]
        changes += [f"a text cell above is new: {first_line(source, 40)}" for source in now.texts[j1 + both : j2]]
        changes += [f"a text cell above is gone: {line}" for line in gone]
    return changes


def _not_executed(then: Sequence[str], ran: Sequence[str]) -> list[str]:
    left = iter(ran)
    for source in then:
        if source not in left:  # goes on from where the last one was found
            return [f"a cell above was not run here as it was then: {first_line(source, 40)}"]
    return []
