"""`%agent agents` and `%agent stop`: the runs under way, from any cell: list, watch, stop, wait for one.

What they say is for people; nothing here changes how a run goes. Read `agents`, then `stop`.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from nbagent.app.background import panel_of
from nbagent.core.errors import ConfigError
from nbagent.core.shown import visible_plain
from nbagent.jupyter.front_end import running_cell

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.reports import Said
    from nbagent.app.underway import LiveRun

USAGE = "%agent agents lists what runs and the kinds; watch ID | stop ID | stop all | front ID"
NONE = "No agent is running."
UNSEEN = "{} has no panel here that could be shown."
GOES_ON = "You interrupted the waiting; “{}” goes on in the background. %agent agents stop {} stops it."


def agents(extension: Extension, rest: str) -> Said:
    """Carry out `%agent agents [watch ID | stop ID | stop all | front ID]`; raises `ConfigError` for what there is not."""
    word, _, which = rest.strip().partition(" ")
    match word, which.strip():
        case "" | "list", "":
            from nbagent.app.agents import listed

            return f"{under_way(extension)}\n\nKinds of subagents:\n{listed(extension)}"
        case "watch", named if named:
            return _watch(extension, extension.underway.find(named))
        case "stop", named:
            return stop(extension, named)
        case "front", named if named:
            return _front(extension.underway.find(named))
        case _:
            raise ConfigError(f"{USAGE}.")


def under_way(extension: Extension) -> str:
    """Return the runs under way for people: id, name, since when, what each does now, and for whom it waits."""
    runs = extension.underway.runs.values()
    if not runs:
        return f"{NONE} %%agent --background starts one that goes on while you work."
    return visible_plain("\n".join(["Under way:", *(_line(extension, run) for run in runs)]))


def running(extension: Extension) -> str:
    """Return in a few words whether anything runs."""
    there = extension.underway
    parts = ["yes"] if there.foreground is not None else []
    parts += [f"{len(there.background)} in the background"] if there.background else []
    return ", ".join(parts) or "no"


def _line(extension: Extension, run: LiveRun) -> str:
    seconds = max(0, time.time() - run.began)
    age = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    since = time.strftime("%H:%M", time.localtime(run.began))
    parent = extension.underway.runs.get(run.parent)
    whose = f", of “{parent.name}”" if parent is not None else ""
    where = "in the background" if run.background else "in the cell that runs now"
    return f"  {run.id}  “{run.who}”  since {since} ({age}), {where}{whose}\n      {run.activity}"


def stop(extension: Extension, rest: str) -> str:
    """Carry out `%agent stop [ID | all]`: the run of the cell that runs now, or the one there is; raises `ConfigError`."""
    word, there = rest.strip(), extension.underway
    if not there.runs:
        return NONE
    if word == "all":
        chosen = list(there.runs.values())
    elif word:
        chosen = [there.find(word)]
    elif there.foreground is not None:
        chosen = [there.foreground]
    else:
        chosen = list(there.background)
        if len(chosen) > 1:
            raise ConfigError(f"Which one? %agent stop ID, or %agent stop all.\n{under_way(extension)}")
    for run in chosen:
        extension.on_loop(run.stop.now)
    return "Stopping." if len(there.runs) == 1 else f"Stopping {', '.join(f'“{run.who}”' for run in chosen)}."


def _watch(extension: Extension, run: LiveRun) -> str:
    """Show the panel of a run in the cell that runs now, too; when the run ends, its record stands there."""
    if run.view is None:
        raise ConfigError(UNSEEN.format(f"“{run.who}”"))
    from IPython.display import display

    if cell := running_cell(extension.shell):
        run.watched.add(cell)
    display(panel_of(run.view), raw=True)
    return ""


async def _front(run: LiveRun) -> str:
    """Wait for a run in the cell that runs now, and show it there; its code runs in this cell's turn meanwhile."""
    if run.handle is None or run.view is None:
        raise ConfigError(f"“{run.who}” does not run in the background.")
    from IPython.display import display

    shown: Any = display(panel_of(run.view), display_id=True, raw=True)
    try:
        await run.handle.wait()
    except asyncio.CancelledError:
        raise ConfigError(GOES_ON.format(run.who, run.id)) from None
    finally:
        from nbagent.view.record import record

        shown.update(record(run.view.view) if run.handle.done else {"text/plain": ""}, raw=True)
    return ""
