"""The exercises of lesson 11, subagents, forks and teams: a loop inside a call, a copy that may go on, a claim nobody else has."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from nbagent.core.messages import Message, plain_text
from nbagent.core.tools import Tool, tool
from nbagent.models.scripted import Scripted, call, last_results
from nbagent.teach.bench import bench
from nbagent.teach.exercises import Exercise, NotYet
from nbagent.teach.lists import Seen, SharedList

LINES = 40
"""Lines that the lesson's log has: enough that nobody wants them in their context."""


def read_log() -> Tool:
    """Return the tool of the helper: a long log in which one line matters."""

    @tool
    async def read_log(_: object) -> str:
        """Read the whole log."""
        lines = [f"12:{n:02} station {n % 7} reports, all well" for n in range(LINES)]
        lines[23] = "12:23 station 4 FAILED: battery"
        return "\n".join(lines)

    return read_log


def helper_script() -> list[Scripted]:
    """Return what the helper's model does: reads the log, and answers with the line that matters."""

    def answer(transcript: Sequence[Message]) -> str:
        failed = [line for line in last_results(transcript)[0].splitlines() if "FAILED" in line]
        return f"One failure: {failed[0]}"

    return [call("read_log"), answer]


async def _helper(names: Mapping[str, Any]) -> None:
    given = names["ask_helper"]
    if not isinstance(given, Tool):
        raise NotYet("ask_helper should be a tool: keep the line `@tool` above it.")
    outer = bench([call("ask_helper", question="What failed?"), lambda seen: last_results(seen)[0]], [given])
    await outer.collect("What failed in the night?")
    (result,) = [b for m in outer.transcript for b in m["content"] if b["type"] == "tool_result"]
    text = plain_text(result["content"])
    if "battery" not in text:
        raise NotYet(f"the result that reaches the outer model is {text[:80]!r}: where is the helper's answer?")
    if "all well" in text:
        raise NotYet(
            "the whole log is in the outer model's context now. A helper gives back its answer, not all that it read."
        )
    if len(outer.transcript) != 4:
        raise NotYet(
            "the outer conversation has four messages: prompt, call, result, answer. The helper's own belong to the helper."
        )


def _fork(names: Mapping[str, Any]) -> None:
    fork = names["fork"]
    before = _conversation()
    kept = copy.deepcopy(before)
    for at, right in ((1, 1), (4, 4), (6, 6), (3, 3), (2, 1)):
        branch = fork(before, at)
        if len(branch) != right:
            raise NotYet(f"fork(messages, {at}) has {len(branch)} messages, and {right} are right. {_WHY[at]}")
        if branch != kept[:right]:
            raise NotYet(f"fork(messages, {at}) must be word for word the beginning of the conversation.")
        if branch:
            branch.append({"role": "user", "content": [{"type": "text", "text": "another way"}]})
            branch[0]["content"][0]["text"] = "changed in the branch"
    if before != kept:
        raise NotYet(
            "what was done to the branch has changed the conversation that it came from. A list of dicts is copied only on top."
        )


_WHY = {
    1: "The question is open, the model answers it in its own way.",
    2: "Message 2 has a call whose result would be message 3: a branch that ends with an open call is refused by the API.",
    3: "After message 3 the call is answered.",
    4: "After message 4 nothing is open.",
    6: "That is all of them.",
}


def _conversation() -> list[dict[str, Any]]:
    """Two questions; for the first one the model looks something up."""
    said = [
        ("user", "How many?"),
        ("assistant", ""),
        ("user", ""),
        ("assistant", "344 rows."),
        ("user", "And by island?"),
        ("assistant", "168 on Biscoe."),
    ]
    messages: list[dict[str, Any]] = [
        {"role": role, "content": [{"type": "text", "text": words}]} for role, words in said
    ]
    messages[1]["content"] = [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
    ]
    messages[2]["content"] = [{"type": "tool_result", "tool_use_id": "t1", "content": "344 rows"}]
    return messages


class _Crowded(SharedList):
    """A list where a rival takes a task just after it has been read, so many times."""

    def __init__(self, *tasks: str, rivals: Sequence[str]) -> None:
        super().__init__(*tasks)
        self._rivals = list(rivals)

    def read(self) -> Seen:
        """Return the list as it is; then the next rival takes its task."""
        seen = super().read()
        if self._rivals:
            task = self._rivals.pop(0)
            now = super().read()
            self.swap(now.version, {**now.owners, task: "rival"})
        return seen


def _claim(names: Mapping[str, Any]) -> None:
    claim = names["claim"]
    quiet = SharedList("a", "b")
    if claim(quiet, "ada") != "a" or quiet.read().owners != {"a": "ada", "b": ""}:
        raise NotYet("with nobody else there, ada gets the first free task, and the list says so.")
    if claim(quiet, "bob") != "b" or claim(quiet, "cyd") is not None:
        raise NotYet("bob gets the second one; for cyd there is none left, and the answer is None.")
    crowded = _Crowded("a", "b", "c", rivals=["a", "b"])
    got = claim(crowded, "ada")
    owners = crowded.read().owners
    if owners["a"] != "rival" or owners["b"] != "rival":
        raise NotYet(f"a rival took a and b first, and now the owners are {owners}: somebody's claim was overwritten.")
    if got != "c" or owners["c"] != "ada":
        raise NotYet(
            f"your claim says {got!r}, and the list says {owners}. A swap that came too late means: read again."
        )


_HELPER = '''
@tool
async def ask_helper(_, question: str) -> str:
    """Ask a helper that reads the log for you.

    Args:
        question: What you want to know.
    """
    inner = bench(helper_script(), [read_log()])
    events = await inner.collect(question)
    return "".join(event.text for event in events if event.type == "text_delta")
'''

_FORK = """
import copy


def fork(messages, at):
    branch = copy.deepcopy(messages[:at])
    if branch and any(block["type"] == "tool_use" for block in branch[-1]["content"]):
        branch.pop()
    return branch
"""

_CLAIM = """
def claim(shared, who):
    while True:
        version, owners = shared.read()
        free = [task for task, owner in owners.items() if not owner]
        if not free:
            return None
        if shared.swap(version, {**owners, free[0]: who}):
            return free[0]
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "11.helper",
        "your tool runs a loop of its own and gives back the answer only",
        (
            "A subagent is a tool whose work is a whole run. What of that run does the outer model need?",
            "Inside the tool: a new bench with `helper_script()` and `[read_log()]`, run to its end; then the text of its last reply.",
            "Join the `text` of all events of type `text_delta` of the inner run and return that. Not the results, not the events.",
        ),
        _HELPER,
        _helper,
    ),
    Exercise(
        "11.fork",
        "your branch is a valid conversation and shares nothing with the one it came from",
        (
            "Which message can't be the last one of a request?",
            "A reply with a call whose result is not there. If the copy ends with one, leave it out.",
            "`copy.deepcopy(messages[:at])`, then `pop()` if the last message has a block of type tool_use.",
        ),
        _FORK,
        _fork,
    ),
    Exercise(
        "11.claim",
        "two workers never own the same task, whoever comes in between",
        (
            "Between your read and your swap somebody may have taken the task. How do you notice?",
            "`swap` says whether the version was still the same. What do you do when it was not?",
            "A loop: read, find a free one (None if there is none), swap; if the swap was refused, read again.",
        ),
        _CLAIM,
        _claim,
    ),
)  # fmt: skip
