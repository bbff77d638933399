"""An answer counts for the question that is open, as it was shown, once; whoever can't be asked is not waited for."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from nbagent.core.ports import Answered, Approval, Preview, Question
from nbagent.jupyter.approval import DEAD_TIME, PersonApprover, PolicyApprover, TypedApprover
from tests.support.turns import turns

YES = Answered(approved=True)


def approval(call_id="call-1", body="x = 1", offers=("run_cell",), **more):
    return Approval(
        call_id, "run_cell", "Run a cell", {"source": body}, Preview("code", body), "mode default asks", offers, **more
    )


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


async def asked(approver, *questions):
    """Start asking and return the tasks once the questions are open."""
    tasks = [asyncio.create_task(approver.ask(q)) for q in questions]
    await turns()
    return tasks


@pytest.fixture
async def clock():
    return Clock()


@pytest.fixture
async def person(clock):
    return PersonApprover(clock=clock)


async def test_a_click_answers_the_question_that_was_shown(person):
    question = approval()
    (task,) = await asked(person, question)
    assert person.answer("call-1", question.hash, Answered(approved=False, words="plot it"))
    assert await task == Answered(approved=False, words="plot it")
    assert person.present


async def test_a_click_from_another_thread_wakes_the_waiting_run(person):
    """Row 29: on some kernels clicks come on a subshell's thread."""
    question = approval()
    (task,) = await asked(person, question)
    clicking = threading.Thread(target=person.answer, args=("call-1", question.hash, YES))
    clicking.start()
    assert await asyncio.wait_for(task, 5) == YES
    clicking.join()


async def test_of_two_answers_the_first_counts(person):
    question = approval()
    (task,) = await asked(person, question)
    results = []
    barrier = threading.Barrier(8)

    def click(n):
        barrier.wait()
        results.append(person.answer("call-1", question.hash, Answered(approved=True, words=str(n))))

    threads = [threading.Thread(target=click, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False] * 7 + [True]
    assert (await task).approved
    assert not person.answer("call-1", question.hash, YES)


@pytest.mark.parametrize(
    ("call_id", "shown"), [("call-2", None), ("call-1", "0" * 12), ("call-1", approval(body="rm").hash)]
)
async def test_an_answer_to_something_else_is_ignored(person, call_id, shown):
    question = approval()
    (task,) = await asked(person, question)
    assert not person.answer(call_id, shown or question.hash, YES)
    assert not task.done()
    person.close()
    assert not (await task).approved


async def test_a_rule_that_was_not_offered_is_ignored_and_a_deny_keeps_none(person):
    question = approval()
    (task,) = await asked(person, question)
    assert not person.answer("call-1", question.hash, Answered(approved=True, rule="shell"))
    assert person.answer("call-1", question.hash, Answered(approved=False, rule="run_cell"))
    assert await task == Answered(approved=False)


async def test_an_edit_counts_only_of_what_can_be_edited_and_only_with_an_approval(person, clock):
    fixed, free = approval("call-1"), approval("call-2", editable=True)
    tasks = await asked(person, fixed, free)
    clock.now += 1
    assert not person.answer("call-1", fixed.hash, Answered(approved=True, edited="x = 2"))
    assert person.answer("call-1", fixed.hash, YES)
    assert person.answer("call-2", free.hash, Answered(approved=False, words="no", edited="x = 2"))
    assert await asyncio.gather(*tasks) == [YES, Answered(approved=False, words="no")]
    (task,) = await asked(person, free)
    clock.now += 1
    assert person.answer("call-2", free.hash, Answered(approved=True, edited="x = 2"))
    assert await task == Answered(approved=True, edited="x = 2")


async def test_the_answers_of_one_card_come_together_and_each_counts(person, clock):
    group = [approval(f"call-{n}", group="g", of=3) for n in range(3)]
    tasks = await asked(person, *group)
    clock.now += 1
    said = [YES, Answered(approved=False, words="not this one"), YES]
    assert [person.answer(a.call_id, a.hash, answer) for a, answer in zip(group, said, strict=True)] == [True] * 3
    assert await asyncio.gather(*tasks) == said


async def test_the_second_half_of_a_double_click_does_not_answer_the_next_question(person, clock):
    first, second = approval("call-1"), approval("call-2")
    (task,) = await asked(person, first)
    clock.now += 1
    assert person.answer("call-1", first.hash, YES)
    await task
    (task,) = await asked(person, second)
    clock.now += 0.05
    assert not person.answer("call-2", second.hash, YES)
    assert not task.done()
    clock.now += DEAD_TIME
    assert person.answer("call-2", second.hash, YES)
    assert await task == YES


async def test_two_cards_that_stood_together_are_answered_as_fast_as_one_likes(person, clock):
    first, second = approval("call-1"), approval("call-2")
    tasks = await asked(person, first, second)
    clock.now += 1
    assert person.answer("call-2", second.hash, YES)
    clock.now += 0.05
    assert person.answer("call-1", first.hash, YES)
    assert await asyncio.gather(*tasks) == [YES, YES]


async def test_close_denies_all_that_is_open_and_all_that_is_asked_later(person):
    tasks = await asked(person, approval("call-1"), approval("call-2"))
    choice = asyncio.create_task(person.question(Question("q", "Which?")))
    await turns()
    person.close()
    person.close()
    answers = [*await asyncio.gather(*tasks), await person.ask(approval("call-3"))]
    assert [a.approved for a in answers] == [False] * 3
    assert all(a.words for a in answers)
    assert await choice == "" == await person.question(Question("q2", "And now?"))
    assert not person.present
    assert not person.answer("call-3", approval("call-3").hash, YES)


async def test_a_cancelled_run_leaves_no_question_open(person):
    question = approval()
    (task,) = await asked(person, question)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not person.answer("call-1", question.hash, YES)


async def test_a_question_gets_the_words(person):
    task = asyncio.create_task(person.question(Question("q", "Which column?", ("a", "b"))))
    await turns()
    assert not person.answer_question("other", "b")
    assert person.answer_question("q", "b")
    assert not person.answer_question("q", "a")
    assert await task == "b"


async def test_where_nobody_is_the_policy_denies_at_once_with_words():
    policy = PolicyApprover()
    answer = await asyncio.wait_for(policy.ask(approval()), 1)
    assert (policy.present, answer.approved, answer.by) == (False, False, "policy")
    assert answer.words.startswith("Nobody is there")
    assert await policy.question(Question("q", "Which?")) == ""


def typed(*lines):
    """A typed approver whose person types `lines` and then closes the terminal; and what it showed."""
    rest, shown = list(lines), []

    async def read(prompt):
        shown.append(prompt)
        if not rest:
            raise EOFError
        return rest.pop(0)

    return TypedApprover(read, shown.append), shown


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y", Answered(approved=True)),
        (" YES ", Answered(approved=True)),
        ("n", Answered(approved=False)),
        ("a", Answered(approved=True, rule="run_cell")),
        ("use a bar chart", Answered(approved=False, words="use a bar chart")),
    ],
)
async def test_typed_answers(line, answer):
    approver, _ = typed(line)
    assert await approver.ask(approval()) == answer
    assert approver.present


async def test_a_slip_of_the_finger_is_asked_again():
    approver, shown = typed("", "u", "y")
    assert (await approver.ask(approval())).approved
    assert sum("y = yes" in text for text in shown) == 3


async def test_without_an_offer_nothing_can_be_kept():
    approver, shown = typed("a", "n")
    assert await approver.ask(approval(offers=())) == Answered(approved=False)
    assert not any("from now on" in text for text in shown)


@pytest.mark.parametrize("error", [EOFError, OSError, RuntimeError], ids=lambda e: e.__name__)
async def test_where_nothing_can_be_typed_it_denies_and_stays_denying(error):
    async def read(_):
        raise error

    approver = TypedApprover(read, lambda _: None)
    answer = await approver.ask(approval())
    assert (answer.approved, approver.present, answer.by) == (False, False, "policy")
    assert answer.words
    assert await approver.question(Question("q", "Which?")) == ""


async def test_the_card_shows_exactly_what_will_run_with_hidden_characters_visible_plain():
    approver, shown = typed("n")
    await approver.ask(approval(body="ok = 1\n\x1b[2Jevil\u202e()\r#\u200b", notebook="a.ipynb"))
    text = "\n".join(shown)
    assert "│ ok = 1\n│ ⟨U+001B⟩[2Jevil⟨U+202E⟩()⟨U+000D⟩#⟨U+200B⟩" in text
    assert "every call of run_cell from now on, whatever it is given (this session)\n    run_cell" in text
    assert "a.ipynb" in text


async def test_a_typed_card_shows_every_line_that_runs_also_those_that_stay():
    approver, shown = typed("n", "n")
    lines = [f"x{n} = {n}" for n in range(40)]
    old = "\n".join([*lines, "last = 1"])
    await approver.ask(replace(approval(), preview=Preview("diff", "\n".join([*lines, "last = 2"]), old=old)))
    assert all(f"x{n} = {n}" in shown[0] for n in range(40))
    await approver.ask(replace(approval(), preview=Preview("diff", old, old=old)))
    assert all("\n".join(shown).count(f"x{n} = {n}\n") == 2 for n in range(40)), "nothing changes, all of it may run"


async def test_a_rule_is_dropped_where_the_text_was_changed(person, clock):
    question = approval(editable=True)
    for edited, rule in (("x = 2", ""), ("x = 1", "run_cell")):
        (task,) = await asked(person, question)
        clock.now += 1
        assert person.answer("call-1", question.hash, Answered(approved=True, rule="run_cell", edited=edited))
        assert await task == Answered(approved=True, rule=rule, edited=edited)


async def test_a_typed_number_chooses():
    approver, _ = typed("2", "7", "something else")
    question = Question("q", "Which?", ("first", "second"))
    assert [await approver.question(question) for _ in range(4)] == ["second", "7", "something else", ""]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("2", "b"),
        ("1, 3", "a\nc d"),
        ("3 1", "a\nc d"),
        ("B", "b"),
        ("c d", "c d"),
        ("1,9", "1,9"),
        ("a and e", "a and e"),
    ],
)
async def test_several_choices_are_typed_as_numbers_or_names_and_anything_else_is_words(text, answer):
    approver, shown = typed(text)
    question = Question("q", "Which?", ("a", "b", "c d"), header="Way", details=("first", "", ""), many=True)
    assert await approver.question(question) == answer
    assert "[Way] Which?\n  1. a: first\n  2. b\n  3. c d" in shown[0]


async def test_where_one_choice_is_the_answer_two_numbers_are_words():
    approver, _ = typed("1,2")
    assert await approver.question(Question("q", "Which?", ("a", "b"))) == "1,2"


async def test_a_typed_card_shows_a_change_as_a_diff_and_what_the_code_would_do():
    approver, shown = typed("y")
    preview = Preview("diff", "a = 1\nb = 3", "a = 1\nb = 2", effects=("rebinds `b`", "writes \u202eout.csv"))
    question = Approval("c", "edit_cell", "edit In[2]", {"cell": "x"}, preview, "why", (), editable=True)
    assert await approver.ask(question) == YES
    text = "\n".join(shown)
    assert "│  a = 1\n│ -b = 2\n│ ?    ^\n│ +b = 3\n│ ?    ^" in text
    assert "Probably: rebinds `b` · writes ⟨U+202E⟩out.csv" in text


async def test_calls_of_one_card_are_typed_about_one_after_the_other():
    approver, shown = typed("y", "not this", "y")
    group = [approval(f"call-{n}", body=f"x = {n}", group="g", of=3) for n in range(3)]
    answers = await asyncio.gather(*(approver.ask(item) for item in group))
    assert [answer.approved for answer in answers] == [True, False, True]
    asked_in_order = [line for text in shown for line in text.split("\n") if line.startswith("│ x")]
    assert asked_in_order == ["│ x = 0", "│ x = 1", "│ x = 2"]
