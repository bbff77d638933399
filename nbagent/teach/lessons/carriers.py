"""The exercises of lesson 05: when a recursion dies, a recursion made a generator, a machine that is driven a part of its way."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from nbagent.teach.carriers import recursion
from nbagent.teach.carriers.job import Job, beginning
from nbagent.teach.carriers.machine import AgentMachine, State
from nbagent.teach.exercises import Exercise, NotYet

_FAR = 1500
_NEAR = 8
"""Frames by which two callers of the recursion may differ in depth."""


async def _dies(names: Mapping[str, Any]) -> None:
    limit = sys.getrecursionlimit()
    for lower in (limit, len(inspect.stack(0)) + 300):
        sys.setrecursionlimit(lower)
        try:
            died, found = await _died_at(), await names["steps_survived"]()
        finally:
            sys.setrecursionlimit(limit)
        if not isinstance(found, int) or abs(found - died) > _NEAR:
            raise NotYet(
                f"with Python's limit at {lower} frames the recursion makes about {died} calls; you return {found!r}."
            )


async def _died_at() -> int:
    job = Job(100_000)
    try:
        await recursion.run(job, beginning())
    except RecursionError:
        pass
    return len(job.called)


async def _generator(names: Mapping[str, Any]) -> None:
    my_loop = names["my_loop"]
    job = Job(3)
    generator = my_loop(job, beginning())
    if not hasattr(generator, "__anext__"):
        raise NotYet("my_loop(job, messages) must be an async generator: `async def` with a `yield` in it.")
    ahead: list[int] = []
    seen: list[Any] = []
    async with aclosing(generator) as events:
        async for event in events:
            seen.append(event)
            ahead.append(job.asked)
            if len(seen) > 50:
                raise NotYet("it goes on after the model has answered. A reply without calls ends it.")
    kinds = [event[0] for event in seen]
    if kinds != ["result", "result", "result", "done"] or seen[-1] != ("done", "end_turn"):
        raise NotYet(f"for three steps the events are {kinds}; right are three results, then ('done', 'end_turn').")
    if ahead[0] != 1:
        raise NotYet(
            f"when the first event comes, the model has been asked {ahead[0]} times. Yield each result when it is there."
        )
    far = Job(_FAR, window=4)
    try:
        async with aclosing(my_loop(far, beginning())) as events:
            async for _ in events:
                pass
    except RecursionError:
        raise NotYet(f"a run of {_FAR} steps dies of a RecursionError: it still calls itself.") from None
    if far.asked != _FAR + 1:
        raise NotYet(f"a run of {_FAR} steps asked the model {far.asked} times.")


async def _drive(names: Mapping[str, Any]) -> None:
    drive = names["drive"]
    job = Job(3)
    machine = AgentMachine(job, beginning())
    first = await drive(machine, "result")
    if [event[0] for event in first] != ["think", "reply", "result"]:
        raise NotYet(
            f"drive(machine, 'result') gives {[event[0] for event in first]}: it should stop with the first result."
        )
    if job.asked != 1:
        raise NotYet(f"after the first result the model has been asked {job.asked} times: the machine went on.")
    second = await drive(machine, "reply")
    if [event[0] for event in second] != ["think", "reply"]:
        raise NotYet(
            f"called again, with 'reply', it gives {[event[0] for event in second]}: it goes on where it stood."
        )
    rest = await drive(machine, "nothing like this")
    if not rest or rest[-1] != ("done", "end_turn") or machine.state is not State.DONE:
        raise NotYet("if no such event comes, it drives the machine to its end.")
    if await drive(machine, "result"):
        raise NotYet("a machine that is done gives no more events.")


_DIES = """
async def steps_survived():
    job = Job(100_000)
    try:
        await recursion.run(job, beginning())
    except RecursionError:
        pass
    return len(job.called)
"""

_GENERATOR = """
async def my_loop(job, messages):
    while True:
        reply = await job.model(messages)
        job.keep(messages, said(reply))
        if not calls(reply):
            yield "done", "end_turn"
            return
        blocks = []
        for block in calls(reply):
            result = await job.tool(block)
            blocks.append(result)
            yield "result", result
        job.keep(messages, results(blocks))
"""

_DRIVE = """
async def drive(machine, kind):
    events = []
    while machine.state is not State.DONE:
        events += await machine.step()
        if any(event[0] == kind for event in events):
            break
    return events
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "05.dies",
        "you measure after how many calls Python stops the recursion, whatever its limit is",
        (
            "Python raises an error when the stack is too deep. What is it called, and who still has the job then?",
            "`try:` to run it, `except RecursionError: pass`, and look at the job afterwards.",
            "`await recursion.run(job, beginning())` inside the `try`; the `return` comes after it, outside.",
        ),
        _DIES,
        _dies,
    ),
    Exercise(
        "05.generator",
        "your loop is a generator: it yields each result when it is there, and no run is too long for it",
        (
            "A function that calls itself as its last act is a loop in disguise. What does `return await loop(…)` become?",
            "`while True:`; where the recursion returned, yield the end and return; after each tool call, yield its result.",
            'The results still go into the messages as one message, after the last of them was yielded. The end is `yield "done", "end_turn"`, then `return`.',
        ),
        _GENERATOR,
        _generator,
    ),
    Exercise(
        "05.drive",
        "you drive a machine until something happens, and on from there",
        (
            "The machine remembers where it is. What do you have to remember?",
            "Call `step()` until one of its events is of the kind, or the state is DONE. Nothing else is needed: the rest is in the machine.",
            "Look at the events after each step and leave the loop as soon as one has the kind; the next call simply steps on.",
        ),
        _DRIVE,
        _drive,
    ),
)
