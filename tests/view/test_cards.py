"""Cards: several calls in one, each with its tick; a text that the person changes; what runs is what was shown."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import ipywidgets
import pytest

from nbagent.core import events as ev
from nbagent.core.events import State
from nbagent.core.ports import Answered, Approval, Preview
from nbagent.view.words import LEFT_OUT
from tests.view.events_fixture import until
from tests.view.person import Person, settle, tree

YES, OUT = Answered(approved=True), Answered(approved=False, words=LEFT_OUT)
START = until(ev.RunStarted)
AT = {"state": State.ACT, "turn": 1, "at": 1.0}


def approval(name: str, *, of: int = 1, body: str = "", editable: bool = True, offers: tuple[str, ...] = ("add_cell",)):
    preview = Preview("code", body or f"{name} = 1", effects=(f"rebinds {name}",))
    return Approval(name, "add_cell", f"add cell {name}", {"source": preview.body}, preview, "why", offers, "a.ipynb",
                    editable=editable, group="g" if of > 1 else "", of=of)  # fmt: skip


def asks(*approvals: Approval) -> list[ev.Event]:
    return [ev.ApprovalAsked(**AT, call_id=a.call_id, approval=a.to_json()) for a in approvals]


def answers_of(*approvals: Approval) -> list[ev.Event]:
    return [ev.ApprovalAnswered(**AT, call_id=a.call_id, approved=True) for a in approvals]


def four() -> list[Approval]:
    return [approval(name, of=4) for name in "abcd"]


@pytest.fixture
def asked(person):
    """A person before a card of four."""
    person.shows([*START, *asks(*four())])
    person.waits()
    return person


def ticks(person: Person) -> list[ipywidgets.Checkbox]:
    return [w for w in tree(person.view.widget) if isinstance(w, ipywidgets.Checkbox)]


def area(person: Person) -> ipywidgets.Textarea | None:
    return next((w for w in tree(person.view.widget) if isinstance(w, ipywidgets.Textarea)), None)


async def test_a_card_of_several_comes_when_all_are_there(person):
    person.shows([*START, *asks(*four()[:3])])
    assert person.all("card") == []
    person.shows(asks(four()[3]))
    assert len(person.all("card")) == 1
    assert [tick.value for tick in ticks(person)] == [True] * 4
    for part in ("Allow these 4?", "add cell a", "add cell d", "Probably: rebinds c", "a.ipynb"):
        assert part in person.text
    assert person.text.count("a.ipynb") == 1, "what is the same for all is said once"


async def test_why_a_card_asks_is_said_once(person):
    reasons = [
        "in mode default you are asked first: run a cell",
        "in mode default you are asked first: add a cell",
        "a rule asks",
        "",
    ]
    person.shows([*START, *asks(*(replace(a, why=why) for a, why in zip(four(), reasons, strict=True)))])
    assert "In mode default you are asked first: run a cell, or add a cell; a rule asks" in person.text


async def test_the_button_says_what_it_would_approve(asked):
    button = asked.button("approve")
    said = [button.description]
    for tick in ticks(asked):
        tick.value = False
        said.append(button.description)
    assert said == ["Approve all 4", "Approve 3 of 4", "Approve 2 of 4", "Approve 1 of 4", "Approve 0 of 4"]


async def test_where_nothing_is_ticked_there_is_nothing_to_approve_and_a_hint_says_so(asked):
    asked.card.wake()
    for tick in ticks(asked):
        tick.value = False
    assert asked.button("approve").disabled
    assert "Tick at least one" in asked.text
    await asked.clicks(asked.button("approve"))
    assert asked.answers == []
    ticks(asked)[0].value = True
    assert not asked.button("approve").disabled
    assert "Tick at least one" not in asked.text


async def test_what_is_not_ticked_is_left_out_with_words_and_each_call_has_its_own_answer(asked):
    ticks(asked)[1].value = False
    await asked.clicks(asked.button("approve"))
    assert asked.answers == [(a.call_id, a.hash, OUT if a.call_id == "b" else YES) for a in four()]


async def test_the_ticks_that_the_page_read_at_the_click_count(asked):
    asked.from_page({"op": "card", "card": asked.card.serial, "ticks": [True, False, False, True], "texts": [None] * 4})
    await asked.clicks(asked.button("approve"))
    assert [answer[2].approved for answer in asked.answers] == [True, False, False, True]


@pytest.mark.slow
@pytest.mark.parametrize("read", [[True], "yes", [1, 1, 1, 1], [None] * 4, None])
async def test_ticks_that_no_page_can_have_read_approve_nothing_that_is_not_ticked(asked, read):
    for tick in ticks(asked):
        tick.value = False
    asked.from_page({"op": "card", "card": asked.card.serial, "ticks": read})
    await asked.clicks(asked.button("approve"))
    assert asked.answers == []


async def test_deny_is_of_all(asked):
    asked.from_page({"op": "card", "card": asked.card.serial, "words": "another way", "ticks": [True] * 4, "texts": []})
    await asked.clicks(asked.button("deny"))
    assert [answer[2] for answer in asked.answers] == [Answered(approved=False, words="another way")] * 4


async def test_a_rule_of_one_call_is_kept_with_the_cards_approval(asked):
    await asked.clicks(asked.all("allow")[2])
    asked.waits()
    await asked.clicks(asked.button("keep"))
    assert asked.answers == []
    assert asked.all("allow")[2].description == "✓ Allowed from now on"
    await asked.clicks(asked.button("approve"))
    assert [answer[2].rule for answer in asked.answers] == ["", "", "add_cell", ""]


async def test_an_answered_card_stays_dead_until_all_of_it_is_answered(asked):
    await asked.clicks(asked.button("approve"))
    for approved in answers_of(*four()):
        assert len(asked.all("card")) == 1
        assert asked.button("approve").disabled
        asked.shows([approved])
    assert asked.all("card") == []
    assert len(asked.answers) == 4


async def test_what_the_page_says_in_one_message_with_the_press_counts_whatever_has_been_synced(asked):
    """The messages of several widgets may come in any order: only one message can say what was on screen at the click."""
    asked.waits()
    said = {"op": "card", "card": asked.card.serial, "press": "approve", "ticks": [False, False, True, False]}
    asked.from_page({**said, "texts": [None] * 4, "words": ""})
    await settle()
    assert [answered.approved for _, _, answered in asked.answers] == [False, False, True, False]
    asked.from_page({**said, "ticks": [True] * 4})  # a click too much
    await settle()
    assert len(asked.answers) == 4


async def test_a_press_of_no_button_or_on_a_card_that_is_gone_does_nothing(asked):
    for press in ("", "nonsense", None):
        asked.from_page({"op": "card", "card": asked.card.serial, "press": press, "ticks": [True] * 4})
    asked.from_page({"op": "card", "card": asked.card.serial + 1, "press": "approve", "ticks": [True] * 4})
    await settle()
    assert asked.answers == []


async def test_if_the_run_drops_one_of_a_card_the_others_can_still_be_answered(asked):
    asked.shows(answers_of(four()[0]))
    asked.waits()
    assert asked.button("approve").description == "Approve all 3"
    await asked.clicks(asked.button("approve"))
    assert [answer[0] for answer in asked.answers] == ["b", "c", "d"]


async def test_a_card_follows_a_group_only_after_its_dead_time(asked):
    await asked.clicks(asked.button("approve"))
    asked.shows([*answers_of(*four()), *asks(approval("next"))])
    await asked.clicks(asked.button("approve"))
    assert len(asked.answers) == 4
    asked.waits()
    await asked.clicks(asked.button("approve"))
    assert asked.answers[-1][0] == "next"


# ── the person's own text ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def editing(person):
    """A person with the text of one call before them."""
    person.shows([*START, *asks(approval("x", body="x = 1\r\ny = 2"))])
    person.waits()
    await person.clicks(person.button("editing"))
    person.waits()
    return person


async def test_the_box_holds_exactly_the_text(editing):
    assert area(editing).value == "x = 1\r\ny = 2"
    assert editing.button("editing").description == "Cancel edit"
    assert "your version may not" in editing.text


async def test_the_persons_text_is_the_answer_as_the_page_read_it(editing):
    area(editing).value = "x = 10"  # the last keys are still on their way
    editing.from_page({"op": "card", "card": editing.card.serial, "ticks": [None], "texts": ["x = 100"]})
    await editing.clicks(editing.button("approve"))
    assert editing.answers[0][2] == Answered(approved=True, edited="x = 100")


async def test_without_the_pages_word_the_synced_text_counts(editing):
    area(editing).value = "x = 10"
    await editing.clicks(editing.button("approve"))
    assert editing.answers[0][2].edited == "x = 10"


@pytest.mark.parametrize("same", ["x = 1\r\ny = 2", "x = 1\ny = 2"])
async def test_a_text_that_was_only_looked_at_is_not_edited(editing, same):
    editing.from_page({"op": "card", "card": editing.card.serial, "ticks": [None], "texts": [same]})
    await editing.clicks(editing.button("approve"))
    assert editing.answers[0][2] == YES


async def test_undo_my_edit_puts_the_proposal_back(editing):
    area(editing).value = "x = 10"
    assert editing.button("editing").description == "Undo my edit"
    await editing.clicks(editing.button("editing"))
    editing.waits()
    assert area(editing) is None
    assert "your version may not" not in editing.text
    # a box that is still on the page while the click on Undo is on its way
    editing.from_page({"op": "card", "card": editing.card.serial, "ticks": [None], "texts": ["x = 10"]})
    await editing.clicks(editing.button("approve"))
    assert editing.answers[0][2] == YES


async def test_no_rule_is_kept_for_a_text_that_the_person_changed(person):
    person.shows([*START, *asks(approval("x"))])
    person.waits()
    await person.clicks(person.button("allow"))
    person.waits()
    await person.clicks(person.button("editing"))
    person.waits()
    assert person.button("keep").disabled
    await person.clicks(person.button("keep"))
    assert person.answers == []


async def test_the_second_half_of_a_double_click_on_edit_changes_nothing(person):
    person.shows([*START, *asks(approval("x"))])
    person.waits()
    await person.clicks(person.button("editing"))
    await person.clicks(person.button("editing"))
    assert area(person) is not None


async def test_a_text_that_cannot_be_changed_has_no_button_for_it(person):
    person.shows([*START, *asks(approval("x", editable=False))])
    assert person.all("editing") == []


async def test_characters_that_the_box_cannot_show_are_named(person):
    person.shows([*START, *asks(approval("x", body="ok = 1 \u202e"))])
    person.waits()
    assert "can't see" not in person.text
    await person.clicks(person.button("editing"))
    assert "can't see in the box" in person.text
    assert "⟨U+202E⟩" in person.text


async def test_each_call_of_a_card_has_its_own_text(asked):
    await asked.clicks(asked.all("editing")[1])
    asked.waits()
    asked.from_page({"op": "card", "card": asked.card.serial, "ticks": [True, True, False, True],
                     "texts": [None, "b = 2", None, None]})  # fmt: skip
    await asked.clicks(asked.button("approve"))
    assert [answer[2] for answer in asked.answers] == [YES, Answered(approved=True, edited="b = 2"), OUT, YES]


async def test_closing_with_a_box_open_leaves_no_widget_behind(page):
    """Row 63: nor what a card made on the way."""
    registry = ipywidgets.widgets.widget._instances
    before = set(registry)
    person = Person(page)
    person.shows([*START, *asks(*four())])
    person.waits()
    await person.clicks(person.all("editing")[0])
    person.waits()
    await person.clicks(person.all("allow")[1])
    person.shows([*answers_of(*four()), *asks(approval("x", editable=False, offers=()))])
    await asyncio.wait_for(settle(), 5)
    person.view.close()
    assert set(registry) <= before
