"""The live view in process: patches in order, buttons that work once, answers bound to what was shown, nothing left open."""

from __future__ import annotations

import asyncio
import threading

import ipywidgets

from nbagent.core import events as ev
from nbagent.core.events import State
from nbagent.core.ports import Answered
from tests.view.events_fixture import penguins, until
from tests.view.person import Person, settle, tree


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
    for content in (None, 3, "approve", {"op": "approve"}, {"op": "card", "card": "x"}, {"op": "wait"}, {"op": []}):
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
    person.from_page({"op": "card", "card": card.serial, "words": "use polars "})
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
    person.card.wake()
    await person.clicks(allow)
    rules = next(iter(person.view._cards.values())).calls[0].rules
    shown = rules.children
    person.waits()
    await person.clicks(allow)
    assert rules.layout.display == "none"
    person.waits()
    await person.clicks(allow)
    assert (rules.layout.display, rules.children, allow.disabled) == (None, shown, False)


async def test_a_failing_answer_is_shown_and_counts_as_deny(page):
    """Row 62: ipywidgets would only log it, and the run would wait for ever. Row 62: what the handler of a click raises is no silence."""
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
    """Row 29: A subshell hears the click while the main thread is busy; then the page must interrupt."""
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
    """Row 63: nothing of a view stays in the notebook's widget state."""
    registry = ipywidgets.widgets.widget._instances
    before = set(registry)
    person = Person(page)
    person.shows(penguins())
    assert set(registry) > before
    person.view.close()
    assert set(registry) <= before
    person.view.show(penguins()[0])  # too late, and harmless


# ── what the page needs while the kernel is busy ─────────────────────────────────────────────────────────────────────


async def test_the_page_knows_which_call_runs_and_since_when(person):
    person.shows(until(ev.CallStarted, 2)[:-1])
    assert person.view.timeline.head["call"] is None
    person.clock.now += 7
    person.shows(until(ev.CallStarted, 2)[-1:])
    call = person.view.timeline.head["call"]
    assert (call["name"], call["began"], call["asked"]) == ("The new cell", 7.0, 7.0)
    person.shows(until(ev.CallEnded, 2)[len(until(ev.CallStarted, 2)) :])
    assert person.view.timeline.head["call"] is None


async def test_keep_waiting_begins_the_time_limit_anew_for_every_page(page):
    person = Person(page, limit=60.0)
    person.shows(until(ev.CallStarted, 2))
    assert person.view.timeline.head["limit"] == 60.0
    key = person.view.timeline.head["call"]["key"]
    person.clock.now += 61
    person.from_page({"op": "wait", "key": "another"})
    await settle()
    assert person.view.timeline.head["call"]["asked"] == 0.0
    person.from_page({"op": "wait", "key": key})
    await settle()
    assert (person.view.timeline.head["call"]["began"], person.view.timeline.head["call"]["asked"]) == (0.0, 61.0)
    person.view.close()


async def test_interrupt_cell_is_there_only_while_a_call_runs(person):
    spare = person.button("spare")
    shown = []
    for event in penguins():
        person.shows([event])
        if isinstance(event, ev.CallStarted | ev.CallEnded | ev.ApprovalAsked):
            shown.append((event.type, spare.layout.display is None))
    assert set(shown) == {("call_started", True), ("call_ended", False), ("approval_asked", False)}


async def test_interrupt_cell_is_said_to_the_kernel_once_and_stops_nothing_else(person):
    person.shows(until(ev.CallStarted, 2))
    person.from_page(
        {"op": "snapshot"}
    )  # a page that speaks for itself: its click comes as a message before the button's
    person.from_page({"op": "spare"})
    await person.clicks(person.button("spare"))
    assert (person.spared, person.stops) == (1, 0)
    assert [m["op"] for m in person.messages].count("spare-seen") == 1


async def test_interrupt_cell_works_in_a_page_that_does_not_speak(person):
    person.shows(until(ev.CallStarted, 2))
    await person.clicks(person.button("spare"))
    assert (person.spared, person.stops) == (1, 0)


async def test_an_interrupt_that_comes_when_nothing_runs_any_more_hits_nothing(person):
    person.shows(until(ev.CallEnded, 2))
    person.from_page({"op": "spare"})
    await settle()
    assert (person.spared, person.stops) == (0, 0)
    assert [m["op"] for m in person.messages][-1] == "spare-seen", "so that the page does not interrupt the kernel"
