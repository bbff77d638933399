"""The sentence about cells that ends a run: it says what ran after the last edit, and is never better than what happened."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.errors import Interrupted, ToolError
from nbagent.core.ports import Cell
from nbagent.tools.hidden import unmade
from nbagent.tools.ledger import Ledger
from tests.tools.desk import Desk

CLEAN = "Not verified from a clean kernel."


@pytest.fixture
def desk():
    return Desk()


async def test_a_run_that_touched_no_cell_ends_without_a_word(desk):
    await desk.call("read_notebook")
    assert desk.closing() == ""


async def test_cells_that_were_added_and_ran_are_named_in_order(desk):
    for source in ("a", "b"):
        await desk.call("add_cell", source=source)
    await desk.call("add_cell", source="# T", cell_type="markdown")
    assert desk.closing() == f"Ran: In[1], In[2]. {CLEAN}"


async def test_what_ran_before_the_last_edit_is_not_counted_as_running_after_it(desk):
    await desk.call("read_notebook")
    await desk.call("run_cell", cell="end")
    await desk.call("edit_cell", cell="load", source="df = 2", run=True)
    await desk.call("add_cell", source="plot")
    assert desk.ledger.closing() == f"Ran after the last edit: In[2], In[3]. Ran before it: In[1]. {CLEAN}"
    await desk.call("run_cell", cell="end")
    assert desk.ledger.closing() == f"Ran after the last edit: In[2], In[3], In[4]. {CLEAN}"


async def test_what_was_edited_or_added_and_not_run_is_named(desk):
    await desk.call("read_notebook")
    await desk.call("add_cell", source="x", run=False)
    await desk.call("edit_cell", cell="end", source="df.head()")
    assert desk.ledger.closing() == "Not run since it was edited: `df.head()`. Added but not run: `x`."
    await desk.call("run_cell", cell="end")
    assert desk.ledger.closing() == f"Ran after the last edit: In[1]. Added but not run: `x`. {CLEAN}"


async def test_a_cell_that_failed_is_named_with_how_it_ended(desk):
    desk.kernel.answers |= {"bad": "error", "slow": "timeout", "long": "interrupt"}
    await desk.call("add_cell", source="bad")
    await desk.call("add_cell", source="slow")
    with pytest.raises(Interrupted):
        await desk.call("add_cell", source="long")
    assert desk.ledger.closing().startswith("Ran: In[1] (error), `")
    assert "(timeout)" in desk.ledger.closing()
    assert "(interrupted)" in desk.ledger.closing()


async def test_a_deleted_cell_is_an_edit_and_is_named(desk):
    await desk.call("add_cell", source="x")
    await desk.call("read_notebook")
    await desk.call("delete_cell", cell="load")
    assert desk.ledger.closing() == f"Ran before the last edit: In[1]. Deleted: In[3]. {CLEAN}"


async def test_a_refused_call_leaves_no_trace(desk):
    await desk.call("read_notebook")
    for name, arguments in (("edit_cell", {"cell": "mine", "source": "x"}), ("run_cell", {"cell": "intro"})):
        with pytest.raises(ToolError):
            await desk.call(name, **arguments)
    assert desk.closing() == ""


async def test_the_next_run_begins_with_an_empty_ledger(desk):
    await desk.call("add_cell", source="x")
    desk.begin("run-2")
    assert desk.closing() == ""


async def test_what_was_only_proposed_is_said_to_be_not_done():
    desk = Desk(proposes_only=True)
    await desk.call("add_cell", source="x")
    assert "not done" in desk.closing()


async def test_all_cells_of_a_whole_run_are_counted(desk):
    await desk.call("read_notebook")
    await desk.call("run_all")
    assert desk.closing().startswith("Ran: In[1], In[2].")


async def test_a_cell_that_uses_what_no_cell_above_it_makes_is_named(desk):
    await desk.call("read_notebook")
    desk.user_edit("load", "df = 1")
    await desk.call("read_notebook")
    await desk.call("add_cell", source="df + secret")
    assert desk.closing() == (
        "Ran: In[1]. Not verified from a clean kernel: In[1] uses `secret`, which no cell above it makes."
    )


@pytest.mark.slow
@settings(max_examples=60 * settings.default.max_examples // 100)
@given(st.lists(st.tuples(st.sampled_from(["add", "edit", "run", "delete"]), st.sampled_from("abc")), max_size=12))
def test_each_cell_is_in_one_place_and_that_place_is_true(steps):
    ledger, cells, log, number = Ledger(), set(), [], 0
    for step, name in steps:
        if (step == "add") == (name in cells):
            continue
        cell = Cell(name, "code", name, 0, None)
        if step == "add":
            ledger.added(cell)
            cells.add(name)
        elif step == "edit":
            ledger.edited(cell)
        elif step == "delete":
            ledger.deleted(cell)
            cells.discard(name)
        else:
            number += 1
            ledger.ran(cell, "ok")
        log.append((step, name))
    said = dict(part.split(": ", 1) for part in ledger.closing().rstrip(".").split(". ") if ": " in part)
    since = [p for head in ("Ran", "Ran after the last edit") for p in said.get(head, "").split(", ") if p]
    edits = [at for at, (step, _) in enumerate(log) if step in {"edit", "delete"}]
    for name in cells:
        mine = [(at, step) for at, (step, n) in enumerate(log) if n == name]
        mine = mine[max(i for i, (_, step) in enumerate(mine) if step == "add") :]
        runs = [at for at, step in mine if step == "run"]
        writes = [at for at, step in mine if step in {"add", "edit"}]
        ran_last = bool(runs) and runs[-1] > writes[-1]
        assert (f"`{name}`" in since) == (ran_last and (not edits or runs[-1] > edits[-1]))
        unrun = [
            p for head in ("Not run since it was edited", "Added but not run") for p in said.get(head, "").split(", ")
        ]
        assert (f"`{name}`" in unrun) == (not ran_last)


# ── names that no cell above makes ───────────────────────────────────────────────────────────────────────────────────


def missing(*sources):
    cells = [Cell(f"c{n}", "code", source, n) for n, source in enumerate(sources)]
    return {cell_id: set(names) for cell_id, names in unmade(cells, [cell.id for cell in cells]).items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "sources",
    [
        ("import pandas as pd", "df = pd.DataFrame()", "df.head()"),
        ("def f(a):\n  return a + z", "z = 1\nf(2)"),
        ("for i in range(3):\n  pass", "i", "with open('x') as f:\n  f", "f"),
        ("try:\n  1/0\nexcept Exception as e:\n  print(e)", "[x for x in range(3)]", "lambda y: y"),
        ("files = !ls", "%time y = 3", "print(y, files)", "display(1); _; In[1]; get_ipython()"),
        ("from numpy import *", "anything"),
        ("exec(code)",), ("%run other.py", "anything"), ("%%capture out\nx = 1", "out, x"),
        ("%%agent --out answer\ngo", "answer.text"),
        ("def f():\n  global h\n  h = 1\nf()", "h"),
        ("class A:\n  x: int = 1\n  def m(self):\n    return self.x", "A().m()"),
        ("a, (b, *c) = 1, (2, 3)", "(d := a)", "b, c, d"),
        ("async def g():\n  return 1", "await g()"),
        ("%matplotlib inline\nimport matplotlib.pyplot as plt", "plt.plot()"),
        ("no python at all",), ("df?",), ("!rm x",), ("%%bash\necho $x",),
    ],
)  # fmt: skip
def test_a_notebook_that_works_from_top_to_bottom_is_not_blamed(sources):
    assert missing(*sources) == {}


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        (("x.head()",), {"c0": {"x"}}),
        (("x = x + 1",), {"c0": {"x"}}),
        (("print(y)", "y = 1"), {"c0": {"y"}}),
        (("[i for i in rows]", "rows = []"), {"c0": {"rows"}}),
        (("def f():\n  return nowhere", "f()"), {"c0": {"nowhere"}}),
        (("import os", "with lock as held:\n  held, os"), {"c1": {"lock"}}),
        (("print(y)", "%run z.py"), {"c0": {"y"}}),
    ],
)
def test_a_name_from_a_deleted_cell_or_from_below_is_found(sources, names):
    assert missing(*sources) == names


@pytest.mark.slow
@settings(max_examples=100 * settings.default.max_examples // 100)
@given(st.text(max_size=60))
def test_any_text_is_taken(text):
    missing(text, text)


def test_the_look_runs_nothing():
    assert missing("import os\nos._exit(1)", "open('/nowhere/x', 'w')") == {}
