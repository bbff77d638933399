"""Sessions on disk: appended line by line, private, and never led out of their folder."""

from __future__ import annotations

import json
import stat

from nbagent.extend.sessions import FOLDER, JsonlStore, new_session_id
from tests.support.disk import full_disk


def test_each_record_is_one_line_of_json_readable_by_its_owner_only(tmp_path):
    store = JsonlStore(tmp_path / FOLDER / "s.jsonl")
    store.append({"type": "message", "text": "naïve\nline"})
    store.append({"type": "event"})
    assert [json.loads(line)["type"] for line in store.path.read_text("utf-8").splitlines()] == ["message", "event"]
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert (tmp_path / ".nbagent" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_can_not_be_written_is_said_and_does_not_stop_a_run(tmp_path):
    (tmp_path / ".nbagent").write_text("a file where the folder should be")
    store = JsonlStore(tmp_path / FOLDER / "s.jsonl")
    store.append({"type": "message"})
    store.append({"type": "message"})
    assert store.problem == f"{store.path}: Not a directory"


def test_a_record_is_whole_or_not_there_when_the_disk_is_full(tmp_path):
    store = JsonlStore(tmp_path / FOLDER / "s.jsonl")
    store.append({"type": "message"})
    with full_disk(1000):
        store.append({"type": "message", "text": "x" * 2000})
    store.append({"type": "message"})
    assert store.problem == f"{store.path}: File too large"
    [line] = store.path.read_text().splitlines()
    assert json.loads(line)["type"] == "message"


def test_links_in_a_foreign_folder_lead_nowhere(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "a" / ".nbagent").mkdir(parents=True)
    (tmp_path / "a" / ".nbagent" / "sessions").symlink_to(outside)
    store = JsonlStore(tmp_path / "a" / FOLDER / "s.jsonl")
    store.append({"type": "message"})
    assert store.problem
    assert list(outside.iterdir()) == []
    (tmp_path / "b" / FOLDER).mkdir(parents=True)
    (tmp_path / "b" / FOLDER / "s.jsonl").symlink_to(outside / "target")
    linked = JsonlStore(tmp_path / "b" / FOLDER / "s.jsonl")
    linked.append({"type": "message"})
    assert linked.problem
    assert not (outside / "target").exists()


def test_ids_sort_by_time_and_differ():
    ids = [new_session_id() for _ in range(50)]
    assert len({i[-4:] for i in ids}) > 1
    assert all(len(i) == len("20261129-235801-1f9c") for i in ids)
