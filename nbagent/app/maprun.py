"""One map while it goes on: gives its jobs out, takes what comes back, keeps it, and says how far it is.

What an input becomes is in `mapinputs`, what is kept in `mapstore`, where jobs are carried out in `executors`. Must not
know how a job is performed, nor where progress is shown. Read `MapRun.run`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nbagent.app.executors import TRIES, Places, default_workers, lost, take_back
from nbagent.app.jobs import Job, Outcome
from nbagent.app.kept_jobs import kept_of
from nbagent.app.mapfields import ROLE, Fields, answer_in
from nbagent.app.mapinputs import Asked
from nbagent.app.mapjob import carry_out
from nbagent.app.maprows import STOPPED, Rows
from nbagent.app.mapstore import Again, Kept, MapFolder, fingerprint, is_changed
from nbagent.app.maptable import Table
from nbagent.core.endings import GOES_ON
from nbagent.core.errors import ConfigError, NbagentError, ToolError
from nbagent.core.events import Reason
from nbagent.core.limits import Limits
from nbagent.core.messages import Json, Usage
from nbagent.headless.admission import Rates, Spending
from nbagent.headless.hub import Hub
from nbagent.view.mapprogress import SHOWN, MapProgress

AT_ONCE = 1_000
"""Jobs that lie at an executor of the person's at a time; how many run side by side is its own affair."""

GRACE = 20.0
"""Seconds that runs have to end after a stop; the sessions of those that take longer are gone on with later."""

TICK = 0.25
"""Seconds between two looks at how far all is. Also what lets an interrupt through: an idle loop hears of it late."""

_NAMED = 4

Show = Callable[[MapProgress], None]


@dataclass(frozen=True, slots=True)
class Order:
    """All of one map. `job` is what its jobs have in common, `about` what a resumed map must have in common with it.

    `folder` is where it is kept, `named`: the person named it. `workers`: jobs side by side, where no executor is given.
    """

    asked: tuple[Asked, ...]
    job: Job
    about: Mapping[str, Any]
    folder: Path
    named: bool = False
    again: Again = False
    fields: Fields | None = None
    limits: Limits = field(default_factory=Limits)
    rates: Rates = field(default_factory=Rates)
    executor: Any = None
    workers: int | None = None
    in_place: bool = False
    host: str = "127.0.0.1"


class MapStopped(NbagentError):
    """A map was stopped. `table` has what was done until then; the same call with `resume=` goes on from there."""

    def __init__(self, table: Table) -> None:
        super().__init__(f"Stopped: {table.totals.sentence}. resume={table.folder!r} goes on from here.")
        self.table = table

    def _render_traceback_(self) -> list[str]:
        return [f"nbagent: {self}"]


class MapRun:
    """See the module's docstring. `show` is told how far it is, a few times a second and at the end."""

    def __init__(self, order: Order, show: Show) -> None:
        self._order, self._show = order, show
        self._rows = Rows(order.asked, order.fields, None if order.in_place else order.folder)
        self._out: dict[int, Asked] = {}
        self._kept = 0
        self._began = time.monotonic()
        self._stopping = False
        self._window = asyncio.Semaphore(AT_ONCE if order.executor is not None else order.workers or default_workers())

    async def run(self) -> Table:
        """Do it and return the table; raises `ConfigError` where it can't begin, `MapStopped` where it was stopped."""
        order = self._order
        self._store = MapFolder.open(order.folder, order.about, resumed=order.named, again=order.again)
        try:
            todo, already = await asyncio.to_thread(self._look)
            with Hub(limits=order.limits, rates=order.rates, already=already, host=order.host) as self._hub:
                await self._carried_out(todo)
        except OSError as error:
            raise ConfigError(f"The map can't be kept in {order.folder}: {error.strerror or error}.") from error
        finally:
            self._store.close()
        if self._stopping:
            raise MapStopped(self.table())
        return self.table()

    async def _carried_out(self, todo: list[tuple[Asked, Json | None]]) -> None:
        """Have all done that is to be done, and leave nothing behind; the last that is shown says how it ended."""
        self._places = Places(self._order.executor, self._order.workers)
        over, ended = False, "Failed."
        try:
            over = await self._all(todo)
            ended = self._end()
        finally:
            await self._places.close(at_once=not over)
            self._tell(ended)

    def table(self) -> Table:
        """Return the table as it is now."""
        return self._rows.table(self._order.folder)

    # ── what there is already ────────────────────────────────────────────────────────────────────────────────────────

    def _look(self) -> tuple[list[tuple[Asked, Json | None]], Spending]:
        """Return what is to be done (with what is kept of it), and what was spent on all of this map so far."""
        todo: list[tuple[Asked, Json | None]] = []
        spent = Spending()
        for asked in self._order.asked:
            kept = self._store.kept(asked.key)
            if kept is None:
                todo.append((asked, None))
                continue
            if kept.job.get("prompt") != asked.prompt:
                raise ConfigError(
                    f"{self._order.folder} holds this map with other prompts (input {asked.item.index}). Give resume= another "
                    "folder, or again=True to run all of it anew."
                )
            outcome = self._finished(asked, kept)
            used, price = self._spent(kept, outcome)
            total = None if spent.cost is None or price is None else spent.cost + price
            spent = Spending(spent.usage + used, total, spent.requests)
            if outcome is None:
                todo.append((asked, kept.job))
            else:
                fields = (kept.outcome or {}).get("fields")
                self._rows.take(asked, outcome, fields, changed=self._changed(asked, kept))
                self._kept += 1
        return todo, spent

    def _finished(self, asked: Asked, kept: Kept) -> Outcome | None:
        """Return the outcome of an input that needs nothing more; puts aside what is to be run anew."""
        if kept.outcome is None:
            return None
        outcome, again = Outcome.from_json(kept.outcome), self._order.again
        status, _ = self._rows.status(outcome, kept.outcome.get("fields"))
        if status == "stopped" or outcome.status == "failed":
            return None
        goes_on = bool(outcome.stop_reason) and Reason(outcome.stop_reason) in GOES_ON
        if again == "failed" and status == "failed" and goes_on:
            return None
        if (again == "failed" and status == "failed") or (again == "changed" and self._changed(asked, kept)):
            self._store.forget(asked.key)
            kept.job.clear()
            return None
        return outcome

    def _changed(self, asked: Asked, kept: Kept) -> bool:
        watched = asked.item.kind in {"file", "notebook"} and not self._order.in_place
        return watched and is_changed((kept.outcome or {}).get("file") or {}, fingerprint(Path(asked.item.path)))

    def _spent(self, kept: Kept, outcome: Outcome | None) -> tuple[Usage, float | None]:
        if outcome is not None:
            return outcome.usage, outcome.cost
        session = str(kept.job.get("path") or "")
        if not session:
            return Usage(), 0.0
        found = kept_of(Path(session), _job_id(str(kept.job.get("key"))))
        return found.usage, found.cost

    # ── giving out ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _all(self, todo: list[tuple[Asked, Json | None]]) -> bool:
        """Give everything out and wait for it; return whether all of it has ended.

        When this task is cancelled all is stopped, in order; when it is cancelled once more, at once.
        """
        tasks = {asyncio.create_task(self._one(asked, known)) for asked, known in todo}
        waiting, until = set(tasks), float("inf")
        while waiting and time.monotonic() < until:
            try:
                _, waiting = await asyncio.wait(waiting, timeout=TICK)
                self._tell()
            except asyncio.CancelledError:
                until = time.monotonic() + (0.0 if self._stopping else GRACE)
                self._stop()
        for task in waiting:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result
        return not waiting

    def _stop(self) -> None:
        self._stopping = True
        self._hub.stop(why="The map was stopped.")
        if (task := asyncio.current_task()) is not None:
            task.uncancel()

    async def _one(self, asked: Asked, known: Json | None) -> None:
        """Have one job performed, again where its worker died, and keep what came of it."""
        async with self._window:
            outcome, problem = None, ""
            for attempt in range(TRIES):
                if self._stopping or self._hub.used_up:
                    return
                try:
                    job = await asyncio.to_thread(self._begin, asked, known)
                    outcome, problem, again = await self._performed(asked, job, attempt)
                except (ConfigError, OSError, ToolError) as error:
                    outcome, problem, again = None, str(error), False
                if outcome is not None or not again:
                    break
                known = self._store_job(asked)
            outcome = outcome or Outcome(_job_id(asked.key), "failed", problem=problem)
            await asyncio.to_thread(self._keep, asked, outcome)

    def _store_job(self, asked: Asked) -> Json | None:
        kept = self._store.kept(asked.key)
        return None if kept is None else kept.job

    async def _performed(self, asked: Asked, job: Job, attempt: int) -> tuple[Outcome | None, str, bool]:
        """Return the outcome of a job; or None, why there is none, and whether it may be given out again."""
        future = self._places.give(carry_out, job.to_json(), self._hub.link(), str(self._store.path), attempt)
        self._out[asked.item.index] = asked
        self._rows.begun.add(asked.item.index)
        try:
            wrapped = asyncio.wrap_future(future)
            while not wrapped.done():
                await asyncio.wait({wrapped}, timeout=None if not self._stopping else TICK)
                if self._stopping and job.id not in self._hub.working and take_back(future):
                    return None, STOPPED, False
        except asyncio.CancelledError:
            take_back(future)
            raise
        finally:
            self._out.pop(asked.item.index, None)
        if wrapped.cancelled():
            return None, STOPPED if self._stopping else "The executor cancelled this job.", False
        if (error := wrapped.exception()) is not None:
            found = lost(error)
            return None, found.sentence, found.again and not self._stopping
        outcome = Outcome.from_json(wrapped.result())
        return (None, outcome.problem, True) if outcome.died and not self._stopping else (outcome, "", False)

    def _begin(self, asked: Asked, known: Json | None) -> Job:
        """Keep that a job begins, and return it."""
        item, order, known = asked.item, self._order, known or {}
        folder = {"folder": item.path, "notebook": str(Path(item.path).parent)}.get(item.kind, order.job.folder)
        notebook = ""
        if item.kind == "notebook":
            notebook = item.path if order.in_place else str(self._store.copy(asked.key, Path(item.path)))
        job = replace(
            order.job,
            id=_job_id(asked.key),
            prompt=asked.prompt,
            folder=folder,
            notebook=notebook,
            variables=asked.variables,
            session=str(known.get("session") or self._store.new_session(asked.key)),
            name=item.text[:60],
            role=ROLE if order.fields is not None else order.job.role,
            about={"schema": order.fields.schema} if order.fields is not None else order.job.about,
        )
        path = str(job.session_path or "")
        self._store.begin(asked.key, {"key": asked.key, "input": item.shown, "prompt": asked.prompt, "session": job.session,
                                      "path": path, "notebook": notebook})  # fmt: skip
        return job

    # ── taking back ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _keep(self, asked: Asked, outcome: Outcome) -> None:
        """Keep what came of a job, and take it into the table."""
        path = Path(asked.item.path) if asked.item.kind in {"file", "notebook"} else None
        fields = self._fields(outcome)
        known: Json = {"file": fingerprint(path)} if path is not None else {}
        self._store.end(asked.key, {**outcome.to_json(), "fields": fields, **known})
        self._rows.take(asked, outcome, fields)

    def _fields(self, outcome: Outcome) -> Json | None:
        if self._order.fields is None or not outcome.session:
            return None
        given = answer_in(Path(outcome.session))
        try:
            return None if given is None else self._order.fields.read(given)
        except ToolError:
            return None

    # ── saying ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _end(self) -> str:
        if self._stopping:
            return "Stopped."
        if said := self._hub.used_up:
            return f"{said} resume= with a larger budget goes on."
        return "Done."

    def _tell(self, ended: str = "") -> None:
        spending, order = self._hub.spending, self._order
        totals = replace(self._rows.totals, cost=spending.cost, tokens=spending.usage.total)
        working = set(self._hub.working)
        names = [asked.item.text for asked in self._out.values() if _job_id(asked.key) in working]
        self._show(
            MapProgress(
                totals=totals,
                running=len(names),
                names=tuple(names[:_NAMED]),
                kept=self._kept,
                budget=order.limits.usd,
                limit=order.limits.tokens,
                elapsed=time.monotonic() - self._began,
                problems=tuple(self._rows.problems[-SHOWN:]),
                ended=ended,
                folder=str(order.folder),
            )
        )


def _job_id(key: str) -> str:
    return f"map-{key}"
