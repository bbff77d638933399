"""`%agent mcp`: what it lists, adds, removes and switches, and what waits for trust."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from nbagent.app.mcp import command, found_in, ready, servers_of
from nbagent.core.errors import ConfigError
from nbagent.extend.places import Places
from nbagent.extend.survey import survey
from nbagent.extend.trust import Trust
from tests.extend.mcp_rig import SCRIPT


@pytest.fixture
async def extension(tmp_path, monkeypatch):
    """As much of an extension as `%agent mcp` uses, with a home and settings of its own."""
    for name, folder in (("HOME", "home"), ("XDG_CONFIG_HOME", "settings")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    made = SimpleNamespace(folder=folder, mcp=servers_of(folder))
    yield made
    await made.mcp.close()


START = f"{sys.executable} {SCRIPT}"


async def test_without_servers_it_says_how_to_add_one(extension):
    assert "There are no MCP servers" in await command(extension, "")
    assert "%agent mcp add NAME COMMAND" in await command(extension, "list")


@pytest.mark.slow
async def test_a_program_that_is_added_starts_and_is_listed(extension):
    said = await command(extension, f"add s -e KEY=value {START}")
    assert "s  connected, 23 tools  (local: " in said
    assert found_in(extension.folder).specs["s"].config["env"] == {"KEY": "value"}
    status = await command(extension, "status s")
    for line in ("tool         echo (reads) Say it again.", "tool         write (asks first)", "prompt       /mcp__s__greet who [how]",
                 "resources    1, and 1", "says of itself  Use echo first.", "protocol 2025-06-18"):  # fmt: skip
        assert line in status
    assert "s  connected" in await command(extension, "restart s")
    assert "“s” was taken out of" in await command(extension, "remove s")
    assert "There are no MCP servers" in await command(extension, "")


async def test_options_of_the_command_itself_stay_its_own(extension):
    await command(extension, "add --scope user x -- no-such-program -e --scope project")
    spec = found_in(extension.folder).specs["x"]
    assert (spec.scope, spec.config["args"]) == ("user", ["-e", "--scope", "project"])


@pytest.mark.slow
async def test_an_address_is_a_server_on_the_network(extension):
    said = await command(
        extension, 'add net --transport sse --header "Authorization: Bearer ${TOKEN:-none}" http://127.0.0.1:9/sse'
    )
    assert "net  failed" in said and "Bearer" not in said
    assert found_in(extension.folder).specs["net"].config == {
        "type": "sse", "url": "http://127.0.0.1:9/sse", "headers": {"Authorization": "Bearer ${TOKEN:-none}"}}  # fmt: skip


async def test_an_entry_is_taken_as_json(extension):
    await command(extension, "add-json j '" + json.dumps({"command": "no-such-program"}) + "'")
    assert found_in(extension.folder).specs["j"].config == {"command": "no-such-program"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ad x y", "there is no 'ad'"),
        ("add x", "needs a name, and a command"),
        ("add --scope everywhere x y", "no scope 'everywhere'"),
        ("add -e KEY x y", "not written as -e KEY=VALUE"),
        ("add a/b y", "no name of a server"),
        ("add --transport http x y", "needs an address"),
        ("add x 'y", "No closing quotation"),
        ("add x ${NOT_SET_ANYWHERE}", "needs the variable NOT_SET_ANYWHERE"),
        ("add-json x {", "is not JSON"),
        ("remove nope", "has written no MCP server “nope”"),
        ("restart nope", "There is no MCP server “nope”"),
        ("status nope", "There is no MCP server “nope”"),
        ("disable nope", "There is no MCP server “nope”"),
    ],
)
async def test_a_wrong_line_is_told_with_the_fix(extension, line, words):
    with pytest.raises(ConfigError, match=words):
        await command(extension, line)


@pytest.mark.slow
async def test_a_server_that_is_switched_off_does_not_start(extension):
    await command(extension, f"add s {START}")
    assert "switched off" in await command(extension, "disable s")
    await extension.mcp.prepare()
    assert extension.mcp.connections == {}
    assert "s  switched off" in await command(extension, "")
    await command(extension, "enable s")
    await extension.mcp.prepare()
    assert "s  connected" in await command(extension, "")


def trust_all(folder) -> None:
    import os

    places = Places.of(folder, os.environ)
    Trust(places.root, places.own / "trust").answer(survey(places).powers, yes=True)


@pytest.mark.slow
async def test_a_projects_server_waits_for_trust_and_again_when_it_changed(extension):
    entry = {"command": sys.executable, "args": ["./server.py"]}
    (extension.folder / "server.py").write_text(SCRIPT.read_text("utf-8"), "utf-8")
    (extension.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": entry}}))
    await extension.mcp.prepare()
    assert extension.mcp.connections == {}
    assert "s  waits for your trust in" in await command(extension, "")
    trust_all(extension.folder)
    await extension.mcp.prepare()
    assert "s  connected" in await command(extension, "")
    (extension.folder / "server.py").write_text("import os; os.remove('everything')")
    await extension.mcp.prepare()
    assert "s  waits for your trust in" in await command(extension, "")


async def test_settings_files_and_the_persons_own_table_name_servers_too(extension, tmp_path):
    (tmp_path / "settings" / "nbagent").mkdir()
    (tmp_path / "settings" / "nbagent" / "config.toml").write_text('[mcp_servers.mine]\ncommand = "x"\n')
    (tmp_path / "home" / ".claude").mkdir()
    (tmp_path / "home" / ".claude" / "settings.json").write_text(
        json.dumps({"mcpServers": {"theirs": {"command": "y"}}})
    )
    (extension.folder / ".claude").mkdir()
    (extension.folder / ".claude" / "settings.json").write_text(
        json.dumps({"mcpServers": {"of-project": {"command": "z"}}, "disabledMcpjsonServers": ["off", "mine"]})
    )
    (extension.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"off": {"command": "w"}}}))
    found = found_in(extension.folder)
    assert {name: spec.scope for name, spec in found.specs.items()} == {
        "mine": "user", "theirs": "user", "of-project": "project", "off": "project"}  # fmt: skip
    assert found.disabled == {"off"}, "a project cannot switch off what is the person's"


@pytest.mark.slow
async def test_before_a_run_servers_start_and_the_person_is_told_of_those_that_do_not(extension):
    await command(extension, f"add s {START}")
    await command(extension, "add gone no-such-program")
    await extension.mcp.close()
    told: list[str] = []
    await ready(extension.mcp, told.append)
    (said,) = [text for text in told if "Waiting" not in text]
    assert said.startswith("The MCP server “gone” does not run: there is no command 'no-such-program'")
    assert "mcp__s__echo" in {tool.name for tool in extension.mcp.tools()}
