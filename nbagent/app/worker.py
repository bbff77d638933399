"""What an executor runs in its workers: one job, in a process and a kernel of its own.

`perform` is a top-level function of plain arguments, so that any `concurrent.futures.Executor` can take it to a worker:
a process pool's (spawn, forkserver), a thread's, Dask's (daemonic ones too), an ipyparallel engine. Must not know which one
it is. Read `perform`.
"""

from __future__ import annotations

import functools
import multiprocessing
import multiprocessing.connection
import os
import threading
import time

from nbagent.app.jobs import Job, Outcome
from nbagent.app.nursery import Nursery, ProcessDied, nursery
from nbagent.core.messages import Json

_LOOK = 0.2  # seconds between two looks whether a worker without a parent is done


def perform(job: Json, link: Json, *, within: Nursery | None = None) -> Json:
    """Perform a job and return its outcome; blocks until then.

    `job` is `Job.to_json`, `link` what `Hub.link` gave ({}: no hub takes part), the outcome that of `Outcome.to_json`. Raises
    nothing for what a job can bring about: a process that is killed is an outcome too (`died`), and the job can be performed
    again. `within`: whose process it is to be, instead of this worker's one.
    """
    _end_with_parent(os.getpid())
    began = time.monotonic()
    try:
        return (within or nursery()).perform({"job": job, "link": link})
    except ProcessDied as error:
        known = Job.from_json(job)
        seconds = round(time.monotonic() - began, 3)
        session = str(known.session_path or "")
        return Outcome(known.id, "failed", problem=str(error), session=session, seconds=seconds, died=True).to_json()


def warm_up() -> None:
    """Have the warm process of this worker ready: for a pool's initializer, or before the time is taken."""
    _end_with_parent(os.getpid())
    nursery().warm()


@functools.cache
def _end_with_parent(_: int) -> None:
    """End this process, once its jobs have ended, when the one that started it is gone: a pool's worker would stay for ever.

    Only what `multiprocessing` has started knows its parent; other workers look after themselves.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        while nursery().busy:
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, name="nbagent-parent", daemon=True).start()
