"""What a person is told where a team can't begin, or its work can't be taken: a sentence of theirs, and nothing is left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.teams.project import Function, git, project

TYPED = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "nbagent")
for line in sys.argv[1:]:
    print(">>", line, flush=True)
    shell.run_cell(line)
"""


def typed(folder: Path, *lines: str) -> str:
    """Return what a person reads who types these lines in a new shell."""
    done = subprocess.run(
        [sys.executable, "-c", TYPED, *lines], cwd=folder, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


@pytest.mark.slow
def test_a_team_that_can_not_begin_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    said = typed(tmp_path / "bare", '%agent team "Make the tests pass"')
    assert "nbagent: " in said
    assert "is not the checkout of a git repository" in said
    assert "--no-worktrees" in said
    assert "itself failed" not in said

    repo = project(tmp_path / "project", {"prices": [Function("net", "a + b", "a - b", "(1, 2)")]})
    before = git(repo, "for-each-ref")
    said = typed(repo, '%agent team "Make the tests pass" -m scripted:nowhere:lead', "%agent team acept", "%agent team")
    assert "The script 'nowhere:lead' cannot be imported" in said
    assert "there is no 'acept'" in said
    assert "There was no team here yet" in said
    assert (git(repo, "for-each-ref"), git(repo, "worktree", "list").count("\n")) == (before, 0)
