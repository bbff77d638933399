"""A folder's files in whole runs: what the model is told, skills and commands that a person or the model calls, notes."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from nbagent.app.cell import run_agent_cell
from nbagent.app.extension import Extension
from nbagent.app.files import RunFiles, said_in
from nbagent.app.reports import command
from nbagent.app.runtools import named_tools
from nbagent.app.sent import requests_of, text_of
from nbagent.core.errors import ConfigError
from nbagent.core.session import NoStore, Session
from nbagent.extend.hooks_python import hook_of

MODEL = "-m scripted:tests.app.file_scripts"


class Folder:
    """A project in a shell, and what its runs were told."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.extension = Extension(shell)
        self.path = self.extension.folder

    def write(self, path: str, text: str) -> Path:
        place = self.path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def trust(self) -> None:
        self.extension.files.load()
        if (doubt := self.extension.files.doubt) is not None:
            self.extension.files.answer(doubt, yes=True)

    async def run(self, prompt: str, script: str = "heard", options: str = "") -> str:
        """Run a cell; return its answer: what the model was told in this run, or what a script says."""
        return (await run_agent_cell(self.extension, f"{MODEL}:{script} {options}", prompt)).text

    async def say(self, line: str) -> str:
        said = command(self.extension, line)
        return said if isinstance(said, str) else await said


@pytest.fixture
def folder(shell, at_home, monkeypatch) -> Folder:
    monkeypatch.setenv("NBAGENT_MODE", "bypass")
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_DISABLE_AUTO_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    return Folder(shell)


# ── what is told ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_the_first_message_has_instructions_skills_notes_and_the_state_and_the_next_only_what_changed(folder):
    folder.write("CLAUDE.md", "Use metres. @docs/style.md")
    folder.write("docs/style.md", "Short names.")
    folder.write(".claude/rules/sql.md", "---\npaths: '*.sql'\n---\nUpper case.")
    folder.write("prices.csv", "a\n1\n")
    folder.extension.files.memory.add("Prices are net.")
    told = await folder.run("hello")
    for words in (
        "Use metres.",
        "Short names.",
        "- exploratory-data-analysis:",
        "Prices are net.",
        "prices.csv (4 bytes)",
    ):
        assert words in told
    assert "Upper case." not in told
    again = await folder.run("and now?")
    assert "Use metres." not in again and "exploratory-data-analysis" not in again and "prices.csv" not in again
    folder.write("CLAUDE.md", "Use feet. @docs/style.md")
    folder.write("more.csv", "x")
    third = await folder.run("and now?")
    assert "Use feet." in third and "data files new: more.csv" in third
    assert "Short names." not in third
    assert "Use feet." in await folder.run("anew", options="--new")


@pytest.mark.slow
async def test_a_file_that_is_read_brings_the_rules_and_skills_for_it_once(folder):
    folder.write("sub/CLAUDE.md", "In here: feet.")
    folder.write(".claude/rules/sql.md", "---\npaths: '**/*.sql'\n---\nUpper case.")
    folder.write("sub/q.sql", "select 1")
    said = await folder.run("look", "reads_twice")
    first, second = said.split("=====")
    assert "In here: feet." in first and "Upper case." in first
    assert "In here: feet." not in second and "Upper case." not in second
    later = await folder.run("look", "reads_twice")
    assert "In here: feet." not in later


@pytest.mark.slow
async def test_a_subagent_is_told_the_rules_of_what_it_reads_though_its_parent_knows_them(folder):
    folder.write("sub/CLAUDE.md", "In here: feet.")
    folder.write("sub/q.sql", "select 1")
    await folder.run("look", "reads_twice")
    assert "In here: feet." in await folder.run("look", "delegates_reading")


@pytest.mark.slow
async def test_a_dry_run_shows_the_very_request_that_the_cell_then_sends(folder, capsys):
    folder.write("CLAUDE.md", "Use metres. password = 'hunter2-of-the-lake'")
    folder.write("prices.csv", "a\n1\n")
    folder.extension.files.memory.add("Prices are net.")

    async def shown_and_sent(options: str, *words: str) -> None:
        capsys.readouterr()
        await run_agent_cell(folder.extension, f"{MODEL}:heard --dry-run {options}", "What is here?")
        out = capsys.readouterr().out  # a shell that is none of IPython's own prints what is displayed as a dict
        shown = ast.literal_eval(out[out.index("{'text/plain'") :].splitlines()[0])["text/plain"]
        assert [word for word in words if word not in shown] == []
        await folder.run("What is here?", options=options)
        *_, sent = requests_of(folder.extension.last.store.path)
        parts = [text.partition("── system")[2].split() for text in (shown, text_of([replace(sent, new=1)]))]
        assert next((pair for pair in zip(*parts, strict=False) if pair[0] != pair[1]), None) is None
        assert len(parts[0]) == len(parts[1])

    await shown_and_sent(
        "--new", "Use metres.", "Prices are net.", "prices.csv (4 bytes)", "exploratory-data-analysis", "recall"
    )
    folder.write("more.csv", "x")
    await shown_and_sent("", "messages before this run: 2", "data files new: more.csv")
    await shown_and_sent("--fork --tools list_variables,read_file", "messages before this run: 4", "tools: 2")


@pytest.mark.slow
async def test_instructions_with_a_secret_in_them_are_told_once(folder):
    folder.write("CLAUDE.md", "Use metres. password = 'hunter2-of-the-lake'")
    told = await folder.run("hello")
    assert "Use metres." in told and "hunter2" not in told
    assert "Use metres." not in await folder.run("and now?")


@pytest.mark.slow
async def test_a_skill_that_a_subagent_loaded_is_not_told_to_its_parent_later(folder):
    folder.write(".claude/skills/deep/SKILL.md", "---\ndescription: x\n---\nLook very deep.")
    said = await folder.run("look", "delegates_a_skill")
    assert "Look very deep." in said
    assert folder.extension.last.called == []
    assert "Look very deep." not in await folder.run("and now?")


# ── called by a person ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_a_command_is_called_with_its_arguments_from_a_cell_and_from_a_line(folder):
    folder.write(".claude/commands/data/check.md", "---\nargument-hint: FILE\n---\nCheck $0 for $1.")
    told = await folder.run("/data:check prices.csv gaps\nand holes")
    assert (
        "The person called /data:check prices.csv gaps\nand holes. Follow it now:\n\nCheck prices.csv for gaps." in told
    )
    folder.extension.choose(model="scripted:tests.app.file_scripts:heard")
    await folder.say("/check sales.csv zeros")
    await folder.say("skill check prices.csv x")
    said = said_in(folder.extension.last.session.transcript)
    assert "Check sales.csv for zeros." in said and "Check prices.csv for x." in said
    assert "data:check FILE  (command, project) .claude/commands/data/check.md" in await folder.say("skill")


@pytest.mark.slow
async def test_a_prompt_that_begins_with_a_path_is_a_prompt_and_an_unknown_name_after_agent_is_refused(folder):
    folder.write(".claude/commands/check.md", "Check.")
    assert "/tmp/prices.csv has gaps?" in await folder.run("/tmp/prices.csv has gaps?")
    with pytest.raises(ConfigError, match="Did you mean 'check'"):
        await folder.say("/chek it")
    folder.write(".claude/skills/own/SKILL.md", "---\nuser-invocable: false\n---\nx")
    with pytest.raises(ConfigError, match="own is for the model only"):
        await folder.run("/own")
    with pytest.raises(ConfigError, match="There is no prompt '/mcp__db__ask' of an MCP server"):
        await folder.run("/mcp__db__ask")


@pytest.mark.slow
async def test_what_a_command_allows_and_runs_waits_for_trust_and_then_holds_for_one_run(folder, monkeypatch):
    """Row 110."""
    monkeypatch.setenv("NBAGENT_MODE", "default")
    folder.write(
        ".claude/commands/go.md",
        "---\nallowed-tools: Bash(echo *), Bash(touch made.txt)\nmodel: scripted:os:x\n---\nBranch: !`echo main`\nGo on.",
    )
    with pytest.raises(ConfigError, match="the person has not said that the files of this folder are to be trusted"):
        await folder.run("/go")
    folder.trust()
    told = await folder.run("/go", "touches")
    assert "Branch: main\nGo on." in said_in(folder.extension.last.session.transcript)
    assert (folder.path / "made.txt").exists(), told
    (folder.path / "made.txt").unlink()
    await folder.run("and again", "touches")
    assert not (folder.path / "made.txt").exists()
    folder.write(".claude/commands/go.md", "---\nallowed-tools: Bash\n---\nBranch: !`touch made.txt`")
    with pytest.raises(ConfigError, match="go was not loaded"):
        await folder.run("/go")
    assert not (folder.path / "made.txt").exists()


@pytest.mark.slow
async def test_the_hooks_of_a_skill_count_from_its_call_to_the_end_of_the_session_once_where_it_says_so(folder):
    log = folder.path / "log.txt"
    hooks = "".join(
        f"    - matcher: Bash\n      hooks:\n        - type: command\n          command: echo {word} >> {log}\n{once}"
        for word, once in (("each", ""), ("first", "          once: true\n"))
    )
    folder.write(
        ".claude/skills/guarded/SKILL.md", f"---\ndescription: x\nhooks:\n  PreToolUse:\n{hooks}---\nBe careful."
    )
    folder.trust()
    await folder.run("hello", "touches")
    assert not log.exists()
    await folder.run("/guarded", "touches")
    await folder.run("and again", "touches")
    assert sorted(log.read_text().split()) == ["each", "each", "first"]
    await folder.run("anew", "touches", "--new")
    assert len(log.read_text().split()) == 3


@pytest.mark.slow
async def test_hooks_hear_of_a_skills_command_without_the_secret_in_it(folder):
    heard: list[dict] = []
    folder.extension.hooks.register(hook_of(heard.append, "PreToolUse"))
    await folder.run("hello")
    folder.write(
        ".claude/commands/go.md", "---\nallowed-tools: Bash\n---\n!`echo --password hunter2-of-the-lake > made.txt`"
    )
    folder.trust()
    await folder.run("/go")
    (told,) = [one["tool_input"]["command"] for one in heard]
    assert "hunter2" not in told and "⟦secret:" in told
    assert "hunter2-of-the-lake" in (folder.path / "made.txt").read_text()


@pytest.mark.slow
async def test_a_hook_of_a_skill_that_a_subagent_loaded_opens_nothing_for_its_parent(folder, monkeypatch):
    monkeypatch.setenv("NBAGENT_MODE", "default")
    yes = """{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}"""
    command = f"          command: |-\n            echo '{yes}'\n"
    handler = f"    - matcher: Bash\n      hooks:\n        - type: command\n{command}"
    folder.write(
        ".claude/skills/guarded/SKILL.md", f"---\ndescription: x\nhooks:\n  PreToolUse:\n{handler}---\nBe careful."
    )
    folder.write("../.claude/settings.json", json.dumps({"permissions": {"allow": ["Skill"]}}))
    folder.trust()
    said = await folder.run("guard", "delegates_then_touches")
    assert "Be careful." in said and not (folder.path / "made.txt").exists(), said
    await folder.run("/guarded", "touches")
    assert (folder.path / "made.txt").exists(), "the person's own call of it may"


@pytest.mark.slow
async def test_a_skill_of_its_own_context_answers_from_a_subagent_and_the_conversation_hears_of_it(folder):
    folder.write(
        ".claude/skills/deep/SKILL.md",
        "---\ndescription: x\ncontext: fork\nagent: Explore\ndisable-model-invocation: true\n---\nLook deep at $0.",
    )
    await folder.run("hello")
    before = folder.extension.last
    told = await folder.run("/deep prices", "task_of")
    assert "Look deep at prices." in told
    assert folder.extension.last is before
    assert "The person called /deep prices. It ran in a context of its own and came out with:" in await folder.run(
        "and?"
    )


@pytest.mark.slow
async def test_the_model_of_a_skill_is_the_run_s_unless_the_cell_names_one(folder):
    home = folder.path.parent
    skill = home / ".claude" / "skills" / "big" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nmodel: scripted:tests.app.file_scripts:other\n---\nThink.")
    assert (await run_agent_cell(folder.extension, "", "/big")).text == "the other model"
    assert "Think." in await folder.run("/big")


# ── called by the model ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_the_model_loads_a_skill_and_one_of_its_files_and_not_one_that_is_for_people(folder):
    folder.write(".claude/skills/report/SKILL.md", "---\ndescription: Reports\n---\nBegin with a title. See style.md")
    folder.write(".claude/skills/report/style.md", "Blue.")
    folder.write(".claude/skills/deploy/SKILL.md", "---\ndisable-model-invocation: true\n---\nDeploy.")
    said = await folder.run("make a report", "loads")
    assert f"Base directory for this skill: {folder.path}/.claude/skills/report\n\nBegin with a title." in said
    assert "Blue." in said
    assert "Only the person can start 'deploy' (%agent skill deploy)" in said
    assert [one.skill for one in folder.extension.last.called] == ["report"]


@pytest.mark.slow
async def test_a_skill_that_the_model_loads_changes_the_model_for_the_rest_of_the_run_only(folder):
    skill = folder.path.parent / ".claude" / "skills" / "report" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: x\nmodel: scripted:tests.app.file_scripts:other\n---\nThink.")
    assert await folder.run("report", "loads_then_touches") == "the other model"
    assert "</context>" not in await folder.run("and again")


@pytest.mark.slow
async def test_after_a_conversation_was_summed_up_instructions_state_and_called_skills_are_told_anew_once(folder):
    folder.write("CLAUDE.md", "Use metres.")
    folder.write(".claude/commands/check.md", "Check it.")
    await folder.run("/check")
    assert "Check it." not in await folder.run("and now?")
    conversation = folder.extension.last
    old = conversation.session
    conversation.goes_on_in(Session("next", system=old.system, tools=old.tools, store=NoStore()))
    told = await folder.run("go on")
    assert "Use metres." in told and "## Skill check\n\nCheck it." in told and "- environment: Python" in told
    assert "Check it." not in await folder.run("and now?")


@pytest.mark.slow
async def test_what_a_skill_brings_is_asked_about_when_the_model_loads_it(folder, monkeypatch):
    monkeypatch.setenv("NBAGENT_MODE", "default")
    folder.write(
        ".claude/skills/report/SKILL.md", "---\ndescription: x\nallowed-tools: Bash(touch made.txt)\n---\nText."
    )
    folder.trust()
    said = await folder.run("make a report", "loads_then_touches")
    assert "Nobody is there to approve this" in said
    assert not (folder.path / "made.txt").exists()


@pytest.mark.slow
async def test_a_subagent_s_skill_widens_nothing(folder, monkeypatch):
    monkeypatch.setenv("NBAGENT_ALLOW", "skill")
    monkeypatch.setenv("NBAGENT_MODE", "default")
    folder.write(
        ".claude/skills/report/SKILL.md", "---\ndescription: x\nallowed-tools: Bash(touch made.txt)\n---\nText."
    )
    folder.trust()
    await folder.run("go", "child_loads_then_touches")
    assert not (folder.path / "made.txt").exists()
    await folder.run("go", "loads_then_touches")
    assert (folder.path / "made.txt").exists()


# ── notes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_a_note_that_is_kept_is_told_in_the_next_session_shown_forgotten_and_switched_off(folder):
    await folder.run("remember it", "remembers")
    assert "Prices are net." in await folder.run("hello", options="--new")
    shown = await folder.say("memory")
    assert "- Prices are net." in shown and str(folder.extension.files.memory.folder / "MEMORY.md") in shown
    assert "Notes on this project" in shown and "%agent memory TOPIC" in shown
    assert "recall" not in shown and "you kept" not in shown, "that is said to the model"
    assert "Odd codes." in await folder.say("memory codes")
    assert await folder.say("memory forget codes") == f"removed codes.md in {folder.extension.files.memory.folder}."
    with pytest.raises(ConfigError, match="there are no notes in"):
        await folder.say("memory codes")
    assert {"remember", "recall", "skill"} <= set(named_tools(folder.extension))
    assert "Notes are switched off" in await folder.say("memory off")
    assert json.loads((folder.extension.files.places.own / "settings.json").read_text()) == {"autoMemoryEnabled": False}
    assert "Prices are net." not in await folder.run("hello", options="--new")
    assert "remember" not in set(named_tools(folder.extension))
    assert "%agent memory on" in await folder.say("memory")
    await folder.say("memory on")
    assert "Prices are net." in await folder.run("hello", options="--new")


async def test_memory_off_never_spoils_a_settings_file_that_it_can_t_read(folder):
    own = folder.extension.files.places.own / "settings.json"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text("{")
    with pytest.raises(ConfigError, match="nothing was written into it"):
        await folder.say("memory off")
    assert own.read_text() == "{"


def test_without_a_run_the_tools_of_files_can_be_named(folder):
    assert [tool.name for tool in RunFiles(folder.extension).tools] == ["skill", "remember", "recall"]
    assert "→ allow" in command(folder.extension, "rules skill exploratory-data-analysis")
