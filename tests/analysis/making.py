"""What the makers of data sets share: text tables in the ways of the world, and a list of what the columns mean.

Read `write_table`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def write_table(
    path: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    sep: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
) -> None:
    """Write rows as a text table; floats with the given decimal mark."""

    def text(value: object) -> object:
        return repr(value).replace(".", decimal) if isinstance(value, float) else value

    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=sep)
        writer.writerow(header)
        writer.writerows([text(value) for value in row] for row in rows)


def write_meanings(path: Path, meanings: Mapping[str, str]) -> None:
    """Write what each column means, one a line."""
    lines = [f"- `{column}`: {meaning}" for column, meaning in meanings.items()]
    path.write_text("# Columns\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


def read_table(path: Path, *, sep: str = ",", encoding: str = "utf-8") -> list[dict[str, str]]:
    """Return the rows of a text table as they are written, by column: the checkers' own way to the data."""
    with path.open(encoding=encoding, newline="") as file:
        return list(csv.DictReader(file, delimiter=sep))
