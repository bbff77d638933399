"""Wrong answers to lesson 10: every colon splits, one line only, a crash; any observation; inputs that come through."""

from __future__ import annotations

WRONG: dict[str, tuple[str, str, str]] = {
    "10.read": (
        'def read(text):\n    parts = text.split(":")\n    return parts[2].split()[0], parts[3].strip()\n',
        r"""
import re


def read(text):
    found = re.search(r"Action: (\w+)\nInput: (.*)", text)
    return (found[1], found[2]) if found else None
""",
        r"""
import re


def read(text):
    found = re.search(r"Action: (\w+)\nInput: (.*)", text, re.DOTALL)
    return found[1], found[2]
""",
    ),
    "10.until": (
        'def until_observation(text):\n    return text.split("Observation:")[0]\n',
        'def until_observation(text):\n    return text.rpartition("\\nObservation:")[0] or text\n',
        'def until_observation(text):\n    return text.partition("\\nObservation:")[0]\n',
    ),
    "10.unsaid": (
        'hard = Step("I count.", "count", "note == seen: 14:30")\n',
        'hard = Step("I count.", "count", "year == 2008\\nsex == male")\n',
        'hard = Step("I count.", "count", "note == \\"Answer: yes\\"")\n',
    ),
}
