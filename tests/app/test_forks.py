"""A conversation that goes on from a point of another one: the identical prefix, or one without thinking that says so."""

from __future__ import annotations

import json

import pytest

from nbagent.app.conversation import Conversation
from nbagent.app.forks import OTHER_PREFIX, before, fork, stored
from nbagent.config import Settings, load
from nbagent.core.errors import ConfigError
from nbagent.core.messages import text_block
from nbagent.core.session import result_block
from nbagent.core.tools import Call, tool
from tests.core.rig import check_transcript


@tool
async def look(_call: Call, at: str) -> str:
    """Look."""
    return at


@tool
async def other(_call: Call, at: str) -> str:
    """Look elsewhere."""
    return at


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "x"}}


def conversation(folder) -> Conversation:
    """Two runs: messages 0 to 3 are the first one's, 4 and 5 the second one's."""
    made = Conversation.begin(Settings(), lambda _: [look], folder, "n.ipynb")
    transcript = made.session.transcript
    transcript.ask([text_block("first")])
    transcript.reply([THOUGHT, CALL])
    transcript.answer({"t1": result_block("t1", [text_block("seen")])})
    transcript.reply([THOUGHT, text_block("One.")])
    transcript.ask([text_block("second")])
    transcript.reply([THOUGHT])
    made.began = {"a": 0, "b": 4}
    return made


def test_a_fork_replays_the_identical_prefix_and_says_where_it_is_from(tmp_path):
    old = conversation(tmp_path)
    past = before(old, "b")
    assert past is not None
    new, said = fork(past, Settings(), lambda _: [look], tmp_path, "n.ipynb")
    assert said == "" and new.began == {"a": 0} and new.session.id != old.session.id
    assert json.dumps(new.session.transcript[:]) == json.dumps(old.session.transcript[:4])
    about = json.loads(new.store.path.read_text().splitlines()[0])
    assert about["forked_from"] == {"session": old.session.id, "messages": 4}
    assert len(old.session.transcript) == 6
    new.session.transcript.ask([text_block("second, otherwise")])
    check_transcript(new.session.transcript)


def test_a_fork_from_disk_is_the_same(tmp_path):
    old = conversation(tmp_path)
    past = stored(tmp_path, old.session.id, 4)
    assert past is not None
    new, said = fork(past, Settings(), lambda _: [look], tmp_path, "n.ipynb")
    assert said == "" and json.dumps(new.session.transcript[:]) == json.dumps(old.session.transcript[:4])


@pytest.mark.parametrize("settings", [Settings(), Settings(system_append="Be short.")], ids=["tools", "system"])
def test_with_other_tools_or_another_prompt_the_thinking_is_left_out_and_that_is_said(tmp_path, settings):
    past = before(conversation(tmp_path), "b")
    assert past is not None
    tools = [look] if settings.system_append else [look, other]
    new, said = fork(past, settings, lambda _: tools, tmp_path, "n.ipynb")
    assert said == OTHER_PREFIX
    assert "thinking" not in json.dumps(new.session.transcript[:])
    check_transcript(new.session.transcript)


def test_a_prefix_that_ends_with_an_open_call_is_answered(tmp_path):
    old = conversation(tmp_path)
    past = stored(tmp_path, old.session.id, 2)
    assert past is not None
    new, _ = fork(past, Settings(), lambda _: [look], tmp_path, "n.ipynb")
    new.session.transcript.ask([text_block("go on")])
    check_transcript(new.session.transcript)


def test_a_cell_without_a_finished_run_has_no_past(tmp_path):
    assert before(conversation(tmp_path), "c") is None


@pytest.mark.parametrize("session", ["", "../secret", "none-such", "a/b", "x" * 200])
def test_a_session_that_is_not_there_or_no_session_is_none(tmp_path, session):
    conversation(tmp_path)
    (tmp_path / ".nbagent" / "secret.jsonl").write_text('{"type": "session", "v": 1}\n')
    assert stored(tmp_path, session, 0) is None


@pytest.mark.parametrize("damage", ["", "{", '{"type": "event"}\n', '{"type": "session", "v": 2}\n', "[1]\n", "null\n"])
def test_a_damaged_session_is_none(tmp_path, damage):
    old = conversation(tmp_path)
    old.store.path.write_text(damage)
    assert stored(tmp_path, old.session.id, 0) is None


def test_more_messages_than_there_are_is_none(tmp_path):
    assert stored(tmp_path, conversation(tmp_path).session.id, 7) is None


def test_what_to_do_with_finished_runs_is_a_setting_with_named_choices(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.nbagent]\nstale = "show"\n')
    settings = load(tmp_path, {"NBAGENT_RERUN": "ask"})
    assert (settings.rerun, settings.stale) == ("ask", "show")
    with pytest.raises(ConfigError, match=r"stale = 'always' is not one of ask, show, rerun"):
        load(tmp_path, {}, {"stale": "always"})
