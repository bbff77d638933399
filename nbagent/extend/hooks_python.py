"""Hooks that are Python functions of the notebook: `@nbagent.hook("PreToolUse", match="run_*")`.

They run where the person's variables may be touched: on the main thread. An async one is awaited on the kernel's loop; a
sync one is called right there, as a cell would be, and holds up everything until it returns or its time is up. In a
thread of its own it would read data frames while a cell changes them, and most plotting libraries would not bear it.
Read `hook_of`, then `call`.
"""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import inspect
import re
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from typing import Any

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json
from nbagent.core.payloads import HookEvent
from nbagent.extend.hooks_output import Failed
from nbagent.extend.hooks_settings import Hook, Source

PythonHook = Callable[..., Any] | Callable[..., Awaitable[Any]]
_SDK_ARGUMENTS = 3


class _TimeUp(BaseException):
    """Raised in a sync hook whose time is up; no `except Exception` of the hook may keep it."""


def hook_of(
    function: PythonHook,
    event: str,
    *,
    match: str = "",
    timeout: float = 60.0,
    once: bool = False,
    on_failure: str = "",
) -> Hook:
    """Return the hook that calls `function` at `event`, of which `match` names the tools (or what the event has instead).

    `match`: names with `*` and `?`, several with `|`. Raises `ConfigError` for what is no event, time or word.
    """
    named = HookEvent.named(event)
    if named is None:
        near = difflib.get_close_matches(event, list(HookEvent), 1)
        hint = f"Did you mean {near[0]}?" if near else f"The events are {', '.join(HookEvent)}."
        raise ConfigError(f"There is no hook event {event!r}. {hint}")
    if not callable(function):
        raise ConfigError(f"A hook must be a function, not {function!r}.")
    if not timeout > 0:
        raise ConfigError(f"timeout = {timeout!r} must be a number of seconds above 0.")
    if on_failure not in {"", "continue", "block"}:
        raise ConfigError(f"on_failure = {on_failure!r} must be 'continue' or 'block'.")
    patterns = [fnmatch.translate(part.strip()) for part in match.split("|") if part.strip()]
    matcher = f"^(?:{'|'.join(patterns)})" if patterns else ""
    home = getattr(function, "__module__", "") or ""
    source = Source(f"{home}.{getattr(function, '__qualname__', repr(function))}", "python", "nbagent")
    made = Hook(named, "python", {"type": "python", "match": match}, source, timeout=timeout, once=once)
    return replace(made, matcher=matcher, on_failure=on_failure, function=function)  # type: ignore[arg-type]  # looked at above


async def call(hook: Hook, said: Json) -> Json:
    """Call the function with the payload and return what it says ({} for None); raises `Failed`, and what it raises.

    One that takes three arguments gets (payload, tool_use_id, context), as in Claude's SDK.
    """
    function = hook.function
    assert function is not None
    given: tuple[Any, ...] = (said,)
    if _positional(function) == _SDK_ARGUMENTS:
        given = (said, said.get("tool_use_id"), {"signal": None})
    began = time.monotonic()
    if inspect.iscoroutinefunction(function):
        answer = await function(*given)
    else:
        with _time_limit(hook.timeout):
            answer = function(*given)
        if inspect.isawaitable(answer):
            answer = await answer
        elif time.monotonic() - began > hook.timeout:
            raise Failed(f"no answer within {hook.timeout:g} s")
    if answer is None:
        return {}
    if not isinstance(answer, dict):
        raise Failed(f"it returned {type(answer).__name__}, not a dict or None")
    return {_plain(name): value for name, value in answer.items()}


def _plain(name: Any) -> str:
    """Return a field's name as JSON has it: Python's keywords get an underscore in Claude's SDK."""
    return re.sub(r"\A(continue|async)_\Z", r"\1", str(name))


def _positional(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    return sum(parameter.kind in kinds and parameter.default is parameter.empty for parameter in parameters)


@contextlib.contextmanager
def _time_limit(seconds: float) -> Generator[None]:
    """End what is inside after `seconds`, where the platform has a timer and this is the main thread; else do nothing.

    Somebody else's timer goes on afterwards; one that is due before ours is left alone, and then an answer that comes too
    late does not count, that is all.
    """
    here = threading.current_thread() is threading.main_thread()
    left, interval = signal.getitimer(signal.ITIMER_REAL) if here and hasattr(signal, "setitimer") else (0.0, 0.0)
    if not here or not hasattr(signal, "setitimer") or 0 < left <= seconds:
        yield
        return
    armed = True

    def up(*_: object) -> None:
        if armed:
            raise _TimeUp

    began = time.monotonic()
    before = signal.signal(signal.SIGALRM, up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _TimeUp:
        raise Failed(f"no answer within {seconds:g} s") from None
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 0.001), interval)
