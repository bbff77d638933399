"""The rows of one map as they come in: what became of each input, what all of them sum up to, and what failed.

Pure but for its own state, which is told and never looks: files are others' to read. Must not know how jobs are given out.
Read `Rows.take`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nbagent.app.jobs import Outcome
from nbagent.app.mapfields import Fields
from nbagent.app.mapinputs import Asked
from nbagent.app.maptable import Row, Status, Table
from nbagent.core.endings import Ending
from nbagent.core.events import Reason
from nbagent.core.messages import Json
from nbagent.view.maptable import Totals

STOPPED = "Stopped before it was finished; the same map with resume= goes on with it."
CHANGED = "Its file has changed since; again='changed' runs it anew."
NO_FIELDS = "The run ended without an answer in the fields that were asked for."
PUT_OFF = frozenset({str(Reason.INTERRUPTED), str(Reason.BUDGET), ""})
"""Ends of a run after which it is only put off."""


def judged(outcome: Outcome) -> tuple[Status, str]:
    """Return the status of a row, and what went wrong in a sentence."""
    reason, problem = outcome.stop_reason, outcome.problem
    if outcome.status == "failed":
        return "failed", problem or "It failed."
    if reason == str(Reason.END_TURN):
        return "done", problem
    if reason in PUT_OFF:
        return "stopped", problem or STOPPED
    return "failed", problem or Ending(Reason(reason)).sentence


class Rows:
    """The rows of the inputs `asked`. `fields`: those that answers must have; `copies`: where copies of notebooks lie."""

    def __init__(self, asked: Sequence[Asked], fields: Fields | None, copies: Path | None) -> None:
        self._asked, self._copies = asked, copies
        self._names: Json = dict.fromkeys(fields.names) if fields is not None else {}
        self._rows: dict[int, Row] = {}
        self._states: Counter[str] = Counter()
        self._turns = 0
        self.begun: set[int] = set()
        """The numbers of the inputs whose runs have begun."""
        self.problems: list[str] = []
        """What failed, a line each, newest last."""

    def take(self, asked: Asked, outcome: Outcome, fields: Json | None, *, changed: bool = False) -> Row:
        """Take what became of an input, and return its row. `changed`: its file is another one by now."""
        status, problem = self.status(outcome, fields)
        if changed:
            problem = " ".join(filter(None, (problem, CHANGED)))
        results: Json = {
            "answer": outcome.answer, "status": status, "stop_reason": outcome.stop_reason, "turns": outcome.turns,
            "tokens": outcome.usage.total, "cost": outcome.cost, "session": outcome.session,
            "seconds": outcome.seconds, "problem": problem,
        }  # fmt: skip
        row = Row.of(self._given(asked), {**self._names, **(fields or {})}, results)
        self._rows[asked.item.index] = row
        self._states[status] += 1
        self._turns += outcome.turns
        if status == "failed":
            self.problems.append(f"{asked.item.text}: {problem}")
        return row

    def status(self, outcome: Outcome, fields: Json | None) -> tuple[Status, str]:
        """Return what became of an input, and what went wrong: also where the fields of its answer are missing."""
        status, problem = judged(outcome)
        missing = status == "done" and bool(self._names) and fields is None
        return ("failed", NO_FIELDS) if missing else (status, problem)

    def table(self, folder: Path) -> Table:
        """Return all rows as they are now, in the order of the inputs; what has not come to an end is not run."""
        return Table([self._rows.get(one.item.index) or self._open(one) for one in self._asked], str(folder))

    @property
    def totals(self) -> Totals:
        """How many rows have come to which end; what they cost is the hub's to say."""
        states = self._states
        return Totals(len(self._asked), states["done"], states["failed"], states["stopped"], turns=self._turns,
                      waiting=len(self._asked) - states.total())  # fmt: skip

    def _given(self, asked: Asked) -> Json:
        item = asked.item
        copy = {"notebook": str(self._copies / "jobs" / asked.key / Path(item.path).name)} if self._copies else {}
        return {**item.shown, **(copy if item.kind == "notebook" else {})}

    def _open(self, asked: Asked) -> Row:
        begun = asked.item.index in self.begun
        results: Json = {"answer": "", "status": "stopped" if begun else "not run", "stop_reason": "", "turns": 0, "tokens": 0,
                         "cost": None, "session": "", "seconds": 0.0, "problem": STOPPED if begun else ""}  # fmt: skip
        return Row.of(self._given(asked), self._names, results)
