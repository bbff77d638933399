"""Skills are called by the model and by a person, and what they bring is handed on."""

from __future__ import annotations

import pytest

from nbagent.core.errors import ToolError
from nbagent.core.tools import Kind
from nbagent.extend.invoking import Invoker
from nbagent.extend.render import Surroundings
from nbagent.tools import skill as skill_tool
from tests.extend.project_rig import Rig
from tests.support.turns import at_once
from tests.tools.calling import Calling


class Desk:
    """An invoker with everything around it noted."""

    def __init__(self, rig, trust=None, **more):
        self.effects, self.ran, self.forked = [], [], []
        self.invoker = Invoker(
            rig.shelf(trust), Surroundings(rig.project, "s1"), run=self.run, took_effect=self.effects.append, **more
        )
        self.call = Calling(skill_tool.tools(self.invoker))

    async def run(self, command, skill):
        self.ran.append((skill.name, command))
        return await at_once("done")


@pytest.fixture
def rig(tmp_path):
    return Rig(tmp_path)


async def test_the_model_loads_a_skill_and_reads_its_files(rig):
    rig.skill("~/.claude/skills/s", "Do $0, see ref.md", description="d")
    rig.write("~/.claude/skills/s/ref.md", "Reference")
    desk = Desk(rig)
    said = await desk.call.text("skill", skill="s", args="this")
    assert said.endswith("Do this, see ref.md")
    assert await desk.call.text("skill", skill="s", file="ref.md") == "Reference"
    assert [one.skill for one in desk.effects] == ["s"]
    assert desk.call.kind("skill", skill="s") is Kind.READ
    assert desk.call.subject("skill", skill="s", args="a b") == "s a b"


async def test_the_same_text_is_given_once(rig):
    rig.skill("~/.claude/skills/s", "Do $ARGUMENTS", description="d")
    desk = Desk(rig)
    await desk.call.text("skill", skill="s", args="a")
    assert "loaded already" in await desk.call.text("skill", skill="s", args="a")
    assert "Do b" in await desk.call.text("skill", skill="s", args="b")


async def test_a_skill_that_brings_more_than_text_is_asked_about_with_what_it_brings(rig):
    rig.skill(".claude/skills/s", "!`make`", description="d", allowed_tools="Bash(make *)")
    desk = Desk(rig, rig.trusted())
    assert desk.call.kind("skill", skill="s") is Kind.SHELL
    assert desk.call.preview("skill", skill="s").body == "runs `make`; allows Bash(make *) for a turn"
    assert "done" in await desk.call.text("skill", skill="s")
    assert desk.ran == [("s", "make")]
    assert desk.effects[0].allow == ("Bash(make *)",)


async def test_before_trust_a_skill_runs_and_allows_nothing(rig):
    """Row 110: text is read, what runs or widens is inert."""
    rig.skill(".claude/skills/runs", "!`make`", description="d")
    rig.skill(".claude/skills/allows", "Text", description="d", allowed_tools="Bash")
    desk = Desk(rig)
    with pytest.raises(ToolError, match="%agent trust"):
        await desk.call.text("skill", skill="runs")
    assert "Text" in await desk.call.text("skill", skill="allows")
    assert desk.call.kind("skill", skill="allows") is Kind.READ
    assert (desk.ran, [one.allow for one in desk.effects]) == ([], [()])


async def test_a_skill_in_a_context_of_its_own_gives_what_came_out_there(rig):
    rig.skill("~/.claude/skills/s", "Look", description="d", context="fork", agent="Explore")

    async def fork(one, call):
        return await at_once(f"{one.agent} said: fine")

    desk = Desk(rig, fork=fork)
    for _ in range(2):
        assert await desk.call.text("skill", skill="s") == "Explore said: fine"
    assert "Look" in await Desk(rig).call.text("skill", skill="s"), "where nothing can run it, it is read here"


async def test_the_model_gets_a_sentence_for_a_skill_that_is_not_for_it(rig):
    rig.skill("~/.claude/skills/mine", description="d", disable_model_invocation="true")
    desk = Desk(rig)
    with pytest.raises(ToolError, match="Only the person can start 'mine'"):
        await desk.call.text("skill", skill="mine")
    with pytest.raises(ToolError, match="Did you mean 'mine'"):
        await desk.call.text("skill", skill="mina")
    with pytest.raises(ToolError, match="Only the person"):
        await desk.call.text("skill", skill="mine", file="x.md")


async def test_a_person_calls_skills_and_commands_by_name(rig):
    rig.skill("~/.claude/skills/mine", "Mine: $ARGUMENTS", description="d", disable_model_invocation="true")
    rig.write(".claude/commands/fix.md", "Fix $0")
    invoker = Desk(rig).invoker
    (one,) = await invoker.called("mine all of it")
    assert one.text.endswith("Mine: all of it")
    (one,) = await invoker.called("/fix 12")
    assert one.text == "Fix 12"
    one, two = await invoker.called("/mine /fix 12 x")
    assert (one.arguments, two.text) == ("12 x", "Fix 12")
    (one,) = await invoker.called("/fix /etc/passwd")
    assert one.text == "Fix /etc/passwd"
    assert "## Skill mine" in invoker.attached_again()


async def test_a_person_gets_a_sentence_for_what_can_not_be_called(rig):
    rig.skill("~/.claude/skills/models", description="d", user_invocable="false")
    invoker = Desk(rig).invoker
    for line, said in (
        ("models", "for the model only"),
        ("", "Name a skill"),
        ("/", "Name a skill"),
        ("x", "no skill or command"),
    ):
        with pytest.raises(ToolError, match=said):
            await invoker.called(line)


@pytest.mark.parametrize("by", ["model", "person"])
async def test_a_skill_whose_script_was_changed_after_it_was_read_runs_and_allows_nothing(rig, by):
    """Row 110: what the agent has just written must not run because of an older yes."""
    rig.write("tools/report.py", "one")
    rig.skill(".claude/skills/s", "!`python tools/report.py`", description="d", allowed_tools="Bash")
    desk = Desk(rig, rig.trusted())
    rig.write("tools/report.py", "two")
    with pytest.raises(ToolError, match="%agent trust"):
        await (desk.call.text("skill", skill="s") if by == "model" else desk.invoker.called("s"))
    assert (desk.ran, desk.effects) == ([], [])
