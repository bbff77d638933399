"""A small real repository with failing tests, made anew for each test: names, numbers and which functions fail vary."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CLEAN = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True)
class Function:
    """A function of one line, its right body and its wrong one, and a call whose value tells them apart."""

    name: str
    right: str
    wrong: str
    call: str

    def wanted(self) -> object:
        names: dict[str, object] = {}
        exec(f"def {self.name}(a, b): return {self.right}", names)
        return eval(f"{self.name}{self.call}", names)

    @property
    def line(self) -> str:
        return f"def {self.name}(a, b): return {self.wrong}"

    @property
    def test(self) -> str:
        return f"def test_{self.name}():\n    assert {self.name}{self.call} == {self.wanted()!r}\n"


def git(folder: Path, *words: str) -> str:
    """Run git as a person would, and return what it says."""
    env = {**os.environ, **CLEAN, "HOME": str(folder.parent), "GIT_CONFIG_GLOBAL": os.devnull}
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *words], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def project(folder: Path, modules: dict[str, Sequence[Function]]) -> Path:
    """Make a repository of these modules, one test file each, and commit it."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    for module, functions in modules.items():
        (folder / f"{module}.py").write_text("\n".join(one.line for one in functions) + "\n")
        names = ", ".join(one.name for one in functions)
        tests = "\n\n".join(one.test for one in functions)
        (folder / f"test_{module}.py").write_text(f"from {module} import {names}\n\n\n{tests}")
    (folder / ".gitignore").write_text(".nbagent/\n__pycache__/\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "A project with tests that fail")
    return folder
