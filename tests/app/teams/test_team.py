"""A team of three with real processes, real git and a real project: the models are scripts that compute what they do.

The project's names, numbers and failing functions are drawn anew each time, so nothing in the scripts can know them.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.teams.project import Function, git, project

WORDS = ("net", "gross", "share", "rate", "total", "excess", "yield_of", "scale", "shift", "part")
BODIES = (("a + b", "a - b"), ("a - b", "a + b"), ("a * b", "a + b"), ("a * b", "a - b"), ("a - b", "a * b"))


def drawn(seed: int) -> dict[str, list[Function]]:
    """Draw three wrong functions: one in a module of its own, two on neighbouring lines of another, and right ones."""
    chance = random.Random(seed)
    names = chance.sample(WORDS, 5)

    def function(name: str, *, wrong: bool) -> Function:
        right, other = chance.choice(BODIES)
        given = (chance.randint(5, 60), chance.randint(2, 4))
        return Function(name, right, other if wrong else right, str(given))

    modules = chance.sample(("prices", "stock", "billing", "orders"), 2)
    alone = [function(names[0], wrong=True), function(names[3], wrong=False)]
    beside = [function(names[4], wrong=False), function(names[1], wrong=True), function(names[2], wrong=True)]
    return {modules[0]: alone, modules[1]: beside}


def run(folder: Path, home: Path, script: str, *words: str, **environment: str) -> str:
    env = {
        **os.environ,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "NBAGENT_MODE": "bypass",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        **environment,
    }
    env = {name: value for name, value in env.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        [sys.executable, "-m", script, *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(320)  # a bound for a hang, as the process has one: a quarter of a minute where nothing else runs
@pytest.mark.parametrize(("seed", "loose"), [(5, ["notes.txt"]), (11, [])])
def test_a_team_of_three_repairs_what_fails_merges_two_and_reports_the_conflict(
    seed: int, loose: list[str], tmp_path: Path
) -> None:
    modules = drawn(seed)
    wrong = [one.name for functions in modules.values() for one in functions if one.right != one.wrong]
    repo = project(tmp_path / "project", modules)
    for name in loose:
        (repo / name).write_text("not committed\n")
    before = _files(repo)
    head = git(repo, "rev-parse", "HEAD")

    printed = run(repo, tmp_path / "home", "tests.app.teams.team_cells", json.dumps({"workers": 3}),
                  PYTHONPATH=str(Path(__file__).parents[3]))  # fmt: skip
    said = json.loads(next(line for line in printed.splitlines() if line.startswith("ANSWER "))[7:])

    tasks = {title.split("test_")[1].split(" ")[0]: found for title, found in said["tasks"].items()}
    assert sorted(tasks) == sorted(wrong)
    assert {state for state, *_ in tasks.values()} == {"completed"}
    assert len({owner for _, owner, *_ in tasks.values()}) == 3, "three teammates, a task each"
    first_end = min(ended for *_, ended in tasks.values())
    assert all(began < first_end for _, _, began, _ in tasks.values()), "they worked side by side"
    assert len(said["merged"]) == 2
    ((loser, conflict),) = said["conflicts"].items()
    lost = next(name for name, (_, owner, *_) in tasks.items() if owner == loser)
    assert f"def {lost}(a, b): return" in conflict
    assert "merged already" in conflict, "both sides are told"
    assert loser in said["text"]
    assert (said["reason"], said["accepted"]) == ("end_turn", False)
    assert "has not taken" in said["told"][0] or "not taken" in said["told"][0]

    assert _files(repo) == before, "nothing of the person's changed"
    status = git(repo, "status", "--short")
    assert (git(repo, "rev-parse", "HEAD"), status) == (head, "\n".join(f"?? {name}" for name in loose))
    assert f"%agent team accept {said['team']}" in printed

    _accepted(repo, tmp_path / "home", said["team"])
    failing = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=repo,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"test_{lost}" in failing.stdout
    assert "1 failed, 4 passed" in failing.stdout
    assert {name: (repo / name).read_text() for name in loose} == dict.fromkeys(loose, "not committed\n")


def _files(repo: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in repo.glob("*.*") if file.is_file()}


def _accepted(repo: Path, home: Path, team: str) -> None:
    code = (
        "import sys; from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance();"
        "s.run_line_magic('load_ext', 'nbagent');"
        f"s.run_cell('%agent team accept {team}').raise_error(); s.run_cell('%agent team').raise_error();"
        "s.run_cell('%agent team log').raise_error()"
    )
    env = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}
    done = subprocess.run([sys.executable, "-c", code], cwd=repo, env=env, capture_output=True, text=True, check=True)
    assert "To take it back: git" in done.stdout
    assert "What was merged is in your files." in done.stdout
    assert "Checked by running it." in done.stdout, "the log has the results"
