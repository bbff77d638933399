"""The routes of tests/conformance/approval_kit.py: what runs in the kernel, and the person at the other end of the wire.

In the kernel a route says what its person does next by a line on stdout (`PERSON {…}`); the test's client does it, over
the same channels as a front end: clicks as comm messages, lines as replies to input(). Behind the clicks it sends a
message of the route's own, `then`, on the same way: what it brings is that they have come. Read `ClickedRoute`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import ipywidgets

from nbagent.core.events import ApprovalAnswered, ApprovalAsked, Event, QuestionAnswered, QuestionAsked, State
from nbagent.core.ports import Answered, Approval, Question
from nbagent.jupyter.approval import PersonApprover, PolicyApprover, TypedApprover
from nbagent.jupyter.typed import Read, from_terminal
from nbagent.view.widget import AgentView

MARK = "PERSON "
Do = dict[str, Any]


def event(kind: type[Event], **fields: Any) -> Event:
    return kind(state=State.ACT, turn=1, at=0.0, **fields)


def tell(do: Do) -> None:
    """Say what the person does next."""
    print(f"\n{MARK}{json.dumps(do)}", flush=True)


class ClickedRoute:
    """Buttons: the live view in this kernel's page, answered over its comm."""

    def __init__(self, display: Callable[[Any], object]) -> None:
        self.approver = PersonApprover()
        self._told = self._done = 0
        self._loop, self._come = asyncio.get_running_loop(), asyncio.Event()
        self._ear = ipywidgets.Widget()
        self._ear.on_msg(lambda _widget, _content, _buffers: self._loop.call_soon_threadsafe(self._hear))

        def answer(call_id: str, shown: str, answered: Answered) -> None:
            self.approver.answer(call_id, shown, answered)

        def reply(question_id: str, text: str) -> None:
            self.approver.answer_question(question_id, text)
            self._view.show(event(QuestionAnswered, question_id=question_id, text=text))

        self._view = AgentView(on_answer=answer, on_reply=reply, on_stop=self.close, on_spare=lambda: None)
        display(self._view.widget)

    def _hear(self) -> None:
        self._done += 1
        self._come.set()

    def _tell(self, **do: Any) -> None:
        self._told += 1
        tell({**do, "then": self._ear.model_id})

    async def acted(self) -> None:
        while self._done < self._told:
            self._come.clear()
            await self._come.wait()

    def show(self, *asked: Approval | Question) -> None:
        for item in asked:
            if isinstance(item, Question):
                self._view.show(event(QuestionAsked, question_id=item.id, text=item.text, choices=item.choices))
            else:
                self._view.show(event(ApprovalAsked, call_id=item.call_id, approval=item.to_json()))

    def hide(self, asked: Approval, answered: Answered) -> None:
        self._view.show(event(ApprovalAnswered, call_id=asked.call_id, approved=answered.approved))

    async def approve(self, *, times: int = 1, rule: str = "", edited: str | None = None, only: int = -1) -> None:
        if rule:
            self._tell(click="Allow from now on…")
            self._tell(click="Allow this code")
        elif edited is not None:
            self._tell(click="Edit", rests="Approve")
            self._tell(click="Approve", texts=[edited])
        elif only >= 0:
            self._tell(click="Approve all 3", ticks=[n == only for n in range(3)])
        else:
            self._tell(click="Approve", times=times)

    async def deny(self, words: str = "") -> None:
        self._tell(click="Deny", words=words)

    async def approve_and_deny(self) -> None:
        self._tell(click="Approve", beside="Deny")

    async def again(self) -> None:
        self._tell(again=True)

    async def reply(self, text: str) -> None:
        self._tell(**({"click": text} if text == "Gentoo" else {"click": "Send", "words": text}))

    def close(self) -> None:
        self.approver.close()
        self._view.close()
        self._ear.close()


class TypedRoute:
    """A keyboard: what the person types comes as the answer to input(), in this order."""

    def __init__(self, read: Read) -> None:
        self.approver = TypedApprover(read=self._line)
        self._read = read
        self._gone = False

    async def _line(self, prompt: str) -> str:
        if self._gone:
            raise EOFError
        return await self._read(prompt)

    async def approve(self, *, times: int = 1, rule: str = "", edited: str | None = None, only: int = -1) -> None:
        tell({"type": "a" if rule else "y"})

    async def deny(self, words: str = "") -> None:
        tell({"type": words or "n"})

    async def reply(self, text: str) -> None:
        tell({"type": "2" if text == "Gentoo" else text})

    async def acted(self) -> None:
        """What is typed ahead waits for its question."""

    def show(self, *asked: Approval | Question) -> None:
        """The approver shows what it asks."""

    def hide(self, asked: Approval, answered: Answered) -> None:
        """What was typed stays."""

    def close(self) -> None:
        self._gone = True


class NobodysRoute(TypedRoute):
    """Nobody."""

    def __init__(self) -> None:
        super().__init__(from_terminal)
        self.approver = PolicyApprover()
