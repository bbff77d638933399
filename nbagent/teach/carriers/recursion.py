"""The loop as recursion: a turn that needs another turn calls itself. Its users get the answer, and nothing before it."""

from __future__ import annotations

from nbagent.teach.carriers.job import Job, Messages, OnEvent, Stopped, beginning, calls, never, results, said


async def loop(job: Job, messages: Messages, stopped: Stopped = never) -> str:
    """Ask, run the calls, and ask again by calling itself; return why it ended."""
    if stopped():
        return "aborted"
    reply = await job.model(messages)
    job.keep(messages, said(reply))
    if not calls(reply):
        return "end_turn"
    job.keep(messages, results([await job.tool(block) for block in calls(reply)]))
    return await loop(job, messages, stopped)


async def run(job: Job, messages: Messages, stopped: Stopped = never) -> str:
    """Run the loop with its connection open; return why it ended."""
    async with job.connection():
        return await loop(job, messages, stopped)


async def consume(job: Job, on_event: OnEvent, stopped: Stopped = never, messages: Messages | None = None) -> None:
    """Use it as its users do: wait for the value. There is nothing to be told of before, and nothing to leave early."""
    await on_event(("done", await run(job, beginning() if messages is None else messages, stopped)))
