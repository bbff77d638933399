"""Code and diffs as HTML, coloured by Pygments, with hidden characters shown. The text stays exactly what will run.

`Paint` decides whether colours are classes (live view, its stylesheet knows the theme) or inline styles (the static
record, where no stylesheet survives). Read `code_html` and `diff_html`.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from nbagent.view.text import count, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pygments.lexer import Lexer

COLOUR_LIMIT = 60_000
"""Characters above which code is shown without colours: the lexers are slow."""

DIFF_LIMIT = 3_000
"""Lines of either side above which no diff is computed: its cost grows with their product."""

_LEXERS = {
    "python": "python", "py": "python", "python3": "python", "ipython": "python", "pycon": "pycon", "sh": "bash",
    "bash": "bash", "shell": "bash", "zsh": "bash", "console": "console", "sql": "sql", "json": "json", "yaml": "yaml",
    "yml": "yaml", "toml": "toml", "ini": "ini", "html": "html", "xml": "xml", "css": "css", "js": "javascript",
    "javascript": "javascript", "ts": "typescript", "typescript": "typescript", "r": "r", "julia": "julia", "c": "c",
    "cpp": "cpp", "c++": "cpp", "rust": "rust", "go": "go", "java": "java", "markdown": "markdown", "md": "markdown",
    "latex": "tex", "tex": "tex", "diff": "diff", "dockerfile": "docker", "makefile": "make",
}  # fmt: skip

_INLINE = {
    "k": "font-weight:600", "c": "font-style:italic;opacity:.75", "s": "color:#1a7f4b", "n": "color:#b35c00",
    "f": "color:#2f6fd0", "b": "color:#2f6fd0", "d": "color:#8a5cd0", "o": "",
    "ctl": "color:#d1242f;font-weight:600", "ins": "background:rgba(46,160,67,.15)",
    "del": "background:rgba(248,81,73,.15)", "ins-w": "background:rgba(46,160,67,.4)",
    "del-w": "background:rgba(248,81,73,.4)", "skip": "opacity:.7",
    "pre": "white-space:pre-wrap;overflow-wrap:anywhere;margin:.3em 0",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Paint:
    """How a span gets its look: by class, or by `styles` if given."""

    styles: Mapping[str, str] | None = None

    def attr(self, name: str) -> str:
        """Return the HTML attribute for look `name`; may be empty."""
        if self.styles is None:
            return f'class="nb-{name}"'
        style = self.styles.get(name, "")
        return f'style="{style}"' if style else ""

    def span(self, name: str, inner: str) -> str:
        """Return `inner` (HTML) in a span of look `name`."""
        attr = self.attr(name)
        return f"<span {attr}>{inner}</span>" if attr else inner


LIVE = Paint()
RECORD = Paint(_INLINE)


def code_html(code: str, language: str, paint: Paint = LIVE) -> str:
    """Return `code` as a `<pre>`; without its tags and with shown codes undone, the text is `code` itself."""
    return f"<pre {paint.attr('pre')}><code>{_coloured(code, language, paint)}</code></pre>"


def plain_html(text: str, paint: Paint = LIVE, *, spaces: bool = False) -> str:
    """Return plain text as a `<pre>`, hidden characters shown (unusual spaces only if `spaces`)."""
    return f"<pre {paint.attr('pre')}>{visible(text, paint.attr('ctl'), spaces=spaces)}</pre>"


def _coloured(code: str, language: str, paint: Paint) -> str:
    mark = paint.attr("ctl")
    lexer = _lexer(language) if len(code) <= COLOUR_LIMIT else None
    if lexer is None:
        return visible(code, mark)
    parts: list[str] = []
    name, run = "", ""
    for _, kind, value in lexer.get_tokens_unprocessed(code):
        look = _look(kind)
        if look != name:
            parts.append(_piece(name, run, paint, mark))
            name, run = look, ""
        run += value
    parts.append(_piece(name, run, paint, mark))
    return "".join(parts)


def _piece(name: str, run: str, paint: Paint, mark: str) -> str:
    shown = visible(run, mark)
    return paint.span(name, shown) if name and run.strip() else shown


def _lexer(language: str) -> Lexer | None:
    alias = _LEXERS.get(language.lower())
    if alias is None:
        return None
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415  (only when there is code to colour)

    return get_lexer_by_name(alias)


def _look(kind: object) -> str:
    name = str(kind).removeprefix("Token.")
    for prefix, look in _LOOKS:
        if name.startswith(prefix):
            return look
    return ""


_LOOKS = (
    ("Keyword", "k"), ("Operator.Word", "k"), ("Literal.String", "s"), ("Comment", "c"), ("Literal.Number", "n"),
    ("Name.Function", "f"), ("Name.Class", "f"), ("Name.Attribute", "f"), ("Name.Builtin", "b"),
    ("Name.Decorator", "d"), ("Name.Tag", "k"), ("Operator", "o"), ("Generic.Inserted", "ins"),
    ("Generic.Deleted", "del"), ("Generic.Heading", "k"),
)  # fmt: skip


# ── diffs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def diff_html(old: str, new: str, paint: Paint = LIVE, context: int = 3) -> str:
    """Return a line diff as a `<pre>`: signs + and -, changed words marked, long equal parts left out with a count.

    Texts too long to compare are shown as the whole new text under a line that says so.
    """
    before, after = old.split("\n"), new.split("\n")
    if max(len(before), len(after)) > DIFF_LIMIT:
        head = paint.span("skip", f"too long to compare: this is the whole new text, {count(len(after), 'line')}")
        return f"<pre {paint.attr('pre')}>{head}\n{visible(new, paint.attr('ctl'))}</pre>"
    rows = list(_rows(before, after, paint, context))
    return f"<pre {paint.attr('pre')}>{''.join(rows) or paint.span('skip', 'no change')}</pre>"


def _rows(before: list[str], after: list[str], paint: Paint, context: int) -> Iterator[str]:
    mark = paint.attr("ctl")
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=max(len(before), len(after)) > 500)
    shown = 0
    for group in matcher.get_grouped_opcodes(context):
        start = group[0][1]
        if start > shown:
            yield _skip(start - shown, paint)
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (_row(" ", visible(line, mark), "", paint) for line in before[i1:i2])
            elif tag == "replace" and i2 - i1 == j2 - j1:
                yield from _changed(before[i1:i2], after[j1:j2], paint)
            else:
                yield from (_row("-", visible(line, mark), "del", paint) for line in before[i1:i2])
                yield from (_row("+", visible(line, mark), "ins", paint) for line in after[j1:j2])
        shown = group[-1][2]
    if 0 < shown < len(before):
        yield _skip(len(before) - shown, paint)


def _skip(number: int, paint: Paint) -> str:
    return paint.span("skip", f"… {count(number, 'unchanged line')}") + "\n"


def _row(sign: str, inner: str, name: str, paint: Paint) -> str:
    line = f"{sign} {inner}\n"
    return paint.span(name, line) if name else line


def _changed(before: list[str], after: list[str], paint: Paint) -> Iterator[str]:
    pairs = [_words(a, b, paint) for a, b in zip(before, after, strict=True)]
    yield from (_row("-", left, "del", paint) for left, _ in pairs)
    yield from (_row("+", right, "ins", paint) for _, right in pairs)


_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)


def _words(a: str, b: str, paint: Paint) -> tuple[str, str]:
    mark = paint.attr("ctl")
    if len(a) + len(b) > 1_000:
        return visible(a, mark), visible(b, mark)
    left, right = _WORD.findall(a), _WORD.findall(b)
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < 0.4:  # two different lines: marking nearly all words would only be noise
        return visible(a, mark), visible(b, mark)
    out: tuple[list[str], list[str]] = ([], [])
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        for side, words, name in ((0, islice(left, i1, i2), "del-w"), (1, islice(right, j1, j2), "ins-w")):
            text = visible("".join(words), mark)
            out[side].append(text if tag == "equal" or not text else paint.span(name, text))
    return "".join(out[0]), "".join(out[1])
