"""What asks hooks keeps the promises of the port: the table of a session, that of a subagent in it, and the double."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nbagent.core.hooks import NoHooks, Verdict, fold
from nbagent.core.payloads import HookEvent
from nbagent.extend.hooks import HookTable
from nbagent.extend.hooks_output import failed
from nbagent.extend.hooks_python import hook_of
from nbagent.extend.hooks_run import Runners
from nbagent.extend.hooks_settings import Hook
from tests.conformance.hooks_kit import PROMISES, HooksHost


def _hook(number: int, says: Verdict | None) -> Hook:
    def hook(said: dict) -> dict:
        if says is None:
            raise ImportError("nothing like this")
        fields = {"permissionDecision": says.decision or None, "permissionDecisionReason": says.reason,
                  "additionalContext": "".join(says.context)}  # fmt: skip
        said["tool_input"]["nested"].append(2)  # it has a copy of its own
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}

    hook.__qualname__ = f"hook{number}"
    return hook_of(hook, "PreToolUse")


def _table(says: Sequence[Verdict | None]) -> HookTable:
    return HookTable(Runners(Path("/")), [_hook(n, one) for n, one in enumerate(says)])


def _within(says: Sequence[Verdict | None]) -> HookTable:
    return _table(says[:1]).within([_hook(n, one) for n, one in enumerate(says) if n])


def _double(says: Sequence[Verdict | None]) -> NoHooks:
    event = HookEvent.PRE_TOOL_USE
    said = [failed(event, "crashed", "hook") if one is None else one for one in says]
    return NoHooks({event: fold(said)} if said else {})


@pytest.mark.slow
@pytest.mark.parametrize("make", [_table, _within, _double])
@pytest.mark.parametrize("promise", PROMISES)
async def test_keeps_the_promise(promise: Callable, make: Callable) -> None:
    await promise(HooksHost(make))
