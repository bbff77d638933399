"""A desk for the cell tools: a notebook of four cells, its tools, and a kernel that says what it was told to."""

from __future__ import annotations

import asyncio

from nbagent.core.errors import Interrupted
from nbagent.core.ports import Ran
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools import notebook as cell_tools
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

    async def scratch(self, code, *, timeout):
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
        self.call = Calling(cell_tools.tools(self.notebook, self.kernel, timeout=5))

    def sources(self):
        return [cell["source"] for cell in self.notebook.cells_]

    def user_edit(self, cell_id, source):
        next(c for c in self.notebook.cells_ if c["id"] == cell_id)["source"] = source
