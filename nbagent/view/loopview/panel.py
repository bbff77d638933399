"""The loop view while a run goes on: pieces of HTML, of which only those that have changed are sent, at most five times a second.

A step costs O(new): each message is drawn when it comes and when it stops being new. Knows nothing of the run. Read `LoopPanel.show`.
"""

from __future__ import annotations

import asyncio
import pathlib
from typing import TYPE_CHECKING, Any

import anywidget

from nbagent import esm
from nbagent.view.loopview.diagram import diagram_svg
from nbagent.view.loopview.exchange import exchange_html
from nbagent.view.loopview.page import STYLE, call_names, said_html, source_html
from nbagent.view.loopview.seen import LoopSeen, Said
from nbagent.view.loopview.source import Sources, places
from nbagent.view.loopview.table import now_html, turns_html

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbagent.core.messages import Json

INTERVAL = 0.2
"""Seconds between two updates: at most five a second."""

MESSAGES = 40
"""Messages that the live view shows, the last ones."""

_ROOM = 60_000
_STATIC = pathlib.Path(__file__).parents[1] / "static"


class LoopWidget(anywidget.AnyWidget):
    """The page's side; pieces come as custom messages."""

    _esm = esm.module(_STATIC, "loop.js")
    _css = STYLE


class Pieces:
    """What a page shows of a loop, by keys, and what has changed since: pure of widgets, so that it can be tried alone."""

    def __init__(self) -> None:
        self._seen = LoopSeen()
        self._sources = Sources()
        self._shown: dict[str, tuple[str, str]] = {}
        self._said: dict[str, tuple[Said, bool, bool]] = {}
        self.drawn = 0
        """Messages that were drawn so far: of a step only the new ones."""

    def changes(self, seen: LoopSeen) -> list[Json]:
        """Return the pieces that bring a page up to `seen`, and take them as shown."""
        old, self._seen = self._seen, seen
        changed = [piece for piece in self._parts(old, seen) if self._put(*piece)]
        gone = list(self._messages(seen))
        return [{"region": r, "key": k, "html": h} for r, k, h in [*changed, *gone]]

    def all(self) -> list[Json]:
        """Return all pieces that are shown."""
        return [{"region": region, "key": key, "html": html} for key, (region, html) in self._shown.items()]

    def _put(self, region: str, key: str, html: str) -> bool:
        if self._shown.get(key) == (region, html):
            return False
        self._shown[key] = (region, html)
        return True

    def _parts(self, old: LoopSeen, seen: LoopSeen) -> Iterator[tuple[str, str, str]]:
        first = not self._shown
        yield "state", "state", diagram_svg(seen) + now_html(seen)
        if first or old.turns is not seen.turns:
            yield "turns", "turns", turns_html(seen, seen.turn)
        if first or old.event is not seen.event:
            yield "source", "source", source_html(places(seen.event, self._sources))
        asked = seen.requests[-1].turn if seen.requests else seen.turn
        if first or old.requests is not seen.requests or old.replies is not seen.replies:
            yield "exchange", "exchange", exchange_html(seen, asked) + "<h4>Transcript</h4>"

    def _messages(self, seen: LoopSeen) -> Iterator[tuple[str, str, str | None]]:
        names = call_names(seen)
        start = max(0, len(seen.messages) - MESSAGES)
        wanted = [f"m{place}" for place in range(start, len(seen.messages))]
        for key in [key for key in self._said if key not in wanted]:
            del self._said[key]
            self._shown.pop(key, None)
            yield "transcript", key, None
        for place in range(start, len(seen.messages)):
            key, said = f"m{place}", seen.messages[place]
            state = (said, seen.is_new(said), place < seen.first)
            before = self._said.get(key)
            if before is not None and before[0] is said and before[1:] == state[1:]:
                continue
            self._said[key] = state
            self.drawn += 1
            html = said_html(seen, place, names, _ROOM)
            if self._put("transcript", key, html):
                yield "transcript", key, html


class LoopPanel:
    """The live loop view; make it on the thread of the running loop and display `widget`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.widget = LoopWidget()
        self._pieces = Pieces()
        self._latest: LoopSeen | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sent, self._seq = float("-inf"), 0
        self.widget.on_msg(lambda _widget, content, _buffers: self._post(self._asked, content))

    @property
    def _closed(self) -> bool:
        """Whether the view that holds the widget has closed it."""
        return self.widget.comm is None

    def show(self, seen: LoopSeen) -> None:
        """Show what has been seen of the loop, within `INTERVAL` seconds; the last one counts."""
        self._latest = seen
        if self._timer is None and not self._closed:
            due = max(0.0, self._sent + INTERVAL - self._loop.time())
            self._timer = self._loop.call_later(due, self.flush)

    def flush(self) -> None:
        """Send what has changed at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._closed or self._latest is None:
            return
        self._sent = self._loop.time()
        pieces = self._pieces.changes(self._latest)
        self._latest = None
        if pieces:
            self._seq += 1
            self.widget.send({"op": "patch", "seq": self._seq, "pieces": pieces})

    def _asked(self, content: Any) -> None:
        if isinstance(content, dict) and content.get("op") == "snapshot" and not self._closed:
            self.flush()
            self.widget.send({"op": "snapshot", "seq": self._seq, "pieces": self._pieces.all()})

    def _post(self, action: Callable[[Any], None], content: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(action, content)
        except RuntimeError:  # the loop is closed: nothing is shown any more
            pass
