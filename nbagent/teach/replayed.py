"""A recorded run as a lesson: what can be asked about it, and whether an answer is right.

The answers are read from the recording, so no teacher has to write them. Must not know of cells. Read `Questions.of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbagent.core.errors import NbagentError
from nbagent.core.messages import ReplyBuilder
from nbagent.models.recording import Recorded, read_recording
from nbagent.teach.exercises import Outcome


@dataclass(frozen=True, slots=True)
class Questions:
    """Three questions about one run: the first tool ("" for none), how many turns, why it stopped (a stop reason)."""

    tools: tuple[str, ...]
    turns: int
    stopped: str

    @classmethod
    def of(cls, path: str | Path) -> Questions:
        """Read them from a recording; raises `ConfigError` where there is none."""
        file = read_recording(Path(path))
        whole = [reply for one in file.requests if (reply := reply_of(one)).complete]
        tools = tuple(str(call["name"]) for reply in whole for call in reply.calls)
        last = str(whole[-1].stop_reason) if whole else ""
        return cls(tools, len(whole), str(file.about.get("ended") or last))

    def check(self, *, first_tool: Any, turns: Any, stopped: Any) -> Outcome:
        """Return whether the three answers are right, or which one to look at again."""
        wrong = self._wrong(str(first_tool).strip(), turns, str(stopped).strip().lower().replace(" ", "_"))
        return Outcome("run", passed=not wrong, said=wrong or "the first tool, the turns, and why it stopped")

    def _wrong(self, first_tool: str, turns: Any, stopped: str) -> str:
        first = self.tools[0] if self.tools else ""
        if first_tool != first:
            return f"look at the first call again: {first_tool or 'none'!r} it was not."
        if turns != self.turns:
            return f"a turn is one reply of the model, with or without calls. {turns!r} is not their number."
        if stopped != self.stopped:
            return f"{stopped!r} is not why it stopped. Did the model make calls in its last reply? Was there a limit?"
        return ""


def reply_of(one: Recorded) -> ReplyBuilder:
    """Return the reply that was streamed to a recorded request, as far as it came."""
    builder = ReplyBuilder()
    for piece in one.pieces:
        try:
            builder.feed(piece.event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NbagentError(f"The reply to request {one.number} can't be read: {error!r}.") from error
    return builder


def listed(requests: Sequence[Recorded]) -> list[str]:
    """Return a line for each request of a recording: how long its stream took, what the model called, how it ended."""
    lines: list[str] = []
    for one in requests:
        reply = reply_of(one)
        said = ", ".join(str(call["name"]) for call in reply.calls) or "words only"
        end = one.failure.kind if one.failure else "stopped here" if one.cut else str(reply.stop_reason)
        took = one.pieces[-1].at if one.pieces else 0
        lines.append(f"{one.number:>3}  {took:>6} ms  {said}  ({end})")
    return lines
