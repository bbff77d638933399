"""Claude's words for our tools, and the `if` of a hook: what a script that was written for Claude Code finds here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.payloads import HookEvent, PermissionRequest, PostToolUse, PreToolUse, Where
from nbagent.core.policy import Policy
from nbagent.core.seat import Seat
from nbagent.core.tools import Toolset
from nbagent.extend.board_file import FileStore
from nbagent.extend.boards import Boards
from nbagent.extend.hooks_names import TABLE, Place, heard, heard_output, names, told
from nbagent.extend.hooks_rules import fits, subcommands
from nbagent.headless.memory import MemoryNotebook
from nbagent.models import open_model
from nbagent.tools import control, notebook, plan, shell, task, team, workspace
from nbagent.tools.ledger import Ledger
from nbagent.tools.results import ResultStore
from nbagent.tools.seen import Seen
from tests.tools.desk import EchoKernel

WORK = Place("/work", "sales.ipynb")


def say(tool: str, **given: object) -> dict:
    return told(PreToolUse(tool_name=tool, tool_input=given).to_json(Where()), WORK)


@pytest.mark.parametrize(
    ("tool", "given", "name", "said"),
    [
        ("shell", {"command": "ls", "timeout": 120.0}, "Bash", {"command": "ls", "timeout": 120_000}),
        ("write_file", {"path": "a.txt", "content": "x"}, "Write", {"file_path": "/work/a.txt", "content": "x"}),
        (
            "edit_file",
            {"path": "/etc/x", "old_text": "a", "new_text": "b", "replace_all": False},
            "Edit",
            {"file_path": "/etc/x", "old_string": "a", "new_string": "b", "replace_all": False},
        ),
        (
            "read_file",
            {"path": "./d/../a", "start_line": 3, "end_line": 12},
            "Read",
            {"file_path": "/work/a", "offset": 3, "limit": 10},
        ),
        ("glob", {"pattern": "*.py", "folder": "."}, "Glob", {"pattern": "*.py", "path": "/work"}),
        ("grep", {"pattern": "x", "folder": "src"}, "Grep", {"pattern": "x", "path": "/work/src"}),
        (
            "add_cell",
            {"source": "1", "cell_type": "code", "after": "c1", "before": None, "run": True},
            "NotebookEdit",
            {"notebook_path": "/work/sales.ipynb", "new_source": "1", "cell_type": "code", "cell_id": "c1",
             "edit_mode": "insert"},
        ),
        (
            "edit_cell",
            {"cell": "c1", "source": "2", "run": False},
            "NotebookEdit",
            {"notebook_path": "/work/sales.ipynb", "cell_id": "c1", "new_source": "2", "edit_mode": "replace"},
        ),
        (
            "delete_cell",
            {"cell": "c1"},
            "NotebookEdit",
            {"notebook_path": "/work/sales.ipynb", "cell_id": "c1", "edit_mode": "delete", "new_source": ""},
        ),
        ("task_update", {"task": "3", "status": "completed", "result": "r"}, "TaskUpdate",
         {"taskId": "3", "status": "completed"}),
        ("send_message", {"to": "Ana", "text": "t"}, "SendMessage", {"to": "Ana", "message": "t"}),
        ("run_python", {"code": "1"}, "run_python", {"code": "1"}),
        ("mcp__a__b", {"x": 1}, "mcp__a__b", {"x": 1}),
    ],
)  # fmt: skip
def test_a_call_is_told_with_claude_s_name_and_fields_and_whole_paths(tool, given, name, said):
    told_of = say(tool, **given)
    assert told_of["tool_name"] == name
    assert {k: v for k, v in told_of["tool_input"].items() if v is not None} == said
    if name != tool:
        assert told_of["nbagent"] == {"tool_name": tool, "tool_input": given}


def _none(*_: object) -> None:
    raise AssertionError("no session begins here")


def test_a_matcher_of_claudes_finds_a_subagent_under_its_new_name_and_its_old_one():
    assert names("task") == (("task",), ("Agent", "Task"))
    said = say("task", description="d", prompt="p", agent="Explore", model="", thoroughness="quick")
    assert (said["tool_name"], said["tool_input"]) == (
        "Agent", {"description": "d", "prompt": "p", "subagent_type": "Explore", "model": ""},
    )  # fmt: skip


def test_every_tool_in_the_table_is_one_of_ours_with_these_arguments(tmp_path):
    book, kernel = MemoryNotebook(), EchoKernel()
    made = Toolset([
        *notebook.tools(book, kernel, timeout=None, seen=Seen(), ledger=Ledger()),
        *workspace.tools(tmp_path, book), *shell.tools(tmp_path), *control.tools(ResultStore()),
        task.task_tool(task.Tasks(task.Making(dict, list, open_model, _none), lambda: open_model("haiku"))),
        *plan.tools(plan.Planning(Policy, bool)), *team.lead_tools(Seat(Boards(FileStore(tmp_path)), "lead")),
    ])  # fmt: skip
    for speech in TABLE:
        assert {f.ours for f in speech.fields} <= set(made[speech.ours].schema["properties"]), speech.ours


@pytest.mark.parametrize(
    ("tool", "given", "updated", "ours"),
    [
        ("shell", {"command": "a", "timeout": 5.0}, {"command": "b", "timeout": 9000, "description": "d"},
         {"command": "b", "timeout": 9.0}),
        ("shell", {"command": "a", "timeout": 5.0}, {"command": "b"}, {"command": "b"}),
        ("write_file", {"path": "a", "content": "x"}, {"file_path": "/work/a", "content": "y"},
         {"path": "a", "content": "y"}),
        ("write_file", {"path": "a", "content": "x"}, {"file_path": "/tmp/b", "content": "x"},
         {"path": "/tmp/b", "content": "x"}),
        ("add_cell", {"source": "1", "cell_type": "code", "after": None, "before": "c", "run": False},
         {"notebook_path": "/work/sales.ipynb", "new_source": "2", "cell_type": "code", "edit_mode": "insert"},
         {"source": "2", "cell_type": "code", "before": "c", "run": False}),
        ("read_file", {"path": "a", "start_line": 1, "end_line": None}, {"file_path": "/work/a", "offset": 1, "limit": 5},
         {"path": "a", "start_line": 1, "end_line": 5}),
        ("shell", {"command": "a"}, {"command": "b", "unknown": 1}, {"command": "b", "unknown": 1}),
        ("delete_cell", {"cell": "c1"}, {"cell_id": "c1", "edit_mode": "insert"}, {"cell": "c1", "edit_mode": "insert"}),
    ],
)  # fmt: skip
def test_an_input_that_a_hook_rewrote_comes_back_as_ours(tool, given, updated, ours):
    assert heard(updated, tool, given, WORK) == ours


TEXTS = st.sampled_from(["", "a", "./b/../c", "~/d", "/e", " "])
VALUES = {"timeout": st.floats(0.1, 99), "start_line": st.integers(1, 9), "replace_all": st.booleans()}
CALLS = st.sampled_from(TABLE).flatmap(
    lambda speech: st.tuples(
        st.just(speech.ours),
        st.fixed_dictionaries({}, optional={f.ours: VALUES.get(f.ours, TEXTS) for f in speech.fields}),
    )
)


@settings(max_examples=30 * settings.default.max_examples // 100)
@given(CALLS)
def test_an_input_that_a_hook_leaves_alone_comes_back_as_it_was(made):
    tool, given_input = made
    assert heard(say(tool, **given_input)["tool_input"], tool, given_input, WORK) == given_input


def test_results_have_claude_s_shape_and_one_in_that_shape_is_a_text_again():
    said = told(PostToolUse(tool_name="shell", tool_input={"command": "ls"}, tool_response="a").to_json(Where()), WORK)
    assert said["tool_response"] == {"stdout": "a", "stderr": "", "interrupted": False, "isImage": False}
    assert heard_output({"stdout": "[redacted]", "stderr": ""}) == "[redacted]"
    said = told(
        PostToolUse(tool_name="write_file", tool_input={"path": "a"}, tool_response="ok").to_json(Where()), WORK
    )
    assert said["tool_response"] == {"filePath": "/work/a", "success": True}


def test_suggested_rules_name_the_tool_in_claude_s_words():
    suggestion = {"type": "addRules", "rules": [{"toolName": "shell", "ruleContent": "ls"}], "behavior": "allow"}
    payload = PermissionRequest(tool_name="shell", tool_input={"command": "ls"}, permission_suggestions=(suggestion,))
    said = told(payload.to_json(Where()), WORK)
    assert said["permission_suggestions"][0]["rules"] == [{"toolName": "Bash", "ruleContent": "ls"}]


def test_a_tool_has_one_name_of_theirs_or_those_that_mean_it():
    assert names("shell") == (("shell",), ("Bash",))
    assert names("write_file") == (("write_file",), ("Write",))
    assert names("task") == (("task",), ("Agent", "Task"))
    assert names("skill")[1][0] == "Skill"
    assert names("mcp__a__b") == (("mcp__a__b",), ("mcp__a__b",))
    assert names("run_python") == (("run_python",), ("run_python",))


def test_a_tool_that_only_has_another_name_there_keeps_its_input():
    said = say("task", prompt="look")
    assert (said["tool_name"], said["tool_input"]) == ("Agent", {"prompt": "look"})


def test_the_documentation_has_every_row_and_every_event():
    text = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for speech in TABLE:
        assert any(f"`{speech.ours}`" in row and speech.theirs in row for row in rows), speech.ours
    events = re.sub(r"\s+", " ", text.partition("## Events")[2].partition("## ")[0])
    assert all(event in events for event in HookEvent)


# ── if ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "command", "runs"),
    [
        ("Bash(git *)", "FOO=bar git push", True),
        ("Bash(git *)", "npm test && git push", True),
        ("Bash(rm *)", "echo $(rm -rf /)", True),
        ("Bash(rm *)", "echo `rm -rf /`", True),
        ("Bash(rm *)", "echo $(date)", False),
        ("Bash(git push *)", "echo $(date)", True),
        ("Bash(git push *)", "echo $HOME", True),
        ("Bash(git push *)", "echo hello", False),
        ("Bash(git *)", "git", True),
        ("Bash(git *)", "gitk", False),
        ("Bash(git:*)", "git status", True),
        ("Bash(ls*)", "lsof", True),
        ("Bash(rm *)", "echo 'rm -rf /'", False),
        ("Bash(rm *)", "(cd x; rm -rf .)", True),
        ("Bash(rm *)", "echo 'open", True),
        ("Bash(rm *)", "echo $(open", True),
        ("Bash", "anything", True),
        ("shell(git *)", "git push", True),
        ("Edit(*)", "git push", False),
        ("not a rule((", "git push", True),
    ],
)
def test_if_on_commands_as_in_the_documentation_s_table(rule, command, runs):
    assert fits(rule, "shell", {"command": command}, WORK) is runs


@pytest.mark.parametrize(
    ("rule", "tool", "path", "runs"),
    [
        ("Edit(*.ts)", "edit_file", "src/a.ts", True),
        ("Edit(*.ts)", "edit_file", "src/a.py", False),
        ("Edit(*.ts)", "write_file", "a.ts", True),
        ("Edit(src/**)", "edit_file", "src/deep/a.py", True),
        ("Edit(src/**)", "edit_file", "lib/src/a.py", False),
        ("Edit(**/src/**)", "edit_file", "lib/src/a.py", True),
        ("Edit(//etc/*)", "write_file", "/etc/passwd", True),
        ("Edit(//etc/*)", "write_file", "etc/passwd", False),
        ("Read(*.env)", "read_file", "prod.env", True),
        ("Read(*.env)", "write_file", "prod.env", False),
        ("Write(*.md)", "write_file", "a.md", True),
    ],
)
def test_if_on_files_as_permission_rules_read_paths(rule, tool, path, runs):
    assert fits(rule, tool, {"path": path}, WORK) is runs


def test_if_on_cells_is_about_the_notebook():
    assert fits("Edit(*.ipynb)", "add_cell", {"source": "1"}, WORK)
    assert fits("NotebookEdit", "edit_cell", {"cell": "c"}, WORK)
    assert not fits("Edit(*.py)", "add_cell", {"source": "1"}, WORK)


@given(st.text(alphabet="ab \"'`$();&|\n\\", max_size=20))
def test_any_text_is_split_or_left_to_the_hook(command):
    parts = subcommands(command)
    assert parts is None or all(part.strip() for part in parts)
