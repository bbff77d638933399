"""Ten tasks of an analyst, each on its data and on a twin that the script never saw: what stays is looked at, not what was said."""

from __future__ import annotations

import re

import pytest

from tests.analysis.conftest import Did
from tests.analysis.desk import TASKS, Task, code_of, rerun

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(300)]


@pytest.mark.parametrize(("name", "variant"), [(name, variant) for variant in ("data", "twin") for name in TASKS])
async def test_the_script_leaves_a_notebook_that_its_checker_accepts(name: str, variant: str, did: Did) -> None:
    work, facts = await did(name, variant)
    assert "Traceback" not in work.record, work.record
    Task(name).check(work, facts)


@pytest.mark.parametrize("name", TASKS)
async def test_the_checker_refuses_wrong_solutions(name: str, did: Did) -> None:
    work, facts = await did(name, "data")
    task = Task(name)
    assert len(task.sabotages) >= 2
    for wrong, (pattern, instead, complaint) in task.sabotages.items():
        changed, count = zip(*(re.subn(pattern, instead, source) for source in code_of(work)), strict=True)
        assert sum(count), f"{wrong}: nothing matches {pattern}"
        bad = await rerun(work, changed)
        try:
            task.check(bad, facts)
        except AssertionError as refused:
            assert re.search(complaint, str(refused)), f"{wrong}: {refused}"
        else:
            raise AssertionError(f"the checker of {name} accepts a solution that {wrong}:\n" + "\n\n".join(changed))
