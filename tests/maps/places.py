"""Where the same map is carried out: this machine's processes, a process pool, a Dask cluster, an ipyparallel cluster.

Each is real, with two workers, and is gone afterwards. Run as a script it does a whole map everywhere and compares:
`python -m tests.maps.places 200 [--kill]`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from nbagent.app.mapping import Table, map  # noqa: A004  (what everybody calls it)
from tests.maps.scripts import PROMPT, adding, digits, told
from tests.support.messages_server import MessagesServer, Seen

Place = Callable[[], AbstractContextManager[Any]]


@contextmanager
def ours() -> Iterator[None]:
    yield None


@contextmanager
def process_pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextmanager
def dask() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def ipyparallel() -> Iterator[Any]:
    import ipyparallel as ipp

    with ipp.Cluster(n=2, log_level=50) as client:
        client.wait_for_engines(2, interactive=False)
        yield client.load_balanced_view()


PLACES: dict[str, Place] = {"ours": ours, "process pool": process_pool, "dask": dask, "ipyparallel": ipyparallel}


def compared(table: Table) -> list[dict[str, Any]]:
    """Return what must be the same wherever a map was carried out."""
    return [
        {name: row[name] for name in ("input", "answer", "status", "stop_reason", "turns", "problem")} for row in table
    ]


def inputs(count: int) -> list[str]:
    return [f"number {number}{number + 7}" for number in range(count)]


def expected(count: int) -> list[str]:
    return [f"The sum is {digits(text)}." for text in inputs(count)]


def asked_twice(requests: Sequence[Seen]) -> list[tuple[str, int]]:
    """Return which requests were made more than once: by their prompt and how far the conversation was."""
    times = Counter(
        (told(seen.body), sum(m["role"] == "assistant" for m in seen.body["messages"])) for seen in requests
    )
    return [which for which, count in times.items() if count > 1]


def _worker(name: str, executor: Any) -> int:
    """Return the process id of a worker of an executor."""
    if name == "dask":
        return next(iter(executor.run(os.getpid).values()))
    if name == "ipyparallel":
        return executor.client[:].apply_sync(os.getpid)[0]
    if name == "process pool":
        return executor.submit(os.getpid).result()
    return int(subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "nursed"], capture_output=True, text=True, check=True).stdout.split()[0])  # fmt: skip


def _kills(name: str, executor: Any, server: MessagesServer, after: int) -> threading.Thread:
    """Kill a worker once the server was asked so often."""

    def kill() -> None:
        server.wait_for_requests(after, 300)
        os.kill(pid if pid is not None else _worker(name, executor), signal.SIGKILL)

    pid = None if name == "ours" else _worker(name, executor)
    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def _mapped(count: int, executor: Any) -> Table:
    return map(PROMPT, inputs(count), executor=executor, workers=4, model="sonnet", progress=False, resume="map")


def main(count: int, names: list[str], *, kill: bool = False) -> dict[str, Any]:
    """Do the same map in all places; with `kill`, kill a worker of each in the middle and go on. Returns what came of it."""
    found: dict[str, Any] = {"places": {}}
    with MessagesServer(adding) as server:
        os.environ |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
        for name in names:
            os.chdir(tempfile.mkdtemp())
            before, began = len(server.requests), time.monotonic()
            with PLACES[name]() as executor:
                killing = _kills(name, executor, server, before + count) if kill else None
                table = _mapped(count, executor)
                if killing is not None:
                    killing.join()
            broken = len(table.failed)
            if broken:  # a process pool is done with when a worker dies: the map goes on in a new one
                with PLACES[name]() as executor:
                    table = _mapped(count, executor)
            rows, asked = compared(table), server.requests[before:]
            found["places"][name] = {
                "seconds": round(time.monotonic() - began, 1), "requests": len(asked), "twice": asked_twice(asked),
                "right": table["answer"] == expected(count), "rows": rows, "failed": table.failed["problem"], "failed at first": broken,
            }  # fmt: skip
            print({**found["places"][name], "rows": table.totals.sentence, "place": name}, file=sys.stderr, flush=True)
        found["refused"] = server.refusals
    return found


if __name__ == "__main__":
    from tests.conftest import isolate

    isolate(Path(tempfile.mkdtemp()))
    words = [word for word in sys.argv[2:] if word != "--kill"]
    print(json.dumps(main(int(sys.argv[1]), words or list(PLACES), kill="--kill" in sys.argv)))
