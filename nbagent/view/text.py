"""Text of others made harmless and readable: escape codes removed, hidden characters shown, lengths cut, amounts worded.

Everything here is data for people; it knows nothing of events. Read `visible` first.
"""

from __future__ import annotations

import re
import unicodedata
from html import escape as _escape

from nbagent.core.shown import UNUSUAL, code_of, is_hidden, visible_plain

_TICKED = re.compile(r"`([^`<>\n]+)`")
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]"
)


def escape(text: str) -> str:
    """Return `text` as HTML text, safe in element content and in quoted attributes."""
    return _escape(text, quote=True)


def without_ansi(text: str) -> str:
    """Return `text` without terminal escape sequences."""
    return _ANSI.sub("", text) if "\x1b" in text or "\x9b" in text else text


def code_marked(html: str) -> str:
    """Return HTML of a sentence with what stands in backticks as code."""
    return _TICKED.sub(r"<code>\1</code>", html)


def visible(text: str, mark: str, *, spaces: bool = True) -> str:
    """Return `text` as HTML with each hidden character shown as its code; `mark` is the attribute of those spans."""
    if not UNUSUAL.search(text):
        return escape(text)

    def show(match: re.Match[str]) -> str:
        char = match[0]
        if not is_hidden(char, spaces=spaces):
            return char
        name = escape(unicodedata.name(char, "control character"))
        return f'<span {mark} title="{name}">{code_of(char)}</span>'

    return UNUSUAL.sub(show, escape(text))


def plain_output(text: str) -> str:
    """Return output of a tool as plain text for a terminal or a notebook: no escape codes, hidden characters shown."""
    return visible_plain(without_ansi(text), spaces=False)


def clip(text: str, limit: int) -> str:
    """Return `text` cut to about `limit` characters, head and tail kept, with a line that says what is missing."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 2 // 3], text[-(limit // 3) :] if limit >= 3 else ""
    return f"{head}\n… {len(text) - len(head) - len(tail):,} characters left out …\n{tail}"


def clip_end(text: str, limit: int) -> str:
    """Return the last `limit` characters of `text` (of an error, the end says what it was) under a line that says so."""
    return text if len(text) <= limit else f"… {len(text) - limit:,} characters left out …\n{text[-limit:]}"


def one_line(text: str, limit: int = 160) -> str:
    """Return the text on one line, cut at the end to `limit` characters."""
    flat = " ".join(text[: limit * 4].split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def few_lines(text: str, limit: int = 600, lines: int = 4) -> str:
    """Return the first lines of a message for people, each on one line of `limit` characters, hidden characters shown."""
    return "\n".join(one_line(plain_output(line), limit) for line in text.strip().split("\n")[:lines])


def count(number: int, noun: str) -> str:
    """Return "1 line" or "3 lines"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """Return a duration in seconds for people: <0.1 s, 0.4 s, 12 s, 3 min 05 s, 1 h 02 min."""
    if seconds < 0.05:
        return "<0.1 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def tokens(number: int) -> str:
    """Return a number of tokens for people: 812, 4.2k, 1.3M."""
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f}k" if number < 999_950 else f"{number / 1_000_000:.1f}M"


def money(cost: float) -> str:
    """Return US dollars; written without a dollar sign, which notebooks would read as the start of a formula."""
    if cost == 0:
        return "0 USD"
    return f"{max(cost, 0.0001):.4f} USD" if cost < 0.01 else f"{cost:.2f} USD"
