"""Trust in a folder: what in its files can run or widen what is allowed is inert until the person said yes to its content.

One question names all of it. The answer is kept for the content that was shown (SHA-256), in the person's own
configuration folder and sealed, never in the project: what changed is asked about again, by name. This module does not
know how the files are read (survey.py). Read `Power`, then `Trust`.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbagent.core.shown import visible_plain
from nbagent.extend.seals import Seals
from nbagent.extend.textfiles import read_bytes, sha256

_LONGEST = 400
_MOST = 200
"""Things that one question can name; more can't be looked through by anybody."""
_FILE_LIMIT = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Power:
    """One thing in a project's files that can run something or widen what is allowed.

    `kind` and `name` as a person knows it ("hook", "PreToolUse Bash"), `file` relative to the project, `does` what it
    would do, `digest` the SHA-256 of all that decides what it does.
    """

    kind: str
    name: str
    file: str
    does: str
    digest: str

    @property
    def key(self) -> str:
        """What it is known by, whatever its content."""
        return f"{self.kind}\0{self.name}\0{self.file}"

    def __str__(self) -> str:
        return visible_plain(f"{self.kind} {self.name} ({self.file})".replace("\n", " "))


@dataclass(frozen=True, slots=True)
class Doubt:
    """What must be asked: `changed` is other, or newly there, in files that the person had said yes to; `new` the rest."""

    new: tuple[Power, ...]
    changed: tuple[Power, ...]

    @property
    def powers(self) -> tuple[Power, ...]:
        """All that the answer will be about."""
        return (*self.changed, *self.new)

    @property
    def text(self) -> str:
        """The question, with all that would run or be allowed."""
        head = (
            "Do you trust the files of this folder? These can run commands or widen what the agent may do, "
            "and none of them is used until you say yes:"
        )
        lines = [head]
        if self.changed:
            lines += ["", "Changed or new in files that you said yes to:", *map(_line, self.changed)]
        if self.new:
            lines += ["", *(("New:",) if self.changed else ()), *map(_line, self.new)]
        return "\n".join(lines)


def what_would_run(powers: Iterable[Power]) -> str:
    """Return a list of `powers` in plain words, one a line."""
    lines = [_line(power) for power in powers]
    return "\n".join(lines) or "Nothing in this folder's files runs by itself or widens what is allowed."


def _line(power: Power) -> str:
    does = visible_plain(power.does.strip())
    if len(does) > _LONGEST:
        does = f"{does[:_LONGEST]} … and {len(does) - _LONGEST:,} characters more: look into the file"
    return f"- {power}: " + does.replace("\n", "\n    ")


class Trust:
    """The answers for one folder. `kept` is the person's own folder for them (`<configuration>/trust`).

    Where that can't be read or written, answers hold for this object only and `problem` says so.
    """

    def __init__(self, folder: Path, kept: Path, seals: Seals | None = None) -> None:
        self._folder = os.path.realpath(folder)
        self._file = kept / f"{sha256(self._folder.encode('utf-8', 'surrogateescape'))[:32]}.json"
        self._seals = seals or Seals(kept.parent)
        self.problem = ""
        self._lost = False  # what was answered could not be kept
        self._answers: dict[str, tuple[str, bool]] = self._read()

    def look(self) -> None:
        """Take over what was answered meanwhile in another kernel or on the command line."""
        if not self._lost:
            self._answers = self._read()

    def holds(self, power: Power) -> bool:
        """Whether the person said yes to this very content."""
        return self._answers.get(power.key) == (power.digest, True)

    def refused(self, power: Power) -> bool:
        """Whether the person said no to this very content."""
        return self._answers.get(power.key) == (power.digest, False)

    def changed(self, power: Power) -> bool:
        """Whether the person said yes to it with another content, and has not been asked about this one."""
        digest, yes = self._answers.get(power.key, ("", False))
        return yes and digest != power.digest

    def doubt(self, powers: Iterable[Power]) -> Doubt | None:
        """Return what to ask about `powers`; None where all of it was answered, with yes or with no."""
        new: list[Power] = []
        changed: list[Power] = []
        known = {key.rpartition("\0")[2] for key, (_, yes) in self._answers.items() if yes}
        for power in dict.fromkeys(powers):
            if self._answers.get(power.key, ("", False))[0] != power.digest:
                (changed if power.file in known else new).append(power)
        if not new and not changed:
            return None
        if len(new) + len(changed) > _MOST:
            self.problem = (
                f"This folder's files hold {len(new) + len(changed)} things that run or widen what is allowed, more than "
                f"the {_MOST} that can be looked through; none of the new ones is used."
            )
            return None
        return Doubt(tuple(new), tuple(changed))

    def answer(self, powers: Sequence[Power], *, yes: bool) -> None:
        """Keep the person's answer for `powers` as they were shown."""
        kept = self._read() or self._answers  # another kernel may have asked meanwhile
        self._answers = kept | {power.key: (power.digest, yes) for power in powers}
        self._write()

    def forget(self) -> None:
        """Take back all answers for this folder."""
        self._answers = {}
        self._write()

    def _sealed(self, answers: Any) -> bytes:
        return json.dumps(["trust", 1, self._folder, answers], sort_keys=True).encode("utf-8", "surrogatepass")

    def _read(self) -> dict[str, tuple[str, bool]]:
        try:
            kept = json.loads(read_bytes(self._file, _FILE_LIMIT))
            answers = kept["answers"]
            if not self._seals.holds(self._sealed(answers), kept["seal"]):
                return {}
            return {str(key): (str(digest), yes is True) for key, (digest, yes) in answers.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}

    def _write(self) -> None:
        answers = {key: [digest, yes] for key, (digest, yes) in self._answers.items()}
        text = json.dumps({"folder": self._folder, "answers": answers, "seal": self._seals.seal(self._sealed(answers))})
        part = self._file.with_name(f".{self._file.name}.{secrets.token_hex(4)}.tmp")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.write(text)
            part.replace(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink()
            self._lost = True
            self.problem = f"The answer can't be kept ({self._file}: {error.strerror}); it holds until the kernel ends."
