"""Our tools in the words of Claude Code, for hooks that were written for it: names, inputs, results, and back again.

`TABLE` is how inputs are said; names alone are those of `core/rules_names`. Tools that are in neither (MCP tools, the
kernel's own) have one name everywhere. Must not know how a hook runs. Read `Speech`, then `TABLE`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from nbagent.core.messages import Json
from nbagent.core.rules_names import NAMES

Dialect = Literal["claude", "nbagent"]
Rules = tuple[tuple[Literal["allow", "ask", "deny"], str], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """What paths are said relative to, and the path of the open notebook ("" where there is none)."""

    folder: str = ""
    notebook: str = ""

    def absolute(self, path: Any) -> Any:
        """Return a path as Claude Code tells it to hooks: whole."""
        if not isinstance(path, str) or not path:
            return path
        return os.path.normpath(os.path.join(self.folder, os.path.expanduser(path)))  # noqa: PTH111, PTH118


def _same(value: Any, _: Place) -> Any:
    return value


def _thousand(value: Any, _: Place) -> Any:
    return round(value * 1000) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _thousandth(value: Any, _: Place) -> Any:
    return value / 1000 if isinstance(value, int | float) and not isinstance(value, bool) else value


def _absolute(value: Any, place: Place) -> Any:
    return place.absolute(value)


@dataclass(frozen=True, slots=True)
class Field:
    """One argument: its name here and there, and how its value is said there and back."""

    ours: str
    theirs: str
    there: Callable[[Any, Place], Any] = _same
    back: Callable[[Any, Place], Any] = _same


@dataclass(frozen=True, slots=True)
class Speech:
    """One of our tools as Claude Code knows it.

    `more` are fields that are only there (computed from our input), `spare` fields of theirs that we have no use for.
    Arguments of ours that have no field keep their value when a hook rewrites the rest.
    """

    ours: str
    theirs: str
    fields: tuple[Field, ...] = ()
    more: Mapping[str, Callable[[Json, Place], Any]] = field(default_factory=dict[str, Callable[[Json, Place], Any]])
    spare: frozenset[str] = frozenset()

    def there(self, given: Json, place: Place) -> Json:
        """Return our input as theirs."""
        said = {f.theirs: f.there(given[f.ours], place) for f in self.fields if given.get(f.ours) is not None}
        return {**said, **{name: make(given, place) for name, make in self.more.items()}}

    def back(self, theirs: Json, given: Json, place: Place) -> Json:
        """Return their input, which a hook wrote in the place of `given`, as ours.

        What the hook left as it was told is what it was; a field that is not theirs stays, so that it is refused.
        """
        told = self.there(given, place)
        if theirs == told:
            return dict(given)
        known = {f.theirs: f for f in self.fields}
        said = {name: value for name, value in given.items() if name not in {f.ours for f in self.fields}}
        for name, value in theirs.items():
            if name in known:
                f = known[name]
                said[f.ours] = given.get(f.ours) if name in told and told[name] == value else f.back(value, place)
            elif not (name in self.spare or (name in self.more and told.get(name) == value)):
                said[name] = value
        return said


def _last_line(given: Json, _: Place) -> Any:
    start, end = given.get("start_line") or 1, given.get("end_line")
    return None if end is None else max(end - start + 1, 0)


def _read_back(theirs: Json, given: Json, place: Place) -> Json:
    limit = theirs.get("limit")
    rest = {name: value for name, value in theirs.items() if name != "limit"}
    said = _READ.back({**rest, **{n: f(given, place) for n, f in _READ.more.items()}}, given, place)
    said["end_line"] = None if limit is None else (said.get("start_line") or 1) + limit - 1
    return said


def _questions(questions: Any, _: Place) -> Any:
    """Return the questions with every field that Claude Code's have."""
    whole: Json = {"question": "", "header": "", "options": [], "multiSelect": False}
    return [{**whole, **one} for one in questions] if all(isinstance(one, dict) for one in questions) else questions


def _open_notebook(_: Json, place: Place) -> str:
    return place.absolute(place.notebook)


def _mode(mode: str) -> Callable[[Json, Place], Any]:
    return lambda _given, _place: mode


_PATH = Field("path", "file_path", _absolute)
_BASH_ONLY = frozenset({"description", "run_in_background", "dangerouslyDisableSandbox"})
_READ = Speech("read_file", "Read", (_PATH, Field("start_line", "offset")), {"limit": _last_line},
               frozenset({"pages", "allow_large"}))  # fmt: skip

TABLE: tuple[Speech, ...] = (
    Speech("shell", "Bash", (Field("command", "command"), Field("timeout", "timeout", _thousand, _thousandth)),
           spare=_BASH_ONLY),
    Speech("write_file", "Write", (_PATH, Field("content", "content"))),
    Speech("edit_file", "Edit", (_PATH, Field("old_text", "old_string"), Field("new_text", "new_string"),
                                 Field("replace_all", "replace_all"))),
    _READ,
    Speech("read_data_head", "Read", (_PATH,), spare=_READ.spare | {"offset", "limit"}),
    Speech("glob", "Glob", (Field("pattern", "pattern"), Field("folder", "path", _absolute))),
    Speech("grep", "Grep", (Field("pattern", "pattern"), Field("folder", "path", _absolute))),
    Speech("add_cell", "NotebookEdit",
           (Field("source", "new_source"), Field("cell_type", "cell_type"), Field("after", "cell_id")),
           {"notebook_path": _open_notebook, "edit_mode": _mode("insert")}),
    Speech("edit_cell", "NotebookEdit", (Field("cell", "cell_id"), Field("source", "new_source")),
           {"notebook_path": _open_notebook, "edit_mode": _mode("replace")}),
    Speech("delete_cell", "NotebookEdit", (Field("cell", "cell_id"),),
           {"notebook_path": _open_notebook, "edit_mode": _mode("delete"), "new_source": _mode("")}),
    Speech("move_cell", "NotebookEdit", (Field("cell", "cell_id"),),
           {"notebook_path": _open_notebook, "edit_mode": _mode("move"), "new_source": _mode("")}),
    Speech("ask_user", "AskUserQuestion", (Field("questions", "questions", _questions),),
           spare=frozenset({"answers", "annotations", "metadata"})),
    Speech("todo_write", "TodoWrite", (Field("todos", "todos"),)),
    Speech("task", "Agent", (Field("description", "description"), Field("prompt", "prompt"),
                             Field("agent", "subagent_type"), Field("model", "model")),
           spare=frozenset({"run_in_background", "effort", "name", "isolation", "team_name", "mode"})),
    Speech("task_create", "TaskCreate", (Field("title", "subject"), Field("description", "description")),
           spare=frozenset({"activeForm", "metadata"})),
    Speech("task_get", "TaskGet", (Field("task", "taskId"),)),
    Speech("task_list", "TaskList"),
    Speech("task_update", "TaskUpdate",
           (Field("task", "taskId"), Field("status", "status"), Field("title", "subject"),
            Field("description", "description"), Field("owner", "owner")), spare=frozenset({"activeForm", "metadata"})),
    Speech("send_message", "SendMessage", (Field("to", "to"), Field("text", "message")), spare=frozenset({"summary"})),
    Speech("exit_plan", "ExitPlanMode", (Field("plan", "plan"),), spare=frozenset({"allowedPrompts", "planFilePath"})),
)  # fmt: skip
"""Which of our tools is which of Claude Code's, argument by argument.

`run_python`, `run_cell`, `run_all` and the tools that look at variables and cells have no counterpart there:
a hook names them as they are.
"""

_OURS = {speech.ours: speech for speech in TABLE}
_WIDE = frozenset({"Read", "Edit", "LS", "MultiEdit", "NotebookEdit"})
"""Names that a rule reaches several tools with, and a matcher only the one that it is."""


def names(tool: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return our names of a tool and those that Claude Code knows it by; a matcher that fits one of them fits the tool."""
    if tool == "task":  # it had that name there, and matchers still have it
        return (tool,), ("Agent", "Task")
    if (speech := _OURS.get(tool)) is not None:
        return (tool,), (speech.theirs,)
    return (tool,), tuple(name for name, ours in NAMES.items() if tool in ours and name not in _WIDE) or (tool,)


def told(said: Json, place: Place) -> Json:
    """Return a payload's JSON with the tool in Claude Code's words; what it is here stands beside that, as `nbagent`."""
    name, given = said.get("tool_name"), said.get("tool_input")
    _, theirs = names(str(name))
    if name is None or theirs == (name,):
        return said
    speech = _OURS.get(str(name)) or Speech(str(name), theirs[0])
    changed: Json = {**said, "tool_name": speech.theirs, "nbagent": {"tool_name": name, "tool_input": given}}
    if isinstance(given, dict) and str(name) in _OURS:
        changed["tool_input"] = speech.there(given, place)
    if "tool_response" in said:
        changed["tool_response"] = _response(speech, said["tool_response"], cast("Json", changed["tool_input"]))
    if "permission_suggestions" in said:
        changed["permission_suggestions"] = [_suggestion(one, speech) for one in said["permission_suggestions"]]
    return changed


def heard(updated: Json, tool: str, given: Json, place: Place) -> Json:
    """Return an input in Claude Code's words, which a hook wrote in the place of `given`, as that of our tool."""
    speech = _OURS.get(tool)
    if speech is None:
        return updated
    if updated == speech.there(given, place):
        return dict(given)
    if speech is _READ:
        return _read_back(updated, given, place)
    return speech.back(updated, given, place)


def heard_output(value: Any) -> Any:
    """Return a result in the shape of Claude Code's tools as a text; anything else as it is."""
    if not isinstance(value, dict):
        return value
    if "stdout" in value:
        return "\n".join(text for text in (str(value["stdout"]), str(value.get("stderr") or "")) if text)
    return json.dumps(value, ensure_ascii=False, default=str)


def _response(speech: Speech, text: Any, given: Json) -> Any:
    match speech.theirs:
        case "Bash":
            return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        case "Write" | "Edit":
            return {"filePath": given.get("file_path"), "success": True}
        case "NotebookEdit":
            return {**given, "error": ""}
        case _:
            return text


def _suggestion(one: Json, speech: Speech) -> Json:
    rules = [{**rule, "toolName": speech.theirs} for rule in one.get("rules", ())]
    return {**one, "rules": rules}
