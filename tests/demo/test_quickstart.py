"""The demo runs without a key in a real kernel, and its answer follows the data."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(240)]

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
FLAGS = ["--mode", "accept-edits", "--allow", "add_cell", "--allow", "edit_cell"]


def run_demo(folder: Path, change=lambda rows: rows) -> nbformat.NotebookNode:
    """Run the quickstart on a copy of its data, changed by `change` (rows of strings, header first)."""
    (folder / "data").mkdir()
    shutil.copy(NOTEBOOKS / "00_quickstart.ipynb", folder)
    with (NOTEBOOKS / "data" / "penguins.csv").open() as file:
        rows = change(list(csv.reader(file)))
    with (folder / "data" / "penguins.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    out = folder / "out.ipynb"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC") and k != "MPLBACKEND"}
    command = [sys.executable, "-m", "nbagent", "run", str(folder / "00_quickstart.ipynb"), "-o", str(out), *FLAGS]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    notebook = nbformat.read(out, as_version=4)
    nbformat.validate(notebook)
    return notebook


def record(notebook) -> str:
    cell = next(c for c in notebook.cells if c.source.startswith("%%agent"))
    return cell.outputs[0]["data"]["text/markdown"]


def added(notebook) -> list:
    start = next(i for i, c in enumerate(notebook.cells) if c.source.startswith("%%agent"))
    end = next(i for i, c in enumerate(notebook.cells) if c.id == "after")
    return notebook.cells[start + 1 : end]


def test_the_demo_adds_real_cells_repairs_a_real_error_and_draws_one_plot(tmp_path):
    notebook = run_demo(tmp_path)
    cells = added(notebook)
    code = [c for c in cells if c.cell_type == "code"]
    assert [c.cell_type for c in cells] == ["markdown", "code", "code", "code", "code"]
    assert [(c.source, c.outputs) for c in code if not (c.outputs and c.execution_count)] == []
    images = [o for c in code for o in c.outputs if "image/png" in o.get("data", {})]
    assert len(images) == 1
    assert not [o for c in code for o in c.outputs if o.output_type == "error"], "the error was repaired"
    text = record(notebook)
    assert "TypeError" in text
    assert "**Adelie and Gentoo differ most in bill shape.**" in text
    assert "Adelie: 2.12 (151 birds)" in text
    use = next(c for c in notebook.cells if c.id == "use")
    assert "Gentoo" in use.outputs[0]["data"]["text/plain"]


def test_run_twice_it_gives_the_same_cells(tmp_path):
    def shown(notebook):
        return [(c.cell_type, c.source, c.get("execution_count")) for c in notebook.cells]

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert shown(run_demo(tmp_path / "a")) == shown(run_demo(tmp_path / "b"))


def test_other_species_and_values_give_another_answer(tmp_path):
    names = {"Adelie": "King", "Gentoo": "Rock hopper", "Chinstrap": "Emperor"}

    def change(rows):
        header, *body = rows
        at = header.index("species")
        length = header.index("bill_length_mm")
        for row in body:
            row[at] = names[row[at]]
            if row[at] == "Emperor" and row[length] != "NA":
                row[length] = str(2 * float(row[length]))
        return [header, *body]

    text = record(run_demo(tmp_path, change))
    assert "**King and Emperor differ most in bill shape.**" in text
    assert "Rock hopper: 3.18 (123 birds)" in text
    assert "Adelie" not in text


def test_a_missing_column_changes_the_measure_and_the_words(tmp_path):
    def change(rows):
        at = rows[0].index("bill_depth_mm")
        return [row[:at] + row[at + 1 :] for row in rows]

    text = record(run_demo(tmp_path, change))
    assert "Measured as bill length (mm)" in text
    assert "**Adelie and Chinstrap differ most in bill shape.**" in text
    assert json.dumps("bill_depth") not in text
