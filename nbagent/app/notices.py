"""What the notebook's conversation is to hear of runs that went on beside it: how each ended, and what it said.

Told once, with the next prompt, or after the results of the calls of a run that is under way. Until then it lies on disk, a
sealed file for each run from its beginning on: what a kernel's end cuts off or leaves untold, the next kernel tells. Must not
know how anything runs. Read `Notices`.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from nbagent.core.events import Reason, RunEnded
from nbagent.core.files import private_folder
from nbagent.core.messages import clean
from nbagent.extend.seals import Seals
from nbagent.tools.results import clip
from nbagent.view.text import one_line

FOLDER = Path(".nbagent") / "background"
ALL = 200
"""Files that are kept; the oldest go first."""

_TOLD = 6_000
"""Characters of an answer that are told; the rest is in the run's session."""

_HEAD = "(From the runtime, not the person:) The agent “{name}” ({run}), which worked in the background on “{prompt}”, "
_CUT_OFF = "was cut off when the kernel ended, before it was done. What it had done by then stays."
_ALONE = " Tell the person what matters of it, where that helps them now."


@dataclass(frozen=True, slots=True)
class Notice:
    """One run beside a conversation.

    `run`: its id; `seat`: what the conversation that hears of it is known by in the kernel `kernel` ("" where that has no
    notebook); `notebook`: the path by which later kernels know that. `session`: the run's own. `parent`: the run that started it, which hears of it first while it goes
    on. `text`: how it ended, "" while it has not.
    """

    run: str
    name: str
    prompt: str
    seat: str
    notebook: str
    session: str
    kernel: str
    parent: str = ""
    text: str = ""

    @property
    def words(self) -> str:
        """What the model is told."""
        head = _HEAD.format(name=one_line(self.name, 80), run=self.run, prompt=one_line(self.prompt, 200))
        return head + (self.text + _ALONE if self.text else _CUT_OFF)


def ended_words(ended: RunEnded, mask: Callable[[str], str] = str) -> str:
    """Return how a run ended, for a model."""
    how = "has ended" if ended.reason is Reason.END_TURN else f"was not finished ({ended.reason}): {ended.sentence}"
    cells = f" It made or ran the cells {', '.join(ended.cells)}." if ended.cells else ""
    said = f" It said:\n{clip(clean(ended.text).strip(), _TOLD)}\n" if ended.text.strip() else " It said nothing."
    return mask(f"{how}.{cells}{said}")


class Notices:
    """The notices of one kernel, and in its folder those of kernels that have ended. `alive` tells of a session whether a kernel writes to it."""

    def __init__(self, folder: Path, seals: Seals, kernel: str, alive: Callable[[str], bool] = lambda _: False) -> None:
        self._folder, self._seals, self._kernel, self._alive = folder / FOLDER, seals, kernel, alive
        self._notices: dict[str, Notice] = {}
        self._looked: set[str] = set()

    def begin(self, notice: Notice) -> None:
        """Note that a run begins beside a conversation."""
        self._notices[notice.run] = notice
        self._write(notice)

    def end(self, run: str, text: str) -> None:
        """Note how a run ended; what is told of it waits for the conversation."""
        if (notice := self._notices.get(run)) is not None:
            self._notices[run] = replace(notice, text=text)
            self._write(self._notices[run])

    def forget(self, runs: Iterable[str]) -> None:
        """Tell nothing more of these runs: it was told, or is of no use."""
        for run in runs:
            self._notices.pop(run, None)
            with contextlib.suppress(OSError):
                self._path(run).unlink()

    def ready(self, seat: str | None, run: str = "") -> list[Notice]:
        """Return what has ended and is not told yet: of runs that `run` started, and of those beside the conversation `seat`."""
        return [
            notice
            for notice in self._notices.values()
            if notice.text and ((run and notice.parent == run) or notice.seat == seat)
        ]

    def look(self, seat: str, notebook: str) -> None:
        """Take over what kernels that have ended left untold to this notebook's conversation; looks once for each."""
        if not notebook or seat in self._looked:
            return
        self._looked.add(seat)
        for found in self._on_disk():
            left = found.kernel != self._kernel and not self._alive(found.session)
            if left and found.notebook == notebook and found.run not in self._notices:
                self._notices[found.run] = replace(found, seat=seat, parent="", text=found.text or _CUT_OFF)

    def inbox(self, seat: str | None, run: str) -> NoticeInbox:
        """Return the inbox of the run `run` in the conversation `seat` (None: it hears only of those that it started)."""
        return NoticeInbox(self, seat, run)

    # ── disk ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _path(self, run: str) -> Path:
        return self._folder / f"{run}.json"

    def _write(self, notice: Notice) -> None:
        """Write a notice whole; where the disk takes none it is told as long as this kernel lives."""
        text = json.dumps(asdict(notice), ensure_ascii=False, sort_keys=True)
        record = json.dumps({"seal": self._seals.seal(text.encode("utf-8", "replace")), "notice": text})
        with contextlib.suppress(OSError):
            private_folder(self._folder)
            handle, made = tempfile.mkstemp(dir=self._folder, suffix=".part")
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
                file.write(record)
            Path(made).replace(self._path(notice.run))

    def _on_disk(self) -> list[Notice]:
        """Return the notices in the folder that this person's nbagent wrote, oldest first; drop what is too old."""
        try:
            paths = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        except OSError:
            return []
        for path in paths[:-ALL]:
            with contextlib.suppress(OSError):
                path.unlink()
        return [notice for path in paths[-ALL:] if (notice := self._read(path)) is not None]

    def _read(self, path: Path) -> Notice | None:
        try:
            record: Any = json.loads(path.read_text("utf-8"))
            text = record["notice"]
            if not self._seals.holds(text.encode("utf-8", "replace"), record["seal"]):
                return None
            given: Any = json.loads(text)
            return Notice(**{field.name: str(given[field.name]) for field in fields(Notice)})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


class NoticeInbox:
    """The inbox of one run (see core/inbox.py)."""

    def __init__(self, notices: Notices, seat: str | None, run: str) -> None:
        self._notices, self._seat, self._run = notices, seat, run
        self._taken: tuple[str, ...] = ()

    def take(self) -> Sequence[str]:
        """Return what is not told yet."""
        found = self._notices.ready(self._seat, self._run)
        self._taken = tuple(notice.run for notice in found)
        return [notice.words for notice in found]

    def told(self) -> None:
        """Forget what was taken."""
        self._notices.forget(self._taken)
        self._taken = ()
