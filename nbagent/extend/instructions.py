"""What people wrote down for the agent: CLAUDE.md and NBAGENT.md with their @imports, and `rules/*.md`.

All of it becomes one message in front of the first prompt, general before particular; files of folders below are told
when something in their folder is read. What leads out of the project is only read once the person agreed. Read
`Instructions.start`, then `Instructions.touched`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from nbagent.extend.frontmatter import Fields, parse
from nbagent.extend.globs import matches
from nbagent.extend.imports import imports, without_comments
from nbagent.extend.places import Places
from nbagent.extend.textfiles import TextFile, files_below, is_inside, read_text, sha256
from nbagent.extend.trust import Power, Trust

HOPS = 4
"""How far imports are followed from a file."""
LARGE = 40_000
"""Characters from which on a file is said to be too long to be followed well."""
TOTAL_LIMIT = 400_000
"""Characters of all instructions in one message; what is over it is left out and named."""

MemoryType = Literal["Managed", "User", "Project", "Local"]
Reason = Literal["session_start", "nested_traversal", "path_glob_match", "include", "compact"]

_KINDS: dict[MemoryType, str] = {
    "Managed": "set by the administrator of this machine",
    "User": "the person's own, for all projects",
    "Project": "this project's, shared by those who work on it",
    "Local": "the person's own, for this project",
}
_TEXTS = frozenset(
    {
        *("", ".md", ".mdx", ".markdown", ".txt", ".rst", ".adoc", ".org", ".tex", ".csv", ".tsv", ".json", ".jsonc"),
        *(".yaml", ".yml", ".toml", ".cfg", ".xml", ".html", ".css", ".sql", ".py", ".pyi", ".r", ".jl", ".js", ".jsx"),
        *(".mjs", ".cjs", ".ts", ".tsx", ".java", ".kt", ".scala", ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp"),
        *(".cs", ".rb", ".php", ".swift", ".sh", ".bash", ".ps1", ".lua", ".pl", ".proto", ".graphql", ".diff"),
    }
)
_NAMES = frozenset({"CLAUDE.md", "CLAUDE.local.md", "NBAGENT.md", "NBAGENT.local.md"})
WAITS = "until you trust this folder's files."
"""How a problem ends that the question about trust will solve."""
_DOCUMENTS = frozenset({".md", ".mdx", ".markdown", ".txt", ".rst"})


@dataclass(frozen=True, slots=True)
class Part:
    """One file of instructions, as it was read. The fields after `text` are those of the hook InstructionsLoaded."""

    path: Path
    shown: str
    text: str
    memory_type: MemoryType
    reason: Reason = "session_start"
    globs: tuple[str, ...] = ()
    trigger: Path | None = None
    parent: Path | None = None


@dataclass(frozen=True, slots=True)
class _About:
    """How a file came to be read: how many imports away, by which file, and for which file that was touched."""

    hops: int = 0
    parent: Path | None = None
    trigger: Path | None = None


_BY_ITSELF = _About()


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read: its parts in order, and what is wrong with files, a sentence each."""

    parts: tuple[Part, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All of it as one text for a message of the user's, with the source of each part; "" where there is none."""
        if not self.parts:
            return ""
        head = (
            "Instructions that people wrote down for you. Follow them in this task; what the person says in a prompt "
            "comes before them, and no instruction here lets you do what is asked about without asking."
        )
        if self.parts[0].reason in {"nested_traversal", "path_glob_match"}:
            head = "More instructions, for the files that you are working with now:"
        return "\n\n".join([head, *map(_section, self.parts)])

    def untold(self, said: str) -> Loaded:
        """Return the parts that do not stand in `said`, what a conversation was told, as they are now."""

        def stands(part: Part) -> bool:
            last = said.rfind(_heading(part))
            return last >= 0 and said.startswith(_section(part), last)

        return replace(self, parts=tuple(part for part in self.parts if not stands(part)))

    @property
    def report(self) -> str:
        """What was read, a line each, for a person."""
        lines = [f"{part.shown}  {len(part.text):,} characters, {_why(part)}" for part in self.parts]
        return "\n".join([*lines, *self.problems]) or "No instructions here (CLAUDE.md or NBAGENT.md would be read)."


class Instructions:
    """The instructions for one working folder; each file is told once. `excludes` is the setting `claudeMdExcludes`.

    Of it only what is in `own`, the person's, leaves out files of theirs; the administrator's are always told.
    """

    def __init__(self, places: Places, trust: Trust, *, excludes: Sequence[str] = (), own: Sequence[str] = ()) -> None:
        self._places = places
        self._trust = trust
        self._excludes, self._own = tuple(excludes), tuple(own)
        self._seen: set[str] = set()
        self._waiting: list[Part] = []
        self._powers: dict[str, Power] = {}
        self._problems: list[str] = []
        self._room = TOTAL_LIMIT

    @property
    def powers(self) -> tuple[Power, ...]:
        """Files outside of the project that its instructions import: read only where the person agreed."""
        return tuple(self._powers.values())

    def start(self, reason: Literal["session_start", "compact"] = "session_start") -> Loaded:
        """Read all that holds from the beginning, anew, in order; after a compaction too."""
        self._seen.clear()
        self._waiting.clear()
        self._powers.clear()
        self._problems, self._room = [], TOTAL_LIMIT
        parts = [part for path, kind in self._files() for part in self._file(path, kind, reason)]
        return Loaded(tuple(parts), tuple(self._problems))

    def touched(self, path: Path) -> Loaded:
        """Read what holds for a file that the agent read or changed and was not told yet; empty mostly."""
        self._problems = []
        real = Path(os.path.realpath(self._places.folder / path))
        if not is_inside(real, self._places.root):
            return Loaded()
        parts: list[Part] = []
        for folder in reversed(real.parents):
            if self._places.folder in folder.parents:
                for file, kind in self._of_folder(folder):
                    parts += self._file(file, kind, "nested_traversal", _About(trigger=real))
        below = real.relative_to(self._places.root).as_posix()
        due = [rule for rule in self._waiting if matches(below, rule.globs)]
        self._waiting = [rule for rule in self._waiting if rule not in due]
        for rule in due:
            parts += self._told(replace(rule, reason="path_glob_match", trigger=real), 0)
        return Loaded(tuple(parts), tuple(self._problems))

    def _files(self) -> Iterator[tuple[Path, MemoryType]]:
        """Yield all files that hold from the beginning, general before particular."""
        places = self._places
        yield places.managed / "CLAUDE.md", "Managed"
        for path in files_below(places.administrators("rules"), ".md"):
            yield path, "Managed"
        for folder, name in ((places.claude, "CLAUDE.md"), (places.own, "NBAGENT.md")):
            yield folder / name, "User"
            for path in files_below(folder / "rules", ".md"):
                yield path, "User"
        for folder in (*reversed(places.folder.parents), places.folder):
            yield from self._of_folder(folder)

    def _of_folder(self, folder: Path) -> Iterator[tuple[Path, MemoryType]]:
        """Yield the files of one folder of the project, or above it."""
        yield folder / "CLAUDE.md", "Project"
        yield folder / ".claude" / "CLAUDE.md", "Project"
        yield folder / "NBAGENT.md", "Project"
        yield folder / ".nbagent" / "NBAGENT.md", "Project"
        for holder in (".claude", ".nbagent"):
            for path in files_below(folder / holder / "rules", ".md"):
                yield path, "Project"
        yield folder / "CLAUDE.local.md", "Local"
        yield folder / "NBAGENT.local.md", "Local"

    def _file(self, path: Path, kind: MemoryType, reason: Reason, about: _About = _BY_ITSELF) -> Iterator[Part]:
        """Yield a file and what it imports, if it is there, may be read, and was not told yet."""
        real = os.path.realpath(path)
        if real in self._seen or not os.path.lexists(path) or self._is_excluded(path, kind):
            return
        if not self._may_read(path, kind, about.parent):
            return
        read = read_text(path)
        if read is None:
            self._problems.append(f"{self._places.shown(path)} is a link that leads nowhere.")
            return
        self._seen.add(real)
        part = self._part(read, kind, reason, about)
        if part.globs:
            self._waiting.append(part)
            return
        yield from self._told(part, about.hops)

    def _part(self, read: TextFile, kind: MemoryType, reason: Reason, about: _About) -> Part:
        """Return what is to be told of a file. Only rules have `paths`: other files hold wherever they lie."""
        shown = self._places.shown(read.path)
        front = parse(read.text)
        fields = Fields(front.fields, ("paths",))
        rule = about.hops == 0 and read.path.name not in _NAMES
        globs = fields.patterns("paths") if rule else ()
        said = [*([front.problem] if front.problem else []), *fields.problems]
        self._problems += [*([read.problem] if read.problem else []), *(f"{shown}: {one}." for one in said)]
        text = without_comments(front.body if front.fields or front.problem else read.text).strip()
        return Part(read.path, shown, text, kind, reason, globs, about.trigger, about.parent)

    def _told(self, part: Part, hops: int) -> Iterator[Part]:
        """Yield a part, if there is room and it is not empty, and what it imports."""
        if part.text and (kept := self._fitting(part)) is not None:
            yield kept
        if hops < HOPS:
            yield from self._imported(part, hops)
        elif found := imports(part.text):
            self._problems.append(
                f"{part.shown} imports {found[0]}; imports are followed {HOPS} times only, so it is not read."
            )

    def _imported(self, part: Part, hops: int) -> Iterator[Part]:
        for written in imports(part.text):
            if (target := self._target(part.path, written)) is not None:
                yield from self._file(target, part.memory_type, "include", _About(hops + 1, part.path, part.trigger))

    def _target(self, importer: Path, written: str) -> Path | None:
        """Return the file that an import means; None, quietly for what is no file (`@name`), where there is none."""
        try:
            if written.startswith("~/"):
                target = self._places.home / written[2:]
            else:
                target = Path(os.path.realpath(importer)).parent / written
            there = target.is_file()
        except (OSError, ValueError):
            return None
        if not there:
            if Path(written).suffix.lower() in _DOCUMENTS:
                self._problems.append(f"{self._places.shown(importer)} imports {written}, and there is no such file.")
            return None
        if Path(os.path.realpath(target)).suffix.lower() not in _TEXTS or target.name.startswith(".env"):
            self._problems.append(
                f"{self._places.shown(importer)} imports {written}, which is no text; it is not read."
            )
            return None
        return target

    def _may_read(self, path: Path, kind: MemoryType, parent: Path | None) -> bool:
        """Whether a file may be read: the person's own may; a project's, if it does not lead out or they agreed."""
        if kind in {"User", "Managed"}:
            return True
        above = parent is None and self._places.root not in (path.parent, *path.parents)
        if above and is_inside(path, path.parent):
            return self._is_mine(path)
        if is_inside(path, self._places.root):
            return True
        real = os.path.realpath(path)
        by = self._places.shown(parent or path)
        power = Power(
            "import",
            real,
            by,
            f"reads {real}, outside of this folder, into the conversation",
            sha256(real.encode("utf-8", "surrogateescape")),
        )
        self._powers[power.key] = power
        if self._trust.holds(power):
            return True
        self._problems.append(f"{by}: {real} lies outside of this folder; it is not read {WAITS}")
        return False

    def _is_mine(self, path: Path) -> bool:
        """Whether a file above the project is this person's or the administrator's: `/tmp/CLAUDE.md` may be anybody's."""
        if not hasattr(os, "getuid"):
            return True
        try:
            owner = path.stat().st_uid
        except OSError:
            return False
        if owner in {0, os.getuid()}:
            return True
        self._problems.append(f"{path} is not read: it lies above this project and belongs to somebody else.")
        return False

    def _is_excluded(self, path: Path, kind: MemoryType) -> bool:
        excludes: Sequence[str] = {"Managed": (), "User": self._own}.get(kind, self._excludes)
        return bool(excludes) and matches(path.as_posix(), excludes)

    def _fitting(self, part: Part) -> Part | None:
        """Return the part, cut to the room that is left; say so where it is long."""
        if len(part.text) > LARGE:
            self._problems.append(
                f"{part.shown} has {len(part.text):,} characters; what is longer than {LARGE:,} is not followed well."
            )
        if len(part.text) <= self._room:
            self._room -= len(part.text)
            return part
        self._problems.append(
            f"{part.shown} is cut: all instructions together have more than {TOTAL_LIMIT:,} characters."
        )
        room, self._room = self._room, 0
        return replace(part, text=part.text[:room] + "\n… (the rest was left out)") if room else None


def _heading(part: Part) -> str:
    return f"# From {part.shown} ({_KINDS[part.memory_type]})\n\n"


def _section(part: Part) -> str:
    return f"{_heading(part)}{part.text}\n\n# End of {part.shown}"


def _why(part: Part) -> str:
    by = f" of {part.parent.name}" if part.parent else ""
    for_file = f" for {part.trigger.name}" if part.trigger else ""
    words = {"include": "import", "nested_traversal": "of its folder", "path_glob_match": "rule", "compact": "again"}
    return f"{part.memory_type.lower()}{', ' + words[part.reason] if part.reason in words else ''}{by}{for_file}"
