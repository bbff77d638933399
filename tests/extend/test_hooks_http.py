"""Hooks that are servers: one POST, no redirects, headers with the variables that they may have, and bounded waiting."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from nbagent.extend.hooks_http import headers_of, post
from nbagent.extend.hooks_output import Failed


class Server(HTTPServer):
    """Answers as its path says, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, dict, dict]] = []
        self.hanging = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, dict(self.headers), body))
        if self.path == "/hang":
            self.server.hanging.wait(10)
            return
        status = int(self.path.strip("/"))
        self.send_response(status)
        if status in {301, 307}:
            self.send_header("Location", f"{self.server.url}/200")
        self.end_headers()
        self.wfile.write(b'{"continue": true}')

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.hanging.set()
    made.shutdown()
    thread.join()
    made.server_close()


async def ask(url: str, *, timeout: float = 5.0, **spec: object) -> tuple[int, str]:
    return await post({"url": url, **spec}, b'{"a": 1}', environment={"TOKEN": "t0"}, timeout=timeout)


async def test_the_payload_is_posted_as_json_with_the_hook_s_headers(server):
    headers = {"Authorization": "Bearer $TOKEN"}
    assert await ask(f"{server.url}/200", headers=headers, allowedEnvVars=["TOKEN"]) == (200, '{"continue": true}')
    path, sent, body = server.asked[-1]
    assert (path, body) == ("/200", {"a": 1})
    assert sent["Content-Type"] == "application/json"
    assert sent["Authorization"] == "Bearer t0"


def test_only_listed_variables_are_put_into_headers_others_are_empty():
    spec = {"headers": {"A": "x ${TOKEN} $OTHER", "B": "$TOKEN\r\nEvil: 1"}, "allowedEnvVars": ["TOKEN"]}
    environment = {"TOKEN": "t0", "OTHER": "secret"}
    assert headers_of(spec, environment) == {"A": "x t0 ", "B": "t0Evil: 1"}
    assert headers_of(spec, environment, variables=["OTHER"])["A"] == "x  "
    assert headers_of({"headers": {"A": "$TOKEN"}}, environment) == {"A": ""}


@pytest.mark.parametrize("status", [301, 307, 404, 500])
async def test_redirects_are_not_followed_and_other_answers_come_back_with_their_status(server, status):
    before = len(server.asked)
    assert (await ask(f"{server.url}/{status}"))[0] == status
    assert len(server.asked) == before + 1


async def test_a_server_that_is_not_there_or_says_nothing_is_a_failure(server):
    with pytest.raises(Failed, match="can't be reached"):
        await ask("http://127.0.0.1:1/x")
    with pytest.raises(Failed):
        await ask(f"{server.url}/hang", timeout=0.05)
    server.hanging.set()


async def test_only_http_addresses_and_those_that_the_person_s_settings_allow():
    with pytest.raises(Failed, match="no http address"):
        await ask("file:///etc/passwd")
    with pytest.raises(Failed, match="allowedHttpHookUrls"):
        await post({"url": "http://evil/x"}, b"{}", environment={}, timeout=1, urls=["http://good/*"])
