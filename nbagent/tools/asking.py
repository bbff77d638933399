"""The tool by which the model asks the person, in the shape of Claude Code's AskUserQuestion: choices, one to four questions.

It must not know who answers, or how. Read `ask_user`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.core.errors import ToolError
from nbagent.core.messages import Json, clean, text_block
from nbagent.core.ports import Question
from nbagent.core.questions import picked
from nbagent.core.tools import Call, Result, Tool, tool

NOBODY = "Nobody can answer now. Decide yourself, go on, and state in your answer which assumption you made and why."
QUESTIONS, CHOICES = 4, 4
_HEADER = 24
"""Characters of a header; 12 are asked for."""


@dataclass(frozen=True, slots=True)
class Option:
    """One answer to choose: `label` is its button, `description` what it means, `preview` what it would look like."""

    label: str
    description: str = ""
    preview: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question; `header` names it in a word or two, `multiSelect` lets the person choose several options."""

    question: str
    options: tuple[Option, ...] = ()
    header: str = ""
    multiSelect: bool = False  # noqa: N815  (the name that Claude Code gave it)


def ask_user() -> Tool:
    """Return ask_user."""

    @tool(name="ask_user", subject=_title, title=_title)
    async def asking(call: Call, questions: tuple[Asked, ...]) -> Result:
        """Ask the person and wait for the answer. Only when you can't find it out yourself and it changes what you do.

        They can always write an answer of their own: give no option "Other". Several questions that don't depend on one
        another go into one call. Permission is asked for by itself when you call a tool: never ask for it with this.

        Args:
            questions: one to four. question: short and clear, with a question mark; options: two to four, or none where
                only words can answer (label: one to five words; description: what it means or leads to; preview: code
                or text to compare, only where it helps; put the one that you advise first and add "(advised)" to its
                label); header: the question in a word or two, at most 12 characters; multiSelect: true where several
                options may hold together.
        """
        asked = _questions(call.id, questions)
        answers = [clean(answer).strip() for answer in await call.ask_all(asked)]
        if not any(answers):
            return Result((text_block(NOBODY),), "no answer")
        if len(asked) == 1:
            text = f"The person answered: {_said(asked[0], answers[0])}"
        else:
            text = "The person answered:\n" + "\n".join(
                f"- {one.text}\n  {_said(one, answer)}" for one, answer in zip(asked, answers, strict=True)
            )
        return Result((text_block(text),), " · ".join(_short(answer) for answer in answers)[:160])

    return asking


def _title(given: Json) -> str:
    questions = [one["question"].strip() for one in given["questions"]]
    first = questions[0] if questions else ""
    return first[:120] + (f" (and {len(questions) - 1} more)" if len(questions) > 1 else "")


def _questions(call: str, given: Sequence[Any]) -> list[Question]:
    """Return what the person is asked; raises `ToolError` with a sentence for the model."""
    if not 1 <= len(given) <= QUESTIONS:
        raise ToolError(f"{len(given)} questions: one to {QUESTIONS} can be asked at a time")
    group = f"{call}-questions" if len(given) > 1 else ""
    asked: list[Question] = []
    for place, one in enumerate(given, 1):
        where = f"question {place}: " if group else ""
        text = clean(one["question"]).strip()
        if not text:
            raise ToolError(f"{where}the question is empty")
        options = one["options"]
        labels = [" ".join(clean(option["label"]).split()) for option in options]
        if not all(labels):
            raise ToolError(f"{where}an option has no label")
        if len({label.casefold() for label in labels}) < len(labels):
            raise ToolError(f"{where}two options have the same label: the person could not tell them apart")
        if len(labels) == 1 or len(labels) > CHOICES:
            raise ToolError(f"{where}{len(labels)} options: give two to {CHOICES}, or none where only words can answer")
        details = [" ".join(clean(option["description"]).split()) for option in options]
        previews = [clean(option["preview"]).strip("\n") for option in options]
        asked.append(
            Question(
                f"{call}-{place}" if group else call, text, tuple(labels),
                header=" ".join(clean(one["header"]).split())[:_HEADER],
                details=tuple(details) if any(details) else (),
                previews=tuple(previews) if any(previews) else (),
                many=one["multiSelect"] and bool(labels), group=group, of=len(given),
            )
        )  # fmt: skip
    return asked


def _said(question: Question, answer: str) -> str:
    """Return an answer for the model: what was chosen, and the person's own words apart from it."""
    made, words = picked(question, answer)
    if not answer:
        return "(left out: decide this one yourself, and say what you assumed)"
    chosen = "; ".join(made)
    if not words:
        return chosen
    return f"{chosen}. In their own words: {words}" if chosen else words


def _short(answer: str) -> str:
    lines = answer.splitlines()
    return ", ".join(lines)[:120] if lines else "left out"
