"""One unit of work that goes to a worker, and what came of it: plain values that travel as JSON.

Nothing of the environment and no key travels in a job: a worker has its own. Must not know how a job is performed, nor
on which machine. Read `Job`, then `Outcome`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json, Usage
from nbagent.extend.sessions import FOLDER

Ended = Literal["done", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class Job:
    """One run of the agent, in a process and a kernel of its own.

    `folder` is the working folder (absolute), `notebook` a file whose cells the agent reads, adds and runs in that
    kernel. `options` are those of a `%%agent` line by name (`max_turns`, `mode` …); `granted` are settings of who
    started the job, as if they stood in the worker's environment (`NBAGENT_MODE` …): only a person's word goes there.
    `tools`: names of the tools to offer (`*` may stand in them; () for all), and `package.module:attribute` of tools of
    the person's own that the worker can import. `variables` are put into the kernel before the run.

    `session` is the id of the session in `folder` that the job is written to, or the path of its file. Where it is there
    already, the job goes on in it: the same job (`id`) after where it was cut off, another one with its prompt.
    `role` is `package.module:function`; it is called (and awaited) with the extension and the job before the run, and returns
    the run's `Company` or None; its `aclose`, if it has one, is awaited after the run. A role that performs the whole job
    itself, with runs of its own, returns the `Outcome`. `about` is for the role alone.
    `asks`: the hub has somebody who answers approvals and questions.
    """

    id: str
    prompt: str
    folder: str
    notebook: str = ""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    granted: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    session: str = ""
    name: str = ""
    role: str = ""
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asks: bool = False

    @property
    def session_id(self) -> str:
        """The id of the session, "" where the worker makes one."""
        return Path(self.session).stem if self.session.endswith(".jsonl") else self.session

    @property
    def session_path(self) -> Path | None:
        """The file of the session, None where the worker chooses it."""
        return Path(self.folder) / FOLDER / f"{self.session_id}.jsonl" if self.session else None

    def to_json(self) -> Json:
        """Return the job as a JSON object."""
        return _plain(self)

    @classmethod
    def from_json(cls, data: Json) -> Job:
        """Return the job that `to_json` gave. Raises `ConfigError` for what is none."""
        found = _known(cls, data)
        found["tools"] = tuple(data.get("tools") or ())
        try:
            return cls(**found)
        except TypeError as error:
            raise ConfigError(f"This is no job: {error}.") from None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job.

    `status`: done (the model said it was done), stopped (by a person, a limit, a rule; or the process that gave the work
    out is gone), failed (an error, or the process died). `problem` says in a sentence why it is not done.
    `answer` are the model's last words, `stop_reason` as in `nbagent.Answer` ("" where no run ended), `usage` tokens, `cost`
    US dollars where the price is known, `session` the path of the session's file, `seconds` how long it took here.
    `requests` is how many requests this performance made: 0 where the answer was in the session already. `died`: its process
    ended before it did, so it can be performed again.
    """

    id: str
    status: Ended
    answer: str = ""
    stop_reason: str = ""
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    session: str = ""
    seconds: float = 0.0
    problem: str = ""
    requests: int = 0
    died: bool = False

    def to_json(self) -> Json:
        """Return the outcome as a JSON object."""
        return _plain(self)

    @classmethod
    def from_json(cls, data: Json) -> Outcome:
        """Return the outcome that `to_json` gave."""
        found = _known(cls, data)
        found["usage"] = Usage(**(data.get("usage") or {}))
        return cls(**found)


def _known(kind: type[Job | Outcome], data: Json) -> Json:
    """Return what of `data` has a field: a later version may say more."""
    return {item.name: data[item.name] for item in dataclasses.fields(kind) if item.name in data}


def _plain(value: Job | Outcome) -> Json:
    return {item.name: _plain_value(getattr(value, item.name)) for item in dataclasses.fields(value)}


def _plain_value(value: Any) -> Any:
    if isinstance(value, Usage):
        return dataclasses.asdict(value)
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
