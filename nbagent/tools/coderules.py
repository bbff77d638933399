"""Rules for tools that run code or change cells: one exact text by their own names, the open notebook by Claude Code's.

`Edit(x)` and `Read(x)` speak of the notebook as a file and never allow what runs. A rule that denies or asks about shell
commands speaks of those in the code too (`!rm x`, `%%bash`). Must not know what code does (signs.py, effects.py). Read
`CodeRules`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from nbagent.core.messages import Json
from nbagent.core.rules import Action, Plain, Rule, Spoken
from nbagent.core.rules_names import is_alias
from nbagent.core.tools import Tool
from nbagent.tools.commandrules import CommandRules
from nbagent.tools.pathrules import Spot, fits_path

_LINE = re.compile(r"^[ \t]*(?:[\w, \t]+=[ \t]*)?(?:!!?|%(?:sx|system|sc)\b)[ \t]*(.+(?:\\\n.*)*)", re.MULTILINE)
_CELL = re.compile(r"\A\s*%%(?:bash|sh|script|system|sx|!)\b[^\n]*\n(.*)\Z", re.DOTALL)


def shell_commands(code: str) -> Iterator[str]:
    """Yield what code gives to a shell by IPython's own signs."""
    if found := _CELL.match(code):
        yield found[1]
        return
    yield from (found[1] for found in _LINE.finditer(code))


class CodeRules(Plain):
    """The grammar of tools whose subject is code; `notebook` returns the path of the notebook that they change."""

    def __init__(self, root: Path, notebook: Callable[[], str] | None = None) -> None:
        self._root, self._notebook = root, notebook
        self._commands = CommandRules(root)

    def says(self, action: Action, rules: Sequence[Rule], tool: Tool, given: Json) -> Spoken | None:
        """Return the first rule of this action that fits; one about a shell command in the code only denies or asks."""
        for rule in rules:
            if rule.action != action or not rule.speaks_of(tool.name):
                continue
            if self._fits_notebook(rule, given) if is_alias(rule.tool, tool.name) else self.fits(rule, tool, given):
                return Spoken((rule,))
        return None if action == "allow" else self._of_commands(action, rules, tool, given)

    def _of_commands(self, action: Action, rules: Sequence[Rule], tool: Tool, given: Json) -> Spoken | None:
        if not any(rule.action != "allow" and rule.speaks_of("shell") for rule in rules):
            return None
        for command in shell_commands(tool.subject(given)):
            alone = replace(tool, name="shell", subject=lambda _, text=command: text)
            if spoken := self._commands.says(action, rules, alone, {}):
                return replace(spoken, about=spoken.about or f"!{command.strip()[:80]}")
        return None

    def _fits_notebook(self, rule: Rule, given: Json) -> bool:
        if rule.action == "allow" and given.get("run") and given.get("cell_type") != "markdown":
            return False
        path = self._notebook() if self._notebook is not None else ""
        if rule.pattern is None:
            return True
        return bool(path) and fits_path(rule, Spot.of(self._root, path), self._root)


def with_code_rules(tools: Sequence[Tool], root: Path, notebook: Callable[[], str] | None = None) -> list[Tool]:
    """Return `tools` with this grammar: those that run code, and those that Claude Code's Edit and Read speak of."""
    rules = CodeRules(root, notebook)
    about = {"read_notebook", "read_cell"}
    return [
        replace(tool, grammar=rules) if tool.grammar is None and (tool.exact or tool.name in about) else tool
        for tool in tools
    ]
