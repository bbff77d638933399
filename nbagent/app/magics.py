"""`%%agent` and `%agent`. A thin boundary: parse, call, and hide tracebacks; one of the three places that catch everything."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from nbagent.app.answer import Answer, Refused, RunFailed
from nbagent.app.handle import Handle
from nbagent.app.options import describe
from nbagent.app.reports import COMMANDS, Checked, Linked, command
from nbagent.core.errors import ConfigError


@magics_class
class AgentMagics(Magics):
    """The magics of one shell's extension."""

    def __init__(self, shell: Any, extension: Any) -> None:
        super().__init__(shell)
        self._extension = extension

    @no_var_expand
    @line_cell_magic
    def agent(self, line: str, cell: str | None = "") -> Any:
        """Run an agent in this notebook.

        As a cell:  %%agent [options] and the task below it. The agent sees your variables and cells, asks before it
        changes anything, and leaves ordinary cells behind. The cell's value is an Answer (text, stop_reason, usage,
        cost, cells, session_id).

        In the task:  @df, @df.price, @cell:7, @sales.csv, @last_error and @plot say which one you mean; Tab completes them,
        and the agent gets what they stand for beside your words, which go out as you wrote them.

        Objects of a class that nbagent does not know: @nbagent.describer("mylib.Graph") above a function says what the
        agent is told of them.

        As a line:  {commands}
        """
        return self._run(line, cell)

    def _run(self, line: str, cell: str | None) -> Any:
        if not self._extension.persons.speaks():
            raise Refused("An agent's code can't use %agent or %%agent: they are for people.")
        if os.getpid() != self._extension.pid:
            raise Refused("This is a forked copy of the kernel; an agent runs in the kernel itself only.")
        if cell == "":  # a line magic that nothing awaits; IPython passes no empty body
            return self._line(line)
        return self._guarded(self._awaited(line) if cell is None else self._cell(line, cell))

    @no_var_expand
    @line_cell_magic
    def ask(self, line: str, cell: str | None = "") -> Any:
        """Ask about this notebook. The agent looks and answers; nothing is changed or run, and nobody is asked.

        As a cell:  %%ask [options] and the question below it.
        As a line:  %ask [options] question

        @df, @cell:7, @sales.csv, @last_error and @plot say which one you mean; Tab completes them.
        It is part of the notebook's conversation: the next %%agent cell knows of it. %agent explain explains a cell, an
        output, an error or a name; %agent review looks at the method.
        """
        return self._run(f"--ask {line}" if cell else f"ask {line}", cell)

    async def _cell(self, line: str, cell: str) -> Answer | Handle:
        from nbagent.app.cell import agent_cell

        return await agent_cell(self._extension, line, cell)

    async def _awaited(self, line: str) -> Any:
        said = command(self._extension, line)
        if isinstance(said, Checked):
            said = await said.whole()
        _say(said if isinstance(said, str) else await said)
        self._listen()

    async def _guarded(self, work: Awaitable[Any]) -> Any:
        from nbagent.app.cell import internal_error

        try:
            return await work
        except ConfigError as error:
            refused = Refused(str(error))
        except RunFailed as failed:
            refused = failed
        except asyncio.CancelledError:  # interrupted before the run began or after it ended: the cell just ends
            refused = Refused("Stopped by you.")
        except Exception as error:  # a bug of ours must not show a traceback to an analyst
            refused = internal_error(self._extension, error)
        raise refused from None

    def _line(self, line: str) -> None:
        try:
            said = command(self._extension, line)
        except ConfigError as error:
            raise Refused(str(error)) from None
        if not isinstance(said, str):
            said.close()
            raise Refused(
                f"%agent {line.split(maxsplit=1)[0]} needs a cell of its own: it asks the page, and has to wait for it."
            )
        _say(said)
        self._listen()

    def _listen(self) -> None:
        """Have the page listen to the buttons of finished runs again: after a restart its links would stay dead."""
        from nbagent.app.undo_commands import show_desk
        from nbagent.jupyter.front_end import running_cell

        if running_cell(self._extension.shell) is not None:  # a page asked for this cell, and no job
            show_desk(self._extension)


def _say(text: str) -> None:
    if isinstance(text, Linked):
        from IPython.display import display

        display({"text/plain": str(text), "text/markdown": text.markdown}, raw=True)
    elif text:
        print(text)  # noqa: T201  (the answer of a line magic)


AgentMagics.ask.__doc__ = f"{AgentMagics.ask.__doc__}\n{describe()}"
_DOC = AgentMagics.agent.__doc__ or ""
AgentMagics.agent.__doc__ = f"{_DOC.replace('{commands}', '%agent ' + ' | '.join(COMMANDS))}\n{describe()}"
