"""The entries of a run's timeline, as frozen values. Made by `fold`, drawn by every surface; they know of neither."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nbagent.core import events as ev
from nbagent.core.messages import Block, Json

if TYPE_CHECKING:
    from nbagent.view.fold import ViewModel

WRITING: Final = "writing"
WAITING: Final = "waiting"
ASKING: Final = "asking"
RUNNING: Final = "running"
OPEN: Final = frozenset({WRITING, WAITING, ASKING, RUNNING})
"""States of a call that was not answered yet; the others are the values of `Status`."""

GOES_ON: Final = "goes on"
"""`code` of a call that has returned while its code runs."""

_QUIET: Final = frozenset({"todo_write"})
NOBODY: Final = "no answer"
"""Summary of a question that nobody was there to answer."""
_UNSEEN: Final = frozenset({WRITING, WAITING, RUNNING, "ok"})

STALE: Final = "stale"
"""Level of the note that an old record is shown; in a static record the banner says it."""
LESSON: Final = "lesson"
REPLAY: Final = "replay"
IN_THE_FACTS: Final = frozenset({LESSON, REPLAY})
"""Levels of notes without which a record would mislead: they stand in the line of its facts, never only among its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One entry of the timeline; `key` is its name for the whole run, `turn` the turn it belongs to."""

    key: str
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextItem(Item):
    """The model's words (Markdown). `discarded` says why they do not count, if so.

    `plain`: the words without the links to what they cite, "" where they cite nothing.
    """

    reply: int
    index: int
    text: str = ""
    plain: str = ""
    done: bool = False
    discarded: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingItem(Item):
    """The model's (summarized) thinking; `seconds` from its start to its last piece, None where not known."""

    reply: int
    index: int
    text: str = ""
    done: bool = False
    discarded: str = ""
    started: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Nested:
    """A subagent of a call: its id, its kind, what it is for, and the view of its own run."""

    agent_id: str
    agent: str
    title: str
    view: ViewModel


@dataclass(frozen=True, slots=True, kw_only=True)
class CallItem(Item):
    """One call from its first byte to its result, with the approval that it may have needed.

    `status` is one of `OPEN` or a `Status` value; `written` counts the characters of input received so far;
    `content` is the result as the model got it; `answer` is the person's answer; `agents` are the subagents that work for
    it. `code` tells of code that outlasts the call: GOES_ON, then a value of `lasting.How`; it began at `code_began` (seconds since the run did) and ran for `code_seconds`.
    """

    call_id: str
    reply: int = -1
    index: int = -1
    name: str = ""
    title: str = ""
    status: str = WRITING
    written: int = 0
    input: Json = field(default_factory=dict[str, Any])
    preview: Json = field(default_factory=dict[str, Any])
    progress: str = ""
    content: tuple[Block, ...] = ()
    seconds: float | None = None
    summary: str = ""
    cells: tuple[str, ...] = ()
    decision: str = ""
    answer: ev.ApprovalAnswered | None = None
    discarded: str = ""
    agents: tuple[Nested, ...] = ()
    code: str = ""
    code_began: float = 0.0
    code_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionItem(Item):
    """A question to the person; `answer` is None while it is open."""

    question_id: str
    text: str
    choices: tuple[str, ...] = ()
    header: str = ""
    details: tuple[str, ...] = ()
    previews: tuple[str, ...] = ()
    many: bool = False
    group: str = ""
    of: int = 1
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteItem(Item):
    """One sentence about something unusual; `level` is info, warning, `LESSON` (a teacher's rules), `REPLAY` (no model was asked), or `STALE`."""

    text: str
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryItem(Item):
    """The conversation was summed up here; `summed.summary` is the text with which it goes on."""

    summed: ev.Compacted


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryItem(Item):
    """The request is repeated after `wait` seconds."""

    attempt: int
    limit: int
    wait: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawItem(Item):
    """A stream event, or a block of a kind, that we do not know, as it came."""

    raw: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamItem(Item):
    """A team, as it stands now: there is one item a team, and only its latest state."""

    team: ev.TeamChanged


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedItem(Item):
    """What came of a run of the notebook in a clean kernel."""

    verified: ev.Verified


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedItem(Item):
    """The end of the run."""

    ended: ev.RunEnded


def is_quiet(item: Item) -> bool:
    """Whether an entry is seen in another way: an open question is its card, the call that asked one is the question.

    A call that changed the to-do list is the list itself. What went wrong, or had to be approved, is seen as any other call.
    """
    match item:
        case QuestionItem():
            return item.answer is None
        case CallItem(answer=None) if item.status in _UNSEEN:
            return item.name in _QUIET or (item.name == "ask_user" and item.summary != NOBODY)
        case _:
            return False


def is_listed(item: Item) -> bool:
    """Whether an entry is a call that a record counts: one that only changed the to-do list is seen in the list."""
    return isinstance(item, CallItem) and not item.discarded and not (item.name in _QUIET and is_quiet(item))
