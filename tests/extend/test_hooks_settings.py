"""Hooks as settings files have them: shape, matchers, common fields, and what can't be read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import ConfigError
from nbagent.core.payloads import HookEvent
from nbagent.extend.hooks_settings import Hook, Read, Source, as_subagent, matching, read

HERE = Source("~/.claude/settings.json")


def command(text: str = "guard.sh", **more: object) -> dict:
    return {"type": "command", "command": text, **more}


def of(event: str, *handlers: dict, matcher: str | None = None, source: Source = HERE) -> Read:
    group = {"hooks": list(handlers)} | ({} if matcher is None else {"matcher": matcher})
    return read({event: [group]}, source)


def one(event: str, handler: dict, matcher: str | None = None, source: Source = HERE) -> Hook:
    (found,) = of(event, handler, matcher=matcher, source=source).hooks
    return found


def test_the_documented_shape_is_read_event_groups_handlers_in_order():
    found = read(
        {
            "PreToolUse": [{"matcher": "Bash", "hooks": [command("a.sh"), {"type": "http", "url": "http://x/y"}]}],
            "Stop": [{"hooks": [{"type": "prompt", "prompt": "done? $ARGUMENTS"}]}],
        },
        HERE,
    )
    assert [(h.event, h.type, h.matcher, h.name) for h in found.hooks] == [
        ("PreToolUse", "command", "Bash", "a.sh"),
        ("PreToolUse", "http", "Bash", "x/y"),
        ("Stop", "prompt", "", "prompt hook of ~/.claude/settings.json"),
    ]
    assert found.problems == ()


@pytest.mark.parametrize(
    ("matcher", "fits", "not_these"),
    [
        ("*", ["Bash", ""], []),
        ("", ["Bash"], []),
        ("Bash", ["Bash"], ["BashOutput", "bash"]),
        ("Edit|Write", ["Edit", "Write"], ["NotebookEdit", "Edit|Write"]),
        ("Edit, Write", ["Edit", "Write"], ["Edit, Write"]),
        ("code-reviewer", ["code-reviewer"], ["senior-code-reviewer"]),
        ("mcp__memory", ["mcp__memory"], ["mcp__memory__create"]),
        ("mcp__memory__.*", ["mcp__memory__create"], ["mcp__github__x"]),
        ("^Notebook", ["NotebookEdit"], ["MyNotebook"]),
        ("Edit.*", ["Edit", "NotebookEdit"], ["Write"]),
        ("^Edit$", ["Edit"], ["NotebookEdit"]),
        ("mcp__.*__write.*", ["mcp__fs__write_file"], ["mcp__fs__read"]),
        (r"^(?<kind>run)_\w+$", ["run_cell"], ["rerun_cell"]),
    ],
)
def test_a_matcher_is_all_or_exact_names_or_an_unanchored_regular_expression(matcher, fits, not_these):
    test = matching(matcher)
    assert all(test(value) for value in fits)
    assert not any(test(value) for value in not_these)


@given(st.text(alphabet="ab_-", min_size=1, max_size=5), st.text(alphabet="ab_-", max_size=5))
def test_a_name_of_letters_digits_and_dashes_fits_itself_only(name, other):
    assert matching(name)(name)
    assert matching(name)(other) == (name == other)


@given(st.text(alphabet="aB_-|, .*+?()[]^$\\<=:{}1", max_size=12))
def test_any_text_is_a_matcher_or_a_config_error(text):
    try:
        matching(text)("Bash")
    except ConfigError as error:
        assert repr(text) in str(error)


@pytest.mark.parametrize(
    ("event", "kind", "seconds"),
    [
        ("PreToolUse", "command", 600),
        ("PreToolUse", "http", 600),
        ("PreToolUse", "mcp_tool", 600),
        ("PreToolUse", "prompt", 30),
        ("PreToolUse", "agent", 60),
        ("UserPromptSubmit", "command", 30),
        ("UserPromptSubmit", "http", 30),
        ("UserPromptSubmit", "agent", 60),
        ("SessionEnd", "command", 1.5),
    ],
)
def test_default_timeouts_are_the_documented_ones(event, kind, seconds):
    spec = {"type": kind, "command": "c", "url": "http://x", "tool": "t", "prompt": "p"}
    assert one(event, spec).timeout == seconds


def test_a_timeout_of_its_own_counts_and_session_end_has_sixty_seconds_at_most():
    assert one("Stop", command(timeout=5)).timeout == 5
    assert one("SessionEnd", command(timeout=600)).timeout == 60


def test_once_counts_in_skills_only():
    assert one("Stop", command(once=True), source=Source("skill x", "skill")).once
    found = of("Stop", command(once=True))
    assert not found.hooks[0].once
    assert "once counts in skills only" in found.problems[0]


def test_status_message_if_and_on_failure_are_read():
    found = one("PreToolUse", command(statusMessage="Looking", **{"if": "Bash(git *)"}, onFailure="block"))
    assert (found.message, found.rule, found.on_failure) == ("Looking", "Bash(git *)", "block")


@pytest.mark.parametrize(
    ("handler", "matcher", "why"),
    [
        ({"type": "comand", "command": "x"}, "Bash", "type 'comand'"),
        ({"command": "x"}, "Bash", "type None"),
        ({"type": "command"}, "Bash", "needs 'command'"),
        ({"type": "command", "command": "  "}, "Bash", "needs 'command'"),
        ({"type": "http"}, "Bash", "needs 'url'"),
        ({"type": "command", "command": "x", "timeout": "5"}, "Bash", "timeout '5'"),
        ({"type": "command", "command": "x", "timeout": -1}, "Bash", "timeout -1"),
        ({"type": "command", "command": "x", "args": "y"}, "Bash", "args 'y'"),
        ({"type": "command", "command": "x", "shell": "fish"}, "Bash", "shell 'fish'"),
        ({"type": "command", "command": "x", "onFailure": "ignore"}, "Bash", "onFailure 'ignore'"),
        ({"type": "command", "command": "x"}, "Bash(", "no regular expression"),
    ],
)
def test_a_mistyped_guard_fails_at_every_call_instead_of_never_running(handler, matcher, why):
    """Row 113: what can't run shuts its gate."""
    found = one("PreToolUse", handler, matcher)
    assert found.type == "broken"
    assert why in found.problem
    assert found.fits("anything")
    assert found.on_failure == ""


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ([], "hooks must be a table"),
        ({"Stop": {}}, "hooks.Stop must be a list"),
        ({"Stop": ["x"]}, "each entry must be a table"),
        ({"Stop": [{}]}, "hooks of an entry must be a list"),
        ({"Stop": [{"hooks": ["x"]}]}, "each hook must be a table"),
        ({"Stop": [{"matcher": 1, "hooks": []}]}, "matcher = 1 is not text"),
    ],
)
def test_a_table_of_another_shape_is_named_with_its_file(table, what):
    with pytest.raises(ConfigError, match=re.escape(what)) as error:
        read(table, HERE)
    assert str(error.value).startswith("~/.claude/settings.json: ")


def test_an_event_that_does_not_happen_here_and_one_that_there_is_not_are_named_and_not_read():
    found = read({"FileChanged": [{"hooks": [command()]}], "PreTolUse": [{"hooks": [command()]}]}, HERE)
    assert found.hooks == ()
    assert "FileChanged has no effect: that does not happen in a notebook" in found.problems[0]
    assert "Did you mean PreToolUse?" in found.problems[1]


def test_the_stop_hook_of_an_agent_is_a_subagent_stop_while_it_runs():
    found = read({"Stop": [{"hooks": [command()]}], "PreToolUse": [{"hooks": [command()]}]}, HERE).hooks
    assert [h.event for h in as_subagent(found)] == [HookEvent.SUBAGENT_STOP, HookEvent.PRE_TOOL_USE]


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (command('"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh --fast'), "guard.sh"),
        (command("python3 ~/.claude/hooks/check.py"), "check.py"),
        (command("jq -r .tool_name"), "jq -r .tool_name"),
        (command("node", args=["${CLAUDE_PROJECT_DIR}/hooks/x.js"]), "x.js"),
        (command("x" * 90), "x" * 47 + "…"),
        ({"type": "mcp_tool", "server": "scan", "tool": "check"}, "scan check"),
    ],
)
def test_people_know_a_hook_by_its_script(spec, name):
    assert one("PreToolUse", spec).name == name


def test_the_same_handler_of_two_settings_files_is_one_and_that_of_a_skill_stays_apart():
    user, project = one("Stop", command()), one("Stop", command(), source=Source("project", "project"))
    skill = one("Stop", command(), source=Source("skill x", "skill"))
    assert user.identity == project.identity != skill.identity
    assert one("Stop", command("other.sh")).identity != user.identity
