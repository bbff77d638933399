"""Seals are made with a key of the person's, which no project holds."""

from __future__ import annotations

import stat
import threading

from nbagent.extend.seals import KEY, Seals


def test_a_seal_holds_for_the_same_data_in_a_later_process_and_for_nothing_else(tmp_path):
    made = Seals(tmp_path).seal(b"an answer")
    assert Seals(tmp_path).holds(b"an answer", made)
    assert not Seals(tmp_path).holds(b"another answer", made)
    assert not Seals(tmp_path / "other").holds(b"an answer", made)
    for nonsense in (None, "", 7, made[:-1], "é" * 64):
        assert not Seals(tmp_path).holds(b"an answer", nonsense)


def test_the_key_is_the_persons_alone(tmp_path):
    Seals(tmp_path).seal(b"x")
    assert stat.S_IMODE((tmp_path / KEY).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [KEY]


def test_those_that_make_the_key_at_once_end_up_with_one(tmp_path):
    start, seals = threading.Barrier(8), []

    def make() -> None:
        start.wait(10)
        seals.append(Seals(tmp_path).seal(b"x"))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(set(seals)) == 1
    assert len(seals) == 8


def test_a_damaged_key_or_a_folder_that_cannot_be_written_seals_for_this_process_only(tmp_path):
    (tmp_path / KEY).write_text("nonsense")
    seals = Seals(tmp_path)
    assert seals.holds(b"x", seals.seal(b"x"))
    assert not Seals(tmp_path).holds(b"x", seals.seal(b"x"))
    blocked = Seals(tmp_path / KEY / "below")
    assert blocked.holds(b"x", blocked.seal(b"x"))


def test_on_a_disk_without_hard_links_the_key_is_kept_too(tmp_path, monkeypatch):
    def no_links(*_: object) -> None:
        raise PermissionError("operation not permitted")

    monkeypatch.setattr("os.link", no_links)
    made = Seals(tmp_path).seal(b"x")
    assert Seals(tmp_path).holds(b"x", made)
    assert [path.name for path in tmp_path.iterdir()] == [KEY]
