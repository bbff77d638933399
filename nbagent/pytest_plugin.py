"""The pytest fixture `agent_replay`: a test of an agent of yours, with a model that was recorded once and is never asked again.

    async def test_it_counts(agent_replay):
        answer = await agent_replay("How many rows has sales.csv?", tools=[count_rows])
        assert "344" in answer.text

`pytest --agent-record` asks the real model and writes `recordings/FILE/TEST.jsonl` beside the test; without it the recording is played, strictly: the
tools run for real, and a test whose agent asks something else fails with what is different. Nothing of nbagent is imported before
a test asks for the fixture. Read `AgentReplay`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from nbagent.app.answer import Answer
    from nbagent.core.events import Event
    from nbagent.core.ports import Model
    from nbagent.core.tools import Tool
    from nbagent.models.recorded import Replayed

_MODEL = "default"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--agent-record [MODEL]`."""
    group = parser.getgroup("nbagent", "tests of agents")
    group.addoption(
        "--agent-record",
        nargs="?",
        const=_MODEL,
        metavar="MODEL",
        help="ask this model (default: nbagent's own) and write the recordings that agent_replay plays",
    )


@pytest.fixture
def agent_replay(request: pytest.FixtureRequest) -> AgentReplay:
    """An agent whose model is recorded: await it with a task and tools. See `nbagent.pytest_plugin`."""
    test = re.sub(
        r"[^\w.-]+", "_", request.node.nodeid.partition("::")[2]
    )  # with its class: names may be the same in two
    path = request.path.parent / "recordings" / request.path.stem / f"{test}.jsonl"
    return AgentReplay(path, str(request.config.getoption("--agent-record") or ""), request.config.rootpath)


class AgentReplay:
    """The agent of one test. `path` is its recording, `record` the model that is asked for it ("": it is played)."""

    def __init__(self, path: Path, record: str, root: Path) -> None:
        self.path, self._record, self._root = path, record, root
        self._model: Model | None = None
        self.events: list[Event] = []
        """What the last run reported."""

    async def __call__(
        self,
        task: str,
        *,
        tools: Sequence[Tool] = (),
        mode: str = "default",
        max_turns: int = 25,
        system: str = "You are a careful assistant.",
        model: Model | None = None,
    ) -> Answer:
        """Run the task with these tools to its end and return the answer; what the mode would ask a person is denied.

        `model` is recorded in the place of a real one. Fails the test where the run departs from its recording.
        """
        from nbagent.app.answer import Answer
        from nbagent.core.events import RunEnded
        from nbagent.teach.bench import bench

        made = bench(self.model(model), tools, mode=mode, max_turns=max_turns, system=system)
        self.events = await made.collect(task)
        ended = self.events[-1]
        assert isinstance(ended, RunEnded)
        if str(ended.reason) == "error":
            pytest.fail(ended.sentence, pytrace=False)
        return Answer.of(ended, made.session.id, replayed=not self._record)

    def model(self, asked: Model | None = None) -> Model:
        """Return the model of this test, for an agent that you put together yourself; the same at each call.

        While recording it is `asked`, or the model that `--agent-record` names.
        """
        if self._model is None:
            self._model = self._recording(asked) if self._record else self._replayed()
        return self._model

    def assert_complete(self) -> None:
        """Raise AssertionError where the recording has requests that were not asked for."""
        left: Any = getattr(self._model, "assert_complete", None)
        if left is not None:
            left()

    def _recording(self, asked: Model | None) -> Model:
        from nbagent import __version__
        from nbagent.models import open_model
        from nbagent.models.recorded import Recording
        from nbagent.models.recording import Cleaning, Tape
        from nbagent.tools.secrets import mask

        tape = Tape(self.path, cleaning=Cleaning.here(mask, self._root), about={"nbagent": __version__})
        return Recording(asked or open_model(self._record), tape)

    def _replayed(self) -> Replayed:
        from nbagent.models.recorded import Replayed
        from nbagent.models.recording import Cleaning, read_recording
        from nbagent.tools.secrets import mask

        if not self.path.exists():
            pytest.fail(f"There is no recording {self.path} yet. pytest --agent-record makes it.", pytrace=False)
        return Replayed(read_recording(self.path), cleaning=Cleaning.here(mask, self._root))
