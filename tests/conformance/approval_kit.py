"""What every way from a question to a person and back promises: the approval port, and the routes that answers take.

A host is an `Approver`, and what a person at its other end does: clicks in a page over a real comm, lines that they type,
or nothing, since nobody is there. Each promise runs where the host runs (in a kernel, or here) and takes a `Route`.
`CLICKED` are those of buttons, `TYPED` of a keyboard, `NOBODY` of the policy. Read `Route` first.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from nbagent.core.ports import Answered, Approval, Approver, Preview, Question
from tests.support.turns import turns

SOON = 20.0
"""Seconds after which an answer that should come is taken as lost."""
QUIET = 0.6
"""Seconds for which something that must not happen is watched, after all that the person did has come."""

RULE = "run_cell(sha256:0f)"
_COUNT = iter(range(10**6))


class Route(Protocol):
    """One way to a person. `show` puts questions before them, as the run's events do; `hide` takes what was answered away.

    What the person does is said beforehand: they do it as soon as there is something to answer.
    """

    approver: Approver

    def show(self, *asked: Approval | Question) -> None: ...
    def hide(self, asked: Approval, answered: Answered) -> None: ...

    async def approve(self, *, times: int = 1, rule: str = "", edited: str | None = None, only: int = -1) -> None:
        """Say yes to all that is shown: `times` in a row, keeping `rule`, to the text `edited`, or to number `only`."""

    async def deny(self, words: str = "") -> None: ...
    async def approve_and_deny(self) -> None:
        """Two answers that race."""

    async def again(self) -> None:
        """Click once more on the last button that was clicked, which is not there any more."""

    async def reply(self, text: str) -> None: ...

    async def acted(self) -> None:
        """Return when all that the person clicked so far has come, whatever became of it."""

    def close(self) -> None: ...


Promise = Callable[[Route], Awaitable[None]]


def approval(body: str = "x = 1", **more: Any) -> Approval:
    """A question about a call of its own."""
    given: dict[str, Any] = {"call_id": f"call-{next(_COUNT)}", "offers": (RULE, "run_cell"), "editable": True, **more}
    return Approval(
        tool="run_cell",
        title=f"run {body}",
        input={"source": body},
        preview=Preview("code", body),
        why="mode default asks",
        **given,
    )


async def asked(route: Route, *questions: Approval) -> list[asyncio.Task[Answered]]:
    """Ask about `questions` side by side and show them; return the tasks that wait for the answers."""
    tasks = [asyncio.create_task(route.approver.ask(question)) for question in questions]
    await turns()
    route.show(*questions)
    return tasks


async def answers(route: Route, tasks: list[asyncio.Task[Answered]], *questions: Approval) -> list[Answered]:
    """Return the answers when all have come."""
    got = await asyncio.wait_for(asyncio.gather(*tasks), SOON)
    for question, answered in zip(questions, got, strict=True):
        route.hide(question, answered)
    return got


async def unanswered(route: Route, task: asyncio.Task[Answered]) -> None:
    """Fail if an answer comes of what the person did."""
    await asyncio.wait_for(route.acted(), SOON)
    done, _ = await asyncio.wait({task}, timeout=QUIET)
    assert not done, f"answered by nobody: {task.result()}"


# ── a person who can answer ──────────────────────────────────────────────────────────────────────────────────────────


async def a_yes_is_a_yes_and_says_who_gave_it(route: Route) -> None:
    question = approval()
    await route.approve()
    tasks = await asked(route, question)
    [got] = await answers(route, tasks, question)
    assert (got.approved, got.words, got.rule, got.by, got.edited) == (True, "", "", "person", None)
    assert route.approver.present


async def a_no_carries_the_words(route: Route) -> None:
    question = approval()
    await route.deny("use polars instead")
    tasks = await asked(route, question)
    [got] = await answers(route, tasks, question)
    assert (got.approved, got.words, got.rule) == (False, "use polars instead", "")


async def a_rule_is_kept_with_the_yes_if_it_was_offered(route: Route) -> None:
    question = approval()
    await route.approve(rule=RULE)
    tasks = await asked(route, question)
    [got] = await answers(route, tasks, question)
    assert (got.approved, got.rule) == (True, RULE)


async def a_question_gets_the_choice_or_the_words(route: Route) -> None:
    for reply in ("Gentoo", "none of them"):
        question = Question(f"q-{next(_COUNT)}", "Which?", ("Adelie", "Gentoo"))
        await route.reply(reply)
        task = asyncio.create_task(route.approver.question(question))
        await turns()
        route.show(question)
        assert await asyncio.wait_for(task, SOON) == reply


async def questions_asked_one_after_the_other_each_get_their_own_answer(route: Route) -> None:
    got = []
    for yes in (True, False, True):
        question = approval(f"x = {yes}")
        await (route.approve() if yes else route.deny("no"))
        tasks = await asked(route, question)
        got += await answers(route, tasks, question)
    assert [answered.approved for answered in got] == [True, False, True]


EVERYONE: tuple[Promise, ...] = (
    a_yes_is_a_yes_and_says_who_gave_it,
    a_no_carries_the_words,
    a_rule_is_kept_with_the_yes_if_it_was_offered,
    a_question_gets_the_choice_or_the_words,
    questions_asked_one_after_the_other_each_get_their_own_answer,
)


# ── buttons ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def a_double_click_answers_once_and_not_the_next_question(route: Route) -> None:
    first, second = approval("first"), approval("second")
    tasks = await asked(route, first)
    await route.approve(times=2)
    assert (await answers(route, tasks, first))[0].approved
    tasks = await asked(route, second)
    await unanswered(route, tasks[0])
    await route.deny("not this one")
    assert (await answers(route, tasks, second))[0].words == "not this one"


async def of_two_racing_answers_the_first_counts(route: Route) -> None:
    question = approval()
    tasks = await asked(route, question)
    await route.approve_and_deny()
    [got] = await answers(route, tasks, question)
    assert got.approved, "the first one was a yes"


async def a_click_on_what_was_shown_differently_does_not_count(route: Route) -> None:
    question = approval("rm_nothing()")
    shown = approval("something_else()", call_id=question.call_id)
    task = asyncio.create_task(route.approver.ask(question))
    await turns()
    route.show(shown)
    await route.approve()
    await unanswered(route, task)
    route.hide(shown, Answered(approved=False))
    route.show(question)
    await route.deny("no")
    assert (await answers(route, [task], question))[0].words == "no"


async def a_click_on_a_card_that_is_gone_answers_nothing(route: Route) -> None:
    first, second = approval("first"), approval("second")
    tasks = await asked(route, first)
    await route.approve()
    await answers(route, tasks, first)
    tasks = await asked(route, second)
    await route.again()
    await unanswered(route, tasks[0])
    await route.approve()
    assert (await answers(route, tasks, second))[0].approved


async def several_asked_in_one_card_each_get_their_own_answer(route: Route) -> None:
    group = [approval(f"n = {n}", group="g", of=3) for n in range(3)]
    tasks = await asked(route, *group)
    await route.approve(only=1)
    got = await answers(route, tasks, *group)
    assert [answered.approved for answered in got] == [False, True, False]
    assert all(answered.words for answered in got if not answered.approved), "what was left out has words"


async def the_text_that_the_person_wrote_comes_with_the_yes(route: Route) -> None:
    question = approval("x = 1")
    tasks = await asked(route, question)
    await route.approve(edited="x = 2  # my own")
    [got] = await answers(route, tasks, question)
    assert (got.approved, got.edited) == (True, "x = 2  # my own"), got


async def an_interrupted_wait_leaves_nothing_open(route: Route) -> None:
    question, after = approval("never"), approval("after")
    tasks = await asked(route, question)
    tasks[0].cancel()
    await asyncio.wait(tasks)
    assert tasks[0].cancelled()
    task = asyncio.create_task(route.approver.ask(after))
    await route.approve()  # on the card of the question that nobody waits for any more
    await unanswered(route, task)
    route.hide(question, Answered(approved=False))
    route.show(after)
    await route.deny("now")
    assert (await answers(route, [task], after))[0].words == "now"


async def closing_denies_what_waits_and_what_is_asked_later(route: Route) -> None:
    group = [approval("one"), approval("two")]
    tasks = await asked(route, *group)
    route.close()
    got = [*await asyncio.wait_for(asyncio.gather(*tasks), SOON), await route.approver.ask(approval("three"))]
    assert [(answered.approved, bool(answered.words)) for answered in got] == [(False, True)] * 3
    assert await route.approver.question(Question("q", "Which?")) == ""
    assert not route.approver.present


CLICKED: tuple[Promise, ...] = (
    *EVERYONE,
    a_double_click_answers_once_and_not_the_next_question,
    of_two_racing_answers_the_first_counts,
    a_click_on_what_was_shown_differently_does_not_count,
    a_click_on_a_card_that_is_gone_answers_nothing,
    several_asked_in_one_card_each_get_their_own_answer,
    the_text_that_the_person_wrote_comes_with_the_yes,
    an_interrupted_wait_leaves_nothing_open,
    closing_denies_what_waits_and_what_is_asked_later,  # the last one: it is final
)


# ── a keyboard ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def where_nothing_can_be_typed_any_more_it_denies_at_once(route: Route) -> None:
    route.close()
    got = [await asyncio.wait_for(route.approver.ask(approval()), SOON) for _ in range(2)]
    assert [(answered.approved, answered.by, bool(answered.words)) for answered in got] == [(False, "policy", True)] * 2
    assert not route.approver.present


async def what_is_asked_side_by_side_is_put_one_after_the_other(route: Route) -> None:
    group = [approval(f"n = {n}") for n in range(3)]
    await route.approve()
    await route.deny("not this one")
    await route.approve()
    tasks = await asked(route, *group)
    got = await answers(route, tasks, *group)
    assert [(answered.approved, answered.words) for answered in got] == [
        (True, ""),
        (False, "not this one"),
        (True, ""),
    ]


async def the_loop_turns_while_a_line_is_waited_for_and_the_wait_can_be_given_up(route: Route) -> None:
    never, after = approval("never"), approval("after")
    tasks = await asked(route, never)
    await unanswered(route, tasks[0])
    tasks[0].cancel()
    await asyncio.wait(tasks)
    assert tasks[0].cancelled()
    await route.deny("this was for the one that was given up")
    await route.approve()
    tasks = await asked(route, after)
    [got] = await answers(route, tasks, after)
    assert got.approved, "the line was typed into the box of another question"


TYPED: tuple[Promise, ...] = (
    *EVERYONE,
    what_is_asked_side_by_side_is_put_one_after_the_other,
    the_loop_turns_while_a_line_is_waited_for_and_the_wait_can_be_given_up,
    where_nothing_can_be_typed_any_more_it_denies_at_once,
)


# ── nobody ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def where_nobody_is_a_call_is_denied_at_once_with_words(route: Route) -> None:
    assert not route.approver.present
    group = [approval(f"n = {n}", group="g", of=3) for n in range(3)]
    got = await asyncio.wait_for(asyncio.gather(*(route.approver.ask(question) for question in group)), SOON)
    assert [(answered.approved, answered.by, answered.rule) for answered in got] == [(False, "policy", "")] * 3
    assert all("Nobody is there" in answered.words for answered in got)


async def where_nobody_is_a_question_has_no_answer(route: Route) -> None:
    assert await asyncio.wait_for(route.approver.question(Question("q", "Which?", ("a", "b"))), SOON) == ""


NOBODY: tuple[Promise, ...] = (
    where_nobody_is_a_call_is_denied_at_once_with_words,
    where_nobody_is_a_question_has_no_answer,
)


def promise_name(promise: Promise) -> str:
    """The promise in words."""
    return promise.__name__.replace("_", " ")


async def keep_all(promises: tuple[Promise, ...], make: Callable[[], Route]) -> dict[str, str]:
    """Try each promise with a route of its own; return the traceback of each that is broken, by its name ("" if kept)."""
    said: dict[str, str] = {}
    for promise in promises:
        route = make()
        try:
            await promise(route)
            said[promise_name(promise)] = ""
        except Exception:
            said[promise_name(promise)] = traceback.format_exc()
        finally:
            route.close()
    return said
