"""Markdown of a report's texts as HTML: headings with names to link to, formulas as they were written, links to cells.

Raw HTML is off and no picture is loaded from the network: one that is given as data is shown, others become links. Read
`Prosaic.html`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt

from nbagent.view.code import RECORD, code_html
from nbagent.view.text import escape

if TYPE_CHECKING:
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

_CELL = re.compile(r"#nbagent-cell-([\w-]+?)(?:\.\d+)?", re.ASCII)
_WEB = re.compile(r"(?:https?://|mailto:|#)", re.IGNORECASE)
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=\s]+", re.IGNORECASE)
_SIMPLE = re.compile(
    r"</?(?:br|b|i|em|strong|u|sub|sup|small|mark|kbd|hr|center|font|p|div|span)\b[^>\n]{0,200}/?>", re.IGNORECASE
)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_NAME = re.compile(r"[^\w]+")


class Prosaic:
    """Renders texts one after the other; `headings` are those so far, as (name in the page, level, words)."""

    def __init__(self) -> None:
        self.headings: list[tuple[str, int, str]] = []
        self._names: set[str] = {"ran", "report"}
        self._deeper = 0
        self._md = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        self._md.validateLink = _may_link  # pyright: ignore[reportAttributeAccessIssue]  (its API)
        rules = (
            ("fence", _fence),
            ("code_block", _fence),
            ("image", _image),
            ("link_open", _link),
            ("table_open", _table),
            ("table_close", _table_end),
        )
        for name, rule in rules:
            self._md.add_render_rule(name, rule)

    def html(self, text: str, *, deeper: int = 0) -> str:
        """Return Markdown `text` as HTML; headings stand `deeper` levels below what they say, and h1 is the page's own.

        Tags that only say how a text looks are left out, as no raw HTML is used.
        """
        tokens = self._md.parse(without_looks(text), {})
        for place, token in enumerate(tokens):
            if token.type in {"heading_open", "heading_close"}:
                level = min(max(2, int(token.tag[1:]) + deeper), 6)
                token.tag = f"h{level}"
                if token.type == "heading_open" and deeper < 2:
                    words = _words(tokens[place + 1])
                    name = self._name(words)
                    token.attrSet("id", name)
                    self.headings.append((name, level, words))
        return self._md.renderer.render(tokens, self._md.options, {})

    def _name(self, words: str) -> str:
        base = _NAME.sub("-", words.lower()).strip("-")[:60] or "part"
        name, number = base, 2
        while name in self._names or name.startswith(("cell-", "figure-")):
            name, number = (
                f"{base}-{number}" if not base.startswith(("cell-", "figure-")) else f"h-{base}-{number}",
                number + 1,
            )
        self._names.add(name)
        return name


def without_looks(text: str) -> str:
    """Return Markdown without the tags that only say how a text looks; `<br>` becomes the end of a line."""
    return _SIMPLE.sub(lambda found: "  \n" if _BREAK.match(found[0]) else "", text)


def _words(inline: Token) -> str:
    return "".join(child.content for child in inline.children or () if child.type in {"text", "code_inline"}).strip()


def _may_link(url: str) -> bool:
    return bool(_WEB.match(url) or _PICTURE.fullmatch(url))


def _fence(_: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
    del options, env
    info = tokens[idx].info.split()
    return code_html(tokens[idx].content.removesuffix("\n"), info[0] if info else "", RECORD) + "\n"


def _link(_: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
    del options, env
    target = str(tokens[idx].attrs.get("href", ""))
    if (cell := _CELL.fullmatch(target)) is not None:
        return f'<a class="from" href="#cell-{escape(cell[1])}">'
    if target.startswith("#"):
        return f'<a href="{escape(target)}">'
    return f'<a href="{escape(target)}" rel="noopener noreferrer nofollow">'


def _image(_: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
    del options, env
    target, alt = str(tokens[idx].attrs.get("src", "")), tokens[idx].content
    if _PICTURE.fullmatch(target):
        return f'<img src="{escape(target)}" alt="{escape(alt)}">'
    label = escape(f"[image: {alt or 'no description'}]")
    inside = sum((t.type == "link_open") - (t.type == "link_close") for t in tokens[:idx]) > 0
    return (
        label if inside or not target else f'<a href="{escape(target)}" rel="noopener noreferrer nofollow">{label}</a>'
    )


def _table(*_: Any) -> str:
    return '<div class="scroll"><table>\n'


def _table_end(*_: Any) -> str:
    return "</table></div>\n"
