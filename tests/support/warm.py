"""Real kernels that start in a tenth of a second: forked from a process that has imported what a test needs.

Each is an ipykernel of its own, with its own process, namespace and connection file; only the modules are there already
(nbagent and Anthropic's client take two seconds of CPU, pandas and matplotlib one more, in hundreds of kernels). Jupyter
starts `client`, as its kernel spec says, which asks the parent for a fork and passes signals on. Who looks at what a
kernel imports, or kills one with all that it started, sets `COLD` in its environment and gets one that starts from
nothing, as everybody does on other versions of ipykernel (make test-places). Linux only. Stdlib only at the top: the
client must be quick. Read `Warm`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
ANALYST = "nbagent-analyst"
"""Name of the kernels that have an analyst's libraries; those named python3 have what any kernel imports for nbagent."""
COLD = "NBAGENT_TEST_COLD_KERNEL"
"""Name of the variable that asks for a kernel that starts from nothing."""
CORE = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.debugger", "IPython.core.completerlib", "IPython.extensions.storemagic",
    "anthropic", "anthropic.types.beta", "anthropic.lib.tools.agent_toolset", "anyio._backends._asyncio", "httpcore2", "truststore",
    "anywidget", "ipywidgets", "markdown_it", "pygments.lexers.python", "rich.console", "psutil", "yaml", "tornado.platform.asyncio",
    "nbagent.app.cell", "nbagent.app.extension", "nbagent.app.magics", "nbagent.app.assembly", "nbagent.app.runtools",
    "nbagent.app.completion", "nbagent.app.verifying", "nbagent.models.anthropic", "nbagent.jupyter.notebook", "nbagent.view.widget",
    "nbagent.view.record", "nbagent.view.terminal",
)  # fmt: skip
"""What a kernel has imported after its first agent cell."""
LIBRARIES = (
    "pandas", "numpy", "pyarrow.parquet", "openpyxl", "duckdb", "matplotlib.pyplot", "matplotlib.dates",
    "matplotlib.backends.backend_agg",
)  # fmt: skip
"""An analyst's libraries; not matplotlib's inline backend, which asks for the kernel's shell when it is imported."""


class Warm:
    """The parent process of kernels named `name`, and their kernel spec, put before all others by JUPYTER_PATH.

    The parent is started by `start`; until then, and where it is gone, its kernels are cold ones.
    """

    def __init__(self, folder: Path, name: str = "python3", modules: Sequence[str] = CORE) -> None:
        self._address = str(folder / "warm.sock")
        self._modules = modules
        self._process: subprocess.Popen[bytes] | None = None
        spec = folder / "kernels" / name / "kernel.json"
        spec.parent.mkdir(parents=True)
        argv = [sys.executable, "-I", "-S", __file__, "client", self._address, "-f", "{connection_file}"]
        told = {"argv": argv, "display_name": "Python 3", "language": "python", "metadata": {"debugger": True}}
        spec.write_text(json.dumps(told), encoding="utf-8")
        known = os.environ.get("JUPYTER_PATH")
        os.environ["JUPYTER_PATH"] = os.pathsep.join(part for part in (str(folder), known) if part)

    def start(self) -> None:
        """Start the parent, if it is not there yet, without waiting: who asks too early waits in its queue."""
        if self._process is not None:
            return
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._address)
        listener.listen(64)
        # as a kernel sets it for itself, and before matplotlib is imported
        env = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
        argv = [sys.executable, __file__, "parent", str(listener.fileno()), *self._modules]
        with listener:
            self._process = subprocess.Popen(
                argv, env=env, cwd=ROOT, stdin=subprocess.PIPE, pass_fds=[listener.fileno()]
            )

    def stop(self) -> None:
        """End the parent."""
        Path(self._address).unlink(missing_ok=True)
        if self._process is not None:
            self._process.terminate()
            self._process.communicate(timeout=10)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


# ── in the process that Jupyter starts ───────────────────────────────────────────────────────────────────────────────


def client(address: str, *arguments: str) -> None:
    """Ask for a kernel and live as long as it does; what is told to this process goes to the kernel's."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        assert COLD not in os.environ
        connection.connect(address)
        asked = {"arguments": arguments, "cwd": str(Path.cwd()), "env": dict(os.environ)}
        socket.send_fds(connection, [b" "], [0, 1, 2])
        connection.sendall(json.dumps(asked).encode() + b"\n")
        pid = int(connection.recv(32) or 0)
    except (OSError, AssertionError):
        pid = 0
    if not pid:
        os.execv(sys.executable, [sys.executable, "-m", "ipykernel_launcher", *arguments])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda given, _frame: os.killpg(pid, given))
    started_by = os.getppid()
    while os.getppid() == started_by:  # as a kernel ends by itself when who started it is gone
        with contextlib.suppress(InterruptedError):
            if select.select([connection], [], [], 1)[0] and not connection.recv(1):
                return


# ── in the parent ────────────────────────────────────────────────────────────────────────────────────────────────────


def parent(listening: str, *modules: str) -> None:
    """Import, then fork a kernel for each client until stdin ends; a client that is gone takes its kernel with it."""
    import gc
    import importlib

    ours = {str(Path(__file__).parent), str(ROOT)}  # the first is of this script, the other is said again by who asks
    for name in modules:
        importlib.import_module(name)
    sys.path[:] = [path for path in sys.path if path not in ours]
    gc.collect()
    gc.freeze()
    kernels: dict[socket.socket, int] = {}
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listener = socket.socket(fileno=int(listening))
    waiting = selectors.DefaultSelector()
    for each in (listener, woken, sys.stdin):
        waiting.register(each, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            here: Any = key.fileobj
            if here is sys.stdin:
                return
            if here is listener:
                connection, _ = listener.accept()
                if pid := _forked(connection, (listener, woken, waker, waiting, *kernels)):
                    kernels[connection] = pid
                    waiting.register(connection, selectors.EVENT_READ)
            elif here is woken:
                woken.recv(64)
            elif here in kernels and _is_gone(here):
                for end in (os.killpg, os.kill):  # the second where it has no group of its own yet
                    with contextlib.suppress(ProcessLookupError):
                        end(kernels[here], signal.SIGKILL)
        for connection in [one for one, pid in kernels.items() if _ended(pid)]:
            waiting.unregister(connection)
            connection.close()
            del kernels[connection]


def _ended(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] != 0


def _is_gone(client: socket.socket) -> bool:
    try:
        return not client.recv(64)
    except ConnectionError:
        return True


def _interpreters(env: dict[str, str]) -> dict[str, str]:
    """Return what an interpreter reads when it starts; where to look for modules can be changed later."""
    return {k: v for k, v in env.items() if k.startswith("PYTHON") and k != "PYTHONPATH"}


def _forked(connection: socket.socket, others: Sequence[Any]) -> int:
    """Fork a kernel for the client on `connection`; return its process id to it and here, or 0 where a fork will not do."""
    text, streams, _, _ = socket.recv_fds(connection, 1, 3)
    while text and not text.endswith(b"\n"):
        if not (more := connection.recv(1 << 20)):
            text = b""
            break
        text += more
    asked = json.loads(text or b"{}")
    if not asked or _interpreters(asked["env"]) != _interpreters(dict(os.environ)):
        pid = 0
    elif not (pid := os.fork()):
        _live(connection, others, streams, asked)
    else:
        with contextlib.suppress(ConnectionError):  # it was not waited for: it will be ended
            connection.sendall(str(pid).encode())
    for stream in streams:
        os.close(stream)
    if not pid:
        connection.close()
    return pid


def _live(connection: socket.socket, others: Sequence[Any], streams: Sequence[int], asked: dict[str, Any]) -> None:
    """Be a kernel to its end, and end as an interpreter does."""
    import atexit
    import threading
    import traceback

    code = 1
    try:
        _become_kernel(connection, others, streams, asked)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException:  # said where a kernel says it
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


def _become_kernel(
    connection: socket.socket, others: Sequence[Any], streams: Sequence[int], asked: dict[str, Any]
) -> None:
    import ctypes

    # PR_SET_PDEATHSIG: without the parent nobody hears that the client is gone
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for other in others:
        other.close()
    connection.detach()  # open until this process ends: that is how the client hears of it
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.setsid()
    env = {name: value for name, value in asked["env"].items() if name != "JPY_PARENT_PID"}
    os.environ.clear()
    os.environ.update(env)
    os.chdir(asked["cwd"])
    sys.path[:0] = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # a kernel's numbers are its own
    from ipykernel.kernelapp import IPKernelApp

    sys.argv = ["ipykernel_launcher", *asked["arguments"]]
    IPKernelApp.launch_instance()


if __name__ == "__main__":
    {"client": client, "parent": parent}[sys.argv[1]](*sys.argv[2:])
