"""The scripts behind the last sections of notebooks/capabilities.ipynb: agents in the background, many inputs, a team.

The models' replies, written down; all that answers them is real, and what they say is computed from that. Must not know of
the screen. Read any of them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from nbagent.core.messages import Message
from nbagent.models.scripted import Scripted, Value, call, last_results, prompt_text, result_of, say
from nbagent.teach.capabilities import told
from nbagent.teach.team import lead, since_prompt

Seen = Sequence[Message]

TABLE = "data/penguins.csv"
HALF = 172
_NUMBERED = re.compile(r"^\s*\d+(?:\t|: ?| \| ?)", re.MULTILINE)
_COLUMN = re.compile(r"column (\w+)")


def beside() -> list[Scripted]:
    """Looks at the islands while the person goes on working."""
    return [[say("I look while you work."), call("inspect_variable", name="penguins", column="island")], told()]


# ── many inputs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def counts() -> list[Scripted]:
    """Counts the rows of the species that its prompt names in quotes; reads in two parts, since long results are cut."""
    return [
        [call("read_file", path=TABLE, end_line=HALF), call("read_file", path=TABLE, start_line=HALF + 1)],
        _counted,
    ]


def _counted(transcript: Seen) -> Value:
    named = re.search(r"“(.+?)”", prompt_text(transcript))
    rows = _rows(result_of(transcript, "read_file", last=2) + "\n" + result_of(transcript, "read_file"))
    species = named[1] if named else ""
    return f"{sum(row.get('species') == species for row in rows)} of {len(rows)} rows"


# ── a team ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def leads() -> list[Scripted]:
    """Leads a team: reads the table's columns, makes a task of each of the first three, waits, merges, sums up."""
    return [[say("First the columns."), call("read_file", path=TABLE, end_line=3)], _tasks, *lead()[2:]]


def _tasks(transcript: Seen) -> Value:
    columns = list(_rows(result_of(transcript, "read_file"))[0])[:3]
    return [
        say(f"{len(columns)} columns, a task for each."),
        *(call("task_create", title=f"Describe {name}",
               description=f"Read {TABLE} and describe the column {name} in the file {name}.md.") for name in columns),
    ]  # fmt: skip


def describes() -> list[Scripted]:
    """A teammate: describes the column that its task names, in a file, from what it has read."""
    return [_step] * 60


def _step(transcript: Seen) -> Value:
    named = _COLUMN.search(prompt_text(transcript))
    if named is None:
        return "NOT DONE: the task names no column."
    since = since_prompt(transcript)
    done = [block["name"] for message in since for block in _calls(message)]
    if "read_file" not in done:
        return call("read_file", path=TABLE, end_line=HALF)
    if "write_file" not in done:
        values = [row[named[1]] for row in _rows(result_of(since, "read_file")) if row.get(named[1])]
        text = f"# {named[1]}\n\nOf the first {len(values)} values {len(set(values))} are different, e.g. {', '.join(sorted(set(values))[:3])}.\n"
        return call("write_file", path=f"{named[1]}.md", content=text)
    wrote = last_results(since)[-1].splitlines()[0]
    if not wrote.startswith("wrote"):
        return f"NOT DONE: {wrote}"
    return f"{named[1]}.md describes the column. {wrote}"


def _rows(read: str) -> list[dict[str, str]]:
    lines = _NUMBERED.sub("", read).splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("species,"))
    return [row for row in csv.DictReader(io.StringIO("\n".join(lines[begin:]))) if row.get("island")]


def _calls(message: Message) -> list[dict[str, object]]:
    content = message.get("content")
    return [block for block in content if block.get("type") == "tool_use"] if isinstance(content, list) else []
