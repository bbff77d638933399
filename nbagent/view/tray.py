"""The tray: one place in the page where the approvals and questions of all runs wait, each answered on its own.

It has no run of its own: who feeds it gives what waits (`Waiting`), and an answer goes to the run that asked. The cards
are the same as in a run's own panel, and are made when a page opens the list for the first time. When the list changes,
every card in it takes no click for a moment: what was under the person's hand has moved. Must not know of runs. Read
`Tray.show`; the page's half is static/tray.js, put into the page by the desk.
"""

from __future__ import annotations

import asyncio
import pathlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import anywidget
import ipywidgets
import traitlets

from nbagent import esm
from nbagent.core.shown import visible_plain
from nbagent.view.asks import Ask, Card, card_of
from nbagent.view.cards import close_tree
from nbagent.view.code import LIVE
from nbagent.view.text import escape, one_line, visible, without_ansi
from nbagent.view.widget import DEAD_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbagent.core.messages import Json
    from nbagent.core.ports import Answered
    from nbagent.view.cards import Wakes

_STATIC = pathlib.Path(__file__).parent / "static"


class Answers(Protocol):
    """Takes what the person answers; the live view of a run is one."""

    def answer(self, call_id: str, shown: str, answered: Answered) -> None:
        """Take the answer to an approval that was shown with the hash `shown`."""
        ...

    def reply(self, question_id: str, text: str) -> None:
        """Take the answer to a question."""
        ...


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing that waits: what is asked, of which run, and who takes the answer.

    `name` is what people call the run's agent, `prompt` what it works on; `cell` is the id of the run's cell, "" where it
    has none; `background`: nobody is expected to look at the run's own panel.
    """

    ask: Ask
    run: str
    name: str
    prompt: str
    cell: str
    background: bool
    to: Answers

    @property
    def key(self) -> str:
        """What names it among all that waits."""
        return f"{self.run} {self.ask.key}"

    @property
    def who(self) -> str:
        """Who asks, as people read it: the run's agent, and which of its subagents."""
        return _plain(" › ".join(filter(None, (self.name, self.ask.agent))), 80)


class TrayBar(anywidget.AnyWidget):
    """The page's half: the bar, and what it knows of each entry. Where there is none, it shows nothing at all."""

    _esm = esm.module(_STATIC, "tray.js")
    _css = _STATIC / "view.css"
    entries = traitlets.List().tag(sync=True)


class Tray:
    """Make it on the running loop. `widget` is what a page shows; `clock` gives seconds, as those of `Ask.since`."""

    def __init__(self, *, clock: Callable[[], float] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock or self._loop.time
        self._waiting: dict[str, Waiting] = {}
        self._cards: dict[str, Card] = {}
        self._boxes: dict[str, ipywidgets.VBox] = {}
        self._timers: WeakKeyDictionary[Wakes, asyncio.TimerHandle] = WeakKeyDictionary()
        self._serial = 0
        self._opened = self._closed = False
        self.bar = TrayBar()
        self.bar.on_msg(lambda _widget, content, _buffers: self.post(lambda: self._from_page(content)))
        self._list = ipywidgets.VBox()
        self._list.add_class("nbagent-asks")
        self.widget = ipywidgets.VBox([self.bar, self._list])
        self.widget.add_class("nbagent-view")
        self.widget.add_class("nbagent-tray")

    def show(self, waiting: Sequence[Waiting]) -> None:
        """Show what waits now, the oldest first, and only that."""
        if self._closed:
            return
        ordered = {one.key: one for one in sorted(waiting, key=lambda one: one.ask.since)}
        if list(ordered) == list(self._waiting):
            return
        self._waiting = ordered
        self._opened = self._opened and bool(ordered)
        self._sync_cards()
        self._tell()

    def close(self) -> None:
        """Take the tray out of the pages, with all its widgets."""
        self._closed = True
        self._cards.clear()
        close_tree(self.widget)

    # ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _tell(self) -> None:
        now = self._clock()
        self.bar.entries = [self._entry(one, now) for one in self._waiting.values()]

    def _entry(self, one: Waiting, now: float) -> Json:
        age = max(0.0, now - one.ask.since)
        return {"key": one.key, "who": one.who, "what": one.ask.what, "question": one.ask.is_question, "age": age,
                "since": (time.time() - age) * 1000, "cell": one.cell, "background": one.background}  # fmt: skip

    def _from_page(self, content: Any) -> None:
        if not isinstance(content, dict):
            return
        match content.get("op"):
            case "open":
                self._opened = bool(self._waiting)
                self._sync_cards()
            case "ages":
                now = self._clock()
                self.bar.send({"op": "ages", "ages": {k: now - one.ask.since for k, one in self._waiting.items()}})
            case "card":
                for card in self._cards.values():
                    if card.serial == content.get("card"):
                        card.read(content)
                        card.press(str(content.get("press", "")))
            case _:
                pass

    # ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sync_cards(self) -> None:
        """Have a card for all that waits, once a page has opened the list."""
        wanted = self._waiting if self._opened else {}
        if list(wanted) == list(self._cards):
            return
        moved = [key for key in self._cards if key in wanted]
        boxes, cards, self._boxes, self._cards = self._boxes, self._cards, {}, {}
        for key, one in wanted.items():
            self._cards[key] = cards.pop(key, None) or self._new_card(one)
            self._boxes[key] = boxes.pop(key, None) or _box(one, self._cards[key])
        if cards or moved != list(wanted)[: len(moved)]:
            for key in moved:
                self._cards[key].arm()
        self._list.children = tuple(self._boxes.values())
        for key, card in cards.items():
            card.done = True
            close_tree(boxes[key])

    def _new_card(self, one: Waiting) -> Card:
        self._serial += 1
        return card_of(self._serial, one.ask.about, _Entry(self, one.to))

    def now(self) -> float:
        """Return the tray's time in seconds."""
        return self._clock()

    def arm(self, card: Wakes) -> float:
        """Have `card` wake after the dead time of a card; return the time from which it takes a click."""
        ready = self._clock() + DEAD_TIME
        if (before := self._timers.get(card)) is not None:
            before.cancel()
        self._timers[card] = self._loop.call_later(DEAD_TIME, lambda: self._wake(card))
        return ready

    def _wake(self, card: Wakes) -> None:
        if not self._closed and not card.done:
            card.wake()

    def post(self, action: Callable[[], None]) -> None:
        """Run `action` on the loop's thread."""
        try:
            self._loop.call_soon_threadsafe(lambda: None if self._closed else action())
        except RuntimeError:  # the loop is closed: nothing listens any more
            self._closed = True


class _Entry:
    """The host of one card: the tray, but answers go to the run that asked."""

    def __init__(self, tray: Tray, to: Answers) -> None:
        self.now, self.arm, self.post = tray.now, tray.arm, tray.post
        self.answer, self.reply = to.answer, to.reply


def _box(one: Waiting, card: Card) -> ipywidgets.VBox:
    """One entry of the list: who asks, since when, the way to its cell; and the card."""
    prompt = _plain(one.prompt, 100)
    about = f'<span class="nbagent-traywhat">{visible(prompt, LIVE.attr("ctl"))}</span>' if prompt else ""
    go = f'<button type="button" class="nbagent-goto" data-cell="{escape(one.cell)}">Go to its cell</button>'
    head = ipywidgets.HTML(
        f'<div class="nbagent-trayhead" data-entry="{escape(one.key)}"><b>{escape(one.who)}</b>{about}'
        f'<span class="nbagent-age"></span>{go if one.cell else ""}</div>'
    )
    box = ipywidgets.VBox([head, card.widget])
    box.add_class("nbagent-trayentry")
    return box


def _plain(text: str, limit: int) -> str:
    return visible_plain(one_line(without_ansi(text), limit), spaces=False)
