"""Where slash commands lie: `commands/*.md` of the person and of the project; a folder in there is part of the name.

What is in such a file is read as a skill is (`skills.py`). Read `command_files`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nbagent.extend.places import Places
from nbagent.extend.skills import Source
from nbagent.extend.textfiles import files_below, is_inside


def command_files(places: Places, problems: list[str]) -> Iterator[tuple[str, Source, Path]]:
    """Yield name, source and file of each command, those that count more first.

    `commands/fix.md` is `fix`; `commands/data/check.md` is `data:check`. A file that leads out of the project is left out
    and named in `problems`.
    """
    for folder in (places.administrators("commands"), *places.user("commands")):
        for path in files_below(folder, ".md"):
            yield _name(path, folder), "user", path
    for folder in places.project("commands"):
        for path in files_below(folder, ".md"):
            if is_inside(path, places.root):
                yield _name(path, folder), "project", path
            else:
                problems.append(f"{places.shown(path)} is not used: it leads out of the project.")


def _name(path: Path, folder: Path) -> str:
    return ":".join(path.relative_to(folder).with_suffix("").parts)
