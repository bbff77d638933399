"""Numbers of a text are found in the outputs that show them, rounded as the text has them, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.tools.numbers import Shown, Source, Trace, cells_linked, numbers_in, summed_up, traced

CELLS = [
    Source("a", 1, "mean 5076.016260 n=1,234,567\n0.12391 -3.25 1e-05"),
    Source("b", 2, "342 rows", "limit = 65.5"),
]


def mark(trace: Trace) -> str:
    return f"<{trace.cell or trace.problem}>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5,076 g", "<a> g"),
        ("5076.0", "<a>"),
        ("5076.1", "<in no output>"),
        ("12.4 %", "<a>"),
        ("12.4", "<in no output>"),
        ("1.23 million rows", "<a> rows"),
        ("a drop of 3.25", "a drop of <a>"),
        ("342 (In[2])", "<b> (In[2])"),
        ("342 (In[1])", "<not in the output of In[1]> (In[1])"),
        ("342 (In[9])", "<there is no In[9]> (In[9])"),
        ("over 65.5", "over <b>"),  # it stands in the code
        ("two of 3 groups in 2024", "two of 3 groups in 2024"),
        ("`5077` [77](x) $99.5$ 2024-03-31 17:45 df42 1.2.3", "`5077` [77](x) $99.5$ 2024-03-31 17:45 df42 1.2.3"),
        ("| 342 | 343 |", "| <b> | <in no output> |"),
    ],
)
def test_a_number_is_traced_to_the_cell_that_shows_it(text, expected):
    assert traced(text, Shown(CELLS), mark)[0] == expected


@given(st.floats(-1e9, 1e9, allow_nan=False), st.integers(0, 4))
def test_any_number_is_found_again_however_it_is_rounded(value, digits):
    told = f"x {value:,.{digits}f}."
    found = traced(told, Shown([Source("a", 1, repr(value))]), mark)[1]
    assert all(trace.cell == "a" for trace in found), told


@given(st.text(max_size=200))
def test_no_text_is_changed_where_numbers_are_written_as_they_are(text):
    assert traced(text, Shown(CELLS), lambda trace: trace.number.text)[0] == text
    assert all(text[one.start : one.end] == one.text for one in numbers_in(text))


def test_cells_become_links_but_not_in_code_or_in_links():
    text = cells_linked("In[1], `In[1]`, [In[1]](#x), In[7]", {1: "abc"})
    assert text == "[In[1]](#nbagent-cell-abc), `In[1]`, [In[1]](#x), In[7]"


def test_the_sum_names_what_was_not_found():
    _, traces = traced("342 and 343", Shown(CELLS), mark)
    assert summed_up(traces) == "2 numbers looked up in the outputs; 1 not found: 343 (in no output)."
