"""What would make a notebook tidier: found where it helps, and never where something could break."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.ports import Cell
from nbagent.tools.renaming import renamed
from nbagent.tools.tidying import Change, Delete, Edit, Insert, changes


def cells(*sources: str | tuple[str, str], **metadata: Any) -> list[Cell]:
    """Code cells c0, c1 …, run in order; of a pair the second is what it showed ("!": it failed)."""
    made: list[Cell] = []
    for place, given_ in enumerate(sources):
        source, shown = given_ if isinstance(given_, tuple) else (given_, "")
        kind = "markdown" if source.startswith("#md ") else "code"
        output: dict[str, Any] = {"output_type": "execute_result", "data": {"text/plain": shown}, "metadata": {}}
        if shown == "!":
            output = {"output_type": "error", "ename": "KeyError", "evalue": "x", "traceback": []}
        said = metadata.get(f"c{place}", {})
        number = place + 1 if kind == "code" else None
        made.append(
            Cell(f"c{place}", kind, source.removeprefix("#md "), place, number, (output,) if shown else (), said)
        )
    return made


def of(kind: str, found: list[Change]) -> list[Change]:
    return [change for change in found if change.kind == kind]


def gone(found: list[Change]) -> list[str]:
    return [op.cell for change in of("dead", found) for op in change.ops if isinstance(op, Delete)]


# ── dead cells ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sources", "dead"),
    [
        (["x = 1", "", ("x", "1")], ["c1"]),
        (["x = 1", "# y = f(x)\n# y.plot()", ("x", "1")], ["c1"]),
        (["x = 1", "# what follows is the model", ("x", "1")], []),
        ([("x", "1"), ("x", "1"), ("y", "2")], ["c1"]),
        ([("x", "1"), "x = 2", ("x", "2"), ("y", "2")], []),
        ([("rows.pop()", "1"), ("rows.pop()", "2"), ("y", "2")], []),
        ([("df['x'].men()", "!"), ("df['x'].mean()", "2"), ("y", "2")], ["c0"]),
        ([("df['x'].men()", "!"), ("y", "2")], []),
        (["old = 1", ("x", "1")], ["c0"]),
        (["old = 1", ("old", "1")], []),
        (["old = 1", ("df.query('a > @old')", "1")], []),
        (["old = load()", ("x", "1")], ["c0"]),
        (["old = await load()", ("x", "1")], []),
        (['@app.route("/")\ndef old(): pass', ("x", "1")], []),
        (["@dataclass\nclass Old:\n    a: int", ("x", "1")], ["c0"]),
        (["df = df.iloc[1:]", "df = df.iloc[1:]", ("df", "1")], []),
        (["a, b = b, a", "a, b = b, a", ("a", "1")], []),
        (["v = next(it)", "v = next(it)", ("v", "1")], []),
        (["s = df.sample(9)", "s = df.sample(9)", ("s", "1")], []),
        (["for i in q: i.go()", "for i in q: i.go()", ("i", "1")], []),
        (["m = df.mean()", "m = df.mean()", ("m", "1")], ["c1"]),
        (["send(old)", ("x", "1")], []),
        (["old = connection.execute('INSERT INTO t VALUES (1)')", ("x", "1")], []),
        (["old = 1", "%run other.py"], []),
        (["old = 1", "%%agent\nuse old", ("x", "1")], []),
        (["x = 1", "last = 2"], ["c0"]),
    ],
)
def test_dead_cells_are_those_that_nothing_needs_and_nobody_reads(sources: list[Any], dead: list[str]) -> None:
    assert gone(changes(cells(*sources))) == dead


# ── imports ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_stray_imports_go_to_the_imports_cell_and_those_that_it_has_just_go() -> None:
    [change] = of("imports", changes(cells(
        "import os\nimport pandas as pd", ("import numpy as np\nimport pandas as pd\npd.Series(np.arange(3))", "0"),
    )))  # fmt: skip
    assert change.title == "move 2 imports to the imports cell, In[1]"
    assert [(op.cell, op.new) for op in change.ops if isinstance(op, Edit)] == [
        ("c0", "import os\nimport pandas as pd\nimport numpy as np"), ("c1", "pd.Series(np.arange(3))"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "stray",
    [
        "try:\n    import q\nexcept ImportError:\n    q = None",
        "from q import *",
        "import q; f(q)",
        "%matplotlib inline\nimport q",
        "if x:\n    import q",
    ],
)
def test_imports_that_can_not_be_moved_safely_stay(stray: str) -> None:
    assert of("imports", changes(cells("import os\nimport sys", (stray, "1")))) == []


@pytest.mark.parametrize(
    "before",
    [
        "sys.path.append('../src')",
        "os.environ['DEVICE'] = ''",
        "os.chdir('src')",
        "matplotlib.use('Agg')",
        "%pip install q",
        "!pip install q",
        "open('q.py', 'w').write('x = 1')",
        "%%writefile q.py\nx = 1",
    ],
)
def test_an_import_stays_below_what_may_make_it_possible(before: str) -> None:
    assert of("imports", changes(cells("import os, sys\nimport matplotlib", before, ("import q\nq.x", "1")))) == []
    assert of("imports", changes(cells("import os, sys\nimport matplotlib", f"{before}\nimport q\nq.x"))) == []
    [above] = of("imports", changes(cells("import os, sys\nimport matplotlib", ("import q\nq.x", "1"), before)))
    assert above.title.startswith("move 1 import")


def test_an_import_of_a_cell_that_has_yet_to_run_stays_for_the_imports_cell_ran_without_it() -> None:
    home, later = cells("import os", "import numpy as np\nnp.arange(3)")
    assert of("imports", changes([home, replace(later, number=None)])) == []
    assert len(of("imports", changes([replace(home, number=None), replace(later, number=None)]))) == 1


def test_an_import_stays_where_its_name_means_something_else_above() -> None:
    assert (
        of("imports", changes(cells("import os\nimport sys", "time = 3", ("time", "3"), ("import time\ntime", "1"))))
        == []
    )


# ── merges and splits ────────────────────────────────────────────────────────────────────────────────────────────────


def test_tiny_cells_that_only_prepare_the_next_become_one_with_it_under_its_id() -> None:
    [change] = of("merge", changes(cells("low = 3", "part = df[df.a > low]", ("part.head()", "…"))))
    assert change.title == "merge In[1], In[2], In[3]: one step"
    assert change.ops[-1] == Edit("c2", "part.head()", "low = 3\npart = df[df.a > low]\npart.head()", "In[3]")
    assert change.old.startswith("# ── In[1] ──\nlow = 3\n\n# ── In[2] ──\n")
    assert [op.cell for op in change.ops[:-1] if isinstance(op, Delete)] == ["c0", "c1"]


@pytest.mark.parametrize(
    "sources",
    [
        [("low = 3", "3"), ("low", "3")],
        ["low = 3", "#md # A section", ("low", "3")],
        ["%%time\nlow = 3", ("low", "3")],
        ["low = 3", "!ls"],
        ["def f():\n    return 1", ("f()", "1")],
        ["low = 3", ("other", "3")],
        ["low = 3\n" * 6, ("low", "3")],
    ],
)
def test_cells_that_are_steps_of_their_own_stay_so(sources: list[Any]) -> None:
    assert of("merge", changes(cells(*sources))) == []


def test_a_giant_cell_is_split_where_its_comments_begin_new_steps() -> None:
    part = "\n".join(f"x{n} = {n}" for n in range(15))
    source = f"# load\n{part}\n\n# clean\n{part}\n\n# draw\n{part}\nprint(x1)"
    [change] = of("split", changes(cells((source, "1"))))
    inserts = [op for op in change.ops if isinstance(op, Insert)]
    assert [op.source.splitlines()[0] for op in inserts] == ["# load", "# clean"]
    assert isinstance(change.ops[-1], Edit) and change.ops[-1].new.startswith("# draw")
    assert (
        of("split", changes(cells((f"def f():\n    # a\n    {part.replace(chr(10), chr(10) + '    ')}\n" * 4, "1"))))
        == []
    )


# ── headings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


SIX = ["import pandas as pd", ("df = pd.read_csv('a.csv')\ndf", "1"), ("df.dropna()", "1"), ("df.groupby('a').b.mean()", "2"),
       ("df.plot()", "3"), ("df.plot.bar()", "4")]  # fmt: skip


def test_a_notebook_of_some_length_without_headings_gets_them_where_steps_change() -> None:
    found = of("heading", changes(cells(*SIX)))
    said = [(op.before, op.source) for change in found for op in change.ops if isinstance(op, Insert)]
    assert said == [("c0", "## Setup"), ("c1", "## Load the data"), ("c2", "## Clean the data"), ("c3", "## Summarise"),
                    ("c4", "## Plots")]  # fmt: skip
    assert of("heading", changes(cells(*SIX, "#md # Mine"))) == []
    assert of("heading", changes(cells(*SIX[:4]))) == []


# ── what is left alone ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "said", [{"tags": ["parameters"]}, {"slideshow": {}}, {"nbagent": {"keep": True}}, {"editable": False}]
)
def test_cells_with_tags_or_marks_are_left_alone(said: dict[str, Any]) -> None:
    tagged = {key: ({"slide_type": "x"} if key == "slideshow" else value) for key, value in said.items()}
    assert changes(cells("old = 1", ("x", "1"), c0=tagged)) == []


def test_the_cell_that_asks_and_agents_cells_are_left_alone() -> None:
    assert changes(cells("%%agent\ntidy up", "%agent tidy", ("x", "1"))) == []
    assert changes(cells("old = 1", ("x", "1")), own="c0") == []


def test_an_empty_cell_goes_but_for_the_last_in_which_the_person_goes_on() -> None:
    found = changes(cells(("x = 1\nx", "1"), "", ("x", "1"), ""))
    assert [change.title.partition(":")[2] for change in found] == [" it is empty"] and found[0].cells == {"c1"}


def test_no_two_changes_touch_one_cell() -> None:
    found = changes(
        cells(
            "import os\nimport sys",
            "a = 1",
            "import re\nb = a",
            ("b", "1"),
            ("b", "1"),
            "# x = f(1)\n# y(x)",
            ("c", "2"),
        )
    )
    touched = [cell for change in found for cell in change.cells]
    assert len(touched) == len(set(touched)) and len(found) >= 2


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("df2 = df2.dropna()\ndf2", "sales = sales.dropna()\nsales"),
        ("f(df2=1)\no.df2\ndf2", "f(df2=1)\no.df2\nsales"),
        ("def f(df2):\n    return df2\nf(df2)", "def f(df2):\n    return df2\nf(sales)"),
        ("def f():\n    return df2", "def f():\n    return sales"),
        ("lambda df2: df2", "lambda df2: df2"),
        ("é = df2", "é = sales"),
        ("df.query('@df2 > 1')", None),
        ("def f():\n    global df2\n    df2 = 1", None),
        ("import x as df2", None),
        ("sales = 1\ndf2", None),
        ("!ls {df2}", None),
        ("class A:\n    df2 = 1", None),
        ("[df2 for df2 in x]", None),
    ],
)
def test_a_variable_is_renamed_only_where_that_variable_is_meant(source: str, after: str | None) -> None:
    assert renamed(source, "df2", "sales") == after


def test_a_name_changes_in_all_cells_or_in_none() -> None:
    found = of("rename", changes(cells("df2 = f()\ndf2.x", ("df2.head()", "1")), names={"df2": "sales"}))
    assert [op.new for op in found[0].ops if isinstance(op, Edit)] == ["sales = f()\nsales.x", "sales.head()"]
    assert of("rename", changes(cells(("df2 = 1\ndf2", "1"), ("q('@df2')", "1")), names={"df2": "sales"})) == []
    assert of("rename", changes(cells(("df2 = 1\ndf2", "1"), ("sales", "1")), names={"df2": "sales"})) == []


_SOURCES = st.sampled_from(
    [
        "x = 1",
        "x",
        "y = x + 1",
        "y",
        "import os",
        "import os\nimport re",
        "# x = f()",
        "",
        "del x",
        "x = y",
        "print(x)",
        "%%agent\nx",
    ]
)


@given(st.lists(_SOURCES, max_size=10))
def test_what_remains_after_all_changes_defines_what_was_used_before(sources: list[str]) -> None:
    """Every name that a kept cell uses is still made above it where it was before."""
    from nbagent.tools.dataflow import dataflow

    before = cells(*sources)
    missing = {(cell.id, m.name) for cell in dataflow(before).cells for m in dataflow(before).undefined(cell.id)}
    after = {cell.id: cell for cell in before}
    for change in changes(before):
        for op in change.ops:
            if isinstance(op, Delete):
                del after[op.cell]
            elif isinstance(op, Edit):
                after[op.cell] = Cell(op.cell, "code", op.new, after[op.cell].index)
    flow = dataflow(list(after.values()))
    names = {m.name for cell in flow.cells for m in flow.undefined(cell.id)}
    assert names <= {name for _, name in missing}
