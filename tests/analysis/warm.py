"""Real kernels that start in a tenth of a second: forked from a process that has imported what a task needs.

Each is an ipykernel of its own, with its own process, namespace and connection file; only the modules are there already
(pandas and matplotlib take seconds of CPU, twenty times over). Jupyter starts `client`, as its kernel spec says, which
asks the parent for a fork and passes signals on. Stdlib only at the top: the client must be quick. Read `Warm`.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
NAME = "nbagent-warm"
IMPORTED = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "pandas", "numpy", "pyarrow.parquet", "openpyxl", "duckdb", "matplotlib.pyplot",
    "matplotlib.dates", "matplotlib.backends.backend_agg", "anthropic", "anthropic.lib.tools.agent_toolset",
    "anthropic.types.beta", "anywidget", "ipywidgets", "nbagent", "nbagent.app.cell", "nbagent.app.extension", "nbagent.app.magics",
    "nbagent.app.assembly", "nbagent.app.runtools", "nbagent.models.anthropic", "nbagent.view", "markdown_it", "pygments.lexers.python",
)  # fmt: skip
"""What the parent has imported; not matplotlib's inline backend, which asks for the kernel's shell when it is imported."""


class Warm:
    """The parent process and its kernel spec; use it with `with`, and `NAME` as the kernel's name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._address = str(folder / "warm.sock")
        self._path = os.environ.get("JUPYTER_PATH")

    def __enter__(self) -> Self:
        spec = self._folder / "kernels" / NAME / "kernel.json"
        spec.parent.mkdir(parents=True)
        argv = [sys.executable, "-I", "-S", __file__, "client", self._address, "{connection_file}"]
        spec.write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}), encoding="utf-8")
        os.environ["JUPYTER_PATH"] = os.pathsep.join(part for part in (str(self._folder), self._path) if part)
        # as a kernel sets it for itself, and before matplotlib is imported
        env = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "parent", self._address], env=env, cwd=ROOT, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        if ready != b"ready\n":
            self.__exit__()
            raise AssertionError("the warm parent did not start: it says above why")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._path is None:
            os.environ.pop("JUPYTER_PATH", None)
        else:
            os.environ["JUPYTER_PATH"] = self._path


# ── in the process that Jupyter starts ───────────────────────────────────────────────────────────────────────────────


def client(address: str, connection_file: str) -> None:
    """Ask for a kernel and live as long as it does; what is told to this process goes to the kernel."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        asked = {"file": connection_file, "cwd": str(Path.cwd()), "env": dict(os.environ)}
        connection.sendall(json.dumps(asked).encode() + b"\n")
        pid = int(connection.recv(32))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda given, _frame: os.kill(pid, given))
        while True:
            with contextlib.suppress(InterruptedError):
                if not connection.recv(1):
                    return


# ── in the parent ────────────────────────────────────────────────────────────────────────────────────────────────────


def parent(address: str) -> None:
    """Import, then fork a kernel for each client; a client that is gone takes its kernel with it."""
    import gc
    import importlib

    sys.path[:] = [
        path for path in sys.path if path != str(Path(__file__).parent)
    ]  # its folders are no modules of others
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    kernels: dict[socket.socket, int] = {}
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as waiting:
        listener.bind(address)
        listener.listen()
        waiting.register(listener, selectors.EVENT_READ)
        waiting.register(woken, selectors.EVENT_READ)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            for key, _ in waiting.select():
                here: Any = key.fileobj
                if here is listener:
                    connection, _ = listener.accept()
                    kernels[connection] = _forked(connection, (listener, woken, waker, *kernels))
                    waiting.register(connection, selectors.EVENT_READ)
                elif here is woken:
                    woken.recv(64)
                elif here in kernels and not here.recv(64):
                    os.kill(kernels[here], signal.SIGKILL)
            for connection in [one for one, pid in kernels.items() if _ended(pid)]:
                waiting.unregister(connection)
                connection.close()
                del kernels[connection]


def _ended(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] != 0


def _forked(connection: socket.socket, others: tuple[socket.socket, ...]) -> int:
    """Fork a kernel for the client on `connection` and return its process id to it and here."""
    text = b""
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 20)
    asked = json.loads(text)
    pid = os.fork()
    if pid:
        connection.sendall(str(pid).encode())
        return pid
    try:
        _become_kernel(connection, others, asked)
    finally:
        os._exit(0)


def _become_kernel(connection: socket.socket, others: tuple[socket.socket, ...], asked: dict[str, Any]) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for other in others:
        other.close()
    connection.detach()  # open until this process ends: that is how the client hears of it
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.setsid()
    os.environ.clear()
    os.environ.update({name: value for name, value in asked["env"].items() if name != "JPY_PARENT_PID"})
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    os.chdir(asked["cwd"])
    from ipykernel.kernelapp import IPKernelApp

    sys.argv = ["ipykernel_launcher", "-f", asked["file"]]
    IPKernelApp.launch_instance()


if __name__ == "__main__":
    {"client": client, "parent": parent}[sys.argv[1]](*sys.argv[2:])
