"""Whether a notebook file is open in a Jupyter server on this machine: such a file is never written behind its back.

Servers leave a file with their address and token in Jupyter's runtime folder; each is asked for its sessions, on this
machine's own addresses only, within a second. One of JupyterHub's is asked with the token that the Hub gave to it. Where
a server runs and can't be asked (a password, too busy), the processes of its kernels tell (tools/server_kernels.py); where
they don't either, it may have every file below its root open. It must not know of notebooks' content. Read `who_has_open`.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from nbagent.core.messages import Json
from nbagent.tools.server_kernels import kernels_say

_TIMEOUT = 1.0
_MOST = 4 * 1024 * 1024
_MOST_SERVERS = 20
_HUB_TOKENS = ("JUPYTERHUB_API_TOKEN", "JPY_API_TOKEN")
_HUB_PREFIX = "JUPYTERHUB_SERVICE_PREFIX"
_HERE = {"localhost": "localhost", "127.0.0.1": "127.0.0.1", "::1": "::1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


@dataclass(frozen=True, slots=True)
class Server:
    """One running Jupyter server: address without token, token, folder that its paths begin at, process (None: not said)."""

    url: str
    token: str
    root: str
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    """The server that has a file open, or may have: not `sure` is one that runs and does not tell."""

    url: str
    sure: bool = True

    def __str__(self) -> str:
        """What the file is, to go on after "it is"."""
        if self.sure:
            return f"open in Jupyter ({self.url})"
        return f"perhaps open in Jupyter ({self.url}), which does not tell (it is busy, or wants a password)"

    @property
    def way_out(self) -> str:
        """What a person can do about it, one sentence without its full stop."""
        if self.sure:
            return "Work in the open notebook, or shut its kernel down in Jupyter first"
        return "Close that server first, or write a copy under a new name"


class _Untold(Exception):
    """A server runs and can't be asked."""


def runtime_folder() -> Path:
    """Return the folder where Jupyter servers of this person say that they run."""
    from jupyter_core.paths import jupyter_runtime_dir  # noqa: PLC0415  (only when a file is to be written)

    return Path(jupyter_runtime_dir())


def running_servers(folder: Path | None = None, environ: Mapping[str, str] = os.environ) -> list[Server]:
    """Return the servers on this machine that say in `folder` that they run, newest first.

    The one that JupyterHub started this process in, by `environ`, gets the token that stands there.
    """
    folder = folder or runtime_folder()
    try:
        files = sorted(folder.glob("jpserver-*.json"), key=_age)
    except OSError:
        return []
    return [server for file in files[:_MOST_SERVERS] if (server := _server(file, environ)) is not None]


def who_has_open(path: Path, servers: Sequence[Server]) -> Holder | None:
    """Return the first server that has the file at `path` in a session, else one that may have it, else None.

    May have it: the file is there, below the root of a server that runs and can't be asked (it does not answer within a
    second, or does not let us in), and its kernels don't tell either. A server at whose address nothing listens is gone.
    """
    wanted = os.path.normcase(os.path.realpath(path))
    perhaps: Holder | None = None
    for server in servers:
        try:
            sessions = _sessions(server)
        except _Untold:
            if os.path.exists(wanted) and _is_below(wanted, server.root):  # noqa: PTH110
                if (open_there := _by_its_kernels(server, wanted)) is True:
                    return Holder(server.url)
                perhaps = perhaps or (Holder(server.url, sure=False) if open_there is None else None)
            continue
        for session in sessions:
            if any(os.path.normcase(os.path.realpath(Path(server.root) / name)) == wanted for name in _paths(session)):
                return Holder(server.url)
    return perhaps


def _is_below(wanted: str, root: str) -> bool:
    return Path(wanted).is_relative_to(os.path.normcase(os.path.realpath(root)))


def _by_its_kernels(server: Server, wanted: str) -> bool | None:
    try:
        address = urlsplit(server.url)
        port = address.port or (443 if address.scheme == "https" else 80)
    except ValueError:
        return None
    if server.pid is None:
        return None
    listens = unquote(address.netloc) if address.scheme == "http+unix" else port
    return kernels_say(server.pid, listens, server.root, wanted)


def _age(file: Path) -> float:
    try:
        return -file.stat().st_mtime
    except OSError:  # it ended meanwhile
        return 0.0


def _server(file: Path, environ: Mapping[str, str]) -> Server | None:
    try:
        said = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(said, dict):
        return None
    root = said.get("root_dir") or said.get("notebook_dir")
    url, token, pid = said.get("url"), said.get("token", ""), said.get("pid")
    if not isinstance(url, str) or not isinstance(root, str) or not isinstance(token, str):
        return None
    if not isinstance(pid, int):
        pid = None
    elif not _is_alive(pid):
        return None
    return Server(url, token or _hub_token(url, environ), os.path.expanduser(root), pid)  # noqa: PTH111


def _hub_token(url: str, environ: Mapping[str, str]) -> str:
    """Return the Hub's token for the server at `url` if this process is in that server, "" for every other one."""
    prefix = environ.get(_HUB_PREFIX, "")
    try:
        path = urlsplit(url).path
    except ValueError:
        return ""
    if not prefix or path.strip("/") != prefix.strip("/"):
        return ""
    return next((environ[name] for name in _HUB_TOKENS if environ.get(name)), "")


def _is_alive(pid: int) -> bool:
    if os.name == "nt" or pid <= 0:  # there a signal 0 is no question
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def _sessions(server: Server) -> list[Json]:
    """Ask a server for its sessions; redirects are not followed, so that the token stays on this machine.

    Raises `_Untold` where it runs and does not say.
    """
    try:
        address = urlsplit(server.url)
        connection = _connection(address)
        try:
            headers = {"Authorization": f"token {server.token}"} if server.token else {}
            connection.request("GET", f"{address.path.rstrip('/')}/api/sessions", headers=headers)
            answer = connection.getresponse()
            if answer.status != http.HTTPStatus.OK:
                raise _Untold
            said: Any = json.loads(answer.read(_MOST))
        finally:
            connection.close()
    except (ConnectionRefusedError, FileNotFoundError):  # nothing listens there: it ended without taking its file away
        return []
    except (OSError, ValueError, http.client.HTTPException, RecursionError) as error:
        raise _Untold from error
    if not isinstance(said, list):
        raise _Untold
    return [session for session in said if isinstance(session, dict)]


def _connection(address: SplitResult) -> http.client.HTTPConnection:
    if address.scheme == "http+unix" and hasattr(socket, "AF_UNIX"):  # the host is the socket's path
        connection = http.client.HTTPConnection("localhost", timeout=_TIMEOUT)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(_TIMEOUT)
        try:
            connection.sock.connect(unquote(address.netloc))
        except OSError:
            connection.close()
            raise
        return connection
    here = {**_HERE, socket.gethostname().lower(): "127.0.0.1"}  # what one that listens everywhere calls itself
    host, port = here.get(address.hostname or ""), address.port
    if host is None or address.scheme not in {"http", "https"}:
        raise _Untold
    if address.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT, context=_own_certificate())
    return http.client.HTTPConnection(host, port, timeout=_TIMEOUT)


def _own_certificate() -> ssl.SSLContext:
    """A server of this machine that speaks https has mostly made its certificate itself."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _paths(session: Json) -> Iterator[str]:
    """Yield the paths that a session says it is for; real-time collaboration puts a drive before them."""
    inner = session.get("notebook")
    for said in (session.get("path"), inner.get("path") if isinstance(inner, dict) else None):
        if isinstance(said, str) and said and "\0" not in said:
            yield said.lstrip("/")
            yield said.partition(":")[2].lstrip("/") or said
