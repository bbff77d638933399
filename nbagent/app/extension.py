"""What `%load_ext nbagent` puts into a shell, and takes out again exactly. It holds all state: no module does.

Read `Extension` first; `magics` are its face, `cell` runs one `%%agent` cell with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.app.conversation import Conversation
from nbagent.app.log import LogFile
from nbagent.app.traits import NbAgent
from nbagent.app.transform import MAGICS, passes_by, transform
from nbagent.app.tray import KernelTray
from nbagent.app.underway import LiveRun, Underway
from nbagent.app.waiting import WaitingRecords
from nbagent.config import Settings, load
from nbagent.core.agents import AgentSpec
from nbagent.core.errors import ConfigError
from nbagent.core.policy import Mode
from nbagent.core.ports import Model, Notebook
from nbagent.core.run import Stop
from nbagent.core.tools import Tool
from nbagent.extend.holds import Holds
from nbagent.extend.rulefiles import RuleFiles, read_rules
from nbagent.extend.runs import RunStore
from nbagent.extend.seals import Seals
from nbagent.extend.sessions import FOLDER
from nbagent.jupyter.counts import CellNumber
from nbagent.jupyter.figurewatch import FigureWatch
from nbagent.jupyter.kernel import ShellKernel
from nbagent.jupyter.mainthread import MainThread
from nbagent.jupyter.passwords import Passwords
from nbagent.jupyter.persons import Persons
from nbagent.jupyter.refusals import Refusals
from nbagent.jupyter.replies import Replies
from nbagent.jupyter.timer import CellTimer
from nbagent.tools.data.pictures import Pictures

if TYPE_CHECKING:
    from nbagent.app.continuing import Unfinished
    from nbagent.app.forks import Point
    from nbagent.app.hooks import KernelHooks
    from nbagent.app.lesson import Lessons
    from nbagent.app.model_command import Listings
    from nbagent.app.notices import Notices
    from nbagent.app.place import Host
    from nbagent.app.privacy import Privacy
    from nbagent.app.starts import Move, Planned
    from nbagent.app.trusting import Trusting
    from nbagent.app.undo import Undo
    from nbagent.app.verifying import Verifier
    from nbagent.extend.folder import FolderFiles
    from nbagent.extend.mcp import Servers
    from nbagent.extend.trust import Trust
    from nbagent.jupyter.desk import Desk

_ATTRIBUTE = "_nbagent_extension"


class Extension:
    """nbagent in one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.traits = NbAgent(parent=shell)
        self.folder = Path.cwd()
        self.kernel = ShellKernel(shell, floods=self.folder / ".nbagent" / "outputs")
        self.seals = (
            Seals()
        )  # one for all: where its key can't be kept, what was sealed counts as long as this kernel lives
        self.persons = Persons(shell, self.kernel)
        self.number = CellNumber(shell, self.persons.asked)
        self.main = MainThread(shell, lambda: self.kernel.gate, passes_by)
        self.timer = CellTimer(shell)
        self.replies = Replies(getattr(shell, "kernel", None))
        self.passwords = Passwords(shell)
        self.figures = FigureWatch(shell)
        self.pictures = Pictures(self.figures.shown)
        self.tools: list[Tool] = []
        self.agents: dict[str, AgentSpec] = {}  # kinds of subagents that cells have made
        self.errands: list[str] = []  # what subagents answered the person: told with the next prompt
        self.teams: set[asyncio.Task[Any]] = set()  # that go on: a task that nobody holds may vanish
        self.conversations: dict[str, Conversation] = {}
        self.last: Conversation | None = None
        self.file: Notebook | None = None  # of `nbagent ask --notebook`: a notebook that nobody has open
        self.underway = Underway()
        self.tray = KernelTray(self)
        self.chosen: dict[str, Any] = {}
        self.agreed: set[tuple[str, ...]] = set()  # what the notebook asked for and got, and what it did not get
        self.declined: set[tuple[str, ...]] = set()
        self.shown: dict[str, Point] = {}  # of each notebook: where the record ends that was shown last
        self.seat = ""  # of the notebook's own conversation, since it had a run here
        self.move: Move | None = None  # to which session the notebook is to go over
        self.going_on: dict[str, str] = {}  # by seat: the session on disk that goes on itself, and no fork of it
        self.planned: list[Planned] = []  # branches that code has made and that no run has begun yet
        self.silent: set[str] = set()  # clients of this kernel none of whose pages answers (jupyter/front_end.py)
        self.desk: Desk | None = None  # what hears the buttons of finished runs
        self.again: dict[str, float] = {}  # cells that a click runs now, until when: they ask the model in any case
        self.unfinished: Unfinished | None = None  # the last run, if it can be gone on with
        self.continued: dict[str, float] = {}  # cells whose run a click goes on with now, until when
        self.host: Host | None = None  # of a worker: where its runs take place (app/jobrun.py)
        self.metered: Callable[[Model], Model] = lambda model: model  # of a worker: its requests are counted elsewhere
        self.next_session = ""  # the id of the session that the next conversation begins, "" for a new one
        self._loop: asyncio.AbstractEventLoop | None = None
        self.waiting = WaitingRecords(shell)
        self.refusals = Refusals()
        self.traceback = ""
        self.log = LogFile(self.folder / ".nbagent" / "nbagent.log", self.clean)
        self.pid = os.getpid()
        self._propagated = True
        self._failures = _Failures(self)

    @cached_property
    def undo(self) -> Undo:
        """What the runs of this kernel, and those on disk, have changed."""
        from nbagent.app.undo import Undo

        return Undo(
            self.folder,
            lambda: self.shell.user_ns,
            lambda: self.stop is not None,
            self.seals,
            lambda: self.underway.runs,
        )

    @cached_property
    def runs(self) -> RunStore:
        """The finished runs that are kept in the person's folder."""
        return RunStore(self.folder, seals=self.seals)

    @cached_property
    def holds(self) -> Holds:
        """The sessions that this kernel writes to."""
        return Holds(self.folder / FOLDER)

    @cached_property
    def notices(self) -> Notices:
        """What the conversations of this kernel are to hear of runs beside them."""
        from nbagent.app.notices import Notices

        return Notices(self.folder, self.seals, self.kernel_id, self.holds.elsewhere)

    @cached_property
    def privacy(self) -> Privacy:
        """What does not leave this kernel."""
        from nbagent.app.privacy import Privacy

        return Privacy(self)

    @cached_property
    def mcp(self) -> Servers:
        """The MCP servers of this kernel."""
        from nbagent.app.mcp import servers_of

        return servers_of(self.folder, lambda: self.trust)

    @cached_property
    def listings(self) -> Listings:
        """What the models' servers list, as far as it was asked."""
        from nbagent.app.model_command import Listings

        return Listings()

    @cached_property
    def hooks(self) -> KernelHooks:
        """The hooks of this kernel."""
        from nbagent.app.hooks import kernel_hooks

        return kernel_hooks(self)

    @cached_property
    def files(self) -> FolderFiles:
        """What the files of this folder and of the person say; `load` reads them anew, at the start of each run."""
        from nbagent.extend.folder import FolderFiles
        from nbagent.extend.places import Places
        from nbagent.extend.wishes import read_wishes

        places = Places.of(self.folder, os.environ)
        made = FolderFiles(places, lambda: read_wishes(places, os.environ), seals=self.seals)
        made.load()
        return made

    @property
    def trust(self) -> Trust:
        """What the person said of this folder's files, as it is known by now: one object for all that ask."""
        self.files.trust.look()
        return self.files.trust

    @cached_property
    def lessons(self) -> Lessons:
        """What a teacher has set for this kernel's notebook."""
        from nbagent.app.lesson import Lessons
        from nbagent.app.starts import notebook_of

        return Lessons(self.folder, lambda: notebook_of(self))

    @cached_property
    def trusting(self) -> Trusting:
        """What was said in this kernel of the folder's files."""
        from nbagent.app.trusting import Trusting

        return Trusting()

    @cached_property
    def verifier(self) -> Verifier:
        """What is known of the truth of this kernel's notebooks."""
        from nbagent.app.verifying import Verifier

        return Verifier(self)

    @property
    def kernel_id(self) -> str:
        """What tells this kernel from those before it, also when nbagent was loaded anew."""
        ident = getattr(getattr(self.shell, "kernel", None), "ident", "")
        return str(ident) if ident else f"process {self.pid}"

    def clean(self, text: str) -> str:
        """Return a text for the log without secrets."""
        return self.privacy.vault.mask(text)

    def settings(self, options: dict[str, Any] | None = None) -> Settings:
        """Return the settings in force, with the options of one cell on top; raises `ConfigError`."""
        made = load(self.folder, os.environ, self.traits.given(), self.chosen, options or {}, files=self._rules())
        return self._narrowed(made)

    def outside(self) -> Settings:
        """Return the settings from outside the notebook: files and environment."""
        return self._narrowed(load(self.folder, os.environ, files=self._rules()))

    def _narrowed(self, settings: Settings) -> Settings:
        from nbagent.app.lesson import under

        return under(settings, self.lessons.in_force())

    def _rules(self) -> RuleFiles:
        return read_rules(self.files.places, self.trust.holds)

    def choose(self, **settings: Any) -> None:
        """Set settings for the rest of this kernel's life, as `%agent model` and `%agent mode` do."""
        self.chosen.update(settings)

    @property
    def stop(self) -> Stop | None:
        """What stops the run of the cell that runs now, None where no such run is under way."""
        run = self.underway.foreground
        return run.stop if run is not None else None

    @property
    def agents_code(self) -> bool:
        """Whether what calls this may be an agent's code: a cell's run is under way, or one in the background runs this."""
        return self.stop is not None or bool(self.underway.runs and not self.persons.speaks())

    def begin(self, run: LiveRun) -> LiveRun:
        """Say that a run begins, on the running loop."""
        self._loop = asyncio.get_running_loop()
        return self.underway.add(run)

    def on_loop(self, act: Callable[[], object]) -> None:
        """Do `act` on the loop of the runs under way, from any thread: a subshell's magics run on another one."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(act)

    def wanted_again(self, options: dict[str, Any]) -> None:
        """Set `again` in the options of the running cell, if a click on its record asked for that."""
        from nbagent.jupyter.front_end import running_cell

        if time.monotonic() < self.again.pop(running_cell(self.shell) or "", 0.0):
            options["again"] = True

    def wanted_to_go_on(self) -> bool:
        """Whether a click on the record of the running cell asked to go on with its run."""
        from nbagent.jupyter.front_end import running_cell

        return time.monotonic() < self.continued.pop(running_cell(self.shell) or "", 0.0)

    def mode(self) -> Mode:
        """The mode in force without a cell's own options."""
        return self.settings().mode

    def load(self) -> None:
        """Put everything into the shell."""
        from nbagent.app.completion import install
        from nbagent.app.magics import AgentMagics
        from nbagent.app.mention_completion import install as complete_mentions

        shell = self.shell
        self.magics = AgentMagics(shell, self)
        shell.register_magics(self.magics)
        shell.input_transformers_cleanup.append(transform)
        shell.configurables.append(self.traits)
        self.persons.install()
        self.number.install()
        self.main.install()
        self.replies.install()
        self.timer.install()
        self.passwords.install()
        self.figures.install()
        self.waiting.install()
        logger = logging.getLogger("nbagent")
        logger.addHandler(self.log)
        self._propagated, logger.propagate = logger.propagate, False  # nothing of ours is printed into a cell
        self.uninstall_completion = install(shell)
        self.uninstall_mentions = complete_mentions(self)
        setattr(shell, _ATTRIBUTE, self)
        logging.getLogger("nbagent").addHandler(self._failures)
        threading.Thread(target=_warm_up, name="nbagent-warm-up", daemon=True).start()

    def unload(self) -> None:
        """Take everything out of the shell again; what goes on in the background is stopped."""
        shell = self.shell
        for run in self.underway.background:
            self.on_loop(run.stop.now)
        self.waiting.remove()
        self.tray.close()
        if self.desk is not None:
            self.desk.close()
        if "hooks" in self.__dict__:
            self.hooks.end_now()
        if "holds" in self.__dict__:
            self.holds.close()
        if "mcp" in self.__dict__:
            from nbagent.app.mcp import close_later

            close_later(self.mcp)
        self.persons.remove()
        self.main.remove()  # around the one of the number
        self.replies.remove()
        self.number.remove()
        self.timer.remove()
        self.passwords.remove()
        self.figures.remove()
        logger = logging.getLogger("nbagent")
        logger.removeHandler(self.log)
        logger.propagate = self._propagated
        self.log.close()
        self.uninstall_completion()
        self.uninstall_mentions()
        for kind in ("line", "cell"):
            for name in MAGICS:
                shell.magics_manager.magics[kind].pop(name, None)
        shell.magics_manager.registry.pop(type(self.magics).__name__, None)
        if transform in shell.input_transformers_cleanup:
            shell.input_transformers_cleanup.remove(transform)
        shell.configurables[:] = [c for c in shell.configurables if c is not self.traits and c is not self.magics]
        logging.getLogger("nbagent").removeHandler(self._failures)
        delattr(shell, _ATTRIBUTE)


class _Failures(logging.Handler):
    """Keeps the last traceback of a bug (ours or a tool's) for `%agent traceback`; without it, it would be printed."""

    def __init__(self, extension: Extension) -> None:
        super().__init__(logging.ERROR)
        self._extension = extension

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what `record` tells."""
        self._extension.traceback = self._extension.clean(self.format(record))


def current(shell: Any) -> Extension:
    """Return the extension loaded in `shell`; raise `ConfigError` where there is none."""
    found = getattr(shell, _ATTRIBUTE, None)
    if not isinstance(found, Extension):
        raise ConfigError("nbagent is not loaded in this kernel. Run %load_ext nbagent first.")
    return found


def load_extension(shell: Any) -> None:
    """Load nbagent into `shell`; loading twice changes nothing."""
    if getattr(shell, _ATTRIBUTE, None) is None:
        Extension(shell).load()


def unload_extension(shell: Any) -> None:
    """Unload nbagent from `shell`."""
    if (found := getattr(shell, _ATTRIBUTE, None)) is not None:
        found.unload()


def _warm_up() -> None:
    """Import the SDK while the person still types: it takes a second. What is wrong with it is told when it is needed."""
    from nbagent.models import warm_up

    with contextlib.suppress(ConfigError):
        warm_up()
