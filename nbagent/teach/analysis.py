"""The scripts behind notebooks/12_data_analysis.ipynb: an analyst's helper, from a raw file to what is sound in it.

The model's replies, written down; what they say, and the code that they add, is computed from what the tools returned, so
another file gives other words. Must not know of the screen. Read `repair`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from nbagent.core.messages import Block, Message
from nbagent.models.scripted import REFUSED, Scripted, Value, call, last_results, prompt_text, result_of, say
from nbagent.teach.capabilities import told

Seen = Sequence[Message]

_COLUMN = re.compile(r"^'(.+?)'  ")
_ROW = re.compile(r"^\| (.*) \|$", re.MULTILINE)
_CELL = re.compile(r"^\d+\. (\S+) code\b.*\n((?:   .*\n?)+)", re.MULTILINE)
_COUNTED = re.compile(r"'([^']*)' \((\d+)\)")
_HINT = re.compile(r"^- (In\[\d+\]):(\d+) (.+)$", re.MULTILINE)
_DATA = re.compile(r"What it is \(data, not instructions\):\n(In\[\d+\]).*?```python\n(.*?)\n```(?:\nIts output:\n```\n(.*?)\n```)?", re.DOTALL)  # fmt: skip


def _unless_refused(step: Callable[[Seen], Value]) -> Scripted:
    """A real model would find another way; this script can't, so it says what it lacks and ends."""

    def turn(transcript: Seen) -> Value:
        refused = [text for text in last_results(transcript) if text.startswith(REFUSED)]
        return f"A step that I need was refused, so I stop here. ({refused[0]})" if refused else step(transcript)

    return turn


# ── 15 eyes for data ─────────────────────────────────────────────────────────────────────────────────────────────────


def head() -> list[Scripted]:
    """Looks how a file begins, and hands on the call that loads it."""

    def answer(transcript: Seen) -> Value:
        read, _, loads = result_of(transcript, "read_data_head").partition("To read it:\n")
        if not loads:
            return told("What came of it")(transcript)
        lines = read.splitlines()
        before = next((f" It has {line}." for line in lines if "before the header" in line), "")
        return f"{lines[0]}.{before} This loads it right:\n\n```python\n{loads.strip()}\n```"

    return [[say("I look how it begins, without loading it."), call("read_data_head", path="data/field.csv")], answer]


def profile() -> list[Scripted]:
    """Says what is suspicious about the table, column by column."""

    def answer(transcript: Seen) -> Value:
        text = result_of(transcript, "profile_table")
        found = [
            f"- {f'`{column}`: ' if column else ''}{what}"
            for column, notes in _suspicious(text).items()
            for what in notes
        ]
        looked = next((line for line in text.splitlines() if line.startswith("Of ")), "")
        return (
            f"{len(found)} things. ({looked})\n\n" + "\n".join(found)
            if found
            else f"Nothing that I can see. ({looked})"
        )

    return [[call("profile_table", name="birds")], answer]


def _suspicious(profile: str) -> dict[str, list[str]]:
    """What a profile calls suspicious, by column; of the table as a whole under ""."""
    found: dict[str, list[str]] = {}
    column = ""
    for line in profile.splitlines():
        if (named := _COLUMN.match(line)) is not None:
            column = named[1]
        elif line.strip().startswith("! "):
            found.setdefault(column, []).append(line.strip()[2:])
    return found


def own() -> list[Scripted]:
    """Looks at an object of a class that no library knows."""
    return [[call("list_variables", pattern="balance"), call("inspect_variable", name="balance")], told("What I see")]


# ── 16 plots ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def repair() -> list[Scripted]:
    """Repairs what the profile shows, draws a figure, and says what is on it: imports, heading and cells in their places."""
    steps = [_look, _cleaned, _drawn, _seen]
    return [_unless_refused(step) for step in steps]


def _look(_: Seen) -> Value:
    return [say("I look first."), call("profile_table", name="birds"), call("read_notebook")]


def _cleaned(transcript: Seen) -> Value:
    steps = list(_repairs(_suspicious(result_of(transcript, "profile_table"))))
    source = "\n".join(["clean = (", "    birds", *(f"    {step}" for step in steps), ")",
                        'print(f"{len(clean)} of {len(birds)} rows kept")'])  # fmt: skip
    imports = [
        call("edit_cell", cell=cell, source=f"import matplotlib.pyplot as plt\n{code}", run=True)
        for cell, code in _cells(result_of(transcript, "read_notebook"))
        if code == "import pandas as pd"
    ]
    return [
        say(f"{len(steps)} repairs. What has to be imported goes into the cell with the imports."),
        *imports[:1],
        call("add_cell", source="## Mass and flippers", cell_type="markdown"),
        call("add_cell", source=source),
    ]


def _repairs(found: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The steps of a chain of pandas that repair what was found."""
    if any("there more than once" in note for note in found.get("", ())):
        yield ".drop_duplicates()"
    for column, notes in found.items():
        if any("blanks" in note or "spelled" in note for note in notes):
            yield f'.assign({column}=lambda table: table["{column}"].str.strip().str.title())'
        for note in notes:
            if (stands := re.match(r"stands for missing\? (-?\d+)", note)) is not None:
                yield f'.replace({{"{column}": {{{stands[1]}: float("nan")}}}})'


def _cells(overview: str) -> list[tuple[str, str]]:
    """The code cells of a list of cells: id and source."""
    return [
        (found[1], "\n".join(line[3:] for line in found[2].splitlines() if not line.startswith("   → ")))
        for found in _CELL.finditer(overview)
    ]


def _drawn(_: Seen) -> Value:
    source = (
        "fig, ax = plt.subplots(figsize=(6, 4))\n"
        'for species, part in clean.groupby("species"):\n'
        '    ax.scatter(part["flipper_length_mm"], part["body_mass_g"], s=14, alpha=0.7, label=species)\n'
        'ax.set(xlabel="flipper length (mm)", ylabel="body mass (g)", title="Mass and flippers")\n'
        "ax.legend()\n"
        "plt.show()"
    )
    return [say("Now the figure."), call("add_cell", source=source)]


def _seen(transcript: Seen) -> Value:
    shown = result_of(transcript, "add_cell")
    words = [line.strip() for line in shown.splitlines() if re.match(r"title |\s+(x |y |\d+ x |legend)", line)]
    picture = "I was given the picture that you see, and in words" if "[image]" in shown else "In words"
    kept = next((line for line in result_of(transcript, "add_cell", last=2).splitlines() if "rows kept" in line), "")
    return f"{kept}. {picture}:\n\n" + "\n".join(f"- {line}" for line in words)


# ── 17 SQL ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def sql() -> list[Scripted]:
    """Joins a data frame with a file, sees what finds no partner, and joins them by what the names mean."""

    def asked(on: str) -> Block:
        select = "SELECT birds.island, latitude, count(*) AS birds FROM birds LEFT JOIN 'data/islands.csv' AS islands"
        return call("query", sql=f"{select} ON {on} GROUP BY ALL ORDER BY birds DESC")

    def again(transcript: Seen) -> Value:
        alone = [f"“{row[0]}”" for row in _rows(transcript) if row[1] == "NULL"]
        if not alone:
            return _table("All of them have a partner", transcript)
        return [
            say(f"No partner has {', '.join(alone)}: I join without case and blanks."),
            asked("lower(trim(birds.island)) = lower(islands.island)"),
        ]

    return [[asked("birds.island = islands.island")], again, lambda seen: _table("With all of them", seen)]


def _rows(transcript: Seen) -> list[list[str]]:
    rows = [found.split(" | ") for found in _ROW.findall(result_of(transcript, "query"))]
    return rows[2:]


def _table(words: str, transcript: Seen) -> str:
    text = result_of(transcript, "query")
    table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    return f"{words}:\n\n{table}" if table else f"{words}: {text}"


# ── 18 asking ────────────────────────────────────────────────────────────────────────────────────────────────────────


def asked() -> list[Scripted]:
    """Answers from what an @-mention put beside the question."""

    def answer(transcript: Seen) -> Value:
        common = next((line for line in prompt_text(transcript).splitlines() if line.startswith("most common")), "")
        counts = [(name, int(count)) for name, count in _COUNTED.findall(common)]
        meant = Counter(name.strip().casefold() for name, _ in counts)
        twice = [f"“{name}” ({count})" for name, count in counts if meant[name.strip().casefold()] > 1]
        if not twice:
            return f"There are {len(counts)} different values, and each is spelled in one way."
        return f"{len(counts)} spellings, {len(meant)} islands: {' and '.join(twice)} are the same."

    return [answer]


def explained() -> list[Scripted]:
    """Says what a cell does, from its text and output as they were given."""

    def answer(transcript: Seen) -> Value:
        found = _DATA.search(prompt_text(transcript))
        if found is None:
            return "I was given no cell to explain."
        cell, code, output = found.groups()
        last = code.splitlines()[-1]
        gave = f" It gave `{output}`." if output else ""
        return f"{cell} has {len(code.splitlines())} lines; what it shows is its last, `{last}`.{gave}"

    return [answer]


def reviewed() -> list[Scripted]:
    """Looks at the values that a mean is made of, and reports what it finds with the line of each."""
    return [[call("inspect_variable", name="birds", column="body_mass_g")], _findings]


def _findings(transcript: Seen) -> Value:
    prompt = next(text for message in transcript if "Review the method" in (text := prompt_text([message])))
    low = re.search(r"\bmin:? (-\d+)", result_of(transcript, "inspect_variable"))
    cells = _numbered(prompt)
    findings: list[str] = []
    for cell, lines in cells.items():
        for number, line in enumerate(lines, 1):
            if low and 'birds["body_mass_g"]' in line:
                findings.append(
                    f"high: {low[1]} counts as a mass\n{cell}:{number} `{line.strip()}`\nThe least value of the column is "
                    f"{low[1]}, which no bird weighs: each pulls the mean down.\nCheck: count the values below 0."
                )
    for cell, number, what in _HINT.findall(prompt.replace("\\:", ":")):
        line = cells.get(cell, [])[int(number) - 1 : int(number)]
        findings.append(f"medium: {what}\n{cell}:{number} `{''.join(line).strip()}`\nCheck: run the cell twice.")
    listed = [f"### {place}. {finding}" for place, finding in enumerate(findings, 1)]
    sound = f"### Sound\nI looked at {len(cells)} cells and at one column; of the rest I say nothing."
    return "\n\n".join([*listed, sound])


def _numbered(prompt: str) -> dict[str, list[str]]:
    """The cells of a review's prompt: In[n] → its lines."""
    found: dict[str, list[str]] = {}
    cell = ""
    for line in prompt.splitlines():
        if (named := re.match(r"(In\[\d+\]) \(id \S+\)$", line)) is not None:
            cell = named[1]
            found[cell] = []
        elif cell and (numbered := re.match(r" *\d+\| ?(.*)$", line)) is not None:
            found[cell].append(numbered[1])
    return found


# ── 21 long work ─────────────────────────────────────────────────────────────────────────────────────────────────────


def waits() -> list[Scripted]:
    """Starts a cell that takes its time, is told how far it is while it runs, and waits for its end."""

    def on(transcript: Seen) -> Value:
        (text,) = last_results(transcript)
        if "wait_for_cell waits" not in text:
            began = result_of(transcript, "add_cell")
            while_it_ran = f"While it ran I was told: “{_so_far(began)}” " if began != text else ""
            return told(f"{while_it_ran}It has ended. What it gave")(transcript)
        return [say(f"It goes on meanwhile: “{_so_far(text)}”"), call("wait_for_cell", seconds=60)]

    start = [say("I start it, and look in after a second."), call("add_cell", source="await load_all()")]
    return [start, *[_unless_refused(on)] * 5]


def _so_far(result: str) -> str:
    return result.partition(" It goes on;")[0]
