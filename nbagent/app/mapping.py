"""`nbagent.map`: the same task for many inputs, one run each, in processes and kernels of their own.

What a person gives is checked here, whole, before anything is begun. Where a loop runs (a cell of a notebook) the map is
awaited; elsewhere (a script) the call does it and returns the table. Must not know how jobs are carried out. Read `map`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.app.consent import consented_here
from nbagent.app.executors import executor_of
from nbagent.app.jobs import Job
from nbagent.app.mapfields import NAME, Fields, fields_of
from nbagent.app.mapinputs import Prompt, asked, items_of
from nbagent.app.maprun import MapRun, MapStopped, Order
from nbagent.app.mapscreen import Screen, screen_of
from nbagent.app.mapstore import Again, new_folder
from nbagent.app.maptable import Row, Table
from nbagent.app.model import fallback_of, model_of
from nbagent.app.ways import tools_named
from nbagent.config import NAMES, Settings, load
from nbagent.core.errors import ConfigError
from nbagent.core.limits import Limits
from nbagent.core.messages import Json
from nbagent.headless.admission import Rates
from nbagent.view.text import escape

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

__all__ = ["MapStopped", "Row", "Table", "map"]

NO_AWAIT = "Nothing has run yet: a map is awaited in a cell. Write: table = await nbagent.map(…)"
_BY_AGENT = "An agent's own code can't start other agents. Run that cell yourself, afterwards."
_TRAVELS = frozenset(NAMES) - {"endpoints", "prompt"}
_ADDED = ("allow", "ask", "deny", "hide", "schema_only", "secrets")


def map(  # noqa: A001  (what everybody calls it; it is read as nbagent.map)
    prompt: Prompt,
    inputs: Any,
    *,
    tools: Sequence[str] | str | None = None,
    model: str = "",
    mode: str = "",
    allow: Sequence[str] = (),
    schema: Any = None,
    executor: Any = None,
    workers: int | None = None,
    budget: float | None = None,
    budget_tokens: int | None = None,
    max_turns: int | None = None,
    timeout: float | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    resume: str | os.PathLike[str] | None = None,
    again: Again = False,
    in_place: bool = False,
    progress: bool = True,
    host: str = "127.0.0.1",
) -> Table:
    """Run the agent once for each input, side by side, and return one row an input, in their order.

    `table = await nbagent.map("Which columns does {item} have?", Path("data").glob("*.csv"))` in a cell; in a script the
    same without `await`. Each run has a process and a kernel of its own; nobody is asked: the mode and the rules decide.

    Args:
        prompt: The task. `{item}` stands for the input, `{name}` for a field of it: of a path `path`, `name`, `stem`,
            `folder`; of a dict or a row its keys; of a tuple `0`, `1` … Other braces stay as they are, `{{item}}` means
            the characters `{item}`. Or a function of the input that returns the prompt.
        inputs: Paths (of files, folders, notebooks), texts, dicts, tuples, or a data frame (its rows). Values are put into
            the run's kernel as `item` and by name. Data does not travel: of a large data set give the path.
        tools: Only these tools, by name (`*` may stand in one), or "package.module:name" for one of your own.
        model: Whose answers; the one of your settings if not given.
        mode: What is allowed without asking: read-only, accept-edits, bypass … What would be asked is denied.
        allow: Rules that allow more, e.g. ["run_python"].
        schema: Fields that each answer must have, as columns: {"total": float, "currency": ["EUR", "USD"]}, a pydantic
            model, or a JSON schema.
        executor: Any `concurrent.futures.Executor`, a `dask.distributed.Client`, a view of ipyparallel's. Without one:
            processes of this machine, `workers` side by side.
        budget: US dollars for all inputs together, with what earlier runs of the same map spent. `budget_tokens`: tokens.
        max_turns: Turns of each run at most. `timeout`: seconds of each run.
        requests_per_minute: How often the model is asked at most, by all together. `tokens_per_minute` likewise.
        resume: The folder in which all is kept. What is finished there is not run again, what was cut off goes on.
        again: True runs all anew, "failed" those that failed, "changed" those whose files have changed since.
        in_place: Work on the notebooks themselves. Else each run works on a copy, which the table names.
        progress: Show how far it is.
        host: Where workers reach this process: this machine's address, if they are on other machines.

    Raises:
        ConfigError: What has to be changed first, in a sentence.
        MapStopped: It was stopped; `.table` has what was done.
    """
    if not isinstance(prompt, str) and not callable(prompt):
        raise ConfigError(f"prompt = {prompt!r} is no text, and no function of an input that returns one.")
    extension = _extension()
    settings, granted = _settings(extension, model=model, mode=mode, allow=allow, max_turns=max_turns, timeout=timeout)
    fields, folder = fields_of(schema), extension.folder if extension is not None else Path.cwd()
    names = tools_named(tools) if isinstance(tools, str) else tuple(tools or ())
    order = Order(
        asked=tuple(asked(prompt, items_of(inputs, folder))),
        job=Job(id="", prompt="", folder=str(folder), granted=granted,
                tools=(*names, NAME) if names and fields is not None else names),
        about=_about(prompt, settings, names, fields, mode=str(settings.mode), in_place=in_place),
        folder=new_folder(folder) if resume is None else folder / _named(resume),
        named=resume is not None,
        again=_again(again, resume),
        fields=fields,
        limits=_limits(budget, budget_tokens),
        rates=Rates(_count("requests_per_minute", requests_per_minute), _count("tokens_per_minute", tokens_per_minute)),
        executor=executor_of(executor),
        workers=_count("workers", workers),
        in_place=in_place,
        host=host,
    )  # fmt: skip
    if not order.asked:
        return Table(())
    begin = _Begin(
        order, settings, screen_of(extension.shell if extension is not None else None, shown=progress), extension
    )
    return Promised(begin) if _loop_runs() else asyncio.run(begin.run())


@dataclass(frozen=True, slots=True)
class _Begin:
    """A map that was checked and has not begun; `settings` are those of its runs."""

    order: Order
    settings: Settings
    screen: Screen
    extension: Extension | None

    async def run(self) -> Table:
        """Run it: what only the notebook's own text allows is asked about first."""
        order = self.order
        if self.extension is not None:
            settings = await consented_here(self.extension, self.settings)
            if settings is not self.settings:
                granted = _beyond(self.extension.outside(), settings)
                about = {**order.about, "mode": str(settings.mode)}
                order = replace(order, job=replace(order.job, granted=granted), about=about)
        return await MapRun(order, self.screen.show).run()


class Promised(Table):
    """The table of a map that has not run: awaiting it runs the map and gives the table. Everything else says so."""

    def __init__(self, begin: _Begin) -> None:
        super().__init__(())
        self._begin = begin

    @property
    def rows(self) -> tuple[Row, ...]:
        """Raises `ConfigError`: there are none before it was awaited."""
        raise ConfigError(NO_AWAIT)

    def __await__(self) -> Generator[Any, None, Table]:
        return self._begin.run().__await__()

    def __repr__(self) -> str:
        return NO_AWAIT

    def _repr_html_(self) -> str:
        return f"<p>{escape(NO_AWAIT)}</p>"


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# ── whose word it is ─────────────────────────────────────────────────────────────────────────────────────────────────


def _extension() -> Extension | None:
    """Return nbagent in this shell, None in a plain script; raises `ConfigError` where it is not loaded, or an agent asks."""
    from IPython.core.getipython import get_ipython

    from nbagent.app.extension import current

    if (shell := get_ipython()) is None:
        return None
    extension = current(shell)
    if extension.agents_code:
        raise ConfigError(_BY_AGENT)
    return extension


def _settings(
    extension: Extension | None,
    *,
    model: str,
    mode: str,
    allow: Sequence[str],
    max_turns: int | None,
    timeout: float | None,
) -> tuple[Settings, Json]:
    """Return the settings of each run, and what of them a worker does not know by itself; raises `ConfigError`."""
    if isinstance(allow, str):
        allow = [allow]
    given = {"model": model or None, "mode": mode or None, "allow": list(allow) or None, "max_turns": max_turns,
             "timeout": timeout}  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    outside = load(Path.cwd(), os.environ) if extension is None else extension.outside()
    settings = load(Path.cwd(), os.environ, options) if extension is None else extension.settings(options)
    settings.limits()
    settings.policy()
    model_of(settings)
    fallback_of(settings)
    return settings, _beyond(outside, settings)


def _beyond(outside: Settings, settings: Settings) -> Json:
    """Return the settings that were made inside: in the notebook, or in the call."""
    found: Json = {}
    for name in sorted(_TRAVELS):
        value, known = getattr(settings, name), getattr(outside, name)
        if name in _ADDED:
            value = [one for one in value if one not in known]
        if value != known and value not in (None, "", [], ()):
            found[name] = (
                list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
            )
    return {name: str(value) if name == "mode" else value for name, value in found.items()}


# ── what was asked ───────────────────────────────────────────────────────────────────────────────────────────────────


def _about(prompt: Prompt, settings: Settings, tools: Sequence[str], fields: Fields | None, **options: Any) -> Json:
    """Return what a map must have in common with the one that it goes on with."""
    mode = options.pop("mode")
    return {
        "prompt": prompt if isinstance(prompt, str) else f"function {getattr(prompt, '__name__', '')}",
        "model": settings.model,
        "tools": list(tools),
        "schema": None if fields is None else fields.schema,
        "mode": mode,
        "options": {"allow": list(settings.allow), **options},
    }


def _again(again: Again, resume: object) -> Again:
    if again not in (True, False, "failed", "changed"):
        raise ConfigError(f"again = {again!r} is not True, 'failed' or 'changed'.")
    if again and resume is None:
        raise ConfigError(f"again = {again!r} needs resume=, the folder of the map that is to run again.")
    return again


def _named(resume: str | os.PathLike[str]) -> str:
    """Return the folder's name as text; raises `ConfigError` for what no folder can be called."""
    named = os.fspath(resume)
    if "\0" in named:
        raise ConfigError(f"resume = {named!r} is no name of a folder.")
    return named


def _limits(budget: float | None, tokens: int | None) -> Limits:
    given: dict[str, Any] = {"budget": budget, "budget_tokens": tokens}
    for name, value in given.items():
        if value is not None and (not isinstance(value, int | float) or not value > 0):
            raise ConfigError(f"{name} = {value!r} must be a number above 0.")
    return Limits(usd=budget, tokens=tokens)


def _count(name: str, value: int | None) -> int | None:
    if value is not None and (value != int(value) or value < 1):
        raise ConfigError(f"{name} = {value!r} must be a whole number above 0.")
    return value
