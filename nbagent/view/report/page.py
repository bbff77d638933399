"""A report as one HTML page: no script, nothing from the network, light and dark, narrow and printed.

All text is escaped or comes from renderers that escape; the page forbids itself scripts and connections besides (its
Content-Security-Policy). Must not know of notebooks. Read `html_of`.
"""

from __future__ import annotations

import base64
from pathlib import Path

from nbagent.core.shown import visible_plain
from nbagent.view.code import RECORD, code_html, plain_html
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
from nbagent.view.report.prose import Prosaic
from nbagent.view.text import clip, count, escape, without_ansi

OUTPUT_LIMIT = 20_000
"""Characters of one printed output."""
CODE_LIMIT = 40_000
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"})
_CSP = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = Path(__file__).parent / "page.css"


def html_of(report: Report, *, style: str = "") -> str:
    """Return the page. `style` stands in the place of our stylesheet."""
    return _Page(report).html(style or _STYLE.read_text(encoding="utf-8"))


class _Page:
    """Draws one report: figures and headings are counted as they come."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._figures = 0
        self._prose = Prosaic()

    def html(self, style: str) -> str:
        report = self._report
        summary = self._summary()
        body = "\n".join(self._part(part) for part in report.parts)
        appendix = self._appendix()
        title = escape(visible_plain(report.title, spaces=False))
        facts = "".join(f"<li>{escape(visible_plain(fact, spaces=False))}</li>" for fact in report.facts)
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{_CSP}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="generator" content="nbagent">\n'
            f'<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
            f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
            f'<a class="skip" href="#report">Skip to the report</a>\n<header>\n<h1>{title}</h1>\n<ul class="facts">{facts}</ul>\n</header>\n'
            f'{self._contents()}<main id="report">\n{summary}{body}\n{appendix}</main>\n</body>\n</html>\n'
        )

    def _summary(self) -> str:
        report = self._report
        if not report.summary.strip():
            return ""
        checked = f'<p class="checked">{escape(report.checked)}</p>' if report.checked else ""
        return (
            f'<section class="summary" aria-label="Summary">\n{self._prose.html(report.summary)}{checked}</section>\n'
        )

    def _contents(self) -> str:
        headings = [*self._prose.headings, ("ran", 2, "What was run")]
        if len(headings) < 3:
            return ""
        top = min(level for _, level, _ in headings)
        items = "".join(
            f'<li class="l{min(level - top, 2)}"><a href="#{escape(name)}">{escape(text)}</a></li>'
            for name, level, text in headings
            if level - top <= 2
        )
        return f'<nav aria-label="Contents">\n<h2>Contents</h2>\n<ul>{items}</ul>\n</nav>\n'

    # ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _part(self, part: Part) -> str:
        match part:
            case TextPart():
                return f'<div class="prose" id="cell-{escape(part.cell)}">{self._prose.html(part.text)}</div>'
            case AnswerPart():
                asked = escape(visible_plain(part.prompt, spaces=False)).replace("\n", "<br>")
                return (
                    f'<section class="answer" id="cell-{escape(part.cell)}">\n<blockquote>{asked}</blockquote>\n'
                    f'{self._prose.html(part.text, deeper=2)}<p class="by">Answer of {escape(part.by)}</p>\n</section>'
                )
            case CodePart():
                return self._code(part)

    def _code(self, part: CodePart) -> str:
        label = f"In[{part.number}]" if part.number is not None else "not run"
        code = ""
        if self._report.code and part.source.strip():
            lines = count(len(part.source.strip().split("\n")), "line")
            by = f", by {escape(part.by)}" if part.by else ""
            inner = code_html(clip(part.source, CODE_LIMIT), "python", RECORD)
            code = f"<details><summary>{label}: code, {lines}{by}</summary>{inner}</details>"
        stale = '<p class="note">Shown as it was before the code was last edited.</p>' if part.stale else ""
        shown = "".join(self._shown(one, part, label) for one in part.shown)
        if not code and not shown:
            return f'<span id="cell-{escape(part.cell)}"></span>'
        return (
            f'<section class="cell" id="cell-{escape(part.cell)}" aria-label="{label}">{code}{stale}{shown}</section>'
        )

    def _shown(self, one: Shown, part: CodePart, label: str) -> str:
        match one:
            case Picture() if one.mime in IMAGES:
                self._figures += 1
                data = base64.b64encode(one.data).decode("ascii")
                note = f". {escape(one.note)}" if one.note else ""
                alt = escape(visible_plain(one.alt, spaces=False))
                return (
                    f'<figure id="figure-{self._figures}"><img src="data:{one.mime};base64,{data}" alt="{alt}">'
                    f'<figcaption>Figure {self._figures}. {alt} <a class="from" href="#cell-{escape(part.cell)}">{label}</a>{note}</figcaption></figure>'
                )
            case Picture():
                return ""
            case Table():
                return f'<div class="scroll" tabindex="0" role="region" aria-label="Table of {label}">{one.html}</div>'
            case Prose():
                return f'<div class="prose">{self._prose.html(one.text, deeper=2)}</div>'
            case Words():
                text = clip(without_ansi(one.text), OUTPUT_LIMIT)
                if one.kind == "note":
                    return f'<p class="note">{escape(visible_plain(text, spaces=False))}</p>'
                return f'<div class="{one.kind}">{plain_html(text, RECORD)}</div>'

    # ── what was run ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _appendix(self) -> str:
        report = self._report
        here = {part.cell for part in report.parts}
        rows = "".join(_row(one, linked=one.cell in here) for one in report.ran)
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in report.notes)
        heads = "".join(f'<th scope="col">{head}</th>' for head in ("Cell", "What", "By", "When", "Took", ""))
        table = (
            f'<div class="scroll" tabindex="0" role="region" aria-label="What was run"><table class="ran"><thead><tr>{heads}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>"
            if rows
            else "<p>Nothing was run.</p>"
        )
        return f'<section class="appendix">\n<h2 id="ran">What was run</h2>\n{notes}{table}\n</section>\n'


def _row(one: Ran, *, linked: bool) -> str:
    """One line of the list; its cell's number leads to the cell where that is in the page."""
    name = f"In[{one.number}]" if one.number is not None else "–"
    cells = (
        f"<code>{escape(visible_plain(one.what, spaces=False))}</code>",
        *map(_plain, (one.by, one.when, one.took, one.note)),
    )
    inner = "".join(f"<td>{cell}</td>" for cell in cells)
    name = f'<a href="#cell-{escape(one.cell)}">{name}</a>' if linked else name
    return f'<tr><th scope="row">{name}</th>{inner}</tr>'


def _plain(text: str) -> str:
    return escape(visible_plain(text, spaces=False))
