"""Single rows of FAILURES.md, end to end in a real kernel: what enters a conversation can be sent, and is sent as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.session import NoStore, Transcript
from tests.core.rig import check_transcript
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Reply, Status, call, calls

pytestmark = [pytest.mark.timeout(120)]

ALLOW = {"NBAGENT_ALLOW": "run_python\nadd_cell\nrun_cell\nshell"}
HALVES = (
    "print('a' + chr(0xd800)); import os; x = os.fsdecode(b'b\\xff'); print(x.encode('utf-8', 'surrogateescape')); x"
)


@pytest.mark.kernel
async def test_half_surrogates_anywhere_reach_the_next_request_as_marks(tmp_path):
    """Row 11: in a printed text, a value, a file name, a variable, the model's own input; the kernel and notebook live on."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            await room.cell("import os\nopen(b'name\\xff.txt', 'w').close()\nhalf = 'v' + chr(0xdc80)")
            shown = await room.cell(
                "%%agent\ngo",
                calls("add_cell", source=HALVES),
                calls("run_python", code=HALVES),
                calls("run_python", code="os.listdir('.')"),
                calls("inspect_variable", name="half"),
                calls("glob_files", pattern="*.txt"),
                calls("run_python", code="raise ValueError('e' + chr(0xd801))"),
                "All read.",
            )
            shown.says("All read.")
            text = json.dumps(server.requests[-1].body, ensure_ascii=False)
            text.encode("utf-8")
            assert "a\ufffd" in text
            await room.still_works()
            json.dumps([dict(cell) for cell in room.page.document.cells], ensure_ascii=False).encode("utf-8")
        server.assert_clean()


@pytest.mark.kernel
async def test_thinking_goes_back_byte_for_byte_over_turns_cells_and_blocks(tmp_path):
    """Row 14: thinking, text, call, in several turns and a second cell; redacted thinking; the server compares bytes."""
    redacted = {"type": "redacted_thinking", "data": "AAAA/+=="}
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            shown = await room.cell(
                "%%agent\ngo",
                Reply(
                    [{"type": "text", "text": "I look. é\u2028"}, call("run_python", code="1")],
                    thinking="first  \n thought é",
                ),
                Reply([redacted, call("run_python", code="2"), call("run_python", code="3")], thinking="second"),
                Reply("The answer.", thinking=" third "),
            )
            shown.says("The answer.")
            (await room.cell("%%agent\nand now?", Reply("More.", thinking="fourth"))).says("More.")
            await room.still_works()
        server.assert_clean()
        sent = json.dumps(server.requests[-1].body["messages"], ensure_ascii=False)
        assert sent.count('"signature"') == 4 and redacted["data"] in sent


@pytest.mark.kernel
async def test_a_huge_result_is_cut_at_entry_and_a_full_context_ends_with_the_way_out(tmp_path):
    """Row 122: 600 KB in one step stays small in the request; where it no longer fits, --new works at once."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            await room.cell("big = 'x' * 600_000\nopen('big.txt', 'w').write(big)")
            full = Status(400, message="prompt is too long: 1200000 tokens > 1000000 maximum")
            shown = await room.cell(
                "%%agent\ngo",
                calls("run_python", code="print(big)"),
                calls("read_result", ref="r1", offset=100_000, limit=1_000_000),
                calls("add_cell", source="print(big)\nbig"),
                calls("shell", command="cat big.txt"),
                calls("inspect_variable", name="big"),
                full,
                full,  # so it can't be summed up as it is
                *[full] * 2,  # nor from texts of it that are cut to a half and shorter
            )
            shown.says("no longer fits", "%%agent --new")
            assert not [n for n in map(len, room.results()) if n > 13_000]
            assert all(len(json.dumps(seen.body)) < 150_000 for seen in server.requests)
            shown = await room.cell("%%agent --new\nstart again", "I start again.")
            shown.says("I start again.")
            assert len(server.requests[-1].body["messages"]) == 1
            await room.still_works()
        server.assert_clean()


@pytest.mark.kernel
async def test_what_is_told_of_the_notebook_stays_small_however_big_it_is(tmp_path):
    """Row 122, the other way in: a cell of the person's with huge source and output does not fill the first message."""
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell(f"text = {'y' * 300_000!r}\nprint(text * 3)")
            (await room.cell("%%agent\ngo", "Seen.")).says("Seen.")
            assert len(json.dumps(server.requests[0].body["messages"])) < 20_000
        server.assert_clean()


ids = st.integers(0, 10**6).map(lambda n: f"t{n}")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("reply"), st.lists(ids, max_size=3, unique=True), st.booleans()),
        st.tuples(st.just("answer"), st.lists(ids, max_size=3), st.booleans()),
        st.tuples(st.just("ask"), st.just([]), st.booleans()),
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=300 * settings.default.max_examples // 100, deadline=None)
@given(steps)
def test_pairs_of_call_and_result_are_whole_at_every_point_of_any_history(history):
    """Row 123: nothing that can be done to a transcript leaves a call without its result before the next request."""
    store = NoStore()
    transcript = Transcript(store)
    transcript.ask([{"type": "text", "text": "begin"}])
    used: set[str] = set()
    for kind, given_ids, flag in history:
        new = [i for i in given_ids if i not in used]
        if kind == "reply":
            used.update(new)
            content = [{"type": "text", "text": "t"}] if flag or not new else []
            transcript.reply([*content, *({"type": "tool_use", "id": i, "name": "n", "input": {}} for i in new)])
        elif kind == "answer":
            results = {i: {"type": "tool_result", "tool_use_id": i, "content": []} for i in given_ids}
            transcript.answer(results, ["word"] if flag else [])
        else:
            transcript.ask([{"type": "text", "text": "more"}])
        if not transcript.open_calls:
            check_transcript(transcript)
    transcript.answer({})
    check_transcript(transcript)
    assert [r["message"] for r in store.records] == list(transcript)
