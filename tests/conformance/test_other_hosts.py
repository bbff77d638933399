"""The hosts that stand before or in the place of another: proposals where no notebook is reached, and what undo notes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from nbagent.extend.checkpointed import CheckpointedNotebook
from nbagent.extend.checkpoints import Checkpoint, Head
from nbagent.headless.memory import MemoryNotebook
from nbagent.jupyter.proposal import ProposalNotebook
from tests.conformance.notebook_kit import NotebookHost, promise_name, promises

if TYPE_CHECKING:
    from tests.conformance.notebook_kit import Promise

FIRST = {"id": "first", "cell_type": "code", "metadata": {}, "source": "# first", "outputs": [], "execution_count": 1}
PROPOSES = {"write", "run"}


async def nobody_edits(_cell: str, _source: str) -> None:
    raise AssertionError("the person's cells are out of reach")


@pytest.mark.parametrize("promise", promises(PROPOSES), ids=promise_name)
async def test_proposals_keep_the_promises_of_a_host_that_can_only_propose(promise: Promise) -> None:
    offered: list[str] = []
    shell = SimpleNamespace(
        history_manager=SimpleNamespace(input_hist_raw=["", "x = 1", "x + 1"]),
        user_ns={"_oh": {2: 2}},
        set_next_input=lambda text, **_: offered.append(text),
    )
    await promise(NotebookHost(ProposalNotebook(shell), nobody_edits, PROPOSES))


@pytest.mark.slow
@pytest.mark.parametrize("promise", promises(), ids=promise_name)
async def test_a_recorded_notebook_keeps_the_promises_of_the_one_that_it_records(promise: Promise) -> None:
    memory = MemoryNotebook([dict(FIRST)])

    async def user_edit(cell_id: str, source: str) -> None:
        next(raw for raw in memory.cells_ if raw["id"] == cell_id)["source"] = source

    head = Head("run-1", 1.0, "do it", "notebook.ipynb", "first", "kernel")
    await promise(NotebookHost(CheckpointedNotebook(memory, Checkpoint(head)), user_edit))
