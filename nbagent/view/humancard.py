"""The card in which a person is the model: what the model sees, a box for words, a form for each call, and Send reply.

Works once. A click on Send comes from the page as one message with what stood in the boxes (see cards.py); the preview is drawn
from what widgets sync. It knows nothing of the run: whoever makes it gets a `Reply`. Read `HumanCard`, then `CallForm`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import ipywidgets

from nbagent.models.forms import Field, fields_of, input_of, problems
from nbagent.models.human import Reply, blocks_of, call_block
from nbagent.view import humanseen
from nbagent.view.cards import button, close_tree, row

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbagent.core.messages import Block, Json
    from nbagent.models.human import Turn
    from nbagent.view.cards import Host

_LEFT_OUT, _CHOOSE = "(left out)", "(choose one)"
_SEND = "Send reply"


class Box:
    """One input of the card, with a number by which the page tells what stands in it."""

    def __init__(self, key: int, made: Any, *classes: str) -> None:
        self.key, self.widget = key, made
        for name in ("nbagent-field", f"nbagent-field-{key}", *classes):
            made.add_class(name)

    def text(self, read: Json) -> str:
        """Return what stands in it: as the page `read` it, else as it was synced."""
        found = read.get(str(self.key))
        value = found if isinstance(found, str) else str(self.widget.value)
        return "" if value in {_LEFT_OUT, _CHOOSE} else value

    def on(self, read: Json) -> bool:
        """Return whether it is ticked, if it is a tick."""
        found = read.get(str(self.key))
        return found == "true" if isinstance(found, str) else bool(self.widget.value)


class CallForm:
    """The form of one call: a field for each argument of its tool, made from the schema."""

    def __init__(self, tool: Json, card: HumanCard, remove: Callable[[CallForm], None]) -> None:
        self.name, self._schema = str(tool.get("name")), tool.get("input_schema") or {}
        self._id = call_block(self.name, {})["id"]
        self.remove = button("Remove", "nbagent-removecall", card.on(lambda: remove(self)))
        self.boxes = {field.name: card.box(_input(field), *_classes(field)) for field in fields_of(self._schema)}
        rows = [_labelled(field, self.boxes[field.name].widget) for field in fields_of(self._schema)]
        title = ipywidgets.HTML(f"<b>call {humanseen.escape(self.name)}</b>")
        self.widget = ipywidgets.VBox([row(title, self.remove, name="nbagent-callhead"), *rows])
        self.widget.add_class("nbagent-callform")

    def block(self, read: Json) -> Block:
        """Return the call as it would be sent."""
        texts = {name: box.text(read) for name, box in self.boxes.items()}
        return {**call_block(self.name, input_of(self._schema, texts)), "id": self._id}


class HumanCard:
    """Asks a person for one reply of the model; `send` gets it, once."""

    def __init__(self, serial: int, turn: Turn, view: Host, send: Callable[[Reply], None]) -> None:
        self.serial, self.done, self._view, self._send = serial, False, view, send
        self._turn, self._alive, self._read, self._boxes = turn, False, {}, 0
        self._tools = {str(tool["name"]): tool for tool in turn.tools if "input_schema" in tool}
        self.calls: list[CallForm] = []
        self.words = self.box(
            ipywidgets.Textarea(rows=3, placeholder="What the model says. May stay empty beside a call.")
        )
        self.raw = self.box(ipywidgets.Textarea(rows=8), "nbagent-area")
        self.as_json = self.box(ipywidgets.Checkbox(description="Write the blocks as JSON", indent=False))
        self.check = self.box(ipywidgets.Checkbox(value=True, description="Check before sending", indent=False))
        self.choice = ipywidgets.Dropdown(options=list(self._tools))
        self.choice.add_class("nbagent-toolchoice")
        self.add = button("Add a call", "nbagent-addcall", self.on(self._add))
        self.send = button(_SEND, "nbagent-send", self.on(lambda: self.press("send")), style="primary")
        self._forms = ipywidgets.VBox()
        self._hint, self._preview = ipywidgets.HTML(), ipywidgets.HTML()
        self._preview.add_class("nbagent-replypreview")
        self._form = ipywidgets.VBox([
            _under("Words", self.words.widget), self._forms,
            row(self.choice, self.add, name="nbagent-addrow"),
        ])  # fmt: skip
        self._raw = ipywidgets.VBox([_under("Blocks", self.raw.widget)])
        self._raw.layout.display = "none"
        bar = row(self.send, self.check.widget, self.as_json.widget, name="nbagent-bar")
        seen, title = (
            ipywidgets.HTML(humanseen.turn_html(turn)),
            ipywidgets.HTML("<b>The reply, as it will be sent</b>"),
        )
        self.widget = ipywidgets.VBox([seen, self._form, self._raw, title, self._preview, self._hint, bar])
        for name in ("nbagent-card", "nbagent-human", f"nbagent-card-{serial}"):
            self.widget.add_class(name)
        self.as_json.widget.observe(lambda _change: self._switch(), "value")
        self._ready = view.arm(self)
        self.refresh()

    def box(self, made: Any, *classes: str) -> Box:
        """Return a new input of the card, which changes the preview."""
        self._boxes += 1
        made.observe(lambda _change: self._draw(), "value")
        return Box(self._boxes, made, *classes)

    def read(self, content: Json) -> None:
        """Take what the page read at a click: `fields`, text by the number of its box."""
        fields = content.get("fields")
        self._read = fields if isinstance(fields, dict) else {}

    def press(self, name: str) -> None:
        """Send the reply, if that is the button and nothing is plainly wrong (or the person wants it so)."""
        read, self._read = self._read, {}
        if name != "send" or self.done or self._view.now() < self._ready:
            return
        try:
            reply = self._reply(read)
        except ValueError as error:  # not JSON: nothing that could be sent
            self._hint.value = humanseen.problems_html([str(error)])
            return
        wrong = problems(reply.content, self._turn.tools) if self.check.on(read) else []
        self._hint.value = humanseen.problems_html(wrong)
        if not wrong:
            self.done = True
            self.refresh()
            self._send(reply)

    def on(self, action: Callable[[], None]) -> Callable[[], None]:
        """Return what a button does: `action`, on the loop."""
        return lambda: self._view.post(action)

    def wake(self) -> None:
        """Take clicks."""
        self._alive = True
        self.refresh()

    def refresh(self) -> None:
        """Show what takes a click, and the reply as it stands."""
        self.send.disabled = self.done or not self._alive
        for made in (self.add, self.choice, *(form.remove for form in self.calls)):
            made.disabled = self.done or not self._tools
        self._draw()

    def _reply(self, read: Json) -> Reply:
        if self.as_json.on(read):
            return Reply(blocks_of(self.raw.text(read)))
        return Reply.of(self.words.text(read), [form.block(read) for form in self.calls])

    def _draw(self) -> None:
        if self.done or not hasattr(self, "_preview"):  # boxes are made before it
            return
        try:
            self._preview.value = humanseen.reply_html(self._reply({}))
        except ValueError as error:
            self._preview.value = humanseen.problems_html([str(error)])

    def _add(self) -> None:
        if self.done or not self.choice.value:
            return
        self.calls.append(CallForm(self._tools[str(self.choice.value)], self, self._remove))
        self._forms.children = tuple(form.widget for form in self.calls)
        self._draw()

    def _remove(self, form: CallForm) -> None:
        if self.done or form not in self.calls:
            return
        self.calls.remove(form)
        self._forms.children = tuple(form.widget for form in self.calls)
        close_tree(form.widget)
        self._draw()

    def _switch(self) -> None:
        """Go from the form to its blocks as JSON, or back."""
        by_hand = bool(self.as_json.widget.value)
        if by_hand:
            content = Reply.of(self.words.text({}), [form.block({}) for form in self.calls]).content
            self.raw.widget.value = json.dumps(content, indent=1, ensure_ascii=False)
        self._form.layout.display = "none" if by_hand else None
        self._raw.layout.display = None if by_hand else "none"


def _input(field: Field) -> ipywidgets.Widget:
    """Return the widget of a field: choices to choose from, boxes to write in."""
    match field.kind:
        case "choice":
            return ipywidgets.Dropdown(options=[_CHOOSE if field.required else _LEFT_OUT, *field.choices])
        case "lines":
            return ipywidgets.Textarea(rows=4)
        case "json":
            return ipywidgets.Textarea(rows=2, placeholder='JSON, such as ["a", "b"] or {"name": 1}')
        case _:
            return ipywidgets.Text()


def _classes(field: Field) -> tuple[str, ...]:
    return ("nbagent-area",) if field.kind in {"lines", "json"} else ()


def _labelled(field: Field, made: ipywidgets.Widget) -> ipywidgets.VBox:
    default = f" (then {field.default})" if field.default else ""
    more = "required" if field.required else f"may be left out{default}"
    return _row(ipywidgets.HTML(humanseen.field_html(field.name, field.type, more, field.description)), made)


def _under(name: str, made: ipywidgets.Widget) -> ipywidgets.VBox:
    return _row(ipywidgets.HTML(humanseen.field_html(name, "", "", "")), made)


def _row(label: ipywidgets.Widget, made: ipywidgets.Widget) -> ipywidgets.VBox:
    rowed = ipywidgets.VBox([label, made])
    rowed.add_class("nbagent-fieldrow")
    return rowed
