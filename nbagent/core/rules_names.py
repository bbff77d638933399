"""Claude Code's names of tools, and which tools of ours a rule with such a name speaks of: the one table of it.

A rule may use either: `Bash(git *)` and `shell(git *)` mean the same. What is not in the table (`run_python`, `run_cell`,
tools of MCP servers, a person's own) has one name only. Read `NAMES`, then `speaks_of`.
"""

from __future__ import annotations

import fnmatch

CELL_EDITS = ("add_cell", "edit_cell", "move_cell", "delete_cell")
"""Tools that change cells; the first two may also run what they write."""

NAMES: dict[str, tuple[str, ...]] = {
    "Bash": ("shell",),
    "Read": ("read_file", "read_data_head", "glob", "grep", "read_notebook", "read_cell"),
    "Glob": ("glob",),
    "Grep": ("grep",),
    "LS": ("glob",),
    "Edit": ("edit_file", "write_file", *CELL_EDITS),
    "MultiEdit": ("edit_file",),
    "Write": ("write_file",),
    "NotebookRead": ("read_notebook", "read_cell"),
    "NotebookEdit": CELL_EDITS,
    "WebFetch": ("web_fetch",),
    "WebSearch": ("web_search",),
    "Agent": ("agent", "task"),
    "Task": ("agent", "task"),
    "Skill": ("skill",),
    "SlashCommand": ("skill",),
    "AskUserQuestion": ("ask_user",),
    "EnterPlanMode": ("enter_plan",),
    "ExitPlanMode": ("exit_plan",),
    "TodoWrite": ("todo_write",),
    "TaskCreate": ("task_create",),
    "TaskGet": ("task_get",),
    "TaskList": ("task_list",),
    "TaskUpdate": ("task_update",),
    "SendMessage": ("send_message",),
}
"""Claude Code's name → our tools. Rules for Edit cover writing and cells, rules for Read cover looking for files."""

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "file_path": ("path",),
    "path": ("folder",),
    "notebook_path": ("path",),
    "old_string": ("old_text",),
    "new_string": ("new_text",),
    "new_source": ("source",),
    "cell_id": ("cell", "after"),
    "subagent_type": ("agent", "agent_type"),
    "taskId": ("task",),
    "subject": ("title",),
}
"""Claude Code's name of an argument → ours, for rules like `Agent(subagent_type:Explore)`."""


def our_tools(name: str) -> tuple[str, ...]:
    """Return our tools that Claude Code's `name` stands for, () where it is no name of Claude Code's."""
    return NAMES.get(name, ())


def speaks_of(name: str, tool: str) -> bool:
    """Whether a rule with the tool name `name` is about our `tool`: its own name, `*` in it, Claude's, or `mcp__server`."""
    if fnmatch.fnmatchcase(tool, name) or tool in our_tools(name):
        return True
    return name.startswith("mcp__") and "__" not in name[5:] and tool.startswith(f"{name}__")


def is_alias(name: str, tool: str) -> bool:
    """Whether `name` reaches `tool` only because it is Claude Code's name."""
    return tool in our_tools(name) and not fnmatch.fnmatchcase(tool, name)


def argument(given: dict[str, object], name: str) -> object:
    """Return what `given` holds for an argument in our or Claude Code's words, None where there is none of that name."""
    for known in (name, *ARGUMENTS.get(name, ())):
        if known in given:
            return given[known]
    return None
