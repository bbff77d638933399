"""What a map gives: one row an input, in the order of the inputs; reads well in a cell and is a data frame when asked.

Must not know how the rows came to be. Read `Table`, then `Row`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json
from nbagent.view.maptable import Totals, table_html, table_text

if TYPE_CHECKING:
    from pandas import DataFrame

Status = Literal["done", "failed", "stopped", "not run"]
RESULTS = ("answer", "status", "stop_reason", "turns", "tokens", "cost", "session", "seconds", "problem")
"""The columns that every row has, after its input and the fields of its answer."""


class Row(Mapping[str, Any]):
    """One input and what came of it: a mapping of its columns, which are attributes, too.

    `input` is what was given (a path as text; a row of a table has its own columns instead), then the fields of the
    answer where `schema` asked for some, then:
    `answer` the model's last words, `status` done, failed, stopped or not run, `stop_reason` why the run ended (end_turn,
    max_turns, budget, error …), `turns`, `tokens` (all that were read or written), `cost` US dollars (None: no price is
    known), `session` the path of the run's transcript, `seconds` that its runs took, `problem` what went wrong in a
    sentence ("" for nothing).
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Json) -> None:
        self._columns = columns

    @classmethod
    def of(cls, given: Json, fields: Json, results: Json) -> Row:
        """Make a row of the input's own columns, the answer's fields, and `RESULTS`; nothing hides anything else."""
        taken = {*fields, *RESULTS}
        own = {f"input.{name}" if name in taken else name: value for name, value in given.items()}
        answered = {f"answer.{name}" if name in RESULTS else name: value for name, value in fields.items()}
        return cls({**own, **answered, **{name: results.get(name) for name in RESULTS}})

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __getattr__(self, name: str) -> Any:
        if name != "_columns" and name in self._columns:
            return self._columns[name]
        raise AttributeError(f"There is no column {name!r}.")

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in self._columns.items())})"


class Table(Sequence[Row]):
    """The rows of a map. `folder` is where everything of it is kept ("" for nowhere): resume=folder goes on there.

    `pandas.DataFrame(table)`, `table.to_pandas()` and `table.to_dicts()` give the data; `table["answer"]` is one column,
    `table[3]` one row, `table.failed` the rows that came to nothing, `table.cost` what all cost in US dollars.
    """

    def __init__(self, rows: Sequence[Row], folder: str = "") -> None:
        self._rows = tuple(rows)
        self._folder = folder

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, in the order of the inputs."""
        return self._rows

    @property
    def folder(self) -> str:
        """Where everything of this map is kept."""
        return self._folder

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns; `RESULTS` come last."""
        names = dict.fromkeys(name for row in self.rows for name in row if name not in RESULTS)
        return (*names, *RESULTS)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Table: ...
    @overload
    def __getitem__(self, at: str) -> list[Any]: ...
    def __getitem__(self, at: int | slice | str) -> Row | Table | list[Any]:
        if isinstance(at, str):
            if at not in self.columns:
                raise KeyError(at)
            return [row.get(at) for row in self.rows]
        return self.rows[at] if isinstance(at, int) else Table(self.rows[at], self._folder)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.to_dicts() == other.to_dicts()

    __hash__ = None  # type: ignore[assignment]  # its rows may hold lists

    @property
    def failed(self) -> Table:
        """The rows that came to nothing, whyever: `problem` says it."""
        return Table([row for row in self.rows if row["status"] != "done"], self._folder)

    @property
    def totals(self) -> Totals:
        """What all rows sum up to."""
        rows = self.rows
        states = [row["status"] for row in rows]
        costs = [row["cost"] for row in rows if row["cost"] is not None]
        return Totals(
            rows=len(rows),
            done=states.count("done"),
            failed=states.count("failed"),
            stopped=states.count("stopped"),
            waiting=states.count("not run"),
            turns=sum(row["turns"] or 0 for row in rows),
            tokens=sum(row["tokens"] or 0 for row in rows),
            cost=sum(costs) if costs else None,
            seconds=sum(row["seconds"] or 0.0 for row in rows),
        )

    @property
    def cost(self) -> float | None:
        """What all runs cost together in US dollars, None where no price is known."""
        return self.totals.cost

    @property
    def tokens(self) -> int:
        """What all runs read and wrote together."""
        return self.totals.tokens

    def to_dicts(self) -> list[Json]:
        """Return one dict a row, all with the same keys."""
        return [{name: row.get(name) for name in self.columns} for row in self.rows]

    def to_pandas(self) -> DataFrame:
        """Return the table as a data frame; raises `ConfigError` where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError:
            raise ConfigError("pandas is not installed here. `table.to_dicts()` gives the same as dicts.") from None
        return pd.DataFrame(self.to_dicts(), columns=list(self.columns))

    def save(self, path: str | Path) -> Path:
        """Write the table to a file, .csv, .json or .jsonl by its name; return its path. Raises `ConfigError`, OSError."""
        path, rows = Path(path), self.to_dicts()
        match path.suffix.lower():
            case ".csv":
                with path.open("w", encoding="utf-8", newline="") as file:
                    writer = csv.DictWriter(file, self.columns)
                    writer.writeheader()
                    writer.writerows({name: _flat(value) for name, value in row.items()} for row in rows)
            case ".json":
                path.write_text(json.dumps(rows, ensure_ascii=False, indent=1, default=str) + "\n", "utf-8")
            case ".jsonl":
                lines = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
                path.write_text(lines, "utf-8")
            case _:
                raise ConfigError(f"{path}: a table is written as .csv, .json or .jsonl.")
        return path

    def __await__(self) -> Generator[Any, None, Table]:
        """Return itself: `await nbagent.map(…)` may be written where no loop runs, too."""
        yield from ()  # it is done at once
        return self

    def __repr__(self) -> str:
        return table_text(self.totals, self.columns, self.rows, self._folder)

    def _repr_html_(self) -> str:
        return table_html(self.totals, self.columns, self.rows, self._folder)


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list | tuple) else value
