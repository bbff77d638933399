"""The state of a project as text for the model: git branch and changes, data files, the environment.

Git is asked in a way that runs nothing of the repository's: no hooks, no file monitor, no filters, no submodules, and
only for a bounded time. Told whole once, later only what changed. Read `look`, then `ProjectState.text`.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from nbagent.core.messages import clean
from nbagent.extend.places import Places
from nbagent.extend.textfiles import is_inside

SECONDS = 3.0
"""How long git may take for one question."""
_OUTPUT = 256 * 1024
_CHANGES = 40
_FILES = 40
_VISITS = 5_000
_DEPTH = 3
_DATA = frozenset(
    {
        *(".csv", ".tsv", ".parquet", ".feather", ".arrow", ".json", ".jsonl", ".ndjson", ".xlsx", ".xls", ".ods"),
        *(".db", ".sqlite", ".sqlite3", ".duckdb", ".h5", ".hdf5", ".nc", ".zarr", ".npy", ".npz", ".pkl", ".pickle"),
        *(".sav", ".dta", ".sas7bdat", ".rds", ".rdata", ".geojson", ".shp", ".gpkg", ".tif", ".avro", ".orc"),
    }
)
_NOT_DATA = frozenset({"package.json", "package-lock.json", "tsconfig.json", "composer.json"})
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "env", "site-packages", "dist", "build"})
_PACKAGES = (
    *("numpy", "pandas", "polars", "pyarrow", "duckdb", "matplotlib", "seaborn", "plotly", "altair", "scipy"),
    *("scikit-learn", "statsmodels", "xgboost", "lightgbm", "torch", "tensorflow", "jax", "geopandas", "dask"),
    *("ipywidgets", "jupyterlab", "notebook", "sqlalchemy"),
)
_SAFE = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "core.pager=cat"),
    *("-c", "core.untrackedCache=false", "-c", "submodule.recurse=false", "-c", "status.submoduleSummary=false"),
    *("-c", "safe.bareRepository=explicit", "-c", "protocol.allow=never", "-c", "core.sshCommand=false"),
    *("--no-optional-locks", "--no-pager", "--literal-pathspecs"),
)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that may hold data: its path in the project, its size in bytes, and when it changed (nanoseconds)."""

    path: str
    size: int
    changed: int


@dataclass(frozen=True, slots=True)
class ProjectState:
    """What a project looks like now. `branch` "" where there is no repository; `changes` as `M path`, `? path`.

    `files` are data files, the last changed first; `more_files` how many others were not listed; `problem` is a sentence
    about what could not be found out.
    """

    branch: str = ""
    commit: str = ""
    ahead: int = 0
    behind: int = 0
    changes: tuple[str, ...] = ()
    files: tuple[DataFile, ...] = ()
    more_files: int = 0
    python: str = ""
    packages: tuple[str, ...] = ()
    problem: str = ""

    @property
    def text(self) -> str:
        """All of it, for the first message."""
        lines = ["The state of the project when this session began (it is not kept up by itself):"]
        if self.branch:
            lines.append(f"- git: {self._branch()}; {self._changed()}")
        if self.files:
            listed = ", ".join(f"{file.path} ({_size(file.size)})" for file in self.files)
            lines.append(f"- data files: {listed}{f' and {self.more_files} more' if self.more_files else ''}")
        if self.python:
            lines.append(f"- environment: {self.python}{'; ' if self.packages else ''}{', '.join(self.packages)}")
        lines += [f"- {self.problem}"] if self.problem else []
        return "\n".join(lines)

    def news(self, before: ProjectState) -> str:
        """Return what is other than `before`, "" where nothing is."""
        lines: list[str] = []
        if (self.branch, self.commit) != (before.branch, before.commit):
            lines.append(f"- git: now {self._branch()}, before {before._branch()}" if self.branch else "- git: gone")
        if self.changes != before.changes and self.branch:
            lines.append(f"- git: {self._changed()}")
        old, new = ({file.path: file for file in state.files} for state in (before, self))
        for word, paths in (
            ("new", new.keys() - old.keys()),
            ("no longer listed", old.keys() - new.keys()),
            ("changed", {path for path in new.keys() & old.keys() if new[path] != old[path]}),
        ):
            if paths:
                lines.append(f"- data files {word}: {', '.join(sorted(paths))}")
        if gone := [one for one in before.packages if one not in self.packages]:
            lines.append(f"- packages changed: before {', '.join(gone)}")
        if added := [one for one in self.packages if one not in before.packages]:
            lines.append(f"- packages changed: now {', '.join(added)}")
        if self.python != before.python:
            lines.append(f"- Python: now {self.python}, before {before.python}")
        return "\n".join(["The project changed since you were last told:", *lines]) if lines else ""

    def _branch(self) -> str:
        where = f"{self.branch} at {self.commit[:10]}" if self.commit else f"{self.branch or 'none'}, no commit yet"
        far = [f"{self.ahead} ahead"] if self.ahead else []
        far += [f"{self.behind} behind"] if self.behind else []
        return f"{where} ({', '.join(far)} of its upstream)" if far else where

    def _changed(self) -> str:
        if not self.changes:
            return "nothing changed"
        shown = ", ".join(self.changes[:_CHANGES])
        rest = len(self.changes) - _CHANGES
        return f"{len(self.changes)} changed: {shown}{f' and {rest} more' if rest > 0 else ''}"


async def look(places: Places, environment: Mapping[str, str]) -> ProjectState:
    """Find out the state of the project, in a thread; what can't be found out is left out."""
    return await asyncio.to_thread(look_now, places, environment)


def look_now(places: Places, environment: Mapping[str, str], *, seconds: float = SECONDS) -> ProjectState:
    """Find out the state of the project; takes no longer than about `seconds` for each of two questions to git."""
    files, more = _data_files(places.folder)
    python = f"Python {platform.python_version()} on {platform.system()}"
    packages = tuple(f"{name} {version}" for name in _PACKAGES if (version := _version(name)))
    told = _status(places, environment, seconds)
    problem = "" if told is not None else "git did not answer in time, so its state is not known"
    git = _parsed(told or "")
    return ProjectState(
        branch=git.branch,
        commit=git.commit,
        ahead=git.ahead,
        behind=git.behind,
        changes=git.changes,
        files=files,
        more_files=more,
        python=python,
        packages=packages,
        problem=problem,
    )


# ── git ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _status(places: Places, environment: Mapping[str, str], seconds: float) -> str | None:
    """Return what `git status` says, "" where there is no repository or no git; None where it took too long."""
    git = shutil.which("git", path=environment.get("PATH"))
    if git is None or not Path(git).is_absolute() or is_inside(Path(git), places.root) or not _has_git(places.folder):
        return ""
    env = {name: value for name, value in environment.items() if not name.upper().startswith("GIT_")}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    names = _ask([git, *_SAFE, "config", "--includes", "--name-only", "-z", "--list"], places.folder, env, seconds)
    if names is None or len(names) >= _OUTPUT:  # cut: a filter might not have been seen
        return None
    env |= _without_filters(names.split("\0"))
    status = ("status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=all", "--untracked-files=normal")
    told = _ask([git, *_SAFE, *status], places.folder, env, seconds)
    return told.rpartition("\0")[0] if told else told


def _has_git(folder: Path) -> bool:
    return any((place / ".git").exists() for place in (folder, *folder.parents))


def _without_filters(names: Sequence[str]) -> dict[str, str]:
    """Return an environment that empties every filter of the configuration: `git status` runs them on changed files."""
    drivers = {name[: name.rindex(".")] for name in names if name.startswith("filter.") and name.count(".") > 1}
    settings = [
        (f"{driver}.{key}", value)
        for driver in sorted(drivers)
        for key, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    ]
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def _ask(argv: Sequence[str], folder: Path, env: Mapping[str, str], seconds: float) -> str | None:
    """Return the output of a command, cut to what can be told; "" where it fails, None where it took too long."""
    try:
        process = subprocess.Popen(  # noqa: S603  (our own words, and git's full path)
            argv, cwd=folder, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return ""
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, stop)
    timer.start()
    with process:
        assert process.stdout is not None
        output = process.stdout.read(_OUTPUT)
        if len(output) == _OUTPUT:
            process.kill()
        code = process.wait()
        timer.cancel()
    if late.is_set():
        return None
    return clean(output.decode("utf-8", "replace")) if code == 0 or len(output) == _OUTPUT else ""


def _parsed(told: str) -> ProjectState:
    """Return the git part of a state from the output of `git status --porcelain=v2 --branch -z`."""
    branch = commit = ""
    ahead = behind = 0
    changes: list[str] = []
    entries = iter(told.split("\0"))
    for entry in entries:
        if entry.startswith("# branch.oid "):
            commit = "" if entry.endswith("(initial)") else entry.split(" ", 2)[2]
        elif entry.startswith("# branch.head "):
            branch = entry.split(" ", 2)[2]
        elif entry.startswith("# branch.ab "):
            numbers = [int(word) for word in entry.split()[2:] if word.lstrip("+-").isdigit()]
            ahead, behind = (abs(number) for number in [*numbers, 0, 0][:2])
        elif entry[:2] in {"1 ", "2 ", "u "}:
            parts = entry.split(" ", {"1": 8, "2": 9, "u": 10}[entry[0]])
            changes.append(f"{parts[1].replace('.', '')} {parts[-1]}")
            if entry[0] == "2":
                next(entries, None)  # the name that it had before
        elif entry.startswith("? "):
            changes.append(entry)
    return ProjectState(branch=branch, commit=commit, ahead=ahead, behind=behind, changes=tuple(changes))


# ── files and packages ───────────────────────────────────────────────────────────────────────────────────────────────


def _data_files(folder: Path) -> tuple[tuple[DataFile, ...], int]:
    """Return the data files near `folder`, the last changed first, and how many more there are."""
    found: list[DataFile] = []
    visits = 0
    for place, folders, names in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if name[0] != "." and name not in _SKIPPED and depth < _DEPTH)
        visits += len(names) + len(folders)
        if visits > _VISITS:
            break
        if ".gitignore" in names and _keeps_itself_out(Path(place)):
            folders.clear()
            continue
        for name in names:
            if Path(name).suffix.lower() in _DATA and name not in _NOT_DATA and name[0] != ".":
                path = Path(place) / name
                try:
                    status = path.stat()
                except OSError:
                    continue
                shown = clean(path.relative_to(folder).as_posix())
                found.append(DataFile(shown, status.st_size, status.st_mtime_ns))
    found.sort(key=lambda file: (-file.changed, file.path))
    return tuple(found[:_FILES]), max(len(found) - _FILES, 0)


def _keeps_itself_out(folder: Path) -> bool:
    """Whether all of a folder is kept out of git by its own file, as caches and the folders of maps are."""
    try:
        file = folder / ".gitignore"
        return file.stat().st_size <= 8 and file.read_bytes().strip() == b"*"
    except OSError:
        return False


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _size(number: int) -> str:
    amount = float(number)
    for unit in ("bytes", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return ""
