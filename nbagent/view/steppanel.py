"""The buttons of a stepped run, a line that says where it rests, and what the loop looked like there: real ipywidgets.

Shows a `Stand` and calls what is pressed; never waits and never runs anything. Buttons stay alive while the run goes on, so that
none of them loses the focus: a press that means nothing then does nothing. Keys are in static/steps.js. Read `StepPanel.show`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import ipywidgets

from nbagent.core.events import (
    ApprovalAsked,
    CallDecided,
    CallEnded,
    CallProgress,
    CallStarted,
    QuestionAsked,
    innermost,
)
from nbagent.view.cards import button, row
from nbagent.view.loopview import Before, LoopSeen, see, see_all
from nbagent.view.loopview.panel import LoopPanel
from nbagent.view.text import escape, one_line, visible

if TYPE_CHECKING:
    from nbagent.core.event import Event

PAUSED = "Paused by not pulling: the generator stands at its <code>yield</code> in <code>nbagent/core/loop.py</code>, and nothing goes on until the next event is pulled."


@dataclass(frozen=True, slots=True)
class Presses:
    """What the buttons do; each is called on the loop's thread. `break_at` returns what is wrong with the text, or ""."""

    next: Callable[[], None]
    next_turn: Callable[[], None]
    play_or_pause: Callable[[], None]
    back: Callable[[], None]
    forward: Callable[[], None]
    break_at: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a stepped run stands: `seen` are its events so far without pieces of replies, `at` how many of them are looked at.

    `resting` says why it rests, "" while it goes on; `playing`: by itself, but for breakpoints. `over`: there is no next event.
    """

    seen: Sequence[Event]
    at: int
    resting: str = ""
    playing: bool = False
    over: bool = False


class StepPanel:
    """See the module's docstring. `post` runs an action on the loop's thread.

    Put `widget` into the view, and `loop`, what the loop looks like, below what grows: so the buttons stay where they are.
    `before` gives what the events of the run do not hold, where that is known.
    """

    def __init__(
        self,
        presses: Presses,
        post: Callable[[Callable[[], None]], None],
        breaks: str = "",
        before: Callable[[], Before | None] = lambda: None,
    ) -> None:
        self._presses, self._before = presses, before
        self._now, self._count = LoopSeen(), 0

        def made(face: str, name: str, key: str, action: Callable[[], None]) -> ipywidgets.Button:
            one = button(face, f"nbagent-{name}", lambda: post(action))
            one.tooltip = f"{face} (key: {key}, while the focus is in this panel)"
            return one

        self._back = made("◀ Back", "stepback", "←", presses.back)
        self._next = made("Next", "stepnext", "n", presses.next)
        self._turn = made("Next turn", "stepturn", "t", presses.next_turn)
        self._play = made("Play", "stepplay", "p", presses.play_or_pause)
        self._forward = made("Forward ▶", "stepforward", "→", presses.forward)
        self._breaks = ipywidgets.Text(breaks, placeholder="rest at, e.g. act, tool:add_cell", continuous_update=False)
        self._breaks.add_class("nbagent-stepbreaks")
        self._breaks.tooltip = "Breakpoints, with commas between: think, act, observe, done, the type of an event, or tool:NAME. Enter sets them."
        self._breaks.observe(lambda change: post(lambda: self.set_breaks(str(change["new"]))), "value")
        self._wrong = ipywidgets.HTML(layout={"display": "none"})
        self._line, self._loop = ipywidgets.HTML(), LoopPanel()
        self.loop = self._loop.widget
        bar = row(self._back, self._next, self._turn, self._play, self._forward, self._breaks, name="nbagent-stepbar")
        self.widget = ipywidgets.VBox([bar, self._wrong, self._line])
        self.widget.add_class("nbagent-steps")

    def show(self, stand: Stand) -> None:
        """Show where the run stands; call it as often as you like."""
        _set(self._next, "Finish" if stand.over and stand.resting else "Next")
        _set(self._play, "Pause" if stand.playing and not stand.resting else "Play")
        self._line.value = line_html(stand)
        if stand.resting or stand.playing or stand.over or stand.at < len(stand.seen):
            self._loop.show(replace(self._loop_at(stand), before=self._before()))
        if stand.resting or stand.at < len(stand.seen):
            self._loop.flush()  # the line and the picture say the same

    def _loop_at(self, stand: Stand) -> LoopSeen:
        """Fold what is looked at: the present from where we were, an earlier state anew."""
        if stand.at < len(stand.seen):
            return see_all(stand.seen[: stand.at])
        for event in stand.seen[self._count :]:
            self._now = see(self._now, event)
        self._count = len(stand.seen)
        return self._now

    def set_breaks(self, text: str) -> None:
        """Take the text of the box as breakpoints, or say what is wrong with it."""
        wrong = self._presses.break_at(text)
        self._wrong.layout.display = None if wrong else "none"
        self._wrong.value = f'<div class="nbagent-error" role="alert">{escape(wrong)}</div>' if wrong else ""


def line_html(stand: Stand) -> str:
    """Return the line that says where the run stands."""
    if not stand.at:
        return '<div class="nbagent-stepline" role="status">The run begins …</div>'
    looked = stand.at < len(stand.seen)
    where = f"event {stand.at} of {len(stand.seen)}" if looked else f"event {stand.at}"
    event = stand.seen[stand.at - 1]
    said = f"<b>{event.state}</b> · turn {event.turn} · {where}: <code>{event.type}</code>{about(event)}"
    if looked:
        note = "You look back. Nothing is run again; Next or Forward come to the present."
    elif isinstance(innermost(event), ApprovalAsked | QuestionAsked):
        note = "Waits for your answer in the card below."
    elif stand.resting:
        note = f"{PAUSED} Why here: {escape(stand.resting)}."
    else:
        note = (
            "Goes on by itself; Pause rests at the next event."
            if stand.playing
            else "Goes on to the next place to rest …"
        )
    kind = "back" if looked else "rests" if stand.resting else "goes"
    return f'<div class="nbagent-stepline" data-kind="{kind}" role="status"><div>{said}</div><div class="nbagent-stepnote">{note}</div></div>'


def about(event: Event) -> str:
    """Return, as HTML, which call an event is about, and whose it is; "" where it is about none."""
    inner = innermost(event)
    name = inner.name if isinstance(inner, CallDecided | CallStarted | CallEnded) else ""
    if isinstance(inner, CallProgress):
        name = one_line(inner.text, 60)
    of_agent = f" › <code>{inner.type}</code>" if inner is not event else ""
    return f"{of_agent} {visible(name, '')}".rstrip()


def _set(made: ipywidgets.Button, face: str) -> None:
    if made.description != face:
        made.description = face
