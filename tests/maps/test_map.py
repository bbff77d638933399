"""Whole maps with a real server: the same table wherever it is carried out, and nothing is asked twice after a crash.

The small form. `python -m tests.maps.places 200 [--kill]` is the whole, with a worker of each place killed in the middle.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.maps.places import asked_twice, expected, inputs
from tests.maps.scripts import PROMPT, adding
from tests.source import ROOT
from tests.support.messages_server import MessagesServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

DRIVER = """
import sys, nbagent
table = nbagent.map(sys.argv[1], sys.argv[4:], model="sonnet", workers=2, resume="dir", progress=False,
                    schema={"total": int} if sys.argv[2] == "fields" else None)
table.save(sys.argv[3])
"""


def environment(server: MessagesServer) -> dict[str, str]:
    return {**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k", "PYTHONPATH": str(ROOT)}


def test_every_executor_gives_the_same_table() -> None:
    command = [sys.executable, "-m", "tests.maps.places", "4", "ours", "process pool", "dask", "ipyparallel"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=390)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["refused"] == []
    for name, place in found["places"].items():
        assert (place["right"], place["twice"], place["requests"]) == (True, [], 8), name
        assert place["rows"] == found["places"]["ours"]["rows"]


def test_a_map_whose_process_is_killed_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    with MessagesServer(adding) as server:
        command = [sys.executable, "-c", DRIVER, PROMPT, "words", "out.json", *inputs(5)]
        first = subprocess.Popen(command, env=environment(server), cwd=tmp_path)
        server.wait_for_requests(4, 120)
        first.kill()
        first.wait()
        subprocess.run(command, env=environment(server), cwd=tmp_path, check=True, timeout=200)
        rows = json.loads((tmp_path / "out.json").read_text("utf-8"))
        assert [row["answer"] for row in rows] == expected(5)
        assert asked_twice(server.requests) == []
        count = len(server.requests)
        subprocess.run(command, env=environment(server), cwd=tmp_path, check=True, timeout=100)
        assert len(server.requests) == count
        assert json.loads((tmp_path / "out.json").read_text("utf-8")) == rows


def test_answers_in_fields_are_columns_and_take_no_further_request(tmp_path: Path) -> None:
    with MessagesServer(adding) as server:
        command = [sys.executable, "-c", DRIVER, PROMPT, "fields", "out.json", *inputs(2)]
        subprocess.run(command, env=environment(server), cwd=tmp_path, check=True, timeout=200)
        rows = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert [(row["total"], row["status"]) for row in rows] == [(7, "done"), (9, "done")]
    assert len(server.requests) == 4
