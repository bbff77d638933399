"""The kernel's side of `nbagent mcp-serve --kernel`: what that program sends in runs here, in the person's own kernel.

Nothing is decided here: the program that serves has asked the policy, and perhaps a person, before it sends a call. What
it sends is silent: no cell, no count, no name is left. Read `answer`.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from nbagent.core.errors import Interrupted, ToolError
from nbagent.core.messages import Json, text_block
from nbagent.core.ports import Kernel, Preview
from nbagent.core.tools import Call, Kind, Result, Tool, tool
from nbagent.tools import python, variables
from nbagent.tools.effects import hints, kind_of

MIME = "application/vnd.nbagent.served+json"
"""The type of the one output in which an answer goes back."""
CANCELLED = "The call was cancelled before the kernel had time for it, so it did not run."


def tools(kernel: Kernel, *, timeout: float | None) -> list[Tool]:
    """Return the tools of a kernel that is reached from outside of any notebook."""

    def kind(given: Json) -> Kind:
        return kind_of(given["code"], Kind.RUN_CELL, kernel.namespace())

    def preview(given: Json) -> Preview:
        return Preview("code", given["code"], effects=hints(given["code"], kernel.namespace()))

    @tool(kind=kind, subject="code", title=lambda given: _first(given["code"]), preview=preview, exact=True)
    async def run_code(_call: Call, code: str) -> Result:
        """Run Python in the kernel as a cell of the person's would: names are kept. No cell is added to a notebook.

        Args:
            code: Python source; magics and top-level await work.
        """
        return python.ran_result(await kernel.run(code, emit=lambda _: None, timeout=timeout))

    return [*variables.tools(kernel), *python.tools(kernel, timeout=timeout), run_code]


async def answer(shell: Any, request: str) -> None:
    """Do what `request` (JSON) asks for and publish the answer: how a call is to be decided, or what it gave."""
    asked: Json = json.loads(request)
    said = await _answer(shell, asked)
    shell.display_pub.publish({MIME: {"id": asked["id"], **said}, "text/plain": ""})


async def _answer(shell: Any, asked: Json) -> Json:
    found = next(t for t in _guarded(shell, asked.get("timeout")) if t.name == asked["tool"])
    if not os.path.exists(str(asked["ticket"])):  # noqa: ASYNC240, PTH110  (one look at a local file)
        return {"error": CANCELLED}
    given: Json = asked["given"]
    if asked["do"] == "describe":
        return {
            "kind": found.kind(given).name,
            "subject": found.subject(given),
            "title": found.title(given),
            "preview": found.preview(given).to_json(),
        }
    try:
        result = await found.run(Call(str(asked["id"]), lambda _: None, _nobody), given)
    except ToolError as error:
        return {"error": str(error)}
    except Interrupted as stopped:
        return {"interrupted": stopped.output}
    return {k: v for k, v in dataclasses.asdict(result).items() if k in {"content", "summary", "is_error"}}


def _first(code: str) -> str:
    lines = code.strip().splitlines()
    return f"run: {lines[0][:80]}" if lines else "run nothing"


async def _nobody(_: Any) -> str:
    return ""


def _guarded(shell: Any, timeout: float | None) -> list[Tool]:
    """Return the tools behind what the person of this kernel hides: what they give goes to another agent."""
    from nbagent.app.extension import current
    from nbagent.core.errors import ConfigError
    from nbagent.extend.seals import Seals
    from nbagent.tools.guarded import guarded
    from nbagent.tools.vault import Vault

    try:
        extension = current(shell)
    except ConfigError:  # nbagent is not loaded: nothing is hidden, and secrets are masked for good
        vault = Vault(Seals().seal)
        vault.learn_environment(os.environ)
        return [guarded(tool, vault) for tool in tools(_kernel(shell), timeout=timeout)]
    extension.privacy.use(extension.settings())
    return [extension.privacy.tool(tool) for tool in tools(extension.privacy.kernel(extension.kernel), timeout=timeout)]


def _kernel(shell: Any) -> Kernel:
    """The kernel of an nbagent that is loaded, else one made for the moment: code runs one piece at a time."""
    from nbagent.app.extension import current
    from nbagent.core.errors import ConfigError
    from nbagent.jupyter.kernel import ShellKernel

    try:
        return current(shell).kernel
    except ConfigError:
        return ShellKernel(shell)


def result_of(said: Json) -> Result:
    """Read the answer to a call; raises `ToolError` or `Interrupted` as the tool itself did."""
    if "error" in said:
        raise ToolError(str(said["error"]))
    if "interrupted" in said:
        raise Interrupted(str(said["interrupted"]))
    return Result(tuple(said["content"]) or (text_block("(no output)"),), said["summary"], bool(said["is_error"]))
