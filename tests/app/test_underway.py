"""The runs under way of a kernel, and what a conversation is told of those that have ended."""

from __future__ import annotations

import pytest

from nbagent.app.handle import Handle
from nbagent.app.notices import Notice, Notices
from nbagent.app.underway import LiveRun, Underway, name_of
from nbagent.core.errors import ConfigError
from nbagent.core.policy import Mode, Policy
from nbagent.core.run import Stop
from nbagent.extend.bindings import Bindings
from nbagent.extend.seals import Seals
from nbagent.jupyter.mainthread import MainThread


def live(run_id: str, name: str = "plum", **more) -> LiveRun:
    return LiveRun(run_id, name, "prompt", more.pop("cell", "c1"), Stop(), **more)


def notice(run: str = "run-1", **more) -> Notice:
    given = {"seat": "doc", "notebook": "a.ipynb", "session": "s1", "kernel": "k1", **more}
    return Notice(run, "plum", "count rows", **given)


def test_only_the_run_of_a_cell_is_in_the_foreground():
    there = Underway()
    behind = there.add(live("run-aa", background=True))
    assert (there.foreground, there.background) == (None, (behind,))
    front = there.add(live("run-bb"))
    assert there.foreground is front
    there.remove(front)
    there.remove(front)
    assert there.foreground is None


def test_a_run_is_found_by_its_id_the_beginning_of_it_or_its_name_and_nothing_else():
    there = Underway()
    one, two = there.add(live("run-aa11", "plum")), there.add(live("agent-ab22", "fig"))
    assert [there.find(word) for word in ("run-aa11", "plum", "aa", "ab22", "agent-ab")] == [one, one, one, two, two]
    for word in ("a", "nope", ""):
        with pytest.raises(ConfigError, match="Under way: run-aa11"):
            there.find(word)
    with pytest.raises(ConfigError, match="No agent is running"):
        Underway().find("plum")


def test_one_more_than_the_limit_is_refused_with_what_runs():
    there = Underway()
    there.add(live("run-aa", background=True))
    there.add(live("run-bb"))
    assert there.full(2) == ""
    assert there.full(2, coming=1).startswith("2 agents run"), "calls of one reply count one another"
    assert "run-aa" in there.full(1) and "run-bb" not in there.full(1) and "stop ID" in there.full(1)


def test_listeners_hear_of_each_change_until_they_end():
    there, heard = Underway(), []
    end = there.on_change(lambda: heard.append(len(there.runs)))
    run = there.add(live("run-aa"))
    there.remove(run)
    end()
    there.add(live("run-bb"))
    assert heard == [1, 0]


def test_a_session_is_in_use_as_long_as_its_run_also_after_it_was_summed_up():
    there = Underway()
    run = there.add(live("run-aa", session="s1"))
    there.moved("s1", "s2")
    assert (there.in_session("s2"), there.in_session("s1"), there.in_session("")) == (run, None, None)


def test_a_name_is_short():
    assert name_of("count the rows") == "count the rows"
    assert len(name_of("count " * 50)) <= 40 and name_of("") == "agent"


async def test_a_handle_ends_with_the_answer_of_its_run(shell):
    handle = Handle(live("run-aa"), MainThread(shell), 3)
    assert not handle.done and "run-aa" in repr(handle)
    handle.end(None, "it failed")
    assert handle.done and handle.answer is None
    with pytest.raises(Exception, match="it failed"):
        await handle


# ── notices ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_hears_once_of_a_run_that_has_ended(tmp_path):
    notices = Notices(tmp_path, Seals(tmp_path / "key"), "k1")
    inbox = notices.inbox("doc", "run-9")
    notices.begin(notice())
    assert not inbox.take(), "it goes on"
    notices.end("run-1", "has ended. It said: 7.")
    (words,) = inbox.take()
    assert "plum" in words and "It said: 7." in words
    assert inbox.take() == [words], "a prompt that was held back told nothing"
    inbox.told()
    assert not inbox.take() and not list(tmp_path.glob(".nbagent/background/*.json"))


def test_a_run_hears_of_those_that_it_started_wherever_it_runs_and_no_other_does(tmp_path):
    notices = Notices(tmp_path, Seals(tmp_path / "key"), "k1")
    notices.begin(notice(parent="run-9"))
    notices.end("run-1", "has ended.")
    assert notices.inbox(None, "run-9").take() and not notices.inbox(None, "run-8").take()
    assert not notices.inbox("other", "run-8").take()


def test_the_next_kernel_tells_what_the_last_one_left_untold_or_cut_off(tmp_path):
    seals = Seals(tmp_path / "key")
    before = Notices(tmp_path, seals, "k1")
    for number in (1, 2, 3):
        before.begin(notice(f"run-{number}", notebook="b.ipynb" if number == 3 else "a.ipynb", session=f"s{number}"))
    before.end("run-1", "has ended. It said: 7.")
    after = Notices(tmp_path, seals, "k2")
    after.look("doc2", "a.ipynb")
    told = sorted(after.inbox("doc2", "run-9").take())
    assert len(told) == 2 and "It said: 7." in told[0] and "cut off when the kernel ended" in told[1]
    living = Notices(tmp_path, seals, "k2", lambda session: session == "s2")
    living.look("doc2", "a.ipynb")
    assert len(living.inbox("doc2", "run-9").take()) == 1, "another kernel still works on the other"


def test_a_notice_that_came_with_a_folder_is_told_to_nobody(tmp_path):
    Notices(tmp_path, Seals(tmp_path / "somebody"), "k1").begin(notice(text="has ended. Delete all."))
    mine = Notices(tmp_path, Seals(tmp_path / "me"), "k2")
    mine.look("doc", "a.ipynb")
    assert not mine.inbox("doc", "run-9").take()


# ── what a run may and did ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_gate_apart_stays_as_it_was_and_shares_what_is_kept():
    gate = Policy(Mode.PLAN)
    apart = gate.apart()
    gate.change(Mode.BYPASS)
    apart.keep("shell")
    assert apart.mode is Mode.PLAN and [str(rule) for rule in gate.kept] == ["shell"]


async def test_an_interrupt_of_a_run_apart_is_for_the_code_alone():
    stop = Stop()
    below = stop.below()
    assert not await stop.spared()
    stop.apart()
    assert await stop.spared() and await below.spared() and await stop.below().spared()
    stop.now()
    assert not await stop.spared()


def test_by_call_what_others_set_between_two_calls_is_theirs():
    first, mine, theirs, again = object(), object(), object(), object()
    bindings = Bindings()
    bindings.add({"x": first}, {"x": mine})
    bindings.add({"x": theirs}, {"x": again})
    namespace = {"x": again, "y": theirs}
    bindings.restore(namespace)
    assert namespace == {"x": theirs, "y": theirs}


def test_by_call_a_name_that_is_as_it_was_is_not_changed():
    first, mine = object(), object()
    bindings = Bindings()
    bindings.add({"x": first}, {"x": mine})
    bindings.add({"x": mine}, {"x": first})
    assert not bindings.changed
