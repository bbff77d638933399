"""The one question about a folder's own files: before a run, by `%agent trust`, and in a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from typer.testing import CliRunner

from nbagent.app.extension import Extension
from nbagent.app.place import Place
from nbagent.app.reports import command
from nbagent.app.trusting import NOT_NOW, TRUST, asked
from nbagent.cli import app
from nbagent.core.errors import ConfigError
from nbagent.core.events import Event, Noted, QuestionAnswered, QuestionAsked
from nbagent.core.policy import Mode
from tests.core.rig import Person


class Folder:
    """A project with files for Claude Code, and runs that ask about them."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell, self.events = shell, list[Event]()
        self.extension = Extension(shell)
        self.settings = self.extension.folder / ".claude" / "settings.json"

    def show(self, event: Event) -> None:
        self.events.append(event)

    def write(self, command: str = "guard.sh", **permissions: object) -> None:
        self.settings.parent.mkdir(parents=True, exist_ok=True)
        hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]}
        self.settings.write_text(json.dumps({"hooks": hooks, "permissions": permissions}))

    async def run(self, *replies: str, present: bool = True) -> bool:
        self.events.clear()
        person = Person(replies=replies, present=present)

        async def nothing(_: int) -> None:
            pass

        return await asked(self.extension, Place(self, person, None, nothing))

    @property
    def questions(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, QuestionAsked)]

    @property
    def notes(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Noted)]

    async def say(self, line: str) -> str:
        said = command(self.extension, line)
        return said if isinstance(said, str) else await said


@pytest.fixture
def folder(shell, at_home) -> Folder:
    return Folder(shell)


async def test_a_folder_without_powers_is_not_asked_about(folder):
    assert not await folder.run()
    assert folder.events == []


async def test_what_would_become_active_is_asked_once_and_then_counts(folder):
    """Row 110: ignored until trusted; trust bound to the content."""
    folder.write(allow=["Bash(make *)"], defaultMode="acceptEdits")
    assert folder.extension.settings().mode is Mode.DEFAULT
    assert await folder.run(TRUST)
    (question,) = folder.questions
    for words in (
        "runs `guard.sh`",
        "allows Bash(make *) without asking",
        'sets "acceptEdits"',
        ".claude/settings.json",
    ):
        assert words in question
    settings = folder.extension.settings()
    assert settings.mode is Mode.ACCEPT_EDITS
    assert [str(rule) for rule in settings.policy().rules] == ["Bash(make *)"]
    assert len(folder.extension.hooks.look().hooks) == 1
    assert not await folder.run()
    assert folder.events == []
    folder.write("other.sh", allow=["Bash(make *)"], defaultMode="acceptEdits")
    assert folder.extension.hooks.look().hooks == ()
    assert await folder.run(TRUST)
    assert "Changed or new in files that you said yes to:\n- hook PreToolUse on Bash" in folder.questions[0]
    assert "make" not in folder.questions[0]


async def test_not_now_holds_in_this_kernel_and_leaves_all_of_it_out(folder):
    folder.write()
    assert not await folder.run("perhaps", NOT_NOW)
    assert folder.questions[1].startswith("“perhaps” is none of the choices")
    assert folder.extension.hooks.look().hooks == ()
    assert not await folder.run()
    assert folder.events == []
    folder.extension = Extension(folder.shell)
    assert await folder.run("Trust these files")
    assert isinstance(folder.events[-1], QuestionAnswered)


async def test_where_nobody_is_there_nothing_is_trusted_and_one_sentence_says_so(folder):
    folder.write(allow=["Bash"])
    (folder.extension.folder / ".mcp.json").write_text('{"mcpServers": {"db": {"command": "npx"}}}')
    assert not await folder.run(present=False)
    (note,) = folder.notes
    assert "1 hook, 1 rule, 1 MCP server (.claude/settings.json, .mcp.json)" in note
    assert "nbagent trust" in note
    assert not await folder.run(present=False)
    assert folder.notes == []


async def test_what_is_wrong_with_files_is_said_once(folder):
    folder.settings.parent.mkdir(parents=True)
    folder.settings.write_text("{")
    await folder.run()
    assert len(folder.notes) == 1
    assert "line 1 is not JSON" in folder.notes[0]
    await folder.run()
    assert folder.notes == []


@pytest.mark.slow
async def test_the_command_shows_refuses_and_forgets_but_a_cell_alone_never_says_yes(folder):
    folder.write()
    assert "Not used, because you have not said yet" in await folder.say("trust")
    with pytest.raises(ConfigError, match="Say it yourself: nbagent trust"):
        await folder.say("trust yes")
    assert folder.extension.hooks.look().hooks == ()
    assert "1 thing" in await folder.say("trust no")
    assert not await folder.run()
    assert "Not used, because you said no:" in await folder.say("trust")
    assert await folder.say("trust yes") == "Nothing in this folder's files waits for an answer."
    await folder.say("trust forget")
    assert await folder.run(TRUST)
    assert "Used, because you trust it:\n- hook PreToolUse on Bash" in await folder.say("trust")
    with pytest.raises(ConfigError, match="there is no 'maybe'"):
        await folder.say("trust maybe")


def test_a_person_says_yes_in_a_terminal_after_they_saw_it(folder):
    folder.write()
    at: Path = folder.extension.folder
    asks = CliRunner().invoke(app, ["trust", "--folder", str(at)], input="yes\n")
    assert "runs `guard.sh`" in asks.output
    assert "Trusted, as it is now: 1 thing" in asks.output.replace("\n", " ")
    assert len(folder.extension.hooks.look().hooks) == 1
    assert "because you trust it" in CliRunner().invoke(app, ["trust", "show", "--folder", str(at)]).output
    CliRunner().invoke(app, ["trust", "forget", "--folder", str(at)])
    assert folder.extension.hooks.look().hooks == ()
    nobody = CliRunner().invoke(app, ["trust", "--folder", str(at)], input="")
    assert nobody.exit_code == 1
    assert folder.extension.hooks.look().hooks == ()
