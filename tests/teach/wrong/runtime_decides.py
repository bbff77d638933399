"""Wrong answers to lesson 08: a rule that opens a mode, a star too many, a hook that breaks on other tools, a No that ends the task."""

from __future__ import annotations

_ALL = """
predicted = {{
    "read in read-only": "{0}",
    "write in default": "{1}",
    "write in accept-edits": "allow",
    "write in read-only": "deny",
    "write in dont-ask": "{2}",
    "write in read-only, with a rule that allows write_file": "{3}",
    "write in bypass, with a rule that denies write_file": "{4}",
}}
"""
_DENY = """return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}}"""

WRONG: dict[str, tuple[str, str, str]] = {
    "08.predict": (
        _ALL.format("allow", "ask", "deny", "allow", "deny"),
        _ALL.format("allow", "ask", "ask", "deny", "deny"),
        _ALL.format("allow", "ask", "deny", "deny", "allow"),
    ),
    "08.rule": (
        'rules = [("allow", "write_file(data/counts.csv*)"), ("deny", "write_file(data/birds.csv)"), ("deny", "remove_file")]',
        'rules = [("allow", "write_file"), ("deny", "write_file(data/birds.csv)"), ("deny", "remove_file(data/birds.csv)")]',
        'rules = [("allow", "write_file(data/counts.csv)"), ("ask", "write_file(data/birds.csv)"), ("ask", "remove_file")]',
    ),
    "08.hook": (
        f'def no_emptying(said):\n    if not said["tool_input"]["content"].strip():\n        {_DENY}',
        f'def no_emptying(said):\n    if not said["tool_input"].get("content"):\n        {_DENY}',
        'def no_emptying(said):\n    return said["tool_input"].get("content") != ""',
    ),
    "08.careful": (
        "def careful(approval):\n    return Answered(True)",
        'def careful(approval):\n    return Answered(approval.input["path"] == "data/counts.csv")',
        'def careful(approval):\n    return Answered(False, words="No.")',
    ),
}
