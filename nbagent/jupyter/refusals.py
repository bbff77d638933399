"""What was refused because nobody could be asked, so that a person who reads of it can allow it for the next run.

A kernel runs one cell at a time: where no click and no line can be taken while the agent's cell runs, `%agent allow 1`
can't reach it any more. So the call is denied at once, remembered as it was, and `%agent allow` keeps the rule for
exactly that call; running the agent's cell again then passes. Permissions are never read from a notebook: an allow that
stood in the file beforehand must not count. So each refusal gets a random code that is only shown when it happens, and
guessing drops them all. Must not know of policies or of what is run. Read `Refusals.take`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from nbagent.core.ports import Answered, Approval
from nbagent.jupyter.approval import PolicyApprover

_GUESSES = 3


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused call: its number in the run, from 1, and the code without which it can't be allowed."""

    number: int
    code: str
    approval: Approval

    @property
    def command(self) -> str:
        """What to run in a cell to allow it."""
        return f"%agent allow {self.number} {self.code}"


class Refusals:
    """The refused calls of the last run in this kernel, and what the person said of them until the next run."""

    def __init__(self, code: Callable[[], str] = lambda: secrets.token_hex(2)) -> None:
        self._code = code
        self._refused: list[Refusal] = []
        self._allowed: list[str] = []
        self._news: list[str] = []
        self._guesses = 0

    @property
    def open(self) -> tuple[Refusal, ...]:
        """The calls that can still be allowed or denied."""
        return tuple(self._refused)

    def begin(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Begin a run: return the rules to keep and the sentences to tell the model, and forget what was refused."""
        allowed, news = tuple(self._allowed), tuple(self._news)
        self._refused, self._allowed, self._news, self._guesses = [], [], [], 0
        return allowed, news

    def add(self, approval: Approval) -> None:
        """Remember a refused call, if a rule for exactly this call can be kept; the same call twice counts once."""
        known = {refusal.approval.offers[0] for refusal in self._refused}
        exact = bool(approval.offers) and "(" in approval.offers[0]  # else the narrowest rule is the whole tool
        if exact and approval.offers[0] not in known:
            self._refused.append(Refusal(len(self._refused) + 1, self._code(), approval))

    def take(self, number: int, code: str) -> Refusal | None:
        """Allow the call `number` if `code` is the one that was shown for it; return it, or None where it is not.

        After three wrong codes nothing can be allowed any more until a call is refused again.
        """
        found = next((refusal for refusal in self._refused if refusal.number == number), None)
        if found is None:
            return None
        if not secrets.compare_digest(found.code.encode(), code.encode()):
            self._guesses += 1
            if self._guesses >= _GUESSES:
                self._refused = []
            return None
        self.allow(found)
        return found

    def allow(self, refusal: Refusal) -> None:
        """Allow a call that the person has just seen and said yes to."""
        self._refused.remove(refusal)
        self._allowed.append(refusal.approval.offers[0])
        self._news.append(
            f"The person has since allowed a call that was refused, exactly as it was: {refusal.approval.tool} "
            f"({refusal.approval.title}). Make it again with the same input."
        )

    def deny(self, words: str) -> tuple[Refusal, ...]:
        """Drop all that was refused; `words` are told to the model in the next run."""
        dropped, self._refused = tuple(self._refused), []
        if words:
            titles = "; ".join(refusal.approval.title for refusal in dropped) or "what you did last"
            self._news.append(f"The person denied {titles}. They say: {words}")
        return dropped


class RememberingApprover(PolicyApprover):
    """Nobody can be asked while the cell runs: denies at once, and remembers the call for `%agent allow`."""

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals

    async def ask(self, approval: Approval) -> Answered:
        """Deny, and remember."""
        self._refusals.add(approval)
        return await super().ask(approval)
