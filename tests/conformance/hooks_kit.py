"""Every promise of the Hooks port, one async function each, for whatever asks hooks.

A host's test gives a `HooksHost`: `make` returns hooks of which each answers a `PreToolUse` with one of the verdicts, or
crashes (None), and await each of `PROMISES` with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from nbagent.core.hooks import Began, Finished, Hooks, Verdict
from nbagent.core.payloads import HookEvent, PreToolUse, Stop, Where


@dataclass(frozen=True)
class HooksHost:
    """Makes hooks from what they say at `PreToolUse`; None: the hook crashes."""

    make: Callable[[Sequence[Verdict | None]], Hooks]


CALL = {"command": "ls", "nested": [1]}


async def _ask(hooks: Hooks, news: list[Began | Finished] | None = None) -> Verdict:
    payload = PreToolUse(tool_name="shell", tool_input=CALL)
    verdict = await hooks.fire(payload, Where("s1"), ([] if news is None else news).append)
    assert payload.tool_input == {"command": "ls", "nested": [1]}
    return verdict


async def nobody_listens_to_what_no_hook_is_for(host: HooksHost) -> None:
    hooks = host.make([Verdict("deny", ("no",))])
    assert hooks.listens(HookEvent.PRE_TOOL_USE)
    assert not hooks.listens(HookEvent.STOP)
    assert await hooks.fire(Stop(stop_hook_active=False), Where(), lambda _: None) == Verdict()


async def without_hooks_nothing_is_said(host: HooksHost) -> None:
    hooks = host.make([])
    assert not any(map(hooks.listens, HookEvent))
    assert await _ask(hooks) == Verdict()


async def the_strictest_word_counts(host: HooksHost) -> None:
    said = [Verdict("allow", ("a",)), Verdict("deny", ("b",)), Verdict("ask", ("c",))]
    verdict = await _ask(host.make(said))
    assert verdict.decision == "deny"
    assert "b" in verdict.reason


async def a_crash_is_never_raised_and_never_a_yes(host: HooksHost) -> None:
    """Row 113."""
    verdict = await _ask(host.make([Verdict("allow", ("a",)), None]))
    assert verdict.decision == "ask"
    assert verdict.failed


async def what_begins_is_told_to_have_finished(host: HooksHost) -> None:
    news: list[Began | Finished] = []
    await _ask(host.make([Verdict("allow", ("a",)), None]), news)
    assert sorted(n.id for n in news if isinstance(n, Began)) == sorted(n.id for n in news if isinstance(n, Finished))


async def context_is_kept_from_all(host: HooksHost) -> None:
    verdict = await _ask(host.make([Verdict(context=("one",)), Verdict(context=("two",))]))
    assert verdict.context == ("one", "two")


Promise = Callable[[HooksHost], Awaitable[None]]
PROMISES: tuple[Promise, ...] = (
    nobody_listens_to_what_no_hook_is_for,
    without_hooks_nothing_is_said,
    the_strictest_word_counts,
    a_crash_is_never_raised_and_never_a_yes,
    what_begins_is_told_to_have_finished,
    context_is_kept_from_all,
)
