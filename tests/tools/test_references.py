"""References to lines of cells are looked up; findings stand by weight."""

from __future__ import annotations

from nbagent.core.ports import Cell
from nbagent.tools.references import by_weight, checked, summed_up

CELLS = [
    Cell("aaaa-1", "code", "import numpy as np\nX = load()\nscaler.fit(X)", 0, 4),
    Cell("bbbb-2", "code", "plot(X)", 1, None),
]


def told(text: str) -> tuple[str, list[str]]:
    marked, found = checked(text, CELLS, lambda one: f"<{one.id}.{one.line}>")
    return marked, [one.problem for one in found]


def test_a_reference_holds_where_its_code_stands_in_the_cell():
    assert told("see `In[4]:3` `scaler.fit(X)`.") == ("see <aaaa-1.3> `scaler.fit(X)`.", [""])
    assert told("In[4]:1 `scaler.fit( X )`")[0] == "<aaaa-1.3> `scaler.fit( X )`"  # the line where it stands
    assert told("`cell bbbb-2:1`")[0] == "<bbbb-2.1>"


def test_what_is_not_there_is_marked():
    assert told("`In[9]:1` `x`") == ("In[9]:1 `x` **(not found: there is no such cell)**", ["there is no such cell"])
    assert told("`In[4]:8`")[1] == ["the cell has 3 lines"]
    assert told("`In[4]:2` `model.fit(y)`")[1] == ["this code is not in the cell"]
    _, found = checked("`In[9]:1` `In[4]:1`", CELLS, lambda one: one.cell)
    assert summed_up(found) == "2 references to lines looked up; 1 not found: In[9]:1 (there is no such cell)."


def test_findings_come_by_weight_and_are_numbered_anew():
    text = "Hello.\n\n### 1. low: a\nx\n```\n### 9. high: in code\n```\n\n### 2. high: b\ny\n\n### Sound\nz"
    assert by_weight(text).split("\n\n") == [
        "Hello.", "### 1. high: b\ny", "### 2. low: a\nx\n```\n### 9. high: in code\n```", "### Sound\nz",
    ]  # fmt: skip
    finding = "### 1. high: b\n`In[4]:3` `x`\nIt leaks.\nCheck: the\nscores."
    assert by_weight(finding) == "### 1. high: b\n`In[4]:3` `x`\n\nIt leaks.\n\nCheck: the\nscores."
    assert by_weight("Nothing is wrong.") == "Nothing is wrong."
