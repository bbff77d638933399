"""`%%agent --step`, `--pace` and `--break`: who paces a run in the place where it is, and what they press. Read `stepping`.

With widgets there are buttons under the live view; where a person types there are keys; where nobody can press the run plays on.
A page that shows the run and is left alone never holds it for ever: see `UNPRESSED` and `GONE`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nbagent.app.consent import before_run
from nbagent.core.errors import ConfigError
from nbagent.core.events import Event, Noted
from nbagent.jupyter.approval import TypedApprover
from nbagent.teach.pacer import Hand, Pacer
from nbagent.teach.steps import Until, breaks_of

if TYPE_CHECKING:
    from nbagent.app.place import Place
    from nbagent.core.messages import Json
    from nbagent.core.run import Stop
    from nbagent.core.timelimit import TimeLimit
    from nbagent.view.steppanel import StepPanel
    from nbagent.view.widget import AgentView

UNPRESSED = 300.0
"""Seconds after which a run plays on where nothing was pressed since it began: Run All goes on though nobody sits there."""

GONE = 600.0
"""Seconds after which a run plays on where nothing was heard of the page: it was closed, or its machine sleeps."""

SLOWEST = 60.0
NOBODY = "Nobody can press Next here, so this run plays on by itself, as without --step, --pace and --break."
LEFT_ALONE = "Nobody pressed Next, so the run plays on by itself. Pause rests again."
KEYS = "Enter = next, t = next turn, p = play"

_PACE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(s|ms)?")


def pace(text: str) -> float:
    """Return the seconds in a text like 1s, 0.5 or 500ms, for argparse."""
    found = _PACE.fullmatch(text)
    seconds = float(found[1]) / (1000 if found[2] == "ms" else 1) if found else 0.0
    if not 0 < seconds <= SLOWEST:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time between two events, such as 1s or 500ms ({SLOWEST:g}s at most)"
        )
    return seconds


def breakpoints(text: str) -> str:
    """Return a text that says breakpoints as it is, for argparse."""
    try:
        found = breaks_of(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error).removesuffix(".")) from error
    if not found:
        raise argparse.ArgumentTypeError("no breakpoint is named, such as act or tool:run_python")
    return text


def is_paced(given: Json) -> bool:
    """Whether a cell asks for its run to be paced."""
    return any(given.get(name) for name in ("step", "pace", "breaks"))


def stepping(given: Json, place: Place, stop: Stop, limit: TimeLimit) -> Pacer | None:
    """Return what paces a run with these options, None where it isn't paced; a view with buttons gets them."""
    if not is_paced(given):
        return None
    breaks = str(given.get("breaks") or "")
    options: dict[str, Any] = {
        "until": Until.EVENT if given.get("step") else Until.PLAY,
        "pace": float(given.get("pace") or 0.0), "breaks": breaks_of(breaks), "stop": stop, "limit": limit,
    }  # fmt: skip
    if place.approver.present and place.live is not None:
        return _clicked(place, place.live, options)
    if place.approver.present and isinstance(place.approver, TypedApprover):
        return Pacer(typed(place.approver), **options)
    place.view.show(before_run(Noted, text=NOBODY, level="info"))
    return None


def typed(person: TypedApprover) -> Hand:
    """Return the hand of a person who types a line; where that is impossible, the run plays on."""

    async def hand(pacer: Pacer) -> None:
        event = pacer.seen[-1]
        where = f"‖ {event.state} · turn {event.turn} · event {len(pacer.seen)}: {event.type}. {KEYS}: "
        while not pacer.was_pressed:
            match await person.line(where):
                case None:
                    pacer.play()
                case "" | "n":
                    pacer.next()
                case "t":
                    pacer.next_turn()
                case "p":
                    pacer.play()
                case _:
                    where = f"{KEYS}: "

    return hand


def _clicked(place: Place, view: AgentView, options: Json) -> Pacer:
    """Return a pacer with buttons under the live view."""
    from nbagent.view.steppanel import Presses, StepPanel

    pacer = Pacer(patient(view, place.view.show), **options)

    def play_or_pause() -> None:
        if pacer.playing and not pacer.resting:
            pacer.pause()
        else:
            pacer.play()

    def break_at(text: str) -> str:
        try:
            pacer.break_at(text)
        except ConfigError as error:
            return str(error)
        return ""

    presses = Presses(pacer.next, pacer.next_turn, play_or_pause, pacer.back, pacer.forward, break_at)
    panel = StepPanel(
        presses,
        view.post,
        ", ".join(map(str, pacer.breaks)),
        lambda: view.view.loop.before if view.view.loop is not None else None,
    )
    view.add(panel.widget, first=True)
    view.add(panel.loop)
    view.hear("breaks", lambda content: panel.set_breaks(str(content.get("text", ""))))
    pacer.changed = _shown(panel, view)
    return pacer


def _shown(panel: StepPanel, view: AgentView) -> Callable[[Pacer], None]:
    from nbagent.view.steppanel import Stand

    def changed(pacer: Pacer) -> None:
        view.rests("Paused: press Next" if pacer.resting else "")
        panel.show(Stand(pacer.seen, pacer.at, pacer.resting, pacer.playing, over=pacer.walk.over))

    return changed


def patient(view: AgentView, show: Callable[[Event], None]) -> Hand:
    """Return the hand of a person before a page: waits for their press as long as there are signs of them."""
    began = view.now()

    async def hand(pacer: Pacer) -> None:
        while not pacer.was_pressed:
            left = min(view.heard + GONE, math.inf if pacer.touched else began + UNPRESSED) - view.now()
            if left <= 0:
                last = pacer.seen[-1]
                show(Noted(state=last.state, turn=last.turn, at=last.at, text=LEFT_ALONE, level="info"))
                pacer.play()
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await pacer.pressed()

    return hand
