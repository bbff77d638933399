"""`%agent history`: runs from the sessions' files, however torn, damaged or huge these are, and the record of one."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.app import history as module
from nbagent.app.history import chosen, events_of, history, listing, runs_in
from nbagent.app.underway import Underway
from nbagent.core.errors import ConfigError
from nbagent.extend.sessions import FOLDER, JsonlStore
from nbagent.view.fold import fold_all
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, calls

BASE = {"state": "Think", "turn": 0, "at": 0.0}


def started(prompt: str = "Plot it", notebook: str = "a.ipynb", session: str = "s1") -> dict:
    return {"type": "event", "event": {**BASE, "type": "run_started", "run_id": "r", "session_id": session, "model": "m",
            "mode": "default", "prompt": prompt, "max_turns": 5, "notebook": notebook}}  # fmt: skip


def ended(reason: str = "end_turn", **more) -> dict:
    usage = {"input": 1000, "output": 234, "cache_write": 0, "cache_read": 0}
    return {"type": "event", "event": {**BASE, "type": "run_ended", "reason": reason, "sentence": "Done.", "next_step": "",
            "text": "The answer.", "turns": 3, "usage": usage, "cost": 0.0123, "cells": ["a", "b"], **more}}  # fmt: skip


def reply(text: str) -> dict:
    return {"type": "event", "event": {**BASE, "type": "reply_ended", "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn", "usage": {"input": 1, "output": 1}, "cost": None}}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / FOLDER
    path.mkdir(parents=True)
    return path


def session(folder, name: str, *records) -> None:
    lines = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
    (folder / f"{name}.jsonl").write_bytes(b"\n".join(lines) + b"\n")


def test_runs_are_listed_newest_first_with_what_they_took(folder):
    session(folder, "20260102-100000-aaaa", started("Second\nmore"), ended("max_turns"), started("Cut \x1b[31moff"))
    session(folder, "20260101-100000-bbbb", started("First"), ended())
    lines = listing(runs_in(folder)).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["3", "2", "1"]
    assert lines[0].endswith("Cut off") and "cut off" in lines[0]
    assert lines[1].endswith("Second") and "turn limit" in lines[1]
    assert all(part in lines[2] for part in ("2026-01-01 10:00", "done", "3 turns", "1,234 tokens", "$0.0123", "2 cells", "First"))  # fmt: skip
    assert lines[3] == "%agent history N shows the record of one."


def test_only_runs_of_this_notebook_are_listed_under_numbers_that_are_the_folders(folder):
    session(folder, "20260101-100000-aaaa", started("One", "a.ipynb"), ended(), started("Two", "b.ipynb"), ended(), started("Three", "a.ipynb"), ended())  # fmt: skip
    text = listing(runs_in(folder), here="a.ipynb")
    assert "Two" not in text and "(Not listed: 1 run of another notebook" in text
    assert [line.split()[0] for line in text.splitlines()[:2]] == ["3", "1"]
    everything = listing(runs_in(folder))
    assert "b.ipynb" in everything
    assert "… 2 older ones" in listing(runs_in(folder), limit=1)
    assert "running" in listing([*runs_in(folder)[:2], runs_in(folder)[2].__class__(folder, 0, 1.0, started()["event"], None)], running=["s1"])  # fmt: skip


def test_torn_damaged_and_foreign_lines_cost_only_themselves(folder):
    deep = b'{"type": "event", "event": {"type": "run_ended", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    session(folder, "20260101-100000-aaaa", b"\xff\xfe\x00", b"", b"[]", b'"run_started"', b'{"type": "event", "event": "run_started"}', started("Kept"), deep, b'{"event": {"type": "run_started"', reply("Words."), {"type": "event", "event": {"type": "new_kind"}}, {"type": "event", "event": {**BASE, "type": "call_ended"}}, ended())  # fmt: skip
    (folder / "20260102-100000-bbbb.jsonl").write_bytes(json.dumps(started("Torn")).encode()[:-20])
    (folder / "20260103-100000-cccc.jsonl").mkdir()
    (folder / "notes.txt").write_text("not a session")
    (folder / "20260104-100000-dddd.jsonl").symlink_to(folder / "nowhere")
    (run,) = runs_in(folder)
    view = fold_all(events_of(run))
    assert view.prompt == "Kept" and view.ended is not None and view.ended.text == "The answer."
    assert [item.text for item in view.items if hasattr(item, "reply")] == ["Words."]


@pytest.mark.slow
def test_a_line_that_is_too_long_is_passed_over_without_being_read_whole(folder):
    long = b'{"type": "message", "message": "' + b"x" * (module.LINE * 2) + b'"}'
    session(folder, "20260101-100000-aaaa", started("Before"), long, ended(), long, started("After"), ended("denied"))
    first, second = runs_in(folder)
    assert [run.started["prompt"] for run in (first, second)] == ["Before", "After"]
    assert fold_all(events_of(second)).ended.reason == "denied"
    assert [event.type for event in events_of(first)] == ["run_started", "run_ended"]


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=6))
def test_no_bytes_in_a_session_make_it_fail(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("sessions")
    session(folder, "20260101-100000-aaaa", started(), *lines, ended())
    for run in runs_in(folder):
        list(events_of(run))


def test_a_number_that_is_none_says_which_there_are(folder):
    with pytest.raises(ConfigError, match="No runs are kept"):
        chosen([], "1")
    session(folder, "20260101-100000-aaaa", started("One"), ended())
    for word in ("2", "0", "-1", "two", "²"):
        with pytest.raises(ConfigError, match=r"there is no run .* There is run 1"):
            chosen(runs_in(folder), word)


def test_the_time_of_a_run_is_that_of_its_record(tmp_path):
    store = JsonlStore(tmp_path / FOLDER / "20200101-000000-aaaa.jsonl")
    store.append(started())
    store.append(ended())
    (run,) = runs_in(tmp_path / FOLDER)
    assert abs(run.at - time.time()) < 60
    extension = SimpleNamespace(folder=tmp_path, last=None, underway=Underway())
    assert time.strftime("%Y-%m-%d") in history(extension, "")
    assert history(SimpleNamespace(folder=tmp_path / "none", last=None, underway=Underway()), "") == module.NONE


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_the_history_of_real_runs_and_the_record_of_one_are_shown(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server, NBAGENT_ALLOW="add_cell") as room:
            (await room.cell("%agent history")).says("No runs are kept in this folder yet.")
            await room.cell("%%agent\nAdd them up\nplease", calls("add_cell", source="1 + 1"), "It is two.")
            await room.cell("%%agent --new\nAnd now?", "Nothing more.")
            shown = await room.cell("%agent history")
            shown.says("And now?", "Add them up", "2 turns", "1 cell", "done")
            assert shown.record.index("And now?") < shown.record.index("Add them up")
            (shown,) = (await room.cell("%agent history 1")).cell.outputs
            assert (
                "It is two." in shown["data"]["text/html"] and "add and run a code cell" in shown["data"]["text/html"]
            )
            assert "Add them up" in shown["data"]["text/markdown"]
            (await room.cell("%agent history 9")).says("no run '9'", "runs 1 to 2")
            (await room.cell("print('more of me')\n%agent history")).says("Add them up")
        server.assert_clean()
