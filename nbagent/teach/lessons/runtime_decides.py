"""The exercises of lesson 08, the runtime decides: predict decisions, write rules, a hook and an approver against a hidden order."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from nbagent.core.errors import ConfigError
from nbagent.core.events import ApprovalAnswered, CallDecided, CallEnded, Event, RunEnded, Status
from nbagent.core.policy import Decision, Mode, decision_of
from nbagent.core.ports import Answered, Approval, Question
from nbagent.core.rules import Rule
from nbagent.teach.exercises import Exercise, NotYet
from nbagent.teach.guards import COUNTS, RIGHT, TASK, Desk, desk_bench

Rules = Sequence[tuple[Any, str]]


def decide(tool: str, rules: Rules = (), mode: str = "default", **given: str) -> Decision:
    """Return what happens to a call of a tool of the desk under these rules, pairs like `("deny", "write_file")`, and this mode."""
    made = {each.name: each for each in Desk().tools()}[tool]
    return decision_of(Mode(mode), [Rule.parse(action, text) for action, text in rules], made, given)


def told(events: Sequence[Event]) -> str:
    """Return the decisions of a run, one a line, and how it ended."""
    lines: list[str] = []
    for event in events:
        match event:
            case CallDecided():
                lines.append(f"{event.name}({event.input['path']}): {event.action}, {event.rule}")
            case ApprovalAnswered():
                lines.append(f"    answered: {'yes' if event.approved else 'no'} {event.words}".rstrip())
            case CallEnded(status=Status.DENIED):
                lines.append(f"    the model is told: {event.summary}")
            case RunEnded():
                lines.append(f"{event.reason}: {event.sentence}")
            case _:
                pass
    return "\n".join(lines)


class Asks:
    """The approver that a function makes: `decide` gets each approval and returns an `Answered`, or a coroutine of one."""

    present = True

    def __init__(self, decide: Any) -> None:
        self._decide = decide

    async def ask(self, approval: Approval) -> Answered:
        """Return what the function says."""
        found = self._decide(approval)
        return await found if inspect.isawaitable(found) else found

    async def question(self, question: Question) -> str:  # noqa: ARG002 - the port's signature
        """Leave every question open."""
        return ""


# ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

CASES: dict[str, tuple[str, str, Rules]] = {
    "read in read-only": ("read_file", "read-only", ()),
    "write in default": ("write_file", "default", ()),
    "write in accept-edits": ("write_file", "accept-edits", ()),
    "write in read-only": ("write_file", "read-only", ()),
    "write in dont-ask": ("write_file", "dont-ask", ()),
    "write in read-only, with a rule that allows write_file": ("write_file", "read-only", [("allow", "write_file")]),
    "write in bypass, with a rule that denies write_file": ("write_file", "bypass", [("deny", "write_file")]),
}
"""What is to be predicted: what it is called → tool, mode, rules."""


def _predict(names: Mapping[str, Any]) -> None:
    predicted = names["predicted"]
    for case, (tool, mode, rules) in CASES.items():
        said = predicted.get(case)
        if said not in {"allow", "ask", "deny"}:
            raise NotYet(f"“{case}”: write 'allow', 'ask' or 'deny'.")
        if said != decide(tool, rules, mode, path=COUNTS, content="x").action:
            raise NotYet(f"“{case}” is not {said!r}. Which station of the picture gives the first clear yes or no?")


def _rules(names: Mapping[str, Any]) -> None:
    rules = list(names["rules"])
    wanted = [
        ("write_file", COUNTS, "default", "allow", "the file that was asked for is written without a question"),
        ("write_file", "data/birds.csv", "default", "deny", "the raw data is never written"),
        ("write_file", "data/birds.csv", "bypass", "deny", "not even in the mode bypass"),
        ("remove_file", "data/birds.csv", "bypass", "deny", "and never removed, either"),
        ("write_file", "data/notes.csv", "default", "ask", "every other file is asked about"),
        ("write_file", "data/counts.csv.bak", "default", "ask", "a name that only begins the same is another file"),
        ("remove_file", COUNTS, "default", "ask", "to remove is not to write"),
        ("read_file", "data/birds.csv", "default", "allow", "looking stays free"),
    ]
    for tool, path, mode, right, why in wanted:
        given = {"path": path, "content": "x"} if tool == "write_file" else {"path": path}
        try:
            found = decide(tool, rules, mode, **given)
        except (ConfigError, TypeError, ValueError) as error:
            raise NotYet(f"a rule can't be read: {error} A rule is a pair such as ('allow', 'read_file').") from None
        if found.action != right:
            raise NotYet(
                f"{tool}({path}) in mode {mode}: {why}, so it must be {right!r}. Your rules say {found.action!r}."
            )


def _hook(names: Mapping[str, Any]) -> None:
    hook = names["no_emptying"]
    for tool, given, denies, why in (
        ("write_file", {"path": "a.csv", "content": ""}, True, "a file is emptied"),
        ("write_file", {"path": "a.csv", "content": " \n\n"}, True, "blanks and line breaks are nothing, too"),
        ("write_file", {"path": "a.csv", "content": "x\n"}, False, "this writes something"),
        ("read_file", {"path": "a.csv"}, False, "a call that only looks has no content at all"),
    ):
        said = hook({"tool_name": tool, "tool_input": dict(given), "hook_event_name": "PreToolUse"}) or {}
        if not isinstance(said, dict):
            raise NotYet(
                f"a hook returns a dict, or None where it has nothing to say; yours returned {type(said).__name__}."
            )
        found = said.get("hookSpecificOutput", {})
        if (found.get("permissionDecision") == "deny") is not denies:
            raise NotYet(f"{tool} with {given}: {why}, so it must{'' if denies else ' not'} be denied.")
        if denies and not str(found.get("permissionDecisionReason", "")).strip():
            raise NotYet("it is denied without a reason: the model gets the reason as the result, and goes on with it.")


async def _approver(names: Mapping[str, Any]) -> None:
    desk = Desk()
    made = desk_bench("obedient", desk=desk)
    made.approver = Asks(names["careful"])
    events = await made.collect(TASK.format("data/birds.csv"))
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    if harm := [text for text in desk.damage() if COUNTS not in text]:
        raise NotYet(f"{harm[0]}: you said yes to a call that nobody had asked for.")
    if str(ended.reason) == "denied":
        raise NotYet(
            "the run is over, and the task is not done: a No without words ends a run. What could you say instead?"
        )
    if desk.files.get(COUNTS) != RIGHT:
        raise NotYet(f"the file that was asked for, {COUNTS}, is not there as it should be: it needs a yes.")


_PREDICT = """
predicted = {
    "read in read-only": "allow",
    "write in default": "ask",
    "write in accept-edits": "allow",
    "write in read-only": "deny",
    "write in dont-ask": "deny",
    "write in read-only, with a rule that allows write_file": "deny",
    "write in bypass, with a rule that denies write_file": "deny",
}
"""

_RULES = """
rules = [
    ("allow", "write_file(data/counts.csv)"),
    ("deny", "write_file(data/birds.csv)"),
    ("deny", "remove_file(data/birds.csv)"),
]
"""

_HOOK = """
def no_emptying(said):
    content = said["tool_input"].get("content")
    if content is not None and not content.strip():
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "no file is emptied here",
            }
        }
"""

_APPROVER = """
def careful(approval):
    if approval.input["path"] == "data/counts.csv":
        return Answered(True)
    return Answered(False, words="Only data/counts.csv was asked for. Go on with the task.")
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "08.predict",
        "you can say what happens to a call before it is made",
        (
            "Go through the stations from left to right. The first clear yes or no decides; ask is neither.",
            "In the mode dont-ask nobody is asked, so what would be asked is refused, unless a rule allows it. In read-only the mode itself says no, and no allow rule comes after that.",
            "Only two of the seven are allowed: looking is free in every mode, and accept-edits is made for writing. One is asked. Four are refused.",
        ),
        _PREDICT,
        _predict,
    ),
    Exercise(
        "08.rule",
        "your rules let one file be written, keep the raw data safe in every mode, and leave all else to the person",
        (
            "You need a rule that allows and rules that deny. The deny rules also count in the mode bypass.",
            "A rule may name what the call is about, in brackets: `write_file(PATH)`. Removing is another tool, so it needs a rule of its own.",
            'Three pairs: `("allow", "write_file(…counts…)")`, `("deny", "write_file(…birds…)")`, and the last one for `remove_file`. Write the whole paths, without a star.',
        ),
        _RULES,
        _rules,
    ),
    Exercise(
        "08.careful",
        "the order is refused, the raw data is whole, and the task is done all the same",
        (
            "`approval.input` is what would run. Which file did the person ask for?",
            "`Answered(True)` is a yes. `Answered(False)` is a No that ends the run; with words, the model gets them and goes on.",
            'Yes if `approval.input["path"]` is the file of the task; else `Answered(False, words="…")`.',
        ),
        _APPROVER,
        _approver,
    ),
    Exercise(
        "08.hook",
        "your hook holds back a call that would empty a file, says why, and lets all others pass",
        (
            "`said['tool_input']` is what the call was given. Not every tool has a `content`.",
            "`.get('content')` is None where there is none. Blanks are no content: `.strip()`.",
            'Return `{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "…"}}` if there is a content and nothing is left of it after `.strip()`.',
        ),
        _HOOK,
        _hook,
    ),
)  # fmt: skip
