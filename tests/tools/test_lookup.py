"""Looking up whether inputs are the same: each looked at once, files on another thread, and nothing but prints kept."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.tools.inputs import Inputs
from nbagent.tools.lookup import Lookup
from nbagent.tools.opens import heard

NAMES = ("a.csv", "data/b.csv", "data/c.csv")


def written(root: Path, contents: dict[str, bytes]) -> None:
    (root / "data").mkdir(exist_ok=True)
    for name in NAMES:
        (root / name).unlink(missing_ok=True)
        if name in contents:
            (root / name).write_bytes(contents[name])


def taken(root: Path, space: dict[str, object], names: tuple[str, ...] = NAMES) -> dict:
    inputs = Inputs(lambda: space, root)
    for name in space:
        inputs.name(name)
    for name in names:
        inputs.file(str(root / name))
    inputs.matches(str(root / "data"), "*")
    return inputs.to_json()


async def test_of_several_runs_each_file_is_hashed_once_and_not_on_the_loops_thread(tmp_path):
    written(tmp_path, dict.fromkeys(NAMES, b"1"))
    runs = [taken(tmp_path, {}), taken(tmp_path, {}, NAMES[:2]), taken(tmp_path, {})]
    (tmp_path / "a.csv").write_bytes(b"2")
    opened: list[tuple[str, int]] = []
    lookup = Lookup({}, tmp_path)
    with heard(lambda what, path, _: opened.append((path, threading.get_ident()))):
        said = [await lookup.differences(run) for run in runs]
    assert said == [["a.csv changed"]] * 3
    files = [path for path, _ in opened if path.endswith(".csv")]
    assert sorted(files) == sorted(str(tmp_path / name) for name in NAMES)
    assert threading.get_ident() not in {thread for _, thread in opened}


@pytest.mark.slow
async def test_the_loop_goes_on_while_files_are_hashed(tmp_path):
    written(tmp_path, {"a.csv": b"1" * 30_000_000})
    kept = taken(tmp_path, {})
    turned = 0

    async def turn() -> None:
        nonlocal turned
        while True:
            await asyncio.wait({asyncio.ensure_future(asyncio.to_thread(int))})
            turned += 1

    turning = asyncio.create_task(turn())
    assert await Lookup({}, tmp_path).differences(kept) == []
    turning.cancel()
    assert turned > 1


@pytest.mark.slow
async def test_memory_holds_a_piece_of_a_file_never_the_file(tmp_path):
    written(tmp_path, dict.fromkeys(NAMES, b"1" * 12_000_000))
    kept = taken(tmp_path, {})
    lookup = Lookup({}, tmp_path)
    tracemalloc.start()
    try:
        assert await lookup.differences(kept) == []
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000 and now < 500_000


_FILES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from([b"", b"1", b"2", b"11"]))
_SPACE = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2))


@pytest.mark.slow
@given(_FILES, _SPACE, _FILES, _SPACE)
@settings(max_examples=25, deadline=None)
def test_nothing_is_said_exactly_where_all_that_was_read_is_as_it_was(files_then, then, files_now, now):
    """Whatever runs are looked up together: what one asked for does not change what another is told."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        written(root, files_now)
        other = taken(root, now)
        written(root, files_then)
        kept = taken(root, then)
        written(root, files_now)
        same_files = {name: files_now.get(name) for name in files_then} == files_then
        same_listing = {n for n in files_then if "/" in n} == {n for n in files_now if "/" in n}
        same = same_files and same_listing and {name: now.get(name, ...) for name in then} == then

        async def look() -> tuple[list[str], list[str], list[str]]:
            lookup = Lookup(now, root)
            return (
                await lookup.differences(kept),
                await lookup.differences(other),
                await Lookup(now, root).differences(kept),
            )

        said, own, alone = asyncio.run(look())
        assert (said == []) is same and own == [] and said == alone
