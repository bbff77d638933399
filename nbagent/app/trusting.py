"""The one question about a folder's own files: asked before the first run in which any of them would run or widen something.

What it names is inert until a person says yes, and again when its content changes. A cell of the notebook can ask
(`%agent trust yes`), never answer: the notebook may be somebody else's. Where nobody is there the answer is no, said once.
Must not know what the files hold (extend/folder.py). Read `asked`, then `command`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from nbagent.app.consent import before_run
from nbagent.core.errors import ConfigError
from nbagent.core.events import Noted
from nbagent.core.ports import Approver
from nbagent.core.questions import choose
from nbagent.core.run import Stop
from nbagent.core.shown import visible_plain

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place, View
    from nbagent.extend.folder import FolderFiles
    from nbagent.extend.trust import Doubt, Power

TRUST, NOT_NOW = "Trust these files", "Not now"
USAGE = """\
%agent trust         what of this folder's files can run or widen what is allowed, and what you said of it
%agent trust yes     be asked about what you have not answered yet
%agent trust no      never use it, and don't ask again until it changes
%agent trust forget  take back all answers for this folder"""
NOTHING = "Nothing in this folder's files waits for an answer."
_NOBODY = "Say it yourself: nbagent trust, in a terminal in this folder, shows all of it and asks."


class Trusting:
    """What was said in one kernel of a folder's files: to the person, and by them for now."""

    def __init__(self) -> None:
        self.said: set[str] = set()
        self._later: set[frozenset[Power]] = set()

    def new(self, sentences: Iterable[str]) -> list[str]:
        """Return those sentences that the person was not told yet in this kernel."""
        found = [one for one in dict.fromkeys(sentences) if one not in self.said]
        self.said.update(found)
        return found

    def later(self, doubt: Doubt) -> None:
        """Take a "Not now": these very things are not asked about again in this kernel."""
        self._later.add(frozenset(doubt.powers))

    def waits(self, doubt: Doubt) -> bool:
        """Whether the person said "Not now" to all of it."""
        return any(frozenset(doubt.powers) <= known for known in self._later)

    def forget(self) -> None:
        """Ask about everything again."""
        self._later.clear()
        self.said.clear()


async def asked(extension: Extension, place: Place) -> bool:
    """Read the folder's files for a run, ask about them where that is needed, and say what is wrong with them.

    Returns whether the person has just said yes: then settings, too, may be others than before.
    """
    files = extension.files
    await asyncio.to_thread(files.load)
    doubt, yes = files.doubt, False
    if doubt is not None and not extension.trusting.waits(doubt):
        if place.approver.present:
            yes = await _answered(extension, doubt, place.approver, place.view)
        else:
            _say(extension, place.view, [f"{waiting(doubt.powers)} {_NOBODY}"], "warning")
    _say(extension, place.view, (*extension.settings().files.problems, *files.problems), "warning")
    return yes


async def _answered(extension: Extension, doubt: Doubt, approver: Approver, view: View) -> bool:
    """Put the question; keep a yes for what was shown, a "Not now" for this kernel."""
    answer = await choose(doubt.text, (TRUST, NOT_NOW), approver, before_run, view.show)
    if answer == TRUST:
        extension.files.answer(doubt, yes=True)
    elif answer == NOT_NOW:
        extension.trusting.later(doubt)
    return answer == TRUST


def _say(extension: Extension, view: View, sentences: Iterable[str], level: str) -> None:
    for text in extension.trusting.new(f"{one.removesuffix('.')}." for one in sentences):
        view.show(before_run(Noted, text=visible_plain(text), level=level))


def waiting(powers: Iterable[Power]) -> str:
    """Return one sentence about what is not used because nobody said yes to it: `2 hooks, 1 MCP server (…)`."""
    found = list(powers)
    counts = Counter(power.kind for power in found)
    kinds = ", ".join(f"{count} {kind}{'s' * (count != 1)}" for kind, count in counts.items())
    files = list(dict.fromkeys(power.file for power in found))
    named = ", ".join(files[:3]) + (f" and {len(files) - 3} more files" if len(files) > 3 else "")
    return visible_plain(f"Not used, because nobody has said that this folder's files are trusted: {kinds} ({named}).")


# ── %agent trust ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def command(extension: Extension, rest: str) -> str:
    """Carry out `%agent trust …` and return what it says; raises `ConfigError` that says how it is written."""
    files, word = extension.files, rest.strip()
    await asyncio.to_thread(files.load)
    match word:
        case "" | "show":
            return visible_plain(files.answered)
        case "yes":
            return await _ask(extension)
        case "no":
            return refuse(files)
        case "forget":
            extension.trusting.forget()
            return forget(files)
        case _:
            raise ConfigError(f"%agent trust: there is no {word!r}. It goes like this:\n{USAGE}")


def refuse(files: FolderFiles) -> str:
    """Say no to all that was not answered yet, for good."""
    if (doubt := files.doubt) is None:
        return NOTHING
    files.answer(doubt, yes=False)
    return f"Not used, and not asked about again until it changes: {_things(doubt)}. {_kept(files)}"


def forget(files: FolderFiles) -> str:
    """Take back all answers for a folder."""
    files.trust.forget()
    files.load()
    return f"All answers for {files.places.root} are taken back; nothing of its files runs until you are asked. {_kept(files)}"


def agree(files: FolderFiles, doubt: Doubt) -> str:
    """Keep a yes to what was shown."""
    files.answer(doubt, yes=True)
    return f"Trusted, as it is now: {_things(doubt)}. You are asked again when they change. {_kept(files)}"


def _things(doubt: Doubt) -> str:
    return f"{len(doubt.powers)} thing{'s' * (len(doubt.powers) != 1)}"


def _kept(files: FolderFiles) -> str:
    return files.trust.problem or "The next %%agent cell goes by it."


async def _ask(extension: Extension) -> str:
    """Put the question outside of a run, by buttons or typed; a cell of the notebook alone can't say yes."""
    from nbagent.app.place import Reins, find_place

    if extension.stop is not None:
        raise ConfigError("An agent is running in this kernel. Say it when that run has ended.")
    if (doubt := extension.files.doubt) is None:
        return NOTHING
    task, stop = asyncio.current_task(), Stop()
    stop.bind(task.cancel if task is not None else None)
    reins = Reins(stop.now, stop.spare, stop.now, extension.waiting)
    async with find_place(extension.shell, reins, extension.refusals, extension.silent) as place:
        if not place.approver.present:
            raise ConfigError(f"Nobody can be asked here. {_NOBODY}")
        answer = await choose(doubt.text, (TRUST, NOT_NOW), place.approver, before_run, place.view.show)
    if answer != TRUST:
        return "Nothing was changed: none of it is used."
    return agree(extension.files, doubt)


def on_terminal(folder: Path, word: str, read: Callable[[str], str], write: Callable[[str], None]) -> None:
    """Carry out `nbagent trust [show | yes | no | forget]`: what a person says in a terminal counts without a page.

    Without a word all is shown and then asked about. Raises `ConfigError` for another word.
    """
    import os

    from nbagent.extend.folder import FolderFiles
    from nbagent.extend.places import Places

    files = FolderFiles(Places.of(folder, os.environ))
    files.load()
    if word == "forget":
        write(forget(files))
        return
    if word not in {"", "show", "yes", "no"}:
        raise ConfigError(f"nbagent trust: there is no {word!r}. It takes show, yes, no or forget.")
    write(visible_plain(files.answered))
    doubt = files.doubt
    if word == "show" or doubt is None:
        return
    said = word or read(f"\nType yes to trust what is listed as not answered ({len(doubt.powers)}), no to refuse it: ")
    match said.strip().lower():
        case "yes" | "y":
            write(agree(files, doubt))
        case "no" | "n":
            write(refuse(files))
        case _:
            write("Nothing was changed: none of it is used.")
