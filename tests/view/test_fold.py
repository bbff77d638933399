"""The fold of events to the view model: any order is survived, deltas may be merged, broken replies do not count."""

from __future__ import annotations

import dataclasses
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core import events as ev
from nbagent.core.events import Event, Reason, State, Status
from nbagent.core.messages import Usage
from nbagent.view.fold import ViewModel, coalesce, fold, fold_all
from nbagent.view.items import CallItem, EndedItem, NoteItem, QuestionItem, RawItem, RetryItem, TextItem, ThinkingItem
from tests.view.events_fixture import penguins, until

IDS = st.sampled_from(["a", "b", ""])
TEXT = st.text(max_size=6)
JSON = st.dictionaries(
    st.sampled_from(["type", "text", "input", "id", "preview", "tool"]),
    st.one_of(st.none(), TEXT, st.integers()),
    max_size=3,
)
BLOCKS = st.lists(JSON, max_size=3).map(tuple)
FIELDS = {
    "run_id": IDS, "session_id": IDS, "model": TEXT, "mode": TEXT, "prompt": TEXT, "max_turns": st.integers(0, 9),
    "budget": TEXT, "notebook": TEXT, "answers": st.booleans(), "new": BLOCKS, "prefix": TEXT, "index": st.integers(0, 2),
    "kind": st.sampled_from(["text", "thinking", "tool_use", "other"]), "name": TEXT, "call_id": IDS, "text": TEXT,
    "raw": JSON, "content": BLOCKS, "stop_reason": TEXT, "usage": st.builds(Usage, st.integers(0, 9)),
    "cost": st.one_of(st.none(), st.floats(0, 1)), "why": TEXT, "attempt": st.integers(0, 3), "limit": st.integers(0, 3),
    "wait": st.floats(0, 9), "input": JSON, "action": TEXT, "rule": TEXT, "approval": JSON, "approved": st.booleans(),
    "words": TEXT, "by": TEXT, "title": TEXT, "preview": JSON, "status": st.sampled_from(list(Status)),
    "seconds": st.floats(0, 9), "summary": TEXT, "cells": st.just(("x",)), "call_ids": st.just(("a",)),
    "question_id": IDS, "choices": st.just(("yes",)), "level": TEXT, "reason": st.sampled_from(list(Reason)),
    "sentence": TEXT, "next_step": TEXT, "turns": st.integers(0, 9), "state": st.sampled_from(list(State)),
    "turn": st.integers(0, 3), "at": st.floats(0, 99), "edited": st.booleans(), "checked": TEXT,
    "hook_id": IDS, "hook": TEXT, "on": TEXT, "message": TEXT, "output": TEXT,
    "outcome": st.sampled_from(["ok", "ask", "block", "failed"]), "agent_id": IDS, "agent": TEXT,
    "trigger": TEXT, "before": st.integers(0, 9), "after": st.integers(0, 9), "compacted_from": IDS,
    "header": TEXT, "details": st.just(("more",)), "previews": st.just(()), "many": st.booleans(), "group": IDS,
    "of": st.integers(1, 2), "todos": BLOCKS, "carried": st.booleans(), "host": TEXT,
    "live": st.booleans(), "system": TEXT, "tools": BLOCKS, "messages": BLOCKS, "team": IDS, "board": JSON, "lanes": BLOCKS, "note": TEXT, "marks": JSON, "label": TEXT, "how": TEXT, "goes_on": st.booleans(), "verdict": JSON,
    "event": st.deferred(lambda: st.one_of(*map(of_kind, KINDS), DELTAS, DELTAS)),
}  # fmt: skip


def of_kind(kind: type[Event]) -> st.SearchStrategy[Event]:
    return st.builds(kind, **{f.name: FIELDS[f.name] for f in dataclasses.fields(kind)})


KINDS = Event.__subclasses__()
DELTAS = st.one_of(of_kind(ev.TextDelta), of_kind(ev.ThinkingDelta), of_kind(ev.InputDelta), of_kind(ev.BlockStarted))
EVENTS = st.lists(st.one_of(*map(of_kind, KINDS), DELTAS, DELTAS), max_size=40)


@settings(deadline=None, max_examples=150 * settings.default.max_examples // 100)
@given(EVENTS)
def test_any_order_of_events_folds_to_the_same_with_deltas_merged(events):
    assert fold_all(coalesce(events)) == fold_all(events)


@settings(deadline=None, max_examples=100 * settings.default.max_examples // 100)
@given(EVENTS)
def test_keys_of_items_are_unique_whatever_comes(events):
    keys = [item.key for item in fold_all(events).items]
    assert len(keys) == len(set(keys))


def test_a_kind_of_event_that_is_not_known_only_moves_the_clock():
    class Later(Event):
        pass

    view = fold(ViewModel(), Later(state=State.ACT, turn=3, at=7.0))
    assert (view.at, view.turn, view.items) == (7.0, 3, ())


def test_the_whole_run_gives_each_kind_of_item_and_the_sums():
    view = fold_all(penguins())
    kinds = {type(item) for item in view.items}
    assert kinds >= {TextItem, ThinkingItem, CallItem, QuestionItem, NoteItem, RetryItem, RawItem, EndedItem}
    assert (view.usage.total, view.cost, view.ended.turns) == (33_700, 0.0605, 5)
    calls = [item for item in view.items if isinstance(item, CallItem)]
    assert [call.status for call in calls] == ["ok", "error", "ok", "ok", "denied"]
    assert calls[1].answer.rule == "add_cell"


def test_a_discarded_reply_is_shown_as_discarded_and_not_twice():
    view = fold_all(until(ev.ReplyEnded, 2))
    texts = [item for item in view.items if isinstance(item, TextItem)]
    assert [bool(item.discarded) for item in texts] == [False, True, False]
    assert texts[1].text == "Now the rows without mea"


def test_an_approval_is_open_until_it_is_answered():
    assert [a["call_id"] for a in fold_all(until(ev.ApprovalAsked)).approvals] == ["c2"]
    assert fold_all(until(ev.ApprovalAnswered)).approvals == ()


def test_the_end_of_a_run_leaves_nothing_open():
    for kind in (ev.ApprovalAsked, ev.QuestionAsked, ev.CallStarted, ev.TextDelta, ev.InputDelta):
        ended = dataclasses.replace(penguins()[-1], reason=Reason.INTERRUPTED)
        view = fold_all([*until(kind), ended])
        assert view.approvals == () == view.questions
        assert {i.status for i in view.items if isinstance(i, CallItem)} <= set(Status)
        assert all(i.done for i in view.items if isinstance(i, TextItem))


def test_one_call_id_used_in_two_turns_gives_two_cards():
    start = {"state": State.ACT, "at": 1.0, "call_id": "call_0", "name": "run_python"}
    end = {"status": Status.OK, "content": (), "seconds": 0.1}
    events = [
        e
        for turn in (1, 2)
        for e in (
            ev.CallStarted(**start, turn=turn, input={}, title="run", preview={}),
            ev.CallEnded(**start, turn=turn, **end),
        )
    ]
    assert [i.status for i in fold_all(events).items] == ["ok", "ok"]


def test_a_stored_reply_without_deltas_is_shown_from_its_blocks():
    content = ({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hello"},
               {"type": "tool_use", "id": "c", "name": "look", "input": {"a": 1}})  # fmt: skip
    event = ev.ReplyEnded(
        state=State.THINK, turn=1, at=1.0, content=content, stop_reason="tool_use", usage=Usage(1), cost=None
    )
    thinking, text, call = fold(ViewModel(), event).items
    assert (thinking.text, text.text, text.done, call.input, call.status) == ("hm", "hello", True, {"a": 1}, "waiting")


def test_activity_says_what_goes_on():
    said = {kind: fold_all(until(kind)).activity for kind in (ev.RunStarted, ev.ThinkingDelta, ev.TextDelta, ev.RetryScheduled,
            ev.ApprovalAsked, ev.CallStarted, ev.QuestionAsked, ev.RunEnded)}  # fmt: skip
    assert ViewModel().activity == "Starting…"
    assert list(said.values()) == ["Waiting for the model", "Thinking", "Writing", "Trying again soon",
        "Waiting for you to approve or deny", "Running list variables", "Waiting for your answer", "Done"]  # fmt: skip


def test_a_run_whose_model_is_the_person_says_that_it_waits_for_them():
    started = next(event for event in until(ev.RunStarted) if isinstance(event, ev.RunStarted))
    view = fold(ViewModel(), dataclasses.replace(started, model="human"))
    assert (view.activity, view.asks_person) == ("Waiting for your reply: you are the model", True)
    assert not fold(ViewModel(), started).asks_person


def test_twenty_thousand_deltas_fold_in_a_moment():
    deltas = [ev.TextDelta(state=State.THINK, turn=1, at=i / 100, index=0, text="word ") for i in range(20_000)]
    start = time.perf_counter()
    view = fold_all(coalesce(deltas))
    assert time.perf_counter() - start < 2
    assert len(view.items) == 1
    assert len(view.items[0].text) == 100_000


def hook_ended(hook_id: str, sentence: str, outcome: str = "ok") -> ev.HookEnded:
    return ev.HookEnded(state=State.ACT, turn=1, at=2.0, hook_id=hook_id, hook="guard.sh", on="PreToolUse",
                        outcome=outcome, sentence=sentence, seconds=0.5)  # fmt: skip


def test_a_hook_is_shown_while_it_runs_and_stays_only_if_something_came_of_it():
    began = [
        ev.HookStarted(state=State.ACT, turn=1, at=1.0, hook_id=hook_id, hook="guard.sh", on="PreToolUse", message=said)
        for hook_id, said in (("1", ""), ("2", "Looking at the command"))
    ]
    view = fold_all(began[:1])
    assert view.activity == "Running the hook guard.sh"
    assert fold(view, began[1]).activity == "Looking at the command"
    assert fold(view, hook_ended("1", "")).items == ()
    assert fold(view, hook_ended("1", "")).hooks == ()
    (note,) = fold(view, hook_ended("1", "The hook guard.sh failed.", "failed")).items
    assert isinstance(note, NoteItem)
    assert (note.text, note.level) == ("The hook guard.sh failed.", "warning")
