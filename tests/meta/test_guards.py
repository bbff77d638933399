"""The guards of tests/conftest.py hold: network, home, keys."""

from __future__ import annotations

import os
import socket
import urllib.request
from pathlib import Path

import platformdirs
import pytest
from jupyter_client.connect import LocalPortCache

from tests import conftest
from tests.support.ports import OwnPorts


def test_a_connection_off_this_machine_is_refused_and_noted() -> None:
    with socket.socket() as connection, pytest.raises(conftest.NetworkReached, match=r"192\.0\.2\.1"):
        connection.connect(("192.0.2.1", 80))
    with pytest.raises(conftest.NetworkReached, match=r"example\.com"):
        urllib.request.urlopen("http://example.com", timeout=1)
    assert conftest._reached[-2:] == ["192.0.2.1", "example.com"]
    del conftest._reached[-2:]


def test_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


def test_home_settings_and_keys_are_not_the_developers() -> None:
    home = Path.home()
    assert home.name.startswith("nbagent-home-")
    assert platformdirs.user_config_path("nbagent").is_relative_to(home)
    assert [name for name in os.environ if name.startswith("ANTHROPIC_")] == []


def test_a_test_starts_in_an_empty_folder_of_its_own(tmp_path: Path) -> None:
    assert Path.cwd() == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_kernels_of_two_test_processes_get_no_port_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(LocalPortCache.instance()) is OwnPorts
    found: list[set[int]] = []
    for worker in ("gw0", "gw1", "gw3"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        ports = OwnPorts()
        found.append({ports.find_available_port("127.0.0.1") for _ in range(50)})
    assert [len(ports) for ports in found] == [50, 50, 50]
    assert not found[0] & found[1] | found[1] & found[2] | found[0] & found[2]
    assert all(10_000 <= port < 32_000 for ports in found for port in ports)
