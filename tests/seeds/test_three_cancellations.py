"""Seed “async generator”: the three cancellations, with real files, a real process and a real connection."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing

import pytest

from nbagent.core.events import CallEnded, CallProgress, CallStarted, Reason, TextDelta
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.run import Agent, Stop
from nbagent.models import AnthropicModel
from nbagent.models.scripted import ScriptedModel, call
from tests.core.rig import Person, check_transcript, play
from tests.seeds.bench import Bench, begin
from tests.support.messages_server import MessagesServer, Reply
from tests.support.turns import until

pytestmark = pytest.mark.slow


async def test_cooperative_the_stop_is_seen_between_two_calls_and_partial_results_are_kept(tmp_path):
    bench, stop = Bench(tmp_path), Stop()

    def on_event(event):
        if isinstance(event, CallStarted) and event.name == "write_file":
            stop.ask()

    turn = [call("write_file", path="one.txt", content="1"), call("write_file", path="two.txt", content="2")]
    ran = await play(turn, "never", rig=bench, stop=stop, mode=Mode.BYPASS, on_event=on_event)
    assert [path.name for path in tmp_path.iterdir()] == ["one.txt"]
    assert ran.end.reason is Reason.INTERRUPTED
    first, second = ran.result_texts()
    assert "one.txt" in first and "Not started" in second
    assert ran.model.played == 1, "the model is not asked again"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_immediate_closing_the_generator_runs_its_finally_blocks_and_ends_the_running_command(tmp_path):
    bench = Bench(tmp_path)
    tools = bench.tools()
    session = bench.session(tools)
    command = "echo $$ > pid; sleep 60"
    agent = Agent(ScriptedModel([[call("shell", command=command)]]), tools, Policy(Mode.BYPASS), Person())
    pid_file = tmp_path / "pid"
    async with aclosing(run(agent, session, [text_block("go")])) as events:
        async for event in events:
            if isinstance(event, CallProgress):
                break
        await until(lambda: pid_file.exists() and pid_file.read_text().strip())
    pid = int(pid_file.read_text())
    await until(lambda: not _runs(pid))
    assert session.transcript.open_calls == ()
    check_transcript(session.transcript)


async def test_immediate_stop_from_outside_ends_a_run_at_once_with_a_valid_history(tmp_path):
    driven = begin(Bench(tmp_path), ScriptedModel([[call("shell", command="echo here > begun; sleep 60")]]))
    await until((tmp_path / "begun").exists)
    driven.stop.now()
    ended = await driven.ended()
    assert ended.reason is Reason.INTERRUPTED
    assert "Interrupted" in driven.result_texts()[0]


async def test_timeout_the_api_call_is_aborted_and_its_connection_freed(tmp_path):
    with MessagesServer([Reply("a long text", hang_after=4)]) as server:
        model = AnthropicModel("claude-sonnet-5-5", base_url=server.url, api_key="none")
        try:
            driven = begin(Bench(tmp_path), model, limits=Limits(seconds=0.5))
            ended = await driven.ended()
            assert ended.reason is Reason.TIMEOUT
            assert driven.of(TextDelta), "it was cut off in the middle of a reply"
            assert len(driven.session.transcript) == 1, "nothing of the broken reply is kept"
            assert await asyncio.to_thread(server.requests[0].gone.wait, 5)
        finally:
            await model.aclose()


async def test_timeout_reaches_a_running_tool_too(tmp_path):
    driven = begin(Bench(tmp_path), ScriptedModel([[call("shell", command="sleep 60")]]), limits=Limits(seconds=0.3))
    ended = await driven.ended()
    assert ended.reason is Reason.TIMEOUT
    assert not [event for event in driven.of(CallEnded) if event.status == "ok"]
