"""The measurement of a large table (tests/benchmarks/big_table.py), small: each tool answers, and no answer is long."""

from __future__ import annotations

import pytest

from tests.benchmarks.big_table import measured


@pytest.mark.slow
async def test_each_tool_that_looks_answers_in_a_few_kilobytes(tmp_path):
    answers, _, data = await measured(300_000, tmp_path)
    assert {"list_variables", "inspect_variable", "profile_table", "read_data_head"} <= {name for name, _, _ in answers}
    assert all(0 < size < 6_000 for _, _, size in answers)
    assert data > 0
