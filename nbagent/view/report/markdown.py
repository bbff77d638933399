"""A report as the cells of a notebook, of which nbconvert makes Markdown with the figures as files beside it.

Read `cells_of`.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from nbagent.core.shown import visible_plain
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
from nbagent.view.text import without_ansi

if TYPE_CHECKING:
    from nbagent.core.messages import Json

LINKS = re.compile(r"#nbagent-cell-([\w-]+?)(?:\.\d+)?(?=[)\s])", re.ASCII)
"""How a text leads to a cell of the notebook; in the page it leads to the cell's place there."""


def cells_of(report: Report) -> tuple[list[Json], list[str]]:
    """Return the cells of nbformat 4.5 for a report, and the words of its figures in their order."""
    alts: list[str] = []
    facts = "\n".join(f"- {_plain(fact)}" for fact in report.facts)
    cells = [_text("title", f"# {_plain(report.title)}\n\n{facts}")]
    if report.summary.strip():
        cells.append(_text("summary", f"{report.summary.strip()}\n\n*{_plain(report.checked)}*"))
    for place, part in enumerate(report.parts):
        cells += _cells(part, place, alts, code=report.code)
    cells.append(_text("ran", _appendix(report)))
    return cells, alts


def _cells(part: Part, place: int, alts: list[str], *, code: bool) -> list[Json]:
    anchor = f'<a id="cell-{part.cell}"></a>'
    match part:
        case TextPart():
            return [_text(f"text-{place}", f"{anchor}\n\n{part.text}")]
        case AnswerPart():
            asked = "\n".join(f"> {line}" for line in _plain(part.prompt).split("\n"))
            return [_text(f"answer-{place}", f"{anchor}\n\n{asked}\n\n{part.text}\n\n*Answer of {_plain(part.by)}*")]
        case CodePart():
            outputs = [output for one in part.shown if (output := _output(one, alts)) is not None]
            if not code and not outputs:
                return []
            name = f"In[{part.number}]" if part.number is not None else "not run"
            told = f"{anchor}*{name}{f', by {_plain(part.by)}' if part.by else ''}*"
            made: Json = {"cell_type": "code", "id": f"code-{place}", "metadata": {}, "source": part.source,
                          "execution_count": part.number, "outputs": outputs}  # fmt: skip
            return [_text(f"at-{place}", told), made]


def _output(one: Shown, alts: list[str]) -> Json | None:
    match one:
        case Picture():
            alts.append(re.sub(r"[\[\]\n]", " ", _plain(one.alt)))
            data = (
                one.data.decode("utf-8", "replace")
                if one.mime == "image/svg+xml"
                else base64.b64encode(one.data).decode()
            )
            return _display({one.mime: data})
        case Table():
            return _display({"text/html": one.html})
        case Prose():
            return _display({"text/markdown": one.text})
        case Words(kind="note"):
            return _display({"text/markdown": f"*{_plain(one.text)}*"})
        case Words():
            return {"output_type": "stream", "name": "stdout", "text": without_ansi(one.text)}


def _appendix(report: Report) -> str:
    head = "| Cell | What | By | When | Took | |\n|---|---|---|---|---|---|"
    here = {part.cell for part in report.parts}
    rows = "\n".join(_row(one, linked=one.cell in here) for one in report.ran) or "| – | Nothing was run. | | | | |"
    notes = "\n\n".join(_plain(note) for note in report.notes)
    return f"## What was run\n\n{notes}\n\n{head}\n{rows}"


def _row(one: Ran, *, linked: bool) -> str:
    name = f"In[{one.number}]" if one.number is not None else "–"
    name = f"[{name}](#cell-{one.cell})" if linked and one.number is not None else name
    what = _plain(one.what).replace("`", "'").replace("|", "\\|")
    others = (_plain(text).replace("|", "\\|") for text in (one.by, one.when, one.took, one.note))
    return f"| {name} | `{what}` | {' | '.join(others)} |"


def _display(data: Json) -> Json:
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _text(name: str, source: str) -> Json:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def _plain(text: str) -> str:
    return visible_plain(text, spaces=False).replace("<", "&lt;")
