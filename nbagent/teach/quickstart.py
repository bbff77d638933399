"""The script behind notebooks/00_quickstart.ipynb: the model's replies, written down; everything else is real.

Each reply is computed from what the tools returned, so the answer follows the data: other names, other values, a
missing column. Use it as `%%agent -m scripted:nbagent.teach.quickstart:turns`. Read `turns` first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nbagent.core.errors import Rejected
from nbagent.core.messages import Block, Message
from nbagent.models.scripted import REFUSED, Scripted, Value, call, last_results, result_of, say

_TABLE = re.compile(r"^(\w+): pandas DataFrame (\d+) rows", re.MULTILINE)
_COLUMN = re.compile(r"^  ('.*?')  (\S+)  (\d+)$", re.MULTILINE)
_CELL = re.compile(r"^Cell (\S+) ")
_ROW = re.compile(r"^(\S.*?)\s+(-?\d+\.\d+)\s+(-?\d+\.\d+|NaN)\s+(\d+)$", re.MULTILINE)
_COUNT = re.compile(r"(\d+) of (\d+) rows kept")


@dataclass(frozen=True, slots=True)
class _Plan:
    """What the inspected table has to offer: the grouping column and the measures of the bill."""

    table: str
    group: str
    bill: tuple[str, ...]

    @property
    def ratio(self) -> bool:
        return len(self.bill) > 1

    @property
    def measure(self) -> str:
        """The Python expression of bill shape, over the cleaned table."""
        if self.ratio:
            return f"clean[{self.bill[0]!r}] / clean[{self.bill[1]!r}]"
        return f"clean[{self.bill[0]!r}]"

    @property
    def meaning(self) -> str:
        """What the measure is, in words."""
        return f"{_words(self.bill[0])} divided by {_words(self.bill[1])}" if self.ratio else _words(self.bill[0])


def turns() -> list[Scripted]:
    """Return the script: look, clean, summarise (wrongly at first), repair, measure, plot, answer."""
    steps = [_look, _inspect, _clean, _summarise, _repair, _measure, _plot, _answer]
    return [_unless_refused(step) for step in steps]


def _unless_refused(step: Callable[[Sequence[Message]], Value]) -> Scripted:
    """A real model would find another way; this script can't, so it says what it lacks and ends."""

    def turn(transcript: Sequence[Message]) -> Value:
        refused = [text for text in last_results(transcript) if text.startswith(REFUSED)]
        if not refused:
            return step(transcript)
        return (
            f"A step that I need was refused, so I stop here and have no answer. ({refused[0]}) This model's replies are "
            "scripted: a real one would go on with what you said."
        )

    return turn


def _look(_: Sequence[Message]) -> Value:
    return [say("I'll look at what is loaded before I touch anything."), call("list_variables")]


def _inspect(transcript: Sequence[Message]) -> Value:
    return [call("inspect_variable", name=_table(transcript))]


def _clean(transcript: Sequence[Message]) -> Value:
    plan = _plan(transcript)
    missing = {ast.literal_eval(label): int(n) for label, _, n in _columns(transcript)}
    gaps = ", ".join(f"{missing[c]} in {c}" for c in plan.bill)
    used = [plan.group, *plan.bill]
    source = (
        f"clean = {plan.table}.dropna(subset={used!r}).drop_duplicates().reset_index(drop=True)\n"
        f'print(f"{{len(clean)}} of {{len({plan.table})}} rows kept")'
    )
    return [
        say(f"Bill measurements are missing in some rows ({gaps}), so I drop those first."),
        call("add_cell", source="## Bill shape by species", cell_type="markdown"),
        call("add_cell", source=source),
    ]


def _summarise(transcript: Sequence[Message]) -> Value:
    plan = _plan(transcript)
    return [
        say("Now the averages of each group."),
        call("add_cell", source=f"clean.groupby({plan.group!r}).mean().round(1)"),
    ]


def _repair(transcript: Sequence[Message]) -> Value:
    plan, result = _plan(transcript), result_of(transcript, "add_cell")
    found = _CELL.match(result)
    if "Error" not in result or found is None:
        return [say("That worked at once."), call("read_notebook")]
    error = result.strip().splitlines()[-1]
    return [
        say(f"That failed: `{error}`. Text columns have no mean, so I average the numbers only."),
        call(
            "edit_cell",
            cell=found[1],
            source=f"clean.groupby({plan.group!r}).mean(numeric_only=True).round(1)",
            run=True,
        ),
    ]


def _measure(transcript: Sequence[Message]) -> Value:
    plan = _plan(transcript)
    source = (
        f"shape = {plan.measure}\n"
        f'bill_shape = shape.groupby(clean[{plan.group!r}]).agg(["mean", "std", "count"]).round(2)\n'
        'bill_shape.sort_values("mean")'
    )
    return [say(f"Bill shape as one number: {plan.meaning}."), call("add_cell", source=source)]


def _plot(transcript: Sequence[Message]) -> Value:
    plan = _plan(transcript)
    body = (
        f"    ax.scatter(part[{plan.bill[0]!r}], part[{plan.bill[1]!r}], s=14, alpha=0.7, label=name)"
        if plan.ratio
        else f"    ax.hist(part[{plan.bill[0]!r}], bins=20, alpha=0.6, label=name)"
    )
    y_label = _words(plan.bill[1]) if plan.ratio else "birds"
    source = (
        "import matplotlib.pyplot as plt\n\n"
        "fig, ax = plt.subplots(figsize=(6, 4))\n"
        f"for name, part in clean.groupby({plan.group!r}):\n{body}\n"
        f'ax.set(xlabel={_words(plan.bill[0])!r}, ylabel={y_label!r}, title="Bill shape by {plan.group}")\n'
        "ax.legend()\n"
        "plt.show()"
    )
    return [say("And the one plot that you asked for."), call("add_cell", source=source)]


def _answer(transcript: Sequence[Message]) -> Value:
    plan = _plan(transcript)
    rows = [(name, float(mean), int(n)) for name, mean, _, n in _ROW.findall(result_of(transcript, "add_cell", last=2))]
    kept = next((m for m in map(_COUNT.search, _texts(transcript)) if m), None)
    cleaned = f" {kept[1]} of {kept[2]} rows were complete enough to use." if kept else ""
    if len(rows) < 2:
        return f"There is only one {plan.group} with bill measurements, so there is nothing to compare.{cleaned}"
    rows.sort(key=lambda row: row[1])
    low, high = rows[0], rows[-1]
    seen = " The plot shows it." if "[image]" in result_of(transcript, "add_cell") else ""
    unit = "" if plan.ratio else " on average"
    listed = "\n".join(f"- {name}: {mean:.2f} ({n} birds)" for name, mean, n in rows)
    return (
        f"**{low[0]} and {high[0]} differ most in bill shape.** Measured as {plan.meaning}, {high[0]} has "
        f"{high[1]:.2f} and {low[0]} has {low[1]:.2f}{unit}.{seen}\n\n{listed}\n\n{cleaned.strip()} "
        "`clean` and `bill_shape` are yours to use in the next cell."
    )


def _table(transcript: Sequence[Message]) -> str:
    tables = _TABLE.findall(result_of(transcript, "list_variables"))
    return max(tables, key=lambda found: int(found[1]))[0] if tables else "penguins"


def _columns(transcript: Sequence[Message]) -> list[tuple[str, str, str]]:
    return _COLUMN.findall(result_of(transcript, "inspect_variable"))


def _plan(transcript: Sequence[Message]) -> _Plan:
    columns = [(str(ast.literal_eval(label)), kind) for label, kind, _ in _columns(transcript)]
    numbers = [name for name, kind in columns if kind.startswith(("float", "int"))]
    bill = [name for name in numbers if name.startswith("bill")] or numbers[:1]
    texts = [name for name, _ in columns if name not in numbers]
    if not numbers or not texts:
        raise Rejected("This script needs a table with a text column and a column of numbers. Load the penguins first.")
    group = "species" if "species" in texts else texts[0]
    return _Plan(_table(transcript), group, tuple(bill[:2]))


def _words(column: str) -> str:
    """Write a column's name as words: bill_length_mm → bill length (mm)."""
    return re.sub(r"_(mm|cm|g|kg)$", r" (\1)", column).replace("_", " ")


def _texts(transcript: Sequence[Message]) -> list[str]:
    blocks: list[Block] = [b for m in transcript if isinstance(m["content"], list) for b in m["content"]]
    return [str(part.get("text", "")) for b in blocks if b["type"] == "tool_result" for part in b["content"]]
