"""When the lease of a claim has ended, judged without comparing the clocks of two machines.

Wall clocks of machines differ by seconds to minutes and jump, so a time that one machine wrote says nothing on another.
An owner instead counts up `Task.beat` (a sign of life), and whoever looks at the board measures on its own monotonic clock
for how long the beat has stayed the same: after `Task.lease` seconds of watching, the task may be freed. A watcher that
has just come must watch for a whole lease first: a dead owner's task is free a little later, and a live one's never. A
watcher that was itself away (a busy kernel, a laptop asleep) begins anew, for it can't know who else was away.

Freeing names the beat that was seen (`Board.free`), so a sign of life in between saves the claim; and a freed owner that
was alive all the same is refused by the number of its claim. Read `Watch.look`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nbagent.core.board import Board

AWAY = 0.5
"""A watcher that did not look for this part of a lease has been away."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What one watcher has seen: for each task in progress its beat, and since when; `at` is its last look (own clock)."""

    seen: Mapping[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    at: float = float("-inf")

    def look(self, board: Board, now: float) -> Watch:
        """Return what is known after looking at `board`; `now` are seconds of a clock that never jumps."""
        seen: dict[str, tuple[int, float]] = {}
        for task in board.tasks:
            if task.state != "in_progress":
                continue
            beat, since = self.seen.get(task.id, (-1, now))
            was_away = now - self.at > task.lease * AWAY
            seen[task.id] = (task.beat, now if beat != task.beat or was_away else since)
        return Watch(seen, now)

    def overdue(self, board: Board) -> dict[str, int]:
        """Return the tasks whose lease had ended at the last look, with the beat that they have had for too long."""
        leases = {task.id: task.lease for task in board.tasks if task.state == "in_progress"}
        return {
            id_: beat for id_, (beat, since) in self.seen.items() if id_ in leases and self.at - since >= leases[id_]
        }
