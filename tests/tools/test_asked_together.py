"""The cell tools in a run: several edits in one card, code that a person changed in the card, and what was shown is what runs."""

from __future__ import annotations

import pytest

from nbagent.core.events import ApprovalAsked, CallEnded, RunEnded, Status
from nbagent.core.ports import Answered
from nbagent.core.tools import Toolset
from nbagent.models.scripted import call
from tests.core.rig import Person, Rig, play
from tests.tools.desk import Desk


class DeskRig(Rig):
    """The cell tools of a desk in place of the rig's own."""

    def __init__(self, desk):
        super().__init__()
        self.desk = desk

    def tools(self):
        return Toolset(self.desk.call.tools.values())


class AtTheDesk(Person):
    """Answers, and does something in the notebook while the card is open."""

    def __init__(self, *answers, meanwhile=lambda: None):
        super().__init__(*answers)
        self.meanwhile = meanwhile

    async def ask(self, approval):
        self.meanwhile()
        return await super().ask(approval)


@pytest.fixture
def desk():
    return Desk()


READ = call("read_notebook")


async def run(desk, *turns, person, **more):
    return await play(*turns, "Done.", person=person, rig=DeskRig(desk), closing=desk.ledger.closing, **more)


async def test_edits_of_one_reply_are_asked_in_one_card_and_those_left_out_are_not_made(desk):
    person = Person(True, Answered(False, "leave the title"), True, True)
    edits = [
        call("edit_cell", cell="load", source="df = load('b')"),
        call("edit_cell", cell="intro", source="# Birds"),
        call("add_cell", source="x = 1"),
        call("delete_cell", cell="end"),
    ]
    ran = await run(desk, [READ], edits, person=person)
    assert {(e.approval["group"] != "", e.approval["of"]) for e in ran.of(ApprovalAsked)} == {(True, 4)}
    assert desk.sources() == ["# Penguins", "df = load('b')", "%%agent\ngo", "x = 1"]
    assert desk.kernel.ran == ["x = 1"]
    assert [a.editable for a in person.asked] == [True, True, True, False]
    assert "leave the title" in ran.result_texts()[2]
    assert ran.of(RunEnded)[0].checked == (
        "Ran before the last edit: In[1]. Not run since it was edited: `df = load('b')`. Deleted: `df`. "
        "Not verified from a clean kernel."
    )


async def test_two_calls_on_one_cell_are_asked_one_after_the_other(desk):
    person = Person(True, True)
    edits = [call("edit_cell", cell="load", source="df = 2"), call("run_cell", cell="load")]
    ran = await run(desk, [READ], edits, person=person)
    assert {e.approval["of"] for e in ran.of(ApprovalAsked)} == {1}
    assert person.asked[1].preview.body == "df = 2"
    assert desk.kernel.ran == ["df = 2"]


@pytest.mark.parametrize(
    ("name", "arguments", "place"),
    [("add_cell", {}, 3), ("edit_cell", {"cell": "load", "run": True}, 1)],
)
async def test_what_the_person_wrote_in_the_card_is_what_runs_and_stands_in_the_notebook(desk, name, arguments, place):
    person = Person(Answered(True, edited="theirs = 2"))
    ran = await run(desk, [READ], [call(name, source="ours = 1", **arguments)], person=person)
    assert desk.kernel.ran == ["theirs = 2"]
    assert desk.sources()[place] == "theirs = 2"
    assert "The person changed the text before they approved" in ran.result_texts()[1]
    assert "theirs = 2" in ran.result_texts()[1]
    (cell_id,) = ran.of(CallEnded)[1].cells
    assert desk.raw(cell_id)["metadata"]["nbagent"].items() >= {"session": "s1", "run": "run"}.items()


async def test_markdown_can_be_changed_in_the_card_too(desk):
    person = Person(Answered(True, edited="## Theirs"))
    await run(desk, [call("add_cell", source="## Ours", cell_type="markdown")], person=person)
    assert desk.sources()[3] == "## Theirs"


async def test_a_changed_text_never_covers_another_source_than_the_person_saw(desk):
    await desk.call("read_cell", cell="load")
    desk.user_edit("load", "df = newer()")
    reply = [call("read_cell", cell="load"), call("edit_cell", cell="load", source="df = 2", run=True)]
    ran = await run(desk, reply, person=Person(Answered(True, edited="df = 3")))
    assert desk.sources()[1] == "df = newer()"
    assert desk.kernel.ran == []
    assert ran.of(CallEnded)[1].status is Status.ERROR
    assert "changed since you read it" in ran.result_texts()[1]


async def test_a_cell_that_the_person_changes_while_the_card_is_open_is_left_alone_and_the_model_recovers(desk):
    person = AtTheDesk(True, True, True, meanwhile=lambda: desk.user_edit("load", "df = theirs()"))
    edits = [call("edit_cell", cell="load", source="df = 2"), call("edit_cell", cell="intro", source="# Birds")]
    ran = await run(
        desk,
        [READ],
        edits,
        [call("read_cell", cell="load")],
        [call("edit_cell", cell="load", source="df = theirs()  # checked")],
        person=person,
    )
    assert desk.sources()[:2] == ["# Birds", "df = theirs()  # checked"]
    assert "changed since you read it" in ran.result_texts()[1]


async def test_an_anchor_that_goes_while_the_card_is_open_leaves_the_cell_beside_where_it_was(desk):
    person = AtTheDesk(True, meanwhile=lambda: desk.user_delete("load"))
    ran = await run(desk, [READ], [call("add_cell", source="x", after="load")], person=person)
    assert desk.sources() == ["# Penguins", "x", "%%agent\ngo", "df"]
    assert "cell load is not there any more" in ran.result_texts()[1]


async def test_what_was_read_in_one_run_can_be_edited_in_the_next_but_nothing_shown_goes_over(desk):
    await run(desk, [READ], [call("run_cell", cell="load")], person=Person(Answered(False, "not now")))
    desk.begin("run-2")
    ran = await run(desk, [call("edit_cell", cell="load", source="df = 2")], person=Person(True))
    assert desk.sources()[1] == "df = 2"
    desk.user_edit("load", "df = theirs()")
    desk.begin("run-3")
    ran = await run(desk, [call("edit_cell", cell="load", source="df = 3")], person=Person(True))
    assert "changed since you read it" in ran.result_texts()[0]
    assert desk.sources()[1] == "df = theirs()"


async def test_a_kept_cell_is_asked_about_where_a_rule_allows_the_rest(desk):
    desk.raw("load")["metadata"] = {"nbagent": {"keep": True}}
    person = Person(Answered(False, "no"))
    await run(
        desk,
        [READ],
        [call("run_cell", cell="end"), call("run_cell", cell="load")],
        person=person,
        rules=("allow run_cell",),
    )
    assert desk.kernel.ran == ["df"]
    assert [approval.title for approval in person.asked] == ["run In[3] again (it is marked “don't rerun”)"]
    assert person.asked[0].offers == ()
