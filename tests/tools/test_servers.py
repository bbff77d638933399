"""Whether a notebook is open in a server: asked of this machine's own servers only, within a second; who runs and does not tell may have it."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nbagent.core.errors import NotebookError
from nbagent.tools import ipynb
from nbagent.tools.keeping import Keeper
from nbagent.tools.servers import Holder, Server, running_servers, who_has_open


class Jupyter:
    """What a Jupyter server answers about its sessions, and who asked."""

    def __init__(self, root, paths, token="t0ken"):
        self.root, self.paths, self.token, self.asked = root, paths, token, []
        jupyter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                jupyter.asked.append((self.path, self.headers.get("Authorization")))
                if self.path == "/redirect/api/sessions":
                    self.send_response(302)
                    self.send_header("Location", "http://evil.example/api/sessions")
                    self.end_headers()
                    return
                allowed = self.headers.get("Authorization") == f"token {token}"
                sessions = [{"path": p, "type": "notebook", "notebook": {"path": p}} for p in jupyter.paths]
                body = json.dumps(sessions if allowed else {"message": "Forbidden"}).encode()
                self.send_response(200 if allowed else 403)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def says_so(self, folder, **changes):
        """Write the file in the runtime folder by which a server is found."""
        said = {
            "url": self.url,
            "token": self.token,
            "root_dir": str(self.root),
            "pid": os.getpid(),
            "port": 1,
            "secure": False,
        }
        (folder / f"jpserver-{len(list(folder.iterdir()))}.json").write_text(json.dumps({**said, **changes}))


@pytest.fixture
def runtime(tmp_path):
    folder = tmp_path / "runtime"
    folder.mkdir()
    return folder


def test_the_server_that_has_it_in_a_session_is_named(tmp_path, runtime):
    (tmp_path / "sub").mkdir()
    with Jupyter(tmp_path, ["sub/n.ipynb"]) as jupyter:
        jupyter.says_so(runtime)
        (server,) = running_servers(runtime)
        assert who_has_open(tmp_path / "sub" / "n.ipynb", [server]) == Holder(jupyter.url)
        assert who_has_open(tmp_path / "n.ipynb", [server]) is None
        (tmp_path / "alias").symlink_to("sub")
        assert who_has_open(tmp_path / "alias" / "n.ipynb", [server]) == Holder(jupyter.url)
    assert jupyter.asked[0] == ("/api/sessions", "token t0ken")


def test_a_path_with_the_drive_of_a_shared_notebook_is_the_same(tmp_path, runtime):
    with Jupyter(tmp_path, ["RTC:n.ipynb"]) as jupyter:
        jupyter.says_so(runtime)
        assert who_has_open(tmp_path / "n.ipynb", running_servers(runtime)) == Holder(jupyter.url)


def test_only_this_machine_is_asked_and_no_redirect_is_followed(tmp_path, runtime):
    with Jupyter(tmp_path, ["n.ipynb"]) as jupyter:
        jupyter.says_so(runtime, url="http://evil.example:80/")
        jupyter.says_so(runtime, url="ftp://localhost/")
        jupyter.says_so(runtime, url=jupyter.url + "redirect/")
        jupyter.says_so(runtime, url="http://[::1")
        assert len(running_servers(runtime)) == 4
        assert who_has_open(tmp_path / "n.ipynb", running_servers(runtime)) is None
        assert [path for path, _ in jupyter.asked] == ["/redirect/api/sessions"]


def notebook(folder):
    """An empty notebook on disk."""
    path = folder / "n.ipynb"
    path.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    return path


def test_a_server_that_does_not_let_us_in_may_have_every_file_below_its_root(tmp_path, runtime):
    """Row 74: with a password there is no token that opens its API."""
    path, root = notebook(tmp_path), tmp_path / "root"
    root.mkdir()
    inside = notebook(root)
    with Jupyter(root, ["n.ipynb"]) as jupyter:
        jupyter.says_so(runtime, token="", pid=None)  # nor is its process known
        servers = running_servers(runtime)
        assert who_has_open(inside, servers) == Holder(jupyter.url, sure=False)
        assert who_has_open(path, servers) is None, "it is not below its root"
        assert who_has_open(root / "new.ipynb", servers) is None, "what is not there can't be open"
        (tmp_path / "link").symlink_to("root")
        assert who_has_open(tmp_path / "link" / "n.ipynb", servers) == Holder(jupyter.url, sure=False)
        with Jupyter(tmp_path, ["root/n.ipynb"]) as other:
            other.says_so(runtime)
            both = [*servers, *running_servers(runtime)]
            assert who_has_open(inside, both) == Holder(other.url), "one that says so is named first"


@pytest.mark.slow
def test_nothing_is_written_where_a_server_does_not_tell(tmp_path, runtime):
    path = notebook(tmp_path)
    before = path.read_text()
    with Jupyter(tmp_path, []) as jupyter:
        jupyter.says_so(runtime, token="other", pid=None)
        keeper = Keeper(path, "n.ipynb", lambda file: who_has_open(file, running_servers(runtime)))
        with pytest.raises(NotebookError) as refused:
            keeper.write(before.replace("5}", "4}"), ipynb.read(before.encode(), "n.ipynb"))
    assert str(refused.value) == (
        f"n.ipynb is perhaps open in Jupyter ({jupyter.url}), which does not tell (it is busy, or wants a password), and "
        "would be written over from there: nothing was written. Close that server first, or write a copy under a new name"
    )
    assert path.read_text() == before


def test_a_server_of_a_hub_is_asked_with_the_token_of_the_hub_and_no_other_one_is(tmp_path, runtime):
    with Jupyter(tmp_path, [], token="hub") as mine, Jupyter(tmp_path, [], token="hub") as other:
        mine.says_so(runtime, token="", url=f"{mine.url}user/me/")
        other.says_so(runtime, token="", url=f"{other.url}user/you/")
        for name in ("JUPYTERHUB_API_TOKEN", "JPY_API_TOKEN"):
            servers = running_servers(runtime, {"JUPYTERHUB_SERVICE_PREFIX": "/user/me/", name: "hub"})
            assert sorted(server.token for server in servers) == ["", "hub"]
            who_has_open(notebook(tmp_path), servers)
        assert mine.asked == [("/user/me/api/sessions", "token hub")] * 2
        assert other.asked == [("/user/you/api/sessions", None)] * 2
        assert {server.token for server in running_servers(runtime, {"JUPYTERHUB_API_TOKEN": "hub"})} == {""}


@pytest.mark.slow
def test_a_server_that_hangs_costs_a_second_at_most_and_may_have_it(tmp_path):
    path = notebook(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = Server(f"http://127.0.0.1:{silent.getsockname()[1]}/", "", str(tmp_path))
        begin = time.monotonic()
        assert who_has_open(path, [server]) == Holder(server.url, sure=False)
        assert time.monotonic() - begin < 15  # it would hang for ever
    assert who_has_open(path, [server]) is None, "where nothing listens any more there is no server"


@pytest.mark.slow
def test_a_server_that_listens_on_a_socket_file_is_asked_there(tmp_path, monkeypatch):
    path = notebook(tmp_path)
    monkeypatch.chdir(tmp_path)  # the path of such a socket may not be long
    server = Server("http+unix://s.sock", "t0ken", str(tmp_path))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s.sock")
        listening.listen()

        def answer():
            body = json.dumps([{"path": "n.ipynb"}]).encode()
            with listening.accept()[0] as asked:
                asked.recv(65536)
                asked.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        answering = threading.Thread(target=answer)
        answering.start()
        assert who_has_open(path, [server]) == Holder(server.url)
        answering.join(5)
        assert who_has_open(path, [server]) == Holder(server.url, sure=False)
    assert who_has_open(path, [server]) is None


def test_one_that_listens_everywhere_and_gives_the_machine_s_name_is_asked_here(tmp_path, runtime):
    with Jupyter(tmp_path, ["n.ipynb"]) as jupyter:
        named = jupyter.url.replace("127.0.0.1", socket.gethostname())
        jupyter.says_so(runtime, url=named)
        assert who_has_open(tmp_path / "n.ipynb", running_servers(runtime)) == Holder(named)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"url": 3}', '{"url": "http://localhost:1/"}', "\ufeff{}"])
def test_a_file_that_says_nothing_usable_is_passed_over(runtime, text):
    (runtime / "jpserver-1.json").write_text(text)
    (runtime / "kernel-1.json").write_text("{}")
    assert running_servers(runtime) == []


def test_a_server_whose_process_is_gone_is_passed_over(tmp_path, runtime):
    import subprocess
    import sys

    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with Jupyter(tmp_path, ["n.ipynb"]) as jupyter:
        jupyter.says_so(runtime, pid=ended.pid)
    assert running_servers(runtime) == []


def test_no_runtime_folder_means_no_servers(tmp_path):
    assert running_servers(tmp_path / "none") == []
