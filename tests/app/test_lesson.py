"""A teacher's rules as a kernel finds them: files from the notebook up to the project's top, the notebook's metadata; hints by levels."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nbagent.app.lesson import Lessons, command, hints, under
from nbagent.config import Settings
from nbagent.core.errors import ConfigError
from nbagent.teach.exercises import Outcome, exercise
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, calls


def write(path: Path, cells: list[str], **metadata: Any) -> Path:
    """A notebook with cells of these ids."""
    found = [{"id": one, "cell_type": "code", "source": "", "metadata": {}, "outputs": []} for one in cells]
    path.write_text(json.dumps({"cells": found, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}), "utf-8")
    return path


class Kernel:
    """What the commands need of an extension: a folder, a notebook, and the values of its cells."""

    def __init__(self, folder: Path, notebook: Path | None = None, **out: Outcome) -> None:
        names = {"Out": dict(enumerate(out.values(), 1)), "In": []}
        self.shell = SimpleNamespace(user_ns=names, kernel=None)
        self.lessons = Lessons(folder, lambda: str(notebook or ""))

    def settings(self) -> Settings:
        return under(Settings(), self.lessons.in_force())


def test_the_files_of_all_folders_count_together_and_a_change_is_seen(tmp_path: Path) -> None:
    week = tmp_path / "course" / "week1"
    week.mkdir(parents=True)
    (tmp_path / "course" / ".git").mkdir()
    (tmp_path / "lesson.toml").write_text("max_turns = 1", "utf-8")  # above the project's top
    (tmp_path / "course" / "lesson.toml").write_text("max_turns = 9\nmode = 'explain-only'", "utf-8")
    (week / "lesson.toml").write_text("max_turns = 20\nname = 'Loops'", "utf-8")
    lessons = Lessons(week, str)
    lesson = lessons.in_force()
    assert (lesson.name, lesson.mode, lesson.max_turns) == ("Loops", "explain-only", 9)
    assert lesson.sources == ("week1/lesson.toml", "lesson.toml")
    (week / "lesson.toml").write_text("max_turns = 4", "utf-8")
    assert lessons.in_force().max_turns == 4
    (week / "lesson.toml").unlink()
    assert lessons.in_force().max_turns == 9


@pytest.mark.parametrize(
    "text",
    ["max_turn = 5", "mode = ", "mode = 'open'", "[a]\nb = 1", "\x00", "x = " + "[" * 100_000],
    ids=["field", "toml", "value", "table", "nul", "deep"],
)
def test_a_broken_file_closes_and_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "lesson.toml").write_text(text, "utf-8")
    lesson = Lessons(tmp_path, str).in_force()
    assert lesson.mode == "hint-only" and "lesson.toml" in lesson.problems[0]
    assert "Not as it was meant: lesson.toml" in command(Kernel(tmp_path), "")  # type: ignore[arg-type]


def test_a_folder_and_a_pipe_of_that_name_close_too_and_nothing_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "lesson.toml").mkdir()
    assert Lessons(tmp_path, str).in_force().mode == "hint-only"
    (tmp_path / "lesson.toml").rmdir()
    os.mkfifo(tmp_path / "lesson.toml")
    assert Lessons(tmp_path, str).in_force().mode == "hint-only"


def test_the_other_fields_of_a_broken_file_still_count(tmp_path: Path) -> None:
    (tmp_path / "lesson.toml").write_text("max_turn = 5\nmax_tokens = 900\ntools = 'off'\nmodel = 3", "utf-8")
    lesson = Lessons(tmp_path, str).in_force()
    assert (lesson.mode, lesson.max_tokens, lesson.tools, lesson.model) == ("hint-only", 900, ((),), "")


def test_the_notebooks_own_metadata_narrows_too_and_never_widens(tmp_path: Path) -> None:
    (tmp_path / "lesson.toml").write_text("mode = 'hint-only'\nmax_turns = 3", "utf-8")
    notebook = write(
        tmp_path / "a.ipynb", [], nbagent={"lesson": {"mode": "free", "max_turns": 90, "tools": ["shell"]}}
    )
    lesson = Lessons(tmp_path, lambda: str(notebook)).in_force()
    assert (lesson.mode, lesson.max_turns, lesson.tools) == ("hint-only", 3, (("shell",),))
    assert lesson.sources == ("lesson.toml", "the metadata of a.ipynb")
    write(notebook, [], nbagent={"lesson": {"mode": "free", "mood": 1}})
    assert (
        "the metadata of a.ipynb: there is no field 'mood'"
        in Lessons(tmp_path, lambda: "a.ipynb").in_force().problems[0]
    )
    notebook.write_text("{", "utf-8")
    assert Lessons(tmp_path, lambda: str(notebook)).in_force().problems == ()


def test_hints_come_in_three_levels_then_a_question_then_the_answer(tmp_path: Path) -> None:
    kernel: Any = Kernel(tmp_path)
    one = exercise("03.done")
    said = [str(hints(kernel, "03.done")) for _ in range(6)]
    assert said[:3] == [f"Hint {n} of 3 for 03.done: {one.hints[n - 1]}" for n in (1, 2, 3)]
    assert "Try it once more" in said[3] and one.answer.strip() not in said[3]
    assert one.answer.strip() in said[4] and said[5] == said[4]
    with pytest.raises(ConfigError, match="There is no exercise"):
        hints(kernel, "03.nothing")
    with pytest.raises(ConfigError, match="no exercises that I know") as none:
        hints(kernel, "")
    assert exercise(str(none.value).split()[-1])  # the one that it names is there
    with pytest.raises(ConfigError, match=r"Lesson 03 has these exercises: 03\.done, 03\.circle, "):
        hints(kernel, "03")
    with pytest.raises(ConfigError, match="of which lesson"):
        hints(kernel, "done")


def test_a_hint_without_a_name_is_for_the_exercise_above_else_for_the_first_that_is_not_right(tmp_path: Path) -> None:
    notebook = write(tmp_path / "03_when_to_stop.ipynb", ["a", "ex-03-done", "check-03-done", "b", "ex-03-circle", "c"])
    kernel: Any = Kernel(tmp_path, notebook, one=Outcome("03.circle", passed=True, said="yes"))
    assert "for 03.done" in str(hints(kernel, ""))
    in_cell = {"metadata": {"cellId": "c"}}
    kernel.shell.kernel = SimpleNamespace(get_parent=lambda: in_cell)
    assert "for 03.circle" in str(hints(kernel, ""))
    in_cell["metadata"]["cellId"] = "b"
    assert "Hint 2 of 3 for 03.done" in str(hints(kernel, ""))
    assert "Hint 1 of 3 for 03.runaway" in str(hints(kernel, "runaway"))


def test_the_status_says_how_the_exercises_stand(tmp_path: Path) -> None:
    notebook = write(tmp_path / "03_when_to_stop.ipynb", [])
    no, yes = Outcome("03.circle", passed=False, said="no"), Outcome("03.done", passed=True, said="yes")
    kernel: Any = Kernel(tmp_path, notebook, a=no, b=no, c=yes)
    hints(kernel, "03.runaway")
    text = command(kernel, "")
    assert "Nothing is set for this notebook" in text
    assert "… 03.circle    tried 2 times, not yet right" in text
    assert "✓ 03.done      right" in text
    assert "· 03.runaway   not tried yet, 1 of 3 hints" in text


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_under_a_lesson_a_run_says_what_is_set_and_nothing_else_runs(tmp_path: Path) -> None:
    (tmp_path / "lesson.toml").write_text(
        "name = 'Loops'\nmode = 'hint-only'\nmax_turns = 2\nmodel = 'haiku'\nmessage = 'Try first.'", "utf-8"
    )
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            said = await room.cell("%agent lesson")
            said.says(
                "Lesson: Loops",
                "Hints only",
                "At most 2 turns.",
                "Set by lesson.toml",
                "From your teacher: Try first.",
                "this kernel is yours",
            )
            await room.cell("from nbagent.teach.exercises import check\nis_done = lambda events: True")
            (await room.cell("await check('03.done', globals())")).says("Not yet")
            (await room.cell("%agent lesson")).says("… 03.done      tried 1 time, not yet right", "· 03.circle")
            (await room.cell("%agent hint")).says("Hint 1 of 3 for 03.done")
            shown = await room.cell(
                "%%agent --mode bypass --max-turns 50 -m opus\nDo my homework.",
                calls("run_python", code="done = 1"),
                "Hint, level 1: what does the loop wait for?",
            )
            line = "This lesson: hints only, at most 2 turns, always the model haiku (lesson.toml)"
            shown.says("Hint, level 1", "claude-haiku", line)
            assert await room.value("'done' in globals()") is False
            kept = next((tmp_path / ".nbagent" / "sessions").glob("*.jsonl")).read_text("utf-8")
            assert "allows hints only" in kept and "it only looks" in kept
        server.assert_clean()


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_a_dry_run_under_a_lesson_shows_the_tools_that_the_lesson_leaves(tmp_path: Path) -> None:
    (tmp_path / "lesson.toml").write_text("tools = ['list_variables']", "utf-8")
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            shown = (await room.cell("%%agent --dry-run\nDo my homework.")).record
            assert "\nlist_variables: " in shown and "\nadd_cell: " not in shown and "\nrun_python: " not in shown
            (tmp_path / "lesson.toml").unlink()
            assert "\nadd_cell: " in (await room.cell("%%agent --dry-run\nDo my homework.")).record
        assert server.requests == []
