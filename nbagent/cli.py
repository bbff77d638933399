"""The command line: `nbagent run` a notebook without a browser, `nbagent ask` in a folder, `nbagent map` over many inputs, `nbagent mcp-serve`, `nbagent doctor`.

Exit codes: 0 done; 1 the run could not finish; 2 wrong use (typer's own).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console

from nbagent import __version__
from nbagent.core.errors import ConfigError
from nbagent.core.policy import Mode

if TYPE_CHECKING:
    from nbagent.app.answer import Answer
    from nbagent.app.extension import Extension
    from nbagent.headless.file import FileNotebook

app = typer.Typer(
    help="An agent that lives in your notebook.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        Console().print(f"nbagent {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and stop.")
    ] = False,
) -> None:
    """An agent that lives in your notebook."""


Model = Annotated[str, typer.Option("--model", "-m", help="opus, sonnet, haiku, or any id that your server knows.")]
ModeOption = Annotated[Mode | None, typer.Option("--mode", help="What is allowed without asking.")]
Allow = Annotated[list[str] | None, typer.Option("--allow", help="A rule that allows calls: tool or tool(pattern).")]
Turns = Annotated[int | None, typer.Option("--max-turns", min=1, help="Turns of each run at most.")]
Budget = Annotated[float | None, typer.Option("--budget", min=0.0001, help="US dollars of each run at most.")]
Timeout = Annotated[float | None, typer.Option("--timeout", min=0.1, help="Seconds of each run at most.")]


def _environment(model: str, mode: Mode | None, allow: list[str] | None, turns: int | None, budget: float | None,
                 timeout: float | None) -> dict[str, str]:  # fmt: skip
    """Settings for the kernel that is started: by its environment, which no notebook can write."""
    given = {"model": model, "mode": "" if mode is None else str(mode), "allow": "\n".join(allow or ()), "max_turns": turns, "budget": budget,
             "timeout": timeout}  # fmt: skip
    return {f"NBAGENT_{name.upper()}": str(value) for name, value in given.items() if value not in ("", None)}


@app.command()
def run(
    notebook: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The notebook to run.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the finished notebook goes.")],
    model: Model = "",
    mode: ModeOption = None,
    allow: Allow = None,
    max_turns: Turns = None,
    budget: Budget = None,
    timeout: Timeout = None,
    kernel: Annotated[str, typer.Option("--kernel", help="Name of the kernel; the notebook's own if not given.")] = "",
    stale: Annotated[
        str, typer.Option("--stale", help="Of a finished cell whose inputs have changed: fail (ask), show or rerun.")
    ] = "",
) -> None:
    """Run a notebook with its %%agent cells in a new kernel, without a browser. Nobody is asked: the mode and the rules decide."""
    from nbagent.headless.report import Progress, execute

    console = Console()
    progress = Progress(console)
    environment = _environment(model, mode, allow, max_turns, budget, timeout)
    environment |= {"NBAGENT_STALE": stale} if stale else {}
    problem = execute(notebook, output, kernel_name=kernel or None, environment=environment, on_output=progress.output)
    progress.done()
    if problem:
        _fail(problem)
    console.print(f"Wrote {output}", markup=False, highlight=False)


@app.command()
def ask(
    prompt: Annotated[str, typer.Argument(help="What the agent should do in this folder.")],
    notebook: Annotated[
        Path | None,
        typer.Option("--notebook", "-n", help="A notebook that is not open: the agent reads and edits its cells."),
    ] = None,
    model: Model = "",
    mode: ModeOption = None,
    allow: Allow = None,
    max_turns: Turns = None,
    budget: Budget = None,
    timeout: Timeout = None,
) -> None:
    """Ask about this folder on the terminal. You approve by typing; where nobody can type, the mode and the rules decide."""
    os.environ.update(_environment(model, mode, allow, max_turns, budget, timeout))
    sys.exit(_ask(prompt, _file(notebook) if notebook is not None else None))


def _file(path: Path) -> FileNotebook:
    """Take a notebook file, or end with the sentence that says why not."""
    from nbagent.core.errors import NotebookError
    from nbagent.headless.file import FileNotebook
    from nbagent.tools.servers import running_servers, who_has_open

    if path.suffix.lower() != ".ipynb":
        _fail(f"{path} is no notebook: --notebook takes an .ipynb file.")
    try:
        notebook = FileNotebook(path)
    except NotebookError as error:
        _fail(f"{error}.")
    if holder := who_has_open(path, running_servers()):
        there = (
            "Ask there, in a %%agent cell, or shut the notebook's kernel down first" if holder.sure else holder.way_out
        )
        _fail(f"{path} is {holder}. {there}.")
    return notebook


async def _answered(extension: Extension, prompt: str) -> Answer:
    """Run, and end what was started for it while its loop still lives."""
    from nbagent.app.cell import run_agent_cell

    try:
        return await run_agent_cell(extension, "", prompt)
    finally:
        if "mcp" in vars(extension):
            await extension.mcp.close()


def _ask(prompt: str, notebook: FileNotebook | None = None) -> int:
    from IPython.core.interactiveshell import InteractiveShell

    from nbagent.app.answer import RunFailed
    from nbagent.app.extension import current, load_extension
    from nbagent.core.events import Reason

    shell = InteractiveShell.instance()
    load_extension(shell)
    current(shell).file = notebook
    try:
        answer = asyncio.run(_answered(current(shell), prompt))
    except ConfigError as error:
        _fail(str(error))
    except RunFailed:
        return 1  # the view has said why
    except (KeyboardInterrupt, asyncio.CancelledError):  # before the run began, or after it ended
        return 130
    return 0 if answer.stop_reason == Reason.END_TURN else 1


@app.command("map")
def map_(
    prompt: Annotated[str, typer.Argument(help="The task; {item} stands for the input.")],
    inputs: Annotated[
        list[str], typer.Argument(help="Files, folders, notebooks; or - for a text a line of the input.")
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A table: .csv, .json or .jsonl.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", "-w", min=1, help="Runs side by side.")] = None,
    tools: Annotated[str, typer.Option("--tools", help="Only these tools: a,b; * may stand in a name.")] = "",
    model: Model = "",
    mode: ModeOption = None,
    allow: Allow = None,
    max_turns: Turns = None,
    budget: Annotated[float | None, typer.Option("--budget", min=0.0001, help="US dollars of all together.")] = None,
    timeout: Timeout = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Where all is kept, to go on there.")] = None,
    again: Annotated[str, typer.Option("--again", help="all, failed or changed: run these anew.")] = "",
    in_place: Annotated[bool, typer.Option("--in-place", help="Work on notebooks themselves, not on copies.")] = False,
) -> None:
    """Run the agent once for each input, side by side. Nobody is asked: the mode and the rules decide."""
    from nbagent.app.map_command import mapped

    options: dict[str, Any] = {
        "tools": tools or None, "model": model, "mode": "" if mode is None else str(mode), "allow": allow or (),
        "workers": workers, "max_turns": max_turns, "budget": budget, "timeout": timeout, "resume": resume,
        "again": True if again == "all" else again or False, "in_place": in_place,
    }  # fmt: skip
    try:
        table, stopped = mapped(prompt, inputs, output, **options)
    except ConfigError as error:
        _fail(str(error))
    Console().print(f"Wrote {output}" if output is not None else str(table), markup=False, highlight=False)
    if stopped:
        raise typer.Exit(130)
    if len(table.failed):
        raise typer.Exit(1)


@app.command("mcp-serve")
def mcp_serve(
    notebook: Annotated[
        Path | None,
        typer.Option("--notebook", "-n", help="A notebook that is not open; its cells run in a kernel here."),
    ] = None,
    kernel: Annotated[
        str,
        typer.Option("--kernel", help="A kernel that runs: its connection file or its id (%connect_info shows it)."),
    ] = "",
    mode: ModeOption = None,
    allow: Allow = None,
    timeout: Annotated[float | None, typer.Option("--timeout", min=0.1, help="Seconds of each call at most.")] = None,
) -> None:
    """Offer a notebook's and a kernel's tools to other agents (MCP on stdin and stdout), with the same approvals."""
    from nbagent.app.serve_command import served

    if notebook is not None and kernel:
        _fail("Take --notebook or --kernel, not both.")
    os.environ.update(_environment("", mode, allow, None, None, None))
    try:
        served(_file(notebook) if notebook is not None else None, kernel, timeout)
    except ConfigError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


@app.command()
def trust(
    answer: Annotated[
        str, typer.Argument(help="show, yes, no or forget; without it all is shown and you are asked.")
    ] = "",
    folder: Annotated[Path, typer.Option("--folder", exists=True, file_okay=False, help="Of which folder.")] = Path(),
) -> None:
    """Show what a folder's files can run or allow (hooks, MCP servers, rules, skills), and say whether you trust them."""
    from nbagent.app.trusting import on_terminal

    console = Console()
    try:
        on_terminal(folder, answer, input, lambda text: console.print(text, markup=False, highlight=False))
    except (ConfigError, EOFError) as error:
        _fail(str(error) or "Nobody answered, so nothing was changed.")


@app.command()
def doctor() -> None:
    """Say what works here and what is missing."""
    from nbagent.app.doctor import examine, report
    from nbagent.config import load

    environment: Mapping[str, Any] = os.environ
    try:
        findings = examine(load(Path.cwd(), environment), Path.cwd())
    except ConfigError as error:
        _fail(str(error))
    Console().print(report(findings), markup=False, highlight=False)
    if any(finding.level == "problem" for finding in findings):
        raise typer.Exit(1)


def _fail(sentence: str) -> NoReturn:
    Console(stderr=True).print(sentence, markup=False, highlight=False, style="red")
    raise typer.Exit(1)
