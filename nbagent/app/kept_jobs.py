"""What of a job is in its session's file already, so that no reply is paid twice: its whole answer, or where it was cut off.

Must not know who performs jobs. Read `kept_of`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbagent.app.jobs import Outcome
from nbagent.core.endings import GOES_ON
from nbagent.core.events import Reason
from nbagent.core.messages import Json, Usage, joined_text
from nbagent.extend.sessions_read import lines

MARK = "job"
"""The type of the record that says, after a run has begun, of which job it is."""

_SUMMED_UP = 50
_ENDS = frozenset({"end_turn", "stop_sequence", "tool_use", ""})
"""Why a last reply without calls ended that was whole ("": the process ended before that was noted)."""


@dataclass(frozen=True, slots=True)
class KeptJob:
    """What a session's file has of a job. `begun`: its prompt is in there. `usage`, `cost`, `turns` are of all its runs.

    `reason` is how its last run ended, "" where it was cut off; `text` its last words, `whole` whether these are an answer.
    """

    session: Path
    begun: bool = False
    reason: str = ""
    sentence: str = ""
    text: str = ""
    whole: bool = False
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    turns: int = 0

    def outcome(self, job: str) -> Outcome | None:
        """Return the job's outcome where its last run came to an end that nothing can be added to, else None."""
        if not self.begun:
            return None
        if self.whole:
            return Outcome(job, "done", self.text, str(Reason.END_TURN), self.turns, self.usage, self.cost, str(self.session))  # fmt: skip
        if not self.reason or Reason(self.reason) in GOES_ON:
            return None
        return Outcome(job, "stopped", self.text, self.reason, self.turns, self.usage, self.cost, str(self.session),
                       problem=self.sentence)  # fmt: skip


def kept_of(path: Path, job: str) -> KeptJob:
    """Return what is kept of `job` in the session of `path` and in those in which that went on from a summary."""
    reading = _Reading(job)
    for _ in range(_SUMMED_UP):
        heir = ""
        for record in _records(path):
            reading.take(record)
            if record["type"] == "compacted":
                heir = str(record.get("into") or "")
        if not heir or not (following := path.with_name(f"{heir}.jsonl")).is_file():
            break
        path = following
    return reading.end(path)


def _records(path: Path) -> Iterator[Json]:
    for line in lines(path):
        try:
            found: Any = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and isinstance(found.get("type"), str):
            yield found


class _Reading:
    """Follows the records of a session. Those of other jobs in it do not count."""

    def __init__(self, job: str) -> None:
        self._job, self._ours, self._begun = job, False, False
        self._usage, self._turns = Usage(), 0
        self._cost: float | None = 0.0
        self._run: list[Json] = []
        self._ended: Json | None = None
        self._reply: Json | None = None

    def take(self, record: Json) -> None:
        event = record.get("event")
        kind = event.get("type") if record["type"] == "event" and isinstance(event, dict) else record["type"]
        match kind:
            case "run_started":
                self._close()
                self._ours, self._ended, self._reply = False, None, None
            case "job":
                self._ours = record.get("job") == self._job
            case "message" if record["message"].get("role") == "assistant":
                self._reply = {"content": record["message"]["content"], "stop_reason": ""}
            case "message":
                self._reply, self._begun = None, self._begun or self._ours
            case "reply_ended" if isinstance(event, dict):
                self._run.append(event)
                if self._reply is not None:
                    self._reply = {**self._reply, "stop_reason": event.get("stop_reason")}
            case "run_ended" if isinstance(event, dict):
                self._run, self._ended = [event], event
            case _:
                pass

    def _close(self) -> None:
        """Count a run that is over."""
        for event in self._run if self._ours else ():
            used, price = event.get("usage"), event.get("cost")
            self._usage += Usage(**used) if isinstance(used, dict) else Usage()
            self._cost = self._cost + price if self._cost is not None and isinstance(price, int | float) else None
            self._turns += int(event.get("turns") or 1)
        self._run = []

    def end(self, path: Path) -> KeptJob:
        ours, ended, reply = self._ours, self._ended, self._reply
        self._close()
        if not ours:  # another job has gone on in it
            return KeptJob(path, self._begun, usage=self._usage, cost=self._cost, turns=self._turns)
        content = reply["content"] if reply is not None else []
        calls = any(block.get("type") == "tool_use" for block in content)
        text = str(ended.get("text") or "") if ended is not None else joined_text(content)
        answers = reply is not None and not calls and str(reply["stop_reason"] or "") in _ENDS and bool(text)
        reason = str(ended.get("reason") or "") if ended is not None else ""
        whole = reason == str(Reason.END_TURN) or (reason in {"", str(Reason.INTERRUPTED)} and answers)
        sentence = str(ended.get("sentence") or "") if ended is not None else ""
        return KeptJob(path, self._begun, reason, sentence, text, whole, self._usage, self._cost, self._turns)
