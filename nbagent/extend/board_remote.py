"""The text of a board as a ref of a remote that several clones share: for teammates on machines without a common disk.

The compare-and-swap is the server's (`push --force-with-lease=REF:OLD`); objects are kept in the same repository of ours as
without a remote, so that the clone gets neither refs nor objects. This is the one place from which git talks to a server,
with the person's own ways to it (ssh, credentials): it is only used where they named a remote. One whose address lies in the
project is refused: it may have come with it, and would run its hooks here. Read `RemoteStore.swap`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from nbagent.extend.board_ref import RefStore
from nbagent.extend.board_store import Seen, StoreError, Unsure
from nbagent.extend.git import Git, GitError, Ran

_ANY = range(-64, 256)  # exit codes, all of which are looked at here
_LOST = ("stale info", "incorrect old value", "failed to update ref", "cannot lock ref", "reference already exists",
         "fetch first", "remote ref updated since")  # fmt: skip
"""What git says where another one was first."""


class RemoteStore:
    """Keeps the text at refs/nbagent/teams/`team` of `remote` (a name or an address) of the clone `root`.

    `local` is the store of the same team without a remote: its repository holds the objects.
    """

    longest_pause = 10.0

    def __init__(self, root: Path, shared: Path, team: str, remote: str, local: RefStore) -> None:
        self._git = Git(root).talking()
        self._remote, self._local, self._address = remote, local, ""
        self._ref = f"refs/nbagent/teams/{team}"
        self._theirs, self._ours = str(shared / "objects"), str(local.repository / "objects")

    async def read(self) -> Seen:
        """Return the text as it is now."""
        if not (mark := await self.mark()):
            return Seen()
        if (found := await self._local.text_of(mark)) is not None:
            return Seen(found, mark)
        await self._local.make()
        words = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--refmap=")
        env = {"GIT_OBJECT_DIRECTORY": self._ours, "GIT_ALTERNATE_OBJECT_DIRECTORIES": self._theirs}
        ran = await self._call("fetch", *words, "--", await self._where(), self._ref, env=env)
        if (found := await self._local.text_of(mark)) is not None:
            return Seen(found, mark)
        if ran.code == 0:  # it was replaced between the two questions
            return await self.read()
        raise self._away(ran)

    async def mark(self) -> str:
        """Ask the remote for the mark of the text as it is now."""
        ran = await self._call("ls-remote", "--", await self._where(), self._ref)
        if ran.code != 0:
            raise self._away(ran)
        return ran.text.split("\t")[0]

    async def swap(self, old: Seen, text: str) -> Seen | None:
        """Put `text` in the place of `old`; None where another text is there by now."""
        new = await self._local.put(text)
        lease = f"--force-with-lease={self._ref}:{old.mark}"
        words = ("--quiet", "--no-verify", "--porcelain", "--no-follow-tags", "--recurse-submodules=no", lease)
        env = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": self._ours}
        ran = await self._call("push", *words, "--", await self._where(), f"{new}:{self._ref}", env=env)
        if ran.code == 0:
            return Seen(text, new)
        said = f"{ran.text}\n{ran.said}"
        if any(words in said for words in _LOST):
            return None
        if "[remote rejected]" in said:
            raise StoreError(f"the remote {self._remote} does not take the team's board: {said.strip()}")
        raise Unsure(str(self._away(ran)))

    async def _where(self) -> str:
        """Return the one address to which all is sent; raises `StoreError` for one that the project may have brought along."""
        if not self._address:
            listed = await self._git.run(
                "config", "--includes", "--show-scope", "-z", "--get-regexp", r"^url\.", ok=_ANY
            )
            if not {"local", "worktree"}.isdisjoint(listed.fields[::2]):
                raise StoreError(
                    "the settings of this repository replace addresses (url.*), so it can't be told where the team's board "
                    f"would go: set that in your own settings (git config --global), or give the whole address of {self._remote}"
                )
            push = await self._git.run("remote", "get-url", "--push", "--", self._remote, ok=_ANY)
            found = push.text or (await self._call("ls-remote", "--get-url", "--", self._remote)).text or self._remote
            top = await self._git.find("rev-parse", "--show-toplevel")
            if top and is_in_project(found, Path(top)):
                raise StoreError(
                    f"the remote {self._remote} of the team's board lies in the project itself ({found}), so it may have come "
                    "with it, and its hooks would run: take a repository elsewhere"
                )
            self._address = found
        return self._address

    async def _call(self, *words: str, env: dict[str, str] | None = None) -> Ran:
        try:
            return await self._git.run(*words, ok=_ANY, env=env)
        except GitError as error:
            raise Unsure(f"the team's board can't be reached in {self._remote}: {error}") from error

    def _away(self, ran: Ran) -> StoreError:
        lines = [line for line in ran.said.splitlines() if line.strip()]
        return StoreError(
            f"the team's board can't be reached in {self._remote}: {lines[0] if lines else 'git was stopped'}"
        )


def is_in_project(address: str, top: Path) -> bool:
    """Whether the address of a remote is a place on this disk in or below `top`."""
    path = unquote(re.sub(r"^file://(localhost(?=/))?", "", address)) if address.startswith("file://") else address
    if "://" in path or re.match(r"[^/]*:", path):  # a server's, or `host:path`
        return False
    real, project = os.path.realpath(top / path), os.path.realpath(top)
    return os.path.commonpath([real, project]) == project
