"""`%agent report`: the analysis as a page that is read without the notebook, in HTML or Markdown.

The texts are the notebook's own and its agents' last words; numbers lead to the cells that show them; with `--write` an
agent that only looks writes a summary first, whose numbers are looked up. The kept notebook itself is what `%agent export`
writes. Read `report`.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shlex
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from nbagent.app.document import find_document
from nbagent.app.export import from_file, from_page, put, shown_path, typed
from nbagent.app.history import runs_in
from nbagent.app.reporting import Material, Run, link_of, made, sources_of
from nbagent.app.reports import Linked
from nbagent.app.safehtml import cleaner
from nbagent.core.errors import ConfigError, NotebookError
from nbagent.core.events import AnswerChecked, Event, Reason, RunEnded
from nbagent.core.ports import Notebook
from nbagent.core.rules import grammar_of
from nbagent.extend.sessions import FOLDER
from nbagent.prompt.asks import instructions
from nbagent.tools.cells import starts_agent
from nbagent.tools.numbers import Shown, Trace, summed_up, traced
from nbagent.view.report.model import Report

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

KINDS = {"html": ".html", "md": ".md", "markdown": ".md"}
USAGE = (
    "%agent report [-o FILE] [--to html|md] [--title T] [--no-code] [--write] [--force] [--from NOTEBOOK.ipynb]. Without FILE "
    "it is NAME-report.html beside the notebook."
)
NO_PAGE = (
    "%agent report: no page that shows this notebook answered, so its cells can't be read. Of the saved file: "
    "%agent report --from NAME.ipynb"
)
WRITE_HERE = "--write needs the open notebook: an agent reads it. Leave out --write or --from."
NO_SUMMARY = "The summary was not written ({}), so the report has none."
_HEADING = re.compile(r"^#\s+(.+?)\s*#*\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the person asked for; `line` are the options of the run that writes."""

    file: str
    kind: str
    title: str
    code: bool
    write: bool
    force: bool
    source: str
    line: str


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"%agent report: {message}. {USAGE}")


async def report(extension: Extension, line: str) -> str:
    """Carry out `%agent report …` in the running cell and return where the file is; raises `ConfigError` and `RunFailed`."""
    wanted = read(line)
    clean_html = cleaner()
    notebook, name, own = await _notebook(extension, wanted)
    target = _target(extension, wanted, name)
    if target is None:
        return f"Nothing was written: {wanted.file or name} stays as it is."
    summary, checked, note = "", "", ""
    if wanted.write:
        summary, checked, note = await _written(extension, wanted)
        notebook, name, own = await _notebook(extension, wanted)
    runs = {run.id: run for run in map(Run.of, await asyncio.to_thread(runs_in, extension.folder / FOLDER))}
    cells = [cell for cell in notebook.cells if cell.get("id") != own]
    pictures = extension.folder if wanted.kind == "html" else None
    material = Material(
        cells, f"{name}.ipynb", runs, clean_html, pictures, extension.timer.times, extension.pictures, own
    )
    page = await made(
        material, title=wanted.title or title_of(cells) or name, code=wanted.code, summary=summary, checked=checked
    )
    files = await asyncio.to_thread(_put, page, target, wanted.kind)
    beside = f", with {files} figure{'s' * (files != 1)} beside it in {target.stem}_files" if files else ""
    return _said(target, extension.folder, f"{beside}.", note)


def _said(target: Path, folder: Path, beside: str, note: str) -> str:
    """Say where the report is; in a page, where it is below the notebook's folder, as a link that opens it."""
    name = shown_path(target)
    text = "\n".join(filter(None, (f"The report is in {name}{beside}", note)))
    try:
        address = quote(target.resolve().relative_to(folder.resolve()).as_posix())
    except ValueError:
        return text
    label = re.sub(r"([\\`*_\[\]<>])", r"\\\1", name)
    return Linked(text, f"The report is in [{label}]({address}){beside}" + (f"\n\n{note}" if note else ""))


def read(line: str) -> Wanted:
    """Return what a line asks for; raises `ConfigError` for an option or an ending that does not exist."""
    parser = _Parser(prog="%agent report", add_help=False, allow_abbrev=False)
    parser.add_argument("file", nargs="?", default="")
    parser.add_argument("-o", "--output", default="")
    parser.add_argument("--to", choices=list(KINDS), default="")
    parser.add_argument("--title", default="")
    parser.add_argument("--no-code", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--from", dest="source", default="")
    parser.add_argument("-m", "--model", default="")
    try:
        words = shlex.split(line)
    except ValueError:
        raise ConfigError(f"%agent report: a quotation mark is not closed in {line!r}. {USAGE}") from None
    given = parser.parse_args(words)
    file = given.output or given.file
    ending = {".html": "html", ".htm": "html", ".md": "md"}.get(Path(file).suffix.lower(), "")
    kind = {"markdown": "md"}.get(given.to, given.to) or ending or "html"
    if file and not ending:
        raise ConfigError(f"%agent report writes HTML or Markdown: end {file!r} in .html or .md.")
    if file and given.to and kind != ending:
        raise ConfigError(f"%agent report: --to {given.to} and {file!r} don't go together.")
    if given.write and given.source:
        raise ConfigError(WRITE_HERE)
    run = f"--model={given.model}" if given.model else ""
    return Wanted(file, kind, given.title, not given.no_code, given.write, given.force, given.source, run)


async def _notebook(extension: Extension, wanted: Wanted) -> tuple[Any, str, str]:
    """Return the notebook, its name, and the id of the cell that runs this."""
    if wanted.source:
        return from_file(typed(wanted.source)), Path(wanted.source).stem, ""
    try:
        async with find_document(extension.shell) as document:
            if document is None:
                raise ConfigError(NO_PAGE)
            found = await from_page(document, extension.folder)
            return found, Path(document.path).stem or "notebook", document.own_cell or ""
    except NotebookError as error:
        raise ConfigError(f"%agent report: the notebook can't be read now: {error}") from None


def _target(extension: Extension, wanted: Wanted, name: str) -> Path | None:
    """Return the file to write to, None where the person does not want it replaced; raises `ConfigError` where it may not be."""
    from nbagent.app.runtools import named_tools
    from nbagent.app.sessions import yes

    file = wanted.file or f"{name}-report{KINDS[wanted.kind]}"
    target = typed(file)
    if target.is_dir():
        raise ConfigError(f"%agent report: {file} is a folder; name a file in it.")
    writes = named_tools(extension).get("write_file")
    if writes is not None:
        rules, given = extension.settings().policy().rules, {"path": str(target), "content": ""}
        if spoken := grammar_of(writes).says("deny", rules, writes, given):
            raise ConfigError(f"%agent report: the rule deny {spoken.told} keeps {file} from being written.")
    ask = f"{shown_path(target)} is there already. Replace it? y or n: "
    return target if wanted.force or not target.exists() or yes(extension, ask) else None


def title_of(cells: list[Any]) -> str:
    """Return the first heading of the notebook's own texts, "" for none."""
    for cell in cells:
        if cell.cell_type == "markdown" and (found := _HEADING.search(cell.source)) is not None:
            return re.sub(r"[*_`]", "", found[1])
    return ""


def _put(page: Report, target: Path, kind: str) -> int:
    """Write a report; return how many figures were put beside it. What was there may be replaced: that was asked."""
    if kind == "html":
        from nbagent.view.report.page import html_of

        return put(html_of(_untitled(page)), {}, target, force=True, command="report")
    from nbagent.view.report.markdown import markdown_of

    text, files = markdown_of(_untitled(page), target.stem)
    return put(text, files, target, force=True, command="report")


def _untitled(page: Report) -> Report:
    """Return a report without the heading of its first text, where that is its title: it is said once."""
    for place, part in enumerate(page.parts):
        text = getattr(part, "text", None)
        if isinstance(text, str):
            first, _, rest = text.lstrip().partition("\n")
            found = _HEADING.fullmatch(first)
            if found is not None and re.sub(r"[*_`]", "", found[1]) == page.title:
                parts = [*page.parts]
                parts[place] = replace(part, text=rest)  # type: ignore[type-var]  # a part with a text
                return replace(page, parts=parts)
            break
    return page


# ── the summary ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def _written(extension: Extension, wanted: Wanted) -> tuple[str, str, str]:
    """Have the summary written; return it, what came of its numbers, and what to say where there is none."""
    from nbagent.app.cell import run_agent_cell

    writing = Writing()
    answer = await run_agent_cell(extension, f"--ask {wanted.line}".strip(), "", writing)
    if answer.stop_reason != Reason.END_TURN or not writing.text.strip():
        return "", "", NO_SUMMARY.format(answer.stop_reason)
    model = extension.last.model if extension.last is not None else "an agent"
    return writing.text, f"Written by {model}. {writing.note}", ""


class Writing:
    """Makes the prompt of a summary, and looks its numbers up: `text` with links and marks, and `note` on them."""

    def __init__(self) -> None:
        self.text = self.note = ""
        self._notebook: Notebook | None = None

    async def __call__(self, notebook: Notebook | None, words: str) -> tuple[str, str]:
        """Return what people read of the prompt, and what the model is told more; raises `ConfigError`."""
        if notebook is None or notebook.proposes_only:
            raise ConfigError(WRITE_HERE)
        self._notebook = notebook
        return f"Write the summary of a report on this notebook. {words}".strip(), instructions("report")

    async def events(self, stream: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        """Look the numbers up where the run ends with an answer."""
        async with aclosing(stream):
            async for event in stream:
                if isinstance(event, RunEnded) and event.reason is Reason.END_TURN and event.text.strip():
                    await self._look_up(event.text)
                    shown = f"{self.text}\n\n*{self.note}*"
                    yield AnswerChecked(state=event.state, turn=event.turn, at=event.at, text=shown, note=self.note)
                    yield replace(event, text=shown)
                else:
                    yield event

    async def _look_up(self, text: str) -> None:
        import nbformat

        assert self._notebook is not None
        cells: list[Any] = []
        for cell in await self._notebook.cells():
            if cell.type == "code" and not starts_agent(cell.source):
                found = await self._notebook.read(cell.id)
                made_cell: Any = nbformat.v4.new_code_cell(
                    found.source, execution_count=found.number, outputs=[nbformat.from_dict(o) for o in found.outputs]
                )
                made_cell["id"] = found.id
                cells.append(nbformat.from_dict(made_cell))
        self.text, traces = traced(text.strip(), Shown(sources_of(cells)), marked)
        self.note = summed_up(traces)


def marked(trace: Trace) -> str:
    """Return a number as a link to its cell, or with a mark where no output bears it out."""
    return link_of(trace) if trace.cell else f"{trace.number.text} **(not found: {trace.problem})**"
