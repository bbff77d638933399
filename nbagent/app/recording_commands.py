"""`%agent record FILE` makes a recording of a run that is over, and a lesson of it; `%agent replay FILE` tells what is in one.

A kept run has whole replies and when they began and ended; their pieces are spread evenly between. Must not know how a replay goes.
Read `record`, then `_requests`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.app.history import NONE, Kept, chosen, event_in, lines_in, runs_in
from nbagent.app.recording import cleaning_of
from nbagent.core.errors import ConfigError
from nbagent.core.messages import Block, Json, Message, reply_events
from nbagent.core.ports import Request
from nbagent.extend.sessions import FOLDER
from nbagent.models.recording import Piece, Tape, read_recording

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

_USAGE = "%agent record FILE [N] [--lesson NAME.ipynb]: N is a run of %agent history, without it the last one."
_NOTHING = "%agent replay FILE tells what is in a recording; %%agent --replay FILE plays it."


@dataclass(frozen=True, slots=True)
class _Reply:
    """One reply of a kept run: what was asked, and the pieces of what came."""

    request: Request
    model: str
    pieces: list[Piece]


def record(extension: Extension, rest: str) -> str:
    """Carry out `%agent record FILE [N] [--lesson NAME.ipynb]`; raises `ConfigError`."""
    words = rest.replace("--lesson=", "--lesson ").split()
    lesson = ""
    if "--lesson" in words:
        at = words.index("--lesson")
        lesson = words[at + 1] if at + 1 < len(words) else ""
        if not lesson.endswith(".ipynb"):
            raise ConfigError(f"--lesson needs the name of a notebook. {_USAGE}")
        del words[at : at + 2]
    if not words or len(words) > 2 or words[0].startswith("-"):
        raise ConfigError(_USAGE)
    run = _run(extension, words[1] if len(words) > 1 else "")
    path = Path(words[0]).expanduser()
    count = _written(extension, run, path)
    said = f"{path} has the run “{_prompt(run)[:60]}”: {count} request{'s' * (count != 1)}. %%agent --replay-loose {path} plays it."
    if lesson:
        _lesson(Path(lesson).expanduser(), path, _prompt(run))
        said += f"\n{lesson} is a lesson about it: the task, the run played again, three questions. Look at both before you give them away."
    return said


def replay(_: Extension, rest: str) -> str:
    """Carry out `%agent replay FILE`; raises `ConfigError`."""
    from nbagent.teach.replayed import listed

    if not rest.strip():
        raise ConfigError(_NOTHING)
    file = read_recording(Path(rest.strip()).expanduser())
    head = f"{rest.strip()}: {file.model}, {file.about.get('when') or 'no date'}"
    return "\n".join([head, *listed(file.requests), f"%%agent --replay {rest.strip()} plays it."])


def _run(extension: Extension, number: str) -> Kept:
    runs = runs_in(extension.folder / FOLDER)
    if number:
        return chosen(runs, number)
    over = [run for run in runs if run.ended is not None]
    if not over:
        raise ConfigError(NONE)
    return over[-1]


def _prompt(run: Kept) -> str:
    return str(run.started.get("prompt") or "").strip()


def _written(extension: Extension, run: Kept, path: Path) -> int:
    from nbagent import __version__

    about = {
        "nbagent": __version__,
        "made_from": "a kept run",
        "prompt": "",
        "ended": (run.ended or {}).get("reason", ""),
    }
    cleaning = cleaning_of(extension)
    about["prompt"] = cleaning.clean(_prompt(run))
    tape, count = Tape(path, cleaning=cleaning, about=about), 0
    for reply in _requests(run):
        tape.write(reply.request, reply.pieces, reply.model)
        count += 1
    if not count:
        raise ConfigError("Of this run no reply is kept, so there is nothing to record.")
    return count


def _requests(run: Kept) -> Iterator[_Reply]:
    """Yield the replies of a kept run, each with the request that it answers."""
    head: Json = {}
    messages: list[Message] = []
    asked: tuple[Request, str, float] | None = None
    for place, line in lines_in(run.path):
        kind, value = _record(line)
        if kind == "session":
            head = value
        elif kind == "message":
            messages.append(value)
        elif kind == "event" and place >= run.offset:
            what = value.get("type")
            if what == "request_sent":
                request = Request(str(head.get("system") or ""), tuple(head.get("tools") or ()), list(messages))
                asked = (request, str(value.get("model") or ""), float(value.get("at") or 0.0))
            elif what == "reply_ended" and asked is not None:
                yield _Reply(asked[0], asked[1], _pieces(value, asked))
            elif what == "run_ended":
                return


def _record(line: bytes) -> tuple[str, Json]:
    """Return the kind of a session's record and what it holds; ("", {}) for what can't be read."""
    if b'"event"' in line[:400]:
        return "event", event_in(line)[0]
    try:
        record: Any = json.loads(line)
        kind = str(record["type"])
        return kind, record["message"] if kind == "message" else record
    except (ValueError, KeyError, TypeError):
        return "", {}


def _pieces(ended: Json, asked: tuple[Request, str, float]) -> list[Piece]:
    content: list[Block] = list(ended.get("content") or ())
    found: Any = ended.get("usage")
    usage: Json = found if isinstance(found, dict) else {}
    raw = {
        "input_tokens": usage.get("input", 0), "output_tokens": usage.get("output", 0),
        "cache_creation_input_tokens": usage.get("cache_write", 0), "cache_read_input_tokens": usage.get("cache_read", 0),
    }  # fmt: skip
    events = reply_events(content, str(ended.get("stop_reason") or "") or None, usage=raw, model=asked[1])
    took = max(0.0, float(ended.get("at") or 0.0) - asked[2]) * 1000
    return [Piece(round(took * (n + 1) / len(events)), event) for n, event in enumerate(events)]


def _lesson(path: Path, recording: Path, prompt: str) -> None:
    """Write the notebook of a lesson; one that is there is not written over. Raises `ConfigError`."""
    import nbformat
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    if path.exists():
        raise ConfigError(f"{path} is there already. Choose another name for the lesson.")
    file = Path(os.path.relpath(recording.resolve(), path.resolve().parent)).as_posix()
    cells = [
        new_markdown_cell(
            _TITLE.format(prompt="\n".join(f"> {line}" for line in prompt.splitlines()) or "> …"), id="title"
        ),
        new_code_cell(_LOAD.format(file=file), id="load"),
        new_markdown_cell(_PREDICT, id="predict"),
        new_code_cell(f"%%agent --replay-loose {file} --recorded-results\n{prompt or '…'}", id="replay"),
        new_markdown_cell(_ASK, id="ask"),
        new_code_cell('first_tool = "..."\nturns = 0\nstopped = "..."', id="answers"),
        new_code_cell("questions.check(first_tool=first_tool, turns=turns, stopped=stopped)", id="check"),
    ]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    except OSError as error:
        raise ConfigError(f"The lesson can't be written to {path}: {error.strerror}.") from error


_TITLE = """# A run, played again

An agent was given this task:

{prompt}

You will see what it did. No model is asked and nothing runs: it is a recording."""
_LOAD = """%load_ext nbagent
from nbagent.teach.replayed import Questions

questions = Questions.of("{file}")"""
_PREDICT = """**What do you expect?** Write it down before you run the next cell:

1. Which tool does it take first?
2. How many turns does it need? A turn is one reply of the model, and the results of its calls.
3. Why does it stop?

With `--step` in the cell's first line the run rests after every event until you press **Next**."""
_ASK = """## What was it?

Fill in what you saw. `stopped` is one of: `end_turn` (the model was done), `max_turns`, `budget`, `timeout`, `repeated_observation`, `denied`,
`interrupted`, `refusal`, `max_tokens`, `error`. `first_tool` is `""` if it took none."""
