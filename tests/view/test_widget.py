"""The live view in process: patches in order, buttons that work once, answers bound to what was shown, nothing left open."""

from __future__ import annotations

import asyncio
import threading

import ipywidgets
import pytest

from nbagent.core import events as ev
from nbagent.core.events import State
from nbagent.core.ports import Answered
from nbagent.view.widget import DEAD_TIME, AgentView
from tests.view.events_fixture import penguins, until


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Person:
    """Holds a view and what its callbacks were told."""

    def __init__(self, page, *, fail: int = 0) -> None:
        self.page = page
        self.clock = Clock()
        self.answers: list[tuple[str, str, Answered]] = []
        self.replies: list[tuple[str, str]] = []
        self.stops = 0
        self.fail = fail
        self.view = AgentView(on_answer=self.answer, on_reply=self.reply, on_stop=self.stop, clock=self.clock)

    def answer(self, call_id: str, shown: str, answered: Answered) -> None:
        if self.fail:
            self.fail -= 1
            raise ValueError("the approver <b>broke</b>")
        self.answers.append((call_id, shown, answered))

    def reply(self, question_id: str, text: str) -> None:
        self.replies.append((question_id, text))

    def stop(self) -> None:
        self.stops += 1

    def shows(self, events) -> None:
        for event in events:
            self.view.show(event)
        self.view.flush()

    def waits(self) -> None:
        self.clock.now += DEAD_TIME + 0.01

    def button(self, name: str) -> ipywidgets.Button:
        found = [w for w in tree(self.view.widget) if f"nbagent-{name}" in getattr(w, "_dom_classes", ())]
        return found[0]

    async def clicks(self, button: ipywidgets.Button) -> None:
        button.click()
        await settle()

    @property
    def messages(self) -> list[dict]:
        comm_id = self.view.timeline.model_id
        return [
            d["content"] for c, t, d in self.page if c == comm_id and t == "comm_msg" and d.get("method") == "custom"
        ]

    def from_page(self, content) -> None:
        self.view.timeline._handle_custom_msg(content, [])


def tree(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from tree(child)


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.fixture
async def person(page):
    someone = Person(page)
    yield someone
    someone.view.close()


async def test_the_first_paint_says_starting_without_any_message(person):
    assert person.view.timeline.head["state"] == "Starting…"
    assert person.messages == []


async def test_patches_are_numbered_and_hold_all_items_in_order(person):
    person.shows(penguins())
    patches = [m for m in person.messages if m["op"] == "patch"]
    assert [m["seq"] for m in patches] == list(range(1, len(patches) + 1))
    put = dict.fromkeys(o["key"] for m in patches for o in m["ops"] if o["op"] == "put")
    assert list(put) == [item.key for item in person.view.view.items]


async def test_a_burst_of_deltas_becomes_few_patches(person):
    person.shows(until(ev.RunStarted))
    before = len(person.messages)
    for i in range(5_000):
        person.view.show(ev.TextDelta(state=State.THINK, turn=1, at=i / 100, index=0, text="word "))
    person.view.flush()
    assert len(person.messages) - before < 60  # 20 a second; the loop takes far less than 3 s
    sent = sum(len(o.get("text", "")) + len(o.get("html", "")) for m in person.messages[before:] for o in m["ops"])
    assert sent < 2 * 25_000 + 1_000


async def test_what_was_shown_reaches_the_page_without_another_event(person):
    person.shows(until(ev.RunStarted))
    before = len(person.messages)
    person.view.show(ev.TextDelta(state=State.THINK, turn=1, at=1.0, index=0, text="alone"))
    if len(person.messages) == before:  # not sent at once: then soon, by itself
        came = person.page.arrival = asyncio.Event()
        await asyncio.wait_for(came.wait(), 5)
    assert any("alone" in str(m["ops"]) for m in person.messages[before:])


async def test_a_page_that_asks_gets_everything_and_the_number_it_is_up_to(person):
    person.shows(until(ev.TextDelta, 3))
    person.from_page({"op": "snapshot"})
    await settle()
    snapshot = person.messages[-1]
    assert snapshot["op"] == "snapshot"
    assert snapshot["seq"] == max(m["seq"] for m in person.messages if m["op"] == "patch")
    assert [o["key"] for o in snapshot["ops"]] == [item.key for item in person.view.view.items]


async def test_nonsense_from_the_page_changes_nothing(person):
    person.shows(until(ev.ApprovalAsked))
    person.waits()
    for content in (None, 3, "approve", {"op": "approve"}, {"op": "words", "card": "x"}, {"op": []}):
        person.from_page(content)
    await settle()
    assert person.answers == []


async def test_approve_answers_with_the_hash_of_what_was_shown(person):
    asked = until(ev.ApprovalAsked)
    person.shows(asked)
    person.waits()
    await person.clicks(person.button("approve"))
    assert person.answers == [("c2", asked[-1].approval["hash"], Answered(approved=True))]


async def test_two_clicks_are_one_answer_and_all_buttons_go_dead(person):
    person.shows(until(ev.ApprovalAsked))
    person.waits()
    approve, deny = person.button("approve"), person.button("deny")
    approve.click()
    approve.click()
    deny.click()
    await settle()
    assert len(person.answers) == 1
    assert approve.disabled
    assert deny.disabled


async def test_the_second_half_of_a_double_click_does_not_answer_the_next_question(person):
    person.shows(until(ev.ApprovalAsked))
    person.waits()
    await person.clicks(person.button("approve"))
    person.shows(until(ev.ApprovalAsked, 2)[len(until(ev.ApprovalAsked)) :])
    person.clock.now += 0.05
    await person.clicks(person.button("approve"))
    assert [a[0] for a in person.answers] == ["c2"]
    person.waits()
    await person.clicks(person.button("approve"))
    assert [a[0] for a in person.answers] == ["c2", "c3"]


async def test_a_click_on_an_old_card_does_nothing(person):
    person.shows(until(ev.ApprovalAsked))
    old = person.button("approve")
    person.shows(until(ev.ApprovalAsked, 2)[len(until(ev.ApprovalAsked)) :])
    person.waits()
    await person.clicks(old)
    assert person.answers == []


async def test_deny_carries_the_words_as_the_page_read_them(person):
    person.shows(until(ev.ApprovalAsked))
    person.waits()
    person.button("words").value = "use polar"  # the last keys are still on their way
    card = next(iter(person.view._cards.values()))
    person.from_page({"op": "words", "card": card.serial, "text": "use polars "})
    await person.clicks(person.button("deny"))
    assert person.answers[0][2] == Answered(approved=False, words="use polars")


async def test_a_rule_is_shown_before_it_is_kept_and_needs_a_second_click(person):
    person.shows(until(ev.ApprovalAsked))
    person.waits()
    await person.clicks(person.button("allow"))
    assert person.answers == []
    text = " ".join(w.value for w in tree(person.view.widget) if isinstance(w, ipywidgets.HTML))
    assert ">add_cell</code>" in text
    assert ">run_cell</code>" in text
    await person.clicks(person.button("keep"))  # the second half of a double click
    assert person.answers == []
    person.waits()
    await person.clicks(person.button("keep"))
    assert person.answers[0][2] == Answered(approved=True, rule="add_cell")


async def test_buttons_look_dead_until_a_click_counts(person):
    person.shows(until(ev.ApprovalAsked))
    buttons = [person.button(name) for name in ("approve", "deny", "allow")]
    alive = asyncio.Event()
    buttons[-1].observe(lambda _change: alive.set(), "disabled")
    assert [button.disabled for button in buttons] == [True, True, True]
    await asyncio.wait_for(alive.wait(), 5)
    assert [button.disabled for button in buttons] == [False, False, False]


async def test_allow_from_now_on_hides_the_rules_again_and_keeps_its_focus(person):
    person.shows(until(ev.ApprovalAsked))
    person.waits()
    allow = person.button("allow")
    allow.disabled = False
    await person.clicks(allow)
    rules = next(iter(person.view._cards.values())).rules
    shown = rules.children
    person.waits()
    await person.clicks(allow)
    assert rules.layout.display == "none"
    person.waits()
    await person.clicks(allow)
    assert (rules.layout.display, rules.children, allow.disabled) == (None, shown, False)


async def test_a_failing_answer_is_shown_and_counts_as_deny(page):
    person = Person(page, fail=1)
    person.shows(until(ev.ApprovalAsked))
    person.waits()
    await person.clicks(person.button("approve"))
    assert [(a[2].approved, a[2].by) for a in person.answers] == [(False, "error")]
    assert "counts as Deny" in person.view._errors.value
    assert "<b>broke" not in person.view._errors.value
    person.view.close()


async def test_an_approver_that_takes_no_answer_at_all_stops_the_run(page):
    person = Person(page, fail=2)
    person.shows(until(ev.ApprovalAsked))
    person.waits()
    await person.clicks(person.button("approve"))
    assert (person.answers, person.stops) == ([], 1)
    person.view.close()


async def test_a_question_is_answered_by_a_choice_or_by_words(person):
    person.shows(until(ev.QuestionAsked))
    person.waits()
    await person.clicks(person.button("send"))  # nothing written yet
    assert person.replies == []
    await person.clicks(person.button("choice"))
    await person.clicks(person.button("choice"))
    assert person.replies == [("q1", "Yes, as clean")]


async def test_stop_is_seen_and_passed_on_once(person):
    person.shows(until(ev.RunStarted))
    stop = person.button("stop")
    stop.click()
    stop.click()
    await settle()
    assert person.stops == 1
    assert [m["op"] for m in person.messages].count("stop-seen") == 2
    assert stop.disabled


async def test_stop_is_not_seen_while_the_loop_cannot_act_on_it(person):
    """A subshell hears the click while the main thread is busy; then the page must interrupt."""
    person.shows(until(ev.RunStarted))
    other = threading.Thread(target=person.button("stop").click)
    other.start()
    other.join(5)
    assert [m for m in person.messages if m["op"] == "stop-seen"] == []
    await settle()
    assert person.stops == 1


async def test_the_end_takes_the_buttons_away(person):
    person.shows(penguins())
    assert not [w for w in tree(person.view.widget) if isinstance(w, ipywidgets.Button)]
    assert person.view.timeline.head["running"] is False


async def test_closing_leaves_no_widget_behind(page):
    registry = ipywidgets.widgets.widget._instances
    before = set(registry)
    person = Person(page)
    person.shows(penguins())
    assert set(registry) > before
    person.view.close()
    assert set(registry) <= before
    person.view.show(penguins()[0])  # too late, and harmless
