"""What lesson 14 says of the loop's own lines is counted in the file, not remembered."""

from __future__ import annotations

from nbagent.core import loop
from nbagent.teach.strangers import shown
from tests.source import ROOT


def test_lesson_14_says_how_many_yields_the_loop_has() -> None:
    lesson = (ROOT / "notebooks" / "14_find_the_loop.ipynb").read_text("utf-8")
    lit = shown(loop.run, "    yield ", around=1).lit
    assert f"In the loop itself there are {('five', 'six', 'seven')[len(lit) - 5]}." in lesson
