"""Plays the page inside nbclient: a notebook runs without a browser, and an agent's cells are really added to it.

The kernel notices no difference but `interactive: false`: nobody can click, so its policy decides. nbclient keeps
running the notebook that it was given, in its order; the cells that the agent adds live in the `Document` beside it and
become the notebook's at the end. Read `run_notebook`, then `PageClient`.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import nbformat
import zmq
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

from nbagent.core.messages import Json
from nbagent.core.ports import Output
from nbagent.headless.document import Document, Refusal

VERSION = 1
PROTOCOL = "nbagent-bridge/1"
PAGE = "headless"
SUBSHELL_TIMEOUT = 10.0
COMMS_ARRIVE_SINCE = (7, 4)
"""The version of ipykernel that delivers comm messages to the main shell while a cell runs."""

_ENCRYPTED = Config({"KernelManager": {"transport_encryption": "auto"}})
"""Encrypt what goes to and from the kernel where it can; a kernel that could, and is not asked to, prints a warning."""

OnOutput = Callable[[NotebookNode, Output], None]


class PageClient(NotebookClient):
    """An nbclient that answers the bridge's messages. `on_output` is told of each new output of any cell.

    `save_to` is where the agent's saves go (None: nowhere before the end).
    """

    def __init__(
        self,
        nb: NotebookNode,
        *,
        path: str = "notebook.ipynb",
        save_to: Path | None = None,
        on_output: OnOutput = lambda _cell, _output: None,
        **options: Any,
    ) -> None:
        _give_ids(nb)
        super().__init__(nb, **options)
        self._on_output = on_output
        self._save_to = save_to
        self._bridges: set[str] = set()
        self._subshell: str | None = None
        self._asked_subshell = False
        self.document = Document(
            nb.cells,
            path=path,
            save=self._save,
            shown=on_output,
            recorded=self._recorded,
        )

    # ── running ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def async_execute(self, reset_kc: bool = False, **kwargs: Any) -> NotebookNode:
        """Run every cell that the notebook had at the start; afterwards it has the added cells too, error or not."""
        try:
            return await super().async_execute(reset_kc, **kwargs)
        finally:
            self.nb.cells[:] = self.document.cells

    execute = run_sync(async_execute)

    def _recorded(self, cell_id: str) -> None:
        """Let no late update reach a cell that has its record; it need not be the one that runs."""
        for index, cell in enumerate(self.nb.cells):
            if cell["id"] == cell_id:
                self.clear_display_id_mapping(index)

    async def async_execute_cell(
        self,
        cell: NotebookNode,
        cell_index: int,
        execution_count: int | None = None,  # noqa: ARG002  (cells that the agent runs count too: the kernel knows)
        store_history: bool = True,
    ) -> NotebookNode:
        """Run one cell, unless the agent has deleted it."""
        if not any(known is cell for known in self.document.cells):
            return cell
        await self._open_subshell()
        self.document.current = cell["id"]
        try:
            return await super().async_execute_cell(cell, cell_index, None, store_history)
        finally:
            self.document.current = None

    execute_cell = run_sync(async_execute_cell)

    def output(
        self, outs: list[NotebookNode], msg: dict[str, Any], display_id: str | None, cell_index: int
    ) -> NotebookNode | None:
        """Keep an output of the running cell, and tell of it; pieces of one stream become one output, as in a page."""
        out = super().output(outs, msg, display_id, cell_index)
        if out is None:
            return None
        self._on_output(self.nb.cells[cell_index], cast("Output", out))
        before = outs[-2] if len(outs) > 1 else None
        if out.output_type == "stream" and before and before.output_type == "stream" and before.name == out.name:
            before.text += out.text
            outs.pop()
            return before
        return out

    async def _async_poll_output_msg(self, parent_msg_id: str, cell: NotebookNode, cell_index: int) -> None:
        """As nbclient's, but comm messages count whatever caused them: a kernel thread sends without the cell's id."""
        from nbclient.exceptions import CellExecutionComplete  # noqa: PLC0415  (private method, private need)

        while True:
            msg: Any = await self._iopub_message()
            if msg["parent_header"].get("msg_id") == parent_msg_id:
                try:
                    self.process_message(msg, cell, cell_index)
                except CellExecutionComplete:
                    return
            elif msg["msg_type"].startswith("comm_"):
                self.handle_comm_msg(cell.outputs, msg, cell_index)

    async def _iopub_message(self) -> Any:
        kc: Any = self.kc
        return await kc.iopub_channel.get_msg(timeout=None)

    # ── the page ────────────────────────────────────────────────────────────────────────────────────────────────────

    def handle_comm_msg(self, outs: list[NotebookNode], msg: dict[str, Any], cell_index: int) -> None:
        """Answer the bridge; all other widgets are nbclient's. State of closed widgets is not kept."""
        content: Any = msg["content"]
        comm, data = content["comm_id"], content.get("data") or {}
        if msg["msg_type"] == "comm_open" and (data.get("state") or {}).get("protocol") == PROTOCOL:
            self._bridges.add(comm)
            return
        if comm not in self._bridges:
            super().handle_comm_msg(outs, msg, cell_index)
            if msg["msg_type"] == "comm_close":
                self.widget_state.pop(comm, None)
                self.widget_buffers.pop(comm, None)
        elif msg["msg_type"] == "comm_close":
            self._bridges.discard(comm)
        elif data.get("method") == "custom":
            self._answer(comm, data.get("content") or {})

    def _answer(self, comm: str, request: Json) -> None:
        if request.get("v") != VERSION or (request.get("op") != "hello" and request.get("page") != PAGE):
            return
        reply: Json
        try:
            reply = {"ok": True, "result": self.document.perform(request)}
        except Refusal as refusal:
            reply = {"ok": False, "error": str(refusal), "code": refusal.code, "more": {"cell": refusal.cell}}
        except (KeyError, TypeError, ValueError, OSError) as error:  # a malformed request, a disk that is full
            reply = {"ok": False, "error": f"{type(error).__name__}: {error}", "code": "failed"}
        if request.get("id"):
            self._send(comm, {"v": VERSION, "page": PAGE, "id": request["id"], **reply})

    def _send(self, comm: str, content: Json) -> None:
        kc: Any = self.kc
        message = kc.session.msg(
            "comm_msg", content={"comm_id": comm, "data": {"method": "custom", "content": content}}
        )
        if self._subshell is not None:
            message["header"]["subshell_id"] = self._subshell
        send(kc.shell_channel, message)

    async def _open_subshell(self) -> None:
        """On ipykernel 7.0 to 7.3 answers reach a running cell through a subshell only, as JupyterLab does it."""
        if self._asked_subshell:
            return
        self._asked_subshell = True
        kc: Any = self.kc
        info = await self._reply_to(kc.shell_channel, kc.session.msg("kernel_info_request", {}))
        if "kernel subshells" in info.get("supported_features", []) and await self._version() < COMMS_ARRIVE_SINCE:
            created = await self._reply_to(kc.control_channel, kc.session.msg("create_subshell_request", {}))
            self._subshell = created.get("subshell_id")

    async def _version(self) -> tuple[int, ...]:
        """Ask for ipykernel's version: kernel_info tells IPython's."""
        kc: Any = self.kc
        asked = {"code": "", "silent": True, "store_history": False, "allow_stdin": False}
        wanted = {"version": "__import__('ipykernel').version_info[:2]"}
        reply = await self._reply_to(
            kc.shell_channel, kc.session.msg("execute_request", {**asked, "user_expressions": wanted})
        )
        shown = reply.get("user_expressions", {}).get("version", {}).get("data", {}).get("text/plain", "")
        return tuple(int(n) for n in re.findall(r"\d+", shown))

    async def _reply_to(self, channel: Any, request: Any) -> Json:
        send(channel, request)
        async with asyncio.timeout(SUBSHELL_TIMEOUT):
            while True:
                reply = await channel.get_msg(timeout=None)
                if reply["parent_header"].get("msg_id") == request["header"]["msg_id"]:
                    return reply["content"]

    def _save(self) -> None:
        if self._save_to is not None:
            write_notebook(self.whole(), self._save_to)

    def whole(self) -> NotebookNode:
        """Return the notebook as it is now, with the cells that were added."""
        return cast("NotebookNode", nbformat.from_dict({**self.nb, "cells": self.document.cells}))


def send(channel: Any, message: Json) -> None:
    """Send on a channel on which a reply may be awaited meanwhile.

    jupyter_client sends past the asyncio socket. That takes the signal of a message that came in the same moment, which
    libzmq gives only once: the awaited reply would lie there unread, and its cell run for ever.
    """
    channel.send(message)
    channel.socket.get(zmq.EVENTS)  # pyzmq looks then whether something is there to be read


async def run_notebook(
    nb: NotebookNode,
    *,
    path: Path,
    save_to: Path | None = None,
    kernel_name: str | None = None,
    env: Mapping[str, str] | None = None,
    on_output: OnOutput = lambda _cell, _output: None,
    timeout: float | None = None,
    allow_errors: bool = False,
) -> NotebookNode:
    """Run a notebook in a new kernel, in the folder of `path`, with a page that nobody looks at; return it, changed.

    `env` is added to the kernel's environment; `timeout` is in seconds for each cell; `on_output(cell, output)` is
    called with each new output as it comes. An agent's save goes to `save_to`. Raises nbclient's CellExecutionError,
    CellTimeoutError or DeadKernelError; `nb` then holds what was done so far.
    """
    options: dict[str, Any] = {"config": _ENCRYPTED, **({"kernel_name": kernel_name} if kernel_name else {})}
    client = PageClient(
        nb,
        path=str(path),
        save_to=save_to,
        on_output=on_output,
        timeout=timeout,
        allow_errors=allow_errors,
        resources={"metadata": {"path": str(path.parent)}},
        **options,
    )
    return await client.async_execute(env={**os.environ, **(env or {})})


def write_notebook(nb: NotebookNode, path: Path) -> None:
    """Write a valid notebook to `path` at once: readers see the old file or the new one. Keeps the file's mode."""
    nbformat.validate(nb)
    text: str = nbformat.writes(nb)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text if text.endswith("\n") else text + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.chmod(path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask())
        part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _give_ids(nb: NotebookNode) -> None:
    """Make `nb` a notebook of format 4.5, in which every cell has an id, in place."""
    if (nb.nbformat, nb.nbformat_minor) < (4, 5):
        newer = nbformat.convert(nb, 4)
        if newer is not nb:
            nb.clear()
            nb.update(newer)
        nb.nbformat_minor = 5
    taken: set[str] = set()
    for cell in nb.cells:
        if not cell.get("id") or cell["id"] in taken:
            cell["id"] = nbformat.v4.new_code_cell()["id"]
        taken.add(cell["id"])
