"""What a hook's answer means: exit codes, JSON, HTTP answers and a model's judgement, each as a verdict of the core.

Pure: knows nothing of processes or servers. What is no proper answer raises `Failed`, and `failed` says what a failure
means at each event: never a yes. Read `of_command`, `of_json`, then `failed`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from nbagent.core.hooks import Verdict, both
from nbagent.core.messages import Json
from nbagent.core.payloads import CELL_EVENTS, GATES, HookEvent
from nbagent.extend.hooks_names import Rules
from nbagent.extend.hooks_settings import OnFailure


class Failed(Exception):
    """A hook gave no answer that counts; the text says why, as the end of "The hook … failed: …"."""


AFTER_A_CALL = frozenset({HookEvent.POST_TOOL_USE, HookEvent.POST_TOOL_USE_FAILURE, *CELL_EVENTS})
"""Events whose block holds nothing back (it has happened): its reason is told to the model."""

_BLOCKED = frozenset({
    HookEvent.USER_PROMPT_SUBMIT, HookEvent.STOP, HookEvent.SUBAGENT_STOP, HookEvent.TEAMMATE_IDLE,
    HookEvent.TASK_CREATED, HookEvent.TASK_COMPLETED, HookEvent.PRE_COMPACT, *AFTER_A_CALL,
})  # fmt: skip
_TOLD_AS_IT_IS = frozenset({HookEvent.USER_PROMPT_SUBMIT, HookEvent.SESSION_START})
_UNHEARD = frozenset({HookEvent.NOTIFICATION, HookEvent.SESSION_END})
"""Events at which nothing that a hook says counts."""


# ── commands and servers ─────────────────────────────────────────────────────────────────────────────────────────────


def of_command(event: HookEvent, code: int, out: str, err: str, who: str) -> Verdict:
    """Return what a command says that ended with exit code `code`; raises `Failed`."""
    data = _json_in(out)
    if code == 2:
        verdict = Verdict()
        try:
            verdict = of_json(event, data, who) if isinstance(data, dict) else Verdict()
        except Failed:
            pass  # it blocks all the same
        decided = verdict.decision == "deny" or verdict.block
        return verdict if decided else both(verdict, blocking(event, err.strip() or "it says no", who))
    if isinstance(data, dict):
        return of_json(event, data, who)
    if code != 0:
        first = next((line.strip() for line in err.splitlines() if line.strip()), "")
        raise Failed(f"exit code {code}" + (f": {first}" if first else ""))
    if isinstance(data, str) and event in GATES:
        raise Failed(f"its output begins like JSON and is none ({data})")
    return Verdict(context=(out.strip(),)) if out.strip() and event in _TOLD_AS_IT_IS else Verdict()


def of_http(event: HookEvent, status: int, body: str, who: str) -> Verdict:
    """Return what a server says with an answer of `status`; raises `Failed`."""
    if not 200 <= status < 300:
        raise Failed(f"its server answered with status {status}")
    if not body.strip():
        return Verdict()
    data = _json_in(body)
    if not isinstance(data, dict):
        raise Failed("its server answered with something that is no JSON object")
    return of_json(event, data, who)


def of_judgement(event: HookEvent, text: str, who: str, *, feeds_back: bool) -> Verdict:
    """Return what a model says that was asked for `{"ok": …, "reason": …, "impossible": …}`; raises `Failed`.

    `feeds_back`: a no is told to the model, which goes on; without it, a no to a call ends the run.
    """
    begin, end = text.find("{"), text.rfind("}")
    data = _json_in(text[begin : end + 1]) if 0 <= begin < end else None
    if not isinstance(data, dict) or not isinstance(data.get("ok"), bool):
        raise Failed("the model did not answer with ok: true or false")
    reason = str(data.get("reason") or "the condition is not met")
    if data["ok"] or event is HookEvent.PERMISSION_REQUEST:
        return Verdict()
    if event in {HookEvent.STOP, HookEvent.SUBAGENT_STOP}:
        given_up = data.get("impossible") is True and not feeds_back
        return Verdict(messages=(f"{who}: {reason}",)) if given_up else Verdict(block=(reason,))
    verdict = blocking(event, reason, who)
    ends = event in {HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE, HookEvent.TEAMMATE_IDLE}
    return both(verdict, Verdict(stop=f"{who}: {reason}")) if ends and not feeds_back else verdict


def blocking(event: HookEvent, reason: str, who: str) -> Verdict:
    """Return what a block (exit code 2) means at `event`, as Claude Code's table has it."""
    if event is HookEvent.PRE_TOOL_USE:
        return Verdict("deny", (f"{who}: {reason}",))
    if event in _BLOCKED:
        return Verdict(block=(reason,))
    if event in {HookEvent.PERMISSION_REQUEST, HookEvent.NOTIFICATION}:
        return Verdict()
    return Verdict(messages=(f"{who}: {reason}",))


def failed(event: HookEvent, why: str, who: str, on_failure: OnFailure = "") -> Verdict:
    """Return what it means that a hook failed: at a gate the person is asked, unless the hook says what else to do."""
    sentence = f"The hook {who} failed: {why.rstrip('.')}."
    if on_failure == "continue" or event in _UNHEARD:
        return Verdict()
    if on_failure == "block":
        if event is HookEvent.PERMISSION_REQUEST:
            return Verdict("deny", (sentence,))
        return Verdict("deny", (sentence,)) if event is HookEvent.PRE_TOOL_USE else blocking(event, sentence, who)
    if event is HookEvent.PRE_TOOL_USE:
        return Verdict("ask", (f"{who} failed: {why.rstrip('.')}",), failed=(sentence,))
    return Verdict(failed=(sentence,))


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def of_json(event: HookEvent, data: object, who: str) -> Verdict:
    """Return what a JSON object says at `event`; raises `Failed` where a field has another shape than it must have.

    Fields that are not known are passed over, and so are those that do not count at this event.
    """
    if not isinstance(data, Mapping):
        raise Failed(f"its answer is no table: {data!r}")
    said = _Fields(cast("Mapping[str, Any]", data))
    goes_on = said.get("continue", bool, said.get("continue_", bool, default=True))
    message, reason = said.get("systemMessage", str, ""), said.get("reason", str, "")
    stop = said.get("stopReason", str, "") or f"Stopped by the hook {who}."
    decision = said.get("decision", str, "")
    if decision not in {"", "block", "approve"}:
        raise Failed(f"its decision {decision!r} is not known")
    special = _Fields(said.get("hookSpecificOutput", dict, cast("Json", {})))
    if special.data and special.get("hookEventName", str, "") != event:
        raise Failed(f"its hookSpecificOutput is not for {event}")
    if event in _UNHEARD:
        return Verdict()
    ends = not goes_on and event is not HookEvent.TASK_CREATED
    verdict = Verdict(messages=(f"{who}: {message}",) if message else (), stop=stop if ends else "")
    if decision == "block":
        verdict = both(verdict, blocking(event, reason or "it says no", who))
    elif decision == "approve" and event is HookEvent.PRE_TOOL_USE:
        verdict = both(verdict, Verdict("allow", (f"{who}: {reason}".rstrip(": "),)))
    return both(verdict, _special(event, special, who))


def _special(event: HookEvent, said: _Fields, who: str) -> Verdict:
    """Return what the fields of `hookSpecificOutput` say."""
    context = said.get("additionalContext", str, "")
    verdict = Verdict(context=(context,) if context.strip() else ())
    match event:
        case HookEvent.PRE_TOOL_USE:
            return both(verdict, _permission(said, who))
        case HookEvent.PERMISSION_REQUEST:
            return _request(said, who)
        case HookEvent.POST_TOOL_USE:
            name = "updatedToolOutput" if "updatedToolOutput" in said.data else "updatedMCPToolOutput"
            return both(verdict, Verdict(updated_output=(said.data[name],))) if name in said.data else verdict
        case HookEvent.USER_PROMPT_SUBMIT:
            return both(verdict, Verdict(title=said.get("sessionTitle", str, "")))
        case HookEvent.SESSION_START:
            first = said.get("initialUserMessage", str, "")
            title = said.get("sessionTitle", str, "")
            return both(verdict, Verdict(title=title, opening=(first,) if first.strip() else ()))
        case _:
            return verdict


def _permission(said: _Fields, who: str) -> Verdict:
    word = said.get("permissionDecision", str, "")
    if word not in {"", "allow", "ask", "deny", "defer"}:
        raise Failed(f"its permissionDecision {word!r} is none of allow, ask, deny, defer")
    reason = said.get("permissionDecisionReason", str, "")
    updated = cast("Json | None", said.get("updatedInput", dict, None))
    if word == "defer":  # nobody comes back later to decide: somebody is asked now
        word, reason = "ask", reason or "it wants this to be decided later"
    reasons = (f"{who}: {reason}" if reason else who,) if word else ()
    return Verdict(cast("Any", word), reasons, updated_input=updated)


def _request(said: _Fields, who: str) -> Verdict:
    decision = _Fields(said.get("decision", dict, cast("Json", {})))
    if not decision.data:
        return Verdict()
    match decision.get("behavior", str, ""):
        case "allow":
            updated = cast("Json | None", decision.get("updatedInput", dict, None))
            rules = _rules(decision.get("updatedPermissions", list, cast("list[Any]", [])))
            return Verdict("allow", (who,), updated_input=updated, rules=rules)
        case "deny":
            why = decision.get("message", str, "")
            interrupt = decision.get("interrupt", bool, default=False)
            return Verdict("deny", (f"{who}: {why}" if why else who,), interrupt=bool(interrupt))
        case other:
            raise Failed(f"its behavior {other!r} is neither allow nor deny")


def _rules(updates: list[Any]) -> Rules:
    """Return the rules that permission updates add for the session; other updates are for a person to make."""
    found: list[tuple[Any, str]] = []
    for update in updates:
        entry = _Fields(cast("Json", update)) if isinstance(update, dict) else _Fields({})
        if entry.get("type", str, "") != "addRules" or entry.data.get("behavior") not in ("allow", "ask", "deny"):
            continue
        for rule in entry.get("rules", list, cast("list[Any]", [])):
            named = _Fields(cast("Json", rule)) if isinstance(rule, dict) else _Fields({})
            content = named.get("ruleContent", str, "")
            tool = named.get("toolName", str, "")
            found.append((entry.data["behavior"], f"{tool}({content})" if content else tool))
    return tuple(found)


class _Fields:
    """A JSON object whose fields are asked for with the type that they must have."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    def get(self, name: str, kind: type, default: Any) -> Any:
        """Return a field; null counts as absent; raises `Failed` where it has another type."""
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise Failed(f"its {name} is {value!r}, which is no {_KINDS[kind]}")
        return value


_KINDS = {bool: "true or false", str: "text", dict: "table", list: "list"}


def _json_in(text: str) -> Json | str | None:
    """Return the JSON object that `text` is; why it is none where it begins like one; None for any other text."""
    text = text.strip()
    if not text.startswith("{"):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return str(error)
    return cast("Json", data)
