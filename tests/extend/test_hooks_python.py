"""Hooks that are functions of the notebook: where they run, what they may return, and their time limit."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from nbagent.core.errors import ConfigError
from nbagent.extend.hooks_output import Failed
from nbagent.extend.hooks_python import call, hook_of


def guard(said: dict) -> dict | None:
    return {"heard": said}


@pytest.mark.parametrize(
    ("match", "fits", "not_these"),
    [
        ("", ["run_cell", "shell"], []),
        ("run_*", ["run_cell", "run_python"], ["rerun_cell", "shell"]),
        ("run_* | shell", ["run_all", "shell"], ["my_shell"]),
        ("add_cel?", ["add_cell"], ["add_cells"]),
        ("mcp__*__write", ["mcp__fs__write"], ["mcp__fs__write_all"]),
    ],
)
def test_match_is_names_with_stars(match, fits, not_these):
    hook = hook_of(guard, "PreToolUse", match=match)
    assert all(map(hook.fits, fits))
    assert not any(map(hook.fits, not_these))


async def test_an_async_hook_is_awaited_and_a_sync_one_called_both_on_the_main_thread():
    seen: list[threading.Thread] = []

    def plain(said: dict) -> None:
        seen.append(threading.current_thread())

    async def waiting(said: dict) -> None:
        seen.append(threading.current_thread())

    for function in (plain, waiting):
        assert await call(hook_of(function, "PreToolUse"), {}) == {}
    assert seen == [threading.main_thread()] * 2


async def test_the_sdk_s_three_arguments_work_too():
    async def sdk(said: dict, tool_use_id: str | None, context: Any) -> dict:
        return {"id": tool_use_id, "signal": context["signal"], "continue_": False}

    assert await call(hook_of(sdk, "PreToolUse"), {"tool_use_id": "c1"}) == {
        "id": "c1",
        "signal": None,
        "continue": False,
    }


async def test_arguments_with_defaults_are_the_function_s_own():
    def with_limit(said: dict, limit: int = 3, log: list | None = None) -> dict:
        return {"limit": limit}

    assert await call(hook_of(with_limit, "PreToolUse"), {}) == {"limit": 3}


@pytest.mark.parametrize("answer", [True, "deny", ["x"], 0])
async def test_what_is_no_dict_is_nonsense(answer):
    with pytest.raises(Failed, match="not a dict or None"):
        await call(hook_of(lambda said: answer, "PreToolUse"), {})


async def test_a_sync_hook_whose_time_is_up_is_ended_even_if_it_catches_exceptions():
    def endless(said: dict) -> None:
        while True:
            try:
                while True:
                    pass
            except Exception:  # what a hook may well do
                continue

    with pytest.raises(Failed, match=r"no answer within 0\.05 s"):
        await call(hook_of(endless, "PreToolUse", timeout=0.05), {})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"event": "PreTool"}, "no hook event 'PreTool'"),
        ({"timeout": 0}, "timeout = 0"),
        ({"on_failure": "shrug"}, "on_failure = 'shrug'"),
        ({"function": 3}, "must be a function"),
    ],
)
def test_a_wrong_hook_is_told_when_it_is_made(given, why):
    with pytest.raises(ConfigError, match=why):
        hook_of(**({"function": guard, "event": "PreToolUse"} | given))
