"""The card that asks the person questions: choices as buttons, a box for words, and what they make of an answer.

One question with one answer is answered by one click. Where several choices may hold, or several questions stand in one
card, the buttons are switches and Send answers all of it. A card works once; a click comes from the page as one message
with what stood in the card (see cards.py). Read `QuestionCard`, then `AskedQuestion`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets

from nbagent.view import asking
from nbagent.view.cards import button, row
from nbagent.view.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbagent.core.messages import Json
    from nbagent.view.cards import Host
    from nbagent.view.items import QuestionItem

_FIRST = "Choose or write an answer first."


class AskedQuestion:
    """One question of a card: its choices as buttons that answer at once, or as switches, and its box for words."""

    def __init__(self, question: QuestionItem, card: QuestionCard, *, switches: bool, own_box: bool) -> None:
        self.id = question.question_id
        self._choices, self._many, self._card = question.choices, question.many, card
        self.words = ipywidgets.Text(placeholder="or write an answer" if question.choices else "write an answer")
        self.words.add_class("nbagent-words")
        self.buttons: list[ipywidgets.Button | ipywidgets.ToggleButton] = [
            self._switch(choice) if switches else self._answer(place, choice)
            for place, choice in enumerate(question.choices)
        ]
        self.switches = switches
        parts: list[ipywidgets.Widget] = [ipywidgets.HTML(asking.question_html(question, together=own_box))]
        self.inline = not question.details and not switches  # they stand in the bar, before the box
        if question.details:
            for made, detail in zip(self.buttons, question.details, strict=False):
                said = ipywidgets.HTML(asking.option_html(detail))
                parts.append(row(made, said, name="nbagent-optionrow"))
        elif switches and self.buttons:
            parts.append(row(*self.buttons, name="nbagent-options"))
        if previews := asking.previews_html(question):
            parts.append(ipywidgets.HTML(previews))
        if own_box:
            self.words.observe(lambda _change: card.refresh(), "value")
            parts.append(row(self.words, name="nbagent-wordrow"))
        self.widget = ipywidgets.VBox(parts)
        self.widget.add_class("nbagent-askedquestion")
        self.widget.add_class("nbagent-many" if question.many else "nbagent-one")

    def _answer(self, place: int, choice: str) -> ipywidgets.Button:
        return button(
            asking.label(choice), "nbagent-choice", self._card.on(lambda: self._card.press(f"choice:{place}"))
        )

    def _switch(self, choice: str) -> ipywidgets.ToggleButton:
        face = asking.label(choice)
        made = ipywidgets.ToggleButton(value=False, description=face, tooltip=face)
        made.add_class("nbagent-button")
        made.add_class("nbagent-pick")
        made.observe(lambda change: self._switched(made, on=bool(change["new"])), "value")
        return made

    def _switched(self, made: ipywidgets.ToggleButton, *, on: bool) -> None:
        """Have no second choice where there is one answer, and the card say what it would send."""
        if on and not self._many:
            for other in self.buttons:
                if other is not made and isinstance(other, ipywidgets.ToggleButton) and other.value:
                    other.value = False
        self._card.refresh()

    def text(self, read: object) -> str:
        """Return the answer, as the page `read` it or else as it was synced, "" where there is none (see `ports.Question`)."""
        given: Json = read if isinstance(read, dict) else {}
        words, picks = given.get("words"), given.get("picks")
        said = (words if isinstance(words, str) else str(self.words.value)).strip()
        if not isinstance(picks, list) or len(picks) != len(self._choices) or not self.switches:
            picks = [isinstance(made, ipywidgets.ToggleButton) and made.value for made in self.buttons]
        made = [choice for choice, on in zip(self._choices, picks, strict=True) if on is True]
        return "\n".join([*(made if self._many else made[-1:]), *([said] if said else [])])

    def chosen(self, place: int, read: object) -> str:
        """Return the answer of a click on the choice at `place`, with what was written beside it."""
        said = self.text(read)
        return "\n".join([self._choices[place], *([said] if said else [])])

    def show(self, *, alive: bool, done: bool) -> None:
        """Show what takes a click."""
        for made in self.buttons:
            made.disabled = not alive
        self.words.disabled = done

    @property
    def size(self) -> int:
        """How many choices there are."""
        return len(self._choices)


class QuestionCard:
    """Asks one question, or several that belong together. Works once."""

    def __init__(self, serial: int, questions: Sequence[QuestionItem], view: Host) -> None:
        self.serial, self.done, self._view = serial, False, view
        self._alive, self._read = False, []
        several = len(questions) > 1
        self.form = several or any(question.many for question in questions)
        self.send = button("Send", "nbagent-send", self.on(lambda: self.press("send")))
        self._hint = ipywidgets.HTML()
        self.parts: list[AskedQuestion] = []
        self.parts += [AskedQuestion(one, self, switches=self.form, own_box=several) for one in questions]
        first = self.parts[0]
        inline = first.buttons if first.inline else ()
        bar = row(*inline, *(() if several else (first.words,)), self.send, self._hint, name="nbagent-bar")
        head = [ipywidgets.HTML(asking.questions_html(len(questions)))] if several else []
        self.widget = ipywidgets.VBox([*head, *(part.widget for part in self.parts), bar])
        above = several or (first.buttons and not first.inline)
        names = ["nbagent-card", "nbagent-asking", f"nbagent-card-{serial}", "nbagent-form" if self.form else ""]
        for name in (*names, "nbagent-choicesabove" if above else ""):
            if name:
                self.widget.add_class(name)
        self.refresh()
        self._ready = view.arm(self)

    @property
    def choices(self) -> list[ipywidgets.Button | ipywidgets.ToggleButton]:
        """The buttons of all choices."""
        return [made for part in self.parts for made in part.buttons]

    @property
    def words(self) -> ipywidgets.Text:
        """The first box for words."""
        return self.parts[0].words

    def read(self, content: Json) -> None:
        """Take what the page read at a click: of each question its `words`, and which of its choices are `picks`."""
        answers = content.get("answers")
        if isinstance(answers, list) and len(answers) == len(self.parts):
            self._read = answers
        elif len(self.parts) == 1 and isinstance(content.get("words"), str):
            self._read = [{"words": content["words"]}]

    def press(self, name: str) -> None:
        """Do what the button of that name does (send, choice:0, …), with what was read in the same message."""
        if self.done or self._view.now() < self._ready:
            return
        kind, _, place = name.partition(":")
        if kind == "choice" and place.isdecimal() and not self.form and int(place) < self.parts[0].size:
            self._reply([self.parts[0].chosen(int(place), self._of(0))])
        elif kind == "send":
            self._reply([part.text(self._of(place)) for place, part in enumerate(self.parts)])

    def on(self, action: Callable[[], None]) -> Callable[[], None]:
        """Return what a button does: `action`, on the loop."""
        return lambda: self._view.post(action)

    def arm(self) -> None:
        """Take no click for a moment: the card has just moved under the person's hand."""
        self._alive = False
        self._ready = self._view.arm(self)
        self.refresh()

    def wake(self) -> None:
        """Take clicks."""
        self._alive = True
        self.refresh()

    def refresh(self) -> None:
        """Have the buttons say what they would do now."""
        every = len(self.parts)
        if every > 1:
            given = sum(bool(part.text(None)) for part in self.parts)
            face = "Send" if given in {0, every} else f"Send {given} of {count(every, 'answer')}"
            self.send.description = self.send.tooltip = face
        alive = self._alive and not self.done
        for part in self.parts:
            part.show(alive=alive, done=self.done)
        self.send.disabled = not alive

    def _of(self, place: int) -> Any:
        return self._read[place] if self._read else None

    def _reply(self, texts: Sequence[str]) -> None:
        if not any(texts):
            self._hint.value = f'<span class="nbagent-size" role="status">{_FIRST}</span>'
            return
        self.done = True
        self.refresh()
        for part, text in zip(self.parts, texts, strict=True):
            self._view.reply(part.id, text)
