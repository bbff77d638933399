"""A conversation that goes on from a point of another one: the identical prefix, or one without thinking that says so."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.app.conversation import Conversation
from nbagent.app.forks import OTHER_PREFIX, Past, PastNow, Point, before, fork, past_hashes, past_of, stored
from nbagent.config import Settings, load
from nbagent.core.errors import ConfigError
from nbagent.core.messages import text_block
from nbagent.core.policy import Rule
from nbagent.core.session import result_block
from nbagent.core.tools import Call, tool
from nbagent.extend.runs import FinishedRun, RunStore
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


# ── the past that a finished run was given after ─────────────────────────────────────────────────────────────────────


def run(cell: str, session: str, first: int, last: int, past: str = "") -> FinishedRun:
    return FinishedRun(run=f"run-{cell}-{past}", text="t", cell=cell, at="", model="m", above=(), cells=(), inputs={},
                       events=(), session=session, first=first, last=last, past=past)  # fmt: skip


def place(cell: str | None = "b", document: str = "n"):
    return SimpleNamespace(document=document, notebook=SimpleNamespace(own_cell=cell))


def extension(folder, **conversations: Conversation):
    return SimpleNamespace(folder=folder, runs=RunStore(folder), conversations=conversations, shown={}, seals=None)


_MESSAGES = st.lists(
    st.builds(
        lambda role, blocks: {"role": role, "content": blocks},
        st.sampled_from(["user", "assistant"]),
        st.lists(st.sampled_from([THOUGHT, CALL, text_block("One."), text_block("Two.")]), min_size=1, max_size=2),
    ),
    max_size=4,
)


@pytest.mark.slow
@given(_MESSAGES, _MESSAGES)
def test_the_hash_of_a_past_is_that_of_what_was_said_whatever_was_thought(one, other):
    """Two pasts have one hash exactly where they say the same; each prefix has its own."""

    def said(messages: list) -> str:
        kept = [[b for b in m["content"] if b is not THOUGHT] or ["thought"] for m in messages]
        return json.dumps([[m["role"], blocks] for m, blocks in zip(messages, kept, strict=True)])

    assert (past_hashes(one)[-1] == past_hashes(other)[-1]) is (said(one) == said(other))
    assert past_hashes(one + other)[: len(one) + 1] == past_hashes(one)


async def test_a_run_is_of_this_conversation_only_where_it_was_given_after_the_same_messages(tmp_path):
    """A copied cell or a forked conversation does not answer from another one's past."""
    ours = conversation(tmp_path)
    hashes = past_hashes(ours.session.transcript)
    past = await PastNow.of(extension(tmp_path, n=ours), place("b"), new=False)
    assert past.is_of(run("b", "s", 4, 6, hashes[4]), first=False) and past.began == {"a": 0}
    theirs = past_hashes([{"role": "user", "content": [text_block("first, otherwise")]}])
    assert not past.is_of(run("b", "s", 4, 6, theirs[-1]), first=True)
    assert not past.is_of(run("b", "s", 4, 6, hashes[0]), first=False)
    assert past.is_of(run("b", "s", 0, 6, hashes[0]), first=True), "no cell above is an agent's, so nothing was before"
    copy = await PastNow.of(extension(tmp_path, n=ours), place("copy"), new=False)
    assert not copy.is_of(run("b", "s", 4, 6, hashes[4]), first=False), "a copy goes on from the end"
    assert copy.is_of(run("copy", "s", 6, 8, hashes[6]), first=False)
    own = await PastNow.of(extension(tmp_path, n=ours), place("b"), new=True)
    assert own.is_of(run("b", "s", 0, 6, hashes[0]), first=False)
    assert not own.is_of(run("b", "s", 4, 6, hashes[4]), first=False)


async def test_where_no_cell_is_known_a_run_may_have_stood_anywhere_in_this_conversation(tmp_path):
    ours = conversation(tmp_path)
    hashes = past_hashes(ours.session.transcript)
    past = await PastNow.of(extension(tmp_path, n=ours), place(None), new=False)
    assert past.is_of(run("", "s", 4, 6, hashes[4]), first=False)
    assert not past.is_of(run("", "s", 4, 6, hashes[3]), first=False)
    assert not past.is_of(run("", "s", 40, 60, hashes[4]), first=False)


async def test_in_a_new_kernel_a_cell_goes_on_from_the_record_shown_before_it_and_knows_where_cells_began(tmp_path):
    """So that a cell that is run again later, in the same kernel, forks from before its own run."""
    old = conversation(tmp_path)
    fresh = extension(tmp_path)
    assert (await PastNow.of(fresh, place("a"), new=False)).hashes == past_hashes([])
    fresh.shown["n"] = Point(old.session.id, 4, {"a": 0})
    hashes = past_hashes(old.session.transcript)
    past = await PastNow.of(fresh, place("b"), new=False)
    assert past.is_of(run("b", old.session.id, 4, 6, hashes[4]), first=False) and past.began == {"a": 0}
    found = past_of(fresh, place("other"))
    assert found is not None
    new, _ = fork(found, Settings(), lambda _: [look], tmp_path, "n.ipynb")
    assert new.began == {"a": 0}
    RunStore(tmp_path).keep(run("a", old.session.id, 0, 4, hashes[0]))
    assert past_of(fresh, place("a")).began == {}


async def test_a_past_is_the_same_on_disk_and_without_its_thinking(tmp_path):
    old = conversation(tmp_path)
    found = stored(tmp_path, old.session.id, 6)
    assert found is not None and past_hashes(found.messages) == past_hashes(old.session.transcript)
    new, said = fork(found, Settings(), lambda _: [look, other], tmp_path, "n.ipynb")
    assert said == OTHER_PREFIX and past_hashes(new.session.transcript) == past_hashes(found.messages)


def test_what_to_do_with_finished_runs_is_a_setting_with_named_choices(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.nbagent]\nstale = "show"\n')
    settings = load(tmp_path, {"NBAGENT_RERUN": "ask"})
    assert (settings.rerun, settings.stale) == ("ask", "show")
    with pytest.raises(ConfigError, match=r"stale = 'always' is not one of ask, show, rerun"):
        load(tmp_path, {}, {"stale": "always"})


def test_a_fork_in_one_kernel_keeps_long_results_and_rules_but_not_what_was_read_since(tmp_path):
    """The messages it replays name the results; what the model read after them it does not know any more."""
    old = Conversation.begin(Settings(), lambda _: [look], tmp_path, "n.ipynb")
    ref = old.results.keep("a long text")
    old.kept.append(Rule.parse("allow", "look"))
    past = Past(old.session.id, old.session.system, list(old.session.tools), [], {})
    new, _ = fork(past, Settings(), lambda _: [look], tmp_path, "n.ipynb", before=old)
    assert new.results.read(ref, 0, 100).startswith("a long text")
    assert new.kept == [Rule.parse("allow", "look")] and new.seen is not old.seen
