"""Sends every output of the agent's code to one place while it runs, and nothing else's.

What belongs to the code is told by the context (`OWNER`), which its tasks inherit, and for threads by their age: those
that began meanwhile are its own. Everything is patched on the instances that IPython and ipykernel use, since replacing
`sys.stdout` would lose `os.system`, subprocesses and older logging handlers; all of it is put back on leaving.
This module must not decide what is run. Read `Capture.__enter__` first.
"""

from __future__ import annotations

import asyncio
import builtins
import getpass
import os
import sys
import threading
import tokenize
from collections.abc import Callable
from typing import Any, Self

from nbagent.core.messages import clean
from nbagent.jupyter.closing import spared
from nbagent.jupyter.commands import os_system, run_command
from nbagent.jupyter.descriptors import Watched
from nbagent.jupyter.interrupts import OWNER, Gate
from nbagent.jupyter.outputs import Outputs, as_json, clean_bundle

_EXIT_HINT = "To exit: use 'exit', 'quit', or Ctrl-D."
NO_INPUT = "input() is not available to the agent's code: nobody is asked while it runs. Use the ask_user tool instead."
NO_EXIT = "exit() and quit() are not available to the agent's code: they would end the person's kernel."
NO_RESET = "%reset is not available here: it would delete the person's variables and history."
_MISSING = object()


class KernelExitRefused(RuntimeError):
    """The agent's code tried to end the person's kernel."""


class Capture:
    """While entered, outputs of the code of `gate` go to `outputs`; input(), exit() and quit() are refused to it.

    `shell` is any IPython InteractiveShell. With `scratch` set to the code, values are shown and not kept in Out.
    """

    def __init__(self, shell: Any, outputs: Outputs, gate: Gate, *, scratch: str | None = None) -> None:
        self._shell = shell
        self._outputs = outputs
        self._gate = gate
        self._scratch = scratch
        self._undo: list[Callable[[], None]] = []
        self._pid = os.getpid()
        self._before: set[threading.Thread] = set()
        self._watched: list[Watched] = []
        self._child = (self._pid, "")  # what a forked child holds back of a line

    def __enter__(self) -> Self:
        shell = self._shell
        self._before = set(threading.enumerate())
        try:
            for name in ("stdout", "stderr"):
                self._patch_stream(name)
            self._patch(shell.display_pub, "publish", self._publish(shell.display_pub.publish))
            self._patch(shell.display_pub, "clear_output", self._clear_output(shell.display_pub.clear_output))
            self._patch(shell, "showtraceback", self._surface(shell.showtraceback))
            self._patch(shell, "_showtraceback", self._show_traceback(shell._showtraceback))  # noqa: SLF001
            self._patch(shell, "ask_exit", self._refuse(getattr(shell, "ask_exit", None), KernelExitRefused(NO_EXIT)))
            self._patch(shell, "keepkernel_on_exit", getattr(shell, "keepkernel_on_exit", None))
            self._patch(shell, "system", self._system(shell.system))
            self._patch(os, "system", self._os_system(getattr(os, "system")))  # noqa: B009  (old, but in use)
            self._patch(shell.events, "trigger", self._trigger(shell.events.trigger))
            self._patch(builtins, "input", self._refuse(builtins.input, EOFError(NO_INPUT)))
            self._patch(getpass, "getpass", self._refuse(getpass.getpass, EOFError(NO_INPUT)))
            if found := spared():
                self._patch(found[0], "close_all", staticmethod(found[1]))
            if self._scratch is not None:
                self._patch(shell, "reset", self._refuse(shell.reset, RuntimeError(NO_RESET)))
            hook = self._display_hook(sys.displayhook)
            self._patch(shell.display_trap, "hook", hook)
            self._patch(sys, "displayhook", hook)
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _restore(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _patch(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute on the very object, and remember how it was there (absent: inherited)."""
        before = vars(owner).get(name, _MISSING)
        if before is _MISSING and isinstance(getattr(type(owner), name, None), property):
            before = getattr(owner, name)
        if name == "hook":  # a trait keeps its value elsewhere
            before = owner.hook
        setattr(owner, name, value)
        self._undo.append(lambda: delattr(owner, name) if before is _MISSING else setattr(owner, name, before))

    def _mine(self) -> bool:
        """Whether the running code is the agent's: by its context, else by the age of its thread."""
        if self._outputs.emitting or os.getpid() != self._pid:
            return False
        if OWNER.get() is self._gate:
            return True
        thread = threading.current_thread()
        if thread.name.startswith("subshell-"):  # of ipykernel: it hands on a click in the page
            return False
        return any(thread is watched.watcher for watched in self._watched) or thread not in self._before

    # ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _patch_stream(self, name: str) -> None:
        stream: Any = getattr(sys, name)
        watched = Watched.of(stream)
        if watched is not None:
            self._watched.append(watched)
        stream.flush()
        self._undo.append(lambda: setattr(sys, name, stream))  # the code may put something else there, or nothing
        # where ipykernel watches the descriptor, a forked child's text comes back to us through it
        descriptor: int | None = getattr(stream, "_original_stdstream_fd", None)
        write, flush = self._write(name, stream, descriptor), self._flush(stream.flush, descriptor)
        if watched is not None:
            write = _apart(watched, write)
        try:
            self._patch(stream, "write", write)
            self._patch(stream, "flush", flush)
            self._patch(stream, "close", self._close(stream.close))
        except AttributeError:  # a plain text file: its methods cannot be set
            proxy = _Stream(stream, write, flush)
            self._patch(sys, name, proxy)

    def _close(self, original: Callable[[], None]) -> Callable[[], None]:
        """The kernel's own streams stay open: closed, they would never end the cell."""
        return lambda: None if self._mine() else original()

    def _write(self, name: str, stream: Any, descriptor: int | None) -> Callable[[str], int | None]:
        original, gate = stream.write, self._gate

        def write(text: str) -> int | None:
            if descriptor is not None and os.getpid() != self._pid:
                self._write_in_child(descriptor, text)
                return len(text)
            if not self._mine():
                return original(text)
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (the code may pass anything)
                raise TypeError(f"write() argument must be str, not {type(text).__name__}")
            if _EXIT_HINT in text and len(text) < 400:  # IPython's hint after SystemExit is no help to a model
                return len(text)
            gate.hold()
            try:
                self._outputs.write(name, text)
            finally:
                gate.release()
            return len(text)

        return write

    def _write_in_child(self, descriptor: int, text: str, *, end: bool = False) -> None:
        """Write whole lines, so that those of several children do not mix."""
        pid, held = self._child
        held = held + text if pid == os.getpid() else text
        if end or "\n" in held or len(held) > 4000:
            os.write(descriptor, clean(held).encode())
            held = ""
        self._child = (os.getpid(), held)

    def _flush(self, original: Callable[[], None], descriptor: int | None) -> Callable[[], None]:
        def flush() -> None:
            if os.getpid() != self._pid:
                if descriptor is not None:
                    self._write_in_child(descriptor, "", end=True)
                return
            if self._mine():
                self._gate.hold()
                try:
                    self._outputs.flush()
                finally:
                    self._gate.release()
            else:
                original()

        return flush

    async def drain(self) -> None:
        """Wait until what child processes wrote to the descriptors has arrived."""
        await asyncio.gather(*(watched.read_up() for watched in self._watched))

    # ── rich outputs ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, output: dict[str, Any]) -> None:
        self._gate.hold()
        try:
            self._outputs.add(output)
        finally:
            self._gate.release()

    def _publish(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def publish(data: Any, metadata: Any = None, *args: Any, **options: Any) -> None:
            if not self._mine():
                original(data, metadata, *args, **options)
                return
            self._shell.display_pub._validate_data(data, metadata)  # noqa: SLF001
            output = {"output_type": "display_data", "data": clean_bundle(data), "metadata": as_json(metadata or {})}
            if (display_id := (options.get("transient") or {}).get("display_id")) is not None:
                output["_display_id"] = str(display_id)
            if options.get("update"):
                output["_update"] = True
            self._add(output)

        return publish

    def _clear_output(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def clear_output(wait: bool = False) -> None:
            if self._mine():
                self._add({"output_type": "clear_output", "wait": bool(wait)})
            else:
                original(wait)

        return clear_output

    def _display_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def hook(result: Any = None) -> None:
            if not self._mine():
                original(result)
                return
            display = self._shell.displayhook
            if self._scratch is None:
                display.check_for_underscore()
            if result is None or self._quiet():
                return
            data, metadata = display.compute_format_data(result)
            number = display.prompt_count if self._scratch is None else None
            if self._scratch is None:
                display.update_user_ns(result)
                display.fill_exec_result(result)
            if data:
                self._add({"output_type": "execute_result", "execution_count": number, "data": clean_bundle(data),
                           "metadata": as_json(metadata or {})})  # fmt: skip
                if self._scratch is None:
                    display.log_output(data)

        return hook

    def _quiet(self) -> bool:
        display = self._shell.displayhook
        if self._scratch is None:
            return bool(display.quiet())
        try:
            return bool(display.semicolon_at_end_of_expression(self._scratch))
        except (tokenize.TokenError, SyntaxError):  # magics are not Python
            return self._scratch.rstrip().endswith(";")

    def _show_traceback(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def show(etype: type[BaseException], evalue: Any, stb: list[str]) -> None:
            if not self._mine():
                original(etype, evalue, stb)
                return
            value, lines = safe_str(evalue), [str(line) for line in stb]
            if said := self._explain(etype):
                value, lines = said, [*lines, said]
            self._add({"output_type": "error", "ename": etype.__name__, "evalue": clean(value),
                       "traceback": [clean(line) for line in lines]})  # fmt: skip

        return show

    def _surface(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Keep signals out of IPython while it formats a traceback, which may take long: it would show none."""

        def show(*args: Any, **options: Any) -> Any:
            if not self._mine():
                return original(*args, **options)
            self._gate.surfaced(sys.exc_info()[1])
            self._gate.hold()
            try:
                return original(*args, **options)
            finally:
                self._gate.release()

        return show

    def _explain(self, etype: type[BaseException]) -> str:
        """Say in words why code ended that did not fail by itself."""
        if self._gate.timed_out and issubclass(etype, KeyboardInterrupt | SystemExit | asyncio.CancelledError):
            return f"stopped: the time limit of {self._gate.timeout:g} s was reached"
        if self._gate.person and issubclass(etype, KeyboardInterrupt | SystemExit | asyncio.CancelledError):
            return "stopped: interrupted by hand"
        if issubclass(etype, SystemExit):
            return "the code ended here with SystemExit; the person's kernel lives on"
        return ""

    def _trigger(self, original: Callable[..., None]) -> Callable[..., None]:
        """Have open figures drawn where they belong: in this code's outputs, at its end.

        A message of a widget that comes while the code awaits ends like a cell of its own; what is drawn there has the
        message as parent, and the page drops it.
        """

        def trigger(event: str, *args: Any, **options: Any) -> None:
            if not self._mine():
                if event != "post_execute":
                    original(event, *args, **options)
                return
            self._outputs.flushing = event == "post_execute"
            try:
                original(event, *args, **options)
            finally:
                self._outputs.flushing = False

        return trigger

    # ── refused ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _refuse(self, original: Callable[..., Any] | None, error: Exception) -> Callable[..., Any]:
        def refuse(*args: Any, **options: Any) -> Any:
            __tracebackhide__ = True  # IPython leaves such frames out of tracebacks
            if original is None or self._mine():
                raise error.with_traceback(None)
            return original(*args, **options)

        return refuse

    def _system(self, original: Callable[[str], Any]) -> Callable[[str], Any]:
        def system(cmd: str) -> Any:
            if not self._mine():
                return original(cmd)
            return run_command(self._shell, self._shell.var_expand(cmd, depth=1))

        return system

    def _os_system(self, original: Callable[..., int]) -> Callable[..., int]:
        def system(command: str | bytes) -> int:
            return os_system(command) if self._mine() else original(command)

        return system


def _apart(watched: Watched, write: Callable[[str], int | None]) -> Callable[[str], int | None]:
    """Have what comes from the descriptor go through `watched`."""

    def write_apart(text: str) -> int | None:
        if threading.current_thread() is not watched.watcher:
            return write(text)
        watched.hand_on(text, write)
        return len(text)

    return write_apart


class _Stream:
    """Stands for a text file whose methods cannot be replaced."""

    def __init__(self, stream: Any, write: Callable[[str], int | None], flush: Callable[[], None]) -> None:
        self._stream = stream
        self.write = write
        self.flush = flush

    def close(self) -> None:
        """Do nothing: what it stands for is not the code's to close."""

    def writelines(self, lines: Any) -> None:
        """Write each of `lines`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def safe_str(value: object) -> str:
    """Return `str(value)`, or a note where the object's own code fails."""
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001  (any object's __str__ may raise anything)
        return f"<str failed: {type(error).__name__}>"
