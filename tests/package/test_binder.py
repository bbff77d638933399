"""On Binder every notebook starts with nbagent loaded."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from jupyter_client.manager import AsyncKernelManager

from tests.source import ROOT


@pytest.mark.kernel
async def test_a_kernel_with_binders_settings_knows_the_agent_magic(tmp_path: Path) -> None:
    profile = tmp_path / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    shutil.copy(ROOT / "binder" / "ipython_config.py", profile)
    manager = AsyncKernelManager()
    await manager.start_kernel(env={**os.environ, "IPYTHONDIR": str(profile.parent)})
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        reply = await client.execute_interactive(
            "", silent=True, user_expressions={"v": "get_ipython().find_cell_magic('agent') is not None"}, timeout=30
        )
        assert reply["content"]["user_expressions"]["v"]["data"]["text/plain"] == "True"
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


def test_its_scripts_are_valid_shell_and_python() -> None:
    subprocess.run(["bash", "-n", ROOT / "binder" / "postBuild"], check=True)
    compile((ROOT / "binder" / "ipython_config.py").read_text("utf-8"), "ipython_config.py", "exec")
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)
