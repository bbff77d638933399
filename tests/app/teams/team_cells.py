"""Runs a team of scripted models in a shell of its own, as a person would begin it, and prints what is there afterwards."""

from __future__ import annotations

import asyncio
import json
import sys

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

SCRIPTS = "scripted:nbagent.teach.team"


async def main() -> None:
    import nbagent
    from nbagent.app.extension import current, load_extension

    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    load_extension(shell)
    extension = current(shell)
    more = json.loads(sys.argv[1])
    team = nbagent.Team(
        "Make the failing tests pass", **{"model": f"{SCRIPTS}:lead", "teammate_model": f"{SCRIPTS}:teammate", **more}
    )
    answer = await team.run()
    print("ANSWER", json.dumps({
        "team": team.name, "text": answer.text, "reason": answer.stop_reason, "accepted": answer.accepted,
        "tasks": {task.title: [task.state, task.owner, task.began, task.ended] for task in answer.tasks},
        "merged": {name: list(files) for name, files in answer.merged.items()}, "conflicts": dict(answer.conflicts),
        "told": extension.errands,
    }), flush=True)  # fmt: skip


if __name__ == "__main__":
    asyncio.run(main())
