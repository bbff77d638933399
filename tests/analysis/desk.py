"""Does one task as a person would: a folder with data, a notebook with an agent cell, a real kernel; then looks at it.

What came of it is a `Work`: the notebook as saved, the namespace of the kernel in which the agent worked, and what the
notebook gives from a clean kernel. A task's checker sees nothing else. Read `Work`, then `done` and `rerun`.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from nbagent.headless.page import PageClient
from tests.analysis.solving import Playing, Steps
from tests.failures.room import ROOT, transcripts
from tests.support.messages_server import MessagesServer
from tests.support.warm import ANALYST

HERE = Path(__file__).parent
TASKS = ("penguins", "sales", "sensors", "survey", "joins", "texts", "geo", "parquet", "excel", "broken")
ALLOWED = [
    "run_python",
    "add_cell",
    "edit_cell",
    "run_cell",
    "move_cell",
    "delete_cell",
    "run_all",
    "query",
    "verify_notebook",
]
START = "start.ipynb"
_OURS = ("%load_ext nbagent", "%%agent", "%agent")
Facts = dict[str, Any]
"""What the maker of a data set knows of it, for its checker only: names, codes, formats."""

_EXPORT = """
def _nbagent_export(path):
    import pickle, resource, sys, types
    space = get_ipython().user_ns
    hidden = get_ipython().user_ns_hidden
    kept = {}
    for name, value in list(space.items()):
        if name.startswith("_") or name in hidden or isinstance(value, (types.ModuleType, types.FunctionType, type)):
            continue
        try:
            data = pickle.dumps(value)
        except Exception:
            continue
        kept[name] = data if len(data) < 200_000_000 else pickle.dumps("too big")
    figures = []
    pyplot, numpy = sys.modules.get("matplotlib.pyplot"), sys.modules.get("numpy")
    for number in pyplot.get_fignums() if pyplot else ():
        for axes in pyplot.figure(number).axes:
            heights = [numpy.ma.asarray(line.get_ydata(orig=False), float) for line in axes.lines]
            lines = [numpy.ma.filled(each, float("nan")).tolist() for each in heights if len(each) < 100_000]
            figures.append({"title": axes.get_title(), "x": axes.get_xlabel(), "y": axes.get_ylabel(), "lines": lines,
                            "drawn": len(axes.lines) + len(axes.patches) + len(axes.collections) + len(axes.images)})
    with open(path, "wb") as file:
        pickle.dump((kept, figures, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024), file)
_nbagent_export({path!r})
del _nbagent_export
"""  # fmt: skip


@dataclass(frozen=True)
class Axes:
    """One drawing of a figure: its labels, the heights of its lines, and how much is drawn."""

    title: str
    x: str
    y: str
    lines: list[list[float]]
    drawn: int


@dataclass(frozen=True)
class Work:
    """What came of a task. `before` are the data files' hashes; `start` the person's cells; `notebook` all cells, as saved.

    `live` is the namespace in which the agent worked, `clean` the one after a run from a clean kernel, which `error` ended
    ("": it ran to its end); values that can't be pickled are in neither. `axes` are those of the clean run, `peak` the bytes of the agent's kernel at most.
    """

    folder: Path
    before: Mapping[str, str]
    start: Sequence[NotebookNode]
    notebook: NotebookNode
    live: Mapping[str, Any]
    clean: Mapping[str, Any]
    error: str
    axes: Sequence[Axes]
    record: str = ""
    results: Sequence[str] = field(default=())
    peak: int = 0


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Task:
    """A folder of this package: the prompt, the makers of data and twin, the checker and the solution."""

    name: str

    @property
    def prompt(self) -> str:
        """What the person writes."""
        return (HERE / self.name / "task.md").read_text("utf-8").strip()

    @property
    def solve(self) -> Callable[[], Steps]:
        """The scripted solution."""
        return self._of("script").solve

    @property
    def check(self) -> Callable[[Work, Facts], None]:
        """The checker: AssertionError with what is wrong."""
        return self._of("check").check

    @property
    def sabotages(self) -> Mapping[str, tuple[str, str, str]]:
        """Wrong solutions by what they do wrong: a pattern in the good one's code, what stands there instead, and what the checker says."""
        return self._of("check").SABOTAGES

    def make(self, folder: Path, variant: str = "data") -> Facts:
        """Write the data (or its "twin") into an empty folder, and return the facts."""
        return self._of(variant).make(folder)

    def _of(self, module: str) -> Any:
        return importlib.import_module(f"tests.analysis.{self.name}.{module}")


def hashes(folder: Path) -> dict[str, str]:
    """Return the hash of each file of the folder that is the person's data."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix not in {".ipynb", ".pickle"}]
    kept = [path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


def started(folder: Path) -> tuple[list[NotebookNode], list[int], str]:
    """Return the person's cells, the order in which they ran some, and the code of a cell that they ran and deleted.

    Most tasks begin with an empty notebook.
    """
    path = folder / START
    if not path.exists():
        return [], [], ""
    found: Any = nbformat.read(path, as_version=4)
    return list(found.cells), list(found.metadata.get("ran", [])), str(found.metadata.get("deleted", ""))


# ── doing it ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Kernel(PageClient):
    """A page with a warm kernel whose cells are run one by one, in any order."""

    async def run(self, cell: NotebookNode) -> None:
        """Run a cell of the notebook, wherever it stands."""
        place = next(i for i, one in enumerate(self.nb.cells) if one is cell)
        await self.async_execute_cell(cell, place)

    async def quietly(self, code: str) -> None:
        """Run code that is no cell's; raises AssertionError where it fails."""
        kc: Any = self.kc
        message = kc.session.msg("execute_request", {"code": code, "silent": True, "store_history": False})
        reply = await self._reply_to(kc.shell_channel, message)
        assert reply["status"] == "ok", reply

    async def namespace(self, folder: Path) -> tuple[dict[str, Any], list[Axes], int]:
        """Return copies of the variables, what the open figures show, and the most memory that the kernel ever had."""
        path = folder / ".namespace.pickle"
        await self.quietly(_EXPORT.replace("{path!r}", repr(str(path))))
        kept, figures, peak = pickle.loads(path.read_bytes())
        path.unlink()
        return {name: pickle.loads(data) for name, data in kept.items()}, [Axes(**figure) for figure in figures], peak


@asynccontextmanager
async def kernel(cells: Sequence[NotebookNode], folder: Path, *, name: str = ANALYST, **env: str) -> Any:
    """Start a kernel for a notebook of these cells in `folder`."""
    page = Kernel(
        new_notebook(cells=list(cells)), path=str(folder / "task.ipynb"), timeout=600, allow_errors=True,
        kernel_name=name, resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    given = {**{k: v for k, v in os.environ.items() if k != "MPLBACKEND"}, "PYTHONPATH": str(ROOT), **env}
    async with page.async_setup_kernel(env=given):
        yield page


async def done(
    task: Task, folder: Path, variant: str = "data", *, model: str = "", url: str = ""
) -> tuple[Work, Facts]:
    """Make the data, do the task with its script over real HTTP (or with the model behind `url`), and look at what came of it."""
    facts = task.make(folder, variant)
    if url:
        return await _done(task, folder, url, model), facts
    play = Playing(task.solve)
    with MessagesServer(lambda body: play(body["messages"])) as server:  # pyright: ignore[reportArgumentType]
        work = await _done(task, folder, server.url, model)
    if play.failed is not None:
        raise play.failed
    server.assert_clean()
    return work, facts


async def _done(task: Task, folder: Path, url: str, model: str) -> Work:
    before = hashes(folder)
    start, order, deleted = started(folder)
    originals = [nbformat.from_dict(dict(cell)) for cell in start]
    load, agent = new_code_cell("%load_ext nbagent"), new_code_cell(f"%%agent{model and f' -m {model}'}\n{task.prompt}")
    settings = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-test", "NBAGENT_MODE": "accept-edits"}
    async with kernel([load, *start, agent], folder, **settings, NBAGENT_ALLOW="\n".join(ALLOWED)) as page:
        await page.run(load)
        await page.quietly(deleted)
        for place in order:
            await page.run(start[place])
        await page.run(agent)
        saved = page.whole()
        live, _, peak = await page.namespace(folder)
    nbformat.validate(saved)
    record = "\n".join(str(out.get("data", {}).get("text/plain", out.get("text", ""))) for out in agent.outputs)
    work = Work(folder, before, originals, saved, live, {}, "", (), record, _results(folder), peak)
    return await rerun(work)


async def rerun(work: Work, sources: Sequence[str] | None = None) -> Work:
    """Run the saved notebook in a clean kernel without nbagent; with `sources`, with these in place of its code cells'."""
    cells = [nbformat.from_dict(dict(cell)) for cell in work.notebook.cells if not is_ours(cell)]
    code = [cell for cell in cells if cell.cell_type == "code"]
    for cell, source in zip(code, sources or [cell.source for cell in code], strict=True):
        cell.source = source
    error = ""
    async with kernel(cells, work.folder) as page:
        await page.quietly("%config InlineBackend.close_figures = False")
        for cell in code:
            await page.run(cell)
            failed = next((out for out in cell.outputs if out.output_type == "error"), None)
            if failed is not None:
                error = f"{failed.ename}: {failed.evalue} in\n{cell.source}"
                break
        clean, axes, _ = await page.namespace(work.folder)
    if sources is None:
        return Work(**{**vars(work), "clean": clean, "error": error, "axes": axes})
    notebook = nbformat.from_dict({**work.notebook, "cells": cells})
    return Work(**{**vars(work), "notebook": notebook, "live": clean, "clean": clean, "error": error, "axes": axes})


def is_ours(cell: NotebookNode) -> bool:
    """Whether a cell is one of nbagent's own, which says nothing of the analysis."""
    return cell.cell_type == "code" and cell.source.startswith(_OURS)


def code_of(work: Work) -> list[str]:
    """Return the sources of the analysis, code cell by code cell."""
    return [cell.source for cell in work.notebook.cells if cell.cell_type == "code" and not is_ours(cell)]


def _results(folder: Path) -> Iterator[str] | list[str]:
    found = transcripts(folder)
    blocks = [
        b for m in (found[-1] if found else []) if m["role"] == "user" for b in m["content"] if isinstance(b, dict)
    ]
    return ["\n".join(c.get("text", "[image]") for c in b["content"]) for b in blocks if b["type"] == "tool_result"]
