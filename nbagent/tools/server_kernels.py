"""Whether a Jupyter server has a notebook open, told by its kernels' processes where the server itself does not tell.

A session has a kernel, and a server starts it as a process below its own, with its own id in JPY_PARENT_PID and the
notebook's path in JPY_SESSION_NAME. So a server without kernels has nothing open, and one whose kernels all name other
notebooks has not this one. It is not known where a process can't be looked at, where a kernel names no notebook that is
there (it was renamed since), and where kernels run elsewhere (a gateway). Two things no process tells: a notebook that
joined the kernel of another one, and a gateway that only the server's configuration file names. Read `kernels_say`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PARENT = "JPY_PARENT_PID"
_SESSION = "JPY_SESSION_NAME"


def kernels_say(pid: int, address: int | str, root: str, wanted: str) -> bool | None:
    """Return whether a kernel of the server `pid` is of the notebook `wanted`; None where that is not known.

    `address` is the port, or the path of the socket, at which that server listens: another process with its number (of
    a container that shares the runtime folder, or of later) is not asked. `root` is where its relative paths begin;
    `wanted` is a real path, as `os.path.realpath` gives it.
    """
    if os.name == "nt":  # there JPY_PARENT_PID is a handle
        return None
    try:
        import psutil  # noqa: PLC0415  (comes with ipykernel; only when a server does not tell)
    except ImportError:
        return None
    try:
        server = psutil.Process(pid)
        if not _listens(server, address) or _has_gateway(server):
            return None
        names = list(_sessions(server, pid))
    except (psutil.Error, OSError):  # it, or a child of its, is not ours to look at, or ended just now
        return None
    return _among([os.path.normcase(os.path.realpath(Path(root) / name)) if name else "" for name in names], wanted)


def _listens(server: Any, address: int | str) -> bool:
    connections = getattr(server, "net_connections", None) or server.connections
    if isinstance(address, str):
        return any(c.laddr == address for c in connections(kind="unix"))
    return any(c.status == "LISTEN" and c.laddr.port == address for c in connections(kind="inet"))


def _has_gateway(server: Any) -> bool:
    return bool(server.environ().get("JUPYTER_GATEWAY_URL")) or any(
        "gateway" in part.lower() for part in server.cmdline()
    )


def _sessions(server: Any, pid: int) -> Iterator[str]:
    """Yield what each kernel below a server says that its session was called; "" where it says nothing.

    The server's own children that are no kernels (terminals, language servers) have the id of no server, or of another.
    """
    for process in server.children(recursive=True):
        given = process.environ()
        if given.get(_PARENT) == str(pid):
            yield given.get(_SESSION, "")


def _among(names: list[str], wanted: str) -> bool | None:
    """Whether `wanted` is one of the paths in `names`, None where one of them may stand for it."""
    if wanted in names:
        return True
    for name in names:
        path = Path(name)
        if not name or path.is_dir():
            return None
        if path.name == Path(wanted).name or (path.suffix == ".ipynb" and not path.exists()):
            return None  # the same name in another folder: shared notebooks are said to be in the root
    return False
