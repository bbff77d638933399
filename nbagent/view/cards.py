"""The cards that ask a person whether calls may run: real ipywidgets buttons, ticks and a text area, and what they make of an answer.

A card works once. A click that answers comes from the page as one message with what stood in the card (`read`, `press`),
since what widgets sync may lag behind and come in any order: no tick and no last letter is lost. The buttons' own clicks
count where no page reads the card. Questions have cards of their own (questioncard.py). Knows nothing of the run. Read `ApprovalCard`, then `AskedCall`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import ipywidgets

from nbagent.core.ports import Answered
from nbagent.view import asking
from nbagent.view.words import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbagent.core.messages import Json

SYNCED = 20_000
"""Characters of a text up to which every key typed in it is sent at once, so that a reload keeps it."""


class Wakes(Protocol):
    """A card, as the view knows it: `done` once it was answered."""

    done: bool

    def wake(self) -> None:
        """Take clicks from now on."""
        ...


class Host(Protocol):
    """What a card needs of the view that it stands in."""

    def now(self) -> float:
        """Return the view's time in seconds."""
        ...

    def arm(self, card: Wakes) -> float:
        """Have `card` wake after a dead time; return the time from which it takes a click."""
        ...

    def post(self, action: Callable[[], None]) -> None:
        """Run `action` on the loop's thread."""
        ...

    def answer(self, call_id: str, shown: str, answered: Answered) -> None:
        """Pass an answer on."""
        ...

    def reply(self, question_id: str, text: str) -> None:
        """Pass the reply to a question on."""
        ...


class AskedCall:
    """One call of a card: what it would do, and what the person makes of it before they answer.

    `ticked`, `rule` and `edited` say what an approval of the card means for this call.
    """

    def __init__(self, approval: Json, card: ApprovalCard, *, grouped: bool) -> None:
        self.id, self.hash = str(approval.get("call_id")), str(approval.get("hash"))
        self.offers = [str(rule) for rule in approval.get("offers") or ()]
        self.rule = ""
        self._approval, self._card, self._grouped = approval, card, grouped
        self._body = str(asking.preview_of(approval).get("body", ""))
        self._preview = ipywidgets.HTML(asking.preview_box(approval))
        self._effects = ipywidgets.HTML(asking.effects_html(approval))
        self._note = ipywidgets.HTML()
        self._area: ipywidgets.Textarea | None = None
        self.tick = ipywidgets.Checkbox(value=True, indent=False) if grouped else None
        editable = bool(approval.get("editable"))
        self.edit = button("Edit", "nbagent-editing", card.on(self._toggle_edit)) if editable else None
        self.allow = button("Allow from now on…", "nbagent-allow", card.on(self._toggle_rules)) if self.offers else None
        self.keeps: list[ipywidgets.Button] = []
        self.rules = ipywidgets.VBox()
        self.tools = [tool for tool in (self.edit, self.allow) if tool is not None]
        head: ipywidgets.Widget = ipywidgets.HTML(asking.call_html(approval, grouped=grouped))
        if self.tick is not None:
            self.tick.add_class("nbagent-tick")
            self.tick.observe(lambda _change: card.refresh(), "value")
            head = ipywidgets.HBox([self.tick, head])
            head.add_class("nbagent-tickrow")
        self._code = ipywidgets.VBox([self._preview])
        below: list[ipywidgets.Widget] = [self._note, self._effects]
        if grouped and self.tools:
            below.append(row(*self.tools, name="nbagent-tools"))
        self.widget = ipywidgets.VBox([head, self._code, *below, *([self.rules] if grouped else [])])
        self.widget.add_class("nbagent-askedcall")

    @property
    def ticked(self) -> bool:
        """Whether an approval of the card is one of this call."""
        return self.tick is None or bool(self.tick.value)

    def edited(self, read: object) -> str | None:
        """Return the person's text, as the page `read` it or else as it was synced; None where it is the proposal."""
        if self._area is None:
            return None
        text = read if isinstance(read, str) else str(self._area.value)
        return None if _as_in_a_box(text) == _as_in_a_box(self._body) else text

    @property
    def editing(self) -> bool:
        """Whether the person has the text before them to change it."""
        return self._area is not None

    def refresh(self, *, dead: bool, fresh: bool, done: bool) -> None:
        """Show what takes a click: of a `fresh` card nothing, while it is `dead` only what answers and changes nothing."""
        if self.tick is not None:
            self.tick.disabled = fresh or done
        if self.edit is not None:
            self.edit.disabled = dead or done
        if self.allow is not None:
            self.allow.disabled = fresh or done or self.editing
        for keep in self.keeps:
            keep.disabled = dead or done or self.editing
        if self._area is not None:
            self._area.disabled = done

    def _toggle_edit(self) -> None:
        """Put the text into a box, or the proposal back in its place."""
        self._card.arm()  # first: when the page shows the change, its buttons must show that they are dead
        if self._area is None:
            rows, at_once = min(self._body.count("\n") + 2, 24), len(self._body) <= SYNCED
            self._area = ipywidgets.Textarea(self._body, rows=rows, continuous_update=at_once)
            self._area.add_class("nbagent-area")
            self._area.observe(lambda _change: self._name_edit(), "value")
            self._code.children = (self._preview, self._area)
            self.rule = ""  # a rule was offered for the proposal
            self._show_rules(shown=False)
        else:
            area, self._area = self._area, None
            self._code.children = (self._preview,)
            close_tree(area)
        self._preview.layout.display = "none" if self.editing else None
        self._note.value = asking.hidden_note(self._body) if self.editing else ""
        self._effects.value = asking.effects_html(self._approval, edited=self.editing)
        self._name_edit()
        self._card.refresh()

    def _name_edit(self) -> None:
        """Have the button say what it would do to the text in the box."""
        changed = "Cancel edit" if self.edited(None) is None else "Undo my edit"
        _name(self.edit, changed if self.editing else "Edit")

    def _toggle_rules(self) -> None:
        """Show the exact rules, or hide them again; each needs its own, second click before it is kept."""
        if self.keeps:
            self._show_rules(shown=bool(self.rules.layout.display))
            return
        self._card.arm()
        asked = (
            "Not ask again in this session about:"
            if self._grouped
            else "Approve, and not ask again in this session about:"
        )
        rows: list[ipywidgets.Widget] = [ipywidgets.HTML(asked)]
        for rule in self.offers:
            face = asking.rule_face(rule, self._approval)
            keep = button(face, "nbagent-keep", self._card.on(lambda rule=rule: self._keep(rule)))
            self.keeps.append(keep)
            rows.append(row(keep, ipywidgets.HTML(asking.rule_html(rule, self._approval)), name="nbagent-rulerow"))
        self._card.refresh()  # the new buttons are dead, too, before they are seen
        self.rules.children = tuple(rows)

    def _show_rules(self, *, shown: bool) -> None:
        self.rules.layout.display = None if shown else "none"
        _name(self.allow, "✓ Allowed from now on" if self.rule else "Allow from now on…")

    def _keep(self, rule: str) -> None:
        """Keep a rule: with the click where the card has one call, else with its approval."""
        if self.editing:
            return
        self.rule = "" if self._grouped and self.rule == rule else rule
        if self._grouped:
            self._show_rules(shown=False)
        else:
            self._card.approve_all()


class ApprovalCard:
    """Asks about one call, or about several of one reply, each with a tick of its own."""

    def __init__(self, serial: int, approvals: Sequence[Json], view: Host) -> None:
        self.serial, self.done, self._view = serial, False, view
        self._dead = self._fresh = True
        self._words: str | None = None
        self._ticks: list[Any] = []
        self._texts: list[Any] = []
        self.calls: list[AskedCall] = []
        grouped = len(approvals) > 1
        self.approve = button("Approve", "nbagent-approve", self.on(self.approve_all), style="success")
        self.deny = button("Deny", "nbagent-deny", self.on(self._deny), style="danger")
        plan = not grouped and approvals[0].get("tool") == asking.PLAN
        instead = "or say what to think over, then Enter" if plan else "or say what to do instead, then Enter"
        self.words = ipywidgets.Text(placeholder=instead)
        self.words.add_class("nbagent-words")
        self.calls += [AskedCall(approval, self, grouped=grouped) for approval in approvals]
        tools = [] if grouped else self.calls[0].tools
        bar = row(self.approve, self.deny, self.words, *tools, name="nbagent-bar")
        bar.add_class("nbagent-approving")
        self._hint = ipywidgets.HTML()
        head = [ipywidgets.HTML(asking.group_html(approvals))] if grouped else []
        rules = [] if grouped else [self.calls[0].rules]
        self.widget = ipywidgets.VBox([*head, *(call.widget for call in self.calls), bar, self._hint, *rules])
        for name in ("nbagent-card", f"nbagent-card-{serial}", *(["nbagent-group"] if grouped else [])):
            self.widget.add_class(name)
        self._ready = view.arm(self)
        self.refresh()

    @property
    def ids(self) -> set[tuple[str, str]]:
        """Call id and hash of each call that the card asks about."""
        return {(call.id, call.hash) for call in self.calls}

    def read(self, content: Json) -> None:
        """Take what the page read at a click: `words`, and by call `ticks` and `texts` (null: no box)."""
        words, ticks, texts = content.get("words"), content.get("ticks"), content.get("texts")
        self._words = words if isinstance(words, str) else None
        count = len(self.calls)
        self._ticks = ticks if isinstance(ticks, list) and len(ticks) == count else []
        self._texts = texts if isinstance(texts, list) and len(texts) == count else []

    def press(self, name: str) -> None:
        """Do what the button of that name does, with what was read of the card in the same message."""
        action = {"approve": self.approve_all, "deny": self._deny}.get(name)
        if action is not None:
            self._act(action)

    def on(self, action: Callable[[], None]) -> Callable[[], None]:
        """Return what a button does: `action`, on the loop, unless the card is done or not ready yet."""
        return lambda: self._view.post(lambda: self._act(action))

    def _act(self, action: Callable[[], None]) -> None:
        if not self.done and self._view.now() >= self._ready:
            action()

    def arm(self) -> None:
        """Take no click for a moment: what the buttons mean has just changed under the person's hand."""
        self._dead = True
        self._ready = self._view.arm(self)
        self.refresh()

    def wake(self) -> None:
        """Take clicks again."""
        self._dead = self._fresh = False
        self.refresh()

    def refresh(self) -> None:
        """Have the buttons say what they would do now."""
        every, ticked = len(self.calls), sum(call.ticked for call in self.calls)
        if every > 1:
            _name(self.approve, f"Approve all {every}" if ticked == every else f"Approve {ticked} of {every}")
            self._hint.value = "" if ticked else '<div class="nbagent-size">Tick at least one, or deny.</div>'
        if not self._dead:
            self._refresh_calls()  # what a click on Approve means can be changed before that click counts
        self.approve.disabled = self._dead or self.done or not ticked
        self.deny.disabled = self._dead or self.done
        self.words.disabled = self.done
        if self._dead:
            self._refresh_calls()

    def _refresh_calls(self) -> None:
        for call in self.calls:
            call.refresh(dead=self._dead, fresh=self._fresh, done=self.done)

    def approve_all(self) -> None:
        """Approve every call that is ticked, as it stands in the card; the others were left out."""
        ticks = [tick is True for tick in self._ticks] or [call.ticked for call in self.calls]
        if len(self.calls) == 1:
            ticks = [True]
        if not any(ticks):
            return
        texts = self._texts or [None] * len(self.calls)
        self._answer([
            Answered(approved=True, rule=call.rule, edited=call.edited(text))
            if ticked else Answered(approved=False, words=LEFT_OUT)
            for call, ticked, text in zip(self.calls, ticks, texts, strict=True)
        ])  # fmt: skip

    def _deny(self) -> None:
        words = (self.words.value if self._words is None else self._words).strip()
        self._answer([Answered(approved=False, words=words)] * len(self.calls))

    def _answer(self, answers: Sequence[Answered]) -> None:
        self.done = True
        self.refresh()
        for call, answered in zip(self.calls, answers, strict=True):
            self._view.answer(call.id, call.hash, answered)


def _as_in_a_box(text: str) -> str:
    """A text with the line ends that a browser's text box makes of it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def button(face: str, name: str, action: Callable[[], None], *, style: str = "") -> ipywidgets.Button:
    """Make a button of the view; `name` is its class."""
    made = ipywidgets.Button(description=face, button_style=style, tooltip=face)
    made.add_class("nbagent-button")
    made.add_class(name)
    made.on_click(lambda _button: action())
    return made


def _name(made: ipywidgets.Button | None, face: str) -> None:
    if made is not None:
        made.description = made.tooltip = face


def row(*children: ipywidgets.Widget, name: str) -> ipywidgets.HBox:
    """Put widgets side by side."""
    box = ipywidgets.HBox(list(children))
    box.add_class(name)
    return box


def close_tree(widget: ipywidgets.Widget) -> None:
    """Close a widget with all that it holds, layouts and styles included."""
    for child in getattr(widget, "children", ()):
        close_tree(child)
    for part in (getattr(widget, "layout", None), getattr(widget, "style", None)):
        if isinstance(part, ipywidgets.Widget):
            part.close()
    widget.close()
