"""Where no page reaches the notebook's document: cells are proposed, and the record says where to find them.

With widgets there are buttons. Without, text as it comes and typed answers; where the front end takes no input (papermill,
nbconvert) the policy answers, and the record stands in the cell when the run is over. Nothing is left that looks alive.
Must not know of bridges or pages. Read `clicked`, `typed`, `unattended`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nbagent.app.place import Place, WithoutCards
from nbagent.core.events import Event
from nbagent.jupyter.approval import PersonApprover, TypedApprover
from nbagent.jupyter.human import TypedHuman
from nbagent.jupyter.proposal import Proposal, ProposalNotebook
from nbagent.jupyter.refusals import Refusals, RememberingApprover
from nbagent.jupyter.typed import from_front_end
from nbagent.view.appendix import Note, appended, plain
from nbagent.view.fold import ViewModel, fold
from nbagent.view.record import record
from nbagent.view.widget import AgentView

Show = Callable[[Mapping[str, str]], None]
"""Puts a MIME bundle into the cell's one output of ours, in place of what is there."""

BEFORE_A_JOB = (
    "If a job ran this notebook (nbconvert, papermill), its kernel is gone: allow it before the next run, with "
    "`nbagent run … {}`, with the environment variable NBAGENT_ALLOW (one rule a line), or in your settings file."
)
ALONE = "nbagent works. Nobody can be asked here, so its mode and rules decide; the record of the run comes here at the end."


def clicked(notebook: ProposalNotebook, show: Show, view: AgentView, person: PersonApprover) -> Place:
    """A page with widgets that can't reach the notebook's document: buttons, and cells to copy below the record."""

    async def finish(_: int) -> None:
        view.flush()
        if view.view.started:
            show(appended(record(view.view), proposed(notebook.proposals)))

    return Place(view, person, notebook, finish, live=view, human=view.compose)


def typed(notebook: ProposalNotebook, show: Show, shell: Any) -> Place:
    """A person who reads text and types: cells go to the next input and below the text, to be copied."""
    from rich.console import Console

    from nbagent.view.terminal import TerminalView

    show({"text/plain": ""})
    # without a file it writes to whatever sys.stdout is then, which sends to the cell that runs
    view = TerminalView(Console(width=100, color_system=None, force_terminal=False, force_jupyter=False))

    async def finish(_: int) -> None:
        if notes := proposed(notebook.proposals):
            print(f"\n{plain(notes)}")  # noqa: T201  (text is all that this front end shows)

    read = from_front_end(shell)
    return Place(WithoutCards(view), TypedApprover(read=read), notebook, finish, human=TypedHuman(read=read))


def unattended(notebook: ProposalNotebook, show: Show, refusals: Refusals) -> Place:
    """A run that nobody can answer: denied calls are remembered, and the record tells how to allow them."""
    view = _Kept()
    show({"text/plain": ALONE})

    async def finish(_: int) -> None:
        notes = [*proposed(notebook.proposals), *refused(refusals)]
        show(appended(record(view.view), notes) if view.view.started else {"text/plain": ""})

    return Place(view, RememberingApprover(refusals), notebook, finish)


def proposed(proposals: tuple[Proposal, ...]) -> list[Note]:
    """Return what to say of each proposed cell, with its text to copy."""
    return [
        Note(f"Proposed, not added: {p.what}. Copy it from here if the next cell does not hold it:", p.source,
             "python" if p.type == "code" else "markdown")
        for p in proposals
    ]  # fmt: skip


def refused(refusals: Refusals) -> list[Note]:
    """Return how to allow each call that was refused: while this kernel lives, and for a job whose kernel is gone by now."""
    notes = [
        Note(f"Nobody could be asked, so this was refused: {r.approval.title}. To allow exactly that while this kernel "
             f"runs: `{r.command}`, then the agent's cell again.")
        for r in refusals.open
    ]  # fmt: skip
    tools = " ".join(dict.fromkeys(f"--allow {r.approval.tool}" for r in refusals.open))
    return [*notes, Note(BEFORE_A_JOB.format(tools))] if tools else notes


class _Kept:
    """Keeps what happens for the record; nothing is shown meanwhile."""

    def __init__(self) -> None:
        self.view = ViewModel()

    def show(self, event: Event) -> None:
        """Take one event."""
        self.view = fold(self.view, event)
