"""Puts secrets back into a call before it runs, and takes them out of all that it gives: the edge that no tool can forget.

The model writes placeholders. Who decides about a call sees the values (a rule must know what really runs); people, records
and hooks see the placeholders. What goes to a server or into notes is refused instead. Read `guarded`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nbagent.core.errors import CutOff, Interrupted, ToolError
from nbagent.core.messages import Json
from nbagent.core.ports import Preview, Question
from nbagent.core.rules import Action, Rule, Spoken, grammar_of
from nbagent.core.tools import Call, Kind, Result, Tool
from nbagent.tools import team
from nbagent.tools.vault import Secret, Vault

_LEAVES = frozenset({Kind.SHELL, Kind.RISKY_CODE, Kind.MCP})
_KEEPS = frozenset({Kind.EDIT_CELL, Kind.RUN_CELL, Kind.WRITE_FILE})
_CODE = frozenset({Kind.SCRATCH, Kind.RUN_CELL, Kind.RUN_ALL})
_STAYS = frozenset({"task", "ask_user", "enter_plan", "exit_plan", "todo_write", *team.NAMES})
"""Tools to which placeholders go as they are: their texts are for a model or for a person, and change nothing."""
_OUT = {
    "remember": "the notes",
    "skill": "a skill",
    "read_mcp_resource": "an MCP server",
    "list_mcp_resources": "an MCP server",
}
"""Tools that get no secret, and what they would give it to; so is each tool of an MCP server."""

Touched = Callable[[Callable[[], str]], Sequence[str]]
"""Returns how a text that runs reaches what the person has hidden: reads `patients`, which you have hidden."""


def nothing_touched(_: Callable[[], str]) -> Sequence[str]:
    """Say that nothing is hidden."""
    return ()


@dataclass(frozen=True, slots=True)
class GuardedTool(Tool):
    """A tool behind the edge. Its input is checked for placeholders that are none before anybody is asked."""

    inner: Tool | None = None
    check: Callable[[Json], object] = dict

    def validate(self, given: Json) -> Json:
        """Return `given` with defaults; raise `ToolError` for wrong arguments and for a placeholder that is none."""
        checked = Tool.validate(self, given) if self.inner is None else self.inner.validate(given)
        self.check(checked)
        return checked

    @property
    def signature(self) -> str:
        """The arguments, as the tool itself names them."""
        return self.name if self.inner is None else self.inner.signature

    async def run(self, call: Call, given: Json) -> Result:
        """Run the function; a tool of a server's may have arguments of any name, so they are passed as one."""
        return Result.of(await self.function(call, given=given))


def guarded(tool: Tool, vault: Vault, touched: Touched = nothing_touched) -> Tool:
    """Return `tool` behind the edge; wrap it last, around all that looks at its input or its result."""
    return _Edge(tool, vault, touched).tool()


class _Edge:
    def __init__(self, tool: Tool, vault: Vault, touched: Touched) -> None:
        self._inner, self._vault, self._touched = tool, vault, touched

    def tool(self) -> Tool:
        """Return the tool behind the edge."""
        inner = self._inner
        fields = {field.name: getattr(inner, field.name) for field in dataclasses.fields(Tool)}
        changed: Json = {
            "kind": self._kind,
            "subject": lambda given: inner.subject(self._open(given)),
            "title": lambda given: self._vault.mask(inner.title(given)),
            "preview": self._preview,
            "function": self._function,
            "grammar": _Opened(inner, self._open),
            "check": self._check,
            "inner": inner,
        }
        if (target := inner.target) is not None:
            changed["target"] = lambda given: target(self._open(given))
        return GuardedTool(**{**fields, **changed})

    @property
    def _keeps_out(self) -> bool:
        return bool(self._out)

    @property
    def _out(self) -> str:
        """To what outside the kernel the tool would give a secret, "" to nothing."""
        name = self._inner.name
        return f"an MCP server ({name.split('__')[1]})" if name.startswith("mcp__") else _OUT.get(name, "")

    def _check(self, given: Json) -> None:
        """Raise `ToolError` where the call can't be made with the placeholders in it."""
        if self._inner.name in _STAYS:
            return
        if (used := self._vault.used(given)) and self._keeps_out:
            raise ToolError(
                f"{used[0].placeholder} is a secret of the person's and is not given to {self._out}. Leave it out, or do it "
                "with code in the notebook."
            )

    def _open(self, given: Json) -> Json:
        return given if self._inner.name in _STAYS or self._keeps_out else self._vault.revealed(given)

    def _used(self, given: Json) -> list[Secret]:
        return [] if self._inner.name in _STAYS or self._keeps_out else self._vault.used(given)

    def _kind(self, given: Json) -> Kind:
        """Ask where a secret would leave, could be read as code, or comes to where it was not; and where hidden variables are read."""
        opened, used = self._open(given), self._used(given)
        kind = self._inner.kind(opened)
        if used and (kind in _LEAVES or any(not secret.plain for secret in used)):
            return Kind.PROTECTED
        if used and kind in _KEEPS and not self._was_there(opened, used):
            return Kind.PUTS_BACK
        return Kind.RISKY_CODE if kind in _CODE and self._touched(lambda: self._runs(opened)) else kind

    def _was_there(self, opened: Json, used: Sequence[Secret]) -> bool:
        """Whether what is written over holds these secrets already: a text that the model read may have named others."""
        try:
            old = self._inner.preview(opened).old
        except ToolError:  # the call itself says what is wrong
            return False
        return all(secret.value in old for secret in used)

    def _runs(self, opened: Json) -> str:
        """All that the call would run, as one text."""
        return f"{self._inner.subject(opened)}\n{self._inner.preview(opened).body}"

    def _preview(self, given: Json) -> Preview:
        mask = self._vault.mask
        opened = self._open(given)
        shown = self._inner.preview(opened)
        hints = [_hint(secret) for secret in self._used(given)]
        if self._inner.exact:
            hints = [*self._touched(lambda: f"{self._inner.subject(opened)}\n{shown.body}"), *hints]
        effects = (*(mask(text) for text in (*hints, *shown.effects)),)
        return dataclasses.replace(shown, body=mask(shown.body), old=mask(shown.old), effects=effects)

    async def _function(self, call: Call, *, given: Json) -> Result:
        vault, mask = self._vault, self._vault.mask
        self._check(given)

        async def ask(question: Question) -> str:
            choices = tuple(map(mask, question.choices))
            return await call.ask(dataclasses.replace(question, text=mask(question.text), choices=choices))

        outward = dataclasses.replace(
            call, progress=lambda text: call.progress(mask(text)), soon=lambda text: call.soon(mask(text)), ask=ask
        )
        try:
            result = await self._inner.run(outward, self._open(given))
        except ToolError as error:
            raise type(error)(mask(str(error))) from error
        except (Interrupted, CutOff) as stopped:
            raise type(stopped)(mask(stopped.output)) from stopped
        return dataclasses.replace(
            result, content=tuple(vault.masked(block) for block in result.content), summary=mask(result.summary)
        )


def _hint(secret: Secret) -> str:
    """Say what is put back; more of it where the value could be more than a value."""
    odd = "" if secret.plain else "; it has characters that could be read as code: look where it comes from"
    return f"puts back a secret: {secret.described}{odd}"


class _Opened:
    """The grammar of a tool, which decides about the values and not about their placeholders."""

    def __init__(self, inner: Tool, open_: Callable[[Json], Json]) -> None:
        self._inner, self._open, self._grammar = inner, open_, grammar_of(inner)

    def says(self, action: Action, rules: Sequence[Rule], tool: Tool, given: Json) -> Spoken | None:
        """Return what rules say of the call as it would run."""
        del tool
        return self._grammar.says(action, rules, self._inner, self._open(given))

    def opens(self, rule: Rule, tool: Tool, given: Json) -> bool:
        """Whether an allow rule names this call."""
        del tool
        return self._grammar.opens(rule, self._inner, self._open(given))

    def offers(self, tool: Tool, given: Json) -> tuple[str, ...]:
        """Return rules that could be kept."""
        del tool
        return self._grammar.offers(self._inner, self._open(given))

    def notes(self, rules: Sequence[Rule], tool: Tool, given: Json) -> tuple[str, ...]:
        """Return a line for each part of the call."""
        del tool
        return self._grammar.notes(rules, self._inner, self._open(given))
