"""Whether a notebook is open in a server: asked of this machine's own servers only, within a second, or not known."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nbagent.tools.servers import Server, running_servers, who_has_open


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
        assert who_has_open(tmp_path / "sub" / "n.ipynb", [server]) == jupyter.url
        assert who_has_open(tmp_path / "n.ipynb", [server]) is None
        (tmp_path / "alias").symlink_to("sub")
        assert who_has_open(tmp_path / "alias" / "n.ipynb", [server]) == jupyter.url
    assert jupyter.asked[0] == ("/api/sessions", "token t0ken")


def test_a_path_with_the_drive_of_a_shared_notebook_is_the_same(tmp_path, runtime):
    with Jupyter(tmp_path, ["RTC:n.ipynb"]) as jupyter:
        jupyter.says_so(runtime)
        assert who_has_open(tmp_path / "n.ipynb", running_servers(runtime)) == jupyter.url


def test_only_this_machine_is_asked_and_no_redirect_is_followed(tmp_path, runtime):
    with Jupyter(tmp_path, ["n.ipynb"]) as jupyter:
        jupyter.says_so(runtime, url="http://evil.example:80/")
        jupyter.says_so(runtime, url="ftp://localhost/")
        jupyter.says_so(runtime, url=jupyter.url + "redirect/")
        jupyter.says_so(runtime, url="http://[::1")
        assert len(running_servers(runtime)) == 4
        assert who_has_open(tmp_path / "n.ipynb", running_servers(runtime)) is None
        assert [path for path, _ in jupyter.asked] == ["/redirect/api/sessions"]


def test_a_server_that_does_not_let_us_in_is_not_known_to_have_it(tmp_path, runtime):
    with Jupyter(tmp_path, ["n.ipynb"]) as jupyter:
        jupyter.says_so(runtime, token="other")
        assert who_has_open(tmp_path / "n.ipynb", running_servers(runtime)) is None


def test_a_server_that_hangs_costs_a_second_at_most(tmp_path, runtime):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = Server(f"http://127.0.0.1:{silent.getsockname()[1]}/", "", str(tmp_path))
        begin = time.monotonic()
        assert who_has_open(tmp_path / "n.ipynb", [server]) is None
        assert time.monotonic() - begin < 3


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
