"""Runs git for us: no shell, a clean environment, no question at a terminal, a bounded time, nothing of the project's.

A repository may bring programs along: hooks, filters, merge drivers, a file monitor, helpers of a remote. They are code
that nobody trusted, so hooks, monitor, editors, pagers, signing and the network are off in every call. Filters and merge
drivers that the person set up (`~/.gitconfig`, the system's file: Git LFS, say) stay, for they run in each git of
theirs; those of the repository's own settings do not, and `own_filters` names them, so that no file that needs one is
committed or written without it. Hooks that settings name (git 2.54) get another command. No setting is ever changed. It must not know what git is used for. Read `Git.run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbagent.core.errors import ToolError
from nbagent.core.messages import clean
from nbagent.extend.textfiles import is_inside

SECONDS = 60.0
"""How long one call of git may take."""
_OLDEST = (2, 31)
_GRACE = 2.0  # seconds in which git takes its lock files away when it is told to end
_KILL: signal.Signals = getattr(signal, "SIGKILL", signal.SIGTERM)
_SAFE = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
    *("-c", "core.pager=cat", "-c", "submodule.recurse=false", "-c", "safe.bareRepository=explicit"),
    *("-c", "commit.gpgSign=false", "-c", "merge.verifySignatures=false", "-c", "log.showSignature=false"),
    *("-c", "rerere.enabled=false", "-c", "merge.autoStash=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    *("-c", "core.filesRefLockTimeout=5000", "-c", "core.packedRefsTimeout=5000", "-c", "advice.detachedHead=false"),
    *("-c", "user.useConfigOnly=true"),  # no name made up of the machine's: `changes.identity` gives one
    *("-c", "diff.external=", "-c", "core.quotePath=false", "--no-pager", "--literal-pathspecs"),
)
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":", "GIT_SEQUENCE_EDITOR": ":", "GIT_PAGER": "cat", "GIT_ASKPASS": "", "SSH_ASKPASS": "",
    "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_MERGE_AUTOEDIT": "no",
    "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C", "LANGUAGE": "",
}  # fmt: skip
_SILENT = ("-c", "core.sshCommand=false", "-c", "credential.helper=")
_SERVERS = {"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}  # and no `ext`, which is any program
_WHO = tuple(f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL"))
_PLUMBING = frozenset(
    # commands that write or read no file of a checkout and no ref, so that no filter, merge driver or hook counts for them
    {
        *("cat-file", "commit-tree", "config", "diff-tree", "for-each-ref", "hash-object", "ls-files", "ls-tree"),
        *("merge-base", "merge-file", "mktree", "rev-list", "rev-parse", "show-ref", "symbolic-ref"),
        *("var", "version", "write-tree", "check-attr", "check-ref-format"),
    }
)
_TALK = re.compile(
    r"core\.(sshcommand|gitproxy|askpass|alternaterefscommand)|credential\.(.+\.)?helper|push\.gpgsign|"
    r"remote\..+\.(uploadpack|receivepack|vcs)",
    re.DOTALL,
)
_FILTER, _DRIVER = re.compile(r"filter\.(.+)\.(\w+)", re.DOTALL), re.compile(r"merge\.(.+)\.driver", re.DOTALL)
_HOOK = re.compile(r"hook\.(.+)\.(event|command)", re.DOTALL)


class GitError(ToolError):
    """Git is not there, refused or failed; the text is one sentence that says what to do."""


class NotARepository(GitError):
    """The folder does not lie in the checkout of a git repository."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a call of git ended: its exit code, its output as bytes, and what it said about it."""

    code: int
    out: bytes
    said: str

    @property
    def text(self) -> str:
        """The output as text without the spaces around it."""
        return os.fsdecode(self.out).strip()

    @property
    def fields(self) -> list[str]:
        """The output of a command with `-z`, split."""
        return [os.fsdecode(part) for part in self.out.split(b"\0") if part]


@dataclass(frozen=True, slots=True)
class Programs:
    """What the repository's own settings would run: the settings that keep it out, and the filters that are kept out.

    `servers` are its settings that name a program which talks to servers.
    """

    settings: tuple[tuple[str, str], ...] = ()
    filters: frozenset[str] = frozenset()
    servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for each call: words before the command, and the environment."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    talks: bool = False


class Git:
    """Git in one folder. `environment` is the caller's; everything of it that is named GIT_… is left out, but for who writes."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str] | None = None, *, rules: Rules | None = None
    ) -> None:
        self.folder = folder
        self._environment = dict(os.environ if environment is None else environment)
        self._rules = rules or Rules((*_SILENT, *_SAFE), _ENVIRONMENT)

    def at(self, folder: Path) -> Git:
        """Return the same git in another folder."""
        return Git(folder, self._environment, rules=self._rules)

    def talking(self) -> Git:
        """Return the same git, which may talk to servers in the ways that the person has set up: only where they named one."""
        return Git(self.folder, self._environment, rules=Rules(_SAFE, {**_ENVIRONMENT, **_SERVERS}, talks=True))

    async def run(
        self,
        *words: str,
        data: bytes | str = b"",
        ok: Sequence[int] = (0,),
        env: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
    ) -> Ran:
        """Run `git WORDS` with `data` as its input, and return how it ended.

        `ok` are the exit codes that are no failure; `env` is added to the environment (GIT_INDEX_FILE, say). Raises
        GitError for any other code, where git is not there, and where it takes longer than `seconds`.
        """
        programs = Programs() if words[0] in _PLUMBING else await self.programs(env or {})
        if programs.servers and self._rules.talks:
            raise GitError(
                f"The settings of the repository at {_shown(self.folder)} name a program for talking to servers "
                f"({', '.join(programs.servers)}), which is not run: set it in your own settings (git config --global)."
            )
        more = {**_settings(programs.settings), **(env or {})}
        ran = await self._call(words, data.encode() if isinstance(data, str) else data, more, seconds)
        if ran.code not in ok:
            raise _failure(words, ran, self.folder)
        return ran

    async def text(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """Return what `git WORDS` prints, without the spaces around it; raises GitError."""
        return (await self.run(*words, env=env)).text

    async def find(self, *words: str) -> str:
        """Return what `git WORDS` prints, "" where it fails with the exit code 1 or 128: what was asked for is not there."""
        ran = await self.run(*words, ok=(0, 1, 128))
        return ran.text if ran.code == 0 else ""

    async def top(self) -> Path:
        """Return the top folder of the checkout that the folder lies in; raises `NotARepository`, and GitError for an old git."""
        ran = await self.run("version")
        found = re.search(r"(\d+)\.(\d+)", ran.text)
        if found is None or (int(found[1]), int(found[2])) < _OLDEST:  # older ones can't be told what not to run
            raise GitError(
                f"{clean(ran.text)} is too old for teams: 2.31 or newer is needed, or go on with --no-worktrees."
            )
        ran = await self.run("rev-parse", "--show-toplevel", ok=(0, 128))
        top = Path(ran.text) if ran.code == 0 else None
        if top is not None and is_inside(self.folder, top) and (top / ".git").exists():
            return top
        if "dubious ownership" in ran.said:
            raise NotARepository(
                f"git does not read {_shown(self.folder)}, because the folder belongs to another user: allow it with "
                f'git config --global --add safe.directory "{_shown(self.folder)}", or go on with --no-worktrees.'
            )
        raise NotARepository(
            f"{_shown(self.folder)} is not the checkout of a git repository, so teammates can't get copies of their own: make "
            f"one (git init, git add, git commit), or let them all work in this folder with --no-worktrees."
        )

    async def programs(self, env: Mapping[str, str] | None = None) -> Programs:
        """Find out which programs the repository's own settings would run on files, and how to keep them out.

        `env` is the environment of the call that they are wanted for: it may name the repository.
        """
        named = {name: value for name, value in (env or {}).items() if name == "GIT_DIR"}
        ran = await self._call(("config", "--includes", "--show-scope", "-z", "--list"), b"", named, SECONDS)
        if ran.code != 0:
            raise _failure(("config",), ran, self.folder)
        return _programs(ran.out)

    async def _call(self, words: Sequence[str], data: bytes, env: Mapping[str, str], seconds: float) -> Ran:
        path = self._environment.get("PATH")
        git = shutil.which("git", path=path)
        if git is None or not Path(git).is_absolute() or is_inside(Path(git), self.folder):
            raise GitError("git is not installed here (no git on PATH): install it, or go on with --no-worktrees.")
        clear = {k: v for k, v in self._environment.items() if not k.upper().startswith("GIT_") or k in _WHO}
        try:
            process = subprocess.Popen(  # noqa: S603, ASYNC220  (words of ours and git's full path; starting takes no time)
                [git, *self._rules.words, *words],
                cwd=self.folder,
                env={**clear, **self._rules.environment, **env},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(
                f"git can't be started in {_shown(self.folder)}: {(error.strerror or str(error)).lower()}."
            ) from error
        ending = asyncio.ensure_future(asyncio.to_thread(_finish, process, data, seconds))
        try:
            out, said = await asyncio.shield(ending)
        except subprocess.TimeoutExpired:
            raise GitError(f"git {words[0]} took longer than {seconds:g} seconds and was stopped.") from None
        except asyncio.CancelledError:
            _signal(process, signal.SIGTERM)
            await asyncio.wait([ending], timeout=_GRACE)  # who is called next must find no lock of its
            _signal(process, _KILL)
            raise
        return Ran(process.returncode, out, clean(said.decode("utf-8", "replace")))


def _finish(process: subprocess.Popen[bytes], data: bytes, seconds: float) -> tuple[bytes, bytes]:
    """Give a process its input and take its output; end it, gently first, where it takes too long."""
    with process:
        try:
            return process.communicate(data, seconds)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=_GRACE)
            _signal(process, _KILL)
            raise


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to git and to what it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:
            process.terminate()


def _programs(listed: bytes) -> Programs:
    """Return the programs in what `git config --show-scope -z --list` said: scope, NUL, key, newline, value, NUL."""
    parts = listed.decode("utf-8", "surrogateescape").split("\0")
    theirs: dict[str, str] = {}
    ours: set[str] = set()
    servers: list[str] = []
    settings: dict[str, str] = {}
    for scope, entry in zip(parts[::2], parts[1::2], strict=False):
        key, _, value = entry.partition("\n")
        if _FILTER.fullmatch(key) or _DRIVER.fullmatch(key):
            if scope in {"local", "worktree"}:
                ours.add(key)
            elif scope != "command":
                theirs[key] = value
        elif (hook := _HOOK.fullmatch(key)) and scope != "command":  # whosever it is: hooks are off
            settings |= {f"hook.{hook[1]}.command": ":", f"hook.{hook[1]}.enabled": "false"}
        elif scope in {"local", "worktree"} and key.startswith("branch.") and key.endswith(".mergeoptions"):
            settings[key] = ""
        elif scope in {"local", "worktree"} and key in {"pull.twohead", "pull.octopus"}:
            settings[key] = "recursive"  # a strategy of another name is a program
        if scope in {"local", "worktree"} and _TALK.fullmatch(key):
            servers.append(key)
    settings |= {key: theirs.get(key, "exit 1") for key in ours if _DRIVER.fullmatch(key)}
    filters: set[str] = set()
    for key, name, what in ((key, *found.groups()) for key in ours if (found := _FILTER.fullmatch(key))):
        settings[key] = theirs.get(key, "false" if what == "required" else "")
        if key not in theirs and what != "required":  # an empty one is none, also where the person's has others
            filters.add(name)
    return Programs(tuple(sorted(settings.items())), frozenset(filters), tuple(servers))


def _settings(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return settings as an environment, for a key with `=` in it can't be told by `-c`."""
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


_SENTENCES = (
    # what git says → what a person does
    ("not a git repository", NotARepository, "{folder} is not in a git repository: make one (git init, git add, git commit)."),
    ("index.lock", GitError, "Another git is at work in {folder}: wait for it, or delete its index.lock if it crashed."),
    ("No space left", GitError, "git could not write in {folder}: the disk is full."),
    ("Read-only file system", GitError, "git can't write in {folder}: the disk is read-only."),
    ("Permission denied", GitError, "git was denied a file in {folder}: see who owns what is there (permission denied)."),
    ("promisor remote", GitError, "This clone does not hold all its files (a partial clone): get them with git first (git checkout, git fetch)."),
)  # fmt: skip


def _failure(words: Sequence[str], ran: Ran, folder: Path) -> GitError:
    for mark, kind, sentence in _SENTENCES:
        if mark in ran.said:
            return kind(sentence.format(folder=_shown(folder)))
    lines = [line.strip() for line in ran.said.splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "")
    told = told.removeprefix("fatal: ").removeprefix("error: ").rstrip(".")
    return GitError(f"git {words[0]} failed: {told or f'exit code {ran.code}'}.")


def _shown(folder: Path) -> str:
    return clean(str(folder))
