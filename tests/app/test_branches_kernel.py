"""Branches of one conversation in a real kernel: two from one point, neither sees the other, the parent stays as it was."""

from __future__ import annotations

import json
import os
import signal

import pytest

from nbagent.extend.sessions import FOLDER, outline
from tests.core.rig import check_transcript
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Reply, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(170)]


def said(body) -> str:
    return json.dumps(body["messages"], ensure_ascii=False)


def files(folder) -> dict[str, str]:
    return {path.stem: path.read_text() for path in (folder / FOLDER).glob("*.jsonl")}


async def test_two_branches_from_one_point_with_other_tools_models_and_prompts(tmp_path):
    """`%%agent --fork` in two cells, `fork_session` from code, the commands, and all of it again after a kill."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True, NBAGENT_MODE="bypass") as room:
            await room.cell("x = 41")
            await room.cell("%%agent\nRemember the word pear.", Reply("Pear it is.", thinking="A fruit."))
            [parent] = files(tmp_path)
            before = files(tmp_path)[parent]
            looks = calls("list_variables")
            await room.cell(
                "%%agent --fork --tools list_variables --out a\nWhat is x, in plum?", looks, "x is 41, plum."
            )
            narrowed = server.requests[-1].body
            assert [tool["name"] for tool in narrowed["tools"]] == ["list_variables"]
            assert "pear" in said(narrowed) and "thinking" not in said({"messages": narrowed["messages"][:2]})
            await room.cell("%%agent --fork --out b\nWhat is x, in fig?", "It is 41, fig.")
            same = server.requests[-1].body
            assert "A fruit." in said(same) and "plum" not in said(same), "the identical prefix, thinking and all"
            assert files(tmp_path)[parent] == before, "the parent is unchanged, to the byte"
            await room.cell("%%agent\nWhich word?", "Pear.")
            own = said(server.requests[-1].body)
            assert "plum" not in own and "fig" not in own and "pear" in own

            shown = await room.cell("%agent compare a b")
            text = shown.cell.outputs[0]["data"]
            assert "x is 41, plum." in text["text/plain"] and "It is 41, fig." in text["text/plain"], shown.seen
            assert "list_variables" in text["text/html"] and "text/markdown" in text
            made = "import nbagent\nbold = nbagent.fork_session(name='bold', system_append='Be bold.', at=1)\nprint(bold.messages)"
            assert (await room.cell(made)).record == "2\n"
            await room.cell("%%agent --session bold\nSay it.", "PEAR!")
            asked = server.requests[-1].body
            assert "Be bold." in json.dumps(asked["system"]) and "Which word?" not in said(asked)
            answer = await room.cell("print((await bold.ask('Once more.')).text)", "PEAR, I SAID!")
            assert "PEAR, I SAID!" in answer.record and "Say it." in said(server.requests[-1].body)
            listed = (await room.cell("%agent sessions --all")).record
            assert listed.count("[branch]") + listed.count("branch]") >= 3 and "“bold”" in listed, listed
            assert (await room.cell("%agent resume blod")).error.count("Did you mean bold?") == 1
            os.kill(room.pid, signal.SIGKILL)
            cells = list(room.page.document.cells)
        async with Room(tmp_path, server, interactive=True, NBAGENT_MODE="bypass") as room:
            room.page.document.cells[:0] = cells
            await room.cell("%%agent --session bold\nAnd after the restart?", "STILL PEAR!")
            asked = server.requests[-1].body
            assert "Be bold." in json.dumps(asked["system"]) and "PEAR, I SAID!" in said(asked)
            assert "The kernel was restarted" in said(asked) and "): x" in said(asked)
            await room.cell("%%agent\nAnd here?", "Pear, as before.")
            assert "Which word?" in said(server.requests[-1].body) and "PEAR!" not in said(server.requests[-1].body)
            assert len([path for path in (tmp_path / FOLDER).glob("*.jsonl") if not outline(path).beside]) == 1
            (await room.cell(f"%agent fork --at 1 {parent}")).says("after 1 prompt")
            await room.cell("%%agent\nOtherwise?", "Otherwise.")
            asked = server.requests[-1].body["messages"]
            assert [m["role"] for m in asked] == ["user", "assistant", "user"] and "Pear it is." in str(asked[1])
            assert "can be seen" in (await room.cell("%agent rename a\u202eb")).error
            (await room.cell("%agent rename other way")).says("is called “other way” now")
            (await room.cell("%agent resume other way")).says("goes on in “other way”")
            (await room.cell(f"%agent delete {parent} --yes")).says(f"Deleted: {parent}")
            assert parent not in files(tmp_path)
            for messages in room.transcripts():
                check_transcript(messages)
        server.assert_clean()


async def test_what_was_going_on_in_a_session_that_is_deleted_goes_with_it(tmp_path):
    """A pending `resume` and a planned branch of it: the next cell begins a new one, and the branch is said to be gone."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True, NBAGENT_MODE="bypass") as room:
            await room.cell("%%agent\nRemember the word pear.", "Pear it is.")
            [parent] = files(tmp_path)
            await room.cell("import nbagent; nbagent.fork_session(name='bold')")
            (await room.cell(f"%agent resume {parent}")).says("goes on in")
            (await room.cell(f"%agent delete {parent} --yes")).says("then begins a new one")
            gone = await room.cell("%%agent --session bold\nAnd now?")
            gone.says("No session is kept")
            shown = await room.cell("%%agent\nStart.", "Started.")
            assert "Started." in shown.record and not shown.error, shown.seen
            assert len(server.requests[-1].body["messages"]) == 1
            foreign = {
                "type": "session",
                "v": 1,
                "system": "",
                "tools": [],
                "title": "a\u202e\x1b[2Jb",
                "errand": "c\nd",
            }
            said = {"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}}
            (tmp_path / FOLDER / "foreign.jsonl").write_text(f"{json.dumps(foreign)}\n{json.dumps(said)}\n")
            listed = (await room.cell("%agent sessions --all")).record
            assert "⟨U+202E⟩" in listed and "\x1b" not in listed and "c d" in listed, listed
