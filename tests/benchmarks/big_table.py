"""Does a kernel with a table of 40 million rows stay small and quick? `python -m tests.benchmarks.big_table [ROWS]`

Makes a Parquet file, loads it with pandas, and calls each tool that looks at data, as a run does: what it answers in
seconds, and by how much the process has grown at its peak, as a share of the data. A thread watches the memory, since peaks
are short. Exit code 1 where an answer took more than 2 s or the peak was 1.5 times the data. Takes a minute and, for 40
million rows, 3 GB; nothing else that is large should run beside it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from nbagent.core.tools import Call, Tool
from nbagent.tools import variables, workspace
from nbagent.tools.fingerprints import fingerprint, surface

ROWS = 40_000_000
SECONDS, TIMES = 2.0, 1.5
_CHUNK = 2_000_000


class Names:
    """A kernel of which only the variables are asked."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def namespace(self) -> dict[str, Any]:
        """Return them."""
        return self.values


class Memory:
    """Watches the memory of this process, and keeps the peak."""

    def __init__(self) -> None:
        self.peak, self._go_on = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._go_on.wait(0.005):
            self.peak = max(self.peak, used())

    def stop(self) -> int:
        """End watching and return the peak in bytes."""
        self._go_on.set()
        self._thread.join()
        return self.peak


def used() -> int:
    """Bytes of memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def made(path: Path, rows: int) -> None:
    """Write a table of sensors, a part at a time."""
    rng = np.random.default_rng(1)
    writer = None
    for start in range(0, rows, _CHUNK):
        size = min(_CHUNK, rows - start)
        table = pa.table({
            "id": np.arange(start, start + size, dtype=np.int64),
            "at": np.datetime64("2020-01-01") + np.arange(start, start + size).astype("timedelta64[s]"),
            "sensor": rng.integers(0, 500, size, dtype=np.int16),
            "value": np.where(rng.random(size) < 0.001, -999.0, rng.normal(20, 5, size)).astype(np.float32),
            "ok": rng.random(size) < 0.98,
        })  # fmt: skip
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


async def measured(rows: int, folder: Path) -> tuple[list[tuple[str, float, int]], float, int]:
    """Return for each answer its name, seconds and length; the peak as a share of the data; the bytes of the data."""
    path = folder / "big.parquet"
    made(path, rows)
    before = used()
    df = pd.read_parquet(path)
    data = int(df.memory_usage(deep=True).sum())
    pa.default_memory_pool().release_unused()
    loaded, watch = used(), Memory()
    tools: dict[str, Tool] = {tool.name: tool for tool in (*variables.tools(Names(df=df)), *workspace.tools(folder))}
    answers: list[tuple[str, float, int]] = []

    async def timed(name: str, work: Callable[[], Awaitable[str]]) -> None:
        began = time.perf_counter()
        text = await work()
        answers.append((name, time.perf_counter() - began, len(text)))

    def calling(tool: str, **given: Any) -> Callable[[], Awaitable[str]]:
        async def work() -> str:
            call = Call("c", lambda _: None, lambda _: None)
            result = await tools[tool].run(call, tools[tool].validate(given))
            return str(result.content[0]["text"])

        return work

    async def context() -> str:
        return surface("df", df).digest + fingerprint("df", df).digest

    await timed("list_variables", calling("list_variables"))
    await timed("inspect_variable", calling("inspect_variable", name="df"))
    for column in df.columns:
        await timed(f"inspect_variable column={column}", calling("inspect_variable", name="df", column=str(column)))
    await timed("profile_table", calling("profile_table", name="df"))
    await timed("read_data_head", calling("read_data_head", path="big.parquet"))
    await timed("fingerprints (each turn)", context)
    peak = watch.stop()
    print(
        f"{rows:,} rows, {data / 1e9:.2f} GB of data; before {before / 1e9:.2f} GB, loaded {loaded / 1e9:.2f} GB, peak {peak / 1e9:.2f} GB"
    )
    return answers, 1 + max(0, peak - loaded) / data, data


def main() -> int:
    """Measure, print, and judge."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as folder:
        answers, share, _ = asyncio.run(measured(rows, Path(folder)))
    for name, seconds, size in answers:
        print(f"{name:32} {seconds:6.3f} s  {size:6,} characters")
    print(f"the data and what the answers took at their peak: {share:.3f} x the data")
    return int(share > TIMES or any(seconds > SECONDS for _, seconds, _ in answers))


if __name__ == "__main__":
    sys.exit(main())
