"""The text of a skill: placeholders as Claude Code's documentation has them, and commands only where they may run."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import ToolError
from nbagent.extend.render import Invocation, Surroundings, attached_again, render
from nbagent.extend.skills import Skill, commands, parts
from tests.support.turns import at_once

AROUND = Surroundings(Path("/project"), session="s-1", effort="high")


def command_file(body: str, **more) -> Skill:
    return Skill("c", "command", "user", Path("/skills/c/SKILL.md"), body, **more)


async def text(body: str, arguments: str = "", run=None, around=AROUND, **more) -> str:
    return (await render(command_file(body, **more), arguments, around, run)).text


class Shell:
    """Notes commands and answers each with its number."""

    def __init__(self, answer=None):
        self.ran = []
        self.answer = answer

    async def __call__(self, command, skill):
        self.ran.append(command)
        return await at_once(f"<{len(self.ran)}>" if self.answer is None else self.answer)


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        ("Fix $ARGUMENTS now", "a  'b c'", "Fix a  'b c' now"),
        ("$0|$1", '"hello world" second', "hello world|second"),
        ("$ARGUMENTS[1]$ARGUMENTS[0]", "a b", "ba"),
        ("$2 stays", "one", "$2 stays\n\nARGUMENTS: one"),
        ("no placeholder", "x y", "no placeholder\n\nARGUMENTS: x y"),
        ("no placeholder", "  ", "no placeholder"),
        (r"costs \$1.00, $0", "five", "costs $1.00, five"),
        (r"\\$0", "v", r"\\v"),
        (r"\$HOME and $HOME", "", r"\$HOME and $HOME"),
        ("Summarize $0", '"$ARGUMENTS from yesterday"', "Summarize $ARGUMENTS from yesterday"),
        ("$0", "don't", "don't"),
        ("$ARGUMENTSX", "a", "$ARGUMENTSX\n\nARGUMENTS: a"),
        (
            "${CLAUDE_SESSION_ID} ${CLAUDE_SKILL_DIR} ${NBAGENT_PROJECT_DIR} ${CLAUDE_EFFORT}",
            "",
            "s-1 /skills/c /project high",
        ),
        ("${CLAUDE_OTHER} $nobody", "", "${CLAUDE_OTHER} $nobody"),
    ],
)
async def test_placeholders_are_filled_in_as_documented(body, arguments, expected):
    assert await text(body, arguments) == expected


async def test_named_arguments_stand_for_their_place_and_for_nothing_where_there_is_none():
    skill = command_file("Fix $issue on $branch, $issues", arguments=("issue", "branch"))
    assert (await render(skill, "12", AROUND)).text == "Fix 12 on , $issues"


async def test_commands_are_replaced_by_what_they_print_once():
    shell = Shell("!`rm -rf /` $ARGUMENTS $0")
    said = await text("Look: !`git status`\n```!\nls\npwd\n```\nend $0", "now", shell)
    assert shell.ran == ["git status", "ls\npwd"]
    assert said == "Look: !`rm -rf /` $ARGUMENTS $0\n!`rm -rf /` $ARGUMENTS $0\nend now"


@pytest.mark.parametrize("body", ["KEY=!`cmd`", "`!cmd`", "!``", "!`a\nb`", "```!\nnever closed", "```! x\ny\n```"])
def test_what_only_looks_like_a_command_is_text(body):
    assert commands(body) == ()
    assert "".join(part for _, part in parts(body)) == body


async def test_an_argument_reaches_a_command_as_one_word_that_the_shell_cannot_misread():
    shell = Shell()
    await text("!`git log $ARGUMENTS` !`cat $0`", "v1..v2 --stat", shell)
    await text("!`git log $ARGUMENTS` !`cat $0`", '"a b; rm -rf ~" $(x)', shell)
    assert shell.ran == ["git log v1..v2 --stat", "cat v1..v2", "git log 'a b; rm -rf ~' '$(x)'", "cat 'a b; rm -rf ~'"]


async def test_a_folder_with_spaces_stays_one_word():
    shell = Shell()
    skill = replace(
        command_file('!`python ${CLAUDE_SKILL_DIR}/a.py $0` !`cat "${CLAUDE_SKILL_DIR}/b"`'),
        file=Path("/my skills/c.md"),
    )
    await render(skill, '"two words"', AROUND, shell)
    assert shell.ran == ["python '/my skills'/a.py 'two words'", 'cat "/my skills/b"']
    with pytest.raises(ToolError, match="quotes of its own"):
        await render(replace(skill, file=Path('/a"; rm -rf ~; "/c.md')), "", AROUND, shell)


async def test_an_argument_that_would_end_a_commands_own_quotes_is_refused():
    shell = Shell()
    with pytest.raises(ToolError, match="quotes of its own"):
        await text('!`grep "$0" x`', '"$(touch pwned)"', shell)
    with pytest.raises(ToolError, match="quotes of its own"):
        await text("!`echo $0`", '";x"', shell, shell="powershell")
    assert shell.ran == []


async def test_arguments_never_bring_a_command():
    shell = Shell()
    assert await text("Do $ARGUMENTS", "!`id`", shell) == "Do !`id`"
    assert shell.ran == []


@given(st.text(st.sampled_from("ab-;|&$(){}<>*?!~# \t\n'\"\\`é"), max_size=30))
async def test_whatever_the_argument_is_the_shell_reads_it_as_given(argument):
    """Either it is refused, or the words of the command are the words of the argument."""
    shell = Shell("")
    try:
        await text("!`show $ARGUMENTS`", argument, shell)
    except ToolError:
        return
    (ran,) = shell.ran
    try:
        words = shlex.split(argument.strip())
    except ValueError:
        words = argument.split()
    assert shlex.split(ran, comments=False)[1:] == [word.encode("utf-8", "replace").decode() for word in words]


async def test_nothing_of_the_skill_is_given_out_where_its_command_fails_or_may_not_run():
    async def fails(command, skill):
        await at_once(None)
        raise ToolError("exit code 1: no such thing")

    with pytest.raises(ToolError, match=r"c was not loaded: its command 'x' did not run to its end: exit code 1"):
        await text("!`x`", "", fails)
    with pytest.raises(ToolError, match="nothing here can run them"):
        await text("!`x`")
    shell = Shell()
    with pytest.raises(ToolError, match="trust"):
        await text("!`x`", "", shell, trusted=False)
    assert shell.ran == []


async def test_where_the_policy_forbids_commands_they_are_named_as_such_but_ours_run():
    off = replace(AROUND, commands_off=True)
    assert await text("a !`x` b", "", None, off) == "a [shell command execution disabled by policy] b"
    skill = replace(command_file("!`x`"), source="shipped")
    assert (await render(skill, "", off, Shell())).text == "<1>"


async def test_a_long_output_is_cut_in_the_middle():
    assert "characters left out" in await text("!`x`", "", Shell("y" * 100_000))


async def test_what_a_skill_brings_is_handed_out_with_its_variables_filled_in():
    hooks = {"Stop": ({"hooks": [{"type": "command", "command": "x", "once": True}]},)}
    skill = Skill(
        "s", "skill", "user", Path("/skills/s/SKILL.md"), "Go.", allowed_tools=("Bash(${CLAUDE_SKILL_DIR}/a.sh *)", "Read"),
        disallowed_tools=("Write",), model="haiku", effort="low", context="fork", agent="Explore", background=False, hooks=hooks,
    )  # fmt: skip
    one = await render(skill, "x", AROUND)
    assert one.text == "Base directory for this skill: /skills/s\n\nGo.\n\nARGUMENTS: x"
    assert (one.allow, one.deny) == (("Bash(/skills/s/a.sh *)", "Read"), ("Write",))
    assert (one.model, one.effort, one.fork, one.agent, one.background) == ("haiku", "low", True, "Explore", False)
    assert one.hooks == hooks
    untrusted = await render(replace(skill, source="project", trusted=False, model="inherit"), "", AROUND)
    assert (untrusted.allow, untrusted.hooks, untrusted.deny, untrusted.model) == ((), {}, ("Write",), "")


def test_after_a_compaction_the_last_call_of_each_skill_is_attached_again_newest_first():
    first, second, again = (
        Invocation(name, text) for name, text in (("a", "early"), ("b", "x" * 30_000), ("a", "new"))
    )
    said = attached_again([first, second, again])
    assert said.index("## Skill a") < said.index("## Skill b")
    assert "new" in said
    assert "early" not in said
    assert len(said) < 21_000
    assert attached_again([]) == ""
    assert attached_again([Invocation("f", "t", fork=True)]) == ""
