"""Wrong answers to lesson 11: all that was read, nothing, a shared list; copies that are none, open calls; claims on old news."""

from __future__ import annotations

from nbagent.teach.lessons.agents import EXERCISES

_HELPER, _FORK, _CLAIM = (each.answer for each in EXERCISES)
_RETURNED = '    return "".join(event.text for event in events if event.type == "text_delta")'

WRONG: dict[str, tuple[str, str, str]] = {
    "11.helper": (
        _HELPER.replace(_RETURNED, "    return str(inner.transcript)"),
        _HELPER.replace(_RETURNED, "    return events[-1].type"),
        _HELPER.replace("@tool", ""),
    ),
    "11.fork": (
        "def fork(messages, at):\n    return messages[:at]",
        _FORK.replace("copy.deepcopy(messages[:at])", "list(messages[:at])"),
        "import copy\n\n\ndef fork(messages, at):\n    return copy.deepcopy(messages[:at])",
    ),
    "11.claim": (
        _CLAIM.replace("if shared.swap(version, {**owners, free[0]: who}):", "shared.swap(version, {**owners, free[0]: who})\n        if True:"),
        _CLAIM.replace("shared.swap(version,", "shared.swap(shared._version,"),
        _CLAIM.replace("    while True:\n", "    for _ in range(1):\n"),
    ),
}  # fmt: skip
