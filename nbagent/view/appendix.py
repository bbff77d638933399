"""What stands below the record of a run for the person to act on: proposed cells to copy, calls that were refused.

Pure: texts in, a MIME bundle or plain text out. Knows nothing of who wrote them. Read `appended`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nbagent.core.shown import visible_plain
from nbagent.view.code import RECORD, code_html
from nbagent.view.text import code_marked, escape

_RULE = "─" * 12


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to act on: a line that says what, and the text that goes with it ("" if none), as code of `language`."""

    title: str
    body: str = ""
    language: str = "python"


def appended(bundle: Mapping[str, str], notes: Sequence[Note]) -> dict[str, str]:
    """Return the record `bundle` (text/html, text/markdown, text/plain) with `notes` below."""
    if not notes:
        return dict(bundle)
    html = "".join(
        f"<p>{code_marked(escape(_line(note)))}</p>{code_html(note.body, note.language, RECORD) if note.body else ''}"
        for note in notes
    )
    markdown = "\n\n".join(f"{_line(note)}{_fenced(note)}" for note in notes)
    more = {
        "text/html": f'<div style="padding-left:.5em">{html}</div>',
        "text/markdown": f"\n\n{markdown}\n",
        "text/plain": f"\n\n{plain(notes)}",
    }
    return {kind: text.rstrip() + more[kind] if kind in more else text for kind, text in bundle.items()}


def plain(notes: Sequence[Note]) -> str:
    """Return `notes` as plain text; what is to be copied stands at the left margin, between two rules."""
    return "\n".join(
        f"{_line(note)}\n{_RULE}\n{visible_plain(note.body).rstrip()}\n{_RULE}" if note.body else _line(note)
        for note in notes
    )


def _line(note: Note) -> str:
    return visible_plain(note.title)


def _fenced(note: Note) -> str:
    if not note.body:
        return ""
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", note.body)), default=2)
    fence = "`" * (longest + 1)
    return f"\n\n{fence}{note.language}\n{visible_plain(note.body).rstrip()}\n{fence}"
