"""The tools for notes that outlive a session: keep one, read them again.

They must not know where notes lie or how they are written (`Notes`); keeping one is asked about as writing a file is.
Read `tools`.
"""

from __future__ import annotations

import asyncio
from typing import Literal, Protocol

from nbagent.core.errors import ToolError
from nbagent.core.messages import Json, clean, text_block
from nbagent.core.ports import Preview
from nbagent.core.tools import Call, Kind, Result, Tool, tool
from nbagent.tools.secrets import looks_secret

_LONGEST = 4_000


class Notes(Protocol):
    """Notes on a project; all methods raise `ToolError` with a sentence for the model."""

    def read(self, topic: str = "") -> str:
        """Return the notes on a topic, or the main list."""
        ...

    def after_adding(self, note: str, topic: str = "", replaces: str = "") -> tuple[str, str]:
        """Return the text of the notes as it is, and as it would be."""
        ...

    def add(self, note: str, topic: str = "", *, replaces: str = "", about: str = "", kind: str = "project") -> str:
        """Keep a note and return what was done."""
        ...


def tools(notes: Notes) -> list[Tool]:
    """Return remember and recall."""
    return [_remember(notes), _recall(notes)]


def _remember(notes: Notes) -> Tool:
    def preview(given: Json) -> Preview:
        try:
            old, new = notes.after_adding(given["note"], given["topic"], given["replaces"])
        except ToolError:
            return Preview("text", clean(given["note"]))  # the call itself says what is wrong
        return Preview("diff", new, old=old, language="markdown")

    @tool(
        kind=Kind.WRITE_FILE,
        subject=lambda given: given["topic"].strip() or "MEMORY",
        title=lambda given: (
            f"remember: {' '.join(given['note'].split())[:80]}" if given["note"].strip() else "forget a note"
        ),
        preview=preview,
    )
    async def remember(
        _call: Call,
        note: str,
        topic: str = "",
        replaces: str = "",
        about: str = "",
        kind: Literal["user", "feedback", "project", "reference"] = "project",
    ) -> Result:
        """Keep a short note for later sessions on this project, when it will be of use and can't be seen by looking.

        Such as: what an odd code or column means, which source is the right one, how the person wants things done, what
        they corrected you on. Not: what stands in the notebook or in files, results that will change, anything secret.

        Args:
            note: the note, one or two sentences; with `replaces` the new text, "" to remove it.
            topic: a short name for a group of notes, e.g. "data-sources"; without it the main list, which is always told.
            replaces: a text in those notes, exactly as it stands there, that the note takes the place of.
            about: for a new topic, what it is about, in a line.
            kind: for a new topic, what it speaks of: user (who they are), feedback (how to work), project, reference.
        """
        if len(note) > _LONGEST:
            raise ToolError(f"the note has {len(note):,} characters: keep it below {_LONGEST:,}")
        if looks_secret(note):
            raise ToolError("the note holds something that looks like a key or password: such things are never kept")
        said = await asyncio.to_thread(lambda: notes.add(note, topic, replaces=replaces, about=about, kind=kind))
        return Result((text_block(said),), said.partition(";")[0])

    return remember


def _recall(notes: Notes) -> Tool:
    @tool(title=lambda given: f"recall {given['topic'].strip() or 'all notes'}")
    async def recall(_call: Call, topic: str = "") -> Result:
        """Read the notes of earlier sessions: the main list, or those on a topic.

        Args:
            topic: the name of the topic; without it the main list.
        """
        text = await asyncio.to_thread(notes.read, topic)
        return Result((text_block(text),), f"{len(text.splitlines())} lines")

    return recall
