"""Notebooks are merged cell by cell by id: what one side did is kept, what both did to one cell is reported."""

from __future__ import annotations

import json
from copy import deepcopy

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.extend.cellorder import merged_order
from nbagent.extend.conflicts import Conflict
from nbagent.extend.nbmerge import merge_files, merge_notebooks, problem_of


def code(name, source, out=None, count=None, **metadata):
    outputs = [] if out is None else [{"output_type": "stream", "name": "stdout", "text": out}]
    cell = {"cell_type": "code", "execution_count": count, "metadata": metadata, "outputs": outputs, "source": source}
    return {**cell, "id": name} if name else cell


def text(name, source):
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def notebook(*cells, minor=5, **metadata):
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}


def sources(merged):
    return ["".join(cell["source"]) for cell in merged["cells"]]


def ids(merged):
    return [cell["id"] for cell in merged["cells"]]


A, B, C = code("a", "x = 1"), code("b", "y = 2"), text("c", "# End")
BASE = notebook(A, B, C)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([code("a", "x = 10"), B, C], [A, B, text("c", "# Fin")], ["x = 10", "y = 2", "# Fin"]),
        ([C, A, B], [A, B, text("c", "# Fin")], ["# Fin", "x = 1", "y = 2"]),  # one moves what the other edits
        ([A, B, C, code("n", "n")], [A, B, C, code("m", "m")], ["x = 1", "y = 2", "# End", "n", "m"]),
        ([code("n", "n"), A, B, C], [code("m", "m"), A, B, C], ["n", "m", "x = 1", "y = 2", "# End"]),
        ([A, code("n", "n"), B, C], [A, B, code("m", "m"), C], ["x = 1", "n", "y = 2", "m", "# End"]),
        ([A, C], [A, B, C, code("m", "m")], ["x = 1", "# End", "m"]),
        ([A, C], [B, C], ["# End"]),
        ([A, code("b", "z"), C], [A, code("b", "z"), C], ["x = 1", "z", "# End"]),
        ([B, A, C], [A, B, C, code("m", "m")], ["y = 2", "x = 1", "# End", "m"]),
        ([A, B, C, code("n", "same")], [A, B, C, code("n", "same")], ["x = 1", "y = 2", "# End", "same"]),
        ([text("a", "x = 1"), B, C], [A, B, C], ["x = 1", "y = 2", "# End"]),
    ],
)
def test_what_each_side_did_to_other_cells_is_kept(ours, theirs, expected):
    merged, conflicts = merge_notebooks(BASE, notebook(*ours), notebook(*theirs))
    assert (sources(merged), conflicts) == (expected, ())


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        ([code("a", "x = 10"), B, C], [code("a", "x = 11"), B, C], ("a", "x = 1", "x = 10", "x = 11")),
        ([B, C], [code("a", "x = 11"), B, C], ("a", "x = 1", None, "x = 11")),
        ([code("a", "x = 10"), B, C], [B, C], ("a", "x = 1", "x = 10", None)),
        ([A, B, C, code("n", "1")], [A, B, C, code("n", "2")], ("n", None, "1", "2")),
        ([text("a", "x = 1"), B, C], [code("a", "x = 3"), B, C], ("a", "x = 1", "x = 1", "x = 3")),
    ],
)
def test_a_cell_that_both_changed_is_reported_with_both_sides(ours, theirs, told):
    _, conflicts = merge_notebooks(BASE, notebook(*ours), notebook(*theirs))
    assert [(c.id, c.base, c.ours, c.theirs) for c in conflicts] == [told]
    for side, expected in (("ours", told[2]), ("theirs", told[3])):
        merged, left = merge_notebooks(BASE, notebook(*ours), notebook(*theirs), side)
        found = {cell["id"]: cell["source"] for cell in merged["cells"]}
        assert (found.get(told[0]), left) == (expected, ())


def test_outputs_come_with_the_source_that_made_them_and_never_conflict():
    def outcome(base, ours, theirs):
        merged, conflicts = merge_notebooks(notebook(base), notebook(ours), notebook(theirs))
        (cell,) = merged["cells"]
        assert conflicts == ()
        return cell["source"], cell["outputs"][0]["text"] if cell["outputs"] else None, cell["execution_count"]

    old = code("a", "x", "old", 1)
    assert outcome(old, code("a", "y", "ours", 2), code("a", "x", "theirs", 3)) == ("y", "ours", 2)
    assert outcome(old, code("a", "x", "ours", 2), code("a", "y", "theirs", 3)) == ("y", "theirs", 3)
    assert outcome(old, code("a", "y"), code("a", "x", "theirs", 3)) == ("y", None, None)
    assert outcome(old, code("a", "x", "ours", 2), code("a", "x", "theirs", 3)) == ("x", "theirs", 3)
    assert outcome(old, code("a", "x", "ours", 2), old) == ("x", "ours", 2)
    assert outcome(old, code("a", "y", "ours", 2), code("a", "y", "theirs", 3)) == ("y", "theirs", 3)


def test_metadata_is_merged_key_by_key_and_never_conflicts():
    ours = notebook(code("a", "x = 1", tags=["ours"], deep={"one": 1}), kernelspec={"name": "p"}, left=1)
    theirs = notebook(code("a", "x = 1", tags=["theirs"], deep={"two": 2}), kernelspec={"name": "q"}, right=2)
    base = notebook(code("a", "x = 1", gone=True, deep={}), kernelspec={"name": "p"})
    merged, conflicts = merge_notebooks(base, ours, theirs)
    assert merged["cells"][0]["metadata"] == {"tags": ["theirs"], "deep": {"one": 1, "two": 2}}
    assert merged["metadata"] == {"kernelspec": {"name": "q"}, "left": 1, "right": 2}
    assert conflicts == ()


def test_cells_without_ids_are_paired_by_their_text():
    def old(*texts):
        return notebook(*(code("", one) for one in texts), minor=4)

    base = old("import pandas as pd", "rows = read()", "plot(rows)")
    ours = old("import pandas as pd", "import numpy", "rows = read()", "plot(rows)")
    theirs = old("import pandas as pd", "rows = read('a')", "plot(rows)")
    merged, conflicts = merge_notebooks(base, ours, theirs)
    assert sources(merged) == ["import pandas as pd", "import numpy", "rows = read('a')", "plot(rows)"]
    assert conflicts == ()
    assert all("id" not in cell for cell in merged["cells"])
    _, conflicts = merge_notebooks(base, old("import pandas as pd", "rows = read('b')", "plot(rows)"), theirs)
    assert [(c.id, c.ours, c.theirs) for c in conflicts] == [("", "rows = read('b')", "rows = read('a')")]
    moved = old("plot(rows)", "import pandas as pd", "rows = read()")
    assert sources(merge_notebooks(base, moved, theirs)[0]) == ["plot(rows)", "import pandas as pd", "rows = read('a')"]


def test_a_side_that_was_upgraded_to_ids_is_paired_with_one_that_was_not():
    base = notebook(code("", "x = 1"), code("", "y = 2"), minor=4)
    ours = notebook(code("p", "x = 1"), code("q", "y = 2"), minor=5)
    theirs = notebook(code("", "x = 1"), code("", "y = 22"), code("", "z"), minor=4)
    merged, conflicts = merge_notebooks(base, ours, theirs)
    assert sources(merged) == ["x = 1", "y = 22", "z"]
    assert (merged["nbformat_minor"], conflicts) == (5, ())
    assert ids(merged)[:2] == ["p", "q"]
    nbformat.validate(nbformat.from_dict(merged))
    assert merge_notebooks(base, ours, theirs) == (merged, ())


def test_an_id_that_is_there_twice_is_told_apart():
    twice = notebook(code("a", "1"), code("a", "2"))
    merged, conflicts = merge_notebooks(twice, twice, notebook(code("a", "1"), code("a", "3")))
    assert (sources(merged), conflicts) == (["1", "3"], ())
    assert len(set(ids(merged))) == 2


# ── any notebooks ────────────────────────────────────────────────────────────────────────────────────────────────────

NAMES = "abcdef"
EDIT = st.tuples(st.sampled_from(["edit", "delete", "move", "run"]), st.integers(0, 5), st.integers(0, 5))


def edited(cells, edits, who, allowed):
    """The cells after edits by one side, which leaves alone what is not `allowed`; each insert has the side's own ids."""
    cells = deepcopy(cells)
    for n, (what, which, where) in enumerate(edits):
        name = NAMES[which]
        at = next((i for i, cell in enumerate(cells) if cell["id"] == name), None)
        if at is None or name not in allowed:
            cells.insert(min(where, len(cells)), code(f"{who}{n}", f"{who} new {n}", f"{who} out"))
        elif what == "edit":
            cells[at] = code(name, f"{who} {n}", f"{who} {n}")
        elif what == "delete":
            del cells[at]
        elif what == "move":
            cells.insert(where, cells.pop(at))
        else:
            cells[at] = code(name, cells[at]["source"], f"{who} ran {n}", n)
    return cells


def contents(cells):
    return {cell["id"]: (cell["source"], json.dumps(cell["outputs"])) for cell in cells}


@given(st.lists(EDIT, max_size=6), st.lists(EDIT, max_size=6), st.sets(st.sampled_from(NAMES)))
def test_edits_of_different_cells_are_all_kept(our_edits, their_edits, mine):
    base = [code(name, name, name) for name in NAMES]
    ours = edited(base, our_edits, "o", mine)
    theirs = edited(base, their_edits, "t", set(NAMES) - mine)
    merged, conflicts = merge_notebooks(notebook(*base), notebook(*ours), notebook(*theirs))
    assert conflicts == ()
    expected = {
        name: (contents(ours) if name in mine else contents(theirs)).get(name)
        for name in [*NAMES, *contents(ours), *contents(theirs)]
    }
    expected |= {k: v for side in (ours, theirs) for k, v in contents(side).items() if k not in NAMES}
    assert contents(merged["cells"]) == {name: value for name, value in expected.items() if value is not None}
    nbformat.validate(nbformat.from_dict(merged))


@given(st.lists(EDIT, max_size=8), st.booleans())
def test_what_only_one_side_did_is_the_merge_in_its_order(edits, as_ours):
    base = [code(name, name, name) for name in NAMES]
    side = edited(base, edits, "s", set(NAMES))
    ours, theirs = (side, base) if as_ours else (base, side)
    merged, conflicts = merge_notebooks(notebook(*base), notebook(*ours), notebook(*theirs))
    assert (merged["cells"], conflicts) == (side, ())


@given(st.lists(EDIT, max_size=8), st.lists(EDIT, max_size=8), st.sampled_from(["ours", "theirs", None]))
def test_any_merge_is_a_notebook_and_loses_no_cell_silently(our_edits, their_edits, side):
    base = [code(name, name, name) for name in NAMES]
    ours, theirs = (edited(base, edits, who, set(NAMES)) for edits, who in ((our_edits, "o"), (their_edits, "t")))
    versions = [notebook(*base), notebook(*ours), notebook(*theirs)]
    before = deepcopy(versions)
    merged, conflicts = merge_notebooks(*versions, side)
    assert versions == before
    assert merge_notebooks(*versions, side) == (merged, conflicts)
    nbformat.validate(nbformat.from_dict(merged))
    told = {conflict.id for conflict in conflicts}
    was, our, their, now = (contents(cells) for cells in (base, ours, theirs, merged["cells"]))
    changed = {n for n in was if n in our and n in their and len({x[n][0] for x in (was, our, their)}) == 3}
    gone = {n for n in was if (n in our) != (n in their) and (our.get(n) or their.get(n))[0] != was[n][0]}
    assert told == (set() if side else changed | gone)
    for name, source in now.items():
        assert source in {x.get(name) for x in (our, their)}


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_an_order_has_each_thing_once_whatever_was_moved(ours, theirs):
    merged = merged_order(range(6), ours, theirs, set(range(6)))
    assert sorted(merged) == list(range(6))


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_written_in_the_way_that_ours_is():
    theirs = json.dumps(notebook(A, B, text("c", "# Ende ✓")), indent=1).encode()
    base = json.dumps(BASE, indent=1).encode()
    for how in ({"indent": 1, "ensure_ascii": False}, {"indent": 2}, {"indent": None}):
        ours = notebook(code("a", "é = 1"), B, C)
        data = (json.dumps(ours, **how) + "\n").encode()
        merged = merge_files("n.ipynb", base, data, theirs, None)
        assert merged == (json.dumps(notebook(code("a", "é = 1"), B, text("c", "# Ende ✓")), **how) + "\n").encode()


def test_a_conflict_of_files_names_its_cells_and_has_all_three_texts():
    versions = [json.dumps(notebook(code("a", s), B)).encode() for s in ("x", "ours", "theirs")]
    told = merge_files("n.ipynb", *versions, None)
    assert isinstance(told, Conflict)
    assert [(h.where, h.base, h.ours, h.theirs) for h in told.hunks] == [("cell 1 (id a)", "x", "ours", "theirs")]
    assert told.sentence == "n.ipynb (cell 1 (id a))"
    assert told.theirs == versions[2].decode()


@pytest.mark.parametrize(
    "bad", [b"", b"<<<<<<< x", b"[]", b'{"nbformat": 3}', b'{"nbformat": 4, "cells": [1]}', b"\xff"]
)
def test_what_is_no_notebook_is_not_merged_as_one(bad):
    good = json.dumps(BASE).encode()
    assert merge_files("n.ipynb", good, good, bad, None) is None
    assert problem_of(bad)
    assert problem_of(good) == ""


def test_a_notebook_that_both_added_is_merged_without_a_base():
    both = [json.dumps(notebook(A, code(name, name)), indent=1).encode() for name in ("n", "m")]
    merged = merge_files("n.ipynb", None, *both, None)
    assert isinstance(merged, bytes)
    assert sources(json.loads(merged)) == ["x = 1", "n", "m"]
