"""Questions as cards, and the to-do list: one card for questions that belong together, one list that changes in place."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from nbagent.core import events as ev
from nbagent.core.events import Reason, State, Status
from nbagent.core.events_json import from_json, to_json
from nbagent.core.messages import text_block
from nbagent.view.fold import fold_all
from nbagent.view.patches import Page
from nbagent.view.record import record
from nbagent.view.terminal import TerminalView
from tests.view.person import Person, settle

AT = {"state": State.ACT, "turn": 1, "at": 1.0}
STARTED = ev.RunStarted(**AT, run_id="run-1", session_id="s", model="m", mode="default", prompt="p", max_turns=5)
ENDED = ev.RunEnded(**AT, reason=Reason.END_TURN, sentence="Done.", next_step="", text="All good.", turns=1)


@pytest.fixture
async def person(page):
    made = Person(page)
    yield made
    made.view.close()


def question(name, text="Which?", **more):
    return ev.QuestionAsked(**AT, question_id=name, text=text, **more)


def together(*questions):
    return [ev.QuestionAsked(**AT, **one, group="g", of=len(questions)) for one in questions]


TWO = together(
    {"question_id": "a", "text": "One?", "choices": ("x", "y")},
    {"question_id": "b", "text": "Many?", "choices": ("p", "q", "r"), "many": True},
)


async def press(person, name, *answers):
    person.from_page({"op": "card", "card": person.card.serial, "press": name, "words": None, "answers": list(answers)})
    await settle()


async def test_a_choice_answers_at_once_and_with_what_was_written_beside_it(person):
    person.shows([STARTED, question("q", choices=("x", "y"), details=("the first", ""))])
    assert "the first" in person.text
    await person.clicks(person.all("choice")[1])
    assert person.replies == []  # as soon as that no person has read it
    person.waits()
    await press(person, "choice:1", {"words": " for now ", "picks": []})
    await press(person, "choice:0", {"words": "", "picks": []})
    assert person.replies == [("q", "y\nfor now")]
    assert all(made.disabled for made in person.all("choice"))


@pytest.mark.parametrize("name", ["choice:2", "choice:-1", "choice:", "choice:x", "approve", ""])
async def test_a_press_that_is_none_of_the_card_answers_nothing(person, name):
    person.shows([STARTED, question("q", choices=("x", "y"))])
    person.waits()
    await press(person, name, {"words": "", "picks": []})
    assert person.replies == []


async def test_questions_of_one_call_come_in_one_card_when_all_are_there_and_go_out_together(person):
    person.shows([STARTED, TWO[0]])
    assert not person.view._cards
    person.shows(TWO[1:])
    assert len(person.view._cards) == 1
    person.waits()
    await press(person, "choice:0", {"words": "", "picks": [True, False]}, {"words": "", "picks": [False] * 3})
    assert person.replies == []  # one click is no answer to two questions
    await press(person, "send", {"words": "", "picks": [True, False]}, {"words": "and s", "picks": [True, False, True]})
    await press(person, "send", {"words": "", "picks": [False, True]}, {"words": "", "picks": [True, True, True]})
    assert person.replies == [("a", "x"), ("b", "p\nr\nand s")]
    person.shows([ev.QuestionAnswered(**AT, question_id="a", text="x")])
    assert person.card.done  # no second card for what is left of it
    person.shows([ev.QuestionAnswered(**AT, question_id="b", text="p")])
    assert not person.view._cards


async def test_where_no_page_reads_the_card_its_own_switches_count_and_one_answer_is_one(person):
    person.shows([STARTED, *TWO])
    person.waits()
    x, y, p, q, _ = person.all("pick")
    x.value = True
    y.value = True
    assert (x.value, y.value) == (False, True)
    p.value = q.value = True
    assert person.button("send").description == "Send"
    await person.clicks(person.button("send"))
    assert person.replies == [("a", "y"), ("b", "p\nq")]


async def test_nothing_chosen_is_no_answer_and_a_part_may_be_left_out(person):
    person.shows([STARTED, *TWO])
    person.waits()
    await person.clicks(person.button("send"))
    assert person.replies == []
    assert "Choose or write an answer first" in person.text
    person.all("pick")[0].value = True
    assert person.button("send").description == "Send 1 of 2 answers"
    await person.clicks(person.button("send"))
    assert person.replies == [("a", "x"), ("b", "")]


async def test_a_page_that_sends_nonsense_answers_what_the_switches_say(person):
    person.shows([STARTED, *TWO])
    person.waits()
    person.all("pick")[1].value = True
    for answers in ([None, 7], [{"picks": "x"}, {"picks": [1, 2, 3, 4]}], [{}], "x", None):
        person.from_page({"op": "card", "card": person.card.serial, "press": "", "answers": answers})
    await press(person, "send")
    assert person.replies == [("a", "y"), ("b", "")]


async def test_the_end_of_the_run_takes_an_open_card_away(person):
    person.shows([STARTED, *TWO])
    card = person.card
    person.shows([ENDED])
    person.waits()
    assert card.done and not person.view._cards
    card.press("send")
    assert person.replies == []


# ── the list ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def todos(*statuses, carried=False):
    items = [
        {"content": f"step {n}", "status": status, "activeForm": f"doing {n}"} for n, status in enumerate(statuses)
    ]
    return ev.TodosChanged(**AT, todos=tuple(items), carried=carried)


def wrote(call, status=Status.OK, text="…"):
    about = {"call_id": call, "name": "todo_write"}
    return [
        ev.BlockStarted(**AT, index=0, kind="tool_use", name="todo_write", call_id=call),
        ev.CallStarted(**AT, **about, input={}, title="to-do list", preview={}),
        ev.CallEnded(**AT, **about, status=status, content=(text_block(text),), seconds=0.1, summary=text),
    ]


FIRST, THEN = todos("in_progress", "pending"), todos("completed", "in_progress")
DONE = todos("completed", "completed")


def test_the_page_gets_one_list_that_is_replaced_and_no_card_a_call():
    page, view = Page(), fold_all([STARTED, FIRST, *wrote("c1")])
    first = page.changes(view)
    view = fold_all([THEN, *wrote("c2")], view)
    second = page.changes(view)
    assert [[op["op"] for op in ops] for ops in (first, second)] == [["todos"], ["todos"]]
    assert second[0]["text"] == "To do: 1 of 2 done. Now: doing 1"
    assert page.changes(view) == []
    assert page.snapshot() == second
    assert "<details" in second[0]["html"] and " open>" in second[0]["html"]
    (last,) = page.changes(fold_all([DONE], view))
    assert " open>" not in last["html"] and "all 2 done" in last["html"]


def test_a_refused_list_is_seen_as_a_call_that_failed():
    view = fold_all([STARTED, *wrote("c1", Status.ERROR, "two items are in_progress")])
    assert "two items are in_progress" in str(Page().changes(view))


def test_a_view_whose_first_call_is_the_list_is_not_emptied_by_what_follows():
    page, view = Page(), fold_all([STARTED, FIRST, *wrote("c1"), ev.Noted(**AT, text="one")])
    page.changes(view)
    assert [op["op"] for op in page.changes(fold_all([ev.Noted(**AT, text="two")], view))] == ["put"]


def test_a_record_says_what_is_done_and_what_is_left():
    made = record(fold_all([STARTED, FIRST, THEN, *wrote("c1"), ENDED]))
    assert "<details open><summary>To do: 1 of 2 done</summary>" in made["text/html"]
    assert "▸ step 1 (begun)" in made["text/html"]
    assert "- [x] step 0\n- [ ] step 1 \\(begun\\)" in made["text/markdown"].replace("(begun)", "\\(begun\\)")
    assert "To do: 1 of 2 done\n  ✓ step 0\n  ▸ step 1 (begun)" in made["text/plain"]
    assert "todo_write" not in made["text/plain"]
    assert "<details><summary>To do: all 2 done" in record(fold_all([STARTED, DONE, ENDED]))["text/html"]


def test_a_list_from_before_is_shown_folded_and_is_no_part_of_this_runs_record():
    view = fold_all([STARTED, todos("completed", "pending", carried=True)])
    (op,) = Page().changes(view)
    assert "To do (from before): 1 of 2 done" in op["html"] and " open>" not in op["html"]
    assert "To do" not in str(record(fold_all([ENDED], view)))


def test_a_subagents_list_stands_under_its_own_line():
    event = ev.AgentReported(**AT, call_id="c9", agent_id="agent-1", agent="Explore", title="look", event=FIRST)
    view = fold_all([STARTED, event])
    assert view.todos == ()
    assert 'data-fold="agent-1-todos"' in Page().changes(view)[0]["html"]


def test_a_terminal_says_the_whole_list_once_and_then_what_changed():
    out = io.StringIO()
    view = TerminalView(Console(file=out, width=80))
    for event in [STARTED, FIRST, *wrote("c1"), THEN, *wrote("c2")]:
        view.show(event)
    assert out.getvalue().split("\n")[1:] == [
        "To do: 0 of 2 done · doing 0", "  ▸ step 0 (in progress)", "  ○ step 1 (open)",
        "To do: 1 of 2 done · doing 1", "  ✓ step 0 (done)", "  ▸ step 1 (in progress)", "",
    ]  # fmt: skip


def test_the_list_and_a_question_come_back_from_a_file_as_they_were():
    for event in (FIRST, TWO[1]):
        assert from_json(to_json(event)) == event
