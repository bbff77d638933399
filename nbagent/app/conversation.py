"""What lasts from one `%%agent` cell to the next: the session, what it knows of the notebook, kept rules, full results."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbagent.config import Settings
from nbagent.core.context import NotebookMemory
from nbagent.core.errors import NotebookError
from nbagent.core.messages import Block, text_block
from nbagent.core.policy import Mode, Rule
from nbagent.core.ports import Cell, Notebook
from nbagent.core.session import Session
from nbagent.core.tools import Tool, Toolset
from nbagent.extend.sessions import FOLDER, JsonlStore, new_session_id
from nbagent.prompt import compose
from nbagent.tools.results import ResultStore, clip, output_blocks

_log = logging.getLogger("nbagent")

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
    told_mode: Mode = Mode.DEFAULT

    @classmethod
    def begin(
        cls, settings: Settings, tools: Callable[[ResultStore], list[Tool]], folder: Path, notebook: str
    ) -> Conversation:
        """Begin a session; its system prompt and tools are fixed from here on."""
        results = ResultStore()
        session_id = new_session_id()
        store = JsonlStore(folder / FOLDER / f"{session_id}.jsonl")
        session = Session(
            session_id,
            system=compose(settings.prompt, settings.system_append),
            tools=Toolset(tools(results)).params(),
            store=store,
            about={"notebook": notebook},
        )
        return cls(session, store, notebook, results=results)

    async def opening(self, prompt: str, notebook: Notebook | None, mode: Mode) -> list[Block]:
        """Return the blocks of a new prompt: what changed in the notebook and in the mode, then the prompt itself."""
        news: list[str] = []
        if notebook is not None:
            try:
                news.append(await self._notebook_news(notebook))
            except NotebookError as error:
                news.append(f"The notebook can't be read now: {error}")
        if mode is not self.told_mode:
            news.append(f"The permission mode is now {mode}.")
            self.told_mode = mode
        told = "\n\n".join(text for text in news if text)
        context = [text_block(f"<context>\n{told}\n</context>")] if told else []
        return [*context, text_block(prompt)]

    async def learn(self, notebook: Notebook | None, touched: Sequence[str]) -> None:
        """Take the cells that a run touched as known; what the person changed meanwhile is told next time."""
        if notebook is None:
            return
        try:
            self.memory.learn([cell for cell in await notebook.cells() if cell.id in touched])
        except NotebookError:
            _log.info("the page was gone when the run ended; the notebook is read anew next time")

    async def _notebook_news(self, notebook: Notebook) -> str:
        cells = await notebook.cells()
        own = notebook.own_cell
        with_outputs = [c for c in self.memory.unknown(cells, own) if _has_outputs(c)]
        outputs = {c.id: _output_text(await notebook.read(c.id)) for c in with_outputs[-_OUTPUTS_READ:]}
        return self.memory.news(notebook.path, cells, outputs, own)


def _has_outputs(cell: Cell) -> bool:
    """Whether a cell's outputs say something new: those of earlier agent cells are the transcript itself."""
    return cell.type == "code" and cell.number is not None and not cell.source.lstrip().startswith("%%agent")


def _output_text(cell: Cell) -> str:
    blocks = output_blocks(cell.outputs)
    return clip("\n".join(b["text"] if b["type"] == "text" else "[image]" for b in blocks), _OUTPUT_CHARS)
