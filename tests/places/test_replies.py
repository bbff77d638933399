"""A request that arrives just when a reply leaves: it must be answered, on each ipykernel (7.0 to 7.3 lose it by themselves)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernel.conftest import RealKernel
from tests.support.turns import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.places, pytest.mark.timeout(90)]

HOLD = """
import select, zmq
from pathlib import Path
kernel = get_ipython().kernel
socket = kernel.shell_stream.socket
sends, arrives = socket.send_multipart, socket.getsockopt(zmq.FD)
def send_when_the_next_request_is_there(*args, **given):
    socket.send_multipart = sends
    Path({leaves!r}).touch()
    select.select([arrives], [], [], 20)
    return sends(*args, **given)
socket.send_multipart = send_when_the_next_request_is_there
"""


def test_a_request_that_comes_when_a_reply_leaves_is_answered_and_unloading_leaves_the_kernel_as_it_was(tmp_path: Path):
    kernel, leaves = RealKernel(), tmp_path / "leaves"
    try:
        kernel.run("thread = getattr(get_ipython().kernel, 'shell_channel_thread', None)")
        before = kernel.value("sorted(vars(thread.manager)) if thread else []")
        kernel.run("%load_ext nbagent")
        first = kernel.start(HOLD.format(leaves=str(leaves)))
        wait_until(leaves.exists)
        second = kernel.client.is_complete("1")
        asked = [kernel.client.get_shell_msg(timeout=20)["parent_header"]["msg_id"] for _ in range(2)]
        assert asked == [first, second]
        kernel.run("%unload_ext nbagent")
        assert kernel.value("sorted(vars(thread.manager)) if thread else []") == before
    finally:
        kernel.close()
