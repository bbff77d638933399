"""A folder prepared for Claude Code, as a whole: one question, then everything in it works."""

from __future__ import annotations

import dataclasses
import json

import pytest

from nbagent.extend.folder import FolderFiles
from nbagent.extend.wishes import Wishes, read_wishes
from tests.extend.project_rig import Rig

ENV = {"PATH": ""}


@pytest.fixture
def rig(tmp_path):
    rig = Rig(tmp_path)
    rig.write("CLAUDE.md", "Use metres. @docs/style.md @~/private.md")
    rig.write("docs/style.md", "Short names.")
    rig.write("~/private.md", "My own words.")
    rig.write(
        ".claude/settings.json",
        json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./done.sh"}]}]}}),
    )
    rig.skill(".claude/skills/report", "Report.", description="Writes reports", allowed_tools="Bash")
    rig.write(".claude/agents/checker.md", "---\nname: checker\ndescription: Checks\ntools: Read\n---\nCheck.")
    rig.write(".claude/commands/go.md", "Go!")
    rig.write(".mcp.json", json.dumps({"mcpServers": {"db": {"command": "npx"}}}))
    return rig


async def test_one_question_for_the_folder_and_then_all_of_it_is_there(rig):
    files = FolderFiles(rig.places)
    files.load()
    opening = (await files.news(ENV))[0]
    for words in ("Use metres.", "Short names.", "- report: Writes reports", "Python 3."):
        assert words in opening
    assert "My own words" not in opening
    assert "checker" not in files.agents.specs
    assert not files.shelf.get("report").trusted
    doubt = files.doubt
    assert {power.kind for power in doubt.powers} == {"hook", "skill", "agent", "import", "MCP server"}
    files.answer(doubt, yes=True)
    assert files.doubt is None
    assert "checker" in files.agents.specs
    assert files.shelf.get("report").trusted
    assert "My own words" in (await files.news(ENV))[0]
    later = FolderFiles(rig.places)
    later.load()
    assert later.doubt is None
    assert later.problems == ()


async def test_a_no_leaves_everything_inert_and_is_not_asked_again(rig):
    files = FolderFiles(rig.places)
    files.load()
    files.answer(files.doubt, yes=False)
    again = FolderFiles(rig.places)
    again.load()
    assert again.doubt is None
    assert "checker" not in again.agents.specs
    assert not any(again.trust.holds(power) for power in again.powers)
    assert "Use metres." in (await again.news(ENV))[0]


async def test_notes_are_told_at_the_start_unless_they_are_switched_off(rig, tmp_path):
    files = FolderFiles(rig.places)
    files.memory.add("Prices are net.")
    assert "Prices are net." in (await files.news(ENV))[0]
    assert "Prices are net." not in (await FolderFiles(rig.places, Wishes(memory=False)).news(ENV))[0]
    elsewhere = FolderFiles(rig.places, Wishes(memory_folder=tmp_path / "notes"))
    assert elsewhere.memory.folder == tmp_path / "notes" / "memories"


async def test_a_conversation_is_told_once_and_then_what_is_other(rig):
    files = FolderFiles(rig.places)
    files.load()
    files.memory.add("Prices are net.")
    said, state = await files.news(ENV)
    assert (await files.news(ENV, said, state))[0] == ""
    rig.write("work/new.csv", "x")
    rig.write("docs/style.md", "Long names.")
    rig.skill(".claude/skills/plot", description="Plots")
    files.load()
    more, state = await files.news(ENV, said, state)
    assert "new.csv" in more and "Long names." in more and "- plot: Plots" in more
    assert "Use metres." not in more and "Prices are net." not in more and "- report" not in more
    assert (await files.news(ENV, f"{said}\n{more}", state))[0] == ""


async def test_instructions_that_lost_their_end_are_told_again(rig):
    rig.write("CLAUDE.md", "Use metres.\n\nNever feet.")
    files = FolderFiles(rig.places)
    files.load()
    said, state = await files.news(ENV)
    rig.write("CLAUDE.md", "Use metres.")
    files.load()
    assert "Use metres.\n\n# End of CLAUDE.md" in (await files.news(ENV, said, state))[0]


async def test_a_conversation_that_was_compacted_is_told_anew(rig):
    files = FolderFiles(rig.places)
    files.load()
    _, state = await files.news(ENV)
    assert "Use metres." in (await files.news(ENV, "A summary.", state))[0]


def test_what_is_touched_brings_its_instructions_and_skills(rig):
    rig.write("work/sub/CLAUDE.md", "In here: feet.")
    rig.skill("work/sub/.claude/skills/feet", description="About feet")
    files = FolderFiles(rig.places)
    files.load()
    told, skills = files.touched(rig.folder / "sub/a.csv")
    assert "In here: feet." in told.text
    assert "- feet: About feet" in skills
    again, none = files.touched(rig.folder / "sub/b.csv")
    assert (again.text, none) == ("", "")
    assert "In here: feet." in files.touched(rig.folder / "sub/b.csv", files.instructions_anew())[0].text


def test_an_answer_of_another_kernel_counts_at_once(rig):
    here, there = FolderFiles(rig.places), FolderFiles(rig.places)
    here.load()
    there.load()
    there.answer(there.doubt, yes=True)
    here.load()
    assert here.doubt is None
    there.trust.forget()
    here.load()
    assert here.doubt is not None


def test_a_projects_settings_of_files_only_narrow_and_the_persons_own_decide(rig):
    rig.write(
        "~/.claude/settings.json", json.dumps({"skillOverrides": {"a": "off", "b": "on"}, "autoMemoryDirectory": "~/n"})
    )
    ours = {"skillOverrides": {"a": "on", "b": "name-only"}, "autoMemoryDirectory": "/tmp/x", "claudeMdExcludes": ["x"]}
    rig.write(".claude/settings.json", json.dumps({**ours, "disableSkillShellExecution": True}))
    found = read_wishes(rig.places, {})
    assert found.overrides == {"a": "off", "b": "name-only"}
    assert (found.memory_folder, found.excludes, found.commands_off) == (rig.home / "n", ("x",), True)
    assert found.memory
    assert not read_wishes(rig.places, {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}).memory
    rig.write(".claude/settings.local.json", json.dumps({"autoMemoryEnabled": False}))
    assert not read_wishes(rig.places, {}).memory


def test_settings_that_nothing_here_reads_are_named_and_not_asked_about(rig):
    rig.write(".claude/settings.local.json", json.dumps({"statusLine": {"command": "x"}, "env": {"A": "1"}}))
    files = FolderFiles(rig.places)
    files.load()
    assert not [power for power in files.powers if power.kind == "setting"]
    assert (
        "no effect here: env (.claude/settings.local.json), statusLine (.claude/settings.local.json)." in files.answered
    )


def test_a_person_sees_what_was_found(rig):
    files = FolderFiles(rig.places)
    files.load()
    for words in (
        "CLAUDE.md",
        "go, notebook-clean-up, report (not trusted)",
        "have not said yet",
        "hook Stop",
        "MCP server db",
        "private.md",
    ):
        assert words in files.report


def test_a_project_leaves_out_neither_the_persons_instructions_nor_the_administrators(rig, tmp_path):
    """Row 110: what a project's files take away from the person's own guards is wider, not narrower."""
    rig.write("~/.claude/CLAUDE.md", "Never touch production.")
    places = dataclasses.replace(rig.places, managed=tmp_path / "managed")
    places.managed.mkdir()
    (places.managed / "CLAUDE.md").write_text("Ask the office.")

    def told() -> str:
        files = FolderFiles(places, lambda: read_wishes(places, {}))
        files.load()
        return files.told.text

    rig.write(".claude/settings.json", json.dumps({"claudeMdExcludes": ["**/*.md"]}))
    assert "Never touch production." in told() and "Ask the office." in told()
    assert "Use metres." not in told()
    rig.write("~/.claude/settings.json", json.dumps({"claudeMdExcludes": ["**/*.md"]}))
    assert "Never touch production." not in told() and "Ask the office." in told()


_HOOKED = """---
name: {name}
description: d
hooks:
  PreToolUse:
    - hooks:
        - type: command
          command: python tools/guard.py
---
Words.
"""


@pytest.mark.parametrize("file", ["skills/s/SKILL.md", "commands/s.md", "agents/s.md"])
def test_the_script_of_a_hook_that_a_skill_or_an_agent_brings_counts_with_it(tmp_path, file):
    """Row 110: trust is bound to what would run."""
    rig = Rig(tmp_path)
    rig.write(f".claude/{file}", _HOOKED.format(name="s"))
    rig.write("tools/guard.py", "one")
    files = FolderFiles(rig.places)
    files.load()
    assert "runs `python tools/guard.py`" in files.doubt.text
    files.answer(files.doubt, yes=True)
    assert files.doubt is None
    rig.write("tools/guard.py", "two")
    files.load()
    assert len(files.doubt.changed) == 1
