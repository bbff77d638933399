"""Wrong answers to lesson 14: lines of what looks alike, ways to grow that are not seen, calls that ask no model."""

from __future__ import annotations

from nbagent.teach.lessons.find_the_loop import EXERCISES

_MARKS, _GROWING, _REQUESTS = (each.answer for each in EXERCISES)

WRONG: dict[str, tuple[str, str, str]] = {
    "14.marks": (
        _MARKS.replace('"stop": 3', '"stop": 7'),
        _MARKS.replace('"append": 16', '"append": 12'),
        _MARKS.replace('"request": 4, "go_on": 6, "append": 8', '"request": 9, "go_on": 6, "append": 5'),
    ),
    "14.growing": (
        _GROWING.replace("ast.AugAssign)", "ast.Delete)"),
        _GROWING.replace("            if ast.unparse(node.value.left) == name:\n    ", "            if name:\n    "),
        'def growing(source):\n    return {name for name in ("log", "past", "self.memory") if name in source}',
    ),
    "14.requests": (
        _REQUESTS.replace('{"len", *own}', "own"),
        _REQUESTS.replace('{"len", *own}', '{"len"}'),
        "def requests(source):\n    return [n for n, text in enumerate(source.splitlines(), 1) if '(log)' in text or '(past)' in text or '(self.memory)' in text]",
    ),
}  # fmt: skip
