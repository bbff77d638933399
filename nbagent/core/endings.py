"""Why a run ended, in a sentence, and what the person can do next. One row a reason: no run ends without words."""

from __future__ import annotations

from dataclasses import dataclass

from nbagent.core.events import Reason
from nbagent.core.messages import Json

_WORDS: dict[Reason, tuple[str, str]] = {
    Reason.END_TURN: ("Done.", ""),
    Reason.MAX_TURNS: (
        "Stopped at the limit of turns before the model said it was done.",
        "`%agent continue` goes on from here, and so does the button Continue; --max-turns N gives more room at once.",
    ),
    Reason.BUDGET: (
        "Stopped: the budget is used up.",
        "`%agent continue` goes on with as much again; --budget gives more at once.",
    ),
    Reason.TIMEOUT: (
        "Stopped: the time limit of the run was reached.",
        "`%agent continue` goes on from here; --timeout gives more at once.",
    ),
    Reason.REPEATED: (
        "Stopped: the model made the same call with the same result again and again.",
        "Say in the next %%agent cell what it should try instead.",
    ),
    Reason.DENIED: ("Stopped: you denied a call.", "Say in the next %%agent cell what to do instead."),
    Reason.INTERRUPTED: (
        "Stopped by you.",
        "Whatever had run stays. `%agent continue` goes on, or say in the next %%agent cell what to do instead.",
    ),
    Reason.REFUSAL: (
        "The model refused to answer this.",
        "Put it differently in this cell and run it again: what was refused is then no part of the conversation. Or try another model with -m.",
    ),
    Reason.MAX_TOKENS: (
        "The model's reply was cut off at its output limit.",
        "`%agent continue in smaller steps` goes on from here.",
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

GOES_ON = frozenset({
    Reason.MAX_TURNS, Reason.BUDGET, Reason.TIMEOUT, Reason.MAX_TOKENS, Reason.INTERRUPTED, Reason.REPEATED, Reason.ERROR,
})  # fmt: skip
"""Ends of runs that can be gone on with as they are."""


def refused(details: Json) -> str:
    """Return the sentence for a refusal, with what the server's `stop_details` say of it."""
    why, about = str(details.get("explanation") or ""), str(details.get("category") or "").replace("_", " ")
    said = why or (about and f"It is about: {about}.")
    return " ".join(filter(None, (_WORDS[Reason.REFUSAL][0], said)))


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
