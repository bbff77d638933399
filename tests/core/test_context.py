"""What the model is told of the notebook: all of it once, then what changed."""

from __future__ import annotations

from nbagent.core.context import NotebookMemory
from nbagent.core.ports import Cell


def cells(*specs: tuple[str, str, int | None]) -> list[Cell]:
    return [Cell(i, "code", source, at, number) for at, (i, source, number) in enumerate(specs)]


def test_first_an_overview_then_only_what_changed():
    memory = NotebookMemory()
    first = memory.news("a.ipynb", cells(("load", "df = 1", 1), ("me", "%%agent", None)), {"load": "out"}, "me")
    assert "a.ipynb" in first
    assert "load (In[1]):\ndf = 1\nOutput:\nout" in first
    assert memory.news("a.ipynb", cells(("load", "df = 1", 1), ("me", "%%agent", 2)), {}, "me") == ""
    told = memory.news("a.ipynb", cells(("load", "df = 2", 1), ("me", "%%agent", 2), ("new", "x", None)), {}, "me")
    assert "Edited cell load" in told
    assert "New cell new" in told


def test_running_the_same_agent_cell_again_does_not_call_it_deleted():
    memory = NotebookMemory()
    there = cells(("load", "df", 1), ("me", "%%agent", 2))
    memory.news("a", there, {}, None)
    assert memory.news("a", there, {}, "me") == ""


def test_a_cell_that_ran_again_and_one_that_is_gone_are_told():
    memory = NotebookMemory()
    memory.news("a", cells(("load", "df", 1), ("old", "x", 2)), {}, None)
    told = memory.news("a", cells(("load", "df", 5)), {"load": "42"}, None)
    assert "Cell load ran again (In[5]); its output now:\n42" in told
    assert "Deleted cells: old" in told


def test_what_a_run_touched_is_known_and_what_the_person_did_meanwhile_is_told():
    memory = NotebookMemory()
    memory.news("a", cells(("load", "df", 1)), {}, None)
    after = cells(("load", "df = 9", 1), ("agents", "y", 3), ("persons", "z", None))
    memory.learn([c for c in after if c.id == "agents"])
    told = memory.news("a", after, {}, None)
    assert "agents" not in told
    assert "Edited cell load" in told
    assert "New cell persons" in told


def test_a_long_notebook_is_cut_in_the_middle_with_a_count():
    many = cells(*[(f"c{i}", "x" * 300, None) for i in range(100)])
    told = NotebookMemory().news("a", many, {}, None)
    assert len(told) < 9_000
    assert "characters left out" in told


def test_cells_that_failed_are_named_once_however_little_room_there_is():
    memory = NotebookMemory()
    many = cells(*[(f"c{i}", "x" * 300, i) for i in range(1, 100)])
    told = memory.news("a", many, {}, None, {"c50": "NameError: name 'df' is not defined"})
    assert "Cells whose last run failed:\n- c50 (In[50]): NameError: name 'df' is not defined; it begins: xxx" in told
    assert "failed" not in memory.news("a", many, {}, None)


def test_a_cell_that_failed_again_is_named_again():
    memory = NotebookMemory()
    memory.news("a", cells(("c", "df", 1)), {"c": "KeyError"}, None, {"c": "KeyError: 'x'"})
    told = memory.news("a", cells(("c", "df", 4)), {"c": "KeyError"}, None, {"c": "KeyError: 'x'"})
    assert "- c (In[4]): KeyError: 'x'; it begins: df" in told


def test_the_cell_that_failed_last_comes_first_and_of_many_the_rest_is_counted():
    failing = {f"c{i}": "E" for i in range(14)}
    told = NotebookMemory().news("a", cells(*[(f"c{i}", "x", i) for i in range(14)]), {}, None, failing)
    listed = told.partition("last run failed:\n")[2].splitlines()
    assert listed[0].startswith("- c13")
    assert len(listed) == 11
    assert listed[-1] == "- and 4 more"
    assert "c13" not in NotebookMemory().news("a", cells(("me", "%%agent", 1)), {}, "me", {"c13": "E"})


def test_what_a_run_deleted_itself_is_not_told_as_deleted():
    memory = NotebookMemory()
    memory.news("a", cells(("one", "x", 1), ("two", "y", 2), ("three", "z", 3)), {}, None)
    memory.forget(["two"])
    told = memory.news("a", cells(("one", "x", 1)), {}, None)
    assert "Deleted cells: three" in told
    assert "two" not in told
