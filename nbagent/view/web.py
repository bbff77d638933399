"""Pages of the web that a run found or cites, as links: on every surface the same, and never an image of theirs.

Titles and addresses are data of others: only http and https become links. Read `found`, then `cited`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from nbagent.core.served import FOUND
from nbagent.view.text import escape, one_line, plain_output

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nbagent.core.messages import Block

SHOWN = 30
"""Pages of one call that are listed."""

LINK = 'target="_blank" rel="noopener noreferrer nofollow"'
_WEB = re.compile(r"https?://[^\s<>\"'`]+\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageFound:
    """One page: its title, its address ("" where that is not one of the web), and how old it is, in the server's words."""

    title: str
    url: str
    age: str = ""

    @property
    def host(self) -> str:
        """The name of its server."""
        try:
            return urlsplit(self.url).hostname or ""
        except ValueError:
            return ""


def found(content: Iterable[Block]) -> list[PageFound]:
    """Return the pages in a call's result."""
    return [page(block) for block in content if block.get("type") in FOUND]


def page(block: Block) -> PageFound:
    """Return the page that a block or a citation names."""
    url = str(block.get("url") or "").strip()
    title = plain_output(one_line(str(block.get("title") or url), 200))
    address = quote(url, safe=_PLAIN) if _WEB.match(url) else ""  # a bidi or control character may not reach a screen
    return PageFound(title, address, plain_output(one_line(str(block.get("age") or ""), 60)))


def pages_html(pages: Sequence[PageFound]) -> str:
    """Return pages as a list of links, "" where there are none."""
    if not pages:
        return ""
    rows = "".join(f"<li>{_link_html(one)}</li>" for one in pages[:SHOWN])
    more = f"<li>… {len(pages) - SHOWN} more</li>" if len(pages) > SHOWN else ""
    return f'<ul class="nbagent-pages">{rows}{more}</ul>'


def _link_html(one: PageFound) -> str:
    about = " · ".join(part for part in (one.host, one.age) if part)
    small = f' <span class="nbagent-short">{escape(about)}</span>' if about else ""
    title = escape(one.title or one.url)
    return f'<a href="{escape(one.url)}" {LINK}>{title}</a>{small}' if one.url else f"{title}{small}"


def pages_lines(pages: Sequence[PageFound]) -> list[str]:
    """Return pages as plain lines: title and address."""
    lines = [f"{one.title} <{one.url}>" if one.url and one.title != one.url else one.title for one in pages[:SHOWN]]
    return [*lines, *([f"… {len(pages) - SHOWN} more"] if len(pages) > SHOWN else [])]


def cited(content: Sequence[Block]) -> str:
    """Return the text of neighbouring text blocks as one, in Markdown, each citation a link to its page, in brackets.

    A server cuts a text where a citation begins and ends: the pieces are one sentence.
    """
    parts: list[str] = []
    numbers: dict[str, int] = {}
    for block in content:
        parts.append(str(block.get("text") or ""))
        here = [page(one) for one in _citations(block)]
        urls = dict.fromkeys(one.url for one in here if one.url)
        for url in urls:
            number = numbers.setdefault(url, len(numbers) + 1)
            parts.append(f" [\\[{number}\\]](<{url}>)")
    return "".join(parts)


_PLAIN = "!#$%&'()*+,/:;=?@[]~-._"


def has_citations(block: Block) -> bool:
    """Whether a text block cites something."""
    return bool(_citations(block))


def _citations(block: Block) -> list[Any]:
    given = block.get("citations")
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
