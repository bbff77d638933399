"""Where a person's and a project's own files lie: `.claude/` as Claude Code knows it, and `.nbagent/`, our own place.

Looks at folders only, never into files. Read `Places.of`, then `Places.project`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from nbagent.core.messages import clean
from nbagent.core.shown import visible_plain

OURS, CLAUDE = ".nbagent", ".claude"


@dataclass(frozen=True, slots=True)
class Places:
    """The folders that count for one working folder; all paths absolute and without links.

    `root` is the top of the repository that `folder` lies in (or `folder` itself); `own` our configuration folder;
    `claude` Claude Code's; `managed` what the administrator of this machine set up.
    """

    folder: Path
    root: Path
    home: Path
    own: Path
    claude: Path
    managed: Path

    @classmethod
    def of(
        cls, folder: Path, environment: Mapping[str, str], *, home: Path | None = None, own: Path | None = None
    ) -> Places:
        """Find the places for the working folder `folder`; CLAUDE_CONFIG_DIR in `environment` moves `~/.claude`."""
        here, top = _real(folder), _real(home or Path.home())
        moved = environment.get("CLAUDE_CONFIG_DIR", "").strip()
        claude = Path(moved) if moved and Path(moved).is_absolute() else top / CLAUDE
        own = own or Path(platformdirs.user_config_dir("nbagent"))
        return cls(here, _repository(here, top), top, _real(own), _real(claude), _managed(environment))

    def upward(self) -> tuple[Path, ...]:
        """The folders of the project that hold the working folder, the nearest first, up to the top."""
        found = [self.folder]
        while found[-1] != self.root:
            found.append(found[-1].parent)
        return tuple(found)

    def project(self, name: str, base: Path | None = None) -> tuple[Path, ...]:
        """Return the places of a project's `name` ("skills", "settings.json"), the one that counts most first.

        `base`: only those of this one folder. The person's own folders are left out where the project lies around them.
        """
        mine = {self.own, self.claude}
        holders = [place / kind for place in ((base,) if base else self.upward()) for kind in (OURS, CLAUDE)]
        return tuple(holder / name for holder in holders if _real(holder) not in mine)

    def administrators(self, name: str) -> Path:
        """Return the place of the `name` that the administrator of this machine set up; it counts before all others."""
        return self.managed / CLAUDE / name

    def user(self, name: str) -> tuple[Path, ...]:
        """Return the places of the person's own `name`, the one that counts most first."""
        return (self.own / name, self.claude / name)

    def shown(self, path: Path) -> str:
        """Return `path` as a person would write it, on one line: from the project's top, from `~`, or whole."""
        for base, before in ((self.root, ""), (self.home, "~/")):
            if path == base or base in path.parents:
                return _visible(before + path.relative_to(base).as_posix())
        return _visible(str(path))


def _visible(text: str) -> str:
    return visible_plain(clean(text), spaces=False).replace("\n", "⏎")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _repository(folder: Path, home: Path) -> Path:
    """Return the top of the repository around `folder`; a home folder that is one itself holds more than a project."""
    for place in (folder, *folder.parents):
        if place == home or place in home.parents:
            return folder
        if (place / ".git").exists():
            return place
    return folder


def _managed(environment: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return Path("/Library/Application Support/ClaudeCode")
    if sys.platform == "win32":
        return Path(environment.get("PROGRAMFILES", r"C:\Program Files")) / "ClaudeCode"
    return Path("/etc/claude-code")
