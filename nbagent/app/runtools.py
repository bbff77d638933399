"""The tools of one run: those of the kernel, of the notebook if there is one, of the folder, and the person's own.

Must not know how a run goes, nor what is taken down of its calls. Read `tools_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nbagent.app.extension import Extension
from nbagent.app.ruling import data_files, folder_tools, ruled
from nbagent.core.ports import Kernel, Notebook
from nbagent.core.tools import Tool, Toolset
from nbagent.jupyter.figures import with_figures
from nbagent.tools import control, python, variables
from nbagent.tools import notebook as notebook_tools
from nbagent.tools.data import query
from nbagent.tools.lasting import LastingCode, wait_tools
from nbagent.tools.ledger import Ledger
from nbagent.tools.results import ResultStore
from nbagent.tools.seen import Seen


class MakeTools(Protocol):
    """Makes the tools of a run; without `seen`, `ledger` and the kernel that they work `on` only to tell which there are."""

    def __call__(
        self,
        results: ResultStore,
        seen: Seen | None = None,
        ledger: Ledger | None = None,
        on: Kernel | None = None,
        *,
        below: bool = False,
    ) -> list[Tool]:
        """Return the tools; those of a subagent (`below`) wait for their code."""
        ...


def tools_of(
    extension: Extension,
    notebook: Notebook | None,
    timeout: float | None,
    more: Sequence[Tool] = (),
    lasting: LastingCode | None = None,
) -> MakeTools:
    """Return what makes the tools of a run; `timeout` is the seconds after which its code is stopped (None: never).

    `lasting` is its code that may be under way while its model thinks; without it each call waits for its code.
    `more` are those of MCP servers, and those that work on the run itself. A tool of the person's takes the place of ours of the same name.
    """

    def make(
        results: ResultStore,
        seen: Seen | None = None,
        ledger: Ledger | None = None,
        on: Kernel | None = None,
        *,
        below: bool = False,
    ) -> list[Tool]:
        kernel = on or extension.kernel
        under_way = LastingCode(None, above=lasting) if below else lasting
        tools = [
            *_seeing(extension, kernel, variables.tools(kernel)),
            *query.tools(kernel, data_files(extension)),
            *python.tools(kernel, timeout=timeout, pictures=extension.pictures, lasting=under_way),
            *(
                notebook_tools.tools(
                    notebook,
                    kernel,
                    timeout=timeout,
                    seen=seen,
                    ledger=ledger,
                    times=extension.timer.times,
                    pictures=extension.pictures,
                    lasting=under_way,
                )
                if notebook is not None
                else ()
            ),
            *(wait_tools(under_way) if under_way is not None else ()),
            *_verifying(extension, notebook, kernel, seen),
            *folder_tools(extension, notebook),
            *control.tools(results),
        ]
        tools = ruled(extension, notebook, tools)
        own = {tool.name for tool in extension.tools}
        mine = [with_figures(tool) for tool in extension.tools]
        made = [*(tool for tool in tools if tool.name not in own), *mine, *(t for t in more if t.name not in own)]
        return [extension.privacy.described(tool) for tool in made]

    return make


def _verifying(extension: Extension, notebook: Notebook | None, kernel: Kernel, seen: Seen | None) -> list[Tool]:
    """Return the tool that runs the notebook in a clean kernel, where there is a notebook that holds what is shown."""
    if notebook is None or notebook.proposes_only:
        return []
    return [extension.verifier.tool(notebook, kernel, seen if seen is not None else Seen())]


def _seeing(extension: Extension, kernel: Kernel, tools: Sequence[Tool]) -> list[Tool]:
    """Return the tools that look at variables, so that a figure is seen too."""
    from nbagent.tools.data.pictures import pictured

    return [pictured(tool, kernel, extension.pictures) if tool.name == "inspect_variable" else tool for tool in tools]


def named_tools(extension: Extension) -> Toolset:
    """Return the tools that a run would have, to tell of them only: its cells are those of an empty notebook."""
    from nbagent.app.files import RunFiles
    from nbagent.headless.memory import MemoryNotebook

    path = extension.last.notebook if extension.last is not None else ""
    notebook = extension.file or MemoryNotebook(path=path)
    more = [*extension.mcp.tools(None), *RunFiles(extension).tools]
    lasting = LastingCode(extension.settings({}).patience())
    return Toolset(tools_of(extension, notebook, None, more, lasting)(ResultStore()))
