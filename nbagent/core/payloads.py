"""What hooks are told: one frozen value for each event, with the names and fields of Claude Code, and the notebook's own.

Pure values; who asks a hook, and how, is elsewhere. Read `Payload`, then the one that you need.
"""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from nbagent.core.messages import Json


class HookEvent(StrEnum):
    """What hooks can listen to."""

    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    PERMISSION_REQUEST = "PermissionRequest"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    NOTIFICATION = "Notification"
    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    STOP = "Stop"
    SUBAGENT_START = "SubagentStart"
    SUBAGENT_STOP = "SubagentStop"
    PRE_COMPACT = "PreCompact"
    POST_COMPACT = "PostCompact"
    TASK_CREATED = "TaskCreated"
    TASK_COMPLETED = "TaskCompleted"
    TEAMMATE_IDLE = "TeammateIdle"
    CELL_ADDED = "CellAdded"
    CELL_EDITED = "CellEdited"
    CELL_RUN = "CellRun"

    @classmethod
    def named(cls, name: str) -> HookEvent | None:
        """Return the event of that name, None where there is none."""
        return cls._value2member_map_.get(name)  # type: ignore[return-value]  # a map to this very class


TOOL_EVENTS = frozenset({
    HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE, HookEvent.POST_TOOL_USE_FAILURE, HookEvent.PERMISSION_REQUEST,
})  # fmt: skip
"""Events about one call of a tool: their payload has `tool_name` and `tool_input`."""

CELL_EVENTS = frozenset({HookEvent.CELL_ADDED, HookEvent.CELL_EDITED, HookEvent.CELL_RUN})
"""Events about one cell that a call has added, edited or run."""

GATES = frozenset({
    HookEvent.PRE_TOOL_USE, HookEvent.USER_PROMPT_SUBMIT, HookEvent.PRE_COMPACT,
    HookEvent.TASK_CREATED, HookEvent.TASK_COMPLETED,
})  # fmt: skip
"""Events at which a hook may hold something back: where one fails, the person is asked; nobody there: it is held back.

At `PermissionRequest` the person is asked in any case; a `Stop` hook that fails lets the run end, which opens nothing.
"""


# ── what happened ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Where:
    """What every payload says of the place: `agent_id` and `agent_type` only within a subagent."""

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    permission_mode: str = "default"
    prompt_id: str = ""
    agent_id: str = ""
    agent_type: str = ""
    effort: str = ""

    def to_json(self) -> Json:
        """Return the fields under Claude's names; what is not known is left out, but for the four that are always there."""
        always = {"session_id": self.session_id, "transcript_path": self.transcript_path, "cwd": self.cwd,
                  "permission_mode": self.permission_mode}  # fmt: skip
        more = {"prompt_id": self.prompt_id, "agent_id": self.agent_id, "agent_type": self.agent_type,
                "effort": {"level": self.effort} if self.effort else ""}  # fmt: skip
        return {**always, **{name: value for name, value in more.items() if value}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Base of what hooks are told; a field that is None is left out of the JSON."""

    event: ClassVar[HookEvent]

    @property
    def matched(self) -> str | None:
        """What a matcher is compared with; None: matchers do not count for this event."""
        return None

    def to_json(self, where: Where) -> Json:
        """Return the JSON object that a hook reads: a copy, so that no hook can change what others get."""
        own = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        said = {name: copy.deepcopy(value) for name, value in own.items() if value is not None}
        return {**where.to_json(), "hook_event_name": str(self.event), **said}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPayload(Payload):
    """Of one call, under our names; `extend` says them in Claude's where a hook asks for those."""

    tool_name: str
    tool_input: Json
    tool_use_id: str = ""

    @property
    def matched(self) -> str | None:
        """The tool's name."""
        return self.tool_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PreToolUse(ToolPayload):
    """A call was validated and is about to be decided on."""

    event: ClassVar[HookEvent] = HookEvent.PRE_TOOL_USE
    mcp_server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostToolUse(ToolPayload):
    """A call ran and succeeded."""

    event: ClassVar[HookEvent] = HookEvent.POST_TOOL_USE
    tool_response: Any = None
    duration_ms: int = 0
    mcp_server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostToolUseFailure(ToolPayload):
    """A call ran and failed, or was interrupted by the person."""

    event: ClassVar[HookEvent] = HookEvent.POST_TOOL_USE_FAILURE
    error: str = ""
    is_interrupt: bool = False
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest(ToolPayload):
    """The person is about to be asked about a call."""

    event: ClassVar[HookEvent] = HookEvent.PERMISSION_REQUEST
    permission_suggestions: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPromptSubmit(Payload):
    """The person's prompt, before the model gets it."""

    event: ClassVar[HookEvent] = HookEvent.USER_PROMPT_SUBMIT
    prompt: str
    source: str = "user"
    session_title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification(Payload):
    """Something waits for the person."""

    event: ClassVar[HookEvent] = HookEvent.NOTIFICATION
    message: str
    title: str | None = None
    notification_type: str = ""

    @property
    def matched(self) -> str | None:
        """The type of the notification."""
        return self.notification_type


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart(Payload):
    """A session begins or goes on; `source`: startup, resume, clear, compact or fork."""

    event: ClassVar[HookEvent] = HookEvent.SESSION_START
    source: str
    model: str = ""

    @property
    def matched(self) -> str | None:
        """The source."""
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd(Payload):
    """A session ends; `reason`: clear, resume, logout, prompt_input_exit or other."""

    event: ClassVar[HookEvent] = HookEvent.SESSION_END
    reason: str = "other"

    @property
    def matched(self) -> str | None:
        """The reason."""
        return self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop(Payload):
    """The model is done; `stop_hook_active`: it only went on because a hook had it go on."""

    event: ClassVar[HookEvent] = HookEvent.STOP
    stop_hook_active: bool
    last_assistant_message: str = ""
    background_tasks: tuple[Json, ...] = ()
    session_crons: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentStart(Payload):
    """A subagent begins."""

    event: ClassVar[HookEvent] = HookEvent.SUBAGENT_START
    agent_id: str
    agent_type: str

    @property
    def matched(self) -> str | None:
        """The subagent's type."""
        return self.agent_type


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentStop(SubagentStart):
    """A subagent is done."""

    event: ClassVar[HookEvent] = HookEvent.SUBAGENT_STOP
    agent_transcript_path: str = ""
    stop_hook_active: bool = False
    last_assistant_message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreCompact(Payload):
    """The conversation is about to be compacted; `trigger`: manual or auto."""

    event: ClassVar[HookEvent] = HookEvent.PRE_COMPACT
    trigger: str
    custom_instructions: str = ""

    @property
    def matched(self) -> str | None:
        """The trigger."""
        return self.trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class PostCompact(Payload):
    """The conversation was compacted."""

    event: ClassVar[HookEvent] = HookEvent.POST_COMPACT
    trigger: str
    compact_summary: str = ""

    @property
    def matched(self) -> str | None:
        """The trigger."""
        return self.trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCreated(Payload):
    """A task is about to be put on the shared list."""

    event: ClassVar[HookEvent] = HookEvent.TASK_CREATED
    task_id: str
    task_subject: str
    task_description: str | None = None
    teammate_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCompleted(TaskCreated):
    """A task is about to be marked as completed."""

    event: ClassVar[HookEvent] = HookEvent.TASK_COMPLETED


@dataclass(frozen=True, slots=True, kw_only=True)
class TeammateIdle(Payload):
    """A teammate is about to go idle."""

    event: ClassVar[HookEvent] = HookEvent.TEAMMATE_IDLE
    teammate_name: str
    team_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPayload(Payload):
    """Of one cell, and of the call that did it. A matcher is compared with the tool's name."""

    cell_id: str
    cell_type: str
    source: str
    tool_name: str = ""
    tool_use_id: str = ""
    notebook_path: str = ""

    @property
    def matched(self) -> str | None:
        """The name of the tool that did it."""
        return self.tool_name


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAdded(CellPayload):
    """A call has added a cell."""

    event: ClassVar[HookEvent] = HookEvent.CELL_ADDED


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEdited(CellPayload):
    """A call has changed a cell's source, which was `old_source`."""

    event: ClassVar[HookEvent] = HookEvent.CELL_EDITED
    old_source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRun(CellPayload):
    """A call has run a cell; `status` is ok or error, `error` its last line."""

    event: ClassVar[HookEvent] = HookEvent.CELL_RUN
    status: str = "ok"
    error: str = ""
    execution_count: int | None = None
