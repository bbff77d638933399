"""`make test-places` runs the tests on other versions of ipykernel: here that the kernels really are those."""

from __future__ import annotations

import importlib.metadata

import pytest

from tests.failures.room import Room
from tests.support.messages_server import MessagesServer

pytestmark = [pytest.mark.kernel, pytest.mark.places]


async def test_the_kernel_is_of_the_version_that_was_asked_for(tmp_path, pytestconfig):
    wanted = pytestconfig.getoption("--ipykernel") or importlib.metadata.version("ipykernel")
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell("import importlib.metadata, ipykernel, ipykernel.kernelapp")
            said = "[ipykernel.__version__, importlib.metadata.version('ipykernel'), type(get_ipython().kernel).__module__]"
            assert await room.value(said) == [wanted, wanted, "ipykernel.ipkernel"]
        server.assert_clean()
