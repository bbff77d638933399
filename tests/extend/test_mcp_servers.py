"""MCP servers as processes (a hand-written one that misbehaves) and in memory (the SDK's own)."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.tools import Kind
from nbagent.extend.mcp import Servers
from nbagent.extend.mcp_client import State
from nbagent.extend.mcp_config import Found, ServerSpec
from nbagent.extend.mcp_schema import tool_name
from nbagent.tools.results import scaled_image
from tests.extend.mcp_rig import Heard, named, script, servers, text, use
from tests.support.turns import until


@pytest.fixture
async def one(tmp_path):
    """One server of the script, running; what came in is logged."""
    of = servers(tmp_path, script(tmp_path, "--log", str(tmp_path / "log")))
    await of.prepare()
    yield of
    await of.close()


def log(folder) -> str:
    path = folder / "log"
    return path.read_text("utf-8") if path.exists() else ""


@pytest.mark.slow
async def test_all_pages_of_tools_are_there_under_names_of_their_own(one):
    tools = named(one.tools())
    assert {"mcp__s__echo", "mcp__s__read_file", "mcp__s__environment", "list_mcp_resources"} <= tools.keys()
    assert all(len(name) <= 64 for name in tools)
    assert text(await use(one, "mcp__s__echo", what="grüß 🌦")) == 'echo {"what": "grüß 🌦"}'


@pytest.mark.slow
async def test_a_tool_named_as_one_of_ours_and_arguments_named_as_ours_do_not_collide(one):
    assert text(await use(one, "mcp__s__read_file", what="x")).startswith("read_file")
    assert text(await use(one, "mcp__s__call", call="x", self="y")) == 'call {"call": "x", "self": "y"}'


@pytest.mark.slow
async def test_long_and_foreign_names_reach_the_tool_that_they_belong_to(one):
    long = "a_name_that_is_much_longer_than_the_sixty_four_characters_that_are_allowed"
    for original in (long, f"{long}_too", "größe_ändern", "查询"):
        assert text(await use(one, tool_name("s", original), what="x")).startswith(f"{original} ")


@pytest.mark.slow
async def test_only_what_is_marked_read_only_runs_unasked(one):
    tools = named(one.tools())
    assert tools["mcp__s__echo"].kind({}) is Kind.READ
    assert tools["mcp__s__write"].kind({}) is Kind.MCP


@pytest.mark.slow
async def test_a_schema_with_references_is_shown_checked_and_sent(one):
    tool = named(one.tools())["mcp__s__odd"]
    assert "$ref" in json.dumps(tool.schema)
    size = next(name for name in tool.schema["properties"] if name != "shape")
    result = await use(one, "mcp__s__odd", shape={"radius": 2}, **{size: 3})
    assert json.loads(text(result).partition(" ")[2]) == {"shape": {"radius": 2}, "größe": 3}
    with pytest.raises(ToolError, match=r"wrong arguments for mcp__s__odd: .*Expected, as a JSON schema"):
        await use(one, "mcp__s__odd", shape={"corners": 3})


@pytest.mark.slow
async def test_every_kind_of_content_becomes_a_block_or_a_line(one):
    result = await use(one, "mcp__s__blocks")
    assert [block["type"] for block in result.content] == ["text", "image", "text", "image", "text"]
    said = text(result)
    assert said.startswith("one\ufffd\ntwo"), "half a character does not lose the answer"
    for line in ("not valid base64", "audio of type audio/wav", "link to the resource file:///a.csv", "in a resource",
                 "bytes of type application/pdf", '{"answer": 42}'):  # fmt: skip
        assert line in said


@pytest.mark.slow
async def test_a_tool_that_fails_as_tools_do_is_an_error_result(one):
    result = await use(one, "mcp__s__refuse")
    assert (result.is_error, text(result)) == (True, "no such row")


@pytest.mark.slow
async def test_progress_is_shown_with_its_words(one):
    heard = Heard()
    await use(one, "mcp__s__slow", heard)
    assert heard.progress == ["1 of 2: step 1", "2 of 2: step 2"]


@pytest.mark.slow
async def test_garbage_on_stdout_is_passed_over_and_told(one, capfd):
    assert text(await use(one, "mcp__s__garbage")) == "garbage {}"
    assert any("no message" in line for line in one.connections["s"].lines.last(9))
    assert capfd.readouterr().err == "", "nothing of it is printed into a cell"


@pytest.mark.slow
async def test_thousands_of_blocks_become_one_text_and_twenty_images(one):
    result = await use(one, "mcp__s__many")
    assert [block["type"] for block in result.content] == ["text", *["image"] * 20, "text"]
    assert "30 more images left out" in text(result)


@pytest.mark.slow
async def test_ten_megabytes_arrive_whole(one):
    assert len(text(await use(one, "mcp__s__big"))) == 10_000_000


@pytest.mark.slow
async def test_a_crash_in_mid_call_is_told_not_sent_again_and_the_next_call_starts_the_server_anew(one, tmp_path):
    with pytest.raises(
        ToolError, match=r"ended while this was under way. It may have taken effect, so it was not sent"
    ):
        await use(one, "mcp__s__crash")
    assert log(tmp_path).count('"name":"crash"') == 1
    assert text(await use(one, "mcp__s__echo", what="x")) == 'echo {"what": "x"}'
    assert log(tmp_path).count('"method":"initialize"') == 2
    assert "[ended with exit code 3]" in one.connections["s"].lines.last(9)


@pytest.mark.slow
async def test_calls_side_by_side_after_a_crash_start_the_server_once(one, tmp_path):
    with pytest.raises(ToolError):
        await use(one, "mcp__s__crash")
    await until(lambda: one.connections["s"].state is State.ENDED)
    await asyncio.gather(*(use(one, "mcp__s__echo", what=str(i)) for i in range(4)))
    assert log(tmp_path).count('"method":"initialize"') == 2


@pytest.mark.slow
async def test_a_call_that_is_cancelled_is_cancelled_at_the_server_and_the_next_one_runs(one, tmp_path):
    task = asyncio.create_task(use(one, "mcp__s__hang"))
    await until(lambda: '"name":"hang"' in log(tmp_path))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: "notifications/cancelled" in log(tmp_path))
    assert text(await use(one, "mcp__s__echo", what="x")) == 'echo {"what": "x"}'


@pytest.mark.slow
async def test_a_call_without_an_answer_ends_at_its_time_and_is_cancelled(tmp_path):
    of = servers(tmp_path, script(tmp_path, "--log", str(tmp_path / "log"), timeout=120))
    await of.prepare()
    try:
        with pytest.raises(
            ToolError, match=r"gave no answer for 0.12 s, so it was cancelled. It may have taken effect"
        ):
            await use(of, "mcp__s__hang")
        await until(lambda: "notifications/cancelled" in log(tmp_path))
    finally:
        await of.close()


@pytest.mark.slow
async def test_a_question_of_the_server_goes_to_the_person_and_the_answer_back(one):
    heard = Heard(["red", "2", "Leave it out"])
    result = await use(one, "mcp__s__ask", heard)
    assert json.loads(text(result)) == {"action": "accept", "content": {"color": "red", "count": 2}}
    assert "“s” asks: Which one?⟨U+202E⟩" in heard.questions[0].text


@pytest.mark.slow
async def test_a_question_with_nobody_there_is_cancelled(one):
    assert json.loads(text(await use(one, "mcp__s__ask"))) == {"action": "cancel"}


@pytest.mark.slow
async def test_a_request_for_a_reply_of_the_model_is_refused_plainly(one):
    assert json.loads(text(await use(one, "mcp__s__sample")))["message"] == "Sampling not supported"


@pytest.mark.slow
async def test_the_root_is_the_notebooks_folder(one, tmp_path):
    assert json.loads(text(await use(one, "mcp__s__roots")))["roots"][0]["uri"] == tmp_path.resolve().as_uri()


@pytest.mark.slow
async def test_a_server_runs_in_the_folder_without_the_kernels_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    of = servers(tmp_path, script(tmp_path, env={"MINE": "${ANTHROPIC_API_KEY:-}"[:2] + "USER:-me}"}))
    await of.prepare()
    try:
        found = json.loads(text(await use(of, "mcp__s__environment")))
    finally:
        await of.close()
    assert "ANTHROPIC_API_KEY" not in found
    assert found["CLAUDE_PROJECT_DIR"] == found["cwd"] == str(tmp_path.resolve())


@pytest.mark.slow
async def test_resources_are_listed_and_read_by_tools_and_by_a_persons_words(one):
    listed = text(await use(one, "list_mcp_resources"))
    assert "s: mem://notes  notes (text/plain)" in listed and "mem://{day}" in listed
    assert "read mem://notes" in text(await use(one, "read_mcp_resource", server="s", uri="mem://notes"))
    blocks = await one.attached("Look at @s:mem://notes, and at @other:x://y.")
    assert [block["text"] for block in blocks] == ["[resource mem://notes]\nread mem://notes"]


@pytest.mark.slow
async def test_prompts_are_commands_with_arguments_in_order(one):
    (command,) = one.prompts()
    assert (command.name, command.hint) == ("mcp__s__greet", "who [how]")
    blocks = await one.prompt("/mcp__s__greet", ["Ada", "very", "warmly"])
    assert blocks[0]["text"] == "Greet Ada very warmly.\n[assistant] Hello."
    with pytest.raises(ConfigError, match="needs who: /mcp__s__greet who \\[how\\]"):
        await one.prompt("mcp__s__greet", [])
    with pytest.raises(ConfigError, match="There are: /mcp__s__greet"):
        await one.prompt("nope", [])


@pytest.mark.slow
async def test_a_sessions_tools_stay_as_they_were_and_what_changed_is_told_once(one):
    fixed = [tool.to_param() for tool in one.tools()]
    assert "Use echo first." in "\n".join(one.news("s1", None))
    await use(one, "mcp__s__grow")
    await until(lambda: one.connections["s"].stale)
    await one.prepare()
    now = named(one.tools(fixed))
    assert [tool.to_param() for tool in now.values()] == fixed
    with pytest.raises(ToolError, match="No MCP server offers mcp__s__write now"):
        await now["mcp__s__write"].run(Heard().call(), {})
    news = "\n".join(one.news("s1", fixed))
    assert "tools that this session was begun without: mcp__s__grown" in news
    assert "does not offer these tools any more: mcp__s__write" in news
    assert one.news("s1", fixed) == []
    assert "mcp__s__grown" in named(one.tools())
    assert any("Use echo first." in text for text in one.news("s2", None)), "another session is told too"


@pytest.mark.slow
async def test_a_server_that_is_gone_is_told_and_its_tools_say_so(one):
    fixed = [tool.to_param() for tool in one.tools()]
    one.news("s1", None)
    one._find = servers(one.folder)._find
    await one.prepare()
    tool = named(one.tools(fixed))["mcp__s__echo"]
    with pytest.raises(ToolError, match=r"No MCP server offers mcp__s__echo now. Nothing was sent."):
        await tool.run(Heard().call(), {"what": "x"})
    assert "list_mcp_resources" in named(one.tools(fixed))


@pytest.mark.slow
async def test_what_a_server_complains_of_is_kept_for_status(one):
    await use(one, "mcp__s__complain")
    await until(lambda: one.connections["s"].lines.last(1))
    assert one.connections["s"].lines.last(1) == ["cannot find ⟨U+202E⟩my config"]


@pytest.mark.slow
async def test_servers_start_side_by_side_and_each_failure_has_its_reason(tmp_path):
    of = servers(
        tmp_path,
        script(tmp_path, name="fine"),
        script(tmp_path, "--die", name="dies"),
        script(tmp_path, "--silent", name="silent"),
        script(tmp_path, "--deaf", name="deaf"),
        ServerSpec("missing", "user", "here", {"command": "no-such-program"}, tmp_path),
        ServerSpec("unset", "user", "here", {"command": "x", "args": ["${NOT_SET_HERE}"]}, tmp_path),
        ServerSpec("nowhere", "user", "here", {"type": "http", "url": "http://127.0.0.1:9/mcp"}, tmp_path),
        environment={"MCP_TIMEOUT": "1500"},
    )
    await of.prepare()
    try:
        states = {name: connection.state for name, connection in of.connections.items()}
        assert [name for name, state in states.items() if state is State.CONNECTED] == ["fine", "deaf"]
        why = {name: connection.why for name, connection in of.connections.items()}
        assert "no licence" in why["dies"] or "exit code 7" in why["dies"]
        assert "did not answer within 1.5 s" in why["silent"]
        assert "no command 'no-such-program'" in why["missing"]
        assert "needs the variable NOT_SET_HERE" in why["unset"]
        assert why["nowhere"]
        assert {tool.name for tool in of.tools() if "echo" in tool.name} == {"mcp__fine__echo", "mcp__deaf__echo"}
        assert "“dies” is not available" in "\n".join(of.news("s1", None))
        (said,) = [text for text in of.complaints() if "“missing”" in text]
        assert said.endswith("or write its whole path. %agent mcp restart missing tries again.")
        assert of.complaints() == []
    finally:
        await of.close()


@pytest.mark.slow
async def test_a_projects_server_does_not_start_before_it_is_trusted_and_not_when_it_changed(tmp_path):
    spec = script(tmp_path, "--log", str(tmp_path / "log"), scope="project")
    trusted: set[str] = set()
    of = servers(tmp_path, spec, trusted=lambda asked: asked.fingerprint in trusted)
    await of.prepare()
    assert (of.connections, list(of.untrusted), log(tmp_path)) == ({}, ["s"], "")
    with pytest.raises(ConfigError, match="which you have not trusted yet"):
        await of.restart("s")
    trusted.add(spec.fingerprint)
    await of.prepare()
    assert of.connections["s"].state is State.CONNECTED
    trusted.clear()
    await of.prepare()
    assert of.connections == {}
    await of.close()


@pytest.mark.slow
async def test_a_projects_server_without_trust_does_not_stand_in_the_way_of_the_persons_own(tmp_path):
    mine, theirs = script(tmp_path), script(tmp_path, "--die", scope="project")
    found = Found({"s": theirs}, under={"s": mine})
    of = Servers(tmp_path, lambda: found, environment=os.environ, trusted=lambda _: False, picture=scaled_image)
    await of.prepare()
    try:
        assert of.connections["s"].spec is mine
        assert list(of.untrusted) == ["s"]
        assert text(await use(of, "mcp__s__echo", what="x")) == 'echo {"what": "x"}'
    finally:
        await of.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_that_wants_a_login_says_so(tmp_path, kind):
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    spec = ServerSpec("s", "user", "here", {"type": kind, "url": f"http://127.0.0.1:{port}/mcp"}, tmp_path)
    of = servers(tmp_path, spec)
    await of.prepare()
    try:
        assert of.connections["s"].state is State.NEEDS_LOGIN
        assert "HTTP 401" in of.connections["s"].why and '"Authorization"' in of.connections["s"].why
    finally:
        await of.close()
        listening.close()
        await listening.wait_closed()


async def test_what_is_switched_off_does_not_start(tmp_path):
    of = servers(tmp_path, script(tmp_path), disabled=frozenset({"s"}))
    await of.prepare()
    assert of.connections == {}
    with pytest.raises(ConfigError, match="switched off"):
        await of.restart("s")


@pytest.mark.slow
async def test_any_task_can_use_a_server_that_another_one_started(one):
    results = await asyncio.gather(*(asyncio.create_task(use(one, "mcp__s__echo", what=str(i))) for i in range(5)))
    assert [text(result) for result in results] == [f'echo {{"what": "{i}"}}' for i in range(5)]


@pytest.mark.slow
async def test_another_loop_can_use_it_and_its_person_is_asked_there(one):
    heard = Heard(["blue", "1", "Leave it out"])

    def elsewhere() -> str:
        return text(asyncio.run(use(one, "mcp__s__ask", heard)))

    assert json.loads(await asyncio.to_thread(elsewhere))["content"]["color"] == "blue"


@pytest.mark.slow
def test_a_new_loop_starts_the_servers_anew(tmp_path):
    of = servers(tmp_path, script(tmp_path))

    async def once() -> str:
        await of.prepare()
        try:
            return text(await use(of, "mcp__s__echo", what="x"))
        finally:
            await of.close()

    assert asyncio.run(once()) == asyncio.run(once())


@pytest.mark.slow
async def test_closing_ends_the_process(one):
    pid = int(json.loads(text(await use(one, "mcp__s__environment")))["pid"])
    await one.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


# ── the SDK's own server, in memory ──────────────────────────────────────────────────────────────────────────────────


async def test_a_server_object_of_this_process_is_used_without_a_process(tmp_path):
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("mine", instructions="Add with add.")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    of = servers(tmp_path)
    of.hand_over("mine", server)
    await of.prepare()
    try:
        assert json.loads(text(await use(of, "mcp__mine__add", a=1, b=2)).split("\n")[0]) == 3
        with pytest.raises(ToolError, match="'b' is a required property"):
            await use(of, "mcp__mine__add", a=1)
    finally:
        await of.close()
