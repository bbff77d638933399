"""Each notebook of the course runs by itself, without a key and with nobody there; its exercises check themselves.

A copy of the notebook is run in a real kernel. Below each exercise stand, in the copy, three plausible wrong answers and the given
one, each with the check; then the untouched cell again, so that the rest of the notebook is as a learner finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from nbagent.teach.exercises import Exercise, exercises_of, hint
from nbagent.teach.lessons import LESSONS
from tests.demo.showing import run, shown
from tests.source import ROOT

NOTEBOOKS = ROOT / "notebooks"


def _notebook(number: str) -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOKS / f"{number}_{LESSONS[number]}.ipynb", as_version=4)


def _wrong(number: str) -> dict[str, tuple[str, str, str]]:
    return import_module(f"tests.teach.wrong.{LESSONS[number]}").WRONG


def _tried(exercise: Exercise, wrong: tuple[str, ...], untouched: str) -> Iterator[nbformat.NotebookNode]:
    """The cells below an exercise's check: each answer and its check, then the cell as it was."""
    name = exercise.id.replace(".", "-")
    for place, source in enumerate([*wrong, exercise.answer]):
        yield new_code_cell(source, id=f"ex-{name}-{place}", metadata={"tags": ["raises-exception"]})
        yield new_code_cell(f'await check("{exercise.id}", globals())', id=f"check-{name}-{place}")
    yield new_code_cell(untouched, id=f"ex-{name}-again")


def _with_answers(number: str) -> nbformat.NotebookNode:
    """The notebook, with all answers tried below each exercise."""
    notebook, wrong = _notebook(number), _wrong(number)
    sources = {cell.id: cell.source for cell in notebook.cells}
    cells: list[nbformat.NotebookNode] = []
    for cell in notebook.cells:
        cells.append(cell)
        for exercise in exercises_of(number):
            name = exercise.id.replace(".", "-")
            if cell.id == f"check-{name}":
                cells += _tried(exercise, wrong[exercise.id], sources[f"ex-{name}"])
    notebook.cells = cells
    return notebook


def _problems(number: str, finished: nbformat.NotebookNode) -> Iterator[str]:
    """What the checks of a finished notebook said that they should not have said."""
    said = {cell.id: shown(cell) for cell in finished.cells if cell.cell_type == "code"}
    for exercise in exercises_of(number):
        name = exercise.id.replace(".", "-")
        for place in ("", "-0", "-1", "-2", "-3"):
            text, right = said[f"check-{name}{place}"], place == "-3"
            if ("✓ Right" in text) is not right or ("Not yet" in text) is right:
                yield f"{exercise.id}, {'untouched' if not place else 'the answer' if right else f'wrong answer {place}'}: {text}"


@pytest.mark.parametrize("number", sorted(LESSONS))
def test_a_lesson_says_where_it_begins_and_saves_no_outputs(number: str) -> None:
    notebook = _notebook(number)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    assert [cell.id for cell in notebook.cells if cell.cell_type == "code" and cell.outputs] == []
    tagged = [cell.id for cell in notebook.cells if "exercise" in cell.metadata.get("tags", ())]
    assert tagged == [
        f"ex-{one.id.replace('.', '-')}" for one in exercises_of(number)
    ]  # in the same order: `%agent hint`
    assert set(_wrong(number)) == {one.id for one in exercises_of(number)}


def test_agent_cells_of_notebooks_that_lie_in_one_folder_have_ids_of_their_own() -> None:
    """A cell of the same id and text counts as the same cell, as in a copy: its answer would pass for the other's."""
    notebooks = [nbformat.read(path, as_version=4) for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    ids = [(cell.id, cell.source) for each in notebooks for cell in each.cells if cell.source.startswith("%%a")]
    assert sorted({each for each in ids if ids.count(each) > 1}) == []


@pytest.mark.parametrize("number", sorted(LESSONS))
def test_the_hints_of_a_lesson_come_in_three_levels_and_give_nothing_away_before_the_answer(number: str) -> None:
    for one in exercises_of(number):
        assert all(one.hints), one.id
        assert one.answer.strip() in hint(one.id, 4)
        assert not any(one.answer.strip() in each for each in one.hints), one.id


@pytest.mark.kernel
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", sorted(LESSONS))
def test_a_lesson_runs_alone_and_its_checks_tell_right_from_wrong(number: str, tmp_path: Path) -> None:
    notebook = tmp_path / f"{number}_{LESSONS[number]}.ipynb"
    nbformat.write(_with_answers(number), notebook)
    folder = tmp_path / "folder"
    folder.mkdir()
    finished = run(notebook, folder)
    assert list(_problems(number, finished)) == []
