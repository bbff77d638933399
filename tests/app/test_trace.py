"""`%agent trace`: the loop of a run that is over, opened up again from the session's file."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nbagent.app.history import runs_in
from nbagent.app.trace import chosen, seen_of, trace
from nbagent.core.errors import ConfigError
from nbagent.core.summary import Compaction
from nbagent.extend.sessions import FOLDER, JsonlStore
from nbagent.models.scripted import Turn, call, say
from nbagent.view.loopview import text
from nbagent.view.loopview.exchange import rebuilt
from tests.core.rig import Rig, play
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, calls


@pytest.fixture
def folder(tmp_path):
    (tmp_path / FOLDER).mkdir(parents=True)
    return tmp_path


async def kept(folder, *turns, name="20260101-100000-aaaa", session=None, **options):
    """Run a script and keep it as a cell's run is kept; return its session."""
    rig = Rig(store=JsonlStore(folder / FOLDER / f"{name}.jsonl"))
    session = session or rig.session(rig.tools())

    def log(event):
        session.newest.log(event)  # as `drive` does: after a summary another one

    return await play(*turns, rig=rig, session=session, on_event=log, **options)


TASK = (Turn([say("I look."), call("look", what="df")]), "Done.")


async def test_a_kept_run_is_seen_as_it_was_live(folder):
    ran = await kept(folder, *TASK)
    (run,) = runs_in(folder / FOLDER)
    seen = seen_of(run)
    assert [said.message for said in seen.messages] == ran.messages
    assert all(rebuilt(seen, asked).whole for asked in seen.requests) and len(seen.requests) == 2
    assert seen.before.system == "be good" and "reply_ended" not in text(seen)
    assert [str(step.state) for step in seen.path] == ["Think", "Think", "Act", "Observe", "Think", "Done"]


async def test_what_earlier_runs_of_the_session_said_is_part_of_the_request(folder):
    first = await kept(folder, *TASK)
    await kept(folder, "Again.", session=first.session)
    seen = seen_of(runs_in(folder / FOLDER)[1])
    assert len(seen.before.messages) == 4 and len(seen.messages) == 2
    (asked,) = seen.requests
    assert rebuilt(seen, asked).whole and len(rebuilt(seen, asked).body["messages"]) == 5


async def test_a_run_that_was_summed_up_goes_on_in_the_other_file(folder):
    compaction = Compaction(window=lambda _: 100, at=0.01)
    ran = await kept(folder, Turn([call("look", what="df")]), "A summary.", "Done.", compaction=compaction)
    assert ran.session.newest is not ran.session, "it was summed up"
    seen = seen_of(runs_in(folder / FOLDER)[0])
    assert seen.ended is not None and seen.first > 0
    assert rebuilt(seen, seen.requests[-1]).whole


async def test_torn_and_foreign_lines_cost_only_themselves(folder):
    await kept(folder, *TASK)
    path = next((folder / FOLDER).glob("*.jsonl"))
    lines = path.read_text("utf-8").splitlines()
    path.write_text(
        "\n".join([lines[0], "{", "[]", '{"type":"event","event":{"type":"new"}}', *lines[1:-1], lines[-1][:40]]),
        "utf-8",
    )
    seen = seen_of(runs_in(folder / FOLDER)[0])
    assert seen.ended is None and len(seen.messages) == 4


async def test_which_run_is_meant(folder):
    await kept(folder, *TASK)
    await kept(folder, "Hello.", name="20260102-100000-bbbb")
    runs = runs_in(folder / FOLDER)
    assert [chosen(runs, word) for word in ("", "1", "2", "run")] == [2, 1, 2, 2]
    for word, near in (("9", 2), ("0", 1), ("rum", 2)):
        with pytest.raises(ConfigError, match=f"no run '{word}'. The nearest is run {near} .“do it”"):
            chosen(runs, word)


async def test_bad_words_get_a_sentence(folder, monkeypatch):
    monkeypatch.chdir(folder)
    extension = SimpleNamespace(folder=folder, last=None)
    with pytest.raises(ConfigError, match="No runs"):
        trace(extension, "")
    await kept(folder, *TASK)
    for rest, said in {
        "--turn 7": "run 1 has no turn 7. It has turns 1 to 2.",
        "--turns 1": "unrecognized arguments",
        "1 --save x.txt": "must end in .html",
        '"1': "No closing quotation",
    }.items():
        with pytest.raises(ConfigError, match=said):
            trace(extension, rest)
    assert trace(extension, "1 --save x.html") == "The loop of run 1 is in x.html."
    assert "Content-Security-Policy" in (folder / "x.html").read_text("utf-8")
    with pytest.raises(ConfigError, match="there already"):
        trace(extension, "--save x.html")
    assert trace(extension, "--save x.html --force")


@pytest.mark.kernel
async def test_the_loop_of_a_finished_run_is_shown_in_its_kernel(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell("%%agent\nLook at it", calls("list_variables"), "Nothing is there.")
            shown = await room.cell("%agent trace")
            shown.says("Run 1: Look at it", "Path: Start → Think → Act → Observe → Think → Done", "list_variables",
                       "All messages are here: their hash is that of what was sent.")  # fmt: skip
            html = shown.cell.outputs[-1].data["text/html"]
            assert "<svg" in html and "the whole request: system" in html and "nbagent/core/loop.py" in html
            body = server.requests[-1].body
            assert f"{len(body['messages'])} message" in html and f"{len(body['tools'])} tools" in html
            shown = await room.cell("%%agent --trace\nAnd now", calls("list_variables"), "Still nothing.")
            shown.says("Still nothing.", "Path: Start → Think → Act → Observe → Think → Done")
            assert "data:image/svg+xml" in shown.cell.outputs[-1].data["text/html"]
            stepped = await room.cell("%%agent --step\nStep", "Hello.")  # nobody is there: it plays on
            assert "data:image/svg+xml" in stepped.cell.outputs[-1].data["text/html"]
            (await room.cell("%agent trace 7")).says("there is no run '7'. The nearest is run 3 (“Step”)")
        server.assert_clean()
