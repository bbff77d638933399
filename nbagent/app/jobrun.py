"""Performs one job in this process, which is its own: a new IPython shell, the job's folder, its link to the hub, one run.

Must not know how the process came to be (`nursed`), nor who gave the job out. Read `run_job`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.app.jobs import Job, Outcome
from nbagent.app.kept_jobs import MARK, KeptJob, kept_of
from nbagent.core.errors import ConfigError, NbagentError
from nbagent.core.events import Event, Reason, ReplyDiscarded, ReplyEnded, RequestSent, RunEnded, RunStarted
from nbagent.core.events_json import to_json
from nbagent.core.messages import Json
from nbagent.headless.link import GONE, Link

if TYPE_CHECKING:
    from nbagent.app.company import Company
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place, Reins
    from nbagent.core.ports import Answered, Approval, Model, Notebook, Question

_LISTS = frozenset({"allow", "ask", "deny", "hide", "schema_only", "secrets"})
_NOT_OF_A_JOB = frozenset(
    {"new", "go_on", "session", "fork", "out", "dry_run", "again", "stale", "tools", "background"}
)
_TOLD = (
    "(From the runtime, not the person:) You had begun with this task already, and the process that you ran in ended. What "
    "stands above was done; this is a new process, with a kernel of its own. Go on from there, and finish the task."
)
_STOPPED = "Stopped before the run began."
_AT_ONCE = 0.3  # seconds that a loop has to hear of a stop, until what it computes is interrupted
_GRACE = 30.0  # seconds that a run has to end after it was stopped, until its process ends with it
_IN_USE = 150.0  # seconds that another process has to let go of the session: one that was left may finish its reply
_AGAIN = 0.05  # seconds between two tries to take it


def run_job(job: Job, link: Json, leaves_by: Callable[[Callable[[], object]], None]) -> Outcome:
    """Perform a job and return what came of it; never raises for what a job can bring about.

    `link` is `Hub.link`, {} where no hub takes part. `leaves_by` takes what is called, on any thread, when who started the
    process is gone: the run then ends with the reply that is under way.
    """
    began = time.monotonic()
    try:
        outcome = _Performance(job, link).perform(leaves_by)
    except NbagentError as error:
        outcome = Outcome(job.id, "failed", problem=str(error), session=str(job.session_path or ""))
    return replace(outcome, seconds=round(time.monotonic() - began, 3))


class _Performance:
    """One job while it is performed."""

    def __init__(self, job: Job, link: Json) -> None:
        self._job = job
        self._link = Link(link, job.id, self._stopped) if link else None
        self._extension: Extension | None = None
        self._ended: RunEnded | None = None
        self._replying = False
        self._over = threading.Event()
        self._role: asyncio.Task[Any] | None = None  # what performs the job's role, while it does
        self._loop: asyncio.AbstractEventLoop | None = None
        self._performed: Outcome | None = None  # what came of a job that its role performs itself

    def perform(self, leaves_by: Callable[[Callable[[], object]], None]) -> Outcome:
        """Perform it. Raises `NbagentError` where no run could begin."""
        if not self._job.prompt.strip():
            raise ConfigError("This job has no prompt.")
        try:
            os.chdir(self._job.folder)
        except OSError as error:
            raise ConfigError(f"The folder {self._job.folder} of this job can't be used: {error.strerror}.") from None
        os.environ.update(_environment(self._job.granted))
        extension = self._extension = _extension()
        _hold(extension, self._job.session_id)
        kept = _kept(self._job, extension)
        if kept is not None and (outcome := kept.outcome(self._job.id)) is not None:
            return outcome
        if self._link is not None:
            self._link.start()
        leaves_by(self._link.leave if self._link is not None else partial(self._stopped, GONE))
        try:
            return self._outcome(extension, kept, asyncio.run(self._run(extension, kept)))
        finally:
            self._over.set()
            if self._link is not None:
                self._link.close()

    async def _run(self, extension: Extension, kept: KeptJob | None) -> str:
        """Run the agent and return why it failed, "" where it did not."""
        from nbagent.app.answer import RunFailed
        from nbagent.app.cell import run_agent_cell

        job, self._loop = self._job, asyncio.get_running_loop()
        extension.host, extension.metered = self._place, self._metered
        extension.file = _notebook(job)
        extension.shell.user_ns.update(job.variables)
        names = _tools(extension, job.tools)
        company: Company | Outcome | None = None
        try:
            self._role = asyncio.current_task()
            company = await _company(extension, job)
            self._role = None
            if isinstance(company, Outcome):
                self._performed = company
                return ""
            line = _line(job.options, names)
            await run_agent_cell(extension, line, job.prompt, _Begin(kept), company=company)
        except RunFailed as error:
            return str(error)
        except asyncio.CancelledError:  # stopped before the run itself began
            return _STOPPED
        finally:
            leave: Any = getattr(company, "aclose", None)
            if leave is not None:
                await leave()
            if "mcp" in vars(extension):
                await extension.mcp.close()
        return ""

    def _outcome(self, extension: Extension, kept: KeptJob | None, failed: str) -> Outcome:
        """Sum up what came of the run, with what the job took before it was cut off."""
        from nbagent.app.extension import unload_extension

        last, ended, link = extension.last, self._ended, self._link
        requests = link.requests if link is not None else 0
        path = str(last.store.path) if last is not None else ""
        unload_extension(extension.shell)  # which lets go of the session
        if self._performed is not None:
            return replace(self._performed, requests=requests)
        if ended is None:
            status = "stopped" if failed is _STOPPED else "failed"
            why = (link.over if link is not None else "") or failed
            reason = str(Reason.INTERRUPTED) if status == "stopped" else ""
            return Outcome(self._job.id, status, stop_reason=reason, problem=why, session=path, requests=requests)
        before = kept or KeptJob(Path(path))
        cost = None if before.cost is None or ended.cost is None else before.cost + ended.cost
        status = _status(ended.reason)
        why = (link.over if link is not None and ended.reason is Reason.INTERRUPTED else "") or ended.sentence
        return Outcome(
            self._job.id,
            status,
            ended.text,
            str(ended.reason),
            before.turns + ended.turns,
            before.usage + ended.usage,
            cost,
            path,
            problem="" if status == "done" else why,
            requests=requests,
        )

    # ── where the run takes place ────────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def _place(self, reins: Reins) -> AsyncGenerator[Place]:
        """The place of a run in a worker: the hub sees what happens, and answers if it has somebody who does."""
        from nbagent.app.place import Place
        from nbagent.jupyter.approval import PolicyApprover
        from nbagent.jupyter.interrupts import stopping

        async def finish(_: int) -> None:
            pass

        approver = _Asks(self._link) if self._link is not None and self._job.asks else PolicyApprover()
        with stopping(reins.stop):
            if self._link is not None and self._link.over:
                reins.stop()
            yield Place(self, approver, None, finish)

    def show(self, event: Event) -> None:
        """Take an event of the run: the hub hears it, and the session says of which job it is."""
        if isinstance(event, RunStarted) and self._extension is not None and self._extension.last is not None:
            self._extension.last.store.append({"type": MARK, "job": self._job.id})
        if isinstance(event, RunEnded):
            self._ended = event
        if isinstance(event, RequestSent | ReplyEnded | ReplyDiscarded):
            self._replying = isinstance(event, RequestSent)
        if self._link is not None:
            self._link.event(to_json(event))

    def _metered(self, model: Model) -> Model:
        from nbagent.app.model import RunModel
        from nbagent.models.metered import MeteredModel

        counted = isinstance(model, RunModel | MeteredModel)
        return model if counted or self._link is None else MeteredModel(model, self._link)

    # ── how it is stopped ────────────────────────────────────────────────────────────────────────────────────────────

    def _stopped(self, why: str) -> None:
        """Hear, on the link's thread, that the run has to end."""
        threading.Thread(target=self._end, args=(why,), name="nbagent-stop", daemon=True).start()

    def _end(self, why: str) -> None:
        """Have the run end; where the hub is gone, after the reply that is under way: it is paid for."""
        extension = self._extension
        assert extension is not None
        stop = extension.stop
        if stop is not None:
            extension.on_loop(stop.ask)
            while why == GONE and self._awaits_reply and not self._over.wait(_AT_ONCE / 3):
                pass
            heard = threading.Event()
            if why == GONE and self._over.wait(_AT_ONCE):
                return
            extension.on_loop(lambda: (heard.set(), stop.now()))
            if not heard.wait(_AT_ONCE) and not self._over.is_set():
                _interrupt()  # what it computes hears of nothing else
        for _ in range(round(_GRACE / _AT_ONCE)):
            if self._loop is not None and not self._over.is_set():
                with contextlib.suppress(RuntimeError):  # it was closed in this moment
                    self._loop.call_soon_threadsafe(self._leave)
            if self._over.wait(_AT_ONCE):
                return
        os._exit(os.EX_TEMPFAIL if hasattr(os, "EX_TEMPFAIL") else 75)

    def _leave(self) -> None:
        """End a role that is between two runs, on the loop: it waits for something, and no run hears of the stop."""
        if self._role is not None and self._extension is not None and self._extension.stop is None:
            self._role.cancel()
            self._role = None  # once: it may have something to say before it goes

    @property
    def _awaits_reply(self) -> bool:
        """Whether a reply is under way: the run's own, or one of its subagents'."""
        return self._replying or (self._link is not None and bool(self._link.in_flight))


class _Begin:
    """Makes the prompt: the job's own, or, where the job was cut off, what tells the model to go on."""

    def __init__(self, kept: KeptJob | None) -> None:
        self._goes_on = kept is not None and kept.begun

    async def __call__(self, notebook: Notebook | None, words: str) -> tuple[str, str]:  # noqa: ARG002  (the port's shape)
        """Return what people read and what the model is told more."""
        return ("", _TOLD) if self._goes_on else (words, "")


class _Asks:
    """Has the hub's people asked. Nobody is there any more once the link is over."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def present(self) -> bool:
        """Whether the hub may answer."""
        return not self._link.over

    async def ask(self, approval: Approval) -> Answered:
        """Return the answer; deny where nobody can be reached."""
        return await self._link.ask(approval)

    async def question(self, question: Question) -> str:
        """Return the answer, "" where nobody can be reached."""
        return await self._link.question(question)


def _status(reason: Reason) -> Any:
    if reason is Reason.END_TURN:
        return "done"
    return "failed" if reason in {Reason.ERROR, Reason.CELL_GONE} else "stopped"


def _interrupt() -> None:
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        import _thread

        _thread.interrupt_main()


# ── what a job is made of ────────────────────────────────────────────────────────────────────────────────────────────


def _extension() -> Extension:
    """Return nbagent in a new shell, which keeps no history: that is the person's own."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from nbagent.app.extension import current, load_extension

    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    load_extension(shell)
    return current(shell)


def _environment(granted: Mapping[str, Any]) -> dict[str, str]:
    """Return settings as the environment has them; raises `ConfigError` for one that there is not."""
    from nbagent.config import NAMES

    found: dict[str, str] = {}
    for name, value in granted.items():
        if name not in NAMES or name == "prompt":
            raise ConfigError(f"There is no setting {name!r} that a job could be granted.")
        if value is not None:
            texts = value if isinstance(value, list | tuple) else [value]
            found[f"NBAGENT_{name.upper()}"] = ("\n" if name in _LISTS else ",").join(map(str, texts))
    return found


def _line(options: Mapping[str, Any], tools: tuple[str, ...]) -> str:
    """Return options as they are written in a `%%agent` line."""
    given = {name: value for name, value in options.items() if name not in _NOT_OF_A_JOB and value not in (None, False)}
    flags = [(f"--{name.replace('_', '-')}", value) for name, value in given.items()]
    words = [flag if value is True else f"{flag}={value}" for flag, value in flags]
    if any(len(word.split()) != 1 for word in (*words, *tools)):
        raise ConfigError(f"The options of this job can't be written in a line: {' '.join(words)}")
    return " ".join([*words, *([f"--tools={','.join(tools)}"] if tools else [])])


def _kept(job: Job, extension: Extension) -> KeptJob | None:
    """Return what is kept of the job, None where nothing is; the run then goes on in the session, or begins it.

    A session that this person's nbagent did not write is left alone: its answer would not be theirs.
    """
    from nbagent.app.starts import Move
    from nbagent.extend.sessions import read_session

    path = job.session_path
    if path is None:
        return None
    if not path.exists():
        extension.next_session = job.session_id
        return None
    kept = kept_of(path, job.id)
    found = read_session(kept.session, extension.seals)
    if found is None:  # the process ended before its first line was whole
        path.unlink()
        extension.next_session = job.session_id
        return None
    if not found.sealed:
        return None
    extension.move = Move(kept.session.stem, len(found.messages), itself=True)
    return kept


def _hold(extension: Extension, session: str) -> None:
    """Wait until nobody else writes to the session: a process that was given up may still be ending (`nursed` says how long)."""
    until = time.monotonic() + _IN_USE
    while session and not extension.holds.take(session):
        if time.monotonic() > until:
            raise ConfigError(f"The session {session} of this job is in use by another process.")
        time.sleep(_AGAIN)


def _notebook(job: Job) -> Notebook | None:
    from nbagent.headless.file import FileNotebook

    return FileNotebook(job.notebook) if job.notebook else None


def _named(name: str) -> Any:
    """Return what `package.module:attribute` names. Raises `ConfigError`."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{name} can't be imported in the worker: {error}.") from None


def _tools(extension: Extension, named: tuple[str, ...]) -> tuple[str, ...]:
    """Put the person's own tools into the kernel and return the names of those to offer, () for all."""
    from nbagent.core.tools import Tool

    names: list[str] = []
    own: list[str] = []
    for one in named:
        if ":" not in one:
            names.append(one)
            continue
        tool = _named(one)
        if not isinstance(tool, Tool):
            raise ConfigError(f"{one} is no tool: write it with @nbagent.tool.")
        extension.tools = [other for other in extension.tools if other.name != tool.name] + [tool]
        own.append(tool.name)
    return (*names, *own) if names else ()


async def _company(extension: Extension, job: Job) -> Company | Outcome | None:
    """Return with whom the run works, as the job's role says, or what the role did itself; None where it works alone."""
    found: Any = _named(job.role)(extension, job) if job.role else None
    return await found if isinstance(found, Awaitable) else found
