"""Why a run ended, in a sentence, and what the person can do next. One row a reason: no run ends without words."""

from __future__ import annotations

from dataclasses import dataclass

from nbagent.core.events import Reason

_WORDS: dict[Reason, tuple[str, str]] = {
    Reason.END_TURN: ("Done.", ""),
    Reason.MAX_TURNS: (
        "Stopped at the limit of turns before the model said it was done.",
        "Run another %%agent cell with “go on”, or give more room with --max-turns N.",
    ),
    Reason.BUDGET: ("Stopped: the budget is used up.", "Run another %%agent cell with a larger --budget to go on."),
    Reason.TIMEOUT: ("Stopped: the time limit of the run was reached.", "Go on in another cell, or raise --timeout."),
    Reason.REPEATED: (
        "Stopped: the model made the same call with the same result again and again.",
        "Say in the next %%agent cell what it should try instead.",
    ),
    Reason.DENIED: ("Stopped: you denied a call.", "Say in the next %%agent cell what to do instead."),
    Reason.INTERRUPTED: ("Stopped by you.", "Whatever had run stays; the next %%agent cell goes on from here."),
    Reason.REFUSAL: (
        "The model refused to answer this.",
        "Put the question differently, or try another model with -m.",
    ),
    Reason.MAX_TOKENS: (
        "The model's reply was cut off at its output limit.",
        "Run another %%agent cell with “go on, in smaller steps”.",
    ),
    Reason.CONTEXT_FULL: (
        "The conversation no longer fits the model's context window.",
        "Start a new session with %%agent --new.",
    ),
    Reason.HOOK: ("Stopped by a hook.", ""),
    Reason.CELL_GONE: (
        "Stopped: the agent's own cell was deleted.",
        "Whatever had run stays; the next %%agent cell goes on from here.",
    ),
    Reason.ERROR: (
        "The run ended with an error.",
        "Fix the cause, or try again in a minute if it was the server's, and run the cell again.",
    ),
}


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run ends; `detail` replaces the reason's own sentence where there is more to say."""

    reason: Reason
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The sentence for the person."""
        return self.detail or _WORDS[self.reason][0]

    @property
    def next_step(self) -> str:
        """What the person can do next; may be empty."""
        return _WORDS[self.reason][1]
