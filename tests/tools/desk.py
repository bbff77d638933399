"""A desk for the cell tools: a notebook of four cells, its tools, and a kernel that says what it was told to."""

from __future__ import annotations

import asyncio

from nbagent.core.errors import Interrupted
from nbagent.core.ports import Ran
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools import notebook as cell_tools
from nbagent.tools.ledger import Ledger
from nbagent.tools.seen import Seen
from nbagent.tools.times import RunTimes
from tests.conformance.notebook_kit import PNG, stream
from tests.tools.calling import Calling


class EchoKernel:
    """A kernel that keeps what it was asked to run and answers with what `answers` says for that code."""

    def __init__(self):
        self.ran = []
        self.answers = {}
        self.names = {}

    def namespace(self):
        return self.names

    async def run(self, code, *, emit, timeout):
        self.ran.append(code)
        answer = self.answers.get(code, "ok")
        if isinstance(answer, asyncio.Event):
            emit(stream("half\n"))
            answer.set()
            await asyncio.Event().wait()
        if answer == "interrupt":
            emit(stream("half\n"))
            raise Interrupted
        if answer == "error":
            error = {"output_type": "error", "ename": "NameError", "evalue": "no df", "traceback": ["NameError: no df"]}
            emit(error)
            return Ran("error", (error,), len(self.ran), 0.1)
        if answer == "timeout":
            emit(stream("so far\n"))
            return Ran("timeout", (), None, 2.0, "stopped after 2 s")
        if answer == "image":
            emit({"output_type": "display_data", "data": {"image/png": PNG}, "metadata": {}})
        elif answer == "ok":
            emit(stream(f"did {code}\n"))
        return Ran("ok", (), len(self.ran), 0.3)

    async def scratch(self, code, *, timeout, emit=None):
        raise NotImplementedError


def raw(cell_id, source, cell_type="code", number=None):
    cell = {"id": cell_id, "cell_type": cell_type, "metadata": {}, "source": source}
    return cell | ({"outputs": [], "execution_count": number} if cell_type == "code" else {})


class Desk:
    """A notebook of four cells with the agent's own in the middle, its tools and its kernel."""

    def __init__(self, **options):
        cells = [
            raw("intro", "# Penguins", "markdown"),
            raw("load", "df = load()", number=3),
            raw("mine", "%%agent\ngo"),
            raw("end", "df"),
        ]
        self.notebook = MemoryNotebook(cells, own_cell="mine", **options)
        self.kernel = EchoKernel()
        self.seen = Seen()
        self.now = 1_000_000.0
        self.times = RunTimes(lambda: self.now)
        self.begin("run-1")

    def begin(self, run):
        """Begin a run: another ledger and other tools, with what the conversation has seen."""
        self.ledger = Ledger()
        kept = {"seen": self.seen, "ledger": self.ledger, "times": self.times}
        self.call = Calling(cell_tools.tools(self.notebook, self.kernel, timeout=5, **kept), run=run)

    def closing(self):
        return self.ledger.closing(self.seen.listing or ())

    def raw(self, cell_id):
        return next(cell for cell in self.notebook.cells_ if cell["id"] == cell_id)

    def sources(self):
        return [cell["source"] for cell in self.notebook.cells_]

    def user_edit(self, cell_id, source):
        self.raw(cell_id)["source"] = source

    def user_insert(self, place, cell_id, source, cell_type="code"):
        self.notebook.cells_.insert(place, raw(cell_id, source, cell_type))

    def user_delete(self, cell_id):
        self.notebook.cells_.remove(self.raw(cell_id))

    def user_run(self, cell_id, number, *outputs):
        """The person runs a cell: as JupyterLab does, with the outputs replaced."""
        self.raw(cell_id).update(outputs=list(outputs), execution_count=number)
