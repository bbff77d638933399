"""Which model is used: switches in mid-session, fallbacks, named endpoints, and `%agent model`, over real HTTP."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from nbagent.app.agents import Subagents
from nbagent.app.cell import run_agent_cell
from nbagent.app.extension import Extension
from nbagent.app.model import fallback_of, model_of, open_beside, open_named, run_model
from nbagent.app.reports import Checked, command
from nbagent.config import load, own_file
from nbagent.core.agents import AgentSpec
from nbagent.core.errors import ConfigError
from nbagent.core.policy import Mode
from tests.support.messages_server import MessagesServer, Reply, Status


@pytest.fixture
def servers() -> Iterator[tuple[MessagesServer, MessagesServer]]:
    with (
        MessagesServer(models=["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"]) as home,
        MessagesServer() as other,
    ):
        yield home, other
        home.assert_clean()
        other.assert_clean()


@pytest.fixture
def extension(shell, tmp_path, monkeypatch, servers) -> Extension:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for name in ("ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("HOME", str(tmp_path)), ("XDG_CONFIG_HOME", str(tmp_path / "config")),
                        ("ANTHROPIC_BASE_URL", servers[0].url), ("ANTHROPIC_API_KEY", "sk-home"), ("TEAM", "data"),
                        ("WORK_KEY", "sk-work")):  # fmt: skip
        monkeypatch.setenv(name, value)
    own_file().parent.mkdir(parents=True, exist_ok=True)
    own_file().write_text(
        f'[endpoints.work]\nbase_url = "{servers[1].url}/v1"\napi_key_env = "WORK_KEY"\nheaders = {{ "X-Team" = "${{TEAM}}" }}\n'
        '[endpoints.work.models]\nsmall = "qwen3:4b"\n'
        'big = { id = "qwen3:30b", context = 32768, input = 1.0, output = 2.0 }\n'
    )
    return Extension(shell)


def models_of(server: MessagesServer) -> list[str]:
    return [request.body["model"] for request in server.requests]


def thought(server: MessagesServer) -> int:
    return sum(b["type"] == "thinking" for m in server.requests[-1].body["messages"] for b in m["content"])


@pytest.mark.slow
async def test_a_switch_in_mid_session_keeps_the_transcript_and_one_to_another_server_leaves_the_thinking_out(
    extension, servers
):
    home, work = servers
    home.push(Reply("One.", thinking="Hm."), Reply("Two.", thinking="Hm."), "Back.")
    work.push("Three.")
    await run_agent_cell(extension, "first", "")
    session = extension.last.session.id
    assert command(extension, "model opus") == "The model is claude-opus-5-5 from the next %%agent cell on."
    await run_agent_cell(extension, "second", "")
    assert models_of(home) == ["claude-sonnet-5-5", "claude-opus-5-5"] and thought(home) == 1
    assert extension.last.session.id == session, "one server, one transcript: verbatim"

    assert "in a new session, without the model's earlier thinking" in command(extension, "model work/small")
    await run_agent_cell(extension, "third", "")
    assert models_of(work) == ["qwen3:4b"] and thought(work) == 0
    assert extension.last.session.id != session
    seen = work.requests[-1]
    assert seen.headers["authorization"] == "Bearer sk-work" and seen.headers["x-team"] == "data"
    assert "sk-home" not in json.dumps(dict(seen.headers)), "a key goes to the server that it is for, and to no other"
    assert [m["content"][-1]["text"] for m in seen.body["messages"] if m["role"] == "assistant"] == ["One.", "Two."]

    command(extension, "model sonnet")
    await run_agent_cell(extension, "-m haiku fourth", "")
    assert models_of(home)[-1] == "claude-haiku-5-5" and thought(home) == 0


@pytest.mark.slow
async def test_an_overloaded_model_is_stood_in_for_between_two_turns_for_the_rest_of_the_run(extension, servers):
    home, _ = servers
    home.push(
        Status(529, "overloaded_error", headers={"retry-after": "0"}), Reply("Half", error_at=(3, "overloaded_error"))
    )
    home.push("From the other one.", "From the first one.")
    extension.choose(fallback_model="haiku")
    answer = await run_agent_cell(extension, "go", "")
    assert answer.text == "From the other one."
    assert models_of(home) == ["claude-sonnet-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"]
    assert answer.cost is not None
    assert (await run_agent_cell(extension, "again", "")).text == "From the first one."
    assert models_of(home)[-1] == "claude-sonnet-5-5", "the next run begins with its own model"
    extension.choose(fallback_model="work/small")
    assert fallback_of(extension.settings()) == (None, "not used: work/small is not at the server of claude-sonnet-5-5")


@pytest.mark.slow
async def test_the_command_says_what_is_used_by_whom_and_which_names_there_are(extension, servers):
    servers[0].push("One.")
    await run_agent_cell(extension, "first", "")
    said = command(extension, "model")
    assert isinstance(said, Checked)
    for part in ("model      claude-sonnet-5-5", "1,000,000 tokens of context; 2 / 10 USD a million tokens in / out",
                 "used by    this conversation: claude-sonnet-5-5, 1 reply", "work: http", "(key in WORK_KEY): work/small, work/big",
                 "opusplan = opus in plan mode"):  # fmt: skip
        assert part in said, said
    whole = await said.whole()
    assert "listed     claude-sonnet-5-5, claude-opus-5-5, claude-haiku-5-5" in whole
    assert "not listed there: fable (claude-fable-5-2)" in whole
    assert "sk-" not in whole

    command(extension, "model work/big")
    assert "32,768 tokens of context; 1 / 2 USD" in command(extension, "model")


@pytest.mark.slow
async def test_a_wrong_id_gets_a_sentence_with_the_nearest_and_one_that_no_list_answers_for_is_taken(
    extension, servers, monkeypatch
):
    said = command(extension, "model claude-opus-5-6")
    assert isinstance(said, Checked) and "claude-opus-5-6" in said
    assert "does not list 'claude-opus-5-6'. Did you mean claude-opus-5-5?" in await said.whole()
    with pytest.raises(Exception, match=r"does not know the model 'claude-opus-5-6'.*Did you mean claude-opus-5-5"):
        await run_agent_cell(extension, "go", "")
    assert servers[0].refusals.pop() == "404 model: claude-opus-5-6"
    silent = command(extension, "model work/anything")
    assert "claude-sonnet-5-5" in await silent.whole()  # type: ignore[attr-defined]
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    with pytest.raises(ConfigError, match=r"no endpoint 'wrok'. Did you mean 'work'"):
        open_named(load(extension.folder, {}), "wrok/small")


async def test_a_skill_may_change_the_model_of_a_run_but_not_its_server(extension):
    settings = extension.settings()
    model = run_model(settings)
    assert "claude-haiku-5-5" in model.use("haiku") and model.name == "claude-haiku-5-5"
    assert model.use("inherit") and model.name == "claude-sonnet-5-5"
    with pytest.raises(
        ConfigError, match=r"a run can't move to another one\. Choose it for a whole cell: %%agent -m work/small"
    ):
        model.use("work/small")


def test_a_short_name_beside_a_run_means_a_model_of_the_runs_own_server(extension):
    """A subagent's `model: haiku` is not sent to another account, nor to a server that has none."""
    settings = extension.settings({"model": "work/claude-opus-5-5"})
    parent = model_of(settings)
    assert (found := open_beside(settings, "haiku", parent)).name == "claude-haiku-5-5"
    assert getattr(found, "place", "") == "work"
    local = model_of(extension.settings({"model": "work/small"}))
    assert open_beside(settings, "haiku", local) is local
    assert open_beside(settings, "big", local).name == "big", "any other name is one of the settings' own server"
    assert fallback_of(extension.settings({"model": "work/claude-opus-5-5", "fallback_model": "haiku"}))[1] == ""


def test_a_settings_file_of_claude_code_names_the_model_and_a_name_of_another_platform_fails_no_run(extension):
    home, here = extension.folder.parent / ".claude", extension.folder / ".claude"
    for folder, model in ((home, "haiku"), (here, "us.anthropic.claude-opus-v1:0")):
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps({"model": model}))
    assert extension.settings().model == "haiku"
    (here / "settings.json").write_text('{"model": "opus[1m]"}')
    assert model_of(extension.settings()).name == "claude-opus-5-5", "the project's counts before the person's"
    (extension.folder / "pyproject.toml").write_text('[tool.nbagent]\nmodel = "sonnet"\n')
    assert extension.settings().model == "sonnet"


def test_the_doctor_looks_for_the_key_of_the_endpoint_that_is_used(extension, monkeypatch):
    extension.choose(model="work/small")
    assert "key in WORK_KEY" in command(extension, "doctor")
    monkeypatch.delenv("WORK_KEY")
    assert "wants it in WORK_KEY, which is not set" in command(extension, "doctor")


def test_opusplan_is_opus_while_planning(extension):
    extension.choose(model="opusplan")
    assert model_of(extension.settings()).name == "claude-sonnet-5-5"
    assert model_of(extension.settings({"mode": str(Mode.PLAN)})).name == "claude-opus-5-5"


def test_a_project_may_name_an_endpoint_of_the_person_and_never_make_one(extension, servers):
    (extension.folder / "pyproject.toml").write_text(
        '[tool.nbagent]\nmodel = "work/small"\n[tool.nbagent.endpoints.work]\nbase_url = "http://evil"\n'
    )
    settings = extension.settings()
    assert model_of(settings).name == "qwen3:4b"
    assert settings.endpoints["work"].base_url == servers[1].url
    assert "endpoints" in settings.ignored[0]


def test_only_the_person_sends_a_subagents_work_to_another_server(extension, monkeypatch):
    """What is read beside a local model stays there, whatever a call or a project's file names."""
    local = model_of(extension.settings({"model": "work/small"}))
    subagents = Subagents(extension, extension.settings(), SimpleNamespace(notebook=None), stands_in=False)
    kind = AgentSpec("a", "d", model="claude-opus-5-5")
    for spec, wanted in (
        (AgentSpec("a", "d"), "claude-opus-5-5"),
        (dataclasses.replace(kind, source="project"), ""),
    ):
        with pytest.raises(ConfigError, match="another server"):
            subagents._model(spec, wanted, local)
    assert subagents._model(AgentSpec("a", "d"), "work/big", local).name == "qwen3:30b"
    assert subagents._model(AgentSpec("a", "d"), "haiku", local) is local
    assert subagents._model(kind, "", local).name == "claude-opus-5-5", "their own kind is their word"
    monkeypatch.setenv("CLAUDE_CODE_SUBAGENT_MODEL", "claude-opus-5-5")
    assert subagents._model(AgentSpec("a", "d"), "work/small", local).name == "claude-opus-5-5"
