"""All hooks of a session: which of them an event concerns, asked side by side, and what they say together.

This is one of the three places that may catch everything: a hook is somebody else's code, and one that fails shuts its
gate. It must not know how a run asks (core/hooking.py). Read `HookTable.fire`, then `_one`.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from nbagent.core.errors import Interrupted
from nbagent.core.hooks import Began, Finished, Outcome, Report, Verdict, fold
from nbagent.core.messages import Json
from nbagent.core.payloads import GATES, TOOL_EVENTS, HookEvent, Payload, ToolPayload, Where
from nbagent.extend import hooks_names, hooks_output, hooks_rules
from nbagent.extend.hooks_command import Started
from nbagent.extend.hooks_names import Dialect, Place
from nbagent.extend.hooks_output import Failed
from nbagent.extend.hooks_run import BACKGROUND_EVENTS, Runners, late_words
from nbagent.extend.hooks_settings import Hook
from nbagent.extend.sessions import private_folder

_log = logging.getLogger("nbagent")

WORDS = 10_000
"""Characters of one text for the model; a longer one goes into a file, and the model gets its beginning and the path."""
_PREVIEW = 2_000
_OUTPUT = 2_000

_ENDS = frozenset({HookEvent.STOP, HookEvent.SUBAGENT_STOP})

Fits = Callable[[str, str, Json, Place], bool]
"""Whether a call fits the `if` of a hook: rule, our tool's name, our input, place."""


class HookTable:
    """The hooks of one session, in the order of their settings levels; `add` and `remove` take whole scopes.

    `notebook` gives the open notebook's path; `spill` is the folder for texts that are too long.
    """

    def __init__(
        self,
        runners: Runners,
        hooks: Sequence[Hook] = (),
        *,
        notebook: Callable[[], str] = str,
        spill: Path | None = None,
        fits: Fits = hooks_rules.fits,
        above: HookTable | None = None,
    ) -> None:
        self._runners, self._notebook, self._spill, self._fits = runners, notebook, spill, fits
        self._scopes: dict[str, tuple[Hook, ...]] = {"settings": tuple(hooks)}
        self._above = above
        self._late: list[tuple[Hook, str]] = []
        self._background: set[asyncio.Task[None]] = set()
        self._count = 0

    # ── which hooks there are ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """All hooks, those of the table above this one first."""
        own = [hook for hooks in self._scopes.values() for hook in hooks]
        return (*(self._above.hooks if self._above is not None else ()), *own)

    def add(self, scope: str, hooks: Iterable[Hook]) -> None:
        """Add the hooks of a scope (a skill, `settings`) in the place of those that it had."""
        self._scopes[scope] = tuple(hooks)

    def remove(self, scope: str) -> None:
        """Take away the hooks of a scope; one that is not there is no matter."""
        self._scopes.pop(scope, None)

    def register(self, hook: Hook) -> None:
        """Add a Python hook; one of the same function at the same event is replaced: cells are run again."""
        same = {(hook.event, hook.source.name, hook.matcher)}
        kept = [h for h in self._scopes.get("python", ()) if (h.event, h.source.name, h.matcher) not in same]
        self._scopes["python"] = (*kept, hook)

    def use(self, runners: Runners, notebook: Callable[[], str]) -> None:
        """Go on with other runners and another notebook: each run has its own."""
        self._runners, self._notebook = runners, notebook

    def within(self, hooks: Sequence[Hook]) -> HookTable:
        """Return the table of a subagent: these hooks, and all of this table."""
        return HookTable(self._runners, hooks, notebook=self._notebook, spill=self._spill, fits=self._fits, above=self)

    # ── the port ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def listens(self, event: HookEvent) -> bool:
        """Whether any hook might answer to `event`."""
        waits = bool(self._late) and (event in BACKGROUND_EVENTS or event is HookEvent.STOP)
        return waits or any(hook.event is event for hook in self.hooks)

    async def fire(self, payload: Payload, where: Where, report: Report) -> Verdict:
        """Ask all hooks that fit, side by side, and return what they say together; raises `Interrupted` only."""
        place = Place(where.cwd or str(self._runners.project), self._notebook())
        late = self._words(payload.event)
        chosen = self._chosen(payload, place)
        tasks = [
            asyncio.create_task(self._one(hook, dialect, payload, where, place, report)) for hook, dialect in chosen
        ]
        try:
            said = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        verdict = fold([late, *said])
        return replace(verdict, context=tuple(self._short(text, where) for text in verdict.context))

    def _chosen(self, payload: Payload, place: Place) -> list[tuple[Hook, Dialect]]:
        """Return the hooks that `payload` concerns, each handler once, and the words in which each is told of it."""
        chosen: dict[tuple[str, ...], tuple[Hook, Dialect]] = {}
        for hook in self.hooks:
            if hook.event is not payload.event or not self._passes(hook, payload, place):
                continue
            if (dialect := _dialect(hook, payload)) is not None:
                chosen.setdefault(hook.identity, (hook, dialect))
        return list(chosen.values())

    def _passes(self, hook: Hook, payload: Payload, place: Place) -> bool:
        """Whether a call passes a hook's `if`; one on an event that is not about a call never runs."""
        if not hook.rule:
            return True
        if payload.event not in TOOL_EVENTS or not isinstance(payload, ToolPayload):
            return False
        try:
            return self._fits(hook.rule, payload.tool_name, payload.tool_input, place)
        except _UNFIT:  # an input of a shape that no rule is about: where it is not sure, the hook runs
            return True

    async def _one(
        self, hook: Hook, dialect: Dialect, payload: Payload, where: Where, place: Place, report: Report
    ) -> Verdict:
        """Ask one hook. Nothing escapes but an interrupt and a cancellation: a failure is part of what is said."""
        self._count += 1
        news = Began(f"{id(self):x}-{self._count}", hook.name, hook.event, hook.message)
        report(news)
        began = time.monotonic()
        try:
            verdict, printed = await self._asked(hook, _told(payload, where, place, dialect))
            verdict = _narrowed(hook, _heard(verdict, payload, place, dialect))
        except Failed as error:
            report(_finished(news, "failed", _failure(hook, str(error)), began))
            return hooks_output.failed(payload.event, str(error), hook.name, hook.on_failure)
        except (Interrupted, asyncio.CancelledError):
            report(_finished(news, "failed", "", began))
            raise
        if hook.once:
            self.forget(hook)
        outcome, sentence = _came_of(hook, payload, verdict)
        report(_finished(news, outcome, sentence, began, printed))
        return verdict

    async def _asked(self, hook: Hook, said: Json) -> tuple[Verdict, str]:
        """Return what a hook says and printed; whatever goes wrong in it is a `Failed` with a sentence."""
        if not hook.is_allowed:
            raise Failed("it, or a script that it runs, has changed since you said yes to it")
        try:
            async with asyncio.timeout(None if _blocks_the_loop(hook) else hook.timeout):
                return await self._runners.ask(hook, said, self._later)
        except (Failed, Interrupted, asyncio.CancelledError):
            raise
        except TimeoutError:
            raise Failed(f"no answer within {hook.timeout:g} s") from None
        except KeyboardInterrupt:
            raise Interrupted from None
        except BaseException as error:  # noqa: BLE001  (somebody else's code; SystemExit would end the kernel)
            _log.error("the hook %s failed", hook.name, exc_info=error)
            raise Failed(f"{type(error).__name__}: {_said(error)}") from None

    def forget(self, hook: Hook) -> None:
        """Take away a hook that runs once; one that failed stays, or its gate would be open the next time."""
        self._scopes = {scope: tuple(h for h in hooks if h is not hook) for scope, hooks in self._scopes.items()}
        if self._above is not None:
            self._above.forget(hook)

    # ── the background ───────────────────────────────────────────────────────────────────────────────────────────────

    def _later(self, hook: Hook, started: Started, seconds: float) -> None:
        task = asyncio.create_task(self._wait(hook, started, seconds))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _wait(self, hook: Hook, started: Started, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                ended = await started.ended()
        except TimeoutError:
            return
        finally:
            started.kill()
        declared = hook.spec.get("async") is True or hook.spec.get("asyncRewake") is True
        out = ended.out if declared else started.rest()
        self._late += [(hook, text) for text in late_words(hook, ended, out)]

    def _words(self, event: HookEvent) -> Verdict:
        """Return what commands of the background have said meanwhile: at an end, only those that wake the model."""
        wake = event is HookEvent.STOP
        if not wake and event not in BACKGROUND_EVENTS:
            return Verdict()
        told = [(hook, text) for hook, text in self._late if not wake or hook.spec.get("asyncRewake") is True]
        self._late = [item for item in self._late if item not in told]
        return Verdict(context=tuple(f"{hook.name}: {text}" for hook, text in told))

    async def close(self) -> None:
        """End what goes on in the background."""
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    # ── long texts ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _short(self, text: str, where: Where) -> str:
        if len(text) <= WORDS:
            return text
        self._count += 1
        head = f"{text[:_PREVIEW]}\n… {len(text) - _PREVIEW:,} characters more"
        if self._spill is None:
            return f"{head} were left out"
        path = self._spill / f"{where.session_id or 'session'}-{self._count}.txt"
        try:
            private_folder(path.parent)
            path.write_text(text, "utf-8", "replace")
        except OSError as error:
            return f"{head} were left out, because they could not be kept ({error.strerror})"
        return f"{head}; all of it is in {path}"


# ── one hook ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _dialect(hook: Hook, payload: Payload) -> Dialect | None:
    """Return the words in which a hook is told of `payload`, None where its matcher does not fit.

    A tool has our name and Claude's. The one that the matcher fits is told; where both fit, the one of the hook's home.
    """
    home = hook.source.dialect
    value = payload.matched
    if value is None:
        return home
    if payload.event not in TOOL_EVENTS and not _names_a_tool(payload):
        return home if hook.fits(value) else None
    ours, theirs = hooks_names.names(value)
    spoken: dict[Dialect, tuple[str, ...]] = {"nbagent": ours, "claude": theirs}
    order: tuple[Dialect, Dialect] = ("claude", "nbagent") if home == "claude" else ("nbagent", "claude")
    return next((dialect for dialect in order if any(map(hook.fits, spoken[dialect]))), None)


def _names_a_tool(payload: Payload) -> bool:
    return payload.matched is not None and payload.matched == getattr(payload, "tool_name", None)


def _blocks_the_loop(hook: Hook) -> bool:
    """Whether a hook is a plain function: its own limit ends it, for the loop stands still meanwhile."""
    return hook.type == "python" and not inspect.iscoroutinefunction(hook.function)


_UNFIT = (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError)
"""What comes of an input, or of an answer, with values of a wrong kind in it."""


def _told(payload: Payload, where: Where, place: Place, dialect: Dialect) -> Json:
    """Return what a hook is told; raises `Failed` where it can't be said in its words."""
    said = payload.to_json(where)
    try:
        return hooks_names.told(said, place) if dialect == "claude" else said
    except _UNFIT as error:
        raise Failed(f"this call can't be said in Claude Code's words ({_said(error)})") from None


def _narrowed(hook: Hook, verdict: Verdict) -> Verdict:
    """Return what counts of a hook's word: one of a subagent's kind allows nothing that its parent would be asked about."""
    if hook.source.scope != "agent":
        return verdict
    rules = tuple(rule for rule in verdict.rules if rule[0] != "allow")
    if verdict.decision != "allow":
        return replace(verdict, rules=rules)
    return replace(verdict, decision="", reasons=(), rules=rules)


def _heard(verdict: Verdict, payload: Payload, place: Place, dialect: Dialect) -> Verdict:
    """Return what was said in Claude's words in ours; raises `Failed` where it means nothing."""
    try:
        return _in_ours(verdict, payload, place, dialect)
    except _UNFIT as error:
        raise Failed(f"what it wants in place of the input can't be used ({_said(error)})") from None


def _in_ours(verdict: Verdict, payload: Payload, place: Place, dialect: Dialect) -> Verdict:
    if dialect != "claude" or not isinstance(payload, ToolPayload):
        return verdict
    updated, output = verdict.updated_input, verdict.updated_output
    if updated is not None:
        updated = hooks_names.heard(updated, payload.tool_name, payload.tool_input, place)
    if output is not None:
        output = (hooks_names.heard_output(output[0]),)
    return replace(verdict, updated_input=updated, updated_output=output)


def _came_of(hook: Hook, payload: Payload, verdict: Verdict) -> tuple[Outcome, str]:
    """Return in one word and one sentence what came of a hook; no sentence where the person need not know."""
    which = f"The hook {hook.name} ({payload.event})"
    if verdict.stop:
        return "stop", f"{which} ended the run."
    if verdict.decision == "deny":
        return "deny", ""  # the call's own result says it
    if verdict.block:
        return "block", f"{which} {_held(payload.event)}: {verdict.why_blocked}" if _held(payload.event) else ""
    if verdict.context and payload.event in _ENDS:
        return "ok", f"{which} {_held(payload.event)}: {' '.join(verdict.context)}"
    changed = [
        word
        for word, value in (("input", verdict.updated_input), ("output", verdict.updated_output))
        if value is not None
    ]
    sentence = f"{which} changed the {changed[0]} of this call." if changed else ""
    return cast("Outcome", verdict.decision or "ok"), sentence


def _held(event: HookEvent) -> str:
    """Return what a block did, "" where the run's end says it."""
    if event in hooks_output.AFTER_A_CALL:
        return "says to the model"
    if event in _ENDS:
        return "has the agent go on"
    return "" if event is HookEvent.USER_PROMPT_SUBMIT else "held this back"


def _failure(hook: Hook, why: str) -> str:
    shut = hook.event in GATES and not hook.on_failure
    return f"The hook {hook.name} ({hook.event}) failed: {why.rstrip('.')}." + (
        " It is not taken as a yes." if shut else ""
    )


def _finished(news: Began, outcome: Outcome, sentence: str, began: float, printed: str = "") -> Finished:
    seconds = round(time.monotonic() - began, 3)
    return Finished(news.id, news.name, news.event, outcome, sentence, seconds, printed[:_OUTPUT])


def _said(error: BaseException) -> str:
    with contextlib.suppress(Exception):
        return str(error)
    return "(its text cannot be made)"


def listing(hooks: Sequence[Hook]) -> list[dict[str, Any]]:
    """Return hooks as rows for people: event, matcher, type, name, where they come from, and what is wrong with them."""
    return [
        {"event": str(hook.event), "matcher": hook.matcher or "*", "type": hook.type, "name": hook.name,
         "from": hook.source.name, "problem": hook.problem}
        for hook in hooks
    ]  # fmt: skip
