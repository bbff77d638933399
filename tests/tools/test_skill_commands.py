"""A skill's commands are decided as calls of the shell are, and asked about before they run."""

from __future__ import annotations

import pytest

from nbagent.core.errors import ToolError
from nbagent.core.policy import Mode, Policy, Rule
from nbagent.extend.skills import Skill
from nbagent.tools import shell
from nbagent.tools.skillcommands import NO, YES, runner
from tests.support.turns import at_once


class Desk:
    """A folder in which a skill's commands run, and a person with one answer."""

    def __init__(self, folder, answer=YES, policy=None, **more):
        self.asked, self.folder = [], folder
        self.skill = Skill("s", "skill", "user", folder / "SKILL.md", "")

        async def ask(question):
            self.asked.append(question)
            return await at_once(answer)

        (tool,) = shell.tools(folder)
        self._run = runner(tool, policy or Policy(), folder, ask, **more)

    async def run(self, command):
        return await self._run(command, self.skill)


async def test_a_command_runs_in_the_folder_once_the_person_said_yes(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    desk = Desk(tmp_path)
    assert await desk.run("cat a.txt; echo \u202e; echo err >&2") == "x\u202e\nerr"
    (question,) = desk.asked
    assert question.choices == (YES, NO)
    assert "The skill s begins with a command" in question.text
    assert "echo ⟨U+202E⟩" in question.text


@pytest.mark.parametrize(
    ("answer", "said"), [(NO, "said no"), ("rather not", "said no: rather not"), ("", "nobody was there")]
)
async def test_without_a_yes_nothing_runs(tmp_path, answer, said):
    with pytest.raises(ToolError, match=said):
        await Desk(tmp_path, answer).run("touch ran")
    assert not (tmp_path / "ran").exists()


async def test_rules_and_the_mode_speak_first(tmp_path):
    denied = Desk(tmp_path, policy=Policy(Mode.BYPASS, (Rule.parse("deny", "shell"),)))
    with pytest.raises(ToolError, match="not allowed"):
        await denied.run("touch ran")
    with pytest.raises(ToolError, match="not allowed"):
        await Desk(tmp_path, policy=Policy(Mode.PLAN)).run("touch ran")
    assert not (tmp_path / "ran").exists()
    allowed = Desk(tmp_path, policy=Policy(Mode.BYPASS))
    assert await allowed.run("echo fine") == "fine"
    assert (denied.asked, allowed.asked) == ([], [])


@pytest.mark.slow
async def test_a_command_that_fails_or_takes_too_long_is_no_output(tmp_path):
    desk = Desk(tmp_path, seconds=0.2)
    with pytest.raises(ToolError, match="exit code 3\nwhy"):
        await desk.run("echo why; exit 3")
    with pytest.raises(ToolError, match=r"stopped after 0\.2 s"):
        await desk.run("sleep 30")
    assert await desk.run("grep nothing /dev/null") == ""
    with pytest.raises(ToolError, match="exit code 2"):
        await desk.run("grep nothing nowhere.txt")


async def test_a_shell_that_is_not_here_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="written for bash"):
        await Desk(tmp_path).run("ls")
