"""What every event has: the state of the loop, the turn, the time; and the words for how calls and runs end.

The kinds of events are in `events`, which has these names too. Read `Event`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar


class State(StrEnum):
    """What the loop is doing now."""

    THINK = "Think"
    ACT = "Act"
    OBSERVE = "Observe"
    DONE = "Done"


class Status(StrEnum):
    """How a call ended: only `OK` and `ERROR` ran to their end; `INTERRUPTED` ran in part; the rest did not run."""

    OK = "ok"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    DENIED = "denied"
    SKIPPED = "skipped"
    INVALID = "invalid"


class Reason(StrEnum):
    """Why a run ended."""

    END_TURN = "end_turn"
    MAX_TURNS = "max_turns"
    BUDGET = "budget"
    TIMEOUT = "timeout"
    REPEATED = "repeated_observation"
    DENIED = "denied"
    INTERRUPTED = "interrupted"
    REFUSAL = "refusal"
    MAX_TOKENS = "max_tokens"
    CONTEXT_FULL = "context_full"
    HOOK = "hook"
    CELL_GONE = "cell_gone"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events."""

    type: ClassVar[str] = "event"
    state: State
    turn: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopShown(Event):
    """From here on whoever shows the run shows its loop, too, with what the run's own events do not hold.

    That is what every request begins with: system prompt, tools, and the messages of earlier runs. Not of the loop's making, and not
    kept: whoever opens the loop adds it. `live`: while the run goes on, too, and not only in its record.
    """

    type: ClassVar[str] = "loop_shown"
    system: str = ""
    tools: tuple[dict[str, Any], ...] = ()
    messages: tuple[dict[str, Any], ...] = ()
    live: bool = True
