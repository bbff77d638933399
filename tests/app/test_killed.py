"""Kill -9 at 50 points of a run: the session resumes each time, its transcript is valid, and nothing approved runs twice."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest

from nbagent.core.session import MAYBE, NEVER_BEGAN
from nbagent.extend.seals import Seals
from nbagent.extend.sessions import FOLDER, read_session
from tests.core.rig import check_transcript
from tests.support.killed import SIGNS
from tests.support.messages_server import MessagesServer, Reply, call

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
POINTS, SEED = 50, 20261130


class Model:
    """Has two calls of a new token each in each of two turns of a run, then answers."""

    def __init__(self, make: Callable[[str], dict[str, Any]] = lambda token: call("effect", token=token)) -> None:
        self._make = make
        self._tokens = itertools.count(1)

    def __call__(self, body: dict[str, Any]) -> Reply:
        since = 0
        for message in body["messages"]:
            kinds = (
                {block["type"] for block in message["content"]} if isinstance(message["content"], list) else {"text"}
            )
            since = (
                0
                if message["role"] == "user" and "tool_result" not in kinds
                else since + (message["role"] == "assistant")
            )
        if since >= 2:
            return Reply("Done, with all of it.", thinking="That was all.")
        made = [self._make(f"token-{next(self._tokens)}") for _ in range(2)]
        return Reply(made, thinking="I do the next two.")


class Worker:
    """The process whose children are killed."""

    def __init__(self, server: MessagesServer) -> None:
        env = {**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk", "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.killed"],
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(self, folder: Path, kill: tuple[str, int] | None) -> int:
        folder.mkdir(parents=True, exist_ok=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"folder": str(folder), "kill": kill}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def points(seen: dict[str, int]) -> list[tuple[str, int]]:
    """Choose 50 different points of a run, spread over its states."""
    chance = random.Random(SEED)
    left = {sign: chance.sample(range(1, seen[sign] + 1), seen[sign]) for sign in SIGNS}
    chosen: list[tuple[str, int]] = []
    for sign in itertools.cycle(SIGNS):
        if left[sign]:
            chosen.append((sign, left[sign].pop()))
        if len(chosen) == POINTS:
            return chosen
    raise AssertionError("there are not so many points")


def told(folder: Path) -> dict[str, str]:
    """Return by token what the model was told of its call."""
    [path] = (folder / FOLDER).glob("*.jsonl")
    found = read_session(path, Seals(folder / "keys"))
    assert found is not None and found.sealed
    check_transcript(found.messages)
    results: dict[str, str] = {}
    tokens: dict[str, str] = {}
    for message in found.messages:
        for block in message["content"]:
            if block["type"] == "tool_use":
                tokens[block["id"]] = block["input"]["token"]
            elif block["type"] == "tool_result":
                results[tokens[block["tool_use_id"]]] = block["content"][0]["text"]
    return results


def test_killed_at_50_points_the_session_resumes_with_a_valid_transcript_and_nothing_approved_runs_twice(tmp_path):
    """The server checks each request as the API does, thinking's binding to its prefix included."""
    with ExitStack() as stack:
        server = stack.enter_context(MessagesServer(Model()))
        worker = stack.enter_context(Worker(server))
        assert worker.run(tmp_path / "whole", None) == 0
        seen = json.loads((tmp_path / "whole" / "signs.json").read_text())
        assert set(seen) == set(SIGNS)
        cut = Counter[str]()
        for number, kill in enumerate(points(seen)):
            folder = tmp_path / str(number)
            assert worker.run(folder, kill) == -9, kill
            before = (folder / "effects.txt").read_text().split() if (folder / "effects.txt").exists() else []
            assert worker.run(folder, None) == 0, kill
            effects = (folder / "effects.txt").read_text().split()
            assert len(effects) == len(set(effects)), f"{kill}: something ran twice"
            assert effects[: len(before)] == before
            results = told(folder)
            for token, text in results.items():
                if text == f"did {token}":
                    assert token in effects, kill
                elif text == NEVER_BEGAN:
                    assert token not in effects, kill
                else:
                    assert text == MAYBE, (kill, text)
                cut[text if text in {MAYBE, NEVER_BEGAN} else "did"] += 1
            assert set(effects) <= set(results), f"{kill}: the model does not know of something that happened"
        server.assert_clean()
    assert min(cut.values()) >= 10 and len(cut) == 3, cut
