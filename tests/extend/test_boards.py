"""A board that is shared: wherever it is kept, a change is whole, nobody's is lost, and a kill leaves nothing in the way."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from nbagent.core.board import Board, Member
from nbagent.core.errors import BoardError
from nbagent.core.seat import Seat
from nbagent.extend.board_file import FileStore
from nbagent.extend.board_ref import RefStore
from nbagent.extend.board_remote import RemoteStore, is_in_project
from nbagent.extend.board_store import Seen, Store, StoreError, Unsure
from nbagent.extend.boards import Boards
from nbagent.extend.git import Git

pytestmark = pytest.mark.slow

Opening = Callable[[], Awaitable[Boards]]


async def repository(folder: Path) -> Path:
    """An empty git repository."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    await Git(folder).run("init", "--quiet")
    return folder


@pytest.fixture(params=["a folder", "a repository", "a remote"])
async def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Opening:
    """How one process after the other opens the same board, each from a place of its own."""
    places: list[Path] = []

    async def opened() -> Boards:
        match request.param:
            case "a folder":
                return await Boards.open(tmp_path, "demo")
            case "a repository":
                return await Boards.open(await repository(tmp_path), "demo")
            case _:
                server = tmp_path / "server"
                if not server.is_dir():
                    server.mkdir()
                    await Git(server).run("init", "--quiet", "--bare")
                places.append(await repository(tmp_path / f"clone {len(places)}"))
                return await Boards.open(places[-1], "demo", remote=str(server))

    return opened


async def test_what_one_writes_another_reads(opening: Opening):
    one, other = await opening(), await opening()
    assert await other.read() == Board()
    written = await one.change(lambda board: board.create("ünï ✓").join(Member("Ana")))
    assert await other.read() == written
    assert written.version == 1
    assert (await other.change(lambda board: board.create("b"))).version == 2
    assert [task.title for task in (await one.read()).tasks] == ["ünï ✓", "b"]


async def test_changes_at_the_same_time_are_all_kept(opening: Opening):
    boards = [await opening() for _ in range(4)]
    await asyncio.gather(*(one.change(lambda old: old.create("t")) for one in boards for _ in range(3)))
    board = await boards[0].read()
    assert ([task.id for task in board.tasks], board.version) == ([str(n) for n in range(1, 13)], 12)


async def test_a_step_that_raises_changes_nothing_and_one_that_changes_nothing_writes_nothing(opening: Opening):
    boards = await opening()
    before = await boards.change(lambda board: board.create("a"))
    with pytest.raises(BoardError, match="no task '7'"):
        await boards.change(lambda board: board.delete("7"))
    assert await boards.change(lambda board: board) == await boards.read() == before


async def test_who_waits_is_told_of_a_change_of_another_and_else_gets_the_board_as_it_is(opening: Opening):
    one, other = await opening(), await opening()
    board = await one.change(lambda old: old.create("a"))
    waiting = asyncio.create_task(other.changed(board.version, 60))
    await one.change(lambda old: old.create("b"))
    assert len((await asyncio.wait_for(waiting, 30)).tasks) == 2
    assert (await other.changed(2, 0)).version == 2
    assert (await other.changed(1, 60)).version == 2


async def test_who_waits_frees_the_task_of_the_dead(opening: Opening):
    other = await opening()
    lease = 4.0 if isinstance(other.store, RemoteStore) else 0.5  # long beside a look
    dead = Seat(await opening(), "Ana", lease=lease)
    await dead.boards.change(lambda board: board.create("a"))
    assert await dead.claim()
    board = await other.read()
    freed = await asyncio.wait_for(other.changed(board.version, 60), 30)
    assert (freed.task("1").state, freed.task("1").past[0].why) == ("pending", "lease ended")
    with pytest.raises(BoardError, match="it is free again"):
        await dead.complete("1", "too late")
    assert await dead.renew() == ("1",)


async def test_a_second_swap_from_the_same_state_is_refused(opening: Opening):
    store: Store = (await opening()).store
    old = await store.read()
    first = await store.swap(old, "first")
    assert first is not None
    assert await store.swap(old, "second") is None
    assert await store.swap(Seen("x", "0" * 40), "third") is None
    assert await store.read() == first
    assert await store.mark() == first.mark


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────────────


class CutOff:
    """A store whose first swap happens and does not say so, or does not happen and does not say so."""

    longest_pause = 0.1

    def __init__(self, store: Store, *, happens: bool) -> None:
        self.store, self.happens, self.swaps = store, happens, 0

    async def read(self) -> Seen:
        return await self.store.read()

    async def mark(self) -> str:
        return await self.store.mark()

    async def swap(self, old: Seen, text: str) -> Seen | None:
        self.swaps += 1
        if self.swaps > 1:
            return await self.store.swap(old, text)
        if self.happens:
            await self.store.swap(old, text)
        raise Unsure("cut off")


@pytest.mark.parametrize(("happens", "swaps"), [(True, 1), (False, 2)])
async def test_a_change_that_was_cut_off_happens_once(tmp_path: Path, happens: bool, swaps: int):
    store = CutOff(FileStore(tmp_path), happens=happens)
    board = await Boards(store).change(lambda old: old.create("a"))
    assert (len(board.tasks), store.swaps) == (1, swaps)
    assert await Boards(store).read() == board


async def test_a_lock_that_git_left_behind_is_taken_away_when_it_was_watched(tmp_path: Path):
    store = RefStore(tmp_path, "demo", stale=0.3)
    boards = Boards(store)
    await boards.change(lambda old: old.create("a"))
    lock = tmp_path / "board.git" / "refs" / "teams" / "demo.lock"
    lock.write_text("half")
    assert await store.swap(await store.read(), "x") is None
    assert lock.exists()  # it may be somebody's
    assert len((await boards.change(lambda old: old.create("b"))).tasks) == 2
    assert not lock.exists()


async def test_a_lock_that_changes_hands_is_left_alone(tmp_path: Path):
    store = RefStore(tmp_path, "demo", stale=0.0)
    await Boards(store).change(lambda old: old.create("a"))
    lock = tmp_path / "board.git" / "refs" / "teams" / "demo.lock"
    for number in range(3):
        lock.unlink(missing_ok=True)
        lock.write_text(f"{number}")
        os.utime(lock, ns=(number, number))
        assert await store.swap(await store.read(), "x") is None
        assert lock.exists()


async def test_the_project_s_own_git_stays_as_it_was(tmp_path: Path):
    git = Git(await repository(tmp_path))
    boards = await Boards.open(tmp_path, "demo")
    await boards.change(lambda old: old.create("a"))
    assert await git.text("status", "--porcelain") == ""
    assert await git.text("for-each-ref") == ""
    assert await git.text("count-objects") == "0 objects, 0 kilobytes"
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    assert (await (await Boards.open(folder, "demo")).read()).tasks[0].title == "a"


async def test_old_states_of_a_board_are_pruned(tmp_path: Path):
    store = RefStore(tmp_path, "demo")
    boards = Boards(store)
    await boards.change(lambda old: old.create("a"))
    some = store.repository / "objects" / "17"
    some.mkdir(exist_ok=True)
    old = [some / f"{number:038x}" for number in range(9)]
    for path in old:
        path.write_bytes(b"")
        os.utime(path, (0, 0))
    await boards.change(lambda old: old.create("b"))
    assert [path for path in old if path.exists()] == []
    assert len((await boards.read()).tasks) == 2


async def test_a_text_that_is_not_in_a_file_of_its_own_is_read_by_git(tmp_path: Path):
    store = RefStore(tmp_path, "demo")
    board = await Boards(store).change(lambda old: old.create("a"))
    await Git(store.repository).run("gc", "--quiet", "--prune=now", env={"GIT_DIR": str(store.repository)})
    assert not (store.repository / "refs" / "teams" / "demo").exists()
    assert await Boards(store).read() == board
    assert len((await Boards(store).change(lambda old: old.create("b"))).tasks) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "can't be read"),
        ("[]", "can't be read"),
        ('{"format": 1, "writes": [], "board": {"tasks": 1}}', "tasks of a board is 1, which is no list"),
        ('{"format": 99, "writes": [], "board": {}}', "newer nbagent: update this one"),
    ],
)
async def test_what_is_no_board_is_said_and_never_overwritten(tmp_path: Path, text: str, why: str):
    file = tmp_path / ".nbagent" / "teams" / "demo" / "board.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    boards = await Boards.open(tmp_path, "demo")
    with pytest.raises(StoreError, match=why):
        await boards.change(lambda old: old.create("a"))
    assert file.read_text() == text


async def test_a_board_in_a_folder_is_kept_out_of_git_and_is_plain_json(tmp_path: Path):
    boards = await Boards.open(tmp_path, "demo")
    await boards.change(lambda old: old.create("a"))
    said = json.loads((tmp_path / ".nbagent" / "teams" / "demo" / "board.json").read_text())
    assert said["board"]["tasks"] == [{"id": "1", "title": "a"}]
    assert (tmp_path / ".nbagent" / ".gitignore").read_text() == "*\n"


async def test_a_place_that_can_t_be_written_is_said(tmp_path: Path):
    (tmp_path / ".nbagent").write_text("a file")
    boards = await Boards.open(tmp_path, "demo")
    with pytest.raises(StoreError, match="can't be"):
        await boards.change(lambda old: old.create("a"))


@pytest.mark.parametrize("name", ["", "../x", "a/b", "-x", "HEAD.lock"])
async def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str):
    with pytest.raises(BoardError, match="is no name"):
        await Boards.open(tmp_path, name)


async def test_a_remote_needs_a_repository_and_one_that_is_away_is_said(tmp_path: Path):
    with pytest.raises(StoreError, match="not in a git repository"):
        await Boards.open(tmp_path, "demo", remote="origin")
    boards = await Boards.open(await repository(tmp_path / "clone"), "demo", remote=str(tmp_path / "nowhere"))
    with pytest.raises(StoreError, match="can't be reached"):
        await boards.read()


def made_in(folder: Path) -> list[Path]:
    return list(folder.rglob("ran"))


@pytest.mark.parametrize("remote", ["ext::touch ran", "--upload-pack=touch ran", "-x"])
async def test_a_remote_that_is_a_program_is_not_run(tmp_path: Path, remote: str):
    boards = await Boards.open(await repository(tmp_path), "demo", remote=remote)
    with pytest.raises(StoreError, match=r"can't be reached|lies in the project itself"):
        await boards.change(lambda old: old.create("a"))
    assert not made_in(tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"remote.origin.url": "./evil.git"},
        {"remote.origin.url": "file://{top}/evil.git"},
        {"remote.origin.url": "{top}/../server", "remote.origin.pushurl": "./evil.git"},
        {"remote.origin.url": "https://example.org/x", "url../evil.git.insteadOf": "https://example.org/x"},
    ],
)
async def test_a_remote_that_came_with_the_project_runs_no_hook_of_it(tmp_path: Path, settings: dict[str, str]):
    top = await repository(tmp_path / "project")
    for bare in (top / "evil.git", tmp_path / "server"):
        bare.mkdir()
        await Git(bare).run("init", "--quiet", "--bare")
        hook = bare / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
    (tmp_path / "server" / "hooks" / "pre-receive").unlink()
    for name, value in settings.items():
        await Git(top).run("config", name, value.format(top=top))
    for remote in ("origin", "./evil.git"):
        boards = await Boards.open(top, "demo", remote=remote)
        with pytest.raises(StoreError, match=r"lies in the project itself|replace addresses"):
            await boards.change(lambda old: old.create("a"))
    assert not made_in(tmp_path)


@pytest.mark.parametrize(
    ("address", "inside"),
    [("evil.git", True), ("sub:x/../y", False), ("./sub:x", True), ("git@host:a.git", False), ("https://h/p", False),
     ("file:///p/a/b.git", True), ("file://localhost/p/a", True), ("file:///p/ab", False), ("/p/a", True), ("../b", False),
     ("/p/%61", False), ("file:///p/%61", True)],
)  # fmt: skip
def test_an_address_is_in_the_project_where_git_would_go_there(address: str, inside: bool):
    assert is_in_project(address, Path("/p/a")) is inside


async def test_a_board_in_a_remote_adds_nothing_to_the_clones(tmp_path: Path):
    server = tmp_path / "server"
    server.mkdir()
    await Git(server).run("init", "--quiet", "--bare")
    one, two = [await repository(tmp_path / name) for name in ("one", "two")]
    await Git(two).run("config", "remote.origin.url", str(server))
    await (await Boards.open(one, "demo", remote=str(server))).change(lambda old: old.create("a"))
    assert len((await (await Boards.open(two, "demo", remote="origin")).read()).tasks) == 1
    for clone in (one, two):
        assert await Git(clone).text("for-each-ref") == ""
        assert await Git(clone).text("count-objects") == "0 objects, 0 kilobytes"
        assert not (clone / ".git" / "FETCH_HEAD").exists()
    assert isinstance((await Boards.open(one, "demo", remote=str(server))).store, RemoteStore)
