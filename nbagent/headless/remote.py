"""Asks a kernel that runs elsewhere on this machine, by its connection file, without leaving a trace in it.

A request is one silent line of Python that publishes its answer. One that is cancelled is interrupted if it runs, and
does not run if it waits: its ticket (a file) is gone. Must not know what is asked. Read `RemoteKernel.ask`.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_client import find_connection_file
from jupyter_client.asynchronous.client import AsyncKernelClient

from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.messages import Json

_LOOK = 1.0  # seconds between two looks whether the kernel still lives
_TRIES = 40
_LINE = (
    "await __import__('importlib').import_module({module!r}).answer(__import__('IPython').get_ipython(), {request!r})"
)


class RemoteKernel:
    """A running Python kernel, reached by its connection file; raises `ConfigError` where there is none.

    `module` answers in the kernel (a function `answer(shell, request)`) with an output of type `mime`.
    """

    def __init__(self, connection: str, module: str, mime: str) -> None:
        try:
            self.file = connection if Path(connection).is_file() else find_connection_file(connection)
        except OSError:
            raise ConfigError(
                f"There is no running kernel {connection!r}. Give the path of a connection file (%connect_info shows "
                "it in a notebook), or its id."
            ) from None
        self._module, self._mime = module, mime
        self._turn = asyncio.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="nbagent-")
        client: Any = AsyncKernelClient()
        try:
            client.load_connection_file(self.file)
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(f"{connection} is no connection file of a kernel: {error}.") from error
        client.start_channels()
        self._client = client
        self._heard = False

    def close(self) -> None:
        """Let go of the kernel; it goes on."""
        self._client.stop_channels()
        self._folder.cleanup()

    async def ask(
        self, request: Json, encode: Callable[[Json], str], waiting: Callable[[], None] = lambda: None
    ) -> Json:
        """Send a request and return the answer; `waiting` is called where the kernel is busy with something else.

        Raises:
            ToolError: the kernel is gone, or nbagent is not there in it.
        """
        async with self._turn:
            await self._reach()
            ticket = Path(self._folder.name) / uuid.uuid4().hex
            ticket.touch()
            full = {**request, "id": ticket.name, "ticket": str(ticket)}
            line = _LINE.format(module=self._module, request=encode(full))
            sent: str = self._client.execute(line, silent=True, store_history=False, allow_stdin=False)
            running = [False]
            try:
                return await self._answer(sent, running, waiting)
            except asyncio.CancelledError:
                if running[0]:
                    self._interrupt()
                raise
            finally:
                with contextlib.suppress(OSError):
                    ticket.unlink()

    async def _reach(self) -> None:
        """Wait until something is heard of the kernel: what it says before that would be lost, and the answer with it.

        Asked on the control channel, which answers while code runs.
        """
        for _ in range(_TRIES):
            if self._heard:
                return
            self._client.control_channel.send(self._client.session.msg("kernel_info_request", {}))
            with contextlib.suppress(queue.Empty):
                await self._client.get_iopub_msg(timeout=_LOOK / 2)
                self._heard = True
        if not self._heard:
            raise ToolError("The kernel does not answer: it has ended, or it can't be reached.")

    async def _answer(self, sent: str, running: list[bool], waiting: Callable[[], None]) -> Json:
        found: Json | None = None
        failure = ""
        while True:
            try:
                message = await self._client.get_iopub_msg(timeout=_LOOK)
            except queue.Empty:
                if not self._client.hb_channel.is_beating():
                    raise ToolError("The kernel is gone, so nobody knows what became of this call.") from None
                if not running[0]:
                    waiting()
                continue
            if message.get("parent_header", {}).get("msg_id") != sent:
                continue
            content: Json = message["content"]
            kind = message["header"]["msg_type"]
            if kind == "status" and content["execution_state"] == "busy":
                running[0] = True
            elif kind == "display_data" and self._mime in content["data"]:
                found = content["data"][self._mime]
            elif kind == "error":
                failure = f"{content.get('ename')}: {content.get('evalue')}"
            elif kind == "status" and content["execution_state"] == "idle":
                if found is not None:
                    return found
                raise ToolError(await self._why_not(failure))

    async def _why_not(self, failure: str) -> str:
        if "nbagent" in failure and "ModuleNotFoundError" in failure:
            return "nbagent is not installed in that kernel's environment, so it can't be reached from outside."
        return f"The kernel gave no answer{f' ({failure})' if failure else ''}. Only Python kernels can be reached."

    def _interrupt(self) -> None:
        self._client.control_channel.send(self._client.session.msg("interrupt_request", {}))
