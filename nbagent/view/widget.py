"""The live view: an anywidget timeline and real ipywidgets buttons, drawn from one view model.

The page shows, the kernel decides: an answer is bound to the approval that was on screen, a button works once, and a
click that comes sooner than a person can read is not taken. Callbacks of buttons may arrive on any thread; they are
handed to the loop. Knows nothing of the loop's policy. Read `AgentView.show`, then `cards`.
"""

from __future__ import annotations

import asyncio
import pathlib
from typing import TYPE_CHECKING, Any

import anywidget
import ipywidgets
import traitlets

from nbagent.core import events as ev
from nbagent.core.ports import Answered
from nbagent.view import html
from nbagent.view.fold import ViewModel, coalesce, fold_all
from nbagent.view.patches import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbagent.core.messages import Json

_STATIC = pathlib.Path(__file__).parent / "static"

INTERVAL = 0.05
"""Seconds between two patches: at most 20 a second."""

DEAD_TIME = 0.4
"""Seconds for which a new card takes no click: the second half of a double click is not an answer to it."""

_AT_ONCE = (ev.RunStarted, ev.ReplyEnded, ev.ReplyDiscarded, ev.ApprovalAsked, ev.ApprovalAnswered, ev.CallStarted,
            ev.CallEnded, ev.QuestionAsked, ev.QuestionAnswered, ev.RetryScheduled, ev.Noted, ev.RunEnded)  # fmt: skip


class Timeline(anywidget.AnyWidget):
    """The page's side of the timeline. `head` are the header's values; items come as custom messages."""

    _esm = _STATIC / "view.js"
    _css = _STATIC / "view.css"
    head = traitlets.Dict().tag(sync=True)


class AgentView:
    """The live view of one run; make it on the thread of the running loop and display `widget`.

    Args:
        on_answer: takes the call id, the hash of the approval that was shown, and the answer.
        on_reply: takes the question id and the person's text.
        on_stop: the person asked to stop.
        clock: seconds, monotonic; the loop's time if not given.
    """

    def __init__(
        self,
        *,
        on_answer: Callable[[str, str, Answered], None],
        on_reply: Callable[[str, str], None],
        on_stop: Callable[[], None],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock or self._loop.time
        self._on_answer, self._on_reply, self._on_stop = on_answer, on_reply, on_stop
        self.view = ViewModel()
        self._page = Page()
        self._events: list[ev.Event] = []
        self._seq = 0
        self._began = self._clock()
        self._flushed = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._serial = 0
        self._head: Json = html.header(self.view)
        self.timeline = Timeline(head={**self._head, "elapsed": 0.0})
        self.timeline.on_msg(lambda _widget, content, _buffers: self._post(self._from_page, content))
        self._stop = _button("Stop", "nbagent-stop", lambda: self._post(self._stopped))
        self._errors = ipywidgets.HTML(layout={"display": "none"})
        self._asks = ipywidgets.VBox()
        self._asks.add_class("nbagent-asks")
        self._cards: dict[str, ApprovalCard | QuestionCard] = {}
        self._foot = ipywidgets.HBox([self._stop])
        self._foot.add_class("nbagent-foot")
        self.widget = ipywidgets.VBox([self.timeline, self._asks, self._errors, self._foot])
        self.widget.add_class("nbagent-view")

    # ── events in, patches out ───────────────────────────────────────────────────────────────────────────────────────

    def show(self, event: ev.Event) -> None:
        """Take one event; it reaches the page within `INTERVAL` seconds, important ones at once."""
        if self._closed:
            return
        self._events.append(event)
        due = self._flushed + INTERVAL - self._loop.time()
        if due <= 0 or isinstance(event, _AT_ONCE):
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(due, self.flush)

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
        operations = self._page.changes(self.view)
        if operations:
            self._seq += 1
            self.timeline.send({"op": "patch", "seq": self._seq, "ops": operations})
        head = html.header(self.view)
        if head != self._head:
            self._head = head
            self.timeline.head = {**head, "elapsed": self._clock() - self._began}
        self._sync_cards()

    def close(self) -> None:
        """Close every widget of the view, with their layouts and styles, so that none stays in the notebook."""
        if self._timer is not None:
            self._timer.cancel()
        self._closed = True
        self._cards.clear()
        _close_tree(self.widget)

    def _from_page(self, content: Any) -> None:
        if not isinstance(content, dict):
            return
        match content.get("op"):
            case "snapshot":
                self.flush()
                if not self._closed:
                    self.timeline.send({"op": "snapshot", "seq": self._seq, "ops": self._page.snapshot(),
                                        "elapsed": self._clock() - self._began})  # fmt: skip
            case "words":
                for card in self._cards.values():
                    if card.serial == content.get("card"):
                        card.typed = str(content.get("text", ""))
            case _:
                pass

    # ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sync_cards(self) -> None:
        """Show a card for every open approval and question, and only for those."""
        approvals = {f"a:{a.get('call_id')}:{a.get('hash')}": a for a in self.view.approvals}
        questions = {f"q:{q.key}": q for q in self.view.questions}
        wanted = [*approvals, *questions]
        if wanted == list(self._cards):
            self._show_foot()
            return
        old = self._cards
        self._cards = {}
        for key in wanted:
            if (card := old.pop(key, None)) is None:
                self._serial += 1
                if key in approvals:
                    card = ApprovalCard(self._serial, approvals[key], self)
                else:
                    question = questions[key]
                    card = QuestionCard(self._serial, question.question_id, question.text, question.choices, self)
            self._cards[key] = card
        self._asks.children = tuple(card.widget for card in self._cards.values())
        for card in old.values():
            card.done = True
            _close_tree(card.widget)
        self._show_foot()

    def _show_foot(self) -> None:
        if self.view.ended is not None and self._foot.children:
            self._foot.children = ()
            _close_tree(self._stop)

    # ── answers out ──────────────────────────────────────────────────────────────────────────────────────────────────

    def now(self) -> float:
        """Return the view's time in seconds."""
        return self._clock()

    def arm(self, card: ApprovalCard | QuestionCard, *buttons: ipywidgets.Button) -> float:
        """Show new buttons of `card` as dead for `DEAD_TIME`; return the time from which they take a click."""
        for button in buttons:
            button.disabled = True

        def ready() -> None:
            for button in buttons:
                button.disabled = False

        self._loop.call_later(DEAD_TIME, lambda: None if self._closed or card.done else ready())
        return self._clock() + DEAD_TIME

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
            text = html.label(f"{type(error).__name__}: {error}", 300)
            self._errors.value = (
                f'<div class="nbagent-error" role="alert">✗ The answer could not be taken and counts as Deny '
                f"({html.escape(text)})</div>"
            )
            return False
        return True

    def answer(self, call_id: str, shown: str, answered: Answered) -> None:
        """Pass an answer on; if that fails, deny, and if that fails too, stop the run."""
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


class ApprovalCard:
    """The buttons for one approval. Works once, and only while it is the one on screen."""

    def __init__(self, serial: int, approval: Json, view: AgentView) -> None:
        self.serial, self.done = serial, False
        self.typed: str | None = None
        self._approval, self._view = approval, view
        self.approve = _button("Approve", "nbagent-approve", self._on(self._approve), style="success")
        self.deny = _button("Deny", "nbagent-deny", self._on(self._deny), style="danger")
        self.words = ipywidgets.Text(placeholder="or say what to do instead, then Enter")
        self.words.add_class("nbagent-words")
        self.allow = _button("Allow from now on…", "nbagent-allow", self._on(self._offer))
        self.offers = [str(rule) for rule in approval.get("offers") or ()]
        self.keeps: list[ipywidgets.Button] = []
        bar = ipywidgets.HBox([self.approve, self.deny, self.words, *([self.allow] if self.offers else [])])
        bar.add_class("nbagent-bar")
        bar.add_class("nbagent-approving")
        self.rules = ipywidgets.VBox()
        self.widget = ipywidgets.VBox([ipywidgets.HTML(html.approval_html(approval)), bar, self.rules])
        self.widget.add_class("nbagent-card")
        self.widget.add_class(f"nbagent-card-{serial}")
        self._ready = view.arm(self, self.approve, self.deny, self.allow)

    def _on(self, action: Callable[[], None]) -> Callable[[], None]:
        def clicked() -> None:
            self._view.post(lambda: None if self.done or self._view.now() < self._ready else action())

        return clicked

    def _approve(self) -> None:
        self._answer(Answered(approved=True))

    def _deny(self) -> None:
        self._answer(Answered(approved=False, words=_typed(self)))

    def _offer(self) -> None:
        """Show the exact rules, or hide them again; each needs its own, second click before it is kept."""
        if self.keeps:
            self.rules.layout.display = None if self.rules.layout.display else "none"
            return
        rows: list[ipywidgets.Widget] = [ipywidgets.HTML("Keep which rule, for this session?")]
        for rule in self.offers:
            keep = _button("Keep this rule and approve", "nbagent-keep", self._on(lambda rule=rule: self._keep(rule)))
            self.keeps.append(keep)
            row = ipywidgets.HBox([keep, ipywidgets.HTML(html.rule_html(rule, self._approval))])
            row.add_class("nbagent-rulerow")
            rows.append(row)
        self._ready = self._view.arm(self, self.approve, self.deny, *self.keeps)  # not `allow`: it has the focus
        self.rules.children = tuple(rows)

    def _keep(self, rule: str) -> None:
        self._answer(Answered(approved=True, rule=rule))

    def _answer(self, answered: Answered) -> None:
        self.done = True
        for control in (self.approve, self.deny, self.words, self.allow, *self.keeps):
            control.disabled = True
        self._view.answer(str(self._approval.get("call_id")), str(self._approval.get("hash")), answered)


class QuestionCard:
    """The choices and the text box for one question. Works once."""

    def __init__(self, serial: int, question_id: str, text: str, choices: Sequence[str], view: AgentView) -> None:
        self.serial, self.done = serial, False
        self.typed: str | None = None
        self._id, self._view = question_id, view
        self.choices = [
            _button(html.label(choice), "nbagent-choice", self._on(lambda c=choice: c)) for choice in choices
        ]
        self.words = ipywidgets.Text(placeholder="or write an answer" if choices else "write an answer")
        self.words.add_class("nbagent-words")
        self.send = _button("Send", "nbagent-send", self._on(lambda: _typed(self)))
        bar = ipywidgets.HBox([*self.choices, self.words, self.send])
        bar.add_class("nbagent-bar")
        self.widget = ipywidgets.VBox([ipywidgets.HTML(html.question_html(text)), bar])
        self.widget.add_class("nbagent-card")
        self.widget.add_class(f"nbagent-card-{serial}")
        self._ready = view.arm(self, *self.choices, self.send)

    def _on(self, text: Callable[[], str]) -> Callable[[], None]:
        return lambda: self._view.post(lambda: self._reply(text()))

    def _reply(self, text: str) -> None:
        if self.done or not text or self._view.now() < self._ready:
            return
        self.done = True
        for control in (*self.choices, self.words, self.send):
            control.disabled = True
        self._view.reply(self._id, text)


def _typed(card: ApprovalCard | QuestionCard) -> str:
    """The words in the card's box: as the page read them at the click, else as they were synced (which may lag)."""
    return (card.words.value if card.typed is None else card.typed).strip()


def _button(face: str, name: str, action: Callable[[], None], *, style: str = "") -> ipywidgets.Button:
    button = ipywidgets.Button(description=face, button_style=style, tooltip=face)
    button.add_class("nbagent-button")
    button.add_class(name)
    button.on_click(lambda _button: action())
    return button


def _close_tree(widget: ipywidgets.Widget) -> None:
    for child in getattr(widget, "children", ()):
        _close_tree(child)
    for part in (getattr(widget, "layout", None), getattr(widget, "style", None)):
        if isinstance(part, ipywidgets.Widget):
            part.close()
    widget.close()
