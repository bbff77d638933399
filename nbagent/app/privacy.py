"""What does not leave this kernel: the person's hidden variables and the secrets, and `%agent hide | schema-only | show`.

Settings of the person's and of a project may add patterns; only the person takes away, and only what they hid here. One for
each kernel. Must not know how anything is found (tools/vault.py, tools/veil.py). Read `Privacy`.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nbagent.config import Settings
from nbagent.core.errors import ConfigError
from nbagent.core.events import AgentReported, Event, InputDelta, ReplyEnded, TextDelta, ThinkingDelta
from nbagent.core.messages import Json, text_block
from nbagent.core.ports import Kernel, Notebook
from nbagent.core.session import Mask
from nbagent.core.tools import Tool
from nbagent.tools.guarded import guarded
from nbagent.tools.vault import Vault, has_placeholder, pattern_of
from nbagent.tools.veil import Veil
from nbagent.tools.veil_names import made_of
from nbagent.tools.veiled import Veiled

if TYPE_CHECKING:
    from nbagent.app.above import Here
    from nbagent.app.extension import Extension

PLACEHOLDERS = (
    "(From the runtime, not the person:) ⟦secret:…⟧ stands for a secret that is hidden from you. Write it exactly as you see it "
    "wherever the secret belongs (an edit, a cell, a command): the value is put back when that runs. Never make one up or "
    "change one, and don't try to see what is behind it."
)
_PIECES = (TextDelta, ThinkingDelta, InputDelta)
_PATTERN = re.compile(r"[\w*?\[\]!-]+(?:\.[^\s.]+)?\Z")
_VALUES = (int, float, complex, str, bytes, bool, type(None))
_DISPLAYED = ("_", "__", "___")


class Privacy:
    """What is hidden and which secrets are known in one kernel."""

    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self._patterns: tuple[re.Pattern[str], ...] = ()
        self.vault = Vault(extension.seals.seal, lambda: self._patterns)
        self.veiled = Veiled(self.veil, self.vault.learn_variables)
        self._own: dict[str, str] = {}
        self._shown: set[str] = set()
        self._settings: dict[str, tuple[str, ...]] = {}
        self._made: tuple[tuple[object, ...], Mapping[str, frozenset[str]]] = ((), {})

    def use(self, settings: Settings) -> None:
        """Take what settings hide, and the secrets of the environment; raises `ConfigError` for a pattern that is none."""
        made: list[re.Pattern[str]] = []
        for text in settings.secrets:
            try:
                made.append(pattern_of(text))
            except re.error as error:
                raise ConfigError(f"secrets: {text!r} is not a regular expression: {error}.") from None
        for text in (*settings.hide, *settings.schema_only):
            if not _PATTERN.match(text):
                raise ConfigError(_no_pattern(text))
        self._patterns = tuple(made)
        self._settings = {"hidden": settings.hide, "schema": settings.schema_only}
        self.vault.learn_environment(os.environ)
        self.vault.learn_variables(self._extension.kernel.namespace())
        for typed in self._extension.passwords.take():
            self.vault.learn(typed, "what was typed into getpass()")

    # ── what is hidden ───────────────────────────────────────────────────────────────────────────────────────────────

    def veil(self) -> Veil:
        """Return what is hidden now."""
        hidden = (*self._settings.get("hidden", ()), *(name for name, level in self._own.items() if level == "hidden"))
        schema = (*self._settings.get("schema", ()), *(name for name, level in self._own.items() if level == "schema"))
        plain = Veil(hidden, schema, frozenset(self._shown))
        if not plain:
            return plain
        names: dict[str, Any] = self._extension.shell.user_ns
        plain = dataclasses.replace(plain, made=self._made_of(plain, names))
        return dataclasses.replace(plain, also=_also(plain, self._extension.kernel.namespace(), names))

    def _made_of(self, veil: Veil, names: Mapping[str, Any]) -> Mapping[str, frozenset[str]]:
        ran: Sequence[str] = names.get("In") or ()
        key = (len(ran), veil.hidden, veil.schema, veil.shown)
        if self._made[0] != key:
            tables = {text.partition(".")[0] for text in (*veil.hidden, *veil.schema) if "." in text}
            made = made_of(
                [str(source) for source in ran],
                lambda name: bool(veil.own(name)) or name in tables,
                lambda name: type(names.get(name)) is ModuleType,
            )
            self._made = (key, made)
        return self._made[1]

    def hide(self, names: Sequence[str], level: str) -> None:
        """Hide variables, columns or patterns of them; raises `ConfigError` for a text that is none."""
        for name in names:
            if not _PATTERN.match(name):
                raise ConfigError(_no_pattern(name))
        for name in names:
            self._own[name] = level
            self._shown.discard(name)

    def show(self, name: str) -> str:
        """Show what was hidden; return what to say. What settings hide stays hidden."""
        by_settings = [p for patterns in self._settings.values() for p in patterns]
        fits = Veil(tuple(by_settings))
        if name in by_settings or fits.own(name):
            return f"{name} is hidden by a settings file (hide or schema_only): change it there. It stays hidden."
        if self._own.pop(name, "") or self.veil().of(name) or "." in name:
            self._shown.add(name)
            return f"{name} is shown to the model again."
        return f"{name} is not hidden."

    def listed(self) -> str:
        """Return what is hidden now, for the person."""
        veil, names = self.veil(), self._extension.kernel.namespace()
        lines = [f"{text}  hidden" for text in dict.fromkeys(veil.hidden)]
        lines += [f"{text}  schema only: names and types" for text in dict.fromkeys(veil.schema)]
        made = [
            f"{name} (made of {', '.join(sorted(veil.made[name]))})"
            for name in names
            if name in veil.made and veil.of(name)
        ]
        lines += [f"hidden with them: {', '.join(made)}"] if made else []
        return (
            "\n".join(lines)
            or "Nothing is hidden. %agent hide NAME hides a variable, %agent hide df.ssn a column of a table."
        )

    # ── the edge ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def plain(self, settings: Settings) -> Settings:
        """Return settings without secrets in what goes into the system prompt."""
        mask = self.vault.masked
        return dataclasses.replace(settings, system_append=mask(settings.system_append), prompt=mask(settings.prompt))

    def described(self, tool: Tool) -> Tool:
        """Return a tool without secrets in what a model is told of it."""
        description, schema = self.vault.mask(tool.description), self.vault.masked(tool.schema)
        if (description, schema) == (tool.description, tool.schema):
            return tool
        return dataclasses.replace(tool, description=description, schema=schema)

    def masking(self) -> Mask:
        """Return what masks all that one session sends and keeps; it tells the model once what a placeholder is."""
        told = False

        def mask(value: Any) -> Any:
            nonlocal told
            masked = self.vault.masked(value)
            if told or not isinstance(masked, dict) or "role" not in masked or not has_placeholder(masked):
                return masked
            told = True
            blocks: list[Json] = list(masked["content"])
            first = next((n for n, block in enumerate(blocks) if block.get("type") != "tool_result"), len(blocks))
            return {**masked, "content": [*blocks[:first], text_block(PLACEHOLDERS), *blocks[first:]]}

        return mask

    def tool(self, tool: Tool) -> Tool:
        """Return a tool behind the edge."""
        return guarded(tool, self.vault, self._hints)

    def _hints(self, code: Any) -> Sequence[str]:
        veil = self.veil()
        return veil.hints(code(), self._extension.kernel.namespace()) if veil else ()

    def kernel(self, kernel: Kernel) -> Kernel:
        """Return a kernel behind what is hidden."""
        return self.veiled.kernel(kernel)

    def notebook(self, notebook: Notebook | None) -> Notebook | None:
        """Return a notebook behind what is hidden."""
        return None if notebook is None else self.veiled.notebook(notebook, self._extension.kernel)

    def meet(self, sources: Iterable[str]) -> None:
        """Learn the secrets in texts that tools may show a part of."""
        for source in sources:
            self.vault.mask(source)

    def where(self, here: Here | None) -> Here | None:
        """Return the cells around a run as they may be kept on disk and compared."""
        if here is None:
            return None
        mask = self.vault.mask
        return dataclasses.replace(here, above=tuple(map(mask, here.above)), texts=tuple(map(mask, here.texts)))

    async def events(self, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        """Pass events on without secrets: what is shown, kept and saved is made of them (a middleware of `drive`)."""
        async with aclosing(events):
            async for event in events:
                yield self.event(event)

    def event(self, event: Event) -> Event:
        """Return an event without secrets."""
        if isinstance(event, _PIECES):
            return event
        if isinstance(event, AgentReported):
            inner = self.event(event.event)
            return event if inner is event.event else dataclasses.replace(event, event=inner)
        if isinstance(event, ReplyEnded):
            return dataclasses.replace(event, content=self.vault.masked(event.content))
        fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
        changed = {n: masked for n, value in fields.items() if (masked := self.vault.masked(value)) != value}
        return dataclasses.replace(event, **changed) if changed else event


def _also(veil: Veil, namespace: Mapping[str, Any], every: Mapping[str, Any]) -> Mapping[str, frozenset[str]]:
    """Return other names of the objects that hidden variables hold, such as `_` after one was shown."""
    hidden = {id(v): name for name, v in namespace.items() if veil.of(name, v) and type(v) not in _VALUES}
    if not hidden:
        return {}
    names = {**{name: every[name] for name in _DISPLAYED if name in every}, **namespace}
    return {
        name: frozenset({hidden[id(value)]})
        for name, value in names.items()
        if id(value) in hidden and hidden[id(value)] != name and name not in veil.shown
    }


def _no_pattern(text: str) -> str:
    return f"{text!r} names no variable. Write its name, with * for any part of it, or table.column: patients, raw_*, df.ssn."


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def hide(extension: Extension, rest: str) -> str:
    """Carry out `%agent hide [NAME …]`."""
    privacy = extension.privacy
    privacy.use(extension.settings())
    if not rest.split():
        return privacy.listed()
    privacy.hide(rest.split(), "hidden")
    return (
        f"Hidden from the model: {', '.join(rest.split())}. Code that names it shows the model nothing, and asks you first. "
        "What it has seen already it has seen. %agent show NAME undoes this."
    )


def schema_only(extension: Extension, rest: str) -> str:
    """Carry out `%agent schema-only [NAME …]`."""
    privacy = extension.privacy
    privacy.use(extension.settings())
    if not rest.split():
        return privacy.listed()
    privacy.hide(rest.split(), "schema")
    return f"Of {', '.join(rest.split())} the model is told names, types and sizes, never values. %agent show NAME undoes this."


def show(extension: Extension, rest: str) -> str:
    """Carry out `%agent show NAME …`."""
    privacy = extension.privacy
    privacy.use(extension.settings())
    if not rest.split():
        return privacy.listed()
    if extension.underway.runs:
        raise ConfigError("Wait until the run has ended: what is hidden is shown again between runs only.")
    return "\n".join(privacy.show(name) for name in rest.split())
