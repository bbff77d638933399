"""Code as HTML, coloured by Pygments, with hidden characters shown. The text stays exactly what will run.

`Paint` decides whether colours are classes (live view, its stylesheet knows the theme) or inline styles (the static
record, where no stylesheet survives). Read `code_html`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbagent.view.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pygments.lexer import Lexer

COLOUR_LIMIT = 60_000
"""Characters above which code is shown without colours: the lexers are slow."""

_LEXERS = {
    "python": "python", "py": "python", "python3": "python", "ipython": "python", "pycon": "pycon", "sh": "bash",
    "bash": "bash", "shell": "bash", "zsh": "bash", "console": "console", "sql": "sql", "json": "json", "yaml": "yaml",
    "yml": "yaml", "toml": "toml", "ini": "ini", "html": "html", "xml": "xml", "css": "css", "js": "javascript",
    "javascript": "javascript", "ts": "typescript", "typescript": "typescript", "r": "r", "julia": "julia", "c": "c",
    "cpp": "cpp", "c++": "cpp", "rust": "rust", "go": "go", "java": "java", "markdown": "markdown", "md": "markdown",
    "latex": "tex", "tex": "tex", "diff": "diff", "dockerfile": "docker", "makefile": "make",
}  # fmt: skip


def _mixed(colour: str) -> str:
    """A colour that can be read on a light and on a dark page: it leans to that of the page's text."""
    return f"color:color-mix(in srgb,{colour} 40%,currentcolor)"


_INLINE = {
    "k": "font-weight:600", "c": "font-style:italic;opacity:.75", "s": _mixed("#1a7f4b"), "n": _mixed("#b35c00"),
    "f": _mixed("#2f6fd0"), "b": _mixed("#2f6fd0"), "d": _mixed("#8a5cd0"), "o": "",
    "ctl": f"{_mixed('#d1242f')};font-weight:600", "ins": "background:rgba(46,160,67,.15)",
    "del": "background:rgba(248,81,73,.15)", "ins-w": "background:rgba(46,160,67,.25)",
    "del-w": "background:rgba(248,81,73,.25)", "skip": "opacity:.75", "no": "opacity:.75",
    "pre": "white-space:pre-wrap;overflow-wrap:anywhere;margin:.3em 0",
    "rows": "white-space:pre-wrap;overflow-wrap:anywhere;margin:0",
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
    return "".join(piece_html(look, text, paint) for look, text in pieces(code, language))


def piece_html(look: str, text: str, paint: Paint) -> str:
    """Return a piece of code in its colour, hidden characters shown."""
    shown = visible(text, paint.attr("ctl"))
    return paint.span(look, shown) if look and text.strip() else shown


def pieces(code: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield `code` in pieces, each with the name of its look; without a lexer, or where it is long, in one of none."""
    lexer = _lexer(language) if len(code) <= COLOUR_LIMIT else None
    if lexer is None:
        yield "", code
        return
    name, run = "", ""
    for _, kind, value in lexer.get_tokens_unprocessed(code):
        look = _look(kind)
        if look != name:
            if run:
                yield name, run
            name, run = look, ""
        run += value
    yield name, run


def coloured_lines(code: str, language: str) -> list[list[tuple[str, str]]]:
    """Return the pieces of each line of `code`."""
    lines: list[list[tuple[str, str]]] = [[]]
    for look, text in pieces(code, language):
        first, *more = text.split("\n")
        lines[-1].append((look, first))
        lines += [[(look, line)] for line in more]
    return lines


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
