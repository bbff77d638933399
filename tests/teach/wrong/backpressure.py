"""Wrong answers to lesson 06: left open, read to the end; results lost, an error; a buffer without an end, none, one left running."""

from __future__ import annotations

from nbagent.teach.lessons.backpressure import EXERCISES

_THIRD, _WITHIN, _AHEAD = (each.answer for each in EXERCISES)

_BARE = """
async def first_three(job):
    events = []
    async for event in loop(job, beginning()):
        events.append(event)
        if len(events) == 3:
            break
    return events
"""

WRONG: dict[str, tuple[str, str, str]] = {
    "06.third": (
        _BARE,
        "async def first_three(job):\n    return [event async for event in loop(job, beginning())][:3]",
        _THIRD.replace("== 3", "> 3"),
    ),
    "06.within": (
        _WITHIN.replace("    except TimeoutError:\n        pass\n", "    except TimeoutError:\n        kept = []\n"),
        _WITHIN.replace("    except TimeoutError:\n        pass\n", "    finally:\n        pass\n"),
        _WITHIN.replace("kept.append(event)\n", "kept.append(event)\n                if len(kept) == 2:\n                    break\n"),
    ),
    "06.ahead": (
        _AHEAD.replace("asyncio.Queue(size)", "asyncio.Queue()"),
        "async def ahead(source, size):\n    async for value in source:\n        yield value",
        _AHEAD.replace("    try:\n        while", "    if True:\n        while").replace("    finally:\n        filling.cancel()\n        await asyncio.wait([filling])\n", ""),
    ),
}  # fmt: skip
