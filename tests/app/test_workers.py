"""Jobs in workers: a process and a kernel each, one hub for all, and nothing paid twice whatever is killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest

from nbagent.app.jobs import Job, Outcome
from nbagent.app.nursery import Nursery, nursery
from nbagent.app.worker import perform
from nbagent.core.limits import Limits
from nbagent.core.messages import Json
from nbagent.core.ports import Answered
from nbagent.extend.seals import Seals
from nbagent.extend.sessions import read_session
from nbagent.headless.hub import Hub, Nobody
from tests.core.rig import check_transcript
from tests.support.messages_server import MessagesServer, Reply, calls, say
from tests.support.turns import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
SCRIPTS = "scripted:tests.app.worker_scripts:"
SESSION = "20261130-120000-{:04x}"


class Heard(Nobody):
    """Keeps what workers report, and answers approvals."""

    def __init__(self, *, approves: bool = False) -> None:
        self.events: list[tuple[str, Json]] = []
        self.asked: list[Json] = []
        self._approves = approves

    def event(self, job: str, event: Json) -> None:
        self.events.append((job, event))

    async def ask(self, job: str, approval: Json) -> Answered:
        self.asked.append(approval)
        return Answered(self._approves, by="person")


@pytest.fixture(autouse=True)
def main_that_can_be_spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pytest-xdist starts its workers with is no module: multiprocessing looks for its spec."""
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None, raising=False)


@pytest.fixture(scope="module", autouse=True)
def threads() -> Iterator[ThreadPoolExecutor]:
    """Workers that are threads of this process: what they perform is in processes of its own all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.syspath_prepend(str(ROOT))
        patch.setenv("ANTHROPIC_API_KEY", "sk-test")  # of the workers: no job has a key
        with ThreadPoolExecutor(4) as pool:
            yield pool
        nursery().close()


def job(number: int, folder: Path, script: str = "", prompt: str = "", **more: Any) -> Job:
    granted = {"mode": "bypass", **({"model": SCRIPTS + script} if script else {}), **more.pop("granted", {})}
    session = SESSION.format(number)
    return Job(f"job {number}", prompt or f"Prompt {number}", str(folder), granted=granted, session=session, **more)


def outcome(future: Future[Json]) -> Outcome:
    return Outcome.from_json(future.result(90))


def children(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def are_gone(processes: list[psutil.Process]) -> bool:
    return all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in processes)


# ── a process and a kernel of its own ────────────────────────────────────────────────────────────────────────────────


def test_each_job_of_a_process_pool_has_a_fresh_process_and_kernel_in_its_own_folder(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]
    jobs = []
    for number, folder in enumerate(folders):
        folder.mkdir()
        jobs.append(job(number, folder, "looks", variables={"x": number}))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("# above", id="above")])
    nbformat.write(book, tmp_path / "n.ipynb")
    jobs.append(job(3, tmp_path, "adds", variables={"x": 21}, notebook=str(tmp_path / "n.ipynb")))
    heard = Heard()
    spawn = multiprocessing.get_context("spawn")
    with Hub(heard) as hub, ProcessPoolExecutor(2, mp_context=spawn) as pool:
        found = [outcome(pool.submit(perform, one.to_json(), hub.link())) for one in jobs]
        nurseries = [one for one in children(os.getpid()) if "nursed" in " ".join(one.cmdline())]
        assert len(nurseries) >= 2
        wait_until(lambda: sum(event["type"] == "run_ended" for _, event in heard.events) == len(jobs))
        assert hub.spending.usage.total == 3 * 330
    assert [one.status for one in found] == ["done"] * 4, found
    told = [one.answer.split() for one in found[:3]]
    assert [(x, folder) for x, folder, *_ in told] == [(str(n), str(folder)) for n, folder in enumerate(folders)]
    for column in (2, 3, 4):  # random numbers, UUIDs, processes
        assert len({row[column] for row in told}) == 3, told
    assert "42" in found[3].answer
    cells = nbformat.read(tmp_path / "n.ipynb", as_version=4).cells
    assert [cell.source for cell in cells] == ["# above", "y = x * 2\ny"]
    assert [one.session for one in found] == [str(one.session_path) for one in jobs]
    wait_until(lambda: are_gone(nurseries))


def test_where_processes_are_not_forked_each_job_has_an_interpreter_of_its_own(tmp_path: Path) -> None:
    request = {"job": job(1, tmp_path, "looks", variables={"x": "a b"}).to_json(), "link": {}}
    request["job"]["variables"]["x"] = "ab"
    found = Outcome.from_json(Nursery(forks=False).perform(request))
    assert (found.status, found.answer.split()[0]) == ("done", "ab")


def test_a_person_at_the_hub_answers_for_a_job_and_without_one_it_is_denied(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    heard = Heard(approves=True)
    narrow = {"mode": "default"}
    with Hub(heard) as hub:
        asks = job(1, tmp_path, "looks", variables={"x": 1}, granted=narrow, asks=True)
        alone = job(2, tmp_path, "looks", variables={"x": 1}, granted=narrow)
        first, second = (outcome(threads.submit(perform, one.to_json(), hub.link())) for one in (asks, alone))
    assert (first.status, len(heard.asked)) == ("done", 1)
    assert heard.asked[0]["tool"] == "run_python"
    assert (second.status, "os.getcwd()" in second.answer, str(tmp_path) in second.answer) == ("done", False, False)


def test_a_stop_interrupts_what_a_job_computes_what_waits_and_what_never_began(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    with Hub() as hub:
        running = threads.submit(perform, job(1, tmp_path, "spins").to_json(), hub.link())
        role = replace(job(3, tmp_path, "looks", variables={"x": 1}), role="tests.app.worker_scripts:waits")
        between = threads.submit(perform, role.to_json(), hub.link())
        wait_until((tmp_path / "spins").exists)
        wait_until((tmp_path / "waits").exists)
        hub.stop(why="Enough.")
        late = threads.submit(perform, job(2, tmp_path, "looks", variables={"x": 1}).to_json(), hub.link())
        found = [outcome(one) for one in (running, late, between)]
    assert [(one.status, one.stop_reason, one.problem) for one in found] == [("stopped", "interrupted", "Enough.")] * 3
    assert not found[2].died, "what waits between two runs hears of it, too, and need not be ended from outside"
    stored = read_session(tmp_path / ".nbagent" / "sessions" / f"{SESSION.format(1)}.jsonl", Seals())
    assert stored is not None
    check_transcript(stored.messages)
    assert not stored.closing


def test_the_budget_of_all_jobs_ends_those_that_come_too_late(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    with Hub(limits=Limits(tokens=250)) as hub:
        sent = [threads.submit(perform, job(n, tmp_path, "repeats").to_json(), hub.link()) for n in range(6)]
        found = [outcome(one) for one in sent]
        assert hub.spending.usage.total == 300
    ends = sorted((one.status, one.stop_reason) for one in found)
    assert ends == [("done", "end_turn")] * 3 + [("stopped", "budget")] * 3
    assert all("250 tokens is used up" in one.problem for one in found if one.status == "stopped")


def test_what_is_wrong_with_a_job_is_a_sentence(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    wrong = {
        "can't be used": job(1, tmp_path / "nowhere", "looks"),
        "there is no option": job(2, tmp_path, "looks", options={"modle": "x"}),
        "could be granted": job(3, tmp_path, "looks", granted={"model": "opus", "colour": "red"}),
        "can't be imported": job(4, tmp_path, "looks", tools=("no.such:tool",)),
        "no notebook": job(5, tmp_path, "looks", notebook="gone.ipynb"),
    }
    for words, one in wrong.items():
        found = outcome(threads.submit(perform, one.to_json(), {}))
        assert (found.status, words in found.problem, found.requests) == ("failed", True, 0), found


def test_jobs_wait_for_the_model_side_by_side_in_processes_of_one_warm_one_without_threads(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    with MessagesServer() as server, Hub() as hub:
        sent = [threads.submit(perform, served(n, tmp_path, server), hub.link()) for n in range(4)]
        server.wait_for_requests(4, timeout=60)  # all of them: no reply has come yet
        assert len(psutil.Process(nursery().pid).children()) == 4
        assert nursery().warm()["threads"] == 1
        server.push(*(say(f"Answer {n}") for n in range(4)))
        assert sorted(outcome(one).answer for one in sent) == [f"Answer {n}" for n in range(4)]


# ── nothing is paid twice ────────────────────────────────────────────────────────────────────────────────────────────

DIES_ONCE = "from tests.app.worker_scripts import dies_once\ndies_once()\nprint('ran')"


def served(number: int, folder: Path, server: MessagesServer) -> Json:
    """A job that asks the server: its address is granted, the nursery may be older than it."""
    return job(number, folder, granted={"base_url": server.url, "model": "claude-sonnet-5-5"}).to_json()


def child_of(warm: int) -> psutil.Process:
    wait_until(lambda: psutil.Process(warm).children())
    return psutil.Process(warm).children()[0]


def replies_taken_twice(server: MessagesServer) -> list[str]:
    """Whole replies that did not come back with the next request of their job: they were asked for anew."""
    seen = 0
    twice: list[str] = []
    for request in server.requests:
        known = sum(message["role"] == "assistant" for message in request.body["messages"])
        twice += [f"after {known} replies"] if known < seen else []
        seen = known + request.done.is_set()
    return twice


def test_a_job_whose_process_is_killed_goes_on_with_every_whole_reply(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    script = [
        calls("run_python", code=DIES_ONCE),
        Reply("This is never whole, and goes on for a while.", hang_after=5),
        calls("run_python", code="print(6 * 7)"),
        say("It is 42."),
    ]
    with MessagesServer(script) as server, Hub() as hub:
        given = served(1, tmp_path, server), hub.link()
        killed = outcome(threads.submit(perform, *given))
        assert (killed.status, "SIGKILL" in killed.problem) == ("failed", True), killed
        again = threads.submit(perform, *given)
        server.wait_for_requests(2)
        child_of(nursery().pid or 0).kill()
        assert outcome(again).status == "failed"
        whole, free = (outcome(threads.submit(perform, *given)) for _ in range(2))
        assert (whole.status, whole.answer, whole.requests, whole.turns) == ("done", "It is 42.", 2, 3)
        assert (free.answer, free.requests, free.turns, free.usage) == ("It is 42.", 0, 3, whole.usage)
        assert len(server.requests) == 4
        assert not replies_taken_twice(server)
        told = json.dumps(server.requests[1].body["messages"])
        assert "You had begun with this task already" in told
        assert "may or may not have" in told  # the call that was cut off is not taken for done
        server.assert_clean()


DRIVER = """\
import json, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from nbagent.app.worker import perform
from nbagent.headless.hub import Hub

if __name__ == "__main__":
    with Hub(patience=1.0) as hub, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        print(pool.submit(perform, json.loads(sys.argv[1]), hub.link()).result(), flush=True)
"""


def test_a_killed_driver_or_worker_leaves_nothing_behind_and_the_reply_under_way_is_kept(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    (tmp_path / "driver.py").write_text(DRIVER)
    with MessagesServer() as server:
        given = json.dumps(served(1, tmp_path, server))
        driver = subprocess.Popen([sys.executable, str(tmp_path / "driver.py"), given], stdout=subprocess.DEVNULL)
        server.wait_for_requests(1, timeout=60)
        below = [one for one in children(driver.pid) if "resource_tracker" not in " ".join(one.cmdline())]
        assert len(below) == 3, below  # a worker, its nursery, the job's process
        driver.kill()
        driver.wait()
        wait_until(lambda: psutil.Process(below[0].pid).ppid() != driver.pid)
        server.push(calls("run_python", code="print(1)"))  # what was under way comes whole
        wait_until(lambda: are_gone(below))
        assert len(server.requests) == 1

        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            future = pool.submit(perform, served(1, tmp_path, server), {})
            server.wait_for_requests(2, timeout=60)
            (worker,) = pool._processes or ()
            below = children(worker)
            os.kill(worker, signal.SIGKILL)
            with pytest.raises(BrokenProcessPool):
                future.result(30)
        # Here, too: the job may or may not have heard of it before the reply is whole, and ask for the next.
        server.push(calls("run_python", code="print(2)"), say("Done."))
        wait_until(lambda: are_gone(below))
        found = outcome(threads.submit(perform, served(1, tmp_path, server), {}))
        assert (found.answer, len(server.requests)) == ("Done.", 3)
        assert not replies_taken_twice(server)
