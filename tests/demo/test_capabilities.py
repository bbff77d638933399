"""README's table of capabilities and its notebook: they name the same things, and each of them is seen without a key."""

from __future__ import annotations

import re

import nbformat
import pytest

from nbagent.app.reports import COMMANDS
from nbagent.teach import analysis, capabilities, many
from tests.demo import test_data_analysis
from tests.demo.showing import CAPABILITIES, NOTEBOOKS, rows, run, sections, unsaid
from tests.source import ROOT

NUMBERS = tuple(range(1, 22))
"""The rows that there are."""

SEEN: dict[str, list[str]] = {
    "hooked": ["denied: shell", "The file is still there"],
    "hooks": ["PreToolUse shell", "nothing_is_deleted"],
    "skills": ["exploratory-data-analysis", "notebook-clean-up", "explain-this-notebook"],
    "skill": ["/explain-this-notebook", "read the notebook"],
    "explore": ["Explore", "'Adelie' (152)"],
    "plan": ["What became of the plan", "Nobody is there", "Drop the rows"],
    "tasks": ["Both came back", "'Gentoo' (124)", "'Biscoe' (168)", "columnist"],
    "agents": ["Explore", "Plan", "general-purpose", "columnist"],
    "small": ["by the small model", "small (scripted)"],
    "model": ["The model is large (scripted)"],
    "large": ["by the large model", "large (scripted)"],
    "mcp": ["4,200 g weighs 9.26 pounds"],
    "servers": ["units", "connected"],
    "modes": ["denied: add", "mode plan does not allow this", "'Dream' (124)"],
    "first": ["168 of 344", "remember: Most of the penguins live on Biscoe"],
    "briefly": ["Biscoe."],
    "short": ["short"],
    "fork": ["goes on in a copy", "after 1 prompt"],
    "at_length": ["Adelie and Gentoo"],
    "long": ["long"],
    "compare": ["short", "long", "Adelie and Gentoo"],
    "sessions": ["short", "long"],
    "memory": ["Most of the penguins live on Biscoe."],
    "context": ["Context of", "System prompt", "Tools"],
    "limit": ["Stopped at the limit of 3 turns", "Done: 3 columns. Left: 5.", "%agent continue"],
    "reason": ["('max_turns', 3)"],
    "todo": ["all 3 done", "[x] Ask for the unit", "In which unit?", "4,202 g"],
    "todos": ["3 of 3 done"],
    "webon": ["search and fetch"],
    "web": ["was not offered"],
    "weboff": ["The web is off"],
    "hide": ["Hidden from the model: penguins"],
    "dry": ["Nothing was sent", "The password is ⟦secret:", "Request 1"],
    "hidden": ["penguins: hidden by the person", "nothing of it is shown"],
    "sent": ["Request 1", "The password is ⟦secret:", "stands for a secret"],
    "show": ["penguins is shown to the model again"],
    "beside": ["'Biscoe' (168)", "Done."],
    "underway": ["Explore", "columnist"],
    "map": ["152 of 344 rows", "68 of 344 rows", "124 of 344 rows", "done"],
    "team": ["3 of 3 tasks done", "wrote island.md", "merge the work of ada"],
    "teamstate": ["3 completed", "accept takes what was merged"],
    "rules": ["→ ask", "git status: only looks", "rm -rf data: no rule allows it"],
}
"""What the outputs of a cell of the notebook must hold, by the cell's id."""


def test_the_table_and_the_notebook_have_the_same_rows_in_the_same_order() -> None:
    table, notebook = rows(), sections()
    assert {n: name for n, (name, *_) in table.items()} == {n: title for n, (title, *_) in notebook.items()}
    assert tuple(table) == tuple(notebook) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_how_to_see_a_row_is_a_cell_of_its_section_and_what_it_links_is_there(number: int) -> None:
    _, see, more = rows()[number]
    _, text, cells = sections()[number]
    commands = re.findall(r"`(%{1,2}(?:agent|ask)[^`]*|nbagent\.\w+)`", see)
    assert commands, "a command, or a cell"
    lines = [line for source in cells for line in source.splitlines()]
    missing = [
        command
        for command in commands
        if not any(re.sub(r"^(table = await |@)", "", line).startswith(command) for line in lines)
    ]
    assert missing == []
    linked = re.findall(r"\]\(((?:docs|notebooks)/[^)#]+)", more)
    assert linked, "a page that tells more"
    assert [page for page in linked if not (ROOT / page).is_file()] == []
    assert [page for page in linked if page.startswith("docs/") and page not in text] == []


def test_every_command_of_the_table_exists() -> None:
    named = {match for _, see, _ in rows().values() for match in re.findall(r"`%agent (\w+)", see)}
    assert named <= set(COMMANDS)


def test_every_script_is_used_and_every_cell_that_ends_is_looked_at() -> None:
    cells = [cell for path in NOTEBOOKS for cell in nbformat.read(path, as_version=4).cells]
    text = "\n".join(cell.source for cell in cells)
    for module in (analysis, capabilities, many):
        scripts = {name for name, made in vars(module).items() if getattr(made, "__module__", "") == module.__name__
                   and not name.startswith("_") and name != "told"}  # fmt: skip
        place = module.__name__.rpartition(".")[2]
        assert {name for name in scripts if f"{place}:{name}" not in text} == set()
    spoken = {c.id for c in cells if c.cell_type == "code" and re.search(r"^%{1,2}(agent|ask)", c.source, re.MULTILINE)}
    assert spoken <= {*SEEN, *test_data_analysis.SEEN}


# ── it runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    """The notebook, run from above to below in a real kernel, without a key."""
    return run(CAPABILITIES, tmp_path_factory.mktemp("capabilities"))


@pytest.mark.kernel
@pytest.mark.timeout(240)
@pytest.mark.parametrize("cell_id", SEEN)
def test_a_cell_of_the_notebook_shows_what_its_section_says(finished, cell_id: str) -> None:
    assert unsaid(finished, cell_id, SEEN[cell_id]) == ""


@pytest.mark.kernel
@pytest.mark.timeout(240)
def test_every_cell_ran_and_only_the_run_that_is_to_stop_failed(finished) -> None:
    code = [cell for cell in finished.cells if cell.cell_type == "code"]
    failed = [cell.id for cell in code if any(output.output_type == "error" for output in cell.outputs)]
    assert set(failed) <= {cell.id for cell in code if "raises-exception" in cell.metadata.get("tags", ())}
    assert [cell.id for cell in code if not cell.execution_count] == []
