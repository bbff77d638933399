"""HTML of a cell's output made harmless for a page that others open: tables and words stay, whatever acts or loads goes.

nbconvert's own sanitiser does it (bleach), with a list of our own that is shorter. Read `cleaner`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from nbagent.core.errors import ConfigError

NEEDS = "A report needs nbconvert, which is not installed here: pip install nbconvert (it comes with jupyterlab)."
LIMIT = 400_000
"""Characters of one output's HTML that are shown."""

TAGS, ROWS, DEPTH = 12_000, 1_500, 150
"""Tags, rows of tables and tags in one another of one output that are shown: the sanitiser's time grows with their square."""

_TAGS = [
    *("table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption", "colgroup", "col"),
    *(
        "p",
        "div",
        "span",
        "br",
        "hr",
        "b",
        "strong",
        "i",
        "em",
        "u",
        "sub",
        "sup",
        "small",
        "code",
        "pre",
        "blockquote",
    ),
    *("ul", "ol", "li", "dl", "dt", "dd", "h3", "h4", "h5", "h6"),
]
_ATTRIBUTES = {"th": ["colspan", "rowspan", "scope"], "td": ["colspan", "rowspan"], "*": ["style"]}
_STYLES = ["text-align", "font-weight", "font-style", "color", "background-color", "width"]
_DROPPED = re.compile(
    r"<(script|style|template|noscript|iframe|object|svg|head|title|button|select)\b.*?(?:</\1\s*>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_ACTS = re.compile(r"<(?:script|iframe|object|embed|video|audio|canvas|svg)\b", re.IGNORECASE)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[a-z][a-z0-9]*)?", re.IGNORECASE)
_ALONE = frozenset({"br", "hr", "img", "col", "input", "meta", "link", "wbr"})
_WORDS = re.compile(r"<[^>]*>")


def cleaner() -> Callable[[str], str]:
    """Return what makes HTML harmless; raises `ConfigError` where nbconvert is not there."""
    try:
        from nbconvert.preprocessors.sanitize import SanitizeHTML
    except ImportError:
        raise ConfigError(NEEDS) from None
    made = SanitizeHTML(tags=_TAGS, attributes=_ATTRIBUTES, styles=_STYLES, strip=True)

    def clean(html: str) -> str:
        text = html[:LIMIT]
        while (less := _DROPPED.sub("", text)) != text:  # what falls together from two halves goes, too
            text = less
        return str(made.sanitize_html_tags(bounded(text)))

    return clean


def bounded(html: str) -> str:
    """Return as much of HTML as is made harmless in a few seconds."""
    rows = depth = 0
    for number, tag in enumerate(_TAG.finditer(html)):
        name = (tag["name"] or "").lower()
        rows += name == "tr" and not tag["end"]
        depth += 0 if not name or name in _ALONE else -1 if tag["end"] else 1
        if number >= TAGS or rows > ROWS or depth > DEPTH:
            return html[: tag.start()]
    return html


def acts(html: str) -> bool:
    """Whether HTML would do or load something: then it is more than a table, and harmless it would say nothing."""
    return bool(_ACTS.search(html))


def words_of(html: str) -> str:
    """Return the words of HTML, for looking numbers up."""
    return _WORDS.sub(" ", _DROPPED.sub(" ", html[:LIMIT]))
