"""What a run asks the person now, one value a card; and the card for it.

Whoever shows a run's cards in a second place (the tray) gets these from `AgentView.asks`. Knows nothing of where cards
stand. Read `Ask`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbagent.core.shown import visible_plain
from nbagent.view import asking
from nbagent.view.cards import ApprovalCard
from nbagent.view.items import QuestionItem
from nbagent.view.questioncard import QuestionCard
from nbagent.view.text import one_line, without_ansi
from nbagent.view.words import spoken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbagent.core.messages import Json
    from nbagent.view.cards import Host

Card = ApprovalCard | QuestionCard

_LIMIT = 120


@dataclass(frozen=True, slots=True)
class Ask:
    """What one card asks about: approvals of one group, or questions of one group.

    `key` names it in its run, `since` is when it was asked, in seconds of the view's clock.
    """

    key: str
    about: tuple[Json | QuestionItem, ...]
    since: float

    @property
    def is_question(self) -> bool:
        """Whether it asks questions, and is no approval."""
        return isinstance(self.about[0], QuestionItem)

    @property
    def agent(self) -> str:
        """The kind of the subagent that asks, "" where the agent itself does (a question's text says who asks)."""
        first = self.about[0]
        return "" if isinstance(first, QuestionItem) else _plain(str(first.get("agent") or ""))

    @property
    def what(self) -> str:
        """What it is about, as one plain line."""
        first, more = self.about[0], len(self.about) - 1
        if isinstance(first, QuestionItem):
            said = _plain(first.text)
        elif first.get("tool") == asking.PLAN:
            said = "The plan: go on with it?"
        else:
            said = _plain(spoken(str(first.get("tool", "")), str(first.get("title", "")))[0])
        return f"{said} … and {more} more" if more else said


def card_of(serial: int, about: Sequence[Json | QuestionItem], host: Host) -> Card:
    """Return a new card, which answers to `host`; `serial` is its name in the page."""
    questions = [one for one in about if isinstance(one, QuestionItem)]
    if questions:
        return QuestionCard(serial, questions, host)
    return ApprovalCard(serial, [one for one in about if not isinstance(one, QuestionItem)], host)


def _plain(text: str) -> str:
    return visible_plain(one_line(without_ansi(text), _LIMIT), spaces=False)
