"""Bad input gets a sentence in the cell that names the thing, its value and the fix; kernel and notebook live on."""

from __future__ import annotations

import pytest

from tests.failures.room import Room
from tests.support.messages_server import HTML, MessagesServer, Reply, call, calls, refused_url

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]

ALLOW = {"NBAGENT_ALLOW": "run_python\nadd_cell\nrun_cell\nshell"}


async def test_a_key_that_is_missing_or_no_key_is_told_with_the_fix(tmp_path):
    """No key: three lines; empty key: the same; a key with a newline in it: flagged; one at its end: cut off."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, ANTHROPIC_BASE_URL=None, ANTHROPIC_API_KEY=None) as room:
            for setting in ("pass", "import os; os.environ['ANTHROPIC_API_KEY'] = ' '"):
                await room.cell(setting)
                shown = await room.cell("%%agent\nhello")
                shown.says("ANTHROPIC_API_KEY", "getpass", "make demo")
                start = next(i for i, line in enumerate(shown.record.splitlines()) if "No API key" in line)
                lines = shown.record.splitlines()[start : start + 3]
                assert "Set it" in lines[1] and "make demo" in lines[2], shown.record
            await room.cell("os.environ['ANTHROPIC_API_KEY'] = 'sk-one\\ntwo'")
            shown = await room.cell("%%agent\nhello")
            shown.says("ANTHROPIC_API_KEY cannot be a key", "Copy the key again")
            assert "sk-one" not in shown.seen
            await room.cell(f"os.environ.update(ANTHROPIC_API_KEY='sk-one\\n', ANTHROPIC_BASE_URL={server.url!r})")
            await room.still_works()
        assert server.requests[0].headers["authorization"] == "Bearer sk-one"
        server.assert_clean()


async def test_a_wrong_key_is_told_and_a_right_one_counts_at_once(tmp_path):
    with MessagesServer(key="sk-right") as server:
        async with Room(tmp_path, server, ANTHROPIC_API_KEY="sk-wrong") as room:
            shown = await room.cell("%%agent\nhello")
            shown.says("does not take this API key (401", "Check ANTHROPIC_API_KEY")
            assert "sk-wrong" not in shown.seen
            await room.cell("import os; os.environ['ANTHROPIC_API_KEY'] = 'sk-right'")
            await room.still_works()
        assert [refusal[:3] for refusal in server.refusals] == ["401"]


async def test_a_server_that_is_not_there_or_none_of_the_api_is_named(tmp_path):
    nobody = refused_url()
    with MessagesServer() as server:
        async with Room(tmp_path, server, ANTHROPIC_BASE_URL=nobody) as room:
            shown = await room.cell("%%agent\nhello")
            shown.says(f"Nothing listens at {nobody}", "Start the server, or change base_url")
            await room.cell(f"import os; os.environ['ANTHROPIC_BASE_URL'] = {server.url!r}")
            shown = await room.cell("%%agent\nhello", HTML)
            shown.says("The reply is not from a Messages API (a proxy or login page?)", "check base_url")
            await room.cell("os.environ['ANTHROPIC_BASE_URL'] = 'localhost:80'")
            shown = await room.cell("%%agent\nhello")
            shown.says("base_url 'localhost:80' is not the address of a server", "http://host:port")
            await room.cell(f"os.environ['ANTHROPIC_BASE_URL'] = {server.url!r}")
            await room.still_works()
        server.assert_clean()


async def test_what_is_wrong_in_the_cell_itself_is_one_line_with_the_nearest_spelling(tmp_path):
    """Row 54: unknown option, unknown mode, unknown model, a number that is none, empty cell, unknown subcommand."""
    with MessagesServer(models=["claude-sonnet-5-5"]) as server:
        async with Room(tmp_path, server) as room:
            for source, parts in {
                "%%agent --modell opus\nhello": ("no option --modell", "Did you mean --model?"),
                "%%agent --mode bypas\nhello": ("invalid choice: 'bypas'", "bypass"),
                "%%agent --max-turns many\nhello": ("--max-turns", "'many'"),
                "%%agent --max-turns 0\nhello": ("max_turns = 0", "above 0"),
                "%%agent -m scripted:nothing.here:turns\nhello": ("nothing.here", "cannot be imported"),
                "%%agent": ("Write what the agent should do",),
                "%%agent\n": ("Write what the agent should do",),
                "%%agent\n   \n\n": ("Write what the agent should do", "%%agent? lists the options"),
                "%agent stauts": ("no subcommand 'stauts'", "Did you mean %agent status?"),
                "%agent mode bypas": ("no mode 'bypas'", "Did you mean bypass?"),
            }.items():
                shown = await room.cell(source)
                shown.says("nbagent: ", *parts)
                assert len(shown.error.strip().splitlines()) == 1, shown.error
                assert not shown.record, shown.record
            shown = await room.cell("%%agent -m claude-sonet-5-5\nhello")
            shown.says("does not know the model 'claude-sonet-5-5' (404", "Choose another with -m")
            await room.cell("import os; del os.environ['ANTHROPIC_BASE_URL']")
            shown = await room.cell("%%agent -m sonet\nhello")
            shown.says("Unknown model 'sonet'", "Did you mean 'sonnet'?")
            await room.cell(f"os.environ['ANTHROPIC_BASE_URL'] = {server.url!r}")
            await room.still_works()
        assert [refusal[:3] for refusal in server.refusals] == ["404"]


async def test_calls_that_cannot_run_are_answered_and_the_run_goes_on(tmp_path):
    """Unknown tool; tool input that is no JSON (row 3), no object, of the wrong type; a call cut short (row 5)."""
    broken = call("run_python", code="1")
    events = [
        {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {**broken, "input": {}}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": '{"code": }'},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    ]
    half = call("add_cell", source="never = 'ran'")
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            shown = await room.cell(
                "%%agent\ngo",
                calls("run_code", code="1"),
                Reply(events=events),
                calls("run_python", code=["1"]),
                Reply([half], stop_reason="max_tokens"),
                "All were answered.",
            )
            shown.says("All were answered.")
            assert not shown.error
            unknown, bad_json, bad_type, cut = room.results()
            assert "There is no tool 'run_code'" in unknown and "run_python" in unknown
            assert "not valid JSON" in bad_json and '{"code": }' in bad_json and "run_python(code: string" in bad_json
            assert "wrong arguments for run_python: code" in bad_type
            assert "cut by the output limit" in cut and "smaller" in cut
            assert await room.value("'never' in globals()") is False
            assert len(room.page.document.cells) == len(room.page.nb.cells), "no cell was added"
            await room.still_works()
        server.assert_clean()


async def test_two_cut_replies_in_a_row_end_the_run_with_a_sentence(tmp_path):
    """Row 5: the same call, cut again and again, does not go on for ever."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            cut = [Reply([call("add_cell", source="x = 1")], stop_reason="max_tokens") for _ in range(2)]
            shown = await room.cell("%%agent\ngo", *cut)
            shown.says("cut off at its output limit", "smaller steps")
            await room.still_works()
        server.assert_clean()


async def test_a_stream_that_breaks_in_the_middle_is_asked_again_and_nothing_of_it_is_kept(tmp_path):
    """Row 7 (overload event in mid-stream) and a stream cut in the middle, also inside a call that is not whole."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            shown = await room.cell(
                "%%agent\ngo",
                Reply("half a thought that is lost", error_at=(4, "overloaded_error")),
                Reply([call("add_cell", source="wrong = 1")], cut_after=5),
                Reply([call("add_cell", source="right = 1")], end_after=6),
                "The whole answer.",
            )
            shown.says("The whole answer.")
            assert shown.record.count("The whole answer.") == 1 and not shown.error
            (messages,) = room.transcripts()
            assert [m["role"] for m in messages] == ["user", "assistant"]
            assert await room.value("[n in globals() for n in ('wrong', 'right')]") == [False, False]
            again = [Reply("half", cut_after=4) for _ in range(4)]
            shown = await room.cell("%%agent\ngo", *again)
            shown.says("broke", "Tried 4 times.")
            await room.still_works()
        server.assert_clean()


RAISING = """
import nbagent
@nbagent.tool
async def explode(call, what: str) -> str:
    '''Explode.

    Args:
        what: What.
    '''
    class Odd(Exception):
        def __str__(self): raise ValueError("no text")
    raise {"plain": RuntimeError("boom " + "x" * 10), "exit": SystemExit(3), "stop": StopIteration(1), "odd": Odd(),
           "stops": StopAsyncIteration()}[what]
nbagent.register(explode)
"""


async def test_a_tool_that_raises_costs_its_call_only(tmp_path):
    """Whatever a tool raises: an exception, one whose text cannot be made, one that ends iterations."""
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell(RAISING)
            kinds = ["plain", "odd", "stop", "stops"]
            shown = await room.cell("%%agent\ngo", *(calls("explode", what=kind) for kind in kinds), "I saw it fail.")
            shown.says("I saw it fail.")
            assert not shown.error
            results = room.results()
            assert "explode failed" in results[0] and "RuntimeError: boom" in results[0]
            assert all("explode failed" in text for text in results), results
            await room.still_works()
            shown = await room.cell("%%agent\ngo", calls("explode", what="exit"))
            shown.says("Stopped")
            await room.still_works()
        server.assert_clean()


async def test_code_that_would_end_the_kernel_or_never_ends_or_floods_is_a_result(tmp_path):
    """Row 47 (exit, quit, sys.exit), an endless loop, 50 MB of output: the model is told, the kernel lives."""
    flood = "for _ in range(50): print('x' * 1_000_000)"
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW, NBAGENT_CELL_TIMEOUT="3", NBAGENT_MODE="bypass") as room:
            await room.cell("kept = 1")
            pid = room.pid
            shown = await room.cell(
                "%%agent\ngo",
                calls("add_cell", source="exit()"),
                calls("add_cell", source="import sys; sys.exit(1)"),
                calls(
                    "add_cell", source="while True:\n    try:\n        pass\n    except BaseException:\n        pass"
                ),
                calls("add_cell", source=flood),
                calls("run_python", code="while True: pass"),
                "I am through.",
            )
            shown.says("I am through.")
            assert not shown.error
            asked, exited, endless, flooded, looked = room.results()
            assert "not done" in asked, "code that ends the kernel needs a person whatever the mode"
            assert "SystemExit" in exited
            assert "time limit is 3 s" in endless and "time limit is 3 s" in looked
            assert len(flooded) < 20_000 and "left out" in flooded
            assert (await room.value("kept"), room.pid) == (1, pid)
            assert sum(len(str(cell)) for cell in room.page.document.cells) < 20_000_000
            await room.still_works()
        server.assert_clean()
