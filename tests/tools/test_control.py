"""Reading a long result on."""

from __future__ import annotations

import pytest

from nbagent.core.errors import ToolError
from nbagent.core.tools import Kind
from nbagent.tools import control
from nbagent.tools.results import ResultStore
from tests.tools.calling import Calling


async def test_a_kept_result_is_read_on_page_by_page():
    store = ResultStore()
    ref = store.keep("0123456789" * 3000)
    call = Calling(control.tools(store))
    assert (await call.text("read_result", ref=ref, offset=29_995)).startswith("56789")
    first = await call.text("read_result", ref=ref)
    assert first.startswith("0123456789" * 1000)
    assert "offset=10000" in first
    assert (await call.text("read_result", ref=ref, limit=999_999)) == first
    assert call.kind("read_result", ref=ref) is Kind.READ


async def test_an_unknown_reference_names_the_known_ones():
    store = ResultStore()
    ref = store.keep("x")
    with pytest.raises(ToolError, match=ref):
        await Calling(control.tools(store))("read_result", ref="nope")
