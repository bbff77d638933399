"""What a run read and nothing can be compared with later: named, in one plain sentence."""

from __future__ import annotations

import dataclasses
import datetime as dt
import http.server
import importlib
import os
import random
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.ports import Ran
from nbagent.core.tools import Call, tool
from nbagent.tools.fingerprints import WHOLE
from nbagent.tools.inputs import Inputs
from nbagent.tools.noting import NotingKernel, unwatched, watched
from nbagent.tools.opens import heard
from nbagent.tools.shell import tools as shell_tools
from nbagent.tools.unseen import (
    CHANCE,
    CLOCK,
    ELSEWHERE,
    ENVIRONMENT,
    FROM_DATABASES,
    FROM_NETWORK,
    FROM_PROGRAMS,
    TYPED,
    not_compared,
    unseen_by,
    unseen_in,
)

SPACE = {"np": np, "pd": pd, "random": random, "sqlite3": sqlite3, "datetime": dt.datetime, "date": dt.date}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("df.head()", set()),
        ("pd.to_datetime(df.day)", set()),
        ("pd.read_csv('https://example.org/a.csv')", {FROM_NETWORK}),
        ("import requests; requests.get(url).json()", {FROM_NETWORK}),
        ("!date", {FROM_PROGRAMS}),
        ("%%bash\nls", {FROM_PROGRAMS}),
        ("get_ipython().system('ls')", {FROM_PROGRAMS}),
        ("sqlite3.connect('a.db')", {FROM_DATABASES}),
        ("pd.read_sql('select 1', con)", {FROM_DATABASES}),
        ("from sqlalchemy import create_engine\ncreate_engine(url)", {FROM_DATABASES}),
        ("%sql select 1", {FROM_DATABASES}),
        ("datetime.now()", {CLOCK}),
        ("date.today()", {CLOCK}),
        ("pd.Timestamp.now()", {CLOCK}),
        ("import time; time.time()", {CLOCK}),
        ("import time; time.strftime('%d')", {CLOCK}),
        ("import time; time.strftime('%d', then)", set()),
        ("%timeit df.sum()", {CLOCK}),
        ("%time datetime.now()", {CLOCK}),
        ("np.random.rand(3)", {CHANCE}),
        ("np.random.seed(1); np.random.rand(3)", set()),
        ("np.random.default_rng().normal()", {CHANCE}),
        ("np.random.default_rng(3).normal()", set()),
        ("random.choice(names)", {CHANCE}),
        ("df.sample(3)", {CHANCE}),
        ("df.sample(3, random_state=1)", set()),
        ("import uuid; uuid.uuid4()", {CHANCE}),
        ("region = input('Region? ')", {TYPED}),
        ("import os; os.environ['REGION'], os.getenv('YEAR')", {ENVIRONMENT}),
        ("requests.get(u); datetime.now()", {FROM_NETWORK, CLOCK}),
    ],
)
def test_what_code_reads_that_cant_be_compared_is_seen_in_its_syntax(code, said):
    assert unseen_by(code, SPACE) == said


_PIECES = ("import time\n", "%", "%%bash\n", "!", "(", ")", "np.random.", "now()", "\0", "\n", "'", "\ud800", "é")


@pytest.mark.slow
@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
@settings(max_examples=60, deadline=None)
def test_any_text_may_be_looked_at(code):
    assert unseen_by(code, SPACE) <= {FROM_PROGRAMS, CLOCK, CHANCE}


def test_a_variable_may_lead_to_a_database_or_the_network():
    with sqlite3.connect(":memory:") as connection:
        assert unseen_in(connection) == unseen_in(sqlite3) == FROM_DATABASES
    connection.close()
    assert unseen_in(importlib.import_module("httpx")) == FROM_NETWORK
    assert {unseen_in(value) for value in (np, pd, pd.DataFrame(), 1, "requests", dt)} == {""}


# ── while code runs ──────────────────────────────────────────────────────────────────────────────────────────────────


class Space:
    """A kernel that calls `act` where code would run."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act

    def namespace(self):
        return {}

    async def run(self, code, *, emit, timeout):
        self.act()
        return Ran("ok", (), 1, 0.0)


async def unseen_of(act: Callable[[], object], root: Path) -> set[str]:
    inputs = Inputs(dict, root)
    await NotingKernel(Space(act), inputs).run("load()", emit=lambda _: None, timeout=None)
    return set(inputs.to_json()["unseen"])


async def test_what_a_function_of_the_persons_reaches_is_heard_although_no_code_shows_it(tmp_path):
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        here = socket.create_connection
        assert await unseen_of(lambda: here(server.server_address).close(), tmp_path) == {FROM_NETWORK}
    assert await unseen_of(lambda: sqlite3.connect(":memory:").close(), tmp_path) == {FROM_DATABASES}
    assert await unseen_of(lambda: subprocess.run([sys.executable, "-V"], check=True), tmp_path) == {FROM_PROGRAMS}
    assert await unseen_of(lambda: os.listdir(tmp_path), tmp_path) == set()  # noqa: PTH208


async def test_what_a_module_does_while_it_is_imported_is_no_input(tmp_path, monkeypatch):
    """matplotlib asks a program for the fonts when it is imported first."""
    (tmp_path / "asks_at_import.py").write_text("import os\nos.system('true')")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    said = await unseen_of(lambda: importlib.import_module("asks_at_import"), tmp_path)
    sys.modules.pop("asks_at_import")
    assert said == set()


def test_nothing_beyond_files_is_heard_when_nobody_listens():
    told: list[str] = []
    with heard(lambda what, *_: told.append(what)):
        threading.Thread(target=lambda: sqlite3.connect(":memory:").close()).run()
    sqlite3.connect(":memory:").close()
    assert told == ["database"]


async def test_files_outside_the_folder_are_named_as_not_compared_but_not_those_that_programs_use(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "data.csv").write_text("1")
    inputs = Inputs(dict, root)
    inputs.code(f"open({str(tmp_path / 'data.csv')!r})")
    inputs.look()
    assert inputs.unseen == {ELSEWHERE} and inputs.files == {}
    assert await unseen_of(lambda: Path(os.__file__).read_bytes(), root) == set()
    made = Inputs(dict, root)
    made.written(str(tmp_path / "data.csv"))
    made.file(str(tmp_path / "data.csv"), asked=True)
    assert made.unseen == set(), "what the run made itself is no input"


@pytest.mark.slow
def test_more_files_than_are_compared_are_named(tmp_path):
    for number in range(501):
        (tmp_path / f"{number}.txt").write_text("1")
    inputs = Inputs(dict, tmp_path)
    for number in range(500):
        inputs.file(f"{tmp_path}/{number}.txt")
    inputs.file(f"{tmp_path}/0.txt")
    assert inputs.unseen == set()
    inputs.file(f"{tmp_path}/500.txt")
    assert inputs.unseen == {"files beyond the first 500"} and len(inputs.files) == 500


@tool
async def look_up(_call: Call, key: str) -> str:
    """Look up in a system of the person's."""
    return key


async def test_what_a_tool_of_the_persons_and_a_shell_command_read_is_named(tmp_path):
    inputs = Inputs(dict, tmp_path)
    await unwatched(look_up, inputs).function(None, key="x")
    assert not_compared(inputs.to_json()) == "Not compared when this cell is run again: what your tool look_up read."
    shell = next(tool for tool in shell_tools(tmp_path) if tool.name == "shell")

    async def nothing(_call: Call, command: str) -> str:
        return command

    await watched(dataclasses.replace(shell, function=nothing), inputs).function(None, command="date")
    assert inputs.unseen == {FROM_PROGRAMS}


# ── the sentence ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_sentence_says_all_that_is_not_compared(tmp_path):
    """Also of variables and files that are compared in part only."""
    space = {f"model_{n}": object() for n in range(5)} | {"n": 1}
    (tmp_path / "big.bin").touch()
    os.truncate(tmp_path / "big.bin", WHOLE + 1)
    inputs = Inputs(lambda: space, tmp_path)
    inputs.name("n")
    assert not_compared(inputs.to_json()) == ""
    for name in space:
        inputs.name(name)
    inputs.file(str(tmp_path / "big.bin"))
    inputs.unseen |= {FROM_NETWORK, CLOCK}
    assert not_compared(inputs.to_json()) == (
        "Not compared when this cell is run again: the clock; what came from the network; what is in model_0, model_1, "
        "model_2 and 2 more (only the type is); all of big.bin (a sample is)."
    )
    assert not_compared(inputs.seen()) == not_compared(inputs.to_json())


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"unseen": 1, "tools": [], "names": {}, "files": {}},
        {"unseen": [], "tools": [], "names": {"a": 1}, "files": {}},
    ],
)
def test_what_is_no_record_of_inputs_is_refused(kept):
    with pytest.raises((KeyError, TypeError)):
        not_compared(kept)
