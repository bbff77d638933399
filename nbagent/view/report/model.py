"""What a report says, before it is drawn: texts, code with its outputs, answers of agents, and what was run by whom.

Frozen values; everything in them is text of others and is made harmless where it is drawn. Read `Report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: `data` are its bytes as `mime`, `alt` what it shows in words, `note` what a reader should know of it."""

    data: bytes
    mime: str
    alt: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """Plain text that was printed or shown; `kind` error for what failed."""

    text: str
    kind: Literal["text", "error", "note"] = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """HTML that was made harmless already (`safehtml.py`), such as a table."""

    html: str


@dataclass(frozen=True, slots=True)
class Prose:
    """Markdown that an output shows."""

    text: str


Shown = Picture | Words | Table | Prose


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text cell: its Markdown, with links to cells where its numbers stand. `by`: whose it is ("" the person's)."""

    cell: str
    text: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class CodePart:
    """A code cell with what it shows. `number` is its In[n] (None: it has not run), `stale`: it was edited since it ran."""

    cell: str
    number: int | None
    source: str
    shown: Sequence[Shown]
    by: str = ""
    stale: bool = False


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """What an agent answered at the end of a run, and what it was asked."""

    cell: str
    prompt: str
    text: str
    by: str


Part = TextPart | CodePart | AnswerPart


@dataclass(frozen=True, slots=True)
class Ran:
    """One row of what was run, in its order: `number` is In[n], `what` the first line, `when` and `took` in words ("" unknown)."""

    cell: str
    number: int | None
    what: str
    by: str
    when: str = ""
    took: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """One report. `facts` are short lines about it, `summary` Markdown ("" for none) with `checked` on its numbers.

    `code`: whether the code of the cells is shown.
    """

    title: str
    facts: Sequence[str]
    parts: Sequence[Part]
    ran: Sequence[Ran]
    summary: str = ""
    checked: str = ""
    code: bool = True
    notes: Sequence[str] = field(default_factory=tuple[str, ...])
