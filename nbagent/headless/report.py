"""Runs a notebook file to a notebook file, and says on a terminal what happens meanwhile.

Read `execute`. It knows the page inside nbclient, not the agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from rich.console import Console

from nbagent.core.ports import Output
from nbagent.headless.page import OnOutput, run_notebook, write_notebook
from nbagent.tools.results import clip, fold_terminal

_CHARS = 2_000


class Progress:
    """Writes each cell's source once and its outputs as they come."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._cell = ""
        self._met: set[str] = set()
        self._line_open = False

    def output(self, cell: NotebookNode, output: Output) -> None:
        """Take a new output of `cell`."""
        if cell["id"] != self._cell:
            self._cell = cell["id"]
            again = self._cell in self._met
            self._met.add(self._cell)
            source = cell.source.strip()
            self._write(f"\n── {f'back in {source.splitlines()[0]}' if again else clip(source, 600)}\n", style="bold")
        kind = output.get("output_type")
        if kind == "stream":
            self._write(clip(fold_terminal(str(output.get("text", ""))), _CHARS), end="")
        elif kind == "error":
            self._write(f"{output.get('ename')}: {output.get('evalue')}", style="red")
        else:
            self._bundle(output.get("data") or {})

    def done(self) -> None:
        """End the last line."""
        if self._line_open:
            self._write("")

    def _bundle(self, data: Mapping[str, object]) -> None:
        if "application/vnd.jupyter.widget-view+json" in data:
            return
        if images := [kind for kind in data if kind.startswith("image/")]:
            self._write(f"[{images[0]}]")
            return
        text = data.get("text/plain", "")
        self._write(clip("".join(text) if isinstance(text, list) else str(text), _CHARS))

    def _write(self, text: str, *, end: str = "\n", style: str | None = None) -> None:
        if self._line_open and end:
            self._console.print()
        self._line_open = not end and not text.endswith("\n")
        self._console.print(text, end=end, style=style, markup=False, highlight=False, soft_wrap=True)


def execute(
    source: Path, target: Path, *, kernel_name: str | None, environment: Mapping[str, str], on_output: OnOutput
) -> str:
    """Run the notebook `source` and write what became of it to `target`; return "" or the sentence that says what failed.

    A failed run is written too, as far as it came.
    """
    try:
        notebook = cast("NotebookNode", nbformat.read(source, as_version=4))
    except (OSError, ValueError, AttributeError, nbformat.ValidationError) as error:
        return f"{source} can't be read as a notebook: {str(error).splitlines()[0] if str(error) else type(error).__name__}."
    problem = ""
    try:
        asyncio.run(
            run_notebook(
                notebook,
                path=source.resolve(),
                save_to=target,
                kernel_name=kernel_name,
                env=environment,
                on_output=on_output,
            )
        )
    except CellExecutionError as error:
        problem = f"A cell failed: {error.ename}: {error.evalue}"
    except CellTimeoutError as error:
        problem = str(error).splitlines()[0]
    except DeadKernelError:
        problem = "The kernel died while the notebook ran."
    except NoSuchKernel as error:
        return f"There is no kernel named {error.name!r}. `jupyter kernelspec list` shows those that there are."
    except KeyboardInterrupt:
        problem = "Stopped by you."
    return "\n".join(text for text in (problem, _written(notebook, target)) if text)


def _written(notebook: NotebookNode, target: Path) -> str:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_notebook(notebook, target)
    except OSError as error:
        return f"{target} can't be written: {error.strerror}."
    return ""
