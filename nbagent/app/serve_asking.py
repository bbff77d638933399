"""How a person before another agent is asked about a call that comes from there: one question, in a form of two fields.

The question holds all that would run or be written, hidden characters as codes: what was not shown is not approved.
Must not know of MCP's transports. Read `Elicited.ask`, then `Asking`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from nbagent.core.diff import unified
from nbagent.core.messages import Json
from nbagent.core.ports import Answered, Approval, Question
from nbagent.core.shown import effects_words, rule_words, visible_plain
from nbagent.jupyter.approval import NOBODY_WORDS

DENY, ALLOW = "Deny", "Allow once"
SHOWN_LIMIT = 60_000
"""Characters that a question may have; what is longer can't be looked through there, so it is denied."""
_TOO_LONG = (
    "This is too long to be shown to a person before they approve it, so it did not run. Send it in smaller pieces."
)
_NO_ANSWER = "No answer came, so it was not done."


class Asking:
    """The questions of one call: `ask` waits for an answer, while whoever serves the call carries it there and back."""

    def __init__(self, *, present: bool) -> None:
        self.present = present
        self._question: asyncio.Queue[Json] = asyncio.Queue()
        self._answer: asyncio.Future[Json | None] | None = None

    async def ask(self, question: Json) -> Json | None:
        """Put a question (message and schema) and return the fields of the answer; None where there is none."""
        self._answer = asyncio.get_running_loop().create_future()
        self._question.put_nowait(question)
        try:
            return await self._answer
        finally:
            self._answer = None

    async def next(self, work: asyncio.Task[Any]) -> Json | None:
        """Return the next question of a call that is worked on; None when it is done."""
        waiting = asyncio.ensure_future(self._question.get())
        try:
            await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else None
        finally:
            waiting.cancel()

    def answer(self, fields: Json | None) -> None:
        """Answer the question that waits."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(fields)


class Elicited:
    """An approver whose person sits before another agent."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    @property
    def present(self) -> bool:
        """Whether the other agent can ask its person."""
        return self._asking.present

    async def ask(self, approval: Approval) -> Answered:
        """Return the answer; anything but a plain yes is a no."""
        if not self._asking.present:
            return Answered(approved=False, words=f"{NOBODY_WORDS} What was asked: {approval.title}.", by="policy")
        question = question_of(approval)
        if len(question["message"]) > SHOWN_LIMIT:
            return Answered(approved=False, words=_TOO_LONG, by="policy")
        given = await self._asking.ask(question)
        if given is None:
            return Answered(approved=False, words=_NO_ANSWER)
        answer, words = str(given.get("answer", "")), str(given.get("words") or "").strip()
        rules = _keeping(approval)
        if answer == ALLOW or answer in rules:
            return Answered(approved=True, words=words, rule=rules.get(answer, ""))
        return Answered(approved=False, words=words or "They said no.")

    async def question(self, question: Question) -> str:
        """Put a tool's own question; return "" where nobody is there."""
        if not self._asking.present:
            return ""
        field: Json = {"type": "string", "title": "Answer"}
        if question.choices:
            which = "One or more, a line each" if question.many else "One"
            field["description"] = f"{which} of: {', '.join(question.choices)}; or write another."
        schema = {"type": "object", "properties": {"answer": field}, "required": ["answer"]}
        given = await self._asking.ask({"message": visible_plain(question.text), "schema": schema})
        return "" if given is None else str(given.get("answer", ""))


def question_of(approval: Approval) -> Json:
    """Return the message and the form for an approval."""
    choices = [DENY, ALLOW, *_keeping(approval)]
    schema = {
        "type": "object",
        "properties": {
            "answer": {"type": "string", "title": "May it run?", "enum": choices},
            "words": {"type": "string", "title": "If not: what should be done instead? (may be left empty)"},
        },
        "required": ["answer"],
    }
    preview = approval.preview
    body = "\n".join(unified(preview.old, preview.body)) if preview.kind == "diff" else preview.body
    parts = [
        f"nbagent: {approval.title}",
        approval.notebook and f"Notebook: {approval.notebook}",
        body or "\n".join(f"{name} = {value}" for name, value in approval.input.items()),
        effects_words(preview.effects),
        f"Why you are asked: {approval.why}",
    ]
    return {"message": visible_plain("\n\n".join(part for part in parts if part)), "schema": schema}


def _keeping(approval: Approval) -> dict[str, str]:
    """The rules that could be kept, by the words in which they are offered."""
    kind = approval.preview.kind
    return {f"Allow from now on: {rule_words(rule, approval.offers, kind)}": rule for rule in approval.offers}
