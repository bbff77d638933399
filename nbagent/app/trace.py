"""`%agent trace`: the loop of a run, opened up: the path, every turn's request and reply, the transcript, what it cost.

Read from the session's file, where each message stands once; a request is put together from them, and its hash says whether all of
it is there. Read `trace`, then `seen_of`.
"""

from __future__ import annotations

import argparse
import difflib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from nbagent.app.export import put, shown_path, typed
from nbagent.app.history import NONE, RUN, Kept, event_in, lines_in, runs_in
from nbagent.core.errors import ConfigError
from nbagent.core.events import Event, LoopShown, RunStarted
from nbagent.core.events_json import from_json
from nbagent.core.messages import Json, Message
from nbagent.core.shown import visible_plain
from nbagent.extend.sessions import FOLDER
from nbagent.view.loopview import Before, LoopSeen, html, see_all, text
from nbagent.view.text import escape, one_line

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import View
    from nbagent.core.session import Session

HOW = "%agent trace [RUN] [--turn N] [--save FILE.html [--force]]"

IN_CELL = 300_000
"""Characters of the HTML in a cell; a file may have more."""

_WORDS = 60


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"%agent trace: {message}. {HOW}")


def trace(extension: Extension, rest: str) -> str:
    """Carry out `%agent trace [RUN] [--turn N] [--save FILE.html]`: show the loop of a run, or write it to a file."""
    wanted = _read(rest)
    runs = runs_in(extension.folder / FOLDER)
    here = extension.last.notebook if extension.last is not None else ""
    number = chosen(runs, wanted.run, here)
    seen = seen_of(runs[number - 1])
    turn = _turn(seen, wanted.turn, number)
    title = f"Run {number}: {one_line(visible_plain(seen.prompt, spaces=False), _WORDS)}"
    if wanted.save:
        target = typed(wanted.save)
        if target.suffix.lower() not in {".html", ".htm"}:
            raise ConfigError(f"%agent trace: {wanted.save!r} must end in .html. {HOW}")
        if target.exists() and not wanted.force:
            raise ConfigError(f"{shown_path(target)} is there already. Choose another name, or --force replaces it.")
        put(page(title, html(seen, turn=turn)), {}, target, force=wanted.force, command="trace")
        return f"The loop of run {number} is in {shown_path(target)}."
    from IPython.display import display

    shown = f"<p><b>{escape(title)}</b></p>{html(seen, turn=turn, total=IN_CELL)}"
    display({"text/plain": f"{title}\n\n{text(seen, turn=turn)}", "text/html": shown}, raw=True)
    return ""


def page(title: str, body: str) -> str:
    """Return a whole HTML page that loads nothing and runs nothing."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        "<style>:root{color-scheme:light dark}body{margin:16px auto;max-width:1100px;padding:0 12px}</style></head>"
        f"<body><h3>{escape(title)}</h3>{body}</body></html>\n"
    )


def chosen(runs: list[Kept], word: str, here: str = "") -> int:
    """Return the number of the run that `word` means: a number as in `%agent history`, or a run's or session's id; "": the last one.

    `here` is the path of the notebook whose last run is meant. Raises `ConfigError` with the nearest one.
    """
    if not runs:
        raise ConfigError(NONE)
    if not word:
        mine = [number for number, run in enumerate(runs, 1) if here and run.notebook == here]
        return mine[-1] if mine else len(runs)
    if word.isdecimal() and 1 <= int(word) <= len(runs):
        return int(word)
    ids = {name: number for number, run in enumerate(runs, 1) for name in _ids(run)}
    if word in ids:
        return ids[word]
    if word.isdecimal():
        near = 1 if int(word) < 1 else len(runs)
    else:
        alike = difflib.get_close_matches(word, ids, 1, 0.4)
        near = ids[alike[0]] if alike else len(runs)
    prompt = one_line(visible_plain(str(runs[near - 1].started.get("prompt") or ""), spaces=False), _WORDS)
    raise ConfigError(
        f"%agent trace: there is no run {word!r}. The nearest is run {near} (“{prompt}”); %agent history lists them."
    )


def _ids(run: Kept) -> tuple[str, ...]:
    return tuple(str(run.started[name]) for name in ("run_id", "session_id") if run.started.get(name))


def _read(rest: str) -> argparse.Namespace:
    parser = _Parser(prog="%agent trace", add_help=False, allow_abbrev=False)
    parser.add_argument("run", nargs="?", default="")
    parser.add_argument("--turn", type=int, default=None)
    parser.add_argument("--save", default="", metavar="FILE.html")
    parser.add_argument("--force", action="store_true")
    try:
        return parser.parse_args(shlex.split(rest))
    except ValueError as error:
        raise ConfigError(f"%agent trace: {error}. {HOW}") from None


def _turn(seen: LoopSeen, wanted: int | None, number: int) -> int | None:
    turns = [turn.number for turn in seen.turns if turn.requests]
    if wanted is None or wanted in turns:
        return wanted
    there = f"It has turns {turns[0]} to {turns[-1]}." if turns else "It has none."
    raise ConfigError(f"%agent trace: run {number} has no turn {wanted}. {there}")


# ── while it runs ────────────────────────────────────────────────────────────────────────────────────────────────────


def opens_loop(given: Json) -> bool:
    """Whether a cell with these options shows its loop: where it is traced, or stepped (then the step panel shows it live)."""
    return any(given.get(name) for name in ("trace", "step", "pace", "breaks"))


class LoopOpening:
    """A view that is told to show the loop, too, when a run begins; `live`: while it goes on, not only in the record."""

    def __init__(self, view: View, *, live: bool) -> None:
        self._view, self._live = view, live
        self._session: Session | None = None

    def knows(self, session: Session) -> None:
        """Say what session the run is of, before it begins."""
        self._session = session

    def show(self, event: Event) -> None:
        """Take one event."""
        self._view.show(event)
        if isinstance(event, RunStarted):
            session = self._session
            kept = (session.system, session.tools, tuple(session.transcript)) if session is not None else ("", (), ())
            system, tools, messages = kept
            self._view.show(LoopShown(state=event.state, turn=event.turn, at=event.at, system=system, tools=tools,
                                      messages=messages, live=self._live))  # fmt: skip


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def seen_of(run: Kept) -> LoopSeen:
    """Return the loop of a kept run, also of one that was cut off."""
    return see_all(events_with_messages(run), LoopSeen(before=before(run)))


def before(run: Kept) -> Before | None:
    """Return what a run's session held before it: system prompt, tools and messages; None where the file does not say."""
    system, tools, messages = "", tuple[Json, ...](), list[Message]()
    known = False
    for place, line in lines_in(run.path):
        if place >= run.offset:
            break
        match _json(line):
            case {"type": "session", "system": str(system), "tools": list(found)}:
                tools, known = tuple(found), True
            case {"type": "message", "message": dict(message)}:
                messages.append(message)
            case _:
                pass
    return Before(system, tools, tuple(messages)) if known else None


def events_with_messages(run: Kept) -> Iterator[Event]:
    """Yield the events of a run; each request with the messages that are new in it, which the file has apart."""
    new: list[Message] = []
    for record in _records(run):
        match record:
            case {"type": "message", "message": dict(message)}:
                new = [*new, message]
            case {"type": "event", "event": dict(data)}:
                asks = data.get("type") == "request_sent"
                if asks:
                    data, new = {**data, "new": [one for one in new if one.get("role") != "assistant"]}, []
                elif data.get("type") == "reply_ended":
                    new = []
                try:
                    event = from_json(data)
                except (KeyError, TypeError, ValueError):
                    continue
                if event is not None:
                    yield event
                if data.get("type") == "run_ended":
                    return
            case _:
                pass


def _records(run: Kept) -> Iterator[Any]:
    """Yield the records of a run, in order, also those of the session in which it went on when it was summed up."""
    path, offset, seen = run.path, run.offset, set[Path]()
    while path not in seen:
        seen.add(path)
        into = ""
        for place, line in lines_in(path, offset, RUN):
            record = _json(line)
            if path != run.path and isinstance(record, dict) and record.get("type") == "session":
                continue
            if b'"run_started"' in line[:400] and (place != run.offset or path != run.path):
                data, _ = event_in(line)
                if data.get("type") == "run_started":
                    return
            yield record
            if isinstance(record, dict) and record.get("type") == "compacted":
                into = str(record.get("into") or "")
        if not into or Path(into).name != into:
            return
        path, offset = path.with_name(f"{into}.jsonl"), 0


def _json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
