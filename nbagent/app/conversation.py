"""What lasts from one `%%agent` cell to the next: the session, what it knows of the notebook, kept rules, full results."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nbagent.app.model import voice_of
from nbagent.app.ways import NO_WAYS, Ways
from nbagent.config import Settings
from nbagent.core.context import NotebookMemory
from nbagent.core.errors import NotebookError
from nbagent.core.messages import Block, text_block
from nbagent.core.policy import Mode, Rule
from nbagent.core.ports import Cell, Notebook
from nbagent.core.session import Mask, Session
from nbagent.core.tools import Tool, Toolset
from nbagent.extend.project import ProjectState
from nbagent.extend.render import Invocation
from nbagent.extend.seals import Seals
from nbagent.extend.sessions import FOLDER, GoingOn, JsonlStore, Stored, new_session_id
from nbagent.prompt import compose
from nbagent.tools.cells import error_of
from nbagent.tools.results import ResultStore, clip, output_blocks
from nbagent.tools.seen import Seen

_log = logging.getLogger("nbagent")

PROPOSES = (
    "This front end does not let you reach the notebook. The cells below are what ran in this kernel so far. A cell that "
    "you add or edit is only proposed to the person, and does not run: to compute something yourself use run_python."
)

_BESIDE = frozenset({"--fork", "--session", "--background"})
_BRANCH = "%%agent … (what was asked here is told in its own conversation only)"

_OUTPUTS_READ = 30
_OUTPUT_CHARS = 1_000


@dataclass(slots=True)
class Conversation:
    """One notebook's conversation in this kernel."""

    session: Session
    store: JsonlStore
    notebook: str
    kept: list[Rule] = field(default_factory=list[Rule])
    results: ResultStore = field(default_factory=ResultStore)
    memory: NotebookMemory = field(default_factory=NotebookMemory)
    seen: Seen = field(default_factory=Seen)
    told_mode: Mode = Mode.DEFAULT
    told_agents: tuple[str, ...] = ()
    told_project: ProjectState | None = None
    called: list[Invocation] = field(default_factory=list[Invocation])
    """Skills that were called: those whose texts must survive a compaction (render.attached_again)."""
    new_name: str = ""
    voice: str = ""
    """Whose thinking is in it (see models.voice): fixed as its tools are."""
    began: dict[str, int] = field(default_factory=dict[str, int])
    """Of each cell whose last run here is finished: the first message of that run (see forks.py)."""
    title: str = ""
    ways: Ways = NO_WAYS
    model: str = ""
    """The model of its last run."""
    beside: bool = False
    """Whether it is a branch, beside the notebook's own conversation."""
    resumed: bool = False
    """Whether it was begun in an earlier kernel and goes on here; until its first run here has begun."""
    elsewhere: bool = False
    """Whether what was said so far was said in another kernel."""
    told_restart: bool = False
    """Whether the model knows which cells ran in an earlier kernel only."""

    @classmethod
    def begin(
        cls,
        settings: Settings,
        tools: Callable[[ResultStore], list[Tool]],
        folder: Path,
        notebook: str,
        *,
        seals: Seals | None = None,
        session_id: str = "",
        **about: Any,
    ) -> Conversation:
        """Begin a session; its system prompt and tools are fixed from here on. `about` goes into its first record.

        `compacted_from`, `forked_from`: the session that it goes on from, and after how many of its messages.
        """
        results, voice = ResultStore(), voice_of(settings)
        session_id = session_id or new_session_id()
        store = JsonlStore(folder / FOLDER / f"{session_id}.jsonl", seals)
        session = Session(
            session_id,
            system=compose(settings.prompt, settings.system_append),
            tools=(*Toolset(tools(results)).params(), *settings.served),
            store=store,
            about={"notebook": notebook, "voice": voice, **about},
        )
        return cls(session, store, notebook, results=results, voice=voice)

    @classmethod
    def reopen(
        cls,
        found: Stored,
        settings: Settings,
        tools: Callable[[ResultStore], list[Tool]],
        folder: Path,
        notebook: str,
        *,
        seals: Seals | None = None,
    ) -> Conversation | None:
        """Go on in a session that is on disk; None where its prompt, tools or voice are not those of now.

        Calls that were cut off get results that say what is known of them; nothing of them is run.
        """
        results, session_id = ResultStore(), str(found.about.get("id") or "")
        system, params = (
            compose(settings.prompt, settings.system_append),
            (*Toolset(tools(results)).params(), *settings.served),
        )
        voice = voice_of(settings)
        if str(found.about.get("voice") or voice) != voice:
            return None
        if json.dumps([found.about.get("system"), found.about.get("tools")]) != json.dumps([system, params]):
            return None
        store = JsonlStore(folder / FOLDER / f"{session_id}.jsonl", seals, last=found.last)
        kept = GoingOn(store)
        session = Session(session_id, system=system, tools=params, store=kept)
        session.usage, session.cost = found.spent
        session.transcript.take_over(found.messages)
        kept.begin()
        session.transcript.answer(found.closing)
        beside = bool(found.about.get("beside"))
        return cls(session, store, notebook, results=results, began=dict(found.began), voice=voice, ways=Ways.of(found.about),
                   model=found.model, title=found.title, beside=beside, resumed=True)  # fmt: skip

    def moved(self, *, own: bool, kernel: str) -> None:
        """Note that it goes on in `kernel`; `own`: as the notebook's own conversation, also if it was a branch."""
        self.beside = self.beside and not own
        self.store.append({"type": "resumed", "moved": own, "kernel": kernel})

    def goes_on_in(self, session: Session) -> None:
        """Go on in a session that begins with a summary: what was told and read before must be told and read again."""
        self.session = session
        self.store = session.store if isinstance(session.store, JsonlStore) else self.store
        self.memory, self.told_mode, self.told_agents, self.began = NotebookMemory(), Mode.DEFAULT, (), {}
        self.told_project = None
        self.seen.cells.clear()
        self.seen.listing = None

    def about(self) -> dict[str, Any]:
        """Return what the first record says of a session in which this conversation goes on."""
        more: dict[str, Any] = {"title": self.title, "beside": self.beside, "ways": self.ways.to_json()}
        return {"notebook": self.notebook, "voice": self.voice, **{key: value for key, value in more.items() if value}}

    def entitle(self, title: str) -> None:
        """Give it a name."""
        self.title = title
        self.store.append({"type": "title", "title": title})

    def know_as(self, other: Conversation) -> None:
        """Take what the model knows of the notebook from a conversation that this one repeats whole."""
        self.memory, self.seen = copy.deepcopy(other.memory), copy.deepcopy(other.seen)
        self.told_mode, self.told_agents, self.new_name = other.told_mode, other.told_agents, other.new_name
        self.told_project, self.called = other.told_project, list(other.called)

    def finished(self, cell: str, first: int | None) -> None:
        """Note where the last run of `cell` began, None if that did not finish; a later kernel reads it from the file."""
        self.began.pop(cell, None)
        if first is not None:
            self.began[cell] = first
        self.store.append({"type": "cell", "cell": cell, "first": first})

    def rename(self, path: str) -> None:
        """Go on in the same notebook under the path that it has now."""
        if path != self.notebook:
            self.new_name, self.notebook = path, path

    async def opening(
        self, prompt: str, notebook: Notebook | None, mode: Mode, said: Sequence[str] = ()
    ) -> list[Block]:
        """Return the blocks of a new prompt: what changed in the notebook and in the mode, then the prompt itself.

        `said` is what the person said of the last run's refused calls.
        """
        news: list[str] = list(said)
        if notebook is not None and notebook.proposes_only:
            news.append(PROPOSES)
        if notebook is not None:
            try:
                news.append(await self._notebook_news(notebook))
            except NotebookError as error:
                news.append(f"The notebook can't be read now: {error}")
        if self.new_name:
            news.append(f"The notebook was renamed: it is {self.new_name} now.")
            self.new_name = ""
        if mode is not self.told_mode:
            news.append(f"The permission mode is now {mode}.")
            self.told_mode = mode
        told = "\n\n".join(text for text in news if text)
        context = [text_block(f"<context>\n{told}\n</context>")] if told else []
        return [*context, text_block(prompt)]

    def telling(self) -> Callable[[], None]:
        """Return what forgets again that anything was told from here on: a hook may hold the prompt back, with all of it."""
        memory, mode, name = copy.deepcopy(self.memory), self.told_mode, self.new_name
        agents, restart, project = self.told_agents, self.told_restart, self.told_project

        def untold() -> None:
            self.told_restart = restart
            self.memory, self.told_mode, self.new_name, self.told_agents = memory, mode, name, agents
            self.told_project = project

        return untold

    async def learn(self, notebook: Notebook | None, touched: Sequence[str]) -> None:
        """Take the cells that a run touched as known; what the person changed meanwhile is told next time."""
        if notebook is None:
            return
        try:
            there = {cell.id: cell for cell in await notebook.cells()}
            self.memory.learn([self._shown(there[cell_id]) for cell_id in touched if cell_id in there])
            self.memory.forget(cell_id for cell_id in touched if cell_id not in there)
        except NotebookError:
            _log.info("the page was gone when the run ended; the notebook is read anew next time")

    def _shown(self, cell: Cell) -> Cell:
        """Return a cell as the model may see it: masked before it is cut, for half a secret has no shape any more."""
        return replace(cell, source=self.session.mask(cell.source))

    async def _notebook_news(self, notebook: Notebook) -> str:
        there = await notebook.cells()
        self.seen.listing = list(there)
        cells = [self._shown(_veiled(cell, in_branch=self.beside)) for cell in there]
        own = notebook.own_cell
        with_outputs = [c for c in self.memory.unknown(cells, own) if _has_outputs(c)]
        newest = sorted(with_outputs, key=lambda c: c.number or 0)[
            -_OUTPUTS_READ:
        ]  # what failed is among what ran last
        read = [await notebook.read(c.id) for c in newest]
        failed = {c.id: error for c in read if (error := error_of(c))}
        return self.memory.news(
            notebook.path, cells, {c.id: _output_text(c, self.session.mask) for c in read}, own, failed
        )


def _veiled(cell: Cell, *, in_branch: bool) -> Cell:
    """Return a cell as news tell of it: no branch hears what was asked in another conversation, nor its parent of it."""
    head = cell.source.lstrip().partition("\n")[0].split()
    if cell.type != "code" or head[:1] not in (["%%agent"], ["%%ask"]):
        return cell
    beside = any(word.partition("=")[0] in _BESIDE for word in head)
    return replace(cell, source=_BRANCH) if beside or in_branch else cell


def _has_outputs(cell: Cell) -> bool:
    """Whether a cell's outputs say something new: those of earlier agent cells are the transcript itself."""
    return cell.type == "code" and cell.number is not None and not cell.source.lstrip().startswith(("%%agent", "%%ask"))


def _output_text(cell: Cell, mask: Mask) -> str:
    blocks = output_blocks(cell.outputs)
    text: str = mask("\n".join(b["text"] if b["type"] == "text" else "[image]" for b in blocks))
    return clip(text, _OUTPUT_CHARS)
