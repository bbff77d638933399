"""`%agent rules`: the rules in force, and for any call which of them decides and why; the folder's tools under these rules.

`%agent rules shell "rm -rf x"` decides about a call that nobody makes; nothing runs. Read `report`.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.policy import table_text
from nbagent.core.rules import Rule
from nbagent.core.rules_explain import explain
from nbagent.core.rules_names import our_tools
from nbagent.core.tools import Tool
from nbagent.tools import shell, workspace
from nbagent.tools.coderules import with_code_rules
from nbagent.tools.data.sqlfiles import DataFiles
from nbagent.tools.pathrules import reads_denied

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.core.ports import Notebook

ORDER = "Order: hooks, deny rules, ask rules, mode, allow rules, then you. Where nobody is there, ask means deny."


def folder_tools(extension: Extension, notebook: Notebook | None) -> list[Tool]:
    """Return the file tools and the shell, with the folders that settings add and without what rules hide from searches."""
    settings = extension.settings()
    denied = reads_denied(settings.policy().rules, extension.folder)
    files = workspace.tools(extension.folder, notebook, also=settings.files.directories, denied=denied)
    return [*files, *shell.tools(extension.folder)]


def data_files(extension: Extension) -> DataFiles:
    """Return the files that a query may read: those that the file tools read without asking."""
    settings = extension.settings()
    denied = reads_denied(settings.policy().rules, extension.folder)
    return DataFiles(extension.folder, settings.files.directories, denied)


def ruled(extension: Extension, notebook: Notebook | None, tools: list[Tool]) -> list[Tool]:
    """Return tools that run code or change cells with the grammar of their rules."""
    return with_code_rules(tools, extension.folder, lambda: notebook.path if notebook is not None else "")


def report(extension: Extension, rest: str, tools: Mapping[str, Tool]) -> str:
    """Return the rules in force or, with a tool and its arguments in `rest`, what happens to such a call.

    Raises `ConfigError` for a tool that there is not, or arguments that do not fit it.
    """
    rules = _rules(extension)
    if not rest:
        return _all(extension, rules)
    tool, words = _called(rest, tools)
    try:
        given = tool.validate(_given(tool, words))
        settings = extension.settings()
        text = explain(settings.mode, rules, tool, given).text
        return "\n".join(filter(None, (text, settings.lesson.line)))
    except ToolError as error:
        raise ConfigError(f"%agent rules: {error}") from None


def _rules(extension: Extension) -> tuple[Rule, ...]:
    conversation = extension.last
    return extension.settings().policy(conversation.kept if conversation is not None else None).rules


def _all(extension: Extension, rules: tuple[Rule, ...]) -> str:
    files = extension.settings().files
    listed = "\n".join(f"  {rule.action} {rule.told}" for rule in rules) or "  none"
    more = [f"Not used until you trust this folder's files (%agent trust): {what}" for what in files.inert]
    more += [f"Counts as part of the workspace: {folder}" for folder in files.directories]
    more += list(files.problems)
    told = "".join(f"{line}\n" for line in more)
    return (
        f"Mode: {extension.settings().mode}. Rules in force:\n{listed}\n{told}\n"
        f"What happens to a call that no rule speaks of, by what it does and by mode:\n{table_text()}\n\n{ORDER}\n"
        '%agent rules shell "rm -rf x" shows what happens to one call, and why.'
    )


def _called(rest: str, tools: Mapping[str, Tool]) -> tuple[Tool, str]:
    name, _, words = rest.strip().partition(" ")
    found = tools.get(name) or next((tools[one] for one in our_tools(name) if one in tools), None)
    if found is None:
        near = difflib.get_close_matches(name, tools, 1)
        hint = f"Did you mean {near[0]}?" if near else f"The tools are {', '.join(tools)}."
        raise ConfigError(
            f"%agent rules: there is no tool {name!r}. {hint} (Rules are set with %config NbAgent.deny = ['shell'], in your "
            "settings file, or in .claude/settings.json.)"
        )
    return found, words.strip()


def _given(tool: Tool, words: str) -> dict[str, Any]:
    """Read arguments: a JSON object, `name=value` pairs, or the values in order."""
    if words.startswith("{"):
        try:
            return json.loads(words)
        except ValueError as error:
            raise ConfigError(f"%agent rules: the arguments are not JSON: {error}.") from None
    names = list(tool.schema.get("properties", {}))
    try:
        values = shlex.split(words)
    except ValueError:
        values = [words]
    if tool.name == "shell" and len(values) > 1:
        return {"command": words}
    given: dict[str, Any] = {}
    for value in values:
        name, equals, said = value.partition("=")
        if equals and name in names:
            given[name] = said
        elif free := [one for one in names if one not in given]:
            given[free[0]] = value
        else:
            raise ConfigError(f"%agent rules: too many arguments. Expected: {tool.signature}")
    required = [name for name in tool.schema.get("required", []) if name not in given]
    texts = {name for name, spec in tool.schema.get("properties", {}).items() if spec.get("type") == "string"}
    return given | {name: "" for name in required if name in texts}
