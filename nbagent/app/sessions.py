"""`%agent sessions`, `resume`, `fork`, `rename` and `delete`: the conversations of this folder.

`resume` and `fork` take effect at the next `%%agent` cell. Read `sessions`.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nbagent.app.finding import NO_SESSIONS, find, last_of, outlines, same_notebook, split_point
from nbagent.app.starts import NOTHING_YET, Move, named, notebook_of, point
from nbagent.core.errors import ConfigError
from nbagent.core.shown import visible_plain
from nbagent.extend.sessions import FOLDER, JsonlStore, Outline, read_session
from nbagent.extend.sessions_read import prompt_of, prompts
from nbagent.view.text import one_line, without_ansi

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

_SHOWN = 20
_NAME = 80
RUNNING = "An agent is running in this kernel: wait for it, or stop it first."


def sessions(extension: Extension, rest: str) -> str:
    """Carry out `%agent sessions [--all | ID]`: the list, newest first, or the prompts of one with their numbers."""
    word = rest.strip()
    if word and word != "--all":
        return _prompts(extension, word)
    known = [one for one in outlines(extension.folder) if one.messages or one.id in _live(extension)]
    if not known:
        return NO_SESSIONS
    here = notebook_of(extension)
    mine = [one for one in known if same_notebook(one.notebook, here)] if here and not word else known
    shown = mine if word else mine[:_SHOWN]
    rows = [_row(extension, one, notebook=bool(word) or not here) for one in shown]
    lines = _aligned(
        [["ID", "last used", "runs", "turns", "cost", *(["notebook"] if word or not here else []), "what"], *rows]
    )
    more: list[str] = []
    if len(shown) < len(mine):
        more.append(f"… {len(mine) - len(shown):,} older ones: %agent sessions --all")
    if len(mine) < len(known):
        more.append(
            f"(Not listed: {len(known) - len(mine):,} of other notebooks in this folder: %agent sessions --all)"
        )
    return "\n".join(
        [
            *lines,
            *more,
            "%agent resume ID goes on in one, %agent fork ID in a copy, %agent sessions ID tells its prompts.",
        ]
    )


def resume(extension: Extension, rest: str) -> str:
    """Carry out `%agent resume [ID|name]`: this notebook goes on in that session; without one, in its last session."""
    _idle(extension)
    one = find(extension.folder, rest) if rest.strip() else _last(extension)
    found = read_session(one.path, extension.seals)
    if found is None or not found.messages:
        raise ConfigError(f"The session {one.id} has no messages to go on from.")
    extension.move = Move(one.id, len(found.messages), itself=True)
    copied = "" if found.sealed else " It was not written by your nbagent here, so a copy of it goes on."
    used = " Another kernel uses it, so a copy of it goes on." if extension.holds.elsewhere(one.id) else ""
    return f"The next %%agent cell goes on in {named(one)}.{copied}{used}"


def fork(extension: Extension, rest: str) -> str:
    """Carry out `%agent fork [--at N] [ID|name]`: this notebook goes on in a copy, after the first N prompts if given."""
    _idle(extension)
    words, at = rest.split(), None
    if "--at" in words:
        place = words.index("--at")
        if place + 1 >= len(words):
            raise ConfigError("%agent fork --at N: say after which prompt; %agent sessions ID numbers them.")
        at = split_point(f"@{words[place + 1]}")[1]
        del words[place : place + 2]
    name, with_at = split_point(" ".join(words))
    one = find(extension.folder, name) if name else _current(extension)
    past = point(extension, one.id, at or with_at)
    extension.move = Move(one.id, len(past.messages), itself=False)
    count = len(prompts(past.messages))
    return (
        f"The next %%agent cell goes on in a copy of {named(one)}, after {count} prompt{'s' * (count != 1)}. "
        "The session itself stays as it is."
    )


def rename(extension: Extension, rest: str) -> str:
    """Carry out `%agent rename NAME`: the session that this notebook is in gets a name."""
    name = " ".join(rest.split())
    if not name or len(name) > _NAME or "@" in name or not name.isprintable():
        raise ConfigError(f"%agent rename NAME: a name of 1 to {_NAME} characters that can be seen, without @.")
    same = next((one for one in outlines(extension.folder) if one.title == name), None)
    one = _current(extension)
    if same is not None and same.id != one.id:
        raise ConfigError(f"Another session has the name “{name}” already: {same.id}.")
    live = next((found for found in extension.conversations.values() if found.session.id == one.id), None)
    if live is None and extension.last is not None and extension.last.session.id == one.id:
        live = extension.last
    if live is not None:
        live.entitle(name)
    else:
        if extension.holds.elsewhere(one.id):
            raise ConfigError(f"Another kernel uses the session {one.id}: rename it there.")
        found = read_session(one.path, extension.seals)
        seals = extension.seals if found is not None and found.sealed else None
        store = JsonlStore(one.path, seals, last=found.last if found is not None else "")
        store.append({"type": "title", "title": name})
        if store.problem:
            raise ConfigError(f"The name can't be kept: {store.problem}.")
    return f"The session {one.id} is called “{name}” now."


def delete(extension: Extension, rest: str) -> str:
    """Carry out `%agent delete ID [--yes]`: asks, then deletes a session's file and those of its subagents."""
    _idle(extension)
    words = rest.split()
    sure = "--yes" in words
    ref = " ".join(word for word in words if word != "--yes")
    if not ref:
        raise ConfigError("%agent delete ID: say which session; %agent sessions lists them.")
    one = find(extension.folder, ref)
    if (using := extension.underway.in_session(one.id)) is not None:
        raise ConfigError(f"“{using.who}” goes on in it. {using.how_to_end}")
    if extension.holds.elsewhere(one.id):
        raise ConfigError(f"Another kernel uses the session {one.id}: it is not deleted.")
    live = one.id in _live(extension)
    used = " It is the one that this notebook is in: the next %%agent cell then begins a new one." if live else ""
    if not sure and not yes(extension, f"Delete the session {named(one)} for good?{used} y or n: "):
        return f"Not deleted: {one.id}.{used} (%agent delete {one.id} --yes deletes it without asking.)"
    for seat, conversation in list(extension.conversations.items()):
        if conversation.session.id == one.id:
            del extension.conversations[seat]
    for seat, shown in list(extension.shown.items()):
        if shown.session == one.id:
            del extension.shown[seat]
    if extension.last is not None and extension.last.session.id == one.id:
        extension.last = None
    if extension.move is not None and extension.move.session == one.id:
        extension.move = None
    extension.going_on = {seat: session for seat, session in extension.going_on.items() if session != one.id}
    extension.planned = [planned for planned in extension.planned if one.id not in {planned.session, planned.id}]
    _remove(one.path)
    extension.holds.drop(one.id)
    return f"Deleted: {one.id}.{used}"


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{path} can't be deleted: {error.strerror}.") from None
    beside = path.with_suffix("")
    if not beside.is_symlink():
        with contextlib.suppress(OSError):
            shutil.rmtree(beside)


def yes(extension: Extension, question: str) -> bool:
    """Ask in the cell itself; where the front end takes no input, that is no yes."""
    import sys

    from nbagent.jupyter.front_end import takes_input

    if getattr(extension.shell, "kernel", None) is None and not sys.stdin.isatty():
        return False
    if getattr(extension.shell, "kernel", None) is not None and not takes_input(extension.shell):
        return False
    try:
        return input(visible_plain(question)).strip().casefold() in {"y", "yes"}
    except (EOFError, KeyboardInterrupt):
        return False


def _idle(extension: Extension) -> None:
    if extension.stop is not None:
        raise ConfigError(RUNNING)


def _live(extension: Extension) -> set[str]:
    return {conversation.session.id for conversation in extension.conversations.values()}


def _last(extension: Extension) -> Outline:
    found = last_of(extension.folder, notebook_of(extension))
    if found is None and not notebook_of(extension):
        found = next((one for one in outlines(extension.folder) if one.messages and not one.beside), None)
    if found is None:
        raise ConfigError(NOTHING_YET)
    return found


def _current(extension: Extension) -> Outline:
    """Return the session that was used last in this kernel, else the notebook's last one."""
    if extension.last is not None and (extension.folder / FOLDER / f"{extension.last.session.id}.jsonl").exists():
        return find(extension.folder, extension.last.session.id)
    return _last(extension)


def _row(extension: Extension, one: Outline, *, notebook: bool) -> list[str]:
    cost = "?" if one.cost is None else f"${one.cost:.4f}" if one.cost else ""
    marks = [
        "in use" if one.id in _live(extension) else "in use elsewhere" if extension.holds.elsewhere(one.id) else "",
        "branch" if one.beside and one.about.get("beside") else "",
        _line(str(one.about.get("errand") or ""), 40),
        "summed up" if one.about.get("compacted_from") else "",
    ]
    said = ", ".join(filter(None, marks))
    title = f"“{_line(one.title, _NAME)}” " if one.title else ""
    return [
        one.id,
        time.strftime("%Y-%m-%d %H:%M", time.localtime(one.last)),
        str(one.runs),
        str(one.turns),
        cost,
        *([_line(one.notebook, 40) or "(none)"] if notebook else []),
        f"{f'[{said}] ' if said else ''}{title}{_line(one.prompt, 70) or '(no prompt)'}",
    ]


def _line(text: str, limit: int) -> str:
    return visible_plain(one_line(without_ansi(text).strip(), limit), spaces=False)


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return [
        "  ".join([*(part.ljust(width) for part, width in zip(row, widths, strict=False)), row[-1]]) for row in rows
    ]


def _prompts(extension: Extension, ref: str) -> str:
    """Return the prompts of one session by number: what comes after @ and --at."""
    one = find(extension.folder, ref)
    found = read_session(one.path, extension.seals)
    messages = found.messages if found is not None else ()
    lines = [
        f"{number:>4}  {_line(prompt_of(messages[place]), 100)}" for number, place in enumerate(prompts(messages), 1)
    ]
    origin = one.about.get("forked_from") or one.about.get("compacted_from")
    session = origin.get("session") if isinstance(origin, dict) else origin
    since = [f"goes on from {_line(str(session), 40)}"] if session else []
    ours = [] if found is not None and found.sealed else ["not written by your nbagent here, or changed since"]
    return "\n".join([named(one), *since, *ours, *lines, f"%agent fork --at N {one.id} goes on after prompt N."])
