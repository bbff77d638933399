"""The magics in a real kernel, as a person meets them: what loading adds and unloading takes away, help, Tab, settings, values."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Reply, call, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]

STATE = """
import json, logging
ip = get_ipython()
def nbagent_state():
    hooks = ip.strdispatchers.get("complete_command")
    chains = {k: [f.__module__ for _, f in chain.chain] for k, chain in getattr(hooks, "strs", {}).items() if chain.chain}
    return {
        "cleanup": [f"{getattr(t, '__module__', '')}.{getattr(t, '__qualname__', t)}" for t in ip.input_transformers_cleanup],
        "line": sorted(ip.magics_manager.magics["line"]), "cell": sorted(ip.magics_manager.magics["cell"]),
        "registry": sorted(ip.magics_manager.registry), "configurables": [type(c).__name__ for c in ip.configurables],
        "hooks": chains, "kernel": sorted(vars(ip.kernel)), "shell": sorted(n for n in vars(ip) if "nbagent" in n),
        "events": {k: [getattr(f, "__qualname__", str(f)) for f in v] for k, v in ip.events.callbacks.items()},
        "handlers": len(logging.getLogger("nbagent").handlers), "names": sorted(n for n in ip.user_ns if "nbagent" in n.lower()),
    }
"""


async def request(room: Room, kind: str, **content: Any) -> dict[str, Any]:
    """Send a request on the shell channel, as the page does for Tab, and return the reply's content."""
    kc: Any = room.page.kc
    request = kc.session.msg(kind, content)
    kc.shell_channel.send(request)
    async with asyncio.timeout(60):
        while True:
            reply = await kc.shell_channel.get_msg(timeout=None)
            if reply["parent_header"].get("msg_id") == request["header"]["msg_id"]:
                return reply["content"]


async def tab(room: Room, text: str) -> list[str]:
    reply = await request(room, "complete_request", code=text, cursor_pos=len(text))
    return reply["matches"]


async def test_unloading_takes_away_exactly_what_loading_added_and_reloading_works(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell("%unload_ext nbagent")
            await room.cell(STATE)
            before = await room.value("nbagent_state()")
            assert "agent" not in before["cell"]
            assert not (await room.cell("%load_ext nbagent\n%load_ext nbagent")).error
            loaded = await room.value("nbagent_state()")
            assert (
                "agent" in loaded["cell"] and "NbAgent" in loaded["configurables"] and "do_execute" in loaded["kernel"]
            )
            await room.cell("%%agent\nhi", "Hello.")
            await room.cell("%unload_ext nbagent")
            after = await room.value("nbagent_state()")
            assert {k: (before[k], after[k]) for k in before if before[k] != after[k]} == {}
            assert "Cell magic `%%agent` not found" in (await room.cell("%%agent\nhi")).seen
            assert not (await room.cell("%load_ext nbagent")).error
            assert not (await room.cell("%reload_ext nbagent")).error
            assert await room.value("nbagent_state()") == loaded
            await room.still_works()
        server.assert_clean()


async def test_a_second_agent_at_the_same_time_is_refused_in_one_line(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            code = "import asyncio\none, two = (get_ipython().run_cell_magic('agent', '', f'{n}\\n') for n in 'ab')\n"
            shown = await room.cell(
                f"{code}print(*[f'{{type(r).__name__}}: {{r}}' for r in await asyncio.gather(one, two, return_exceptions=True)], sep='\\n')",
                "One.",
            )
            assert "Refused: An agent is running in this kernel already." in shown.record
            await room.still_works()
        server.assert_clean()


async def test_every_subcommand_says_what_it_is_asked_for(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell("%%agent\nhi", "Hello.")
            for line, parts in {
                "status": ("model", "claude-sonnet-5-5", "mode     default", "running  no", ".jsonl", "tokens"),
                "rules": ("Mode: default", "read-only", "deny rules"),
                "doctor": ("Python 3", "ipykernel", "A key is set", server.url),
                "help": ("%agent status", "%agent traceback", "@last_error", "nbagent.describer"),
                "": ("%agent status",),
                "prompt": ("notebook",),
                "model": ("claude-sonnet-5-5",),
                "model opus": ("claude-opus-5-5", "next %%agent cell"),
                "mode": ("default", "bypass"),
                "mode plan": ("The mode is plan",),
                "stop": ("No agent is running.",),
                "traceback": ("No internal error",),
            }.items():
                (await room.cell(f"%agent {line}")).says(*parts)
            shown = await room.cell("%%agent\nand now", calls("add_cell", source="x = 1"), "I only planned.")
            shown.says("I only planned.", "claude-opus-5-5")
            assert server.requests[-1].body["model"] == "claude-opus-5-5"
            assert await room.value("'x' in globals()") is False
        server.assert_clean()


async def test_help_and_tab_name_the_options_and_subcommands(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell("%config Completer.use_jedi = False")  # whose first answer takes long on a busy machine
            assert {"--mode", "--model"} <= set(await tab(room, "%%agent --mo"))
            assert set(await tab(room, "%%agent --mode ")) >= {"plan", "bypass"}
            assert "doctor" in await tab(room, "%agent do")
            assert "opus" in await tab(room, "%agent model o")
            for text in ("%%agent?", "%agent?", "?%%agent"):
                reply = await request(
                    room, "execute_request", code=text, silent=False, store_history=False, allow_stdin=False
                )
                (page,) = reply["payload"]
                assert all(
                    part in page["data"]["text/plain"]
                    for part in ("--max-turns", "--budget", "accept-edits", "@last_error", "nbagent.describer")
                )
            await room.still_works()
        server.assert_clean()


async def test_settings_count_from_config_file_and_environment_in_their_order(tmp_path):
    """%config wins over [tool.nbagent], the cell's own option over both; a project's file only narrows, and says so."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.nbagent]\nmax_turns = 2\nbase_url = "http://evil.invalid"\nallow = ["shell"]\n'
    )
    looks = [calls("run_python", code=str(n)) for n in range(9)]
    left = "Some is left."  # asked for at the limit
    with MessagesServer() as server:
        async with Room(tmp_path, server, NBAGENT_ALLOW="run_python") as room:
            (await room.cell("%%agent\ngo", *looks[:2], left)).says("limit of 2 turns")
            await room.cell("%config NbAgent.max_turns = 3")
            (await room.cell("%%agent\ngo", *looks[2:5], left)).says("limit of 3 turns")
            (await room.cell("%%agent --max-turns 1\ngo", looks[5], left)).says("limit of 1 turn")
            (await room.cell("%agent status")).says("ignored", "base_url", "allow")
            shown = await room.cell("%config NbAgent")
            shown.says("NbAgent", "max_turns")
            shown = await room.cell("%config NbAgent.mode = 'bypas'\n%agent status")
            shown.says("mode = 'bypas'", "accept-edits")
            await room.cell("%config NbAgent.mode = ''")
            (await room.cell("%config NbAgent.rerun = 'sometimes'")).says(
                "rerun is replay, live or ask, not 'sometimes'"
            )
            assert "'sometimes'" not in (await room.cell("%config NbAgent.rerun")).seen
            await room.still_works()
        server.assert_clean()


async def test_the_answer_is_the_cells_value_and_is_shown_once(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server, NBAGENT_ALLOW="add_cell") as room:
            shown = await room.cell("%%agent\ngo", calls("add_cell", source="1 + 1"), "It is two.")
            number = shown.cell.execution_count
            assert shown.record.count("It is two.") == 1
            assert [o.output_type for o in shown.cell.outputs] == ["display_data"]
            facts = "[_.text, _.stop_reason, _.turns, len(_.cells), _.usage.total > 0, _.session_id[:3]]"
            assert await room.value(facts) == ["It is two.", "end_turn", 2, 1, True, "202"]
            assert await room.value(f"[Out[{number}].text, _{number}.turns, Out[{number + 1}]]") == ["It is two.", 2, 2]
        server.assert_clean()


SCRIPT = """
from nbagent.models.scripted import call, last_results
turns = [call("twice", text="ab"), lambda seen: f"The tool said {last_results(seen)[0]}."]
"""

REGISTER = """
import nbagent
@nbagent.register
@nbagent.tool
async def twice(call, text: str) -> str:
    '''Say a text twice.

    Args:
        text: What to say.
    '''
    return text * 2
"""


async def test_a_scripted_model_and_a_tool_of_the_persons_own_work_together(tmp_path):
    (tmp_path / "myscript.py").write_text(SCRIPT)
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            assert not (await room.cell(REGISTER)).error
            shown = await room.cell("%%agent -m scripted:myscript:turns\ngo")
            shown.says("The tool said abab.", "twice")
            shown = await room.cell("%%agent --new\ngo", Reply([call("twice", text="cd")]), "Done.")
            shown.says("Done.")
            assert room.results() == ["cdcd"]
            assert any(tool["name"] == "twice" for tool in server.requests[0].body["tools"])
        server.assert_clean()


LATER = """
import asyncio, pathlib
async def later():
    while not pathlib.Path("now").exists():
        await asyncio.sleep(0.05)
    get_ipython().run_line_magic("agent", "stop")
task = asyncio.create_task(later())
"""


async def test_the_stop_subcommand_ends_a_run_from_code_beside_it(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell(LATER)
            running = asyncio.create_task(room.cell("%%agent\ngo", Reply("a word, then silence", hang_after=4)))
            await asyncio.to_thread(server.wait_for_requests, 1, 25)
            (tmp_path / "now").touch()
            shown = await running
            shown.says("Stopped by you")
            await room.still_works()
        server.assert_clean()


INSIDE = """
import threading
kept = []
def allow():
    try:
        get_ipython().run_line_magic("agent", "status")
        kept.append("done")
    except Exception as error:
        kept.append(str(error))
thread = threading.Thread(target=allow, name="subshell-1")
thread.start(); thread.join()
"""


async def test_lines_inside_other_magics_work_and_those_of_other_threads_are_refused(tmp_path):
    """Row 111: what code starts beside the run can't answer for the person."""
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            for line in ("%time %agent status", "%%time\n%agent status", "%agent status"):
                (await room.cell(line)).says("claude-sonnet-5-5", "running  no")
            await room.cell(INSIDE)
            assert await room.value("kept") == ["An agent's code can't use %agent or %%agent: they are for people."]
        server.assert_clean()


async def test_a_bug_of_ours_is_one_sentence_and_its_traceback_is_kept(tmp_path):
    """A tool whose title fails costs its call; a failure that no part expects fails the cell with a sentence."""
    bug = REGISTER.replace("@nbagent.tool", "@nbagent.tool(title=lambda given: given['nothing'])")
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell(bug)
            shown = await room.cell("%%agent\ngo", Reply([call("twice", text="ab")]), "It has a bug.")
            shown.says("It has a bug.")
            await room.cell(
                "ours = get_ipython()._nbagent_extension; kept = ours.conversations; ours.conversations = None"
            )
            shown = await room.cell("%%agent\ngo")
            shown.says("nbagent itself failed (TypeError", "%agent traceback")
            assert "Traceback" in (await room.cell("%agent traceback")).record
            await room.cell("ours.conversations = kept")
            await room.still_works()
        server.assert_clean()
