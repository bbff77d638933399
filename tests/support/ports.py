"""Ports for the kernels that tests start, so that two test processes never give the same one to two kernels.

jupyter_client looks for a free port and lets go of it until the kernel binds it; in between another process of the tests
may get the same one, and a kernel then never answers. Here each process takes ports of its own, which the system gives
to nobody. Read `OwnPorts`.
"""

from __future__ import annotations

import itertools
import os
import socket
from typing import Any

from jupyter_client.connect import LocalPortCache

_FIRST, _LAST = 10_000, 32_000  # below those that Linux gives out itself (32,768 and above)
_WORKERS = 4


class OwnPorts(LocalPortCache):
    """jupyter_client's own registry of ports, as the one of this process once `OwnPorts.instance()` was called."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        each = (_LAST - _FIRST) // _WORKERS
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
        begins = os.getpid() * 5 % each  # other sessions on this machine have other places to begin
        self._next = itertools.cycle(_FIRST + worker * each + (begins + n) % each for n in range(each))

    def find_available_port(self, ip: str) -> int:
        """Return a port of `ip` that nobody has."""
        port = next(port for port in self._next if port not in self.currently_used_ports and _is_free(ip, port))
        self.currently_used_ports.add(port)
        return port


def _is_free(ip: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((ip, port))
        except OSError:
            return False
        return True
