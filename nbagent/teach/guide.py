"""The answers in the instructor's guide (docs/instructor/NN_name.md), written from the lessons, so that they are never behind.

`python -m nbagent.teach.guide docs/instructor` writes them anew below the line `## Answers` of each page. Read `answers`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from nbagent.teach.exercises import Exercise, exercises_of
from nbagent.teach.lessons import LESSONS

HEAD = "## Answers"


def answers(number: str) -> str:
    """Return the answers of a lesson as Markdown: each exercise with its three hints and its answer, folded."""
    return "\n\n".join([HEAD, *(_folded(one) for one in exercises_of(number))]) + "\n"


def _folded(one: Exercise) -> str:
    hints = "\n".join(f"{place}. {text}" for place, text in enumerate(one.hints, start=1))
    return f"<details><summary>{one.id}: {one.task}</summary>\n\n{hints}\n\n```python\n{one.answer.strip()}\n```\n\n</details>"


def written(page: str, number: str) -> str:
    """Return the page with the answers of lesson `number` in place of those below its line `## Answers`."""
    return page.partition(HEAD)[0].rstrip() + "\n\n" + answers(number)


def main(folder: Path, numbers: Sequence[str] = ()) -> None:
    """Write the answers of the pages with these numbers (none: of all) in `folder` anew; a page is named as its notebook is."""
    for number in numbers or LESSONS:
        name = LESSONS[number]
        page = folder / f"{number}_{name}.md"
        page.write_text(written(page.read_text("utf-8"), number), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
