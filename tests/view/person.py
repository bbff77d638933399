"""A person in front of the live view, in process: what they click, and what the view's callbacks were told."""

from __future__ import annotations

import ipywidgets

from nbagent.core.ports import Answered
from nbagent.view.widget import DEAD_TIME, AgentView
from tests.support.turns import turns


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Person:
    """Holds a view and what its callbacks were told."""

    def __init__(self, page, *, fail: int = 0, limit: float | None = None) -> None:
        self.page = page
        self.clock = Clock()
        self.answers: list[tuple[str, str, Answered]] = []
        self.replies: list[tuple[str, str]] = []
        self.stops = 0
        self.fail = fail
        self.spared = 0
        self.view = AgentView(on_answer=self.answer, on_reply=self.reply, on_stop=self.stop, on_spare=self.spare,
                              limit=limit, clock=self.clock)  # fmt: skip

    def answer(self, call_id: str, shown: str, answered: Answered) -> None:
        if self.fail:
            self.fail -= 1
            raise ValueError("the approver <b>broke</b>")
        self.answers.append((call_id, shown, answered))

    def reply(self, question_id: str, text: str) -> None:
        self.replies.append((question_id, text))

    def stop(self) -> None:
        self.stops += 1

    def spare(self) -> None:
        self.spared += 1

    def shows(self, events) -> None:
        for event in events:
            self.view.show(event)
        self.view.flush()

    def waits(self) -> None:
        self.clock.now += DEAD_TIME + 0.01

    def button(self, name: str) -> ipywidgets.Button:
        return self.all(name)[0]

    def all(self, name: str) -> list[ipywidgets.Button]:
        return [w for w in tree(self.view.widget) if f"nbagent-{name}" in getattr(w, "_dom_classes", ())]

    async def clicks(self, button: ipywidgets.Button) -> None:
        button.click()
        await settle()

    @property
    def messages(self) -> list[dict]:
        comm_id = self.view.timeline.model_id
        return [
            d["content"] for c, t, d in self.page if c == comm_id and t == "comm_msg" and d.get("method") == "custom"
        ]

    @property
    def text(self) -> str:
        """All HTML that the widgets hold."""
        return " ".join(w.value for w in tree(self.view.widget) if isinstance(w, ipywidgets.HTML))

    @property
    def card(self):
        return next(iter(self.view._cards.values()))

    def from_page(self, content) -> None:
        self.view.timeline._handle_custom_msg(content, [])


def tree(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from tree(child)


async def settle() -> None:
    await turns(3)
