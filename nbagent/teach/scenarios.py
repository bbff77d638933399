"""Three things that are no agents and have the same shape: an ETL pipeline, a long task, a workflow that asks in the middle.

Each is an async generator of small frozen facts. The consumer sets the pace, and closing it leaves nothing half done.
Must not know of models or of a screen. Read `etl`.
"""

from __future__ import annotations

import asyncio
import csv
import random
import statistics
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Progress:
    """So much is done of `total` (0: not known) in a phase; `note` is what is known by now."""

    phase: str
    done: int
    total: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that was left out, its line in the file (from 1), and why: a fact for the consumer, not an exception."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A person is asked; the workflow waits for the answer."""

    question: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """The end, and what came of it, in a sentence."""

    said: str


Fact = Progress | Refused | Asked | Finished

# ── ETL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

_BEFORE_HEADER = 2
_EVERY = 50


async def etl(source: Path, target: Path) -> AsyncGenerator[Progress | Refused | Finished]:
    """Extract the birds of `data/field.csv`, transform each, load the good ones into `target` (CSV).

    The file appears whole at the end, or not at all: closed before, the generator takes away what it had begun.
    """
    rows = _extracted(source)
    yield Progress("extract", len(rows), len(rows))
    part = target.with_name(f"{target.name}.part")
    kept = 0
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0][1]))
            writer.writeheader()
            for place, (line, raw) in enumerate(rows, 1):
                await asyncio.sleep(0)  # others have their turn: a click, a Stop
                row = transformed(raw)
                if isinstance(row, str):
                    yield Refused(line, row)
                else:
                    writer.writerow(row)
                    kept += 1
                if place % _EVERY == 0 or place == len(rows):
                    yield Progress("load", place, len(rows), f"{kept} kept")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    yield Finished(f"{kept} of {len(rows)} rows are in {target.name}.")


def _extracted(source: Path) -> list[tuple[int, Row]]:
    """The rows of the raw file with their lines; raises `OSError`, and `ValueError` where there are none."""
    with source.open(encoding="latin-1", newline="") as file:
        lines = file.read().splitlines()[_BEFORE_HEADER:]
    rows = list(enumerate(csv.DictReader(lines, delimiter=";"), _BEFORE_HEADER + 2))
    if not rows:
        raise ValueError(f"{source.name} has no rows below its header.")
    return rows


def transformed(raw: Mapping[str, str]) -> Row | str:
    """Return a row with decimal points and tidy names, or the sentence that says why it is left out."""
    row = {name: str(value or "").strip() for name, value in raw.items()}
    if row["body_mass_g"] in {"-999", ""}:
        return "not weighed"
    if not row["bill_length_mm"]:
        return "bill not measured"
    measured = {name: row[name].replace(",", ".") for name in row if name.endswith("_mm")}
    return {**row, **measured, "island": row["island"].capitalize()}


# ── a long task ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def resampled(values: Sequence[float], draws: int = 2000, *, every: int = 200, seed: int = 1) -> AsyncGenerator[Progress | Finished]:  # fmt: skip
    """How sure is a mean? Draw from `values` again and again (a bootstrap), and say so every `every` draws.

    What is known by now is in each fact, so a consumer may stop as soon as it is enough.
    """
    dice = random.Random(seed)  # noqa: S311  (statistics, not a secret)
    means: list[float] = []
    for _ in range(draws):
        means.append(statistics.fmean(dice.choices(values, k=len(values))))
        if len(means) % every == 0:
            await asyncio.sleep(0)
            yield Progress("resample", len(means), draws, _range(means))
    yield Finished(f"After {draws} draws: {_range(means)}.")


def _range(means: Sequence[float]) -> str:
    inside = sorted(means)
    return f"{inside[round(0.025 * (len(inside) - 1))]:.0f} to {inside[round(0.975 * (len(inside) - 1))]:.0f}"


# ── an interactive workflow ──────────────────────────────────────────────────────────────────────────────────────────

Ask = Callable[[str, tuple[str, ...]], Awaitable[str]]
"""Puts a question with choices to a person, and returns the answer; "" where nobody is there."""

DROP, MEAN, STOP = "drop the rows", "fill in the mean", "stop"


async def filled(column: str, values: Sequence[str], ask: Ask) -> AsyncGenerator[Fact]:
    """Repair a column of numbers, and ask a person what to do with the gaps. Nobody there: nothing is changed."""
    gaps = [place for place, value in enumerate(values) if not value]
    yield Progress("look", len(values), len(values), f"{len(gaps)} gaps in {column}")
    if not gaps:
        yield Finished(f"{column} has no gaps.")
        return
    asked = Asked(f"{column} has {len(gaps)} gaps. What shall be done?", (DROP, MEAN, STOP))
    yield asked
    answer = await ask(asked.question, asked.choices)
    numbers = [float(value) for value in values if value]
    match answer:
        case "drop the rows":
            yield Finished(f"{len(numbers)} of {len(values)} values are left, mean {statistics.fmean(numbers):.0f}.")
        case "fill in the mean":
            for done, _ in enumerate(gaps, 1):
                yield Progress("fill", done, len(gaps))
            yield Finished(f"{len(gaps)} gaps are {statistics.fmean(numbers):.0f} now.")
        case _:
            yield Finished("Nothing was changed.")


def column_of(path: Path, column: str) -> list[str]:
    """Return one column of a CSV file as texts; a gap (`NA` or nothing) is ""."""
    return list(_column(path, column))


def _column(path: Path, column: str) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from (row[column].replace("NA", "") for row in csv.DictReader(file))
