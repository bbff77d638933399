"""What a clean run shows is judged cell by cell, with the reason that a person can act on."""

from __future__ import annotations

from typing import Any

import pytest

from nbagent.core.ports import Cell
from nbagent.tools.marks import as_stale
from nbagent.tools.verdict import BROKEN, RUNS, STOPPED, VERIFIED, Came, Evidence, Verdict, hash_of, judge, verdict_of


def value(text: str) -> tuple[dict[str, Any], ...]:
    return ({"output_type": "execute_result", "data": {"text/plain": text}, "metadata": {}, "execution_count": 1},)


def error(name: str, text: str) -> tuple[dict[str, Any], ...]:
    return ({"output_type": "error", "ename": name, "evalue": text, "traceback": []},)


def cell(place: int, source: str, shown: str = "", number: int | None = -1) -> Cell:
    """A code cell “c0”, “c1” … that showed a value; its number is its place unless another is given."""
    return Cell(
        f"c{place}", "code", source, place, place + 1 if number == -1 else number, value(shown) if shown else ()
    )


def came(*texts: str | tuple[dict[str, Any], ...]) -> dict[str, Came]:
    return {f"c{n}": Came(value(t) if isinstance(t, str) and t else t or (), 0.1) for n, t in enumerate(texts)}  # type: ignore[arg-type]


def said(verdict: Verdict, place: int) -> str:
    return " ".join(verdict.cells[place].said)


def test_a_notebook_whose_cells_all_show_the_same_is_verified() -> None:
    verdict = judge([cell(0, "x = 1\nx", "1"), cell(1, "x + 1", "2")], came("1", "2"))
    assert (verdict.kind, verdict.headline) == (VERIFIED, "Verified from a clean kernel: all 2 cells show the same.")
    assert verdict.edges == (("c0", "c1", "x"),)


def test_a_changed_output_is_not_reproducible_and_says_what_came_instead() -> None:
    verdict = judge([cell(0, "x", "5"), cell(1, "2", "2")], came("4", "2"))
    assert verdict.kind == BROKEN
    assert "In[1] shows something else (1 of 2 cells show the same)" in verdict.headline
    assert "“5” → “4”" in said(verdict, 0)


def test_a_cell_that_two_clean_runs_give_differently_is_random_and_gets_a_seed() -> None:
    cells = [cell(0, "np.random.rand()", "0.1"), cell(1, "1", "1")]
    verdict = judge(cells, came("0.2", "1"), came("0.3", "1"))
    assert (verdict.kind, verdict.cells[0].state) == (RUNS, "random")
    assert "np.random.seed(0)" in said(verdict, 0)
    tried = judge(cells, came("0.2", "1"), came("0.3", "1"), Evidence(seeded=frozenset()))
    assert "does not change that" in said(tried, 0)


@pytest.mark.parametrize(
    ("sources", "failing", "output", "why"),
    [
        (("y", "z = 1"), 0, error("NameError", "name 'y' is not defined"), "No cell makes `y`"),
        (("y", "y = 1"), 0, error("NameError", "name 'y' is not defined"), "made only in In[2] below it"),
        (("y = 1", "del y", "y"), 2, error("NameError", "name 'y' is not defined"), "A cell above it deletes `y`"),
        (("import q",), 0, error("ModuleNotFoundError", "No module named 'q'"), "package q is not installed"),
        (("open('a')",), 0, error("FileNotFoundError", "[Errno 2] No such file or directory: 'a'"), "The file a is not there"),
    ],
)  # fmt: skip
def test_why_a_cell_fails_is_told(sources: tuple[str, ...], failing: int, output: Any, why: str) -> None:
    cells = [cell(n, source) for n, source in enumerate(sources)]
    results: list[Any] = [()] * len(cells)
    results[failing] = output
    verdict = judge(cells, came(*results))
    assert verdict.kind == BROKEN
    assert verdict.headline.startswith(f"Not reproducible: In[{failing + 1}] fails (")
    assert why in said(verdict, failing)


def test_a_failure_that_comes_from_another_cell_names_that_cell() -> None:
    cells = [cell(0, "x = 1/0"), cell(1, "x")]
    verdict = judge(
        cells, came(error("ZeroDivisionError", "division by zero"), error("NameError", "name 'x' is not defined"))
    )
    assert "In[1], which makes `x`, failed" in said(verdict, 1)


def test_cells_that_never_ran_or_were_edited_since_have_nothing_to_compare() -> None:
    stale = Cell("c1", "code", "2", 1, 2, as_stale(value("1")))
    verdict = judge([cell(0, "1", number=None), stale], came("1", "2"))
    assert [c.state for c in verdict.cells] == ["new", "new"]
    assert "never run" in said(verdict, 0) and "edited after it ran" in said(verdict, 1)
    assert not verdict.verified


def test_an_edit_is_seen_by_what_the_kernel_ran_unless_the_numbers_are_another_kernels() -> None:
    cells = [cell(0, "1", "1"), cell(1, "2", "2"), cell(2, "3", "3")]
    mine = judge(cells, came("1", "2", "30"), None, Evidence({1: "1", 2: "2", 3: "old"}))
    assert [c.state for c in mine.cells] == ["same", "same", "new"]
    assert judge(cells, came("1", "2", "3"), None, Evidence({1: "a", 2: "b", 3: "c"})).verified


def test_a_cell_that_was_edited_and_shows_the_same_all_the_same_is_verified_and_told() -> None:
    verdict = judge([cell(0, "1", "1"), cell(1, "2", "2")], came("1", "2"), None, Evidence({1: "1", 2: "1 + 1"}))
    assert verdict.verified and "edited after it ran, and shows the same" in said(verdict, 1)


def test_cells_run_out_of_order_are_told() -> None:
    verdict = judge([cell(0, "1", "1", 5), cell(1, "2", "2", 3)], came("1", "2"))
    assert "In[5] stands above In[3]" in " ".join(verdict.notes)


def test_agents_cells_and_loading_are_left_out() -> None:
    cells = [cell(0, "%load_ext nbagent"), cell(1, "%%agent\nplot"), cell(2, "1", "1"), cell(3, "%agent status")]
    verdict = judge(cells, {"c2": Came(value("1"))})
    assert verdict.verified
    assert [c.state for c in verdict.cells] == ["skipped", "skipped", "same", "skipped"]
    assert "left out (In[2]); the cells that they added ran" in " ".join(verdict.notes)
    assert "left out" not in verdict.text().partition("Agent cells")[0], "one line, whatever their number"


def test_a_run_that_was_cut_off_verifies_nothing() -> None:
    verdict = judge([cell(0, "1", "1"), cell(1, "2", "2")], came("1"))
    assert (verdict.kind, verdict.cells[1].state) == (STOPPED, "not run")
    assert judge([], {}).kind == STOPPED


def test_missing_files_are_told_where_the_code_did_not_fail() -> None:
    verdict = judge([cell(0, "1", "1")], came("1"), None, Evidence(missing={"c0": ("a.csv",)}))
    assert "a.csv is not there" in said(verdict, 0)


def test_the_hash_is_of_the_code_alone_and_of_all_of_it() -> None:
    cells = [cell(0, "1"), cell(1, "%%agent\nx"), Cell("m", "markdown", "text", 2)]
    assert hash_of(cells) == hash_of([cell(0, "1", "7", 3)])
    assert hash_of(cells) != hash_of([cell(0, "2")])


def test_a_verdict_comes_back_from_json_and_what_is_none_is_none() -> None:
    verdict = judge([cell(0, "1", "2")], came("1"))
    assert verdict_of(verdict.to_json()) == verdict
    assert verdict_of({"cells": [{"a": 1}]}) is None and verdict_of(None) is None


def test_the_text_for_the_model_has_the_hash_and_stays_short() -> None:
    cells = [cell(n, f"{n}", f"{n}0") for n in range(300)]
    text = judge(cells, came(*(str(n) for n in range(300)))).text()
    assert "Hash of the code: " in text and len(text) < 12_000


def test_a_cell_of_comments_only_is_not_told_to_have_never_run() -> None:
    verdict = judge(
        [cell(0, "# left out\n# for now", number=None), cell(1, "x = 1", number=None)], {"c0": Came(()), "c1": Came(())}
    )
    assert said(verdict, 0) == "" and "never run" in said(verdict, 1)
