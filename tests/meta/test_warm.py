"""A forked kernel of the tests is a kernel of its own, and who needs one that starts from nothing gets it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

from tests.support.turns import wait_until
from tests.support.warm import COLD, ROOT

pytestmark = pytest.mark.kernel

ASKED = """
import json, os, sys
open("said.json", "w").write(json.dumps(dict(
    pid=os.getpid(), parent=open(f"/proc/{os.getppid()}/cmdline").read(), group=os.getpgrp(), cwd=os.getcwd(), mark=os.environ["MARK"],
    path=sys.path[:2], loaded="nbagent.app.magics" in sys.modules, mine="mine" in globals(), argv=sys.argv[1:2])))
mine = 1
"""


@contextmanager
def kernel(folder: Path, **env: str) -> Iterator[tuple[Any, Any]]:
    """A kernel in `folder` with its manager and client."""
    folder.mkdir()
    given = {**os.environ, "PYTHONPATH": str(ROOT), "MARK": folder.name, **env}
    with (folder / "err.txt").open("w") as err:
        manager, client = start_new_kernel(kernel_name="python3", env=given, cwd=str(folder), stderr=err)
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def asked(folder: Path, client: Any) -> dict[str, Any]:
    client.execute_interactive(ASKED, timeout=60, output_hook=lambda _: None)
    return json.loads((folder / "said.json").read_text())


def test_forked_kernels_share_nothing_take_signals_and_end_with_who_started_them(tmp_path: Path) -> None:
    with kernel(tmp_path / "one") as (manager, client), kernel(tmp_path / "two") as (killed, other):
        first, second = asked(tmp_path / "one", client), asked(tmp_path / "two", other)
        assert asked(tmp_path / "one", client)["mine"]
        for name, said in (("one", first), ("two", second)):
            assert (said["loaded"], said["mine"], said["mark"]) == (True, False, name)
            assert (said["cwd"], said["group"]) == (str(tmp_path / name), said["pid"])
            assert str(ROOT) in said["path"]
        assert first["pid"] != second["pid"]
        assert first["parent"] == second["parent"]
        assert "warm.py" in first["parent"]

        message = client.execute("import os, signal, threading\nprint('waits', flush=True)\nthreading.Event().wait(60)")
        while client.get_iopub_msg(timeout=30)["msg_type"] != "stream":
            pass
        manager.interrupt_kernel()
        while (reply := client.get_shell_msg(timeout=30))["parent_header"]["msg_id"] != message:
            pass
        assert reply["content"]["ename"] == "KeyboardInterrupt"

        client.execute("os.write(2, b'said on its own way')\nos.kill(os.getpid(), signal.SIGKILL)")
        wait_until(lambda: not manager.is_alive())
        assert "said on its own way" in (tmp_path / "one" / "err.txt").read_text()
        os.kill(killed.provisioner.pid, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{second['pid']}").exists())


@pytest.mark.parametrize("env", [{COLD: "1"}, {"PYTHONHASHSEED": "1"}], ids=["asked for", "another interpreter"])
def test_a_kernel_that_must_start_from_nothing_does(tmp_path: Path, env: dict[str, str]) -> None:
    with kernel(tmp_path / "cold", **env) as (manager, client):
        said = asked(tmp_path / "cold", client)
        assert (said["loaded"], said["pid"]) == (False, manager.provisioner.pid)
