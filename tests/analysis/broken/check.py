"""Checks that the notebook runs from a clean kernel with the values it had, and that only what was broken was touched. Read `check`."""

from __future__ import annotations

from collections import defaultdict

from tests.analysis.desk import Facts, Work, hashes, is_ours
from tests.analysis.rules import frame, same, says


def check(work: Work, facts: Facts) -> None:
    """Compute both results from the rows with what the colleague had in the kernel."""
    assert not work.error, f"it does not run from a clean kernel: {work.error}"
    for name in ("result", "by_period"):
        assert name in work.clean, f"there is no {name!r} after a run from a clean kernel"
        assert name in work.live, f"there is no {name!r} in the kernel"
        assert same(work.live[name], work.clean[name]), f"{name!r} is another one after a run from a clean kernel"
    regions: dict[str, float] = defaultdict(float)
    periods: dict[str, float] = defaultdict(float)
    for region, period, amount in facts["rows"]:
        if amount > facts["value"] if isinstance(facts["value"], int) else region in facts["value"]:
            net = amount * (1 - 0.15) if "0.15" in facts["low"] else amount / 1.19
            regions[region] += net
            periods[period] += net
    for wanted, name in ((regions, "result"), (periods, "by_period")):
        found = frame(work, name)
        assert len(found) == len(wanted), f"{name!r} should have {len(wanted)} rows"
        for key, number in wanted.items():
            says(found, [key], number, within=1e-4, what=name)
    assert hashes(work.folder) == dict(work.before), "the data files are not as they were"
    _touched(work, facts)


def _touched(work: Work, facts: Facts) -> None:
    """Assert: the colleague's cells are all there, only the failing one is another, at most one was added, nothing failed at last."""
    cells = {cell.id: cell for cell in work.notebook.cells if not is_ours(cell)}
    for place, cell in enumerate(work.start):
        assert cell.id in cells, f"a cell of the colleague is gone: {cell.source}"
        assert place == facts["failing"] or cells[cell.id].source == cell.source, (
            f"a cell that works was changed: {cell.source}"
        )
    added = [cell for cell in cells.values() if cell.id not in {one.id for one in work.start}]
    assert sum(cell.cell_type == "code" for cell in added) <= 1, "more was added than what was gone"
    order = [cell.id for cell in work.notebook.cells]
    stayed = [cell.id for cell in work.start if cell.source != facts["low"]]
    assert [one for one in order if one in stayed] == stayed, "cells that stood right were moved"
    failed = [
        cell.source for cell in cells.values() if any(out.output_type == "error" for out in cell.get("outputs", []))
    ]
    assert not failed, f"a cell still shows an error: {failed[0]}"


SABOTAGES = {
    "guesses what is gone": (r"(?m)^limit = .+", "limit = 100", "result"),
    "hides what fails": (r"by_period = .+\nby_period", "pass", "no 'by_period'"),
    "changes a cell that works": (r"\.round\(2\)", ".round(3)", "was changed"),
    "leaves the cells as they stood": (r"discount = 0\.15", "", "clean kernel"),
}
