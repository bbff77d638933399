"""The instructor's guide has a page a notebook, and its answers are those that the notebook's checks accept."""

from __future__ import annotations

import pytest

from nbagent.teach import guide
from nbagent.teach.lessons import LESSONS
from tests.source import ROOT

PAGES = ROOT / "docs" / "instructor"


@pytest.mark.parametrize("number", LESSONS)
def test_a_page_of_the_guide_has_aim_time_pitfalls_and_the_lessons_own_answers(number: str) -> None:
    page = (PAGES / f"{number}_{LESSONS[number]}.md").read_text("utf-8")
    assert all(f"**{what}" in page for what in ("Aim", "Time", "Ask", "Pitfalls")), number
    assert guide.written(page, number) == page, "python -m nbagent.teach.guide docs/instructor"


def test_the_course_page_names_every_notebook() -> None:
    course = (ROOT / "docs" / "course.md").read_text("utf-8")
    missing = [name for number, name in LESSONS.items() if f"../notebooks/{number}_{name}.ipynb" not in course]
    missing += [name for number, name in LESSONS.items() if f"instructor/{number}_{name}.md" not in course]
    assert missing == []
