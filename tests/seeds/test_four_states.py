"""Seed “event loop”: the four states that every agent loop cycles through, with real tools."""

from __future__ import annotations

import copy

from nbagent.core.events import CallEnded, CallStarted, Reason, ReplyEnded, ResultsAppended, State, Status
from nbagent.core.policy import Mode
from nbagent.models.scripted import call, say
from tests.core.rig import play
from tests.seeds.bench import Bench


async def test_think_the_model_receives_the_full_history_each_time(tmp_path):
    bench, received = Bench(tmp_path), []
    bench.write("a.txt", "alpha")

    def turn(value):
        def scripted(transcript):
            received.append(copy.deepcopy(list(transcript)))
            return value

        return scripted

    ran = await play(turn([say("I look."), call("read_file", path="a.txt")]), turn("It says alpha."), rig=bench)
    assert [len(messages) for messages in received] == [1, 3]
    assert received[1] == ran.messages[:3]
    assert received[1][:1] == received[0], "what was sent before is sent again as it was"


async def test_think_a_reply_is_a_final_answer_or_a_request_to_call_a_tool(tmp_path):
    ran = await play([call("glob", pattern="*")], "nothing there", rig=Bench(tmp_path))
    asked, answered = [event.content for event in ran.of(ReplyEnded)]
    assert [block["type"] for block in asked] == ["tool_use"]
    assert [block["type"] for block in answered] == ["text"]


async def test_act_the_request_is_validated_against_the_registered_tools_and_run(tmp_path):
    bench = Bench(tmp_path)
    good = call("write_file", path="made.txt", content="here")
    turn = [call("read_fiel", path="a"), call("write_file", path="bad.txt"), good]
    ran = await play(turn, "done", rig=bench, mode=Mode.BYPASS)
    assert [event.status for event in ran.of(CallEnded)] == [Status.INVALID, Status.INVALID, Status.OK]
    assert "read_file" in ran.result_texts()[0], "the names of the real tools"
    assert "content" in ran.result_texts()[1], "the argument that is missing"
    assert [path.name for path in tmp_path.iterdir()] == ["made.txt"]


async def test_act_the_runtime_never_picks_a_tool_the_model_does(tmp_path):
    bench = Bench(tmp_path)
    bench.write("a.txt", "alpha")
    ran = await play([call("grep", pattern="alpha")], [call("shell", command="cat a.txt")], "done", rig=bench,
                     mode=Mode.BYPASS)  # fmt: skip
    assert [event.name for event in ran.of(CallStarted)] == ["grep", "shell"]


async def test_observe_file_contents_command_stdout_and_an_error_are_appended_as_results(tmp_path):
    bench = Bench(tmp_path)
    bench.write("a.txt", "alpha")
    turn = [call("read_file", path="a.txt"), call("shell", command="echo out; exit 3"), call("read_file", path="none")]
    ran = await play(turn, "done", rig=bench, mode=Mode.BYPASS)
    message = ran.messages[2]
    assert message["role"] == "user"
    assert [b["tool_use_id"] for b in message["content"]] == [b["id"] for b in turn]
    contents, stdout, error = ran.result_texts()
    assert "alpha" in contents
    assert "out" in stdout and "3" in stdout
    assert "none" in error
    assert message["content"][2]["is_error"]
    assert ran.of(ResultsAppended)[0].call_ids == tuple(b["id"] for b in turn)


async def test_done_a_reply_without_a_call_ends_the_loop_and_is_the_answer(tmp_path):
    ran = await play("Nothing to do.", "never asked for", rig=Bench(tmp_path))
    assert ran.model.played == 1
    assert (ran.end.reason, ran.end.text) == (Reason.END_TURN, "Nothing to do.")
    assert ran.end.state is State.DONE


async def test_the_states_follow_each_other_think_act_observe_think_done(tmp_path):
    ran = await play([call("glob", pattern="*")], [call("grep", pattern="x")], "done", rig=Bench(tmp_path))
    states = [event.state for event in ran.events]
    walked = [s for i, s in enumerate(states) if i == 0 or states[i - 1] != s]
    round_ = [State.THINK, State.ACT, State.OBSERVE]
    assert walked == [*round_, *round_, State.THINK, State.DONE]
