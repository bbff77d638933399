"""Wrong answers to lesson 07: left open, collected, a phase forgotten; a result too early; break alone; one level only."""

from __future__ import annotations

from nbagent.teach.lessons.composing import EXERCISES

_CLOSE, _RESULT, _ENOUGH, _DEPTH = (each.answer for each in EXERCISES)


def _but(source: str, old: str, new: str) -> str:
    """The given answer with one thing wrong."""
    assert old in source
    return source.replace(old, new)


WRONG: dict[str, tuple[str, str, str]] = {
    "07.close": (
        """
async def pipeline(log):
    for name in ("load", "clean"):
        async for event in phase(name, 2, log):
            yield event
""",
        """
async def pipeline(log):
    events = [e async for e in phase("load", 2, log)] + [e async for e in phase("clean", 2, log)]
    for event in events:
        yield event
""",
        _but(_CLOSE, '("load", "clean")', '("load",)'),
    ),
    "07.result": (
        _but(_RESULT, "        total = 0\n", "        total = 0\n        self.total = sum(self.values)\n"),
        _but(_RESULT, "            yield value\n", "            self.total = total\n            yield value\n"),
        _but(_RESULT, "        self.total = total\n", ""),
    ),
    "07.enough": (
        _but(_ENOUGH, "    async with aclosing(facts):\n        async for", "    if True:\n        async for"),
        _but(_ENOUGH, "refused > limit", "refused >= limit"),
        _but(_ENOUGH, "            if refused > limit:\n                break\n", ""),
    ),
    "07.depth": (
        _but(_DEPTH, "while", "if"),
        "def depth_of(event):\n    return event.turn\n",
        _but(_DEPTH, "found = 0", "found = 1"),
    ),
}
