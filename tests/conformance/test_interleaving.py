"""The person and the agent at work in one notebook at the same time: nothing lands in the wrong place, and undo is exact.

The agent goes through its real cell tools over a notebook that is checkpointed. The person acts between its calls and
inside of them: while it is asked, between any two things that a tool does, while code runs. What the agent does is seen
by comparing the notebook before and after, and each of its changes must be one that the call which runs may make. Read
`Interleaving.look`, then `agent_edits`.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from nbagent.app.restore import Told, restore_cells
from nbagent.core.errors import ToolError
from nbagent.core.messages import plain_text
from nbagent.extend.checkpointed import CheckpointedNotebook
from nbagent.extend.checkpoints import Checkpoint, Head
from nbagent.tools import notebook as cell_tools
from tests.conformance.two_hands import BusyKernel, Truth, TwoHands, shown
from tests.tools.calling import Calling
from tests.tools.desk import raw

OWN = "own"
PICK = st.integers(0, 40)
ACT = st.tuples(st.sampled_from(["types", "types", "adds", "deletes", "moves", "clears", "retypes"]), PICK, PICK)
MEANWHILE = st.dictionaries(st.integers(0, 16), ACT, max_size=3)
"""At which of its turns inside a call the person does what."""
HEAD = Head("run-1", 1.0, "do it", "notebook.ipynb", OWN, "kernel")
PHASES = [hypothesis.Phase.generate, hypothesis.Phase.shrink]  # to explain a failure takes minutes
INTERLEAVINGS = 1000
"""How many calls of the agent's must have had the person act inside of them (issue 3)."""


def done(coroutine: Any) -> Any:
    """Run what never really waits: everything here is in memory."""
    return asyncio.run(asyncio.wait_for(coroutine, 10))


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
class Doing:
    """The call that runs: what it may change. `met`: the person acted inside, `shifted`: on where cells are.

    `did`: it has changed a text or the cells.
    """

    name: str = ""
    given: dict[str, Any] = field(default_factory=dict)
    met: bool = False
    shifted: bool = False
    did: bool = False
    made: str = ""
    ran: set[str] = field(default_factory=set)

    @property
    def undoing(self) -> bool:
        """Whether it is no call but an undo, which may touch every cell where the agent was last."""
        return self.name == "undo"

    def changes(self, tool: str, cell: str) -> bool:
        """Whether it is a call of `tool` on `cell`."""
        return self.name == tool and self.given["cell"] == cell


class Interleaving(RuleBasedStateMachine):
    """A notebook of some cells, a run of the agent in it, and the person who goes on working."""

    met = 0

    @initialize(count=st.integers(1, 6))
    def open(self, count: int) -> None:
        cells = [raw(f"c{n}", f"start {n}", number=n + 1) for n in range(count)] + [raw(OWN, "%%agent\ngo")]
        self.notebook = TwoHands(cells, own_cell=OWN)
        self.notebook.turn = self.turn
        self.kernel = BusyKernel(self.notebook)
        self.kernel.ran = [""] * 100
        self.texts = 0
        self.counts = 1000
        self.order = [cell["id"] for cell in cells]
        self.truth = {cell["id"]: Truth.of(cell, cell["source"]) for cell in cells}
        self.desk = Changing(self.notebook)
        self.agent = Calling(cell_tools.tools(self.desk, self.kernel, timeout=5))
        self.read: dict[str, set[str]] = {}
        self.agent_made: set[str] = set()
        self.doing = Doing()
        self.meanwhile: dict[int, tuple[str, int, int]] = {}
        self.turns = 0
        self.begin_run()

    def begin_run(self) -> None:
        self.checkpoint = Checkpoint(HEAD)
        self.desk.now = CheckpointedNotebook(self.notebook, self.checkpoint)
        self.first = list(self.order)
        self.person_moved: set[str] = set()
        self.agent_moved: set[str] = set()
        self.truth = {cell["id"]: Truth.of(cell, cell["source"]) for cell in self.notebook.cells_}
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

    # ── the person ──────────────────────────────────────────────────────────────────────────────────────────────────

    def turn(self) -> None:
        """See what the agent has done, then let the person do what they do at this moment."""
        self.look()
        act = self.meanwhile.pop(self.turns, None)
        self.turns += 1
        if act is not None and self.act(*act):
            self.doing.met = True
            self.doing.shifted = self.doing.shifted or act[0] in ("moves", "deletes")

    def act(self, name: str, pick: int, to: int) -> bool:
        """Let the person do one thing, if they can."""
        if name != "adds" and len(self.order) <= 1 + (name == "deletes"):
            return False
        {"types": self.types, "adds": self.adds, "deletes": self.deletes, "clears": self.clears,
         "moves": lambda pick: self.moves(pick, to), "retypes": self.retypes}[name](pick)  # fmt: skip
        self.order = [cell["id"] for cell in self.notebook.cells_]
        return True

    def types(self, pick: int) -> None:
        truth, text = self.truth[cell_id := self.some(pick)], self.text()
        self.raw(cell_id)["source"] = truth.text = truth.mine = text
        truth.by_agent = False
        truth.loose = (
            truth.loose or cell_id in self.agent_made
        )  # of such a cell they made the text, and the agent the run

    def adds(self, pick: int) -> None:
        cell = raw(f"p{self.texts}", text := self.text())
        self.notebook.cells_.insert(pick % (len(self.order) + 1), cell)
        self.truth[cell["id"]] = Truth.of(cell, text)

    def deletes(self, pick: int) -> None:
        self.notebook.cells_.remove(self.raw(cell_id := self.some(pick)))
        del self.truth[cell_id]

    def moves(self, pick: int, to: int) -> None:
        cell = self.raw(cell_id := self.some(pick))
        self.notebook.cells_.remove(cell)
        self.notebook.cells_.insert(to % len(self.order), cell)
        self.person_moved.add(cell_id)

    def clears(self, pick: int) -> None:
        """Clear a cell's outputs, and with them its count."""
        cell = self.raw(self.some(pick))
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
        self.shows(cell)

    def retypes(self, pick: int) -> None:
        """Make Markdown of a cell or code: the page puts another cell with the same id and text in its place."""
        old = self.raw(cell_id := self.some(pick))
        kind = "markdown" if old["cell_type"] == "code" else "code"
        new = {**raw(cell_id, old["source"], kind), "metadata": old["metadata"]}
        self.notebook.cells_[self.notebook.cells_.index(old)] = new
        truth = self.truth[cell_id]
        truth.kind, truth.retyped = kind, True
        self.shows(new)

    def shows(self, cell: dict[str, Any]) -> None:
        """Note that what a cell shows is the person's doing."""
        truth = self.truth[cell["id"]]
        truth.number, truth.outputs = truth.my_number, truth.my_outputs = shown(cell)
        truth.loose = truth.loose or bool(self.doing.name)

    @rule(act=ACT)
    def person_acts(self, act: tuple[str, int, int]) -> None:
        self.act(*act)

    @precondition(lambda self: len(self.order) > 1)
    @rule(pick=PICK)
    def person_runs(self, pick: int) -> None:
        cell = self.raw(cell_id := self.some(pick))
        if cell["cell_type"] == "code":
            self.counts += 1
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": f"person ran {cell_id}"}]
            cell["execution_count"] = self.counts
            self.shows(cell)

    # ── what the agent did ──────────────────────────────────────────────────────────────────────────────────────────

    def look(self) -> None:
        """Compare the notebook with what is known of it: what differs the agent did, and it must be allowed to."""
        doing, cells = self.doing, {cell["id"]: cell for cell in self.notebook.cells_}
        ids = list(cells)
        assert len(ids) == len(self.notebook.cells_), "no id is there twice"
        for cell_id in [cell_id for cell_id in self.order if cell_id not in cells]:
            self.deleted(cell_id)
        for cell_id in [cell_id for cell_id in ids if cell_id not in self.truth]:
            self.inserted(cells[cell_id], ids)
        old, new = ([i for i in some if i in cells and i in self.order] for some in (self.order, ids))
        if old != new:
            self.moved(old, new)
        for cell_id, cell in cells.items():
            truth = self.truth[cell_id]
            assert cell["cell_type"] == truth.kind, "an agent makes no other kind of a cell"
            if cell["source"] != truth.text:
                self.edited(cell_id, cell["source"])
            if shown(cell) != (truth.number, truth.outputs):
                self.showed(cell_id, cell)
        self.order = ids
        assert doing.name or not doing.did

    def deleted(self, cell_id: str) -> None:
        truth = self.truth[cell_id]
        if self.doing.undoing:
            assert truth.by_agent, "undo takes no cell away in which the person was last"
        else:
            assert self.doing.changes("delete_cell", cell_id), "no other cell is lost"
            assert truth.text in self.read.pop(cell_id), "nothing is deleted that the agent has not read"
        self.doing.did = True
        truth.loose = (
            truth.loose or not truth.by_agent
        )  # it comes back as it was then, with what the agent's run showed
        self.gone[cell_id] = self.truth.pop(cell_id)

    def inserted(self, cell: dict[str, Any], ids: list[str]) -> None:
        given, cell_id = self.doing.given, cell["id"]
        self.doing.did = True
        self.truth[cell_id] = Truth.of(cell, None)
        if self.doing.undoing:
            self.truth[cell_id] = self.gone.get(cell_id) or self.truth[cell_id]
            self.truth[cell_id].text, self.truth[cell_id].kind = cell["source"], cell["cell_type"]
            self.truth[cell_id].by_agent = True
            self.truth[cell_id].number, self.truth[cell_id].outputs = shown(cell)
            return
        assert self.doing.name == "add_cell" and not self.doing.made, "one call adds one cell"
        assert cell["source"] == given["source"]
        self.truth[cell_id].by_agent = self.truth[cell_id].agent_wrote = True
        self.truth[cell_id].my_number, self.truth[cell_id].my_outputs = None, "[]"
        place = ids.index(cell_id)
        if (beside := given.get("before")) in ids:
            assert ids[place + 1] == beside
        elif (beside := given.get("after")) in ids:  # or right after the last of the cells that it added there before
            right = ids[place - 1] in {beside, *self.agent_made} and ids.index(beside) < place
            assert right or self.doing.shifted, "unless just that one was moved away or deleted at that moment"
        self.doing.made = cell_id
        self.agent_made.add(cell_id)
        self.read[cell_id] = {cell["source"]}

    def moved(self, old: list[str], new: list[str]) -> None:
        if self.doing.undoing:
            return
        assert self.doing.name == "move_cell", "no other call moves a cell"
        cell_id, given = self.doing.given["cell"], self.doing.given
        assert [i for i in old if i != cell_id] == [i for i in new if i != cell_id], "no other cell is moved"
        if "after" in given:
            assert new[new.index(cell_id) - 1] == given["after"]
        else:
            assert new[new.index(cell_id) + 1] == given["before"]
        self.agent_moved.add(cell_id)
        self.doing.did = True

    def edited(self, cell_id: str, text: str) -> None:
        truth = self.truth[cell_id]
        if self.doing.undoing:
            assert truth.by_agent, "the person's text stays"
        else:
            assert self.doing.changes("edit_cell", cell_id), "no edit lands in a wrong cell"
            assert text == self.doing.given["source"]
            assert truth.text in self.read[cell_id], "no text is overwritten that the agent has not read"
            self.read[cell_id] = {text}
            truth.agent_wrote = True
        truth.text, truth.by_agent = text, True
        self.doing.did = True

    def showed(self, cell_id: str, cell: dict[str, Any]) -> None:
        doing, truth = self.doing, self.truth[cell_id]
        mine = cell_id in (doing.made, doing.given.get("cell")) and doing.name in ("add_cell", "edit_cell", "run_cell")
        assert mine or doing.undoing or doing.name == "run_all", "outputs go to the cell that runs"
        doing.ran.add(cell_id)
        truth.number, truth.outputs = shown(cell)

    # ── the agent ───────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, name: str, meanwhile: dict[int, tuple[str, int, int]], *, may: bool = True, **given: Any) -> Any:
        """Make a call, the person acting inside; return its result, None where it was refused.

        `may`: whether it must work, if the person does nothing inside.
        """
        self.doing = doing = Doing(name, given)
        self.turns, self.meanwhile = 0, dict(meanwhile)
        ran = len(self.kernel.ran)
        try:
            self.agent.kind(name, **given)
            self.agent.preview(name, **given)
            self.turn()  # the person is asked
            result = done(self.agent.carry_out(name, **given))
        except ToolError as error:
            result = None
            self.look()
            assert doing.met or not may, f"{name} was refused: {error}"
            assert doing.met or not doing.did, "what is refused is not done"
        else:
            self.look()
            assert doing.met or may, f"{name} was done on a cell that the agent has not read"
        Interleaving.met += doing.met
        self.codes = self.kernel.ran[ran:]
        self.doing, self.meanwhile = Doing(), {}
        assert self.notebook.running == set(), "no cell looks as if it ran for ever"
        return result

    def knows(self, cell_id: str) -> bool:
        """Whether the agent has read the text that a cell has now."""
        return self.truth[cell_id].text in self.read.get(cell_id, ())

    @precondition(lambda self: len(self.order) > 1)
    @rule(pick=PICK, meanwhile=MEANWHILE)
    def agent_reads(self, pick: int, meanwhile: dict[int, Any]) -> None:
        result = self.call("read_cell", meanwhile, cell=(cell_id := self.some(pick)))
        if result is not None:
            [told] = re.findall(r"source:\n(.*)", plain_text(list(result.content)))
            self.read[cell_id] = {told}

    @rule(meanwhile=MEANWHILE)
    def agent_lists_and_runs_all(self, meanwhile: dict[int, Any]) -> None:
        self.call("read_notebook", {})
        self.read |= {cell_id: {truth.text} for cell_id, truth in self.truth.items()}
        there = {truth.text for truth in self.truth.values()}
        self.call("run_all", meanwhile, may=any(self.truth[i].kind == "code" for i in self.order if i != OWN))
        assert set(self.codes) <= there, "what runs is what was shown"

    @rule(pick=PICK, where=st.sampled_from(["after", "before"]), run=st.booleans(), meanwhile=MEANWHILE)
    def agent_adds(self, pick: int, where: str, run: bool, meanwhile: dict[int, Any]) -> None:
        beside, text = self.order[pick % len(self.order)], self.text()
        result = self.call("add_cell", meanwhile, source=text, run=run, **{where: beside})
        assert self.codes == [text] * (run and result is not None)

    @precondition(lambda self: len(self.order) > 1)
    @rule(pick=PICK, run=st.booleans(), meanwhile=MEANWHILE)
    def agent_edits(self, pick: int, run: bool, meanwhile: dict[int, Any]) -> None:
        cell_id, text = self.some(pick), self.text()
        result = self.call("edit_cell", meanwhile, may=self.knows(cell_id), cell=cell_id, source=text, run=run)
        assert set(self.codes) <= {text}, "nothing else runs"
        assert result is None or text in self.read[cell_id] or cell_id not in self.truth

    @precondition(lambda self: len(self.order) > 1)
    @rule(pick=PICK, meanwhile=MEANWHILE)
    def agent_runs(self, pick: int, meanwhile: dict[int, Any]) -> None:
        truth = self.truth[cell_id := self.some(pick)]
        known = set(self.read.get(cell_id, ()))
        self.call("run_cell", meanwhile, may=self.knows(cell_id) and truth.kind == "code", cell=cell_id)
        assert set(self.codes) <= known, "what runs was read"

    @precondition(lambda self: len(self.order) > 2)
    @rule(pick=PICK, meanwhile=MEANWHILE)
    def agent_deletes(self, pick: int, meanwhile: dict[int, Any]) -> None:
        cell_id = self.some(pick)
        self.call("delete_cell", meanwhile, may=self.knows(cell_id), cell=cell_id)

    @precondition(lambda self: len(self.order) > 2)
    @rule(pick=PICK, to=PICK, where=st.sampled_from(["after", "before"]), meanwhile=MEANWHILE)
    def agent_moves(self, pick: int, to: int, where: str, meanwhile: dict[int, Any]) -> None:
        cell_id = self.some(pick)
        beside = [other for other in self.order if other != cell_id][to % (len(self.order) - 1)]
        self.call("move_cell", meanwhile, cell=cell_id, **{where: beside})

    # ── undo and redo ───────────────────────────────────────────────────────────────────────────────────────────────

    def restore(self, checkpoint: Checkpoint, meanwhile: dict[int, Any]) -> Checkpoint:
        reverse = Checkpoint(HEAD)
        self.doing = doing = Doing("undo")
        self.turns, self.meanwhile = 0, dict(meanwhile)
        done(restore_cells(CheckpointedNotebook(self.notebook, reverse), reread(checkpoint), Told(), same_kernel=True))
        self.look()
        Interleaving.met += doing.met
        self.doing, self.meanwhile = Doing(), {}
        return reverse

    def seen(self) -> list[tuple[Any, ...]]:
        return [(cell["id"], cell["source"], *shown(cell)) for cell in self.notebook.cells_]

    @rule(meanwhile=st.one_of(st.just({}), MEANWHILE))
    def undo_and_redo(self, meanwhile: dict[int, Any]) -> None:
        before = self.seen()
        reverse = self.restore(self.checkpoint, meanwhile)
        if meanwhile:  # that the person's own stays is seen in `look`
            self.restore(reverse, {})
        else:
            self.check_undone({cell_id: number for cell_id, _, number, _ in before})
            undone = self.seen()
            again = self.restore(reverse, {})
            assert self.seen() == before, "redo gives back what undo took"
            self.restore(again, {})
            assert self.seen() == undone
        self.begin_run()

    def check_undone(self, numbers: dict[str, int | None]) -> None:
        cells = {cell["id"]: cell for cell in self.notebook.cells_}
        was = {**self.truth, **self.gone}
        retyped = {cell_id for cell_id, truth in was.items() if truth.retyped}  # such a cell may count as written in
        expected = {cell_id for cell_id, truth in was.items() if truth.mine is not None} - retyped
        assert set(cells) - retyped == expected, (
            "what the agent made is gone, what it deleted is back, nothing else is lost"
        )
        for cell_id in expected:
            self.check_cell(cells[cell_id], was[cell_id], numbers.get(cell_id, 0))
        order = [cell["id"] for cell in self.notebook.cells_]
        moved = self.person_moved | self.agent_moved | set(self.gone) if self.person_moved else set()
        same = [i for i in self.first if i in cells and i not in moved]
        assert [i for i in order if i in same] == same, "everything stands in its old order"

    def check_cell(self, cell: dict[str, Any], truth: Truth, number: int | None) -> None:
        assert cell["source"] == truth.mine, "the person's text, and never another's"
        now, outputs = shown(cell)
        typed_over = truth.agent_wrote and not truth.by_agent  # they wrote after it: all of the cell stays
        if not truth.loose and not (typed_over and now == number):
            assert (now, outputs) == (truth.my_number, truth.my_outputs), "its last run is the person's again"

    def teardown(self) -> None:
        if hasattr(self, "order") and not self.doing.name:  # else it has failed already
            self.undo_and_redo({})


@pytest.mark.slow  # Hypothesis draws constants from the modules that are loaded, so beside other tests it meets fewer
@pytest.mark.parametrize(
    ("examples", "wanted"),
    [(90, 250), (max(360, hypothesis.settings.default.max_examples), INTERLEAVINGS)],
    ids=["hundreds", "a thousand"],
)
def test_interleavings_lose_nothing_and_can_be_undone(examples: int, wanted: int) -> None:
    Interleaving.met = 0
    settings = hypothesis.settings(max_examples=examples, stateful_step_count=20, phases=PHASES)
    run_state_machine_as_test(Interleaving, settings=settings)
    assert Interleaving.met >= wanted
