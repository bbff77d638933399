"""Five carriers, one job: the same events, calls and messages; the seed's table by figures; what it warns of fails as it says."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.teach import against_reactive, antipatterns, differences, matrix, measured
from nbagent.teach.carriers import CARRIERS, emitter, generator, machine, reactive, recursion
from nbagent.teach.carriers.job import Job, Messages, beginning

WATCHED = [emitter, machine, reactive, generator]


async def _told(carrier, job: Job, messages: Messages) -> list:
    seen: list = []

    async def on_event(event) -> bool:
        seen.append(event)
        return True

    await carrier.consume(job, on_event, messages=messages)
    return seen


@given(st.integers(0, 12))
async def test_all_carriers_do_the_same_job(steps: int) -> None:
    told, transcripts, jobs = [], [], []
    for carrier in CARRIERS.values():
        job, messages = Job(steps), beginning()
        told.append(await _told(carrier, job, messages))
        transcripts.append(messages)
        jobs.append((job.asked, job.called, job.opened, job.closed))
    assert all(each == transcripts[0] for each in transcripts)
    assert all(each == (steps + 1, list(range(1, steps + 1)), 1, 1) for each in jobs)
    assert told[0] == [("done", "end_turn")]
    assert all(each == told[1] for each in told[1:])
    assert [kind for kind, _ in told[1]] == ["think", "reply", "result"] * steps + ["think", "reply", "done"]


class Planned(Job):
    """A job that makes as many calls a turn as a plan says."""

    plan: tuple[int, ...] = ()

    async def model(self, messages: Messages) -> dict:
        reply = await Job.model(self, messages)
        if self.asked > len(self.plan):
            return reply
        blocks = [
            {"type": "tool_use", "id": f"toolu_{self.asked}_{n}", "name": "step", "input": {"number": n}}
            for n in range(self.plan[self.asked - 1])
        ]
        return {"stop_reason": "tool_use", "content": blocks}


@given(st.lists(st.integers(1, 4), max_size=6))
async def test_all_carriers_tell_the_same_of_any_script(plan: list[int]) -> None:
    told, transcripts = [], []
    for carrier in CARRIERS.values():
        job, messages = Planned(len(plan)), beginning()
        job.plan = tuple(plan)
        told.append(await _told(carrier, job, messages))
        transcripts.append(messages)
    assert all(each == transcripts[0] for each in transcripts)
    assert all(each == told[1] for each in told[2:])
    results = [len(message["content"]) for message in transcripts[0][1:] if message["role"] == "user"]
    assert results == plan
    assert sum(kind == "result" for kind, _ in told[1]) == sum(plan)


@given(st.integers(1, 8))
async def test_a_flag_ends_every_carrier_between_two_calls(after: int) -> None:
    for carrier in CARRIERS.values():
        job, messages = Job(20), beginning()

        async def on_event(_) -> bool:
            return True

        await carrier.consume(job, on_event, lambda job=job: len(job.called) >= after, messages)
        assert (len(job.called), job.closed) == (after, 1)
        assert messages[-1]["role"] == "user"  # every call has its result


async def test_only_the_recursion_grows() -> None:
    grown = {name: await measured.growth(carrier) for name, carrier in CARRIERS.items()}
    assert grown["recursion"].ended == "RecursionError"
    assert grown["recursion"].steps < measured.STEPS
    assert grown["recursion"].bytes_per_step > 300
    for name in ("event emitter", "state machine", "reactive", "async generator"):
        assert (grown[name].ended, grown[name].steps) == ("done", measured.STEPS), name
        assert abs(grown[name].frames_per_step) < 0.01, name
        assert grown[name].bytes_per_step < 100, name


async def test_who_pulls_can_hold_and_who_pushes_goes_on() -> None:
    held = {carrier.__name__.rpartition(".")[2]: await measured.paused(carrier) for carrier in WATCHED}
    assert held["machine"] == held["generator"] == (0, True)
    assert held["emitter"][0] > 10
    assert held["reactive"][0] > 10
    assert await measured.lead(generator) <= 1 < await measured.lead(emitter)


async def test_leaving_ends_what_can_be_left_and_gives_back_what_it_held() -> None:
    assert (await measured.left(emitter)).late_calls == 17
    for carrier in (machine, generator, reactive):
        left = await measured.left(carrier)
        assert (left.late_calls, left.gave_back) == (0, True), carrier
    for carrier in CARRIERS.values():
        cut = await measured.timed_out(carrier)
        assert (cut.late_calls, cut.gave_back) == (0, True), carrier
    assert (await measured.timed_out(recursion)).kept == 0  # done, and lost: nobody was told
    assert (await measured.timed_out(generator)).kept == 2


async def test_the_table_has_each_claim_of_the_seed_and_a_figure_below_it() -> None:
    table = matrix.matrix(await matrix.measure())
    assert {row[0] for row in table.rows if row[1] == "seed"} == set(matrix.CLAIMED)
    assert sum(row[1] == "here" for row in table.rows) == len(matrix.CLAIMED) + 3
    assert "RecursionError" in repr(table)
    assert "<td" in table._repr_html_()
    contradicted = [row[0] for row in table.rows if matrix.DIFFERS in " ".join(row)]
    assert contradicted == ["… with the transcript", "… by a flag", "… by a timeout"]


def test_a_figure_that_contradicts_its_claim_says_so_and_a_vague_claim_is_never_contradicted() -> None:
    held = matrix.Verdict(True, "nothing went on")
    assert matrix.said(held, "native") == "yes: nothing went on"
    assert matrix.said(held, "hard") == f"yes: nothing went on ({matrix.DIFFERS})"
    assert matrix.said(held, "manual") == matrix.said(held, "") == "yes: nothing went on"
    assert matrix.DIFFERS in matrix.said(matrix.Verdict(False, "18 calls went on"), "built-in")


def test_every_claim_has_a_word_that_is_known_or_is_about_style() -> None:
    words = {word for claims in matrix.CLAIMED.values() for word in claims}
    assert words - set(matrix._EXPECTED) == {"manual", "good", "poor", "excellent"}


async def test_growth_is_judged_by_a_line_through_all_steps() -> None:
    assert measured._slope([7, 7, 7, 7]) == 0
    assert measured._slope([1, 3, 5, 7]) == pytest.approx(2)
    whole = await measured.growth(generator, 100, window=None)
    assert whole.bytes_per_step > 300 > (await measured.growth(generator, 100)).bytes_per_step


async def test_a_carrier_whose_library_is_missing_is_left_out_and_the_table_says_what_to_install() -> None:
    async def consume(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'reactivex'")

    missing = ModuleType("missing")
    vars(missing)["consume"] = consume
    known = await matrix.measure({"async generator": generator, "reactive": missing})
    assert list(known) == ["async generator"]
    assert "pip install 'jupyter-nbagent[teach]'" in repr(matrix.matrix(known))


async def test_the_second_table_counts_what_can_be_counted() -> None:
    rows = {row[0]: row[1:] for row in (await against_reactive.against_reactive()).rows}
    assert rows["Backpressure"][1] == "0 calls ahead" != rows["Backpressure"][3]
    assert all("cold" in rows["Hot or cold"][place] for place in (1, 3))
    assert "comes late gets 1 of 2" in rows["Hot or cold"][3]
    assert "a part (6 and 6)" in rows["Multicasting"][1]
    assert "gets all (12 and 12), 4 model calls, not 8" in rows["Multicasting"][3]
    assert rows["Error handling"][1] == "ValueError at the consumer, after 2 events"
    assert rows["Error handling"][3] == "ValueError made an event by catch, after 2 events"


async def test_the_antipatterns_fail_as_the_seed_says() -> None:
    assert await antipatterns.done_before_the_first(antipatterns.buffered) == 10
    assert await antipatterns.done_before_the_first(antipatterns.streamed) == 1
    assert len(await antipatterns.heard_of(antipatterns.silent)) == 3
    loud = await antipatterns.heard_of(antipatterns.outspoken)
    assert [kind for kind, _ in loud] == ["result"] * 3 + ["error"] + ["result"] * 6


async def test_python_differs_from_the_seeds_language_where_the_lesson_says() -> None:
    assert differences.no_yield_star().startswith("SyntaxError")
    assert await differences.break_does_not_close() == ["after the break", "finally"]
    assert await differences.aclosing_closes() == ["finally", "after the break"]
    assert await differences.runs_in_its_consumers_task()
    assert await differences.a_timeout_across_a_yield() == "CancelledError in the consumer's code"
    assert (await differences.two_pulls_at_once()).startswith("RuntimeError")
    assert await differences.recursion_by_tasks(1500) == "1500 turns deep, 0 frames more on the stack"


@pytest.mark.parametrize("carrier", WATCHED)
async def test_what_a_tool_raises_reaches_whoever_consumes(carrier) -> None:
    job = Job(3)

    def fail() -> None:
        raise ValueError("the tool failed")

    job.probe = fail
    with pytest.raises(ValueError, match="the tool failed"):
        await _told(carrier, job, beginning())
    assert job.closed == 1
