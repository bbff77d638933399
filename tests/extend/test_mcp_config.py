"""Which MCP servers there are: files of this person, of the project, of Claude Code; variables; what trust is bound to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbagent.core.errors import ConfigError
from nbagent.extend.mcp_config import Files, ServerSpec, find
from nbagent.extend.mcp_edit import drop, put, switch


@pytest.fixture
def files(tmp_path):
    project = tmp_path / "work" / "project"
    (project / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return Files(project, tmp_path / "own" / "mcp.json", tmp_path / "home" / ".claude.json")


def write(path: Path, data) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data), "utf-8")


def at(url: str) -> dict:
    return {"type": "http", "url": url}


def test_local_wins_over_project_and_project_over_user(files):
    here = str(files.folder)
    write(files.claude, {"mcpServers": {"a": at("http://user"), "b": at("http://user"), "c": at("http://user")},
                         "projects": {here: {"mcpServers": {"a": at("http://local")}}}})  # fmt: skip
    write(files.folder / ".mcp.json", {"mcpServers": {"a": at("http://project"), "b": at("http://project")}})
    found = find(files)
    assert {name: spec.config["url"] for name, spec in found.specs.items()} == {
        "a": "http://local", "b": "http://project", "c": "http://user"}  # fmt: skip
    assert {name: spec.scope for name, spec in found.specs.items()} == {"a": "local", "b": "project", "c": "user"}


def test_the_persons_own_server_is_known_under_a_projects_of_the_same_name(files):
    write(files.own, {"mcpServers": {"a": at("http://mine"), "b": at("http://mine")}})
    write(files.folder / ".mcp.json", {"mcpServers": {"a": at("http://theirs")}})
    found = find(files)
    assert found.specs["a"].config["url"] == "http://theirs"
    assert {name: spec.config["url"] for name, spec in found.under.items()} == {"a": "http://mine"}


def test_our_own_file_wins_over_claudes_and_the_nearest_project_file_over_those_above(files):
    write(files.claude, {"mcpServers": {"a": at("http://claude")}})
    write(files.own, {"mcpServers": {"a": at("http://own")}})
    write(files.folder / ".mcp.json", {"mcpServers": {"b": at("http://top")}})
    inner = Files(files.folder / "inner", files.own, files.claude)
    write(inner.folder / ".nbagent" / "mcp.json", {"mcpServers": {"b": at("http://near")}})
    assert find(inner).specs["a"].config["url"] == "http://own"
    assert find(inner).specs["b"].config["url"] == "http://near"
    assert find(inner).specs["b"].folder == inner.folder


def test_files_above_the_repository_do_not_count(files):
    write(files.folder.parent / ".mcp.json", {"mcpServers": {"evil": at("http://evil")}})
    assert "evil" not in find(files).specs


def test_a_table_that_came_with_the_project_stays_the_projects(files):
    tables = [("user", "mine.toml", {"a": at("http://mine")}), ("project", "settings.json", {"a": at("http://theirs")})]
    found = find(files, tables)
    assert (found.specs["a"].scope, found.specs["a"].source) == ("project", "settings.json")


@pytest.mark.parametrize("broken", ["{", "[]", '{"mcpServers": []}', '{"mcpServers": {"x": 1}}', '"' + "[" * 9000])
def test_a_broken_file_takes_nothing_away_from_the_others_and_is_named(files, broken):
    write(files.own, {"mcpServers": {"a": at("http://own")}})
    write(files.folder / ".mcp.json", broken)
    found = find(files)
    assert set(found.specs) == {"a"}
    assert len(found.problems) == 1
    assert ".mcp.json" in found.problems[0]


def test_what_the_person_switched_off_in_claude_code_or_here_is_off(files):
    here = str(files.folder)
    write(files.claude, {"projects": {here: {"disabledMcpjsonServers": ["a"], "disabledMcpServers": ["b"]}}})
    switch(files, "c", on=False)
    switch(files, "d", on=False)
    switch(files, "d", on=True)
    assert find(files).disabled == {"a", "b", "c"}


def spec(tmp_path, **config) -> ServerSpec:
    return ServerSpec("s", "project", "here", config, tmp_path)


def test_variables_are_filled_in_everywhere_and_defaults_where_there_are_none(tmp_path):
    launch = spec(
        tmp_path,
        command="${TOOL}",
        args=["--key=${KEY}", "${NONE:-fallback}", "${EMPTY:-x}"],
        env={"T": "${KEY}-${KEY}"},
    ).launch({"TOOL": "run", "KEY": "k", "EMPTY": ""})
    assert (launch.command, launch.args, launch.env["T"]) == ("run", ("--key=k", "fallback", ""), "k-k")
    remote = spec(tmp_path, type="http", url="https://${HOST:-h}/mcp", headers={"Authorization": "Bearer ${KEY}"})
    launch = remote.launch({"KEY": "k"})
    assert (launch.url, launch.headers) == ("https://h/mcp", {"Authorization": "Bearer k"})
    assert "Bearer" not in remote.line


def test_a_missing_variable_is_named_with_the_fix(tmp_path):
    with pytest.raises(ConfigError, match=r"“s” needs the variable TOKEN, which is not set.*\$\{TOKEN:-default\}"):
        spec(tmp_path, command="x", args=["${TOKEN}"]).launch({})


def test_a_server_gets_no_secrets_of_the_kernel_but_those_that_its_entry_names(tmp_path):
    env = spec(tmp_path, command="x", env={"MINE": "${SECRET}"}).launch(
        {"SECRET": "s", "ANTHROPIC_API_KEY": "sk", "HTTPS_PROXY": "http://proxy"}
    ).env  # fmt: skip
    assert "ANTHROPIC_API_KEY" not in env and "SECRET" not in env
    assert (env["MINE"], env["HTTPS_PROXY"]) == ("s", "http://proxy")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "has no url"),
        ({"type": "stdio"}, "has no command"),
        ({"type": "ws", "url": "ws://x"}, "type 'ws' is not supported"),
        ({"type": "http", "url": "file:///etc/passwd"}, "must begin with http"),
        ({"command": "x", "args": "y"}, "args = 'y' must be a list"),
        ({"command": "x", "env": ["a"]}, "env must be a table"),
        ({"type": "sdk", "name": "x"}, "for servers that Python code hands over"),
    ],
)
def test_a_wrong_entry_is_told_in_a_sentence(tmp_path, config, words):
    with pytest.raises(ConfigError, match=words):
        spec(tmp_path, **config).launch({})


def test_times_are_milliseconds_as_in_claude_code(tmp_path):
    launch = spec(tmp_path, command="x", timeout=5000).launch({"MCP_TIMEOUT": "1500", "MCP_TOOL_TIMEOUT": "9000"})
    assert (launch.start_seconds, launch.call_seconds) == (1.5, 5.0)
    assert spec(tmp_path, command="x").launch({"MCP_TOOL_TIMEOUT": "no"}).call_seconds == 600.0


def test_trust_is_bound_to_the_entry_and_to_the_projects_files_that_it_names(tmp_path):
    program = tmp_path / "server.py"
    program.write_text("one")
    first = spec(tmp_path, command="python", args=["${CLAUDE_PROJECT_DIR}/server.py"])
    before = first.fingerprint
    assert first.files == (program,)
    program.write_text("two")
    assert first.fingerprint != before
    program.write_text("one")
    assert first.fingerprint == before
    assert spec(tmp_path, command="python", args=["./server.py", "-x"]).fingerprint != before
    assert spec(tmp_path, command="python", args=["../../etc/passwd"]).files == ()


def test_what_is_written_down_is_found_again_and_all_else_in_the_file_stays(files):
    write(files.own, {"other": 1, "mcpServers": {"b": at("http://b")}})
    for scope in ("local", "project", "user"):
        put(files, scope, f"in-{scope}", at(f"http://{scope}"))
    found = find(files)
    assert {name: spec.scope for name, spec in found.specs.items()} == {
        "b": "user", "in-user": "user", "in-project": "project", "in-local": "local"}  # fmt: skip
    assert json.loads(files.own.read_text())["other"] == 1
    assert files.own.stat().st_mode & 0o077 == 0, "it may hold tokens"
    assert drop(files, "local", "in-local") == files.own
    assert drop(files, "local", "in-local") is None
    assert "in-local" not in find(files).specs


def test_a_file_that_cannot_be_read_is_not_written_over(files):
    write(files.own, "{ not json")
    with pytest.raises(ConfigError, match="can't be read"):
        put(files, "user", "a", at("http://a"))
    assert files.own.read_text() == "{ not json"
