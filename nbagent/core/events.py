"""What a run reports: one frozen, tagged, JSON-able value a fact.

Every event says in which of the four states the loop was, in which turn (from 1; 0 before the first), and when
(`at`: seconds since the run began). A consumer dispatches on `.type` or matches on the class and must pass over kinds
that it does not know. Views, logs and lessons are made from these and from nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from nbagent.core.event import Event, LoopShown, Reason, State, Status  # noqa: F401  # pyright: ignore[reportUnusedImport]  (events has their names, too)
from nbagent.core.events_beside import CodeAwaited, CodeEnded, HookEnded, HookStarted  # noqa: F401  # pyright: ignore[reportUnusedImport]  (these, too)
from nbagent.core.messages import Block, Json, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run began; `max_turns` and `budget` (a sentence, may be empty) are its limits. `answers`: it only answers, changes nothing."""

    type: ClassVar[str] = "run_started"
    run_id: str
    session_id: str
    model: str
    mode: str
    prompt: str
    max_turns: int
    budget: str = ""
    notebook: str = ""
    answers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSent(Event):
    """A request goes to the model: `new` are the messages since the last one, `prefix` the hash of all before them.

    `host` is that of the server, "" where no server is asked.
    """

    type: ClassVar[str] = "request_sent"
    model: str
    new: tuple[Json, ...]
    prefix: str
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyStarted(Event):
    """The first byte of a reply came."""

    type: ClassVar[str] = "reply_started"
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockStarted(Event):
    """Block `index` of the reply began; `kind` is the API's block type, `name` and `call_id` are set for calls."""

    type: ClassVar[str] = "block_started"
    index: int
    kind: str
    name: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Event):
    """More text of block `index`."""

    type: ClassVar[str] = "text_delta"
    index: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDelta(Event):
    """More (summarized) thinking of block `index`."""

    type: ClassVar[str] = "thinking_delta"
    index: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDelta(Event):
    """More of the JSON of the call in block `index`."""

    type: ClassVar[str] = "input_delta"
    index: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawReceived(Event):
    """A stream event of a type that we do not know, kept and shown as it came."""

    type: ClassVar[str] = "raw_received"
    raw: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEnded(Event):
    """A whole reply was received and entered the transcript; `cost` is in US dollars where the price is known."""

    type: ClassVar[str] = "reply_ended"
    content: tuple[Block, ...]
    stop_reason: str
    usage: Usage
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyDiscarded(Event):
    """A broken reply was thrown away whole: what was shown of it does not count and nothing of it ran."""

    type: ClassVar[str] = "reply_discarded"
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryScheduled(Event):
    """The request is repeated after `wait` seconds; this will be try `attempt` of `limit`."""

    type: ClassVar[str] = "retry_scheduled"
    attempt: int
    limit: int
    wait: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDecided(Event):
    """The policy decided about a call: `action` is allow, ask or deny; `rule` says which rule or mode did."""

    type: ClassVar[str] = "call_decided"
    call_id: str
    name: str
    input: Json
    action: str
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAsked(Event):
    """A person is asked about a call; the view shows `approval` (see `ports.Approval`) and waits."""

    type: ClassVar[str] = "approval_asked"
    call_id: str
    approval: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered(Event):
    """The answer: `approved`, the person's words, the rule that was kept (may be empty), and who answered.

    `edited`: the person changed the text before they approved; the call starts with theirs.
    """

    type: ClassVar[str] = "approval_answered"
    call_id: str
    approved: bool
    words: str = ""
    rule: str = ""
    by: str = ""
    edited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted(Event):
    """A call runs now, with the validated `input`; `title` is a short line for people."""

    type: ClassVar[str] = "call_started"
    call_id: str
    name: str
    input: Json
    title: str
    preview: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class CallProgress(Event):
    """A running call says how far it is: a short text that replaces the one before."""

    type: ClassVar[str] = "call_progress"
    call_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded(Event):
    """A call was answered; `content` is the result as the model gets it, `seconds` its duration.

    `goes_on`: its code still runs; a `CodeEnded` of the same call, or the end of the run, ends it.
    """

    type: ClassVar[str] = "call_ended"
    call_id: str
    name: str
    status: Status
    content: tuple[Block, ...]
    seconds: float
    summary: str = ""
    cells: tuple[str, ...] = ()
    goes_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsAppended(Event):
    """One message with a result for every call of the reply entered the transcript."""

    type: ClassVar[str] = "results_appended"
    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked(Event):
    """The person is asked something that is not about a call's permission (see `ports.Question`)."""

    type: ClassVar[str] = "question_asked"
    question_id: str
    text: str
    choices: tuple[str, ...] = ()
    header: str = ""
    details: tuple[str, ...] = ()
    previews: tuple[str, ...] = ()
    many: bool = False
    group: str = ""
    of: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered(Event):
    """The person's answer (see `ports.Question`); empty where they left it out, or nobody was there."""

    type: ClassVar[str] = "question_answered"
    question_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(Event):
    """One sentence for the person about something unusual that the loop handled (`level`: info or warning; lesson: a teacher's rules)."""

    type: ClassVar[str] = "noted"
    text: str
    level: str = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundStale(Event):
    """The record of an earlier run is shown; `text` is the sentence that says what has changed since."""

    type: ClassVar[str] = "found_stale"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCleared(Event):
    """What was shown so far was for the moment only; what follows is a view of its own."""

    type: ClassVar[str] = "view_cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChecked(Event):
    """The answer as it is to be read: what it cites was looked up, and stands marked in `text`; `note` says what came of it."""

    type: ClassVar[str] = "answer_checked"
    text: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeChanged(Event):
    """From here on another permission mode is in force."""

    type: ClassVar[str] = "mode_changed"
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted(Event):
    """The conversation was summed up: from `before` to `after` tokens, about; it goes on in the session `session_id`.

    `trigger` is manual or auto; `usage` and `cost` are what the summary took.
    """

    type: ClassVar[str] = "compacted"
    trigger: str
    before: int
    after: int
    summary: str
    session_id: str
    compacted_from: str
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TodosChanged(Event):
    """The to-do list from here on, whole; each item is `content`, `activeForm` and `status` (see `tools/todo.py`).

    `carried`: it is the list of an earlier run of this session, and this run has said nothing of it yet.
    """

    type: ClassVar[str] = "todos_changed"
    todos: tuple[Json, ...]
    carried: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReported(Event):
    """A subagent of the call `call_id` reports `event`, whose turn and time count from the subagent's own beginning.

    `agent` is its kind, `title` what it does in a few words.
    """

    type: ClassVar[str] = "agent_reported"
    call_id: str
    agent_id: str
    agent: str
    title: str
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamChanged(Event):
    """How a team stands from here on, whole: `board` is `Board.to_json()`, `team` its name, `seconds` how old it is.

    `lanes` says what each teammate did when: `name` and `spans`, of which each has `state` (working, idle, planning,
    waiting, gone), `title` (of its task, may be empty), `from` and `to` (seconds since the team began; `to` is None while
    it goes on). `note` is one sentence of what has just happened, for who does not see the board. `marks` says by task id,
    in a few words, what is wrong with a task that the board itself does not know ("conflict in a.py", "no sign of life").
    """

    type: ClassVar[str] = "team_changed"
    team: str
    board: Json
    lanes: tuple[Json, ...] = ()
    seconds: float = 0.0
    note: str = ""
    marks: Json = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(Event):
    """The notebook ran in a clean kernel, for the call `call_id`; `verdict` is `tools.verdict.Verdict.to_json()`."""

    type: ClassVar[str] = "verified"
    call_id: str
    verdict: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The run is over: why, a sentence, what to do next, the last text, and what it took.

    `checked` says which cells ran after the last edit, "" where none was touched.
    """

    type: ClassVar[str] = "run_ended"
    reason: Reason
    sentence: str
    next_step: str
    text: str
    turns: int
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    cells: tuple[str, ...] = ()
    checked: str = ""


def innermost(event: Event) -> Event:
    """Return what a subagent reports, however deep it is nested; any other event as it is."""
    while isinstance(event, AgentReported):
        event = event.event
    return event
