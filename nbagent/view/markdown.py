"""Model text (Markdown) as safe HTML, whole or as it streams.

Raw HTML is off, links go to http, https and mailto, and to cells of the notebook, only, images are never loaded: they become links. Link reference
definitions are off, so that a finished block never changes with what follows: that is what makes `MarkdownStream`
linear. Knows nothing of events or widgets. Read `MarkdownStream.feed`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt

from nbagent.view.code import LIVE, Paint, code_html
from nbagent.view.text import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

_CELL = re.compile(r"#nbagent-cell-[\w-]+(?:\.\d+)?", re.ASCII)
"""Leads to a cell of the notebook, and maybe to one of its lines: a jump, and no more."""
_SCHEME = re.compile(rf"(?i:https?://|mailto:)|{_CELL.pattern}\Z")
_LINK = 'target="_blank" rel="noopener noreferrer nofollow"'


def parser(paint: Paint = LIVE) -> MarkdownIt:
    """Return a Markdown parser and renderer whose output is safe to put into a page."""
    md = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("reference")
    md.validateLink = lambda url: bool(_SCHEME.match(url))  # pyright: ignore[reportAttributeAccessIssue]  (its API)

    def fence(_: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        del options, env
        info = tokens[idx].info.split()
        return code_html(tokens[idx].content.removesuffix("\n"), info[0] if info else "", paint) + "\n"

    for name, rule in (("fence", fence), ("code_block", fence), ("image", _image), ("link_open", _link_open)):
        md.add_render_rule(name, rule)
    for name in ("heading_open", "heading_close"):
        md.add_render_rule(name, _heading)
    return md


def to_html(text: str, paint: Paint = LIVE) -> str:
    """Return Markdown `text` as HTML."""
    return parser(paint).render(_lines(text))


def _heading(render: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
    """Headings of a reply are parts of a cell, so they start at h3. Small ones are bold: JupyterLab draws them as plain text."""
    del render, options, env
    level = min(int(tokens[idx].tag[1:]) + 2, 6)
    begin, end = ("<b>", "</b>") if level > 4 else ("", "")
    return f"<h{level}>{begin}" if tokens[idx].nesting == 1 else f"{end}</h{level}>\n"


def _link_open(render: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
    del render, options, env
    target = str(tokens[idx].attrs.get("href", ""))
    return f'<a href="{escape(target)}"{"" if _CELL.fullmatch(target) else f" {_LINK}"}>'


def _image(render: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
    del render, options, env
    label = escape(f"[image: {tokens[idx].content or 'no description'}]")
    depth = sum((t.type == "link_open") - (t.type == "link_close") for t in tokens[:idx])
    if depth:  # a link in a link is not HTML
        return label
    return f'<a href="{escape(str(tokens[idx].attrs.get("src", "")))}" {_LINK}>{label}</a>'


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


_PROSE = re.compile(r"[^\W\d_]+[ ,]")
"""The first word of a line of prose."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a piece of text changed: `html` of blocks that are finished now; the open tail was appended to by `added`.

    Where `html` is not empty, the tail is `tail` from now on and `added` says nothing.
    """

    html: str = ""
    tail: str = ""
    added: str = ""


class MarkdownStream:
    """Renders Markdown as it comes: each block once, when the next one has begun; the rest is a raw tail."""

    def __init__(self, paint: Paint = LIVE) -> None:
        self._md = parser(paint)
        self._env: dict[str, Any] = {}
        self._tail = ""
        self._held = ""
        self._tried = 0
        self.html = ""
        """All blocks finished so far."""

    @property
    def tail(self) -> str:
        """The text after the finished blocks, as it came."""
        return self._tail

    def feed(self, text: str) -> Step:
        """Take more text and say what changed."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        text = _lines(text.removesuffix("\r"))
        self._tail += text
        end = self._tail.rfind("\n") + 1
        if begun := _PROSE.match(self._tail, end):  # an open line that can't become a mark of the block before it
            end = begun.end()
        # Parsing again only after the tail has grown by an eighth keeps one huge block (a long fence) linear.
        if end <= self._tried or end - self._tried < self._tried // 8:
            return Step(added=text)
        self._tried = end
        tokens = self._md.parse(self._tail[:end], self._env)
        starts = [i for i, t in enumerate(tokens) if t.level == 0 and t.nesting >= 0 and t.map]
        first = tokens[starts[-1]].map if len(starts) > 1 else None
        if not first:
            return Step(added=text)
        html = self._md.renderer.render(tokens[: starts[-1]], self._md.options, self._env)
        self.html += html
        self._tail = "\n".join(self._tail.split("\n")[first[0] :])
        self._tried = 0
        return Step(html=html, tail=self._tail)

    def close(self) -> str:
        """Return the HTML of the tail and end the stream."""
        html = self._md.render(self._tail + _lines(self._held), self._env)
        self.html += html
        self._tail = self._held = ""
        return html
