"""A file is read in the first second of a kernel, while the SDK is still being imported in the background."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

READ = """
import asyncio, sys, threading
from pathlib import Path
from nbagent.models import warm_up
from nbagent.tools import workspace

(Path(sys.argv[1]) / "a.csv").write_text("x,y")
tools = {each.name: each for each in workspace.tools(Path(sys.argv[1]))}
thread = threading.Thread(target=warm_up)
thread.start()
while "anthropic.lib" not in sys.modules:
    pass
for name, given in (("read_file", {"path": "a.csv"}), ("glob_files", {"pattern": "*.csv"}), ("search_files", {"pattern": "x"})):
    if name in tools:
        print(name, asyncio.run(tools[name].run(None, tools[name].validate(given))).content[0]["text"])
thread.join()
"""


@pytest.mark.slow
def test_a_file_is_read_while_the_sdk_is_being_imported(tmp_path: Path) -> None:
    command = [sys.executable, "-c", READ, str(tmp_path)]
    out = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (out.returncode, out.stderr) == (0, "")
    assert "read_file x,y" in out.stdout
