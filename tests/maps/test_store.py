"""The folder of a map: what was asked must be asked again, one process works on it, and nothing that was paid for is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nbagent.app.mapstore import MapFolder, fingerprint, is_changed
from nbagent.core.errors import ConfigError

ASKED = {"prompt": "Sum {item}", "model": "", "tools": ["read_file"], "schema": None, "mode": "default", "options": {}}
KEY = "0123456789abcdef"


def opened(path: Path, **other: object) -> MapFolder:
    more = {name: other.pop(name) for name in ("again",) if name in other}
    return MapFolder.open(path, {**ASKED, **other}, resumed=True, **more)  # type: ignore[arg-type]  # as a call gives it


def test_jobs_are_there_again_when_the_folder_is_opened_again(tmp_path: Path) -> None:
    first = opened(tmp_path / "m")
    first.begin(KEY, {"input": "a", "session": "s1"})
    first.end(KEY, {"status": "done"})
    first.close()
    second = opened(tmp_path / "m")
    kept = second.kept(KEY)
    assert kept is not None
    assert (kept.job["session"], kept.outcome) == ("s1", {"status": "done"})
    assert second.kept("f" * 16) is None
    second.begin(KEY, kept.job)
    assert second.kept(KEY).outcome is None  # type: ignore[union-attr]  # it is there
    second.close()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"prompt": "Count {item}"}, "another prompt"),
        ({"model": "opus"}, "another model"),
        ({"tools": []}, "other tools"),
        ({"mode": "bypass", "schema": {}}, "another schema and another mode"),
    ],
)
def test_another_map_is_not_mixed_with_what_is_there(tmp_path: Path, changed: dict[str, object], said: str) -> None:
    opened(tmp_path).close()
    with pytest.raises(ConfigError, match=f"{said}.*again=True"):
        opened(tmp_path, **changed)
    opened(tmp_path).close()  # nothing was changed, and nobody holds it


def test_again_puts_aside_what_was_paid_for(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.begin(KEY, {"input": "a"})
    first.close()
    second = opened(tmp_path, prompt="other", again=True)
    assert second.kept(KEY) is None
    second.begin(KEY, {"input": "b"})
    second.forget(KEY)
    second.forget(KEY)
    assert second.kept(KEY) is None
    second.close()
    assert sorted(json.loads(path.read_text())["input"] for path in (tmp_path / "before").rglob("job.json")) == [
        "a",
        "b",
    ]


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("…")
    with pytest.raises(ConfigError, match="no folder of a map"):
        opened(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_second_map_of_this_process_is_refused(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(ConfigError, match="Another map works on"):
        opened(tmp_path)
    first.close()
    opened(tmp_path).close()


HOLD = """
import sys
from pathlib import Path
from nbagent.app.mapstore import MapFolder
folder = MapFolder.open(Path(sys.argv[1]), {}, resumed=True)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_map_of_another_process_is_refused_until_that_is_killed(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match="Another map works on"):
            MapFolder.open(tmp_path, {}, resumed=True)
        other.kill()
        other.wait()
        MapFolder.open(tmp_path, {}, resumed=True).close()


def test_what_is_damaged_is_not_there(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.begin(KEY, {"input": "a"})
    (tmp_path / "jobs" / KEY / "outcome.json").write_text('{"status": ')
    assert store.kept(KEY).outcome is None  # type: ignore[union-attr]  # it is there
    (tmp_path / "jobs" / KEY / "job.json").write_text("[]")
    assert store.kept(KEY) is None
    store.close()


def test_sessions_of_one_map_are_told_apart_and_files_are_for_their_owner(tmp_path: Path) -> None:
    store = opened(tmp_path / "m")
    made = [store.new_session(f"{number % 7:04x}" + "0" * 12) for number in range(300)]
    assert len(set(made)) == 300
    assert (tmp_path / "m" / ".gitignore").read_text() == "*\n"
    assert (tmp_path / "m" / "map.json").stat().st_mode & 0o077 == 0
    store.close()


def test_a_notebook_is_copied_once(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text("first")
    store = opened(tmp_path / "m")
    copy = store.copy(KEY, tmp_path / "a.ipynb")
    copy.write_text("changed by the agent")
    assert store.copy(KEY, tmp_path / "a.ipynb").read_text() == "changed by the agent"
    assert (tmp_path / "a.ipynb").read_text() == "first"
    store.close()


def test_a_file_has_changed_when_its_content_has(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1")
    before = fingerprint(path)
    os.utime(path, ns=(1, 1))
    assert not is_changed(before, fingerprint(path))
    path.write_text("2")
    assert is_changed(before, fingerprint(path))
    path.unlink()
    assert not is_changed(before, fingerprint(path))  # nothing is known of it: that it is gone is said elsewhere
