"""The store of finished runs: found by text, bounded, private, and never worse than empty."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbagent.extend.runs import BYTES, FOLDER, NEWEST, FinishedRun, RunStore, text_key
from nbagent.extend.seals import Seals

RUN = FinishedRun(
    run="run-1", text=text_key("Plot sales", {}), cell="a1", at="2026-11-30T00:00:00Z", model="m", above=("x = 1",), cells=("c",),
    inputs={"names": {}}, events=({"type": "run_ended"},), session="s", first=2, last=8,
)  # fmt: skip


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path)


def files(folder):
    return sorted((folder / FOLDER).glob("*"))


def sealed(data: bytes) -> bytes:
    return Seals().seal(data).encode() + b"\n" + data


def test_runs_that_somebody_else_wrote_are_not_there(store, tmp_path):
    theirs = RunStore(tmp_path, seals=Seals(tmp_path / "their-config"))
    theirs.keep(replace(RUN, model="theirs"))
    store.keep(RUN)
    unsealed = files(tmp_path)[0].with_name(f"{RUN.text}-none-{9:020d}-12345678.json")
    unsealed.write_text(json.dumps({"v": 1, **asdict(RUN)}))
    assert list(store.of_text(RUN.text)) == list(store.of_cell("a1")) == [RUN]
    assert [run.model for run in theirs.of_text(RUN.text)] == ["theirs"]


def test_all_runs_together_have_a_bound_on_their_bytes(tmp_path):
    store = RunStore(tmp_path, limit=3_000)
    runs = [replace(RUN, text=text_key(str(n), {}), above=("x" * 1_000,)) for n in range(4)]
    assert [store.keep(run) for run in runs] == [""] * 4
    assert [len(list(store.of_text(run.text))) for run in runs] == [0, 0, 1, 1]


def test_a_run_is_found_by_its_text_newest_first_and_by_its_cell(store):
    runs = [replace(RUN, model=str(n)) for n in range(3)]
    assert [store.keep(run) for run in runs] == ["", "", ""]
    other = replace(RUN, text=text_key("Other", {}), model="other")
    store.keep(other)
    assert list(store.of_text(RUN.text)) == runs[::-1]
    assert next(store.of_cell("a1")) == other
    assert list(store.of_text(text_key("never", {}))) == list(store.of_cell("b")) == list(store.of_cell("")) == []


def test_the_key_of_a_text_is_that_of_prompt_and_options_whatever_their_order():
    assert text_key("a", {"x": 1, "y": 2}) == text_key("a", {"y": 2, "x": 1})
    keys = {
        text_key("a", {}),
        text_key("a ", {}),
        text_key("a", {"x": 1}),
        text_key("a", {"x": 2}),
        text_key("\ud800", {}),
    }
    assert len(keys) == 5


def test_a_run_that_was_taken_back_is_forgotten(store):
    store.keep(RUN)
    store.keep(replace(RUN, run="run-2"))
    store.forget("run-2")
    assert list(store.of_text(RUN.text)) == [RUN]


def test_only_the_newest_runs_of_a_text_are_kept(store, tmp_path):
    for n in range(NEWEST + 3):
        store.keep(replace(RUN, model=str(n)))
    store.keep(replace(RUN, text=text_key("other", {})))
    assert [run.model for run in store.of_text(RUN.text)] == [str(n) for n in range(NEWEST + 2, 2, -1)]
    assert len(files(tmp_path)) == NEWEST + 1


def test_files_are_for_their_owner_and_out_of_git(store, tmp_path):
    store.keep(RUN)
    if os.name != "nt":  # Windows has no modes of files
        assert stat.S_IMODE(files(tmp_path)[0].stat().st_mode) == 0o600
    assert (tmp_path / ".nbagent" / ".gitignore").read_text() == "*\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"null", b'{"v": 1}', b"\xff\xfe", b'{"v": 99, "text": "t"}', b'"text"', b"[" * 100_000],
    ids=repr,
)
def test_a_damaged_file_is_not_there(store, tmp_path, damage):
    store.keep(RUN)
    store.keep(replace(RUN, model="newer"))
    files(tmp_path)[-1].write_bytes(damage)
    assert [run.model for run in store.of_text(RUN.text)] == ["m"]
    files(tmp_path)[-1].write_bytes(sealed(damage))
    assert [run.model for run in store.of_text(RUN.text)] == ["m"]


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_with_a_field_of_another_kind_never_raises(store, tmp_path, data):
    store.keep(RUN)
    path = files(tmp_path)[-1]
    whole = json.loads(path.read_text().partition("\n")[2])
    name = data.draw(st.sampled_from(sorted(whole)))
    if data.draw(st.booleans()):
        whole[name] = data.draw(st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2))
    else:
        del whole[name]
    path.write_bytes(sealed(json.dumps(whole).encode()))
    for run in store.of_text(RUN.text):
        assert {name: type(value) for name, value in asdict(run).items()} == {
            n: type(v) for n, v in asdict(RUN).items()
        }
    path.unlink()


def test_a_link_that_leads_elsewhere_is_not_followed(store, tmp_path):
    store.keep(RUN)
    path = files(tmp_path)[0]
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    assert list(store.of_text(RUN.text)) == []


@pytest.mark.slow
def test_a_run_that_is_no_json_or_too_large_is_not_kept_and_says_so(store, tmp_path):
    assert "can't be kept" in store.keep(replace(RUN, inputs={"x": object()}))
    assert "MB" in store.keep(replace(RUN, above=("x" * BYTES,)))
    assert not (tmp_path / FOLDER).exists()


def test_a_place_that_can_not_be_written_says_so_and_raises_nothing(tmp_path):
    (tmp_path / ".nbagent").write_text("a file")
    store = RunStore(tmp_path)
    assert "can't be kept" in store.keep(RUN)
    assert list(store.of_text(RUN.text)) == []


def test_nothing_half_written_is_left(store, tmp_path):
    store.keep(RUN)
    assert [path.suffix for path in files(tmp_path)] == [".json"]


def test_texts_that_are_no_utf8_come_back_as_they_were(store):
    odd = replace(RUN, above=("a\ud800b", "é\u2028"))
    assert store.keep(odd) == ""
    assert next(store.of_text(RUN.text)) == odd
