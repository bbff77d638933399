"""`%agent keep`: which cell it marks, and what it says where it can't."""

from __future__ import annotations

import pytest

from nbagent.app.keep import mark, read
from nbagent.core.errors import ConfigError
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools.marks import is_kept
from tests.tools.desk import raw


@pytest.fixture
def notebook():
    cells = [
        raw("text", "# Title", "markdown"),
        raw("load", "df = load()", number=3),
        raw("train", "model.fit(df)", number=7),
        raw("agent", "%%agent\ngo", number=8),
        raw("new", "x"),
        raw("mine", "%agent keep", number=9),
    ]
    return MemoryNotebook(cells, own_cell="mine")


async def kept(notebook):
    return [cell.id for cell in await notebook.cells() if is_kept(cell)]


async def test_the_cell_that_ran_last_is_marked_and_never_an_agents(notebook):
    said = await mark(notebook, None, True)
    assert await kept(notebook) == ["train"]
    assert said == (
        "In[7] (model.fit(df)) is marked: agents ask you before they run it again. %agent keep 7 off takes that back."
    )


async def test_a_cell_is_marked_by_its_number_and_the_mark_is_taken_away_again(notebook):
    await mark(notebook, 3, True)
    assert await mark(notebook, 3, True) == "In[3] (df = load()) is marked already."
    assert await kept(notebook) == ["load"]
    assert await mark(notebook, 3, False) == "In[3] (df = load()) is no longer marked."
    assert await kept(notebook) == []
    assert "metadata" in notebook.cells_[1] and notebook.cells_[1]["metadata"] == {}


async def test_what_else_is_known_of_the_cell_stays(notebook):
    notebook.cells_[2]["metadata"] = {"tags": ["t"], "nbagent": {"run": "r"}}
    await mark(notebook, 7, True)
    assert notebook.cells_[2]["metadata"] == {"tags": ["t"], "nbagent": {"run": "r", "keep": True}}
    await mark(notebook, 7, False)
    assert notebook.cells_[2]["metadata"] == {"tags": ["t"], "nbagent": {"run": "r"}}


async def test_the_notebook_is_saved(notebook):
    saved = []
    notebook._on_save = lambda: saved.append(True)
    await mark(notebook, None, True)
    assert saved == [True]


@pytest.mark.parametrize(
    ("number", "words"), [(5, r"no cell In\[5\]\. Cells that ran: In\[3\], In\[7\]"), (8, "no cell")]
)
async def test_a_number_that_no_cell_has_is_named_with_those_there_are(notebook, number, words):
    with pytest.raises(ConfigError, match=words):
        await mark(notebook, number, True)


async def test_where_two_cells_have_the_number_none_is_guessed(notebook):
    notebook.cells_[1]["execution_count"] = 7
    with pytest.raises(ConfigError, match=r"Two cells are In\[7\]"):
        await mark(notebook, 7, True)
    assert await kept(notebook) == []


async def test_before_anything_ran_there_is_nothing_to_mark():
    with pytest.raises(ConfigError, match="No cell of this notebook has run yet"):
        await mark(MemoryNotebook([raw("a", "x")]), None, True)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [("", (None, True)), ("off", (None, False)), ("7", (7, True)), ("In[7] off", (7, False)), ("In [7]", (7, True)),
     ("OFF", (None, False)), ("[12] on", (12, True))],
)  # fmt: skip
def test_the_line_is_read(line, wanted):
    assert read(line) == wanted


@pytest.mark.parametrize("line", ["training", "7 8", "-1", "off 7"])
def test_anything_else_gets_the_usage(line):
    with pytest.raises(ConfigError, match="%agent keep 7 marks"):
        read(line)
