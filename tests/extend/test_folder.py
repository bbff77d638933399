"""A folder prepared for Claude Code, as a whole: one question, then everything in it works."""

from __future__ import annotations

import json

import pytest

from nbagent.extend.folder import FolderFiles, Wishes
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
    opening = await files.opening(ENV)
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
    assert "My own words" in await files.opening(ENV)
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
    assert "Use metres." in await again.opening(ENV)


async def test_notes_are_told_at_the_start_unless_they_are_switched_off(rig, tmp_path):
    files = FolderFiles(rig.places)
    files.memory.add("Prices are net.")
    assert "Prices are net." in await files.opening(ENV)
    assert "Prices are net." not in await FolderFiles(rig.places, Wishes(memory=False)).opening(ENV)
    elsewhere = FolderFiles(rig.places, Wishes(memory_folder=tmp_path / "notes"))
    assert elsewhere.memory.folder == tmp_path / "notes" / "memories"


async def test_changes_of_the_project_are_told_once(rig):
    files = FolderFiles(rig.places)
    await files.opening(ENV)
    assert await files.news(ENV) == ""
    rig.write("work/new.csv", "x")
    assert "new.csv" in await files.news(ENV)
    assert await files.news(ENV) == ""


def test_what_is_touched_brings_its_instructions_and_skills(rig):
    rig.write("work/sub/CLAUDE.md", "In here: feet.")
    rig.skill("work/sub/.claude/skills/feet", description="About feet")
    files = FolderFiles(rig.places)
    files.load()
    said = files.touched(rig.folder / "sub/a.csv")
    assert "In here: feet." in said
    assert "- feet: About feet" in said
    assert files.touched(rig.folder / "sub/b.csv") == ""


def test_a_person_sees_what_was_found(rig):
    files = FolderFiles(rig.places)
    files.load()
    for words in (
        "CLAUDE.md",
        "go, notebook-clean-up, report (not trusted)",
        "not answered yet",
        "hook Stop",
        "MCP server db",
        "private.md",
    ):
        assert words in files.report
