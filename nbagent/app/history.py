"""`%agent history`: the runs that were kept in this folder, newest first, and the record of one of them.

Read from the sessions' files, which another version may have written, and which may be torn, damaged or huge: a line
that can't be read is passed over, and no more is read than is shown. Read `history`, then `runs_in`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.core.errors import ConfigError
from nbagent.core.events import Event
from nbagent.core.events_json import from_json
from nbagent.core.messages import Json
from nbagent.core.shown import visible_plain
from nbagent.extend.sessions import FOLDER
from nbagent.view.fold import fold_all
from nbagent.view.record import record
from nbagent.view.text import one_line, without_ansi

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

NONE = "No runs are kept in this folder yet."

LINE = 8_000_000
"""Bytes of one line that are read: one that is longer holds no event that a record could show."""

RUN = 64_000_000
"""Bytes of one run that are read for its record."""

_SHOWN = 20
_FILES = 2_000
_HEAD = 400  # characters in which a record says what it is
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_ENDED = {
    "end_turn": "done",
    "max_turns": "turn limit",
    "budget": "budget",
    "timeout": "time limit",
    "repeated_observation": "repeated itself",
    "denied": "denied",
    "interrupted": "stopped",
    "refusal": "refused",
    "max_tokens": "cut short",
    "context_full": "context full",
    "hook": "hook",
    "cell_gone": "cell deleted",
    "error": "failed",
}


@dataclass(frozen=True, slots=True)
class Kept:
    """One run as it is on disk: where it begins, when (seconds since 1970), and what it said at its start and end."""

    path: Path
    offset: int
    at: float
    started: Json
    ended: Json | None

    @property
    def notebook(self) -> str:
        """The path of its notebook, "" where it is not known."""
        return str(self.started.get("notebook") or "")


def history(extension: Extension, rest: str) -> str:
    """Carry out `%agent history [N | --all]`: return the list, or display the record of run N and return ""."""
    runs = runs_in(extension.folder / FOLDER)
    word = rest.strip()
    if word and word != "--all":
        shown = chosen(runs, word)
        from IPython.display import display

        display(record(fold_all(events_of(shown))), raw=True)
        return ""
    if not runs:
        return NONE
    here = extension.last.notebook if extension.last is not None else ""
    running = {run.session for run in extension.underway.runs.values()}
    return listing(runs, here=here, running=running, limit=len(runs) if word else _SHOWN)


def chosen(runs: list[Kept], word: str) -> Kept:
    """Return run number `word`, from 1 for the oldest; raises `ConfigError` that says which there are."""
    if not runs:
        raise ConfigError(NONE)
    if not word.isdecimal() or not 1 <= int(word) <= len(runs):
        there = "is run 1" if len(runs) == 1 else f"are runs 1 to {len(runs)}"
        raise ConfigError(f"%agent history: there is no run {word!r}. There {there}; %agent history lists them.")
    return runs[int(word) - 1]


def listing(runs: list[Kept], *, here: str = "", running: Collection[str] = (), limit: int = _SHOWN) -> str:
    """Return one line for each run, newest first: number, when, how it ended, what it took, and the prompt's first line.

    With `here` only the runs of that notebook (a number is the same in each list); `running` are the sessions of runs
    that go on now.
    """
    numbered = list(enumerate(runs, 1))
    of_here = [(n, run) for n, run in numbered if run.notebook == here] if here else []
    mine = of_here or numbered
    names = not of_here and len({run.notebook for run in runs}) > 1
    rows = [_row(n, run, name=names, running=running) for n, run in reversed(mine[-limit:])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines = [
        "  ".join([*(part.ljust(width) for part, width in zip(row, widths, strict=False)), row[-1]]) for row in rows
    ]
    more = [f"… {len(mine) - limit:,} older ones: %agent history --all"] if len(mine) > limit else []
    if len(mine) < len(runs):
        others = len(runs) - len(mine)
        which = "1 run of another notebook" if others == 1 else f"{others:,} runs of other notebooks"
        more.append(f"(Not listed: {which} in this folder.)")
    return "\n".join([*lines, *more, "%agent history N shows the record of one."])


def _row(number: int, run: Kept, *, name: bool, running: Collection[str]) -> list[str]:
    ended = run.ended or {}
    usage = ended.get("usage") if isinstance(ended.get("usage"), dict) else {}
    tokens = sum(value for value in (usage or {}).values() if isinstance(value, int))
    cost = ended.get("cost")
    cells = ended.get("cells")
    count = len(cells) if isinstance(cells, list) else 0
    goes_on = run.ended is None and run.started.get("session_id") in running
    reason = str(ended.get("reason", ""))
    prompt = _plain(str(run.started.get("prompt") or "")) or "(no prompt)"
    return [
        str(number).rjust(4),
        time.strftime("%Y-%m-%d %H:%M", time.localtime(run.at)) if run.at else "?",
        "running" if goes_on else _ENDED.get(reason, reason or "cut off"),
        f"{ended.get('turns', '?')} turns" if run.ended else "",
        f"{tokens:,} tokens" if tokens else "",
        f"${cost:.4f}" if isinstance(cost, int | float) else "",
        f"{count} cell{'s' * (count != 1)}" if count else "",
        *([_plain(run.notebook) or "?"] if name else []),
        prompt,
    ]


def _plain(text: str) -> str:
    first = next((line for line in without_ansi(text).splitlines() if line.strip()), "")
    return visible_plain(one_line(first.strip(), 80), spaces=False)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def runs_in(folder: Path) -> list[Kept]:
    """Return the runs of all sessions in a folder, oldest first; what can't be read is left out."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".jsonl")[-_FILES:]
    except OSError:
        return []
    runs = [run for path in files for run in _runs_of(path)]
    return sorted(runs, key=lambda run: run.at)  # stable: runs of one session stay in their order


def _runs_of(path: Path) -> list[Kept]:
    runs: list[Kept] = []
    begun: tuple[int, float, Json] | None = None
    clock = _time_of_id(path.stem)

    def close(ended: Json | None) -> None:
        if begun is not None:
            runs.append(Kept(path, *begun, ended))

    for offset, line in lines_in(path):
        head = line[:_HEAD]
        if b'"run_started"' not in head and b'"run_ended"' not in head:
            continue
        event, when = event_in(line)
        kind = event.get("type")
        clock = when or clock
        if kind == "run_started":
            close(None)
            begun = (offset, clock, event)
        elif kind == "run_ended" and begun is not None:
            close(event)
            begun = None
    close(None)
    return runs


def _time_of_id(session: str) -> float:
    """Return when a session began, by its id `20261129-235801-1f9c`: local time; 0.0 where it does not say."""
    try:
        return time.mktime(time.strptime("-".join(session.split("-")[:2]), "%Y%m%d-%H%M%S"))
    except (ValueError, OverflowError):
        return 0.0


def event_in(line: bytes) -> tuple[Json, float]:
    """Return the event in a line and when it was written (0.0: not said), ({}, 0.0) for a line that holds none."""
    try:
        data: Any = json.loads(line)
        event, when = data["event"], data.get("when")
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError):
        return {}, 0.0
    return (event if isinstance(event, dict) else {}), (float(when) if isinstance(when, int | float) else 0.0)


def lines_in(path: Path, offset: int = 0, limit: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with the place where each begins; those longer than `LINE` are passed over.

    At most `limit` bytes are read from `offset` on. A file that can't be read has none; links are not followed.
    """
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_LINK))  # noqa: SIM115
    except OSError:
        return
    with file:
        file.seek(offset)
        end = None if limit is None else offset + limit
        while (line := file.readline(LINE)) and (end is None or file.tell() <= end):
            place = offset
            whole = line.endswith(b"\n") or len(line) < LINE
            while not line.endswith(b"\n") and (line := file.readline(LINE)):
                pass
            offset = file.tell()
            if whole:
                yield place, line


def events_of(run: Kept) -> Iterator[Event]:
    """Yield the events of one run, up to its end or to the start of the next one."""
    for place, line in lines_in(run.path, run.offset, RUN):
        if b'"event"' not in line[:_HEAD]:
            continue
        data, _ = event_in(line)
        kind = data.get("type")
        if kind == "run_started" and place != run.offset:
            return
        try:
            event = from_json(data)
        except (KeyError, TypeError, ValueError):
            continue
        if event is not None:
            yield event
        if kind == "run_ended":
            return
