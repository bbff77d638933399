"""Who answers when the policy asks: a person at buttons, a person at a keyboard, or the policy because nobody is there.

The kernel answers for safety: an answer counts only for the question that is open, with the hash of what was shown,
once, and never as the second half of a double click. Default is deny. Must not know of widgets. Read
`PersonApprover.answer`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from nbagent.core.diff import unified
from nbagent.core.ports import Answered, Approval, Question
from nbagent.core.shown import effects_words, rule_words, visible_plain
from nbagent.jupyter.typed import Read, from_terminal

T = TypeVar("T")

DEAD_TIME = 0.3
"""Seconds in which a new question does not take an answer that follows another one as closely."""
CLOSED_WORDS = "The run was closed before the person answered, so this was not done."
NOBODY_WORDS = (
    "Nobody is there to approve this, so it was not done. Go on with what needs no approval, or say in your answer "
    "which permission (--allow, --mode) would be needed."
)
NO_INPUT_WORDS = "Nobody can type an answer here, so this was not done. Go on with what needs no approval."


@dataclass(slots=True)
class _Open:
    """A question that waits: what it must be answered with, and when it was put."""

    future: asyncio.Future[Answered]
    approval: Approval
    hash: str
    shown: float


class PersonApprover:
    """Waits for a person's clicks. The view calls `answer` and `answer_question`, from any thread."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._open: dict[str, _Open] = {}
        self._questions: dict[str, asyncio.Future[str]] = {}
        self._answered_at = float("-inf")
        self._closed = False

    @property
    def present(self) -> bool:
        """True until `close`."""
        return not self._closed

    @property
    def waiting(self) -> tuple[Approval, ...]:
        """The approvals that wait for an answer now, oldest first."""
        return tuple(approval for _, approval in self.waiting_since)

    @property
    def waiting_since(self) -> tuple[tuple[float, Approval], ...]:
        """The same, each with when it was put, in seconds of the clock."""
        return tuple((item.shown, item.approval) for item in list(self._open.values()))

    async def ask(self, approval: Approval) -> Answered:
        """Return the person's answer; a deny with words once this is closed."""
        if self._closed:
            return Answered(approved=False, words=CLOSED_WORDS, by="closed")
        future: asyncio.Future[Answered] = self._loop.create_future()
        item = _Open(future, approval, approval.hash, self._clock())
        self._open[approval.call_id] = item
        try:
            return await future
        finally:
            if self._open.get(approval.call_id) is item:
                del self._open[approval.call_id]

    async def question(self, question: Question) -> str:
        """Return what the person chose or wrote, "" once this is closed."""
        if self._closed:
            return ""
        future: asyncio.Future[str] = self._loop.create_future()
        self._questions[question.id] = future
        try:
            return await future
        finally:
            if self._questions.get(question.id) is future:
                del self._questions[question.id]

    def answer(self, call_id: str, shown_hash: str, answered: Answered) -> bool:
        """Answer the open question about `call_id`, as it was shown with `shown_hash`. Returns whether it counted.

        It does not where that question is not open, was shown differently, has its answer, offers no such rule, can't be
        edited, or was put less than `DEAD_TIME` ago and the last answer is as young (a double click hits the next card).
        """
        item = self._open.get(call_id)
        if item is None or item.hash != shown_hash or (answered.rule and answered.rule not in item.approval.offers):
            return False
        if answered.edited is not None and not item.approval.editable:
            return False
        now = self._clock()
        if now - item.shown < DEAD_TIME and now - self._answered_at < DEAD_TIME:
            return False
        if self._open.pop(call_id, None) is not item:  # another thread was first: dict.pop is atomic
            return False
        self._answered_at = now
        kept = answered if answered.approved else replace(answered, rule="", edited=None)
        if kept.edited not in {None, item.approval.preview.body}:
            kept = replace(kept, rule="")  # it was offered for what was shown
        return self._resolve(item.future, kept)

    def answer_question(self, question_id: str, text: str) -> bool:
        """Answer an open question that is not about permission. Returns whether it counted."""
        future = self._questions.pop(question_id, None)
        if future is None:
            return False
        self._answered_at = self._clock()
        return self._resolve(future, text)

    def close(self) -> None:
        """Deny all that waits, and whatever is asked later. Safe to call twice, from any thread."""
        self._closed = True
        while self._open:
            _, item = self._open.popitem()
            self._resolve(item.future, Answered(approved=False, words=CLOSED_WORDS, by="closed"))
        while self._questions:
            _, future = self._questions.popitem()
            self._resolve(future, "")

    def _resolve(self, future: asyncio.Future[T], value: T) -> bool:
        try:
            self._loop.call_soon_threadsafe(lambda: future.done() or future.set_result(value))
        except RuntimeError:  # the loop is closed: the run is over
            return False
        return True


class PolicyApprover:
    """Nobody is there: every question is denied at once, with a sentence for the model."""

    @property
    def present(self) -> bool:
        """False."""
        return False

    async def ask(self, approval: Approval) -> Answered:
        """Deny, and say what it was: the title names what speaks against the call, such as a last run of two hours."""
        return Answered(approved=False, words=f"{NOBODY_WORDS} What was asked: {approval.title}.", by="policy")

    async def question(self, question: Question) -> str:  # noqa: ARG002
        """Return ""."""
        return ""


class TypedApprover:
    """A person at a keyboard, for places without widgets: asks through `read`, shows through `write`, one thing at a time.

    `present` is True until reading turns out to be impossible (no stdin, end of file): from then on it denies at once.
    """

    def __init__(self, read: Read = from_terminal, write: Callable[[str], None] = print) -> None:
        self._read = read
        self._write = write
        self._present = True
        self._turn = asyncio.Lock()

    @property
    def present(self) -> bool:
        """Whether reading still worked the last time."""
        return self._present

    async def ask(self, approval: Approval) -> Answered:
        """Show the call as plain text and read y, n, a (allow from now on) or words; a lone other letter is asked again."""
        async with self._turn:
            return await self._ask(approval)

    async def _ask(self, approval: Approval) -> Answered:
        self._write("\n".join(card(approval)))
        keys = "y = yes, n = no" + (", a = yes, from now on" if approval.offers else "") + ", or say what to do instead"
        while True:
            typed = await self._line(f"{keys}: ")
            if typed is None:
                return Answered(approved=False, words=NO_INPUT_WORDS, by="policy")
            match typed.casefold():
                case "y" | "yes" | "ok" | "okay" | "sure":
                    return Answered(approved=True)
                case "n" | "no":
                    return Answered(approved=False)
                case "a" if approval.offers:
                    return Answered(approved=True, rule=approval.offers[0])
                case _ if len(typed) > 1:
                    return Answered(approved=False, words=typed)
                case _:  # nothing, or a slip of the finger
                    continue

    async def question(self, question: Question) -> str:
        """Show the question with numbered choices and return what was chosen by number or name, or what was written."""
        async with self._turn:
            self._write("\n".join(question_lines(question)))
            typed = await self._line(f"{_keys(question)}: ") or ""
        return _meant(question, typed)

    async def line(self, prompt: str) -> str | None:
        """Ask for a line about something that is no approval; None where nobody can type."""
        async with self._turn:
            return await self._line(prompt)

    async def _line(self, prompt: str) -> str | None:
        if not self._present:
            return None
        try:
            return (await self._read(prompt)).strip()
        except (EOFError, OSError, RuntimeError):  # no terminal; a kernel without stdin (StdinNotImplementedError)
            self._present = False
            return None


def question_lines(question: Question) -> list[str]:
    """Return the lines that ask a question on a surface of plain text: choices with their numbers and what they mean."""
    head = f"[{visible_plain(question.header)}] " if question.header else ""
    lines = ["", head + visible_plain(question.text)] if question.group else [head + visible_plain(question.text)]
    for place, choice in enumerate(question.choices):
        detail = question.details[place] if place < len(question.details) else ""
        lines.append(f"  {place + 1}. {visible_plain(choice)}" + (f": {visible_plain(detail)}" if detail else ""))
        if place < len(question.previews):
            lines += _bordered(question.previews[place], "     │ ")
    return lines


def _keys(question: Question) -> str:
    if not question.choices:
        return "Your answer"
    return "Numbers (such as 1,2), or your own words" if question.many else "A number, or your own words"


def _meant(question: Question, typed: str) -> str:
    """Return the choices that were typed by number or name, a line each; anything else as it was typed."""
    named = {choice.casefold(): choice for choice in question.choices}
    named |= {str(place): choice for place, choice in enumerate(question.choices, 1) if str(place) not in named}
    parts = [typed] if typed.casefold() in named else re.split(r"[,;]\s*|\s+", typed.strip(" ,;"))
    found = [named.get(part.casefold(), "") for part in parts]
    if not all(found) or (len(found) > 1 and not question.many):
        return typed
    return "\n".join(choice for choice in question.choices if choice in found)


def card(approval: Approval) -> list[str]:
    """Return the lines that ask about a call on a surface of plain text: all that will happen, nothing cut."""
    asks = f"{visible_plain(approval.agent)} asks: " if approval.agent else ""
    lines = [
        "",
        f"{asks}{visible_plain(approval.title)}  [{visible_plain(approval.tool)}]",
        visible_plain(approval.why),
    ]
    preview = approval.preview
    if preview.kind == "diff" and preview.old != preview.body:
        whole = preview.old.count("\n") + preview.body.count("\n") + 2  # all of it may run: no line is left out
        lines += [
            f"│ {line}" for line in unified(preview.old, preview.body, carets=True, context=whole, line=preview.line)
        ]
    elif preview.kind != "none":
        lines += ["│ (no change)"] if preview.kind == "diff" else []
        lines += _bordered(preview.body, "│ ")
    else:
        lines += [f"│ {visible_plain(key)} = {visible_plain(repr(value))}" for key, value in approval.input.items()]
    if preview.effects:
        lines.append(visible_plain(effects_words(preview.effects)))
    if approval.notebook:
        lines.append(f"in {visible_plain(approval.notebook)}")
    if approval.offers:
        rule = approval.offers[0]
        lines.append(f"a = yes, and from now on: {visible_plain(rule_words(rule, approval.offers, preview.kind))}")
        lines.append(f"    {visible_plain(rule)}")
    return [line for line in lines if line or line is lines[0]]


def _bordered(text: str, mark: str) -> list[str]:
    return [mark + visible_plain(line) for line in text.split("\n")] if text else []
