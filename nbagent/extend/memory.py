"""What the agent keeps for later sessions: MEMORY.md, a short list that is told at the start, and files by topic.

They lie in the person's own folder, not in the project: notes that came with somebody's project are not believed. Writing
is done by the memory tool of Anthropic's SDK (imported at the first note), which keeps to its folder and follows no
link out of it. Read `Memory.text`, then `Memory.add`.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbagent.core.errors import ToolError
from nbagent.core.messages import clean
from nbagent.extend.frontmatter import Fields, parse
from nbagent.extend.places import Places
from nbagent.extend.textfiles import is_inside, read_bytes, read_text, sha256

INDEX = "MEMORY.md"
LINES, BYTES = 200, 25_000
"""How much of MEMORY.md is told at the start: lines, and bytes."""
FILE_LIMIT = 256 * 1024
"""Bytes of one file of notes."""
TOLD = "Notes that you kept in earlier sessions (MEMORY.md). They may be out of date: look before you rely on one."
TOPICS_TOLD = "Notes by topic, to be read with `recall`:"
"""What the model is told above the notes, and above their topics."""
TYPES = ("user", "feedback", "project", "reference")
_TOPICS = 60
_TOPIC = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_POINTER = re.compile(r"gitdir: (.+)")


@dataclass(frozen=True, slots=True)
class Topic:
    """One file of notes: its name, what it is about, its type (user, feedback, project, reference), its last change."""

    name: str
    about: str = ""
    type: str = ""
    modified: str = ""


def memory_folder(places: Places) -> Path:
    """Return where the notes on a project lie; all worktrees of a repository share them."""
    root = _main_worktree(places.root)
    name = re.sub(r"[^A-Za-z0-9]+", "-", root.name).strip("-")[:40] or "folder"
    key = sha256(str(root).encode("utf-8", "surrogateescape"))[:12]
    return places.own / "projects" / f"{name}-{key}" / "memories"


class Memory:
    """The notes in `folder` (whose name must be `memories`: so the SDK wants it). `today` gives the date of a change."""

    def __init__(self, folder: Path, today: Callable[[], dt.date] = dt.date.today) -> None:
        self.folder = folder
        self._today = today

    def text(self, head: str = TOLD, by_topic: str = TOPICS_TOLD) -> str:
        """Return what is told of the notes at the start, "" where there are none; for a person under other headings."""
        index = self._read(INDEX)
        topics = self.topics()
        if not index.strip() and not topics:
            return ""
        parts = [head]
        if index.strip():
            parts.append(_beginning(index))
        if topics:
            lines = [f"- {_described(topic)}" for topic in topics[:_TOPICS]]
            lines += [f"- and {len(topics) - _TOPICS} more"] if len(topics) > _TOPICS else []
            parts.append(f"{by_topic}\n" + "\n".join(lines))
        return "\n\n".join(parts)

    def topics(self) -> list[Topic]:
        """Return the topics there are, by name."""
        found: list[Topic] = []
        try:
            names = sorted(path.stem for path in self.folder.glob("*.md") if path.name != INDEX)
        except OSError:
            return []
        for name in names:
            if not _TOPIC.fullmatch(name):
                continue
            front = parse(self._read(f"{name}.md"))
            fields = Fields(front.fields, ())
            about = fields.text("description") or next((line for line in front.body.split("\n") if line.strip()), "")
            found.append(Topic(name, about.strip("# ").strip()[:200], fields.text("type"), fields.text("modified")))
        return found

    def read(self, topic: str = "") -> str:
        """Return the notes on a topic, or MEMORY.md for ""; raise `ToolError` where there are none."""
        name = self._file(topic)
        text = self._read(name)
        if not text.strip():
            known = ", ".join(one.name for one in self.topics()) or "none yet"
            raise ToolError(f"there are no notes in {name}. Topics: {known}")
        return text

    def after_adding(self, note: str, topic: str = "", replaces: str = "") -> tuple[str, str]:
        """Return the text of the file as it is and as it would be; raise `ToolError` where that can't be done."""
        old = self._read(self._file(topic))
        if replaces and old.count(replaces) != 1:
            raise ToolError(
                f"the old text stands {old.count(replaces)} times in the notes, not once: read them with recall"
            )
        if replaces:
            return old, old.replace(replaces, clean(note))
        line = f"- {' '.join(clean(note).split())}"
        return old, f"{old.rstrip()}\n{line}\n" if old.strip() else f"{line}\n"

    def add(self, note: str, topic: str = "", *, replaces: str = "", about: str = "", kind: str = "project") -> str:
        """Keep `note` in MEMORY.md, or with a `topic` in its file; with `replaces` in place of that text ("" removes it).

        Returns what was done. Raises `ToolError` for a topic that is no name, a text that is not there once, notes that
        would become too long, and a folder that can't be written.
        """
        name = self._file(topic)
        old, new = self.after_adding(note, topic, replaces)
        if not note.strip() and not replaces:
            raise ToolError("the note is empty")
        if len(new.encode()) > FILE_LIMIT:
            raise ToolError(f"{name} would have more than {FILE_LIMIT:,} bytes: shorten it, or begin another topic")
        if not topic:
            self._write(name, old, new)
            return f"kept in {INDEX}{self._too_long(new)}"
        kind = kind if kind in TYPES else "project"
        if not old.strip():
            new = f"---\nname: {topic}\ndescription: {json.dumps(about or topic, ensure_ascii=False)}\ntype: {kind}\n---\n\n{new}"
        self._write(name, old, self._dated(new))
        return f"kept in {name}"

    def forget(self, topic: str) -> str:
        """Remove all notes on a topic; raise `ToolError` where there are none."""
        name = self._file(topic)
        self.read(topic)
        self._sdk("delete", path=f"/memories/{name}")
        return f"removed {name}"

    def _dated(self, text: str) -> str:
        """Return the text of a topic with the day in its field `modified`."""
        day = f"modified: {self._today().isoformat()}"
        head, mark, body = text.partition("\n---\n") if text.startswith("---\n") else ("", "", text)
        if not mark:
            return text
        lines = [line for line in head.split("\n") if not line.startswith("modified:")]
        return "\n".join([*lines, day]) + mark + body

    def _too_long(self, text: str) -> str:
        if len(text.split("\n")) <= LINES and len(text.encode()) <= BYTES:
            return ""
        return f"; it is longer than what is told at the start ({LINES} lines, {BYTES:,} bytes): move some into topics"

    def _file(self, topic: str) -> str:
        name = topic.strip().lower().removesuffix(".md")
        if not name or name == "memory":
            return INDEX
        if not _TOPIC.fullmatch(name):
            raise ToolError(f"{topic!r} is no name for a topic: use small letters, digits, hyphens, e.g. data-sources")
        return f"{name}.md"

    def _read(self, name: str) -> str:
        path = self.folder / name
        if path.is_symlink() or not is_inside(path, self.folder):
            return ""
        read = read_text(path, FILE_LIMIT)
        return read.text if read is not None else ""

    def _write(self, name: str, old: str, new: str) -> None:
        """Put `new` in the place of `old`, whole or not at all."""
        path = f"/memories/{name}"
        if (self.folder / name).is_symlink():
            raise ToolError(f"{name} is a link: nothing was written")
        if not (self.folder / name).exists():
            self._sdk("create", path=path, file_text=new)
        elif old and (self.folder / name).read_bytes().decode("utf-8", "replace") == old:
            self._sdk("str_replace", path=path, old_str=old, new_str=new)
        else:  # empty, or with other line ends than it was read with
            self._sdk("delete", path=path)
            self._sdk("create", path=path, file_text=new)

    def _sdk(self, command: str, **arguments: Any) -> None:
        import anthropic  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]  (whole, before its parts: see clients.warm_up)
        from anthropic.lib.tools import ToolError as SdkError  # noqa: PLC0415  (the SDK takes a second)
        from anthropic.tools.memory import BetaLocalFilesystemMemoryTool  # noqa: PLC0415

        try:
            BetaLocalFilesystemMemoryTool(str(self.folder.parent)).call({"command": command, **arguments})
        except SdkError as error:
            raise ToolError(str(error).replace("/memories/", "").rstrip(".")) from None
        except OSError as error:
            raise ToolError(f"the notes can't be written ({self.folder}: {(error.strerror or '').lower()})") from None


def _beginning(text: str) -> str:
    """Return as much of MEMORY.md as is told, and how to get at the rest."""
    lines = text.strip().split("\n")
    kept = "\n".join(lines[:LINES])
    if len(kept.encode()) > BYTES:
        kept = kept.encode()[:BYTES].decode("utf-8", "ignore").rpartition("\n")[0] or kept[: BYTES // 4]
    rest = len(lines) - len(kept.split("\n"))
    return kept if kept == text.strip() else f"{kept}\n… ({max(rest, 1)} more lines: read them with `recall`)"


def _described(topic: Topic) -> str:
    facts = ", ".join(one for one in (topic.type, topic.modified) if one)
    return f"{topic.name}{f' ({facts})' if facts else ''}{f': {topic.about}' if topic.about else ''}"


def _main_worktree(root: Path) -> Path:
    """Return the repository that `root` is a worktree of, if both say so; else `root`."""
    pointer = root / ".git"
    if not pointer.is_file():
        return root
    found = _POINTER.match(_git_line(pointer))
    gitdir = Path(found[1].strip()) if found else Path()
    if gitdir.parent.name != "worktrees" or gitdir.parent.parent.name != ".git":
        return root
    agrees = Path(_git_line(gitdir / "gitdir")) == pointer
    return gitdir.parent.parent.parent if agrees else root


def _git_line(path: Path) -> str:
    """Return what a small file of git's says, "" if it can't be read; it says where a folder is, and is told to nobody."""
    try:
        return read_bytes(path, 4096).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
