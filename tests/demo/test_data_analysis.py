"""The analyst's notebook runs without a key, from a raw file to a report; what its sections say is what comes."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import nbformat
import pytest

from tests.demo.showing import ANALYSIS, run, shown, unsaid
from tests.source import ROOT

DATA = ROOT / "notebooks" / "data"
ASKED = ("add_cell", "edit_cell", "verify_notebook", "tidy_notebook")
"""What a person would be asked about."""

SEEN: dict[str, list[str]] = {
    "head": ["2 lines before the header", 'decimal=","'],
    "profile": ["4 things. (Of all 348 rows.)", "there more than once", "'torgersen '", "-999 (14)"],
    "own": ["field balance B2", "shows 12 g too much"],
    "repair": ["344 of 348 rows kept", "given the picture that you see", "body mass (g)", "3 x scatter (344 points)"],
    "sql": ["| Biscoe | -65.43 | 171 |", "| torgersen  | -64.77 | 5 |"],
    "ask": ["4 spellings, 3 islands", "“torgersen ” (5)"],
    "explain": ["has 4 lines", "`fmean(few)`"],
    "review": [
        "1. high: -999 counts as a mass",
        "2. medium: no random_state",
        "2 references to lines looked up: all stand there",
    ],
    "verify": ["Runs from a clean kernel", "is random", "2 clean runs"],
    "tidy": ["The change was made", "to the imports cell", "+from statistics import fmean"],
    "report": ["The report is in penguins.html"],
    "wait": ["still runs", "It has ended", "Load 100 %"],
}
"""What the outputs of a cell of the notebook must hold, by the cell's id."""


def test_the_field_data_is_the_penguins_with_the_faults_that_its_page_tells() -> None:
    text = (DATA / "field.csv").read_text("cp1252")
    rows = list(csv.DictReader(io.StringIO(text.split("\n", 2)[2]), delimiter=";"))
    each = {row["bird"]: row for row in rows}
    plain = list(csv.DictReader((DATA / "penguins.csv").read_text("utf-8").splitlines()))
    assert len(rows) - len(each) == 4
    names = [(row["species"], row["island"].strip().title(), row["sex"] or "NA", row["year"]) for row in each.values()]
    assert names == [(row["species"], row["island"], row["sex"], row["year"]) for row in plain]
    bills = [(row["bill_length_mm"] or "NA").replace(",", ".") for row in each.values()]
    assert bills == [row["bill_length_mm"] for row in plain]
    masses = [(row["body_mass_g"], of["body_mass_g"]) for row, of in zip(each.values(), plain, strict=True)]
    assert {mass for mass, of in masses if mass != of} == {"-999"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("analysis")


@pytest.fixture(scope="module")
def finished(folder: Path) -> nbformat.NotebookNode:
    """The notebook, run from above to below in a real kernel, without a key."""
    return run(ANALYSIS, folder, *(flag for name in ASKED for flag in ("--allow", name)))


@pytest.mark.kernel
@pytest.mark.timeout(240)
@pytest.mark.parametrize("cell_id", SEEN)
def test_a_cell_of_the_analysis_shows_what_its_section_says(finished, cell_id: str) -> None:
    assert unsaid(finished, cell_id, SEEN[cell_id]) == ""
    assert "did not verify" not in shown(next(cell for cell in finished.cells if cell.id == cell_id))


@pytest.mark.kernel
@pytest.mark.timeout(240)
def test_the_call_that_was_proposed_is_the_call_that_loads_the_data(finished) -> None:
    head, read = (next(cell for cell in finished.cells if cell.id == name) for name in ("head", "read"))
    proposed = next(line for line in shown(head).splitlines() if line.startswith("df = "))
    assert read.source.splitlines()[0] == proposed.replace("df = ", "birds = ")


@pytest.mark.kernel
@pytest.mark.timeout(240)
def test_the_report_has_the_figure_that_the_agent_drew_and_says_who_ran_what(finished, folder: Path) -> None:
    code = [cell for cell in finished.cells if cell.cell_type == "code"]
    assert [cell.id for cell in code if any(output.output_type == "error" for output in cell.outputs)] == []
    assert sum("image/png" in output.get("data", {}) for cell in code for output in cell.outputs) == 1
    page = (folder / "penguins.html").read_text("utf-8")
    assert page.count("data:image/png") == 1
    assert [
        words for words in ("344 of 348 rows kept", "agent (analysis (scripted)", "person") if words not in page
    ] == []
