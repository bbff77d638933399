"""Does the tasks with a real model, by hand: `python -m tests.analysis.real_model URL MODEL [TASK …]`.

Nothing is expected of a small model but clean endings: each run ends by itself with a reason, keeps a valid transcript, and
leaves the person's files as they were. Prints a table a line at a time; the records go into the folder RECORDS names.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from tests.analysis.desk import TASKS, Task, done, hashes
from tests.core.rig import check_transcript
from tests.failures.room import transcripts
from tests.support.warm import ANALYST, CORE, LIBRARIES, Warm

LIMITS = {"NBAGENT_MAX_TURNS": "6", "NBAGENT_TIMEOUT": "240"}
_FORMAT = "{:<9} {:<34} {:>5} {:>8} {:>5}  {}"


def main(url: str, model: str, names: list[str]) -> None:
    """Do the tasks one by one and print what came of each."""
    os.environ.pop("MPLBACKEND", None)
    for name, value in LIMITS.items():
        os.environ.setdefault(name, value)
    sys.stdout.write(_FORMAT.format("task", "ended", "turns", "tokens", "s", "checker") + "\n")
    with tempfile.TemporaryDirectory() as place, Warm(Path(place), ANALYST, (*LIBRARIES, *CORE)):
        for name in names or TASKS:
            with tempfile.TemporaryDirectory() as folder:
                sys.stdout.write(asyncio.run(_line(name, Path(folder), url, model)) + "\n")
                sys.stdout.flush()


async def _line(name: str, folder: Path, url: str, model: str) -> str:
    begun = time.monotonic()
    work, facts = await done(Task(name), folder, model=model, url=url)
    seconds = time.monotonic() - begun
    for messages in transcripts(folder):
        check_transcript(messages)
    assert hashes(folder) == dict(work.before), "the model changed the person's files"
    try:
        Task(name).check(work, facts)
        verdict = "accepted"
    except Exception as refused:
        verdict = f"refused: {str(refused).splitlines()[0][:90] if str(refused) else type(refused).__name__}"
    if "RECORDS" in os.environ:
        (Path(os.environ["RECORDS"]) / f"{name}.txt").write_text(work.record, encoding="utf-8")
    turns, tokens = re.findall(r"(\d+) turns?\b", work.record), re.findall(r"([\d.]+k?) tokens", work.record)
    return _FORMAT.format(
        name, _ended(folder)[:34], (turns or ["?"])[-1], (tokens or ["?"])[-1], f"{seconds:.0f}", verdict
    )


def _ended(folder: Path) -> str:
    """Return how the newest run ended, as its session says."""
    for path in sorted(
        (folder / ".nbagent" / "sessions").glob("*.jsonl"), key=lambda one: one.stat().st_mtime_ns, reverse=True
    ):
        for line in reversed(path.read_text("utf-8").splitlines()):
            record = json.loads(line)
            if "reason" in json.dumps(record) and record.get("type") != "message":
                found = re.search(r'"reason": "(\w+)"', json.dumps(record))
                if found:
                    return found[1]
    return "no end is written down"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
