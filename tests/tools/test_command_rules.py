"""Rules for the shell: a table of command lines, each labelled by hand, and laws that hold for all."""

from __future__ import annotations

import functools
import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.policy import Mode, decision_of
from nbagent.core.rules import Rule
from nbagent.tools import shell
from nbagent.tools.commandrules import CommandRules
from tests.tools.command_lines import ALLOW, ASK, DENY, RULES, lines


@functools.cache
def rules(text: str = RULES) -> tuple[Rule, ...]:
    return tuple(Rule.parse(*line.split(" ", 1)) for line in text.strip().splitlines())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    made = tmp_path_factory.mktemp("rules")
    for folder in ("sub", "src", "build", "private", "locked"):
        (made / folder).mkdir()
    (made / "a.txt").write_text("x\n")
    return made


@functools.cache
def the_tool(root):
    return shell.tools(root)[0]


def decided(root, command, text=RULES, mode=Mode.DEFAULT):
    return decision_of(mode, rules(text), the_tool(root), {"command": command, "timeout": 5.0})


@pytest.mark.slow
@pytest.mark.parametrize("command", lines(ALLOW))
def test_every_part_is_allowed_so_the_line_is(root, command):
    assert decided(root, command).action == "allow"


@pytest.mark.slow
@pytest.mark.parametrize("command", lines(ASK))
def test_a_part_that_no_rule_vouches_for_is_asked_about(root, command):
    assert decided(root, command).action == "ask"


@pytest.mark.slow
@pytest.mark.parametrize("command", lines(DENY))
def test_a_part_that_a_rule_denies_denies_the_line_even_in_bypass(root, command):
    assert decided(root, command).action == decided(root, command, mode=Mode.BYPASS).action == "deny"


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

SEPARATORS = st.sampled_from([";", " ; ", "&&", " && ", " || ", " | ", " |& ", " & ", "\n", " ;\n"])
GOOD = st.sampled_from([line for line in lines(ALLOW) if not set("#⏎") & set(line) and not line.endswith(";")])
ALONE = [line for line in lines(ASK) if "git" not in line and not set("\n#'\"<|&(){}") & set(line)]
BAD = st.sampled_from([line for line in ALONE if line.split()[0] not in {"ls", "cd", "if", "for", "while", ">", "cat"}])
DENIED = st.sampled_from([line for line in lines(DENY) if "\n" not in line and "private" not in line])


def joined(draw, parts):
    text = parts[0]
    for part in parts[1:]:
        text += draw(SEPARATORS) + part
    return text


@pytest.mark.slow
@given(st.data(), st.lists(GOOD, min_size=0, max_size=3), BAD, st.integers(0, 3))
def test_no_line_with_a_part_that_is_not_allowed_is_ever_allowed(root, data, good, bad, at):
    command = joined(data.draw, [*good[:at], bad, *good[at:]])
    assert decided(root, command).action != "allow"


@pytest.mark.slow
@given(st.data(), st.lists(GOOD, min_size=0, max_size=3), DENIED, st.integers(0, 3))
def test_a_part_that_is_denied_denies_every_line_that_it_is_in(root, data, good, denied, at):
    command = joined(data.draw, [*good[:at], denied, *good[at:]])
    assert decided(root, command, mode=Mode.BYPASS).action == "deny"


WRAPS = ["timeout 5 {}", "nohup {}", "nice {}", "time {}", "command {}", "env {}", "X=1 {}", "LD_PRELOAD=x {}", "({})",
         "env X=1 {}", "sudo {}", "xargs {}", "eval {}", "{} > out", "{} 2>&1", "  {}", "{} ", "! {}", "{{ {}; }}",
         "if true; then {}; fi", "echo $({})", "echo `{}`", "bash -c '{}'", "exec {}", "stdbuf -oL {}", "env -i {}"]  # fmt: skip


@pytest.mark.slow
@given(st.lists(st.sampled_from(WRAPS), max_size=3))
def test_whatever_is_wrapped_around_a_denied_command_it_stays_denied(root, wraps):
    command = "rm x"
    for wrap in wraps:
        if "'" in wrap and "'" in command:
            continue
        command = wrap.format(command)
    assert decided(root, command, mode=Mode.BYPASS).action in {"deny", "ask"}
    if not any("`" in wrap for wrap in wraps[1:]):
        assert decided(root, command, mode=Mode.BYPASS).action == "deny"


@pytest.mark.slow
@given(st.lists(st.sampled_from(WRAPS), max_size=3))
def test_whatever_is_wrapped_around_a_command_that_is_not_allowed_it_is_not_allowed(root, wraps):
    command = "docker ps"
    for wrap in wraps:
        command = wrap.format(command)
    assert decided(root, command).action != "allow"


def quoted(draw, word):
    """The same word with quotes and backslashes somewhere in it."""
    pieces = [draw(st.sampled_from(["{}", "'{}'", '"{}"', "\\{}"])).format(char) for char in word]
    return "".join(pieces)


@pytest.mark.slow
@given(st.data(), st.sampled_from(["rm x", "docker ps", "git push --force x", "git status", "git -c a=b log"]))
def test_quotes_and_blanks_change_nothing(root, data, command):
    changed = data.draw(st.sampled_from([" ", "  ", "\t", " \\\n "])).join(
        quoted(data.draw, word) for word in command.split()
    )
    action = decided(root, command).action
    assert decided(root, changed).action in ({action} if action != "allow" else {"allow", "ask"})


@pytest.mark.slow
@given(st.text("git rm;|&$`'\"\\<>(){}#*?!~ \n\t=-x", max_size=40))
def test_no_text_at_all_is_allowed_that_another_reader_takes_for_more(root, command):
    """Whatever is allowed consists of commands that begin with the one allowed word, read by Python's own shlex."""
    text = "allow Bash(git *)"
    if decided(root, command, text).action == "allow":
        lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|<>()\n")
        lexer.whitespace, lexer.commenters = " \t", ""
        starts, fresh = [], True
        for token in lexer:
            if set(token) <= set(";&|()\n"):
                fresh = True
            elif fresh and token not in {"!", "{", "}"}:
                starts.append(token)
                fresh = False
        assert all(start.startswith(("git", "#")) for start in starts)


@pytest.mark.slow
@given(
    st.sampled_from(["allow", "ask", "deny"]),
    st.text("abzAZ09_*-", min_size=1),
    st.text(min_size=1),
)
def test_a_rule_is_read_back_as_it_was_written(action, name, pattern):
    rule = Rule(action, name, pattern)
    assert Rule.parse(action, str(rule)) == rule
    assert Rule.parse(action, str(Rule(action, name))) == Rule(action, name)


# ── single sentences ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_rule_for_the_whole_tool_allows_every_command_but_what_is_protected(root):
    for text in ("allow Bash", "allow shell", "allow Bash(*)", "allow shell(*)"):
        assert decided(root, "docker ps $(id) > x", text).action == "allow"
        assert decided(root, "rm -rf .git/hooks", text).action == "ask"


@pytest.mark.parametrize(
    "command", ["rm -rf .", "rm -rf ~", "rm -rf /", "rm -rf *", "find / -delete", "mv ~ x", "cd .. && rm -r x/../."]
)
def test_what_removes_everything_is_asked_about_in_every_mode_and_by_every_rule(root, command):
    assert decided(root, command, "allow Bash", Mode.BYPASS).action == "ask"


def test_an_exact_text_allows_what_no_pattern_does(root):
    for command in ("git log $(id) > x", "for x in a; do echo $x; done", "find . -exec ls {} +"):
        assert decided(root, command, f"allow Bash({command})").action == "allow"
        assert decided(root, f"{command} ", f"allow Bash({command})").action == "allow"
        assert decided(root, f"{command}; id", f"allow Bash({command})").action == "ask"


@pytest.mark.parametrize("command", ["$X y", "r$Y x", "eval $X", 'bash -c "$X"', "cat x | bash", "git 'log", "{rm,x}"])
def test_where_a_deny_rule_can_not_see_what_runs_the_person_is_asked_even_in_bypass(root, command):
    assert decided(root, command, "deny Bash(rm *)", Mode.BYPASS).action == "ask"
    assert decided(root, command, "allow Bash(git *)", Mode.BYPASS).action == "allow"
    assert decided(root, command, "deny Bash(rm *)", Mode.DONT_ASK).action == "deny"


def test_an_ask_rule_asks_about_any_part_and_denies_where_nobody_is_asked(root):
    text = "allow Bash(git *)\nask Bash(git push:*)"
    assert decided(root, "git add . && git push", text).action == "ask"
    assert decided(root, "git add . && git push", text, Mode.BYPASS).action == "ask"
    assert decided(root, "git add . && git push", text, Mode.DONT_ASK).action == "deny"
    assert decided(root, "git add . && git status", text, Mode.DONT_ASK).action == "allow"


def test_no_rule_opens_plan_mode(root):
    assert decided(root, "git add .", "allow Bash(git *)", Mode.PLAN).action == "deny"
    assert decided(root, "git status | head -3", "allow Bash(git *)", Mode.PLAN).action == "allow"
    assert decided(root, "git status | head -3", mode=Mode.READ_ONLY, text="").action == "ask"


def test_elsewhere_than_in_a_posix_shell_only_the_exact_text_allows(root):
    tool = replace(shell.tools(root)[0], grammar=CommandRules(root, bash=False))
    said = [decision_of(Mode.DEFAULT, rules("allow Bash(git *)\nallow Bash(dir /b)"), tool, {"command": text, "timeout": 5.0})
            for text in ("git add .", "dir /b")]  # fmt: skip
    assert [one.action for one in said] == ["ask", "allow"]


def test_what_a_person_reads_names_the_rule_and_the_part(root):
    assert decided(root, "git add . && rm x").rule == "rule: deny Bash(rm *) (rm x)"
    assert decided(root, "git add . && make").rule == "rule: allow Bash(git *) and shell(make)"
    (tool,) = shell.tools(root)
    notes = CommandRules(root).notes(rules(), tool, {"command": "git add . && ls && docker ps && find . -delete"})
    assert notes == (
        "git add .: allowed by Bash(git *)",
        "ls: only looks",
        "docker ps: no rule allows it",
        "find . -delete: Bash(find *) does not cover it: find -delete does more than find alone",
    )


def test_a_parameter_is_denied_or_asked_about_never_allowed(root):
    assert decided(root, "id", "deny Bash(timeout:5*)").action == "deny"
    assert decided(root, "id", "allow Bash(timeout:5*)").action == "ask"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["sudo " * 1900 + "x", "env " * 30 + "rm x", "$(" * 3000 + "x", "git log; " * 1000 + "ls", "x" * 20_000]
)
def test_what_is_too_long_to_see_through_is_asked_about_even_in_bypass(root, command):
    assert decided(root, command, "deny Bash(rm *)", Mode.BYPASS).action in {"ask", "deny"}
    assert decided(root, command, "allow Bash(git *)").action == "ask"
