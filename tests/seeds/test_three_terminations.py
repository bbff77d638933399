"""Seed “event loop”: the three termination checks, with real tools; each alone must end a run that nothing else ends."""

from __future__ import annotations

import itertools

from nbagent.core.events import CallStarted, Reason
from nbagent.core.limits import DEFAULT_PRESET, PRESETS, Limits
from nbagent.models.scripted import ScriptedModel, call
from tests.core.rig import Person, play
from tests.seeds.bench import Bench


class Runaway(ScriptedModel):
    """Never says that it is done: asks for `make(n)` in its turn n."""

    def __init__(self, make) -> None:
        super().__init__([(lambda _, n=n: [make(n)]) for n in range(200)])


async def test_1_the_model_returned_no_tool_call_end_turn(tmp_path):
    ran = await play([call("glob", pattern="*")], "That is all.", rig=Bench(tmp_path))
    assert ran.end.reason is Reason.END_TURN
    assert ran.end.turns == 2


async def test_2_more_than_n_iterations_bails_out_loud(tmp_path):
    model = Runaway(lambda n: call("glob", pattern=f"*.{n}"))
    ran = await play(model=model, rig=Bench(tmp_path), limits=Limits(max_turns=7))
    assert ran.end.reason is Reason.MAX_TURNS
    assert len(ran.of(CallStarted)) == 7
    assert "limit" in ran.end.sentence
    assert ran.end.next_step, "what the person can do now"


async def test_2_there_is_a_number_where_nobody_picked_one(tmp_path):
    ran = await play(model=Runaway(lambda n: call("glob", pattern=f"*.{n}")), rig=Bench(tmp_path))
    assert ran.end.reason is Reason.MAX_TURNS
    assert len(ran.of(CallStarted)) == PRESETS[DEFAULT_PRESET] == 25
    assert PRESETS["session"] == 100


async def test_3_the_same_file_read_twice_in_a_row_asks_for_help(tmp_path):
    bench, person = Bench(tmp_path), Person(replies=["End the run"])
    bench.write("a.txt", "alpha")
    ran = await play(model=Runaway(lambda _: call("read_file", path="a.txt")), rig=bench, person=person)
    assert ran.end.reason is Reason.REPEATED
    assert len(ran.of(CallStarted)) == 2
    assert "same" in person.questions[0].text


async def test_3_where_nobody_can_be_asked_it_is_told_and_then_stopped(tmp_path):
    bench = Bench(tmp_path)
    bench.write("a.txt", "alpha")
    model = Runaway(lambda _: call("read_file", path="a.txt"))
    ran = await play(model=model, rig=bench, person=Person(present=False))
    assert ran.end.reason is Reason.REPEATED
    assert len(ran.of(CallStarted)) == 3


async def test_3_going_round_over_two_files_counts_too(tmp_path):
    bench = Bench(tmp_path)
    bench.write("a.txt", "alpha")
    bench.write("b.txt", "beta")
    names = itertools.cycle(["a.txt", "b.txt"])
    model = Runaway(lambda _: call("read_file", path=next(names)))
    ran = await play(model=model, rig=bench, person=Person(present=False))
    assert ran.end.reason is Reason.REPEATED
    assert len(ran.of(CallStarted)) <= 6


async def test_3_a_file_that_changed_between_two_reads_is_no_loop(tmp_path):
    bench = Bench(tmp_path)
    path = bench.write("n.txt", "0")

    def grown(_):
        path.write_text(str(int(path.read_text()) + 1))
        return [call("read_file", path="n.txt")]

    ran = await play(*[grown] * 4, "done", rig=bench, person=Person(present=False))
    assert ran.end.reason is Reason.END_TURN
