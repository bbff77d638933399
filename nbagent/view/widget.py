"""The live view: an anywidget timeline and real ipywidgets buttons, drawn from one view model.

The page shows, the kernel decides: an answer is bound to the approval that was on screen, a card works once, and a
click that comes sooner than a person can read is not taken. Callbacks of buttons may arrive on any thread; they are
handed to the loop. What must work while the kernel's main thread is blocked is the page's own: the time limit's question,
and interrupting. Knows nothing of the loop's policy. Read `AgentView.show`, then `cards.ApprovalCard`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import ipywidgets

from nbagent.core import events as ev
from nbagent.core.ports import Answered
from nbagent.core.shown import visible_plain
from nbagent.view import asking, html
from nbagent.view.asks import Ask, Card, card_of
from nbagent.view.cards import ApprovalCard, Wakes, button, close_tree
from nbagent.view.fold import ViewModel, coalesce, fold_all
from nbagent.view.humancard import HumanCard
from nbagent.view.items import QuestionItem
from nbagent.view.loopview.panel import LoopPanel
from nbagent.view.patches import Page
from nbagent.view.text import escape
from nbagent.view.timelinewidget import Timeline
from nbagent.view.words import running_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nbagent.core.messages import Json
    from nbagent.models.human import Reply, Turn

INTERVAL = 0.05
"""Seconds between two patches: at most 20 a second."""

DEAD_TIME = 0.4
"""Seconds for which a new card takes no click: the second half of a double click is not an answer to it."""

_AT_ONCE = (ev.RunStarted, ev.ReplyEnded, ev.AnswerChecked, ev.ReplyDiscarded, ev.ApprovalAsked, ev.ApprovalAnswered, ev.CallStarted,
            ev.CallEnded, ev.ModeChanged, ev.QuestionAsked, ev.QuestionAnswered, ev.TodosChanged, ev.RetryScheduled, ev.Noted, ev.RunEnded)  # fmt: skip


class AgentView:
    """The live view of one run; make it on the thread of the running loop and display `widget`.

    Args:
        on_answer: takes the call id, the hash of the approval that was shown, and the answer.
        on_reply: takes the question id and the person's text.
        on_stop: the person asked to stop the run.
        on_spare: the person asked to interrupt what the call that runs now runs, and nothing else. Where synchronous
            code keeps the loop from hearing that, the page interrupts the kernel, and this is called afterwards.
        limit: seconds after which the page asks whether to go on waiting for a call; None: never.
        clock: seconds, monotonic; the loop's time if not given.
    """

    def __init__(
        self,
        *,
        on_answer: Callable[[str, str, Answered], None],
        on_reply: Callable[[str, str], None],
        on_stop: Callable[[], None],
        on_spare: Callable[[], None] | None = None,
        limit: float | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock or self._loop.time
        self._on_answer, self._on_reply, self._on_stop, self._on_spare = on_answer, on_reply, on_stop, on_spare
        self._limit = limit
        self.view = ViewModel()
        self._page = Page()
        self._events: list[ev.Event] = []
        self._seq = 0
        self._began = self._clock()
        self._flushed = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._serial = 0
        self._running: Json | None = None
        self._page_speaks = False
        self.heard = self._clock()
        """When the page was heard last, in seconds of the view's clock."""
        self._rests = ""
        self._hearers: dict[str, Callable[[Json], None]] = {}
        self._head: Json = {}
        self.timeline = Timeline()
        self._show_head()
        self.timeline.on_msg(lambda _widget, content, _buffers: self._post(self._from_page, content))
        self._stop = button("Stop", "nbagent-stop", lambda: self._post(self._stopped))
        self._spare = button("Interrupt cell", "nbagent-spare", lambda: self._post(self._spare_clicked))
        self._spare.layout.display = "none"
        self._errors = ipywidgets.HTML(layout={"display": "none"})
        self._asks = ipywidgets.VBox()
        self._asks.add_class("nbagent-asks")
        self._cards: dict[str, Card] = {}
        self._human: list[HumanCard] = []
        self._open: dict[str, Ask] = {}
        self._listeners: list[Callable[[], None]] = []
        self._loop_panel: LoopPanel | None = None
        self._asked: set[str] = set()
        self._foot = ipywidgets.HBox([self._spare, self._stop])
        self._foot.add_class("nbagent-foot")
        self.widget = ipywidgets.VBox([self.timeline, self._asks, self._errors, self._foot])
        self.widget.add_class("nbagent-view")

    # ── events in, patches out ───────────────────────────────────────────────────────────────────────────────────────

    def show(self, event: ev.Event) -> None:
        """Take one event; it reaches the page within `INTERVAL` seconds, important ones at once."""
        if self._closed:
            return
        self._events.append(event)
        if isinstance(event, ev.LoopShown) and event.live and self._loop_panel is None:
            self._loop_panel = LoopPanel()
            self.add(self._loop_panel.widget)
        due = self._flushed + INTERVAL - self._loop.time()
        if due <= 0 or isinstance(ev.innermost(event), _AT_ONCE):
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(due, self.flush)

    def aside(self, call_id: str, text: str) -> None:
        """Show, called from any thread, how far a call is whose code holds the loop; the next patch of it takes its place."""
        running = self.view.running
        if running is None or running.call_id != call_id or self._closed:
            return
        operation = {"op": "set", "key": running.key, "part": "progress", "text": visible_plain(text, spaces=False)}
        with contextlib.suppress(RuntimeError, ValueError, OSError, AttributeError):  # the page or its socket has gone
            self.timeline.send({"op": "aside", "ops": [operation]})

    def flush(self) -> None:
        """Send all that was not sent yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._closed:
            return
        self._flushed = self._loop.time()
        events, self._events = self._events, []
        self.view = fold_all(coalesce(events), self.view)
        if self.view.answers:
            self.widget.add_class("nbagent-answers")
        operations = self._page.changes(self.view)
        if operations:
            self._seq += 1
            self.timeline.send({"op": "patch", "seq": self._seq, "ops": operations})
        self._show_head()
        if self._loop_panel is not None and self.view.loop is not None:
            self._loop_panel.show(self.view.loop)
        self._sync_cards()

    def close(self) -> None:
        """Close every widget of the view, with their layouts and styles, so that none stays in the notebook."""
        if self._timer is not None:
            self._timer.cancel()
        self._closed = True
        self._loop_panel = None
        self._cards.clear()
        self._opens({})
        close_tree(self.widget)

    def add(self, widget: ipywidgets.Widget, *, first: bool = False) -> None:
        """Show a widget above the foot, or above everything; it is closed with the view."""
        children = (*self.widget.children[:-1], widget, self._foot)
        self.widget.children = (widget, *self.widget.children) if first else children

    def rests(self, words: str) -> None:
        """Have the header say why the run does not go on, until this is called with ""."""
        if words != self._rests:
            self._rests = words
            self._show_head()

    def hear(self, op: str, action: Callable[[Json], None]) -> None:
        """Have `action` called with each message of the page of that kind, which comes in order with the clicks."""
        self._hearers[op] = action

    def _show_head(self) -> None:
        """Tell the page the header's values, and which call runs since when, where they have changed."""
        running = self.view.running
        if running is None:
            self._running = None
        elif self._running is None or self._running["key"] != running.key:
            now = self._clock() - self._began
            name, is_cell = running_name(running)
            self._running = {"key": running.key, "name": name, "cell": is_cell, "began": now, "asked": now}
            self._spare.description = self._spare.tooltip = "Interrupt cell" if is_cell else "Interrupt call"
        activity = {"activity": self._rests} if self._rests and not self._closed else {}
        head = {**html.header(self.view), **activity, "call": self._running, "limit": self._limit}
        if head != self._head:
            self._head = head
            self.timeline.head = {**head, "elapsed": self._clock() - self._began}

    def _from_page(self, content: Any) -> None:
        if not isinstance(content, dict):
            return
        self.heard = self._clock()
        match content.get("op"):
            case "snapshot":
                self._page_speaks = True
                self.flush()
                if not self._closed:
                    self.timeline.send({"op": "snapshot", "seq": self._seq, "ops": self._page.snapshot(),
                                        "elapsed": self._clock() - self._began})  # fmt: skip
            case "card":
                for card in (*self._cards.values(), *self._human):
                    if card.serial == content.get("card"):
                        card.read(content)
                        card.press(str(content.get("press", "")))
            case "spare":
                self.timeline.send({"op": "spare-seen"})
                self._spared()
            case "wait" if self._running is not None and self._running["key"] == content.get("key"):
                self._running = {**self._running, "asked": self._clock() - self._began}
                self._show_head()
            case op:
                if (action := self._hearers.get(str(op))) is not None:
                    action(content)

    # ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def asks(self) -> tuple[Ask, ...]:
        """What the person is asked now, oldest first, a card each; the run has not gone on since."""
        return tuple(self._open.values())

    def on_asks(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have `changed` called on the loop, soon after `asks` has changed; return what ends that."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed) if changed in self._listeners else None

    def _opens(self, wanted: Mapping[str, Sequence[Json | QuestionItem]]) -> None:
        opened = {key: self._open.get(key) or Ask(key, tuple(about), self.now()) for key, about in wanted.items()}
        if list(opened) != list(self._open):
            self._open = opened
            for changed in self._listeners:
                self._loop.call_soon(changed)

    def _sync_cards(self) -> None:
        """Show a card for every open approval and question, and only for those."""
        wanted = self._wanted()
        if list(wanted) != list(self._cards):
            old, self._cards = self._cards, {}
            for key, about in wanted.items():
                card = old.pop(key, None)
                self._cards[key] = self._new_card(about) if card is None else card
            self._opens(wanted)
            self._place_cards()
            for card in old.values():
                card.done = True
                close_tree(card.widget)
        self._show_foot()

    def _place_cards(self) -> None:
        self._asks.children = tuple(card.widget for card in (*self._cards.values(), *self._human))

    async def compose(self, turn: Turn) -> Reply:
        """Ask the person to be the model and return what they send; the card goes where this is cancelled, as by Stop."""
        self.flush()
        sent: asyncio.Future[Reply] = self._loop.create_future()
        self._serial += 1
        card = HumanCard(self._serial, turn, self, lambda reply: None if sent.done() else sent.set_result(reply))
        self._human.append(card)
        self._place_cards()
        try:
            return await sent
        finally:
            card.done = True
            self._human.remove(card)
            if not self._closed:
                self._place_cards()
                close_tree(card.widget)

    def _wanted(self) -> dict[str, list[Json] | list[QuestionItem]]:
        """Return what there must be a card for, by a key.

        Approvals of one group come in one card, once all are there. A card that was answered stays until none of its
        calls is open, and there is no other for them meanwhile; if the run drops one of a card, it is asked anew.
        """
        wanted: dict[str, list[Json]] = {}
        opened = {(str(a.get("call_id")), str(a.get("hash"))): a for a in self.view.approvals}
        for key, card in self._cards.items():
            if isinstance(card, ApprovalCard) and card.done and not card.ids.isdisjoint(opened):
                wanted[key] = []
                opened = {name: a for name, a in opened.items() if name not in card.ids}
        for name, approval in opened.items():
            group, of = str(approval.get("group") or ""), approval.get("of")
            members = {n: a for n, a in opened.items() if group and a.get("group") == group} or {name: approval}
            if group and len(members) != of and group not in self._asked:
                continue
            self._asked.add(group)
            wanted["a:" + ":".join(f"{call_id}:{shown}" for call_id, shown in members)] = list(members.values())
        return {**wanted, **self._wanted_questions()}

    def _wanted_questions(self) -> dict[str, list[QuestionItem]]:
        """Return the open questions by card. Those of one group come in one, once all are there."""
        wanted: dict[str, list[QuestionItem]] = {}
        for question in self.view.questions:
            key = f"q:{question.group or question.key}"
            wanted[key] = [*wanted.get(key, []), question]
        return {key: found for key, found in wanted.items() if key in self._cards or len(found) == found[0].of}

    def _new_card(self, about: Sequence[Json | QuestionItem]) -> Card:
        self._serial += 1
        return card_of(self._serial, about, self)

    def _show_foot(self) -> None:
        if self.view.ended is not None and self._foot.children:
            self._foot.children = ()
            close_tree(self._stop)
            close_tree(self._spare)
        elif self.view.ended is None:
            busy = self._running is not None and not (self.view.approvals or self.view.questions)
            self._spare.layout.display = None if busy and self._on_spare is not None else "none"

    # ── answers out ──────────────────────────────────────────────────────────────────────────────────────────────────

    def now(self) -> float:
        """Return the view's time in seconds."""
        return self._clock()

    def arm(self, card: Wakes) -> float:
        """Have `card` wake after `DEAD_TIME`; return the time from which it takes a click."""
        ready = self._clock() + DEAD_TIME  # before the timer: a button that shows itself as alive takes a click
        self._loop.call_later(DEAD_TIME, lambda: None if self._closed or card.done else card.wake())
        return ready

    def post(self, action: Callable[[], None]) -> None:
        """Run `action` of a button on the loop's thread."""
        self._post(action)

    def _post(self, action: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(self._guarded, action, *args)
        except RuntimeError:  # the loop is closed: nothing listens any more, so nothing may happen
            self._closed = True

    def _guarded(self, action: Callable[..., None], *args: Any) -> bool:
        """Run what a click asked for; a failure is shown in the panel (ipywidgets would only log it)."""
        if self._closed:
            return False
        try:
            action(*args)
        except Exception as error:  # noqa: BLE001  (the one boundary of button callbacks)
            self._errors.layout.display = None
            text = asking.label(f"{type(error).__name__}: {error}", 300)
            self._errors.value = (
                f'<div class="nbagent-error" role="alert">✗ The answer could not be taken and counts as Deny '
                f"({escape(text)})</div>"
            )
            return False
        return True

    def answer(self, call_id: str, shown: str, answered: Answered) -> None:
        """Pass an answer on; if that fails, deny, and if that fails too, stop the run.

        It may come from a card in another place: then the one here, which asks the same, takes no answer any more.
        """
        for card in self._cards.values():
            if isinstance(card, ApprovalCard) and not card.done and (call_id, shown) in card.ids:
                card.done = True
                card.refresh()
        if self._guarded(self._on_answer, call_id, shown, answered):
            return
        denied = Answered(approved=False, words=answered.words, by="error")
        if not self._guarded(self._on_answer, call_id, shown, denied):
            self._guarded(self._on_stop)

    def reply(self, question_id: str, text: str) -> None:
        """Pass the reply to a question on; if that fails, stop the run."""
        if not self._guarded(self._on_reply, question_id, text):
            self._guarded(self._on_stop)

    def _stopped(self) -> None:
        self.timeline.send({"op": "stop-seen"})
        if self._stop.disabled:
            return
        self._stop.disabled = True
        self._stop.description = "Stopping…"
        self._guarded(self._on_stop)

    def _spare_clicked(self) -> None:
        """Take a click on Interrupt cell where no page speaks for it (see static/interrupts.js)."""
        if not self._page_speaks:
            self._spared()

    def _spared(self) -> None:
        if self._running is not None and self._on_spare is not None:
            self._guarded(self._on_spare)
