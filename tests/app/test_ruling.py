"""`%agent rules`: for any call which rule decides, and why."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nbagent import config
from nbagent.app.ruling import folder_tools, report
from nbagent.core.errors import ConfigError
from nbagent.core.policy import Mode
from nbagent.core.rules import Rule, Source
from nbagent.extend.rulefiles import RuleFiles


def extension(folder, *rules, mode=Mode.DEFAULT, **files):
    parsed = tuple(
        Rule.parse(*rule.split(" ", 1), Source("project", ".claude/settings.json", str(folder))) for rule in rules
    )
    settings = config.Settings(mode=mode, files=RuleFiles(rules=parsed, **files))
    return SimpleNamespace(settings=lambda: settings, last=None, folder=folder)


def said(folder, line, *rules, mode=Mode.DEFAULT):
    made = extension(folder, *rules, mode=mode)
    return report(made, line, {tool.name: tool for tool in folder_tools(made, None)})


RULES = ("allow Bash(git *)", "deny Bash(rm *)", "ask Bash(git push *)", "allow Edit(src/**)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "head", "step"),
    [
        ('shell "rm -rf x"', "→ deny: does not run", "deny rules   Bash(rm *) in .claude/settings.json"),
        ("shell rm -rf x", "→ deny: does not run", "deny rules   Bash(rm *) in .claude/settings.json"),
        ('Bash "git add . && git push"', "→ ask: you are asked", "(git push)"),
        ('shell {"command": "git add ."}', "→ allow: runs without a question", "allow rules  Bash(git *)"),
        ('shell "git add . > x"', "→ ask", "> x: no rule allows writing this file"),
        ('shell "git -c a=b log"', "→ ask", "git -c changes how git works"),
        ('shell "git log $(id)"', "→ ask", "there is a substitution in it, so only its exact text can be allowed"),
        ("write_file src/a.py", "→ allow", "allow rules  Edit(src/**)"),
        ("Write path=data/a.py content=x", "→ ask", "allow rules  none allows all of it"),
        ("write_file .git/config", "→ ask", "what is protected needs a rule of its own"),
        ("read_file x", "→ allow", "mode         default: allow (look)"),
    ],
)  # fmt: skip
def test_it_shows_which_rule_decides_and_why(tmp_path, line, head, step):
    text = said(tmp_path, line, *RULES)
    assert head in text
    assert step in text


def test_it_shows_every_step_in_order(tmp_path):
    text = said(tmp_path, "shell ls", *RULES, mode=Mode.DONT_ASK)
    steps = [text.index(name) for name in ("hooks", "deny rules", "ask rules", "mode  ", "allow rules", "\nyou  ")]
    assert steps == sorted(steps)
    assert "ls: only looks" in text


@pytest.mark.parametrize(("line", "problem"), [("shel ls", "Did you mean shell?"), ("shell {", "not JSON"),
                                               ("read_file a b c d", "too many"), ("read_file x y", "wrong arguments")])  # fmt: skip
def test_what_is_no_call_is_a_sentence(tmp_path, line, problem):
    with pytest.raises(ConfigError, match=problem):
        said(tmp_path, line)


def test_without_a_call_it_lists_the_rules_and_what_waits_for_trust(tmp_path):
    made = extension(tmp_path, "deny Bash(rm *)", inert=("allow Bash in x.json",), problems=("y.json: broken",))
    text = report(made, "", {})
    assert "deny Bash(rm *) in .claude/settings.json" in text
    assert "Not used until you trust this folder's files (%agent trust): allow Bash in x.json" in text
    assert "y.json: broken" in text
