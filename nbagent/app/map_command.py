"""`nbagent map`: the same task for many files, from a shell. The table goes to a file or to the terminal.

Must not know how a map runs. Read `mapped`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbagent.app.mapping import MapStopped, Table, map  # noqa: A004  (what everybody calls it)
from nbagent.core.errors import ConfigError

STDIN = "-"
"""In the place of files: a text a line comes in."""


def inputs_of(names: Sequence[str]) -> list[Any]:
    """Return the inputs that the words of a command line name; raises `ConfigError` for a file that is not there."""
    if list(names) == [STDIN]:
        return [line.rstrip("\n") for line in sys.stdin if line.strip()]
    missing = [name for name in names if not Path(name).exists()]
    if missing:
        raise ConfigError(
            f"{missing[0]} is not there. Inputs are files, folders and notebooks; texts come a line each: … | nbagent map PROMPT -"
        )
    return [Path(name) for name in names]


def mapped(prompt: str, names: Sequence[str], output: Path | None, **options: Any) -> tuple[Table, bool]:
    """Run a map, write its table if that was asked for, and return it and whether it was stopped. Raises `ConfigError`."""
    if output is not None and output.suffix.lower() not in {".csv", ".json", ".jsonl"}:
        raise ConfigError(f"{output}: a table is written as .csv, .json or .jsonl.")
    stopped = False
    try:
        table = map(prompt, inputs_of(names), **options)
    except MapStopped as error:
        table, stopped = error.table, True
    if output is not None:
        try:
            table.save(output)
        except OSError as error:
            raise ConfigError(f"{output} can't be written: {error.strerror}. All is kept in {table.folder}.") from None
    return table, stopped
