"""A project and a person's home in a temporary folder, made of texts."""

from __future__ import annotations

from pathlib import Path

from nbagent.extend.places import Places
from nbagent.extend.shelf import Shelf
from nbagent.extend.trust import Trust


class Rig:
    """`project` is a repository with the working folder `project/work`; `home` is the person's."""

    def __init__(self, tmp: Path, folder: str = "work") -> None:
        self.home, self.project = tmp / "home", tmp / "project"
        self.folder = self.project / folder
        for place in (self.home, self.folder, self.project / ".git"):
            place.mkdir(parents=True, exist_ok=True)
        self.own = self.home / "config"
        self.none = tmp / "none"

    @property
    def places(self) -> Places:
        return Places.of(self.folder, {}, home=self.home, own=self.own)

    def trust(self) -> Trust:
        return Trust(self.places.root, self.own / "trust")

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file; `~/…` is in the home folder, else in the project."""
        place = self.home / path[2:] if path.startswith("~/") else self.project / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        return place

    def skill(self, path: str, body: str = "Do it.", **head: str) -> Path:
        """Write a skill into `path` (`~/.claude/skills/x`, `.claude/skills/x`)."""
        lines = "".join(
            f"{name if name == 'when_to_use' else name.replace('_', '-')}: {value}\n" for name, value in head.items()
        )
        return self.write(f"{path}/SKILL.md", f"---\n{lines}---\n{body}\n" if lines else body)

    def shelf(self, trust: Trust | None = None, *, shipped: Path | None = None, **more) -> Shelf:
        shelf = Shelf(self.places, trust or self.trust(), shipped=shipped or self.none, **more)
        shelf.load()
        return shelf

    def trusted(self) -> Trust:
        """Trust in all that the shelf has."""
        trust = self.trust()
        trust.answer(self.shelf(trust).powers, yes=True)
        return trust
