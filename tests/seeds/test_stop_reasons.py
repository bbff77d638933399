"""Seed “master loop”: the stop_reason table, over HTTP with the real SDK, and the values that the API has besides."""

from __future__ import annotations

import pytest

from nbagent.core.events import CallStarted, Reason
from nbagent.core.policy import Mode
from nbagent.models import scripted
from nbagent.models.scripted import Turn
from tests.core.rig import play
from tests.seeds.bench import Bench
from tests.support.messages_server import MessagesServer, Reply, call, calls, say

pytestmark = pytest.mark.slow


async def test_tool_use_executes_every_tool_feeds_the_results_back_and_goes_on(tmp_path, model_at):
    bench = Bench(tmp_path)
    bench.write("a.txt", "alpha")
    two = Reply([call("read_file", path="a.txt"), call("write_file", path="b.txt", content="beta")])
    with MessagesServer([two, say("Done.")]) as server:
        ran = await play(model=model_at(server.url), rig=bench, mode=Mode.BYPASS)
        server.assert_clean()
        fed = server.requests[1].body["messages"][2]["content"]
        asked = server.requests[1].body["messages"][1]["content"]
    assert [b["tool_use_id"] for b in fed] == [b["id"] for b in asked if b["type"] == "tool_use"]
    assert "alpha" in fed[0]["content"][0]["text"]
    assert (tmp_path / "b.txt").read_text() == "beta"
    assert (ran.end.reason, ran.end.text) == (Reason.END_TURN, "Done.")


async def test_end_turn_exits_and_returns_the_text(tmp_path, model_at):
    with MessagesServer([say("All good.", stop_reason="end_turn")]) as server:
        ran = await play(model=model_at(server.url), rig=Bench(tmp_path))
        assert len(server.requests) == 1
    assert (ran.end.reason, ran.end.text) == (Reason.END_TURN, "All good.")


async def test_max_tokens_runs_none_of_a_cut_replys_calls_and_asks_for_smaller_pieces(tmp_path, model_at):
    cut = Reply([call("write_file", path="half.txt", content="ha")], stop_reason="max_tokens")
    with MessagesServer([cut, say("In pieces, then.")]) as server:
        ran = await play(model=model_at(server.url), rig=Bench(tmp_path), mode=Mode.BYPASS)
        server.assert_clean()
    assert not ran.of(CallStarted)
    assert not (tmp_path / "half.txt").exists()
    assert "smaller pieces" in ran.result_texts()[0]
    assert ran.end.reason is Reason.END_TURN


async def test_pause_turn_sends_the_reply_back_as_it_is_and_goes_on(tmp_path):
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "penguins"}}
    paused = Turn([scripted.say("Searching."), search], stop_reason="pause_turn")
    sent = []

    def then(transcript):
        sent.extend(transcript)
        return "Found it."

    ran = await play(paused, then, rig=Bench(tmp_path))
    assert [m["role"] for m in sent] == ["user", "assistant"]
    assert sent[1]["content"][-1] == search
    assert (ran.end.reason, ran.end.text) == (Reason.END_TURN, "Found it.")


@pytest.mark.parametrize(
    ("stop_reason", "expected"),
    [("refusal", Reason.REFUSAL), ("model_context_window_exceeded", Reason.CONTEXT_FULL)],
)
async def test_refusal_and_a_full_context_run_no_call_and_say_what_to_do(tmp_path, model_at, stop_reason, expected):
    cut = Reply([call("write_file", path="a.txt", content="a")], stop_reason=stop_reason)
    with MessagesServer([cut]) as server:
        ran = await play(model=model_at(server.url), rig=Bench(tmp_path), mode=Mode.BYPASS)
    assert ran.end.reason is expected
    assert ran.end.sentence and ran.end.next_step
    assert list(tmp_path.iterdir()) == []


async def test_a_stream_that_ends_without_a_stop_reason_is_a_failed_turn_and_is_asked_again(tmp_path, model_at):
    broken = Reply([call("write_file", path="twice.txt", content="x")], end_after=4)
    with MessagesServer([broken, calls("glob", pattern="*"), say("Nothing there.")]) as server:
        ran = await play(model=model_at(server.url), rig=Bench(tmp_path), mode=Mode.BYPASS)
    assert (ran.end.reason, ran.end.text) == (Reason.END_TURN, "Nothing there.")
    assert [event.name for event in ran.of(CallStarted)] == ["glob"]
