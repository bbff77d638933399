"""A cell that was added and is not worth keeping as it is gets one line on why."""

from __future__ import annotations

import pytest

from nbagent.core.ports import Cell
from nbagent.tools.cellhints import hint_on

OTHERS = [
    Cell("a", "code", "import numpy as np\nimport pandas as pd", 0, 1),
    Cell("b", "code", "df = pd.read_csv('a.csv')", 1, 2),
]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os\nos.sep", "In[1] (a) is the notebook's imports cell: the import of `os` belongs there"),
        ("df = pd.read_csv( 'a.csv' )", "In[2] (b) has the same code"),
        ("list = df.columns\nlist[0]", "`list` hides Python's own"),
        ("np = 3\nnp + 1", "`np` is imported in In[1]"),
        ("df.head()", "only looks"),
        ("df", "only looks"),
        ("df['a'].describe()", "only looks"),
    ],
)
def test_what_is_wrong_is_said(source: str, said: str) -> None:
    assert said in hint_on(source, OTHERS, "new")


@pytest.mark.parametrize(
    "source", ["clean = df.dropna()\nclean.head()", "df = df.dropna()\ndf.shape", "df.plot()", "def ("]
)
def test_cells_worth_keeping_get_no_hint(source: str) -> None:
    assert hint_on(source, OTHERS, "new") == ""


def test_the_first_cell_of_a_notebook_gets_none() -> None:
    assert hint_on("import os", [], "new") == ""
    assert hint_on("import os", [Cell("new", "code", "import os", 0)], "new") == ""
