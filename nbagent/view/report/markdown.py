"""A report as Markdown with the figures as files beside it: harmless text, whatever program draws it.

Code and what it printed stand in fences that nothing in them ends; all else goes through harmless.py. Read `markdown_of`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from nbagent.core.shown import visible_plain
from nbagent.view.report.harmless import fenced, from_html, harmless, literal
from nbagent.view.report.model import (
    AnswerPart,
    CodePart,
    Part,
    Picture,
    Prose,
    Ran,
    Report,
    Shown,
    Table,
    TextPart,
    Words,
)
from nbagent.view.text import plain_output

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINKS = re.compile(r"#nbagent-cell-([\w-]+?)(?:\.\d+)?(?=[)\s])", re.ASCII)
"""How a text leads to a cell of the notebook; in the file it leads to the cell's place there."""
_ENDINGS = {"image/png": "png", "image/jpeg": "jpeg", "image/svg+xml": "svg", "image/gif": "gif", "image/webp": "webp"}
_ACTS = re.compile(
    r"<\s*(?:script|foreignObject|iframe|a|animate\w*|set)\b|\son\w+\s*=|<!ENTITY|@import|url\(\s*+[\"']?+(?!#)"
    r"|(?:href|src)\s*+=\s*+[\"']?+(?!#|data:image/(?:png|jpeg))",
    re.IGNORECASE,
)
"""What a drawing may do beyond drawing: opened by itself, a file of it would do it."""
_LEFT_OUT = "A drawing (SVG) that loads or runs something was left out."


def markdown_of(report: Report, name: str) -> tuple[str, dict[str, bytes]]:
    """Return the Markdown of a report and its figures by their paths beside the file `name` (without its ending)."""
    figures = _Figures(f"{name}_files")
    pieces = [f"# {literal(report.title)}", "\n".join(f"- {literal(fact)}" for fact in report.facts)]
    if report.summary.strip():
        pieces += [harmless(report.summary.strip()), f"*{literal(report.checked)}*"]
    for part in report.parts:
        pieces += _part(part, figures, code=report.code)
    pieces += _appendix(report)
    text = _LINKS.sub(r"#cell-\1", "\n\n".join(filter(None, pieces)))
    return f"{text}\n", figures.files


class _Figures:
    """The figures so far, numbered in their order."""

    def __init__(self, folder: str) -> None:
        self.files: dict[str, bytes] = {}
        self._folder = folder

    def add(self, one: Picture) -> str:
        ending = _ENDINGS.get(one.mime, "")
        if not ending or (ending == "svg" and _ACTS.search(one.data.decode("utf-8", "replace"))):
            return f"*{_LEFT_OUT if ending else 'A picture of an unknown kind was left out.'}*"
        path = f"{self._folder}/figure-{len(self.files) + 1}.{ending}"
        self.files[path] = one.data
        note = f"\n\n*{literal(one.note)}*" if one.note else ""
        return f"![{literal(one.alt)}]({quote(path)}){note}"


def _part(part: Part, figures: _Figures, *, code: bool) -> Iterator[str]:
    anchor = f'<a id="cell-{part.cell}"></a>'
    match part:
        case TextPart():
            yield anchor
            yield harmless(part.text, pictures=not part.by)
        case AnswerPart():
            yield anchor
            yield "\n".join(f"> {line}" for line in harmless(part.prompt).split("\n"))
            yield harmless(part.text)
            yield f"*Answer of {literal(part.by)}*"
        case CodePart():
            shown = [_shown(one, figures) for one in part.shown]
            if code or shown:
                name = f"In[{part.number}]" if part.number is not None else "not run"
                yield f"{anchor}*{name}{f', by {literal(part.by)}' if part.by else ''}*"
                yield fenced(visible_plain(part.source), "python") if code else ""
                yield from shown


def _shown(one: Shown, figures: _Figures) -> str:
    match one:
        case Picture():
            return figures.add(one)
        case Table():
            return from_html(one.html)
        case Prose():
            return harmless(one.text)
        case Words(kind="note"):
            return f"*{literal(one.text)}*"
        case Words():
            return fenced(plain_output(one.text).strip("\n"))


def _appendix(report: Report) -> list[str]:
    head = "| Cell | What | By | When | Took | |\n|---|---|---|---|---|---|"
    here = {part.cell for part in report.parts}
    rows = "\n".join(_row(one, linked=one.cell in here) for one in report.ran) or "| – | Nothing was run. | | | | |"
    return ["## What was run", *map(literal, report.notes), f"{head}\n{rows}"]


def _row(one: Ran, *, linked: bool) -> str:
    name = f"In[{one.number}]" if one.number is not None else "–"
    name = f"[{name}](#cell-{one.cell})" if linked and one.number is not None else name
    what = visible_plain(" ".join(one.what.split()), spaces=False).replace("`", "'").replace("|", "\\|")
    return f"| {name} | `{what}` | {' | '.join(map(literal, (one.by, one.when, one.took, one.note)))} |"
