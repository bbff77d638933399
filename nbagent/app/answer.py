"""The value of a `%%agent` cell. Its record is shown already, so showing the value shows nothing again."""

from __future__ import annotations

from dataclasses import dataclass

from nbagent.core.errors import NbagentError
from nbagent.core.events import RunEnded
from nbagent.core.messages import Usage


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run gave.

    `text` is the model's last words, `stop_reason` why the run ended (end_turn, max_turns, budget, timeout, denied …),
    `usage` its tokens, `cost` US dollars where the price is known, `cells` the ids of the cells that it added or ran.
    `replayed`: it is the answer of an earlier, finished run, and no model was asked; `stale` then says what of its inputs
    has changed since ("" for nothing). `not_compared` says what the run read that can't be compared when its cell is run
    again, such as the network ("" for nothing).
    """

    text: str
    stop_reason: str
    usage: Usage
    cost: float | None
    turns: int
    cells: tuple[str, ...]
    session_id: str
    replayed: bool = False
    stale: str = ""
    not_compared: str = ""

    @classmethod
    def of(
        cls, ended: RunEnded, session_id: str, *, replayed: bool = False, stale: str = "", not_compared: str = ""
    ) -> Answer:
        """Make the answer of a run's last event."""
        of_run = (ended.text, str(ended.reason), ended.usage, ended.cost, ended.turns, ended.cells, session_id)
        return cls(*of_run, replayed, stale, not_compared)

    def __str__(self) -> str:
        return self.text

    def _ipython_display_(self) -> None:
        """Show nothing: the cell's output is the record of the run."""


class RunFailed(NbagentError):
    """Fails the cell of a run that could not finish, without a traceback: the record above says it all."""

    def _render_traceback_(self) -> list[str]:
        return [f"nbagent: {str(self).splitlines()[0] if str(self) else 'the run could not finish'}"]


class Refused(NbagentError):
    """Fails the cell with one sentence and no traceback: no run began, or a bug of ours ended it without a record."""

    def _render_traceback_(self) -> list[str]:
        return [f"nbagent: {self}"]
