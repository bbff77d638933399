"""A server that lets nobody in: its kernels' processes tell what it has open. Processes as a server has them, then a real one."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from nbagent.tools.servers import Holder, running_servers, who_has_open
from tests.tools.test_servers import Jupyter, notebook


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Starts a process below this one, with the environment that a server gives to the kernel of a session."""
    with contextlib.ExitStack() as ending:

        def start(session: str | None, parent: int | None = None) -> None:
            env = {"PATH": os.environ["PATH"], "JPY_PARENT_PID": str(parent or os.getpid())}
            process = subprocess.Popen(
                ["sleep", "600"], env=env if session is None else {**env, "JPY_SESSION_NAME": session}
            )
            ending.callback(process.wait)
            ending.callback(process.kill)

        yield start


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Callable[[str], Holder | None]]:
    """A server in this process that lets nobody in; who, by it, has a notebook in its root open."""
    (tmp_path / "runtime").mkdir()
    with Jupyter(tmp_path, ["n.ipynb"]) as jupyter:
        jupyter.says_so(tmp_path / "runtime", token="", password=True)
        (tmp_path / "other.ipynb").write_text("{}")
        (tmp_path / "url").write_text(jupyter.url)
        path = notebook(tmp_path)
        yield lambda name: who_has_open(path.with_name(name), running_servers(tmp_path / "runtime"))


def test_a_server_without_kernels_has_nothing_open(locked, kernel):
    assert locked("n.ipynb") is None
    kernel("n.ipynb", parent=1)
    assert locked("n.ipynb") is None, "that is the kernel of another server"


def test_a_kernel_names_its_notebook(locked, kernel, tmp_path):
    (tmp_path / "alias").symlink_to(tmp_path)
    kernel(str(tmp_path / "alias" / "n.ipynb"))
    url = (tmp_path / "url").read_text()
    assert locked("n.ipynb") == Holder(url), "known for sure, under any name"
    assert locked("other.ipynb") is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("session", "known"),
    [
        ("other.ipynb", True),
        ("Console 1", True),
        ("renamed.ipynb", False),
        ("sub/n.ipynb", False),
        ("", False),
        (None, False),
    ],
)
def test_a_kernel_that_may_be_of_a_notebook_keeps_it_from_being_written(locked, kernel, tmp_path, session, known):
    """It is of another one for sure where that is there under another name, and of none where it names none."""
    kernel(session and str(tmp_path / session))
    assert locked("n.ipynb") == (None if known else Holder((tmp_path / "url").read_text(), sure=False))


def test_a_process_that_does_not_listen_at_the_server_s_address_tells_nothing(locked, tmp_path):
    """Its number may be of a container's process."""
    [file] = (tmp_path / "runtime").iterdir()
    other = subprocess.Popen(["sleep", "600"])
    try:
        file.write_text(json.dumps({**json.loads(file.read_text()), "pid": other.pid}))
        assert locked("n.ipynb") == Holder((tmp_path / "url").read_text(), sure=False)
    finally:
        other.kill()
        other.wait()


class Browser:
    """A person who knows the password of a server."""

    def __init__(self, url: str, password: str) -> None:
        self._url, self._cookies = url, CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))
        self._opener.open(f"{url}login", timeout=30).close()
        form = urllib.parse.urlencode({"password": password, "_xsrf": self._xsrf()}).encode()
        self._opener.open(f"{url}login", form, timeout=30).close()

    def _xsrf(self) -> str:
        return next(cookie.value or "" for cookie in self._cookies if cookie.name == "_xsrf")

    def opens(self, path: str) -> None:
        body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        headers = {"X-XSRFToken": self._xsrf(), "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}api/sessions", json.dumps(body).encode(), headers)
        self._opener.open(request, timeout=60).close()


def until_it_listens(port: int, process: subprocess.Popen[bytes], within: float = 60) -> None:
    """Return when something listens at `port`; what the server prints comes before that."""
    waiting, deadline = threading.Event(), time.monotonic() + within
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 5):
            return
        waiting.wait(0.05)
    raise AssertionError("the server did not start")


@contextlib.contextmanager
def real_server(root: Path, runtime: Path, password: str) -> Iterator[str]:
    """A `jupyter server` with a password; gives its address."""
    from jupyter_server.auth.security import passwd

    hashed = passwd(password, "sha1")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [f"--ServerApp.root_dir={root}", f"--ServerApp.port={port}", "--ServerApp.open_browser=False", "--allow-root",
               f"--PasswordIdentityProvider.hashed_password={hashed}"]  # fmt: skip
    folder = str(runtime.parent / "jupyter")
    env = {**os.environ, "JUPYTER_RUNTIME_DIR": str(runtime), "JUPYTER_CONFIG_DIR": folder, "JUPYTER_DATA_DIR": folder}
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyter_server", *options],
        env=env,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        until_it_listens(port, process)
        yield f"http://localhost:{port}/"
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.mark.kernel
@pytest.mark.timeout(120)
def test_a_real_server_with_a_password_is_known_to_have_only_what_it_has_open(tmp_path):
    root, runtime = tmp_path / "root", tmp_path / "runtime"
    root.mkdir()
    inside = notebook(root)
    opened = inside.rename(root / "open.ipynb")
    inside = notebook(root)
    with real_server(root, runtime, "secret") as url:
        person = Browser(url, "secret")
        servers = running_servers(runtime)
        assert [(server.url, server.token) for server in servers] == [(url, "")]
        assert who_has_open(inside, servers) is None, "it runs no kernel"
        person.opens("open.ipynb")
        assert who_has_open(opened, servers) == Holder(url)
        assert who_has_open(inside, servers) is None
        opened.rename(root / "renamed.ipynb")
        assert who_has_open(inside, servers) == Holder(url, sure=False), "its kernel may be of any by now"
