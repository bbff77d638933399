"""Starts clean runs of a notebook (headless/cleanrun.py) in a copy of its folder, and sees them to their end.

The copy keeps the person's files as they are; a folder that is too large to copy is used itself, and that is said. Threads
read and wait, so that any event loop will do. It must not know what the runs are compared with. Read `CleanRuns.run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbagent.core.errors import ToolError
from nbagent.core.messages import Json
from nbagent.core.ports import Cell
from nbagent.headless.offspring import descendants, end_all
from nbagent.tools.cells import first_line
from nbagent.tools.verdict import Came, is_verifiable, shown_as

COPIED = 200_000_000
"""Bytes of a folder up to which clean runs work on a copy of it."""
FILES = 20_000
"""Files of a folder up to which it is copied."""
_NOT_COPIED = frozenset({".nbagent", ".ipynb_checkpoints", "__pycache__"})
_LINKED = frozenset({"node_modules", "site-packages"})
_ABOVE = 3
"""Folders above the notebook's whose other entries are linked to beside a copy: code says `../data/x.csv`."""
_BESIDE = 5_000
INSIDE = "NBAGENT_CLEAN_RUN"
"""Set in the environment of a clean run: what runs there makes no clean runs of its own."""
_GRACE = 5.0  # seconds that a run has to end by itself
_ODD = 2_000  # bytes of what is written beside the lines that are kept

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Finished:
    """One clean run: how each cell came out, the seconds it took, and why it was not all ("" if it was)."""

    came: dict[str, Came] = field(default_factory=dict[str, Came])
    seconds: float = 0.0
    problem: str = ""


class CleanRuns:
    """Clean runs of one notebook in `folder`. `timeout` is in seconds for one whole run; `in_copy`: see `fits`."""

    def __init__(self, folder: Path, cells: Sequence[Cell], *, timeout: float, in_copy: bool) -> None:
        self.folder, self._cells, self._timeout = folder, [c for c in cells if is_verifiable(c)], timeout
        self.in_copy = in_copy

    async def run(self, progress: Progress, *, seed: bool = False) -> Finished:
        """Run all cells in a new kernel; its files and processes are gone when this returns, however it ends."""
        scratch = await asyncio.to_thread(tempfile.mkdtemp, prefix="nbagent-verify-")
        try:
            folder = self.folder
            if self.in_copy:
                progress("copying the folder")
                folder = await asyncio.to_thread(copy_in_place, self.folder, Path(scratch) / "above")
            job = {
                "cells": [[c.id, c.source] for c in self._cells],
                "folder": str(folder),
                "timeout": self._timeout,
                "seed": seed,
            }
            path = Path(scratch) / "job.json"
            path.write_text(json.dumps(job), "utf-8")
            return await self._performed(path, folder, progress)
        finally:
            await asyncio.to_thread(shutil.rmtree, scratch, True)

    async def _performed(self, job: Path, folder: Path, progress: Progress) -> Finished:
        process = _Process(job, str(folder), str(self.folder))
        began, came, problem = time.monotonic(), dict[str, Came](), ""
        places = {cell.id: (place, cell) for place, cell in enumerate(self._cells, 1)}
        try:
            async with asyncio.timeout(self._timeout):
                while (line := await process.lines.get()) is not None:
                    if (cell_id := line.get("begins")) and str(cell_id) in places:
                        place, cell = places[str(cell_id)]
                        progress(f"{place} of {len(places)}: {first_line(cell.source)}")
                    elif cell_id := line.get("ends"):
                        kind = str(line.get("problem") or "")
                        outputs = None if kind in _CUT_OFF else tuple(line["outputs"])
                        came[str(cell_id)] = Came(outputs, float(line["seconds"]))
                        place, cell = places.get(str(cell_id), (0, None))
                        if kind != "exit" or place < len(places):  # nothing was to come after the last cell
                            problem = _problem(kind, self._timeout, line.get("status"), shown_as(cell) if cell else "")
        except TimeoutError:
            problem = _problem("timeout", self._timeout)
        finally:
            await process.end()
        if not came and places and not problem:
            raise ToolError(f"no clean kernel could be started: {process.odd.strip()[-300:] or 'it said nothing'}")
        return Finished(came, time.monotonic() - began, problem)


_CUT_OFF = frozenset({"timeout", "died"})
"""How a cell ends that has no outputs of its own to compare."""


def _problem(kind: str, timeout: float, status: object = None, cell: str = "") -> str:
    where = f" in {cell}" if cell else ""
    match kind:
        case "timeout":
            return f"it was stopped after {timeout:.0f} s{where} (%agent verify --timeout S allows more)"
        case "died":
            return f"the kernel {how_ended(status if isinstance(status, int) else None)}{where}"
        case "exit":
            return f"{cell or 'a cell'} ends the kernel (exit or quit), so what is below it did not run"
        case _:
            return ""


def how_ended(status: int | None) -> str:
    """Return in words how a process ended that was not to end: its exit code, or the signal that killed it; None: not known."""
    if status is None:
        return "died"
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        said = (signal.strsignal(-status) or "").lower()
    except ValueError:
        said = ""
    said += ", as when the memory is full" if status == -9 else ""
    return f"was killed by signal {-status}{f' ({said})' if said else ''}"


class _Process:
    """The program that performs one run. `lines` gives what it says, None at its end; `odd` is the end of what it and the kernel wrote beside that."""

    def __init__(self, job: Path, folder: str, meant: str) -> None:
        self.lines: asyncio.Queue[Json | None] = asyncio.Queue()
        self.odd = ""
        self._kernel: int | None = None
        self._loop = asyncio.get_running_loop()
        self._paths = (json.dumps(folder)[1:-1], json.dumps(meant)[1:-1])
        self._errors = job.with_name("errors.txt")  # a file: what code writes there is no line of the program's
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", "nbagent.headless.cleanrun", str(job)],
                cwd=job.parent, env={**first_environment(), INSIDE: "1"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=errors, start_new_session=os.name != "nt",
            )  # fmt: skip
        self._reader = threading.Thread(target=self._read, name="nbagent-verify", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for data in self._process.stdout:
            text = data.decode("utf-8", "replace").replace(*self._paths)  # the copy's path is not what people know
            try:
                said = json.loads(text)
            except ValueError:
                said = None
            if isinstance(said, dict):
                if isinstance(said.get("kernel"), int):
                    self._kernel = said["kernel"]
                self._tell(said)
        with contextlib.suppress(OSError), self._errors.open("rb") as errors:
            errors.seek(-min(_ODD, self._errors.stat().st_size), os.SEEK_END)
            self.odd = errors.read().decode("utf-8", "replace").replace(*self._paths)
        self._tell(None)

    def _tell(self, said: Json | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self.lines.put_nowait, said)

    async def end(self) -> None:
        """See the program and its kernel end, also where the call was cancelled."""
        await asyncio.shield(asyncio.to_thread(self._end))

    def _end(self) -> None:
        process = self._process
        started = descendants(process.pid) if process.poll() is None else []
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._kernel is not None and hasattr(os, "killpg"):
            with contextlib.suppress(OSError):  # it is gone, as it should be
                os.killpg(self._kernel, signal.SIGKILL)
        end_all(started)
        self._reader.join(_GRACE)
        if process.stdout is not None:
            process.stdout.close()


def first_environment() -> dict[str, str]:
    """Return the environment that this kernel was started with: what its cells set since is hidden state, too."""
    try:
        data = Path("/proc/self/environ").read_bytes()
    except OSError:
        return dict(os.environ)
    pairs = (item.partition(b"=") for item in data.split(b"\0") if b"=" in item)
    found = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    return found or dict(os.environ)


# ── the copy of the folder ───────────────────────────────────────────────────────────────────────────────────────────


def fits(folder: Path) -> bool:
    """Whether a folder is small enough to be copied; the count ends where it is not."""
    size = 0
    for files, entry in enumerate(_entries(folder), 1):
        with contextlib.suppress(OSError):
            size += entry.stat(follow_symlinks=False).st_size
        if size > COPIED or files > FILES:
            return False
    return True


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in _NOT_COPIED and not _is_linked(entry.path):
                yield from _entries(Path(entry.path))
        else:
            yield entry


def _is_linked(path: str) -> bool:
    """Whether a folder is not the person's data and is linked to: an environment, what a package manager has put there."""
    return Path(path).name in _LINKED or (Path(path) / "pyvenv.cfg").is_file()


def copy(folder: Path, into: Path, whole: Path | None = None) -> None:
    """Copy a folder; environments are linked to, our own files, sockets and pipes left out, files that can't be read too.

    Links lead into the copy where they led into the folder, however they spelled it, and where they led otherwise. `whole` is
    the folder that is copied in all.
    """
    whole = folder if whole is None else whole
    into.mkdir(parents=True)
    for entry in os.scandir(folder):
        target = into / entry.name
        with contextlib.suppress(OSError):
            if entry.is_symlink():
                target.symlink_to(_linked_to(Path(entry.path), whole))
            elif entry.is_dir():
                if entry.name in _NOT_COPIED:
                    continue
                if _is_linked(entry.path):
                    target.symlink_to(entry.path)
                else:
                    copy(Path(entry.path), target, whole)
            elif entry.is_file():
                shutil.copy2(entry.path, target)


def copy_in_place(folder: Path, into: Path) -> Path:
    """Copy a folder to below `into` and return the copy; what stands beside it and beside those above is linked to."""
    here, above = into, list(reversed(folder.parents))[-_ABOVE:]
    for place, one in enumerate(above):
        here.mkdir(parents=True)
        below = above[place + 1] if place + 1 < len(above) else folder
        with contextlib.suppress(OSError):
            for entry in itertools.islice(os.scandir(one), _BESIDE):
                if entry.name != below.name:
                    with contextlib.suppress(OSError):
                        (here / entry.name).symlink_to(entry.path)
        here /= below.name
    copy(folder, here)
    return here


def _linked_to(link: Path, whole: Path) -> str:
    """Return where the copy of a link leads: to the same place in the copy, else to the real place."""
    leads = os.path.normpath(link.parent / link.readlink())
    inside = next(
        (
            os.path.relpath(leads, root)
            for root in (os.path.normpath(whole), os.path.realpath(whole))
            if Path(leads).is_relative_to(root)
        ),
        None,
    )
    if inside is None:
        return leads
    return os.path.relpath(os.path.join(os.path.normpath(whole), inside), link.parent)  # noqa: PTH118  (a text)


def said_of_files(runs: CleanRuns, *, done: bool) -> str:
    """Return the sentence on what a clean run does to files."""
    if runs.in_copy:
        what = "worked" if done else "works"
        return f"It {what} on a copy of the folder: your files stay as they are, but for those that the code names by a whole path or outside of it."
    return f"The folder is too large to copy (more than {COPIED // 1_000_000} MB or {FILES:,} files): files that the code writes {'were' if done else 'are'} written for real."
