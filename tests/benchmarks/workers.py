"""How much more warm workers do side by side, and what a job costs in a warm process against a fresh interpreter.

    python -m tests.benchmarks.workers [JOBS]

Model-bound work: a local Messages API server, in a process of its own, whose replies take one second each; every job asks
twice. The same jobs go to one, two and four warm workers of a process pool in one run; only the ratios count. Wanted: two
workers at least 1.8, four at least 3.5 times the throughput of one.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from nbagent.app.jobs import Job, Outcome
from nbagent.app.nursery import Nursery
from nbagent.app.worker import perform, warm_up
from nbagent.headless.hub import Hub

SERVER = """\
import sys
from tests.support.messages_server import MessagesServer, Reply, call

def script(body):
    answered = any(m["role"] == "assistant" for m in body["messages"])
    content = "Nothing is there to be seen, so far as I can see." if answered else [call("list_variables")]
    return Reply(content, pace=1 / 15 if answered else 1 / 6, chunk=5)

with MessagesServer(script) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""
WANTED = {2: 1.8, 4: 3.5}
SCRIPT = "scripted:tests.app.worker_scripts:repeats"


@contextmanager
def served() -> Iterator[str]:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None and server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.stdin.close()
        server.wait()


def throughput(workers: int, jobs: int, url: str) -> float:
    """Jobs a second of so many warm workers."""
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, Hub() as hub, ProcessPoolExecutor(workers, mp_context=spawn) as pool:
        granted = {"base_url": url, "model": "claude-sonnet-5-5"}
        made = [Job(f"j{number}", f"Look {number}", folder, granted=granted).to_json() for number in range(jobs)]
        for _ in range(2):  # one worker may take several of them
            list(pool.map(_warm, range(4 * workers)))
        began = time.monotonic()
        found = [Outcome.from_json(one) for one in pool.map(perform, made, [hub.link()] * jobs)]
        seconds = time.monotonic() - began
    assert {one.status for one in found} == {"done"}, found
    return jobs / seconds


def _warm(_: int) -> None:
    warm_up()
    threading.Event().wait(0.2)  # so that the others get one too


def each(*, forks: bool, jobs: int) -> float:
    """Milliseconds of one job without a model's time."""
    nursery = Nursery(forks=forks)
    with tempfile.TemporaryDirectory() as folder:
        made = [Job(f"j{n}", "Say it", folder, granted={"model": SCRIPT}).to_json() for n in range(jobs + 1)]
        if forks:
            nursery.perform({"job": made[0], "link": {}})
        began = time.monotonic()
        for job in made[1:]:
            assert nursery.perform({"job": job, "link": {}})["status"] == "done"
        seconds = time.monotonic() - began
    nursery.close()
    return 1000 * seconds / jobs


def main(jobs: int) -> None:
    root = str(Path(__file__).parents[2])
    os.environ |= {"PYTHONPATH": root, "ANTHROPIC_API_KEY": "sk-test", "XDG_CONFIG_HOME": tempfile.mkdtemp()}
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        f"one job: {each(forks=True, jobs=10):.0f} ms warm, {each(forks=False, jobs=3):.0f} ms in a fresh interpreter"
    )
    with served() as url:
        rates = {workers: throughput(workers, jobs, url) for workers in (1, 2, 4)}
    for workers, rate in rates.items():
        wanted = f" (wanted: {WANTED[workers]})" if workers in WANTED else ""
        print(f"{workers} workers: {rate:.2f} jobs a second, {rate / rates[1]:.2f} times one{wanted}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16)
