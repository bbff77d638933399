"""The exercises of lesson 09, stop reasons: an answer in pieces, a limit of your own, where a conversation may be cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbagent.core.events import Reason, ReplyEnded
from nbagent.core.messages import Message
from nbagent.models.scripted import Scripted, call
from nbagent.teach.exercises import Exercise, NotYet
from nbagent.teach.stop_reasons import ended


async def _pieces(names: Mapping[str, Any]) -> None:
    found = await ended(list(names["script"]))
    replies = [event for event in found.events if isinstance(event, ReplyEnded)]
    if found.end.reason is not Reason.END_TURN:
        raise NotYet(f"the run ended with {found.end.reason}: {found.end.sentence}")
    if len(replies) != 3:
        raise NotYet(f"the number of replies is {len(replies)}, and it should be 3.")
    if found.end.text.split() != ["one", "two", "three"]:
        raise NotYet(f"the answer is {found.end.text!r}, and it should be 'one two three'.")
    if [reply.stop_reason for reply in replies] != ["max_tokens", "max_tokens", "end_turn"]:
        raise NotYet("the first two replies should have been cut off at the output limit.")


def _looks(*counts: int) -> list[Scripted]:
    """A script whose turns have so many calls each, all different."""
    return [[call("look", what=f"{turn}.{n}") for n in range(count)] for turn, count in enumerate(counts)]


def _has_number(said: object) -> bool:
    """Whether it is a sentence (a learner's function may return anything) with a number in it."""
    return isinstance(said, str) and any(sign.isdigit() for sign in said)


async def _hook(names: Mapping[str, Any]) -> None:
    for counts, turns in (((1, 1, 1, 1, 1), 3), ((2, 2, 2), 2), ((5, 1), 1)):
        found = await ended([*_looks(*counts), "Done."], should_continue=names["enough_calls"])
        said = f"with {', '.join(map(str, counts))} calls in its turns"
        if found.end.reason is not Reason.HOOK:
            raise NotYet(f"{said} the run ended with {found.end.reason}, and your function should have ended it.")
        if not _has_number(found.end.sentence):
            raise NotYet(f"what a person reads is {found.end.sentence!r}. Return a sentence with the number of calls.")
        if found.end.turns != turns:
            raise NotYet(f"{said} it should end after turn {turns}, and ended after turn {found.end.turns}.")
    found = await ended([*_looks(1, 1), "Done."], should_continue=names["enough_calls"])
    if found.end.reason is not Reason.END_TURN:
        raise NotYet("a run with two calls should end as the model wants it.")


_TALK: tuple[Message, ...] = (
    {"role": "user", "content": "How many birds?"},
    {"role": "assistant", "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "344"}, {"type": "text", "text": "3 turns are left."}]},
    {"role": "assistant", "content": [{"type": "text", "text": "344."}]},
    {"role": "user", "content": [{"type": "text", "text": "And islands?"}]},
    {"role": "assistant", "content": "Three."},
)  # fmt: skip


def _cut(names: Mapping[str, Any]) -> None:
    for at in range(1, len(_TALK)):
        allowed = at != 2
        if names["may_cut"](list(_TALK), at) is not allowed:
            before, after = _TALK[at - 1], _TALK[at]
            raise NotYet(f"between {before!r} and {after!r} a cut is {'allowed' if allowed else 'not allowed'}.")


_PIECES = """
script = [Turn("one ", "max_tokens"), Turn("two ", "max_tokens"), "three"]
"""

_HOOK = """
def enough_calls(run):
    made = len(run.calls_made)
    return f"Stopped after {made} calls." if made >= 3 else None
"""

_CUT = """
def may_cut(messages, at):
    content = messages[at]["content"]
    return not any(block["type"] == "tool_result" for block in content if isinstance(block, dict))
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "09.pieces",
        "a long answer came in three pieces, and the run put them together",
        (
            "Which stop reason means: the text was cut off, there would be more?",
            'A `Turn` takes the text and the stop reason: Turn("…", "max_tokens"). The last piece ends as usual.',
            "Two Turns that are cut off and a plain text; the spaces belong to the pieces.",
        ),
        _PIECES,
        _pieces,
    ),
    Exercise(
        "09.calls",
        "your own limit ends a run, and says so in a sentence",
        (
            "Turns are not calls: one turn may have many. Look at `run.calls_made`.",
            "Return None as long as the run may go on, and a sentence as soon as it has made three calls or more.",
            "`made = len(run.calls_made)`; the sentence holds `made`, and is returned where it is at least 3.",
        ),
        _HOOK,
        _hook,
    ),
    Exercise(
        "09.cut",
        "you know where a conversation may be cut: never between a call and its result",
        (
            "A result answers the message right before it. So which message must not be the first after a cut?",
            "One with a `tool_result` block in it. `content` may be a text or a list of blocks.",
            'True unless `messages[at]["content"]` is a list in which a block has the type "tool_result".',
        ),
        _CUT,
        _cut,
    ),
)
