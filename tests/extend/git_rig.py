"""A real repository in a temporary folder, with a home of its own, and a program that leaves a mark where it runs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from nbagent.extend.git import Git
from nbagent.extend.worktrees import Worktrees


class Repo:
    """`top` is the person's checkout with one commit: `a.txt`, `b.txt` of ten lines, `work/n.ipynb` of three cells."""

    def __init__(self, tmp: Path, name: str = "project") -> None:
        self.tmp, self.top, self.home = tmp, tmp / name, tmp / "home"
        self.top.mkdir(parents=True)
        self.home.mkdir(exist_ok=True)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        self.config = self.home / ".gitconfig"
        self.config.write_text("[user]\n\tname = Pat\n\temail = pat@example.org\n")
        self.git("init", "-q", "-b", "main")
        self.write("a.txt", "a\n")
        self.write("b.txt", lines())
        self.write("work/n.ipynb", notebook(a="x = 1", b="y = 2", c="z = 3"))
        self.commit()

    def git(self, *words: str, at: Path | None = None) -> str:
        """Run git as the person does, hooks and all; return what it prints."""
        done = subprocess.run(
            ["git", *words], cwd=at or self.top, env=self.env, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def write(self, path: str, text: str | bytes, at: Path | None = None) -> Path:
        place = (at or self.top) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        return place

    def commit(self, message: str = "one") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def read(self, path: str, at: Path | None = None) -> str:
        return ((at or self.top) / path).read_text("utf-8")

    def team(self, folder: str = ".", name: str = "fix") -> Worktrees:
        return Worktrees(self.top / folder, name, self.env)

    def plumbing(self) -> Git:
        return Git(self.top, self.env)

    def looks(self) -> tuple[str, ...]:
        """All of the person's that a team must leave as it is: status, index, branch, stash, settings, files."""
        asked = (
            ("status", "--short"),
            ("ls-files", "-s"),
            ("rev-parse", "HEAD"),
            ("stash", "list"),
            ("branch", "--list", "main"),
        )
        files = sorted(p for p in self.top.rglob("*") if p.is_file() and not {".git", ".nbagent"} & set(p.parts))
        texts = [f"{file} {file.read_bytes()!r} {file.stat().st_mtime_ns}" for file in files]
        return (*(self.git(*words) for words in asked), self.read(".git/config"), *texts)  # fmt: skip

    def evil(self) -> tuple[Path, Path]:
        """Return a program of the project's, and the file that is there once it ran."""
        ran = self.tmp / "ran"
        program = self.tmp / "evil.sh"
        program.write_text(f'#!/bin/sh\necho "$0 $@" >> {ran}\ncat\n')
        program.chmod(0o755)
        return program, ran


def lines(**changed: str) -> str:
    """Ten lines, some of them changed: l3="three"."""
    return "".join(f"{changed.get(f'l{n}', n)}\n" for n in range(1, 11))


def notebook(**cells: str) -> str:
    """A notebook file of code cells: id="source"."""
    made = [
        {"cell_type": "code", "execution_count": None, "id": name, "metadata": {}, "outputs": [], "source": source}
        for name, source in cells.items()
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def sources(text: str) -> dict[str, str]:
    """The cells of a notebook file: id → source."""
    return {cell["id"]: cell["source"] for cell in json.loads(text)["cells"]}
