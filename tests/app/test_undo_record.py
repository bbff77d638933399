"""The record of a run says whether the run is taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nbagent.app.undo_record import stamped
from nbagent.extend.checkpoints import Head
from tests.conformance.notebook_kit import stream

if TYPE_CHECKING:
    from collections.abc import Callable

HTML = (
    '<div style="padding-left:.5em"><p>answer</p><br><a href="#nbagent-undo-run-12">%agent undo</a> takes this run back · '
    '<a href="#nbagent-again-run-12">Run again</a> asks the model anew</div>'
)
RECORD = {
    "output_type": "display_data",
    "data": {"text/html": HTML, "text/markdown": "answer\n", "text/plain": "answer"},
    "metadata": {},
}
UNDONE = Head("run-12", 1.0, "go", "w.ipynb", "own", "k", ("cells", "files", "names"), 2.0)
DONE = Head("run-12", 1.0, "go", "w.ipynb", "own", "k")


def test_the_record_says_that_its_run_was_taken_back_and_comes_back_to_what_it_was() -> None:
    back = stamped(RECORD, UNDONE, "Taken back: …\n  removed In[3] “<b>x</b>”")
    html = back["data"]["text/html"]
    assert html.startswith('<div style="padding-left:.5em"><!--taken back--><p><b>Taken back at ')
    assert "“&lt;b&gt;x&lt;/b&gt;”" in html
    assert '<a href="#nbagent-redo-run-12">%agent redo</a> does it again' in html
    assert "nbagent-undo" not in html
    assert back["data"]["text/plain"].startswith("Taken back at ")
    assert stamped(back, UNDONE, "Taken back: …\n  removed In[3] “<b>x</b>”") == back
    assert stamped(back, DONE, "") == RECORD


@pytest.mark.parametrize(
    "change",
    [
        lambda output: {**output, "data": {**output["data"], "text/html": HTML.replace("run-12", "run-123")}},
        lambda output: {**output, "data": {"text/plain": "answer"}},
        lambda _: stream("printed"),
    ],
)
def test_an_output_that_is_not_the_runs_record_stays_as_it_is(change: Callable[[Any], Any]) -> None:
    other = change(RECORD)
    assert stamped(other, UNDONE, "") is other
