"""Runs the agent's code in the person's own kernel, through IPython, and reads their variables.

The code runs in a task of its own, so that awaiting code can be stopped and what it prints can be told from what the
agent's cell prints. It works from inside an awaited cell (notebook) and from a plain loop (terminal, tests).
This module must not know what asked for the code, nor where its outputs go. Read `ShellKernel._execute` first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import time
import types
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbagent.core.errors import Interrupted
from nbagent.core.ports import Output, Ran
from nbagent.jupyter.capture import Capture, safe_str
from nbagent.jupyter.commands import end_processes, group_members
from nbagent.jupyter.flood import Flood
from nbagent.jupyter.interrupts import OWNER, Gate, end_task
from nbagent.jupyter.outputs import Outputs

_AGENT_CELL = re.compile(r"\A(?:\s*(?:#[^\n]*)?\n)*\s*%%?agent\b")
_REFUSED = "an agent's code cannot start another agent: %agent and %%agent are for people"
_SETTLE = 10  # turns of the loop: a cancellation takes a few from the cell's task to here
_SHELLS = (
    "In", "Out", "_ih", "_oh", "_dh", "get_ipython", "exit", "quit", "__name__", "__builtin__", "__builtins__",
)  # fmt: skip
_LAST = ("last_type", "last_value", "last_traceback", "last_exc")


@dataclass(slots=True)
class _Report:
    """What IPython told of a run. The exception itself is not kept: it would pin every frame's variables."""

    number: int | None = None
    error: str = ""
    message: str = ""


Body = Callable[[], Awaitable[_Report]]


class ShellKernel:
    """The kernel port over an IPython InteractiveShell (ipykernel's, the terminal's or a plain one).

    Floods of output are kept whole in files in the folder `floods` (None: nowhere).
    """

    def __init__(self, shell: Any, *, floods: Path | None = None) -> None:
        self._shell = shell
        self._floods = floods
        self._lock = asyncio.Lock()  # one piece of code at a time: what is patched is the kernel's
        self._running = False
        self._gate: Gate | None = None
        self._lent: dict[str, Any] | None = None  # the person's namespace, while the shell works in a copy

    @property
    def gate(self) -> Gate | None:
        """The gate of the code that runs in here now."""
        return self._gate

    @property
    def running(self) -> bool:
        """Whether code runs in here now."""
        return self._running

    def namespace(self) -> Mapping[str, Any]:
        """Return the person's variables by name: no underscore names, none that IPython put there itself."""
        hidden = self._shell.user_ns_hidden
        names = self._shell.user_ns if self._lent is None else self._lent
        return {
            name: value
            for name, value in list(names.items())
            if not name.startswith("_") and not (name in hidden and hidden[name] is value)
        }

    async def run(self, code: str, *, emit: Callable[[Output], None], timeout: float | None) -> Ran:
        """Run `code` as a cell of the person's, with history and execution count.

        `emit` gets every output as it comes, one call at a time, from the main thread or, while that is busy, from a
        helper thread. Streams come in pieces of any length. exit(), quit(), input() and %agent are refused as errors.

        Args:
            code: the source of a cell, magics, `!` lines and top-level await included.
            emit: see `CellSink.emit`.
            timeout: seconds until the code is stopped; None for no limit.

        Raises:
            Interrupted: a person interrupted synchronous code; an interrupt while code awaits cancels the caller.
        """
        body = self._cell(code, store_history=True)
        async with self._lock:
            return await self._execute(code, body, emit=emit, timeout=timeout, scratch=None)

    async def scratch(self, code: str, *, timeout: float | None, emit: Callable[[Output], None] | None = None) -> Ran:
        """Run `code` in a shallow copy of the namespace and return what it showed; nothing is shown to the person.

        New, rebound and deleted names are as before afterwards, and so are In, Out, `_` and the execution count.
        `emit` hears the outputs as in `run`. Changes inside of objects (df["x"] = 1, items.append(1)), imports of modules and files persist. Functions of
        the person's see their own globals, not names rebound here.
        """
        body = self._cell(code, store_history=False)

        async def in_copy() -> _Report:
            with self._copied_namespace():
                return await body()

        async with self._lock:
            return await self._execute(code, in_copy, emit=emit, timeout=timeout, scratch=code)

    async def _execute(
        self,
        code: str,
        body: Body,
        *,
        emit: Callable[[Output], None] | None,
        timeout: float | None,
        scratch: str | None,
    ) -> Ran:
        started, processes = time.monotonic(), group_members()
        outputs = Outputs(emit, Flood(self._floods))
        report = _Report()
        pid = os.getpid()
        gate = Gate(timeout)
        try:
            if _AGENT_CELL.match(code):
                report = _Report(error="UsageError", message=_REFUSED)
            else:
                with gate, Capture(self._shell, outputs, gate, scratch=scratch) as capture:
                    self._running, self._gate = True, gate
                    report = await self._in_task(body, gate, capture, pid)
                    await capture.drain()
        finally:
            self._running, self._gate = False, None
            if gate.person or gate.timed_out:
                end_processes(processes)  # what stopped code has started must not go on alone
            if report.error and not outputs.errors:
                outputs.add({"output_type": "error", "ename": report.error, "evalue": report.message,
                             "traceback": [f"{report.error}: {report.message}"]})  # fmt: skip
            failed = outputs.errors > 0
            kept = outputs.close()
        if gate.person:
            raise Interrupted(_stream_text(kept))
        seconds = time.monotonic() - started
        if gate.timed_out:
            note = f"stopped after {seconds:.1f} s: the time limit is {timeout:g} s"
            return Ran("timeout", kept, report.number, seconds, note)
        return Ran("error" if failed or report.error else "ok", kept, report.number, seconds)

    async def _in_task(self, body: Body, gate: Gate, capture: Capture, pid: int) -> _Report:
        """Run `body` in its own task; at the time limit or when the caller is cancelled, cancel it and see it end."""
        for _ in range(_SETTLE):  # an interrupt from right before gets through: the loop hears nothing while code runs
            await asyncio.sleep(0)
        task = asyncio.get_running_loop().create_task(_owned(body, gate, pid), name="nbagent-code")
        try:
            await asyncio.wait({task}, timeout=gate.left())
            if not task.done():
                gate.timed_out = True
                await end_task(task)
        except asyncio.CancelledError:
            gate.person = True
            await end_task(task)
            await capture.drain()
            raise
        if not task.done():
            return _Report(error="TimeoutError", message="the code ignores cancellation and still runs")
        return task.result() if not task.cancelled() else _Report(error="CancelledError", message="stopped")

    def _cell(self, code: str, *, store_history: bool) -> Body:
        """Return what runs `code` through IPython, with the events that end a cell (figures are drawn there)."""
        shell = self._shell

        async def body() -> _Report:
            with self._nothing_kept(), self._own_names():
                source, failure = transformed(shell, code)
                cell = shell.run_cell_async(
                    code,
                    store_history=store_history,
                    transformed_cell=source,
                    preprocessing_exc_tuple=failure,
                )
                result, error = await _result_of(cell)
                shell.events.trigger("post_execute")
                if result is not None:
                    shell.events.trigger("post_run_cell", result)
                    error = result.error_before_exec or result.error_in_exec
                number = result.execution_count if result is not None and store_history else None
                report = _Report(number=number)
                if error is not None:
                    report.error, report.message = type(error).__name__, safe_str(error)
                return report

        return body

    @contextlib.contextmanager
    def _own_names(self) -> Generator[None]:
        """Put back what IPython itself needs of the namespace where the code has deleted it (`globals().clear()`)."""
        names = self._shell.user_ns
        before = {name: names[name] for name in _SHELLS if name in names}
        try:
            yield
        finally:
            for name, value in before.items():
                names.setdefault(name, value)

    @contextlib.contextmanager
    def _nothing_kept(self) -> Generator[None]:
        """Put back what IPython and Python keep of the last failure and result: they would pin big variables."""
        shell = self._shell
        before = {name: getattr(sys, name) for name in _LAST if hasattr(sys, name)}
        result, exec_result = shell.last_execution_result, shell.displayhook.exec_result
        succeeded = shell.last_execution_succeeded
        tracer, traceback = shell.InteractiveTB, getattr(shell.InteractiveTB, "tb", None)
        try:
            yield
        finally:
            for name in _LAST:
                if name in before:
                    setattr(sys, name, before[name])
                elif hasattr(sys, name):
                    delattr(sys, name)
            shell.last_execution_result, shell.displayhook.exec_result = result, exec_result
            shell.last_execution_succeeded = succeeded
            tracer.tb = traceback

    @contextlib.contextmanager
    def _copied_namespace(self) -> Generator[None]:
        """Let the shell work in a copy.

        Both of its dicts are swapped for one, so that functions that are defined here see each other, and so that
        magics, `!` lines and {x} in them see the names of this code; compiling and running the code by ourselves
        would leave `%time x = 1` in the person's namespace.
        """
        shell = self._shell
        module, namespace = shell.user_module, shell.user_ns
        copy = types.ModuleType(module.__name__, module.__doc__)
        vars(copy).update(vars(module))
        vars(copy).update(namespace)
        hidden = dict(shell.user_ns_hidden)
        shell.user_module, shell.user_ns, self._lent = copy, vars(copy), namespace
        try:
            yield
        finally:
            shell.user_module, shell.user_ns, self._lent = module, namespace, None
            shell.user_ns_hidden.clear()
            shell.user_ns_hidden.update(hidden)


async def _owned(body: Body, gate: Gate, pid: int) -> _Report:
    """Run `body` as code that `gate` may stop; nothing of a person's interrupt leaves this task as an exception."""
    OWNER.set(gate)
    try:
        with gate.armed():
            report = await body()
    except (KeyboardInterrupt, SystemExit) as stop:
        report = _Report(error=type(stop).__name__, message="stopped")
    if os.getpid() != pid:
        # Code that forked and fell through: the child must not go on as a second kernel.
        sys.stdout.flush()
        os._exit(0)
    return report


async def _result_of(cell: Awaitable[Any]) -> tuple[Any, Exception | None]:
    """Await IPython's run of a cell: its result, or what IPython itself failed with (an error whose str() fails)."""
    try:
        return await cell, None
    except Exception as error:  # noqa: BLE001  (IPython calls __str__ of whatever the code raised)
        return None, error


def _stream_text(outputs: tuple[Output, ...]) -> str:
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def transformed(shell: Any, code: str) -> tuple[str, Any]:
    """Return what IPython makes of `code`, or the code and what a transformer raised, for IPython to show."""
    try:
        return shell.transform_cell(code), None
    except Exception:  # noqa: BLE001  (transformers are other people's code)
        return code, sys.exc_info()
