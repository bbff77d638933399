"""Events of what goes on beside the loop: hooks, and code that outlasts the call that began it.

`events` has these names, too: consumers take them from there. Read `CodeEnded`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nbagent.core.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeAwaited(Event):
    """The run waits for the code of the call `call_id`: `label` is what runs, as people know it, for `seconds` so far."""

    type: ClassVar[str] = "code_awaited"
    call_id: str
    label: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeEnded(Event):
    """Code has ended that went on after its call; `how` is one of `lasting.How`, `seconds` how long it ran in all."""

    type: ClassVar[str] = "code_ended"
    call_id: str
    how: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HookStarted(Event):
    """A hook begins: `hook` is how people know it, `on` the event that it listens to, `message` what to show meanwhile."""

    type: ClassVar[str] = "hook_started"
    hook_id: str
    hook: str
    on: str
    call_id: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEnded(Event):
    """A hook has ended; `outcome` is one of `hooks.Outcome`, `sentence` what came of it ("" where nothing did)."""

    type: ClassVar[str] = "hook_ended"
    hook_id: str
    hook: str
    on: str
    outcome: str
    sentence: str
    seconds: float
    call_id: str = ""
    output: str = ""
