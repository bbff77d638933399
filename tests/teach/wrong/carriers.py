"""Wrong answers to lesson 05: a guess, the error let out, the limit itself; still a recursion, everything at the end, one turn only; driven too far, from new, for ever."""

from __future__ import annotations

from nbagent.teach.lessons.carriers import EXERCISES

_DIES, _GENERATOR, _DRIVE = (each.answer for each in EXERCISES)

_RECURSIVE = """
async def my_loop(job, messages):
    reply = await job.model(messages)
    job.keep(messages, said(reply))
    if not calls(reply):
        yield "done", "end_turn"
        return
    for block in calls(reply):
        yield "result", await job.tool(block)
    async for event in my_loop(job, messages):
        yield event
"""

WRONG: dict[str, tuple[str, str, str]] = {
    "05.dies": (
        "async def steps_survived():\n    return 1000",
        "async def steps_survived():\n    job = Job(100_000)\n    await recursion.run(job, beginning())\n    return len(job.called)",
        "import sys\n\n\nasync def steps_survived():\n    return sys.getrecursionlimit()",
    ),
    "05.generator": (
        _RECURSIVE,
        "async def my_loop(job, messages):\n    async for event in generator.loop(job, messages):\n        yield event",
        _GENERATOR.replace("        job.keep(messages, results(blocks))\n", "        return\n"),
    ),
    "05.drive": (
        _DRIVE.replace("            break\n", "            pass\n"),
        _DRIVE.replace("    events = []\n", "    events = []\n    machine = AgentMachine(Job(3), beginning())\n"),
        _DRIVE.replace("    while machine.state is not State.DONE:\n", "    for _ in range(3):\n"),
    ),
}
