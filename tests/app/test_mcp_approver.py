"""The approver of mcp-serve keeps what every way to a person promises (tests/conformance/approval_kit.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from nbagent.app.serve_asking import ALLOW, DENY, Asking, Elicited
from nbagent.core.ports import Answered, Approval, Question
from tests.conformance.approval_kit import EVERYONE, NOBODY, keep_all

Fields = dict[str, Any]


class OtherAgentsRoute:
    """The form that another agent shows its person: filled in as was said beforehand, in order."""

    def __init__(self, *, present: bool = True) -> None:
        self._asking = Asking(present=present)
        self.approver = Elicited(self._asking)
        self._says: asyncio.Queue[Callable[[Fields], Fields]] = asyncio.Queue()
        self._person = asyncio.create_task(self._fill_in())

    async def _fill_in(self) -> None:
        never: asyncio.Task[None] = asyncio.create_task(asyncio.Event().wait())
        try:
            while (question := await self._asking.next(never)) is not None:
                fill = await self._says.get()
                self._asking.answer(fill(question["schema"]["properties"]))
        finally:
            never.cancel()

    def show(self, *asked: Approval | Question) -> None: ...
    def hide(self, asked: Approval, answered: Answered) -> None: ...

    async def approve(self, *, times: int = 1, rule: str = "", edited: str | None = None, only: int = -1) -> None:
        self._says.put_nowait(lambda fields: {"answer": fields["answer"]["enum"][2] if rule else ALLOW})

    async def deny(self, words: str = "") -> None:
        self._says.put_nowait(lambda _: {"answer": DENY, "words": words})

    async def approve_and_deny(self) -> None: ...
    async def again(self) -> None: ...

    async def reply(self, text: str) -> None:
        self._says.put_nowait(lambda _: {"answer": text})

    def close(self) -> None:
        self._person.cancel()


@pytest.mark.parametrize(("promises", "present"), [(EVERYONE, True), (NOBODY, False)])
async def test_the_person_before_another_agent_is_asked_as_everywhere(promises, present):
    kept = await keep_all(promises, lambda: OtherAgentsRoute(present=present))
    broken = {name: why for name, why in kept.items() if why}
    assert len(kept) == len(promises)
    assert not broken, "\n".join(broken.values())
