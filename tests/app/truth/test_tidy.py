"""`%agent tidy` proposes, makes what is approved as one step that can be undone, and asks a model only for names."""

from __future__ import annotations

from typing import Any

import pytest

from nbagent.app.extension import Extension
from nbagent.app.reports import command
from nbagent.app.tidy import TIDY, make, poor_names, read_names, tidy_tool
from nbagent.core.errors import ConfigError, NotebookError
from nbagent.core.rules import grammar_of
from nbagent.core.tools import Call
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools.tidying import Change, Delete, Edit, Insert


def code(source: str, shown: str = "", number: int | None = None, **metadata: Any) -> dict[str, Any]:
    outputs = [
        {"output_type": "execute_result", "data": {"text/plain": shown}, "metadata": {}, "execution_count": number}
    ]
    return {"cell_type": "code", "source": source, "outputs": outputs if shown else [], "execution_count": number,
            "metadata": metadata}  # fmt: skip


async def nobody(_: object) -> str:
    return ""


CALL = Call("call-1", lambda _: None, nobody)
MESSY = [
    code("import os\nimport sys", number=1),
    code("old = 1", number=2),
    code("import json\njson.dumps(os.sep)", "'/'", 3),
    code("low = 2", number=4),
    code("low + 1", "3", 5),
    code("# x = f(1)\n# g(x)"),
    code("keep = 1", number=7, tags=["parameters"]),
    code("sys.platform", "'linux'", 8),
]


@pytest.fixture
def extension(shell, at_home) -> Extension:
    return Extension(shell)


def sources(notebook: MemoryNotebook) -> list[str]:
    return [cell["source"] for cell in notebook.cells_]


def test_a_change_is_never_allowed_from_now_on_and_an_empty_cell_shows_no_diff():
    found = [Change("dead", "delete In[2]: it is empty", (Delete("a", ""),))]
    tool = tidy_tool(MemoryNotebook([]), found)
    assert grammar_of(tool).offers(tool, {"change": 1}) == ()
    assert tool.preview({"change": 1}).kind == "none"


async def test_approved_changes_are_made_in_one_step_and_undone_in_one(extension, monkeypatch):
    notebook = extension.file = MemoryNotebook([{**cell} for cell in MESSY])
    monkeypatch.setenv("NBAGENT_MODE", "bypass")
    before = sources(notebook)
    await command(extension, "tidy")
    assert sources(notebook) == [
        "import os\nimport sys\nimport json", "json.dumps(os.sep)", "low = 2\nlow + 1", "keep = 1", "sys.platform",
    ]  # fmt: skip
    assert [cell["execution_count"] for cell in notebook.cells_] == [1, 3, 5, 7, 8]
    assert notebook.cells_[2]["outputs"][0]["data"]["text/plain"] == "3"
    assert "4 of 4 changes made" in extension.errands[0] and "%agent verify" in extension.errands[0]
    outcome = await extension.undo.take_back(notebook)
    assert outcome.did and sources(notebook) == before


async def test_what_nobody_approves_is_not_done(extension):
    notebook = extension.file = MemoryNotebook([{**cell} for cell in MESSY])
    await command(extension, "tidy")
    assert sources(notebook) == [cell["source"] for cell in MESSY]


async def test_a_tidy_notebook_is_told_so_without_a_run(extension):
    extension.file = MemoryNotebook([code("1", "1", 1)])
    assert await command(extension, "tidy") == TIDY
    with pytest.raises(ConfigError, match="--names"):
        await command(extension, "tidy --all")


async def test_a_change_whose_cells_were_edited_meanwhile_is_refused_before_anything_is_done():
    notebook = MemoryNotebook([code("a = 1"), code("a", "1", 1)])
    first, second = await notebook.cells()
    change = Change("merge", "merge", (Delete(first.id, "a = 1"), Edit(second.id, "something else", "a = 1\na")))
    with pytest.raises(NotebookError, match="changed since"):
        await make(notebook, change, CALL)
    assert sources(notebook) == ["a = 1", "a"]


async def test_a_split_puts_the_new_cells_before_the_old_one_in_order():
    notebook = MemoryNotebook([code("a\nb\nc", "3", 1)])
    [cell] = await notebook.cells()
    ops = (Insert(cell.id, "code", "a"), Insert(cell.id, "code", "b"), Edit(cell.id, "a\nb\nc", "c"))
    await make(notebook, Change("split", "split", ops), CALL)
    assert sources(notebook) == ["a", "b", "c"]
    assert notebook.cells_[2]["id"] == cell.id and notebook.cells_[2]["outputs"]


def test_each_change_is_asked_about_with_its_diff_and_a_target_of_its_own():
    change = Change("merge", "merge In[1], In[2]: one step", (Delete("a", "x = 1"), Edit("b", "x", "x = 1\nx")))
    tool = tidy_tool(MemoryNotebook(), [change, change])
    preview = tool.preview({"change": 1})
    assert (preview.kind, preview.body) == ("diff", "# ── a cell ──\nx = 1\nx") and "x = 1" in preview.old
    assert tool.title({"change": 1}) == change.title
    assert tool.target is not None and tool.target({"change": 1}) != tool.target({"change": 2})


async def test_poor_names_are_found_and_only_sound_answers_of_a_model_are_taken():
    cells = await MemoryNotebook([code("df2 = tmp = 1\nsales = 2\nimport numpy as x1")]).cells()
    assert poor_names(cells) == ["df2", "tmp"]
    said = 'Sure: {"df2": "sales_by_day", "tmp": "class", "other": "x"} as you asked'
    assert read_names(said, ["df2", "tmp"]) == {"df2": "sales_by_day"}
    assert read_names("{broken", ["df2"]) == read_names("", ["df2"]) == {}
