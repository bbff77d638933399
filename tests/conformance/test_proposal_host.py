"""The notebook port where nothing can be reached: what of its promises holds for proposals, and what is refused instead.

A host that only proposes can't keep promises about runs and outputs; it must refuse them with a sentence, change nothing,
and tell its proposals as cells. Checked over a shell that keeps a history, without a kernel.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import NotebookError
from nbagent.core.ports import Anchor, source_hash
from nbagent.jupyter.proposal import Proposal, ProposalNotebook, next_input
from tests.conformance.notebook_kit import (
    NotebookHost,
    a_cell_goes_right_after_its_anchor,
    a_cell_goes_right_before_its_anchor,
    an_edit_for_another_source_is_refused,
    an_edit_is_read_back,
    cells_inserted_each_after_the_one_before_keep_their_order,
    what_was_inserted_is_read_back,
)

KEPT = (
    a_cell_goes_right_after_its_anchor,
    a_cell_goes_right_before_its_anchor,
    cells_inserted_each_after_the_one_before_keep_their_order,
    what_was_inserted_is_read_back,
    an_edit_is_read_back,
    an_edit_for_another_source_is_refused,
)


class History:
    def __init__(self, raw):
        self.input_hist_raw = raw


class Shell:
    """What the host needs of IPython: history, values, and the one next input that survives."""

    def __init__(self, *ran, values=None):
        self.history_manager = History(["", *ran])
        self.user_ns = {"_oh": values or {}}
        self.next = None

    def set_next_input(self, text, replace=False):
        assert not replace
        self.next = text


class Angry:
    def __repr__(self):
        raise SystemExit("looking at me has effects")


@pytest.mark.parametrize("promise", KEPT, ids=lambda promise: promise.__name__.replace("_", " "))
async def test_a_proposal_keeps_the_promises_of_cells(promise):
    async def nobody(cell_id, source):
        raise AssertionError("the person can't edit a proposal")

    await promise(NotebookHost(ProposalNotebook(Shell("x = 1")), nobody))


async def test_cells_are_what_ran_with_stable_ids_and_without_the_agents_own():
    notebook = ProposalNotebook(Shell("x = 1", "%%agent\ngo", "", "# why\n%%agent", "x + 1", values={5: 2}))
    cells = await notebook.cells()
    assert [(cell.id, cell.number, cell.source, cell.index) for cell in cells] == [
        ("in-1", 1, "x = 1", 0),
        ("in-5", 5, "x + 1", 1),
    ]
    assert (await notebook.read("in-5")).outputs[0]["data"] == {"text/plain": "2"}
    assert (await notebook.read("in-1")).outputs == ()


async def test_values_are_told_without_running_their_code():
    """Row 94: a value's own code is not run by looking at the cell that made it."""
    notebook = ProposalNotebook(Shell("a = Angry()\na", values={1: Angry()}))
    assert "Angry" in (await notebook.read("in-1")).outputs[0]["data"]["text/plain"]


@pytest.mark.parametrize("cell", ["in-1", "proposed-1"])
async def test_what_it_cannot_do_is_refused_with_a_sentence_and_changes_nothing(cell):
    shell = Shell("x = 1")
    notebook = ProposalNotebook(shell)
    await notebook.insert(Anchor("in-1"), "code", "y = 1")
    before, offered = await notebook.cells(), shell.next
    for refused in (
        notebook.delete(cell, source_hash("x = 1")),
        notebook.move(cell, Anchor("in-1")),
        notebook.begin_run(cell),
        notebook.set_outputs(cell, [], None),
        notebook.set_metadata(cell, {"a": 1}),
        notebook.insert(Anchor("in-1"), "code", "z", cell_id="old"),
        notebook.insert(Anchor("in-1"), "code", "# so\n%%agent\ngo"),
    ):
        with pytest.raises(NotebookError, match="can't"):
            await refused
    assert (await notebook.cells(), shell.next) == (before, offered)


async def test_unknown_ids_are_refused_with_the_real_ones():
    notebook = ProposalNotebook(Shell("import pandas as pd\nmore"))
    for refused in (
        notebook.read("nope"),
        notebook.edit("nope", "x", source_hash("x")),
        notebook.insert(Anchor("nope"), "code", "x"),
        notebook.begin_run("nope"),
    ):
        with pytest.raises(NotebookError, match=r"in-1.*import pandas as pd"):
            await refused


async def test_in_a_fresh_kernel_the_first_proposal_needs_no_anchor():
    shell = Shell()
    await ProposalNotebook(shell).insert(Anchor(""), "code", "x = 1")
    assert shell.next == "x = 1"


async def test_a_second_proposal_for_the_same_cell_takes_the_place_of_the_first():
    shell = Shell("x = 1")
    notebook = ProposalNotebook(shell)
    first = await notebook.edit("in-1", "x = 2", source_hash("x = 1"))
    assert (first.id, first.source) == ("proposed-1", "x = 2")
    again = await notebook.edit("in-1", "x = 3", source_hash("x = 1"))
    assert (again.id, again.source) == ("proposed-1", "x = 3")
    assert (await notebook.edit("proposed-1", "x = 4", again.hash)).source == "x = 4"
    assert [proposal.source for proposal in notebook.proposals] == ["x = 4"]
    assert shell.next == "# instead of In[1]:\nx = 4"


def test_markdown_alone_becomes_a_markdown_cell_and_beside_code_stays_in_the_record():
    words, code = Proposal("proposed-1", "markdown", "# Title"), Proposal("proposed-2", "code", "x = 1")
    assert next_input([words]) == "%%markdown\n# Title"
    assert next_input([words, code]) == "x = 1"
    assert next_input([]) == ""


def test_a_cell_magic_is_not_joined_since_it_must_be_the_first_line():
    timed, code = Proposal("proposed-1", "code", "%%time\nx = 1"), Proposal("proposed-2", "code", "y = 1")
    assert next_input([timed, code]) == "%%time\nx = 1"
    assert next_input([code, timed]) == "y = 1"


@pytest.mark.slow
@given(st.lists(st.text(alphabet="ab=1 \n", min_size=1, max_size=20), min_size=2, max_size=5))
def test_every_code_that_is_proposed_stands_in_the_next_input_in_order(sources):
    text = next_input([Proposal(f"proposed-{n}", "code", source) for n, source in enumerate(sources)])
    place = 0
    for n, source in enumerate(sources, 1):
        head = f"# ── {n} of {len(sources)}: a new cell ──\n{source.rstrip()}"
        assert head in text[place:]
        place = text.index(head, place) + len(head)
