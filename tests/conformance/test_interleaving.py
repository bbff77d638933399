"""The person and the agent at work in one notebook, in any order: nothing lands in the wrong place, and undo is exact.

The agent goes through its real cell tools over a notebook that is checkpointed; the person changes the list of cells directly. A
plain model of the notebook is kept beside it. Read `Interleaving`: each rule changes both, each invariant compares.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nbagent.app.restore import Told, restore_cells
from nbagent.core.errors import NotebookError, ToolError
from nbagent.extend.checkpointed import CheckpointedNotebook
from nbagent.extend.checkpoints import Checkpoint, Head
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools import notebook as cell_tools
from tests.tools.calling import Calling
from tests.tools.desk import EchoKernel, raw

OWN = "own"
PICK = st.integers(0, 40)
HEAD = Head("run-1", 1.0, "do it", "notebook.ipynb", OWN, "kernel")


def done(coroutine: Any) -> Any:
    """Run what never really waits: everything here is in memory."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waited")


def reread(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint as it comes back from disk."""
    lines = [json.dumps(record) for record in checkpoint.records()]
    fresh = Checkpoint(checkpoint.head)
    for line in lines[1:]:
        fresh.take(json.loads(line))
    return fresh


class Changing:
    """A notebook port in the place of one that changes: making the tools anew for each run takes most of the time."""

    def __init__(self, now: Any) -> None:
        self.now = now

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now, name)


@dataclass
class Truth:
    """What is true of one cell: its text, and what undo must bring back.

    `text`: as it is now; `mine`: the text that the person (or the time before the run) has last given it, None for a cell
    of the agent's that they never wrote in; `by_agent`: the agent wrote last. The same for runs: `number` and `my_number`, with
    `my_outputs` (as JSON). `agent_wrote`: the agent has edited it in this run.
    """

    text: str
    mine: str | None
    by_agent: bool = False
    number: int | None = None
    my_number: int | None = None
    my_outputs: str = "[]"
    agent_wrote: bool = False


class Interleaving(RuleBasedStateMachine):
    """A notebook of some cells, a run of the agent in it, and the person who goes on working."""

    @initialize(count=st.integers(1, 6))
    def open(self, count: int) -> None:
        cells = [raw(f"c{n}", f"start {n}", number=n + 1) for n in range(count)] + [raw(OWN, "%%agent\ngo")]
        self.notebook = MemoryNotebook(cells, own_cell=OWN)
        self.kernel = EchoKernel()
        self.kernel.ran = [""] * 100
        self.texts = 0
        self.counts = 1000
        self.order = [cell["id"] for cell in cells]
        self.truth = {f"c{n}": Truth(f"start {n}", f"start {n}", number=n + 1, my_number=n + 1) for n in range(count)}
        self.truth[OWN] = Truth("%%agent\ngo", "%%agent\ngo")
        self.desk = Changing(self.notebook)
        self.agent = Calling(cell_tools.tools(self.desk, self.kernel, timeout=5))
        self.read: dict[str, str] = {}
        self.agent_made: set[str] = set()
        self.begin_run()

    def begin_run(self) -> None:
        self.checkpoint = Checkpoint(HEAD)
        self.desk.now = CheckpointedNotebook(self.notebook, self.checkpoint)
        self.first = list(self.order)
        self.person_moved: set[str] = set()
        self.agent_moved: set[str] = set()
        for truth in self.truth.values():
            truth.mine, truth.by_agent, truth.agent_wrote = truth.text, False, False
            truth.my_number = truth.number
        for cell in self.notebook.cells_:
            self.truth[cell["id"]].my_outputs = json.dumps(cell.get("outputs"))
        self.gone: dict[str, Truth] = {}

    # ── what both need ──────────────────────────────────────────────────────────────────────────────────────────────

    def raw(self, cell_id: str) -> dict[str, Any]:
        return next(cell for cell in self.notebook.cells_ if cell["id"] == cell_id)

    def some(self, pick: int) -> str:
        """A cell that is not the agent's own."""
        cells = [cell_id for cell_id in self.order if cell_id != OWN]
        return cells[pick % len(cells)]

    def text(self) -> str:
        self.texts += 1
        return f"text {self.texts}"

    def move(self, cell_id: str, beside: str, where: str) -> None:
        self.order.remove(cell_id)
        self.order.insert(self.order.index(beside) + (where == "after"), cell_id)

    # ── the person ──────────────────────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: len(self.order) > 1)
    @rule(pick=PICK)
    def person_types(self, pick: int) -> None:
        truth, text = self.truth[cell_id := self.some(pick)], self.text()
        self.raw(cell_id)["source"] = truth.text = truth.mine = text
        truth.by_agent = False

    @rule(pick=PICK)
    def person_adds(self, pick: int) -> None:
        place = pick % (len(self.order) + 1)
        text = self.text()
        self.notebook.cells_.insert(place, raw(cell_id := f"p{self.texts}", text))
        self.order.insert(place, cell_id)
        self.truth[cell_id] = Truth(text, text, my_outputs=json.dumps(self.raw(cell_id)["outputs"]))

    @precondition(lambda self: len(self.order) > 2)
    @rule(pick=PICK)
    def person_deletes(self, pick: int) -> None:
        cell_id = self.some(pick)
        self.notebook.cells_.remove(self.raw(cell_id))
        self.order.remove(cell_id)
        del self.truth[cell_id]

    @precondition(lambda self: len(self.order) > 2)
    @rule(pick=PICK, to=PICK)
    def person_moves(self, pick: int, to: int) -> None:
        cell = self.raw(cell_id := self.some(pick))
        self.notebook.cells_.remove(cell)
        self.order.remove(cell_id)
        place = to % (len(self.order) + 1)
        self.notebook.cells_.insert(place, cell)
        self.order.insert(place, cell_id)
        self.person_moved.add(cell_id)

    @precondition(lambda self: len(self.order) > 1)
    @rule(pick=PICK)
    def person_runs(self, pick: int) -> None:
        cell, truth = self.raw(cell_id := self.some(pick)), self.truth[self.some(pick)]
        self.counts += 1
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": f"person ran {cell_id}"}]
        cell["execution_count"] = truth.number = truth.my_number = self.counts
        truth.my_outputs = json.dumps(cell["outputs"])

    # ── the agent ───────────────────────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: len(self.order) > 1)
    @rule(pick=PICK)
    def agent_reads(self, pick: int) -> None:
        done(self.agent("read_cell", cell=(cell_id := self.some(pick))))
        self.read[cell_id] = self.truth[cell_id].text

    @rule(pick=PICK, where=st.sampled_from(["after", "before"]), run=st.booleans())
    def agent_adds(self, pick: int, where: str, run: bool) -> None:
        beside, text = self.order[pick % len(self.order)], self.text()
        chained = self.order[:]
        done(self.agent("add_cell", source=text, run=run, **{where: beside}))
        [new] = [c["id"] for c in self.notebook.cells_ if c["id"] not in chained]
        ids = [c["id"] for c in self.notebook.cells_]
        if where == "before":
            assert ids[ids.index(new) + 1] == beside
        else:  # or right after the last of the cells that it added there before
            assert ids.index(new) > ids.index(beside)
            assert ids[ids.index(new) - 1] in {beside, *self.agent_made}
        self.order.insert(ids.index(new), new)
        self.truth[new] = Truth(
            text, None, by_agent=True, agent_wrote=True, number=len(self.kernel.ran) if run else None
        )
        self.agent_made.add(new)
        self.read[new] = text

    @precondition(lambda self: len(self.order) > 1)
    @rule(pick=PICK, run=st.booleans())
    def agent_edits(self, pick: int, run: bool) -> None:
        truth, text = self.truth[cell_id := self.some(pick)], self.text()
        if self.read.get(cell_id) != truth.text:
            with pytest.raises((ToolError, NotebookError)):
                done(self.agent("edit_cell", cell=cell_id, source=text, run=run))
            return
        done(self.agent("edit_cell", cell=cell_id, source=text, run=run))
        truth.text, truth.by_agent, truth.agent_wrote = text, True, True
        self.read[cell_id] = text
        if run:
            truth.number = len(self.kernel.ran)

    @precondition(lambda self: len(self.order) > 1)
    @rule(pick=PICK)
    def agent_runs(self, pick: int) -> None:
        truth = self.truth[cell_id := self.some(pick)]
        if self.read.get(cell_id) != truth.text:
            with pytest.raises((ToolError, NotebookError)):
                done(self.agent("run_cell", cell=cell_id))
            return
        done(self.agent("run_cell", cell=cell_id))
        truth.number = len(self.kernel.ran)

    @precondition(lambda self: len(self.order) > 2)
    @rule(pick=PICK)
    def agent_deletes(self, pick: int) -> None:
        truth = self.truth[cell_id := self.some(pick)]
        if self.read.get(cell_id) != truth.text:
            with pytest.raises((ToolError, NotebookError)):
                done(self.agent("delete_cell", cell=cell_id))
            return
        done(self.agent("delete_cell", cell=cell_id))
        self.order.remove(cell_id)
        self.gone[cell_id] = self.truth.pop(cell_id)
        del self.read[cell_id]

    @precondition(lambda self: len(self.order) > 2)
    @rule(pick=PICK, to=PICK, where=st.sampled_from(["after", "before"]))
    def agent_moves(self, pick: int, to: int, where: str) -> None:
        cell_id = self.some(pick)
        beside = [other for other in self.order if other != cell_id][to % (len(self.order) - 1)]
        done(self.agent("move_cell", cell=cell_id, **{where: beside}))
        self.move(cell_id, beside, where)
        self.agent_moved.add(cell_id)

    # ── undo and redo ───────────────────────────────────────────────────────────────────────────────────────────────

    def restore(self, checkpoint: Checkpoint) -> Checkpoint:
        reverse = Checkpoint(HEAD)
        notebook = CheckpointedNotebook(self.notebook, reverse)
        done(restore_cells(notebook, reread(checkpoint), Told(), same_kernel=True))
        return reverse

    def seen(self) -> list[tuple[Any, ...]]:
        cells = self.notebook.cells_
        return [(c["id"], c["source"], c.get("execution_count"), json.dumps(c.get("outputs"))) for c in cells]

    @rule()
    def undo_and_redo(self) -> None:
        before = self.seen()
        reverse = self.restore(self.checkpoint)
        self.check_undone({cell_id: number for cell_id, _, number, _ in before})
        undone = self.seen()
        again = self.restore(reverse)
        assert self.seen() == before, "redo gives back what undo took"
        self.restore(again)
        assert self.seen() == undone
        self.follow()
        self.begin_run()

    def check_undone(self, numbers: dict[str, int | None]) -> None:
        cells = {cell["id"]: cell for cell in self.notebook.cells_}
        expected = {i for i, truth in self.truth.items() if truth.mine is not None}
        expected |= {i for i, truth in self.gone.items() if truth.mine is not None}
        assert set(cells) == expected, "what the agent made is gone, what it deleted is back, nothing else is lost"
        for cell_id, truth in {**self.truth, **self.gone}.items():
            if truth.mine is not None:
                assert cells[cell_id]["source"] == truth.mine, "the person's text, and never another's"
                number = cells[cell_id]["execution_count"]
                typed_over = truth.agent_wrote and not truth.by_agent  # they wrote after it: all of the cell stays
                if not (typed_over and number == numbers.get(cell_id, 0)):
                    assert number == truth.my_number, "its last run is the person's again"
                    assert json.dumps(cells[cell_id]["outputs"]) == truth.my_outputs
        order = [cell["id"] for cell in self.notebook.cells_]
        moved = self.person_moved | self.agent_moved | set(self.gone) if self.person_moved else set()
        same = [i for i in self.first if i in cells and i not in moved]
        assert [i for i in order if i in same] == same, "everything stands in its old order"

    def follow(self) -> None:
        """Go on from what undo left."""
        self.order = [cell["id"] for cell in self.notebook.cells_]
        for cell in self.notebook.cells_:
            truth = self.truth.get(cell["id"]) or self.gone.get(cell["id"]) or Truth("", "")
            truth.text, truth.number = cell["source"], cell.get("execution_count")
            self.truth[cell["id"]] = truth
        self.truth = {cell_id: self.truth[cell_id] for cell_id in self.order}

    @invariant()
    def nothing_is_lost_and_nothing_is_elsewhere(self) -> None:
        if not hasattr(self, "order"):
            return
        assert [cell["id"] for cell in self.notebook.cells_] == self.order
        assert {cell["id"]: cell["source"] for cell in self.notebook.cells_} == {
            cell_id: truth.text for cell_id, truth in self.truth.items()
        }

    def teardown(self) -> None:
        if hasattr(self, "order"):
            self.undo_and_redo()


Interleaving.TestCase.settings = hypothesis.settings(
    max_examples=hypothesis.settings.default.max_examples,  # in CI 100 notebooks, each with up to 40 steps
    stateful_step_count=40,
    phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],  # to explain a failure takes minutes
)
TestInterleaving = Interleaving.TestCase
