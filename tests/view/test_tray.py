"""The tray in process: the cards of all runs, each answered on its own and only there where it was asked."""

from __future__ import annotations

import ipywidgets
import pytest

from nbagent.core import events as ev
from nbagent.core.events import State
from nbagent.core.ports import Answered
from nbagent.view.tray import Tray, Waiting
from nbagent.view.widget import DEAD_TIME
from tests.view.events_fixture import until
from tests.view.person import Person, settle, tree

AT = {"state": State.ACT, "turn": 1, "at": 1.0}


class Room:
    """Some runs with a person each, and the tray that all of them share."""

    def __init__(self, page, *names: str) -> None:
        self.page = page
        self.people = {name: Person(page) for name in names}
        first = next(iter(self.people.values()))
        for person in self.people.values():
            person.clock = first.clock
            person.view._clock = first.clock
        self.clock = first.clock
        self.tray = Tray(clock=self.clock)
        self.told = 0

    def show(self) -> None:
        """Feed the tray, as the kernel's half does."""
        self.tray.show([
            Waiting(ask, f"run-{name}", name, f"the task of {name}", f"cell-{name}", True, person.view)
            for name, person in self.people.items()
            for ask in person.view.asks
        ])  # fmt: skip

    def asks(self, name: str, call_id: str, group: str = "", of: int = 1) -> None:
        """Have a run ask for an approval."""
        approval = {"call_id": call_id, "hash": f"hash of {call_id}", "tool": "run_python", "title": f"run {call_id}",
                    "input": {"code": call_id}, "preview": {"kind": "code", "body": call_id}, "group": group, "of": of}  # fmt: skip
        self.people[name].shows([ev.ApprovalAsked(**AT, call_id=call_id, approval=approval)])
        self.clock.now += 1
        self.show()

    def answered(self, name: str, call_id: str) -> None:
        """Have a run hear the answer."""
        self.people[name].shows([ev.ApprovalAnswered(**AT, call_id=call_id, approved=True)])
        self.show()

    async def opens(self) -> None:
        self.from_page({"op": "open"})
        await settle()
        self.clock.now += DEAD_TIME + 0.01

    def from_page(self, content) -> None:
        self.tray.bar._handle_custom_msg(content, [])

    def buttons(self, name: str) -> list[ipywidgets.Button]:
        return [w for w in tree(self.tray.widget) if f"nbagent-{name}" in getattr(w, "_dom_classes", ())]

    async def clicks(self, button: ipywidgets.Button) -> None:
        button.click()
        await settle()

    @property
    def entries(self) -> list[str]:
        return [entry["who"] for entry in self.tray.bar.entries]

    def close(self) -> None:
        self.tray.close()
        for person in self.people.values():
            person.view.close()


@pytest.fixture
async def room(page):
    made = Room(page, "Anna", "Ben", "Cleo")
    yield made
    made.close()


async def test_the_tray_lists_what_all_runs_ask_oldest_first(room):
    room.asks("Cleo", "c1")
    room.asks("Anna", "a1")
    room.asks("Cleo", "c2")
    room.people["Ben"].shows(until(ev.QuestionAsked))
    room.show()
    assert room.entries == ["Cleo", "Anna", "Cleo", "Ben"]
    assert [entry["question"] for entry in room.tray.bar.entries] == [False, False, False, True]
    assert [entry["age"] for entry in room.tray.bar.entries] == [3.0, 2.0, 1.0, 0.0]
    assert [entry["what"] for entry in room.tray.bar.entries][:2] == ["run c1", "run a1"]


async def test_cards_are_made_only_when_a_page_opens_the_list(room):
    room.asks("Anna", "a1")
    assert room.buttons("approve") == []
    await room.opens()
    assert len(room.buttons("approve")) == 1
    room.answered("Anna", "a1")
    assert room.buttons("approve") == []
    room.asks("Ben", "b1")
    assert room.buttons("approve") == [], "an empty list is a closed one"


async def test_each_is_answered_on_its_own_in_any_order_by_the_run_that_asked(room):
    for name, call_id in (("Anna", "a1"), ("Ben", "b1"), ("Cleo", "c1")):
        room.asks(name, call_id)
    await room.opens()
    await room.clicks(room.buttons("deny")[2])
    room.answered("Cleo", "c1")
    room.clock.now += DEAD_TIME + 0.01
    await room.clicks(room.buttons("approve")[0])
    room.answered("Anna", "a1")
    room.clock.now += DEAD_TIME + 0.01
    await room.clicks(room.buttons("approve")[0])
    said = {name: person.answers for name, person in room.people.items()}
    assert said == {
        "Anna": [("a1", "hash of a1", Answered(approved=True))],
        "Ben": [("b1", "hash of b1", Answered(approved=True))],
        "Cleo": [("c1", "hash of c1", Answered(approved=False))],
    }


async def test_the_second_half_of_a_double_click_does_not_answer_the_card_that_moved_up(room):
    room.asks("Anna", "a1")
    room.asks("Ben", "b1")
    await room.opens()
    await room.clicks(room.buttons("approve")[0])
    room.answered("Anna", "a1")
    assert room.buttons("approve")[0].disabled
    room.clock.now += 0.05
    await room.clicks(room.buttons("approve")[0])
    assert room.people["Ben"].answers == []
    room.clock.now += DEAD_TIME
    await room.clicks(room.buttons("approve")[0])
    assert [call_id for call_id, _, _ in room.people["Ben"].answers] == ["b1"]


async def test_a_new_card_below_leaves_those_above_alive(room):
    room.asks("Anna", "a1")
    await room.opens()
    first = room.buttons("approve")[0]
    room.tray._cards[next(iter(room.tray._cards))].wake()
    assert not first.disabled
    room.asks("Ben", "b1")
    assert not first.disabled
    assert room.buttons("approve")[1].disabled


async def test_an_answer_in_the_tray_makes_the_card_in_the_panel_dead_and_the_other_way_round(room):
    room.asks("Anna", "a1")
    await room.opens()
    anna = room.people["Anna"]
    await room.clicks(room.buttons("approve")[0])
    await room.people["Anna"].clicks(anna.button("deny"))
    assert [answered.approved for _, _, answered in anna.answers] == [True]
    room.answered("Anna", "a1")
    room.asks("Anna", "a2")
    await room.opens()
    await anna.clicks(anna.button("deny"))
    room.answered("Anna", "a2")
    assert room.entries == []
    assert [call_id for call_id, _, _ in anna.answers] == ["a1", "a2"]


async def test_a_group_is_one_entry_and_stays_one_while_its_answers_come_in(room):
    for call_id in ("a1", "a2"):
        room.asks("Anna", call_id, group="g", of=2)
    assert room.entries == ["Anna"]
    assert room.tray.bar.entries[0]["what"] == "run a1 … and 1 more"
    await room.opens()
    await room.clicks(room.buttons("approve")[0])
    room.answered("Anna", "a1")
    assert room.entries == ["Anna"], "no new card for the rest of it"
    room.answered("Anna", "a2")
    assert room.entries == []
    assert len(room.people["Anna"].answers) == 2


async def test_a_question_is_answered_in_the_tray_with_what_the_page_read(room):
    room.people["Ben"].shows(until(ev.QuestionAsked))
    room.show()
    await room.opens()
    serial = next(iter(room.tray._cards.values())).serial
    room.from_page({"op": "card", "card": serial, "press": "send", "answers": [{"words": "as a copy", "picks": []}]})
    await settle()
    assert room.people["Ben"].replies == [("q1", "as a copy")]


async def test_a_page_that_asks_is_told_the_ages_of_now(room):
    room.asks("Anna", "a1")
    room.clock.now += 60
    room.from_page({"op": "ages"})
    await settle()
    bar = room.tray.bar.model_id
    said = [d["content"] for c, t, d in room.page if c == bar and t == "comm_msg" and d.get("method") == "custom"]
    assert list(said[-1]["ages"].values()) == [61.0]


async def test_nonsense_from_the_page_changes_nothing(room):
    room.asks("Anna", "a1")
    await room.opens()
    for content in (None, 3, "open", {"op": "card"}, {"op": "card", "card": 99, "press": "approve"}, {"op": []}):
        room.from_page(content)
    await settle()
    assert room.people["Anna"].answers == []


async def test_closing_the_tray_leaves_no_widget_behind(page):
    registry = ipywidgets.widgets.widget._instances
    before = set(registry)
    room = Room(page, "Anna")
    room.asks("Anna", "a1")
    await room.opens()
    room.close()
    assert set(registry) <= before
    room.show()  # too late, and harmless


async def test_a_run_says_when_what_it_asks_has_changed_and_only_then(person):
    told: list[int] = []
    end = person.view.on_asks(lambda: told.append(len(person.view.asks)))
    person.shows(until(ev.ApprovalAsked))
    await settle()
    assert told == [1]
    person.view.show(ev.Noted(**AT, text="a note"))
    person.view.flush()
    await settle()
    assert told == [1]
    person.shows([ev.ApprovalAnswered(**AT, call_id="c2", approved=True)])
    await settle()
    assert told == [1, 0]
    end()
    person.shows(until(ev.ApprovalAsked, 2)[len(until(ev.ApprovalAsked)) :])
    await settle()
    assert told == [1, 0]
