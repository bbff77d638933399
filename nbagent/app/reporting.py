"""Makes a report's value of a notebook and of the runs that were kept: its parts, numbers linked to cells, what was run by whom.

The notebook is an nbformat node; nothing of it is run or trusted. How it is drawn is the business of view/report. Read
`made`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nbagent.app.export import without_ours
from nbagent.app.history import Kept
from nbagent.app.reportfigures import NOT_STILL, picture_of
from nbagent.app.reportfiles import embedded
from nbagent.app.safehtml import acts, words_of
from nbagent.core.messages import Json, clean
from nbagent.core.ports import Cell
from nbagent.tools.cells import first_line, starts_agent
from nbagent.tools.data.figures_bundles import figure_in
from nbagent.tools.data.pictures import Pictures
from nbagent.tools.marks import KEY, is_marker
from nbagent.tools.numbers import Shown, Source, Trace, cells_linked, traced
from nbagent.tools.times import RunTimes, duration
from nbagent.view.report.model import AnswerPart, CodePart, Part, Prose, Ran, Report, Table, TextPart, Words
from nbagent.view.report.model import Shown as ShownPart
from nbagent.view.text import count, one_line, without_ansi

_RECORD_OF = re.compile(r"#nbagent-again-(run-[0-9a-f]{1,32})")
_PRINTED = 40_000
_PERSON = "person"
_ERRAND = re.compile(r"%agent\s+(tidy|verify)\b")
"""Commands whose runs say something of the notebook, and nothing of what was analysed."""
_ORDER = (
    "In the order in which the cells ran last. Who wrote a cell is told by nbagent's mark in the notebook; times are known "
    "for this kernel, and where JupyterLab records them."
)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of an agent as it was kept: when it began, with which model, what it was asked, and how it ended."""

    id: str
    at: float
    model: str
    prompt: str
    answers: bool
    ended: Json

    @classmethod
    def of(cls, kept: Kept) -> Run:
        """Make it of what is on disk."""
        said = kept.started
        text = {name: str(said.get(name) or "") for name in ("run_id", "model", "prompt")}
        return cls(text["run_id"], kept.at, text["model"], text["prompt"], bool(said.get("answers")), kept.ended or {})

    @property
    def answer(self) -> str:
        """The last words of a run that came to its end, "" of another and of a question."""
        done = self.ended.get("reason") == "end_turn" and not self.answers
        return str(self.ended.get("text") or "") if done else ""


@dataclass(frozen=True, slots=True)
class Material:
    """What a report is made of. `clean_html` makes HTML harmless; `times` knows what ran in this kernel; `pictures` draws figures; `own`: its cell.

    `folder` is where pictures that texts show are taken from (None: they stay links).
    """

    cells: Sequence[Any]
    name: str
    runs: Mapping[str, Run]
    clean_html: Callable[[str], str]
    folder: Path | None
    times: RunTimes = field(default_factory=RunTimes)
    pictures: Pictures = field(default_factory=Pictures)
    own: str = ""


def sources_of(cells: Sequence[Any]) -> list[Source]:
    """Return the code cells of a notebook as numbers are looked for in them; those that ask an agent are none."""
    return [
        Source(_id(cell), cell.get("execution_count"), _words(cell.get("outputs") or ()), cell.source)
        for cell in cells
        if cell.cell_type == "code" and not starts_agent(cell.source)
    ]


def _words(outputs: Sequence[Any]) -> str:
    parts: list[str] = []
    for output in outputs:
        data = output.get("data") or {}
        if output.get("output_type") == "stream":
            parts.append(without_ansi(_text(output.get("text")))[:_PRINTED])
        elif "text/plain" in data or "text/markdown" in data:
            parts += [_text(data[kind])[:_PRINTED] for kind in ("text/plain", "text/markdown") if kind in data]
        if "text/html" in data and not acts(_text(data["text/html"])):
            parts.append(words_of(_text(data["text/html"])))
    return "\n".join(parts)


def link_of(trace: Trace) -> str:
    """Return a number as a link to the cell where it stands; one that stands nowhere stays as it is."""
    return f"[{trace.number.text}](#nbagent-cell-{trace.cell})" if trace.cell else trace.number.text


async def made(material: Material, *, title: str, code: bool, summary: str = "", checked: str = "") -> Report:
    """Return the report on a notebook; `summary` is a text whose numbers were looked up already, `checked` says with what result."""
    sources = sources_of(material.cells)
    numbers = Shown(sources)
    ids = {source.number: source.id for source in sources if source.number is not None}
    parts: list[Part] = []
    linked = 0
    for cell in material.cells:
        part = await _part(material, cell)
        if isinstance(part, TextPart | AnswerPart):
            text, traces = traced(part.text, numbers, link_of)
            linked += sum(bool(trace.cell) for trace in traces)
            part = replace(part, text=cells_linked(text, ids))
        if part is not None:
            parts.append(part)
    ran = rows(material)
    counts = [
        f"Notebook: {material.name}",
        time.strftime("%Y-%m-%d %H:%M"),
        f"{sum(isinstance(part, CodePart) for part in parts)} code cells",
        f"{linked} number{'s' * (linked != 1)} linked to the cell that shows them" if linked else "",
    ]
    return Report(
        title, [fact for fact in counts if fact], parts, ran, cells_linked(summary, ids), checked, code, notes_on(material)
    )  # fmt: skip


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _part(material: Material, cell: Any) -> Part | None:
    if cell.cell_type == "markdown":
        text = await asyncio.to_thread(embedded, cell.source, cell.get("attachments") or {}, material.folder)
        return TextPart(_id(cell), clean(text), _by(material, cell, person="")) if text.strip() else None
    if cell.cell_type != "code":
        return None
    if starts_agent(cell.source):
        if _ERRAND.match(cell.source.strip()):
            return None
        run = material.runs.get(run_shown(cell))
        return AnswerPart(_id(cell), run.prompt, clean(run.answer), run.model) if run and run.answer.strip() else None
    source = without_ours(cell.source)
    if not source.strip():
        return None
    outputs = [output for output in cell.get("outputs") or () if not is_marker(output)]
    stale = len(outputs) < len(cell.get("outputs") or ())
    shown = [part for output in outputs if (part := await _shown(material, output, source)) is not None]
    return CodePart(_id(cell), cell.get("execution_count"), clean(source), shown, _by(material, cell, person=""), stale)


async def _shown(material: Material, output: Any, source: str) -> ShownPart | None:
    kind = output.get("output_type")
    if kind == "stream":
        text = _text(output.get("text"))
        return Words(clean(_overwritten(text))) if text.strip() and output.get("name") != "stderr" else None
    if kind == "error":
        return Words(clean(f"{output.get('ename')}: {output.get('evalue')}"), "error")
    data: Mapping[str, Any] = output.get("data") or {}
    if (picture := await picture_of(data, source, material.pictures)) is not None:
        return picture
    if figure_in(data) is not None:
        return Words(NOT_STILL, "note")
    if "text/html" in data and not acts(html := _text(data["text/html"])):
        return Table(await asyncio.to_thread(material.clean_html, clean(html)))
    if "text/markdown" in data:
        return Prose(clean(_text(data["text/markdown"])))
    for kind in ("text/plain", "text/latex"):
        if kind in data and "application/vnd.jupyter.widget-view+json" not in data:
            return Words(clean(_text(data[kind])))
    return (
        Words("Something interactive is here in the notebook, which a page without scripts can't show.", "note")
        if data
        else None
    )


def _overwritten(text: str) -> str:
    """Return printed text as a screen shows it: of a line that was written over, the last state."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def run_shown(cell: Any) -> str:
    """Return the id of the run whose record a cell shows, "" for none."""
    for output in cell.get("outputs") or ():
        if (found := _RECORD_OF.search(_text((output.get("data") or {}).get("text/html")))) is not None:
            return found[1]
    return ""


# ── what was run, by whom ────────────────────────────────────────────────────────────────────────────────────────────


def rows(material: Material) -> list[Ran]:
    """Return what was run, in the order in which it ran last; cells that have not run come last, as they stand."""
    code = [
        cell
        for cell in material.cells
        if cell.cell_type == "code" and cell.source.strip() and _id(cell) != material.own
    ]
    code = [cell for cell in code if starts_agent(cell.source) or without_ours(cell.source).strip()]
    ran = sorted((cell for cell in code if cell.get("execution_count")), key=lambda cell: cell.execution_count)
    idle = [cell for cell in code if not cell.get("execution_count") and not starts_agent(cell.source)]
    return [_row(material, cell) for cell in (*ran, *idle)]


def _row(material: Material, cell: Any) -> Ran:
    number, here = cell.get("execution_count"), _id(cell)
    if starts_agent(cell.source):
        run = material.runs.get(run_shown(cell))
        what = one_line(first_line(cell.source), 80)
        if run is None:
            return Ran(here, number, what, _PERSON, note="a command")
        took = run.ended.get("at")
        cost, cells = run.ended.get("cost"), run.ended.get("cells") or ()
        if _ERRAND.match(cell.source.strip()):
            return Ran(here, number, what, _PERSON, _when(run.at), duration(took) if isinstance(took, int | float) else "",
                       one_line(run.answer.partition("%agent")[0].strip(), 80))  # fmt: skip
        said = ["a question" if run.answers else "", f"{count(len(cells), 'cell')} added or run" if cells else "",
                f"${cost:.4f}" if isinstance(cost, int | float) else "",
                "" if run.ended.get("reason") == "end_turn" else f"ended: {run.ended.get('reason') or 'cut off'}"]  # fmt: skip
        return Ran(here, number, one_line(run.prompt or what, 80), f"agent ({run.model}), asked by a person", _when(run.at),
                   duration(took) if isinstance(took, int | float) else "", "; ".join(filter(None, said)))  # fmt: skip
    timing = material.times.run_of(_as_cell(cell))
    failed = [output for output in cell.get("outputs") or () if output.get("output_type") == "error"]
    notes = ["not run" if not number else "", f"failed: {failed[-1].get('ename')}" if failed else "",
             "edited since it ran" if any(map(is_marker, cell.get("outputs") or ())) else ""]  # fmt: skip
    when = _when(timing[0] - timing[1]) if timing is not None else ""
    took = duration(timing[1]) if timing is not None else ""
    return Ran(here, number, one_line(first_line(cell.source), 80), _by(material, cell, person=_PERSON), when, took,
               "; ".join(filter(None, notes)))  # fmt: skip


def _by(material: Material, cell: Any, *, person: str) -> str:
    """Return who wrote a cell, by its mark: an agent's run, with its model and the cell that asked; else `person`."""
    said = (cell.get("metadata") or {}).get(KEY)
    if not isinstance(said, dict) or not ({"run", "call"} & set(said)):
        return person
    run = material.runs.get(str(said.get("run") or ""))
    if run is None:
        return "agent"
    asked = [c.get("execution_count") for c in material.cells if c.cell_type == "code" and run_shown(c) == run.id]
    where = f", run In[{asked[0]}]" if asked and asked[0] else f", run of {_when(run.at)}"
    return f"agent ({run.model}{where})"


def notes_on(material: Material) -> list[str]:
    """Return what a reader should know of the order: whether it is that of the page, and whether runs are of cells that are gone."""
    code = [cell for cell in material.cells if cell.cell_type == "code" and cell.get("execution_count")]
    numbers = [cell.execution_count for cell in code if _id(cell) != material.own]
    notes = [_ORDER]
    if numbers != sorted(numbers):
        notes.append("The cells did not run in the order in which they stand.")
    if gone := [n for n in range(1, max(numbers, default=0)) if n not in numbers]:
        shown = ", ".join(f"In[{n}]" for n in gone[:8]) + (" …" if len(gone) > 8 else "")
        notes.append(
            f"{len(gone)} more run{'s were' if len(gone) != 1 else ' was'} of code that is not there any more, or ran again later: {shown}."
        )
    return [*notes, _clean_run(material)]


def _clean_run(material: Material) -> str:
    """Say what the last `%agent verify` of the notebook said, or that only that would tell."""
    cells = [
        cell for cell in material.cells if cell.cell_type == "code" and cell.source.strip().startswith("%agent verify")
    ]
    runs = [run for cell in cells if (run := material.runs.get(run_shown(cell))) is not None and run.answer]
    if not runs:
        return "That these numbers come out again from a clean kernel is told by %agent verify, not by this page."
    last = max(runs, key=lambda run: run.at)
    return f"A clean kernel ran the notebook as it was on {_when(last.at)}. %agent verify said: {one_line(last.answer, 300)}"


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else ""


def _as_cell(cell: Any) -> Cell:
    return Cell(
        _id(cell), "code", cell.source, 0, cell.get("execution_count"), metadata=dict(cell.get("metadata") or {})
    )


def _id(cell: Any) -> str:
    return re.sub(r"[^\w-]", "-", str(cell.get("id") or ""))


def _text(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")
