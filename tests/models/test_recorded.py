"""A recording replays byte-equal, says where a request departs, and outlives git, a crash and another Python."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.errors import ConfigError, Overloaded, Rejected
from nbagent.core.messages import reply_events
from nbagent.core.ports import Model, Request
from nbagent.models.anthropic import AnthropicModel
from nbagent.models.recorded import Loose, Recording, Replayed, as_recorded
from nbagent.models.recording import FOLDER, Cleaning, Piece, Tape, read_recording, same_but_when
from nbagent.models.scripted import ScriptedModel, Turn, call, say, think
from nbagent.models.streamed import changed, in_json, repieced, retexted
from nbagent.tools.secrets import mask
from tests.source import ROOT
from tests.support.messages_server import MessagesServer, Reply, calls

KEY = "sk-ant-api03-planted-key-0123456789abcdef"
TOOLS = ({"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}},)


def asks(*texts: str, system: str = "Be careful.") -> Request:
    """A request whose messages are these texts in turn: the person's, the model's, …"""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": [{"type": "text", "text": text}]} for n, text in enumerate(texts)]
    return Request(system, TOOLS, messages)


async def take(model: Model, request: Request) -> list[dict[str, Any]]:
    async with aclosing(model.stream(request)) as events:
        return [event async for event in events]


def bytes_of(events: list[dict[str, Any]]) -> bytes:
    return json.dumps(events).encode()


async def taped(path: Path, *asked: Request, script: list[Any], cleaning: Cleaning | None = None) -> list[bytes]:
    """Record these requests to a script; return what was streamed to each."""
    model = Recording(ScriptedModel(script), Tape(path, cleaning=cleaning))
    return [bytes_of(await take(model, request)) for request in asked]


# ── byte-equal ───────────────────────────────────────────────────────────────────────────────────────────────────────

STREAMS = st.lists(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec=None)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ).map(lambda value: {"type": "surprise", "value": value}),
    max_size=5,
)


class Raw(ScriptedModel):
    """Streams exactly these events."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        super().__init__([])
        self.events = events

    async def stream(self, request: Request):
        for event in self.events:
            yield event


@settings(max_examples=40, deadline=None)
@given(STREAMS)
def test_whatever_is_streamed_is_replayed_byte_for_byte(tmp_path_factory: Any, events: list[dict[str, Any]]) -> None:
    path = tmp_path_factory.mktemp("tape") / "run.jsonl"

    async def both() -> tuple[bytes, bytes]:
        first = await take(Recording(Raw(events), Tape(path, cleaning=Cleaning())), asks("Go"))
        return bytes_of(first), bytes_of(await take(Replayed(read_recording(path), cleaning=Cleaning()), asks("Go")))

    first, again = asyncio.run(both())
    assert first == again
    path.read_bytes().decode("ascii")


@pytest.fixture
async def from_server(tmp_path: Path):
    """A recording of two requests to the local server of the Messages API: the file, the requests, what was streamed."""
    path, streamed = tmp_path / "run.jsonl", []
    script = [calls("look", unit="µg", text="Ich schaue. 🐧"), Reply("Es sind 344 Pinguine\u2028und 3 Inseln.")]
    with MessagesServer(script) as server:
        model = Recording(AnthropicModel("claude-sonnet-5-5", base_url=server.url, api_key=KEY), Tape(path))
        first = asks("Wie viele?")
        streamed.append(bytes_of(await take(model, first)))
        block = next(e["content_block"] for e in json.loads(streamed[0]) if e.get("content_block", {}).get("name"))
        result = {"type": "tool_result", "tool_use_id": block["id"], "content": [{"type": "text", "text": "344"}]}
        reply = {"role": "assistant", "content": [{**block, "input": {"unit": "µg"}}]}
        second = Request("Be careful.", TOOLS, [*first.messages, reply, {"role": "user", "content": [result]}])
        streamed.append(bytes_of(await take(model, second)))
        await model.aclose()
    yield path, [first, second], streamed


async def _replayed(path: Path, requests: list[Request]) -> list[bytes]:
    model = Replayed(read_recording(path))
    played = [bytes_of(await take(model, request)) for request in requests]
    model.assert_complete()
    return played


async def test_a_recording_of_the_server_replays_byte_equal_and_recorded_again_is_the_same_file(
    from_server: Any, tmp_path: Path
) -> None:
    path, requests, streamed = from_server
    assert await _replayed(path, requests) == streamed
    again = Recording(Replayed(read_recording(path)), Tape(tmp_path / "again.jsonl"))
    for request in requests:
        await take(again, request)
    assert same_but_when(tmp_path / "again.jsonl") == same_but_when(path)


def _git(folder: Path, *words: str) -> None:
    told = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "core.autocrlf=true")
    subprocess.run(["git", *author, *words], cwd=folder, env=told, check=True, capture_output=True, timeout=60)


async def test_a_trip_through_git_that_changes_line_ends_changes_nothing(from_server: Any, tmp_path: Path) -> None:
    path, requests, streamed = from_server
    there, back = tmp_path / "there", tmp_path / "back"
    there.mkdir()
    (there / ".gitattributes").write_text("* text=auto eol=crlf\n")
    (there / "run.jsonl").write_bytes(path.read_bytes())
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "a recording")):
        _git(there, *words)
    _git(tmp_path, "clone", "-q", str(there), str(back))
    travelled = back / "run.jsonl"
    assert b"\r\n" in travelled.read_bytes()
    assert await _replayed(travelled, requests) == streamed
    assert same_but_when(travelled) == same_but_when(path)


PLAY = """
import asyncio, json, sys
from pathlib import Path
from nbagent.core.ports import Request
from nbagent.models.recorded import Replayed
from nbagent.models.recording import read_recording

async def play(path, requests):
    model = Replayed(read_recording(Path(path)))
    return [json.dumps([event async for event in model.stream(Request(*one))]) for one in requests]

print(json.dumps([sys.version_info[:2], asyncio.run(play(sys.argv[1], json.loads(sys.argv[2])))]))
"""


def _other_pythons() -> list[str]:
    """Interpreters of other minor versions that lie beside this one, 3.11 or newer, and at last this one."""
    here = Path(sys.base_prefix)
    mine = f"3.{sys.version_info.minor}."
    found = sorted(path for path in here.parent.glob("3.1[1-9].*/bin/python") if not path.parts[-3].startswith(mine))
    return [*map(str, found), sys.executable]


@pytest.mark.slow
async def test_another_minor_version_of_python_replays_it_byte_equal(from_server: Any) -> None:
    path, requests, streamed = from_server
    given_ = json.dumps([[one.system, one.tools, one.messages] for one in requests])
    versions = set()
    for python in _other_pythons():
        env = {"PYTHONPATH": str(ROOT), "HOME": os.environ["HOME"], "PYTHONHASHSEED": "7"}
        command = [python, "-W", "error", "-c", PLAY, str(path), given_]
        done = await asyncio.to_thread(
            subprocess.run, command, env=env, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        version, played = json.loads(done.stdout)
        versions.add(tuple(version))
        assert [text.encode() for text in played] == streamed, version
    assert sys.version_info[:2] in versions


# ── strict, and loose ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (asks("Hi", "Hello", "Count 3"), "at request 2, messages[2].content[0].text: recorded 'Count 2', now 'Count 3'."),
        (asks("Hi", "Hello", "Count 2", system="Be quick."), "request 2, system: recorded 'Be careful.', now 'Be quick.'."),
        (asks("Hi", "Hello"), 'request 2, messages[2]: recorded {"content":'),
        (Request("Be careful.", (), asks("Hi", "Hello", "Count 2").messages), 'request 2, tools[0]: recorded {"desc'),
    ],
)  # fmt: skip
async def test_a_strict_replay_names_request_and_field(tmp_path: Path, request_: Request, said: str) -> None:
    path = tmp_path / "run.jsonl"
    await taped(path, asks("Hi"), asks("Hi", "Hello", "Count 2"), script=["Hello", "2"])
    model = Replayed(read_recording(path))
    await take(model, asks("Hi"))
    with pytest.raises(Rejected) as refused:
        await take(model, request_)
    assert said in str(refused.value)
    loose = Loose(read_recording(path))
    await take(loose, asks("Hi"))
    assert b"2" in bytes_of(await take(loose, request_))


async def test_one_more_request_than_recorded_is_said(tmp_path: Path) -> None:
    await taped(tmp_path / "run.jsonl", asks("Hi"), script=["Hello"])
    for kind in (Replayed, Loose):
        model = kind(read_recording(tmp_path / "run.jsonl"))
        with pytest.raises(AssertionError, match="has 1 requests, 0 were asked for"):
            model.assert_complete()
        await take(model, asks("Hi"))
        with pytest.raises(Rejected, match="has 1 request, and one more was asked for"):
            await take(model, asks("Hi"))


async def test_requests_that_come_in_another_order_get_their_own_replies(tmp_path: Path) -> None:
    first, second = await taped(tmp_path / "run.jsonl", asks("A"), asks("B"), script=["to A", "to B"])
    model = Replayed(read_recording(tmp_path / "run.jsonl"))
    assert bytes_of(await take(model, asks("B"))) == second
    assert bytes_of(await take(model, asks("A"))) == first


async def test_ids_and_seconds_of_a_run_do_not_count_and_replies_speak_of_the_ids_of_now(tmp_path: Path) -> None:
    def told(cell: str, seconds: str) -> Request:
        return asks("Hi", "Adding.", f"Cell {cell} added after 12345678 and ran as In[4] in {seconds} s: ok.")

    path = tmp_path / "run.jsonl"
    script = [say("Look at cell ab12cd34."), call("look", cell="ab12cd34")]
    await taped(path, told("ab12cd34", "0.1"), script=[script])
    model = Replayed(read_recording(path))
    events = await take(model, told("99887766", "1.7"))
    pieces = [event["delta"] for event in events if "delta" in event]
    assert "".join(p.get("text", "") for p in pieces) == "Look at cell 99887766."
    assert json.loads("".join(p.get("partial_json", "") for p in pieces)) == {"cell": "99887766"}
    with pytest.raises(Rejected, match="request 1, messages"):
        await take(Replayed(read_recording(path)), asks("Hi", "Adding.", "Cell ab12cd34 added after ab12cd34 and ran as In[4] in 0.1 s: ok."))  # fmt: skip


async def test_errors_are_replayed_and_a_stopped_reply_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = Recording(ScriptedModel([Overloaded("Too much.", retry_after=9), "Hello there"]), Tape(path))
    with pytest.raises(Overloaded):
        await take(model, asks("Hi"))
    stream = model.stream(asks("Hi"))
    first = await anext(stream)
    await stream.aclose()
    again = Replayed(read_recording(path))
    with pytest.raises(Overloaded, match="Too much") as raised:
        await take(again, asks("Hi"))
    assert raised.value.retry_after == 0.0
    stream = again.stream(asks("Hi"))
    assert await anext(stream) == first
    with pytest.raises(Rejected, match="was stopped here, in request 2"):
        await anext(stream)


def test_a_pace_waits_as_long_as_the_model_took() -> None:
    assert as_recorded(Piece(1500, {}), 0.5) == 1.0
    assert as_recorded(Piece(100, {}), 0.5) == 0.0


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_no_message_is_written_twice(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await taped(path, asks("first words"), asks("first words", "Hello", "more"), asks("other"), script=["a", "b", "c"])
    text = path.read_text()
    assert text.count("first words") == 1
    assert text.count("Be careful.") == 2  # the third goes on from nothing
    assert [len(one.asked["messages"]) for one in read_recording(path).requests] == [1, 3, 1]


async def test_after_a_crash_all_whole_requests_are_there(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    streams = await taped(path, asks("A"), asks("B"), script=["to A", "to B"])
    whole = path.read_bytes()
    end_of_first = whole.index(b'"ended"')
    end_of_first = whole.index(b"\n", end_of_first) + 1
    for cut in (end_of_first, end_of_first + 5, end_of_first + 200, len(whole) - 2):
        path.write_bytes(whole[:cut])
        file = read_recording(path)
        assert len(file.requests) == 1
        assert bytes_of(await take(Replayed(file), asks("A"))) == streams[0]


def test_files_that_are_no_recordings_are_refused_with_a_sentence(tmp_path: Path) -> None:
    other = tmp_path / "sales.csv"
    other.write_text("amount\n1\n2\n")
    with pytest.raises(ConfigError, match="is no recording"):
        Tape(other)
    with pytest.raises(ConfigError, match="damaged in line 1"):
        read_recording(other)
    with pytest.raises(ConfigError, match="can't be read"):
        read_recording(tmp_path / "none.jsonl")
    other.write_text('{"recording": 9}\n')
    with pytest.raises(ConfigError, match="of version 9"):
        read_recording(other)
    other.write_text('{"recording": 1}\n{"request": 1, "max_to\n{"request": 2}\n')
    with pytest.raises(ConfigError, match="damaged in line 2"):
        read_recording(other)
    other.write_text('{"recording": 1, "volatile": {"x": "("}}\n')
    with pytest.raises(ConfigError, match=r"volatile\.x is not a regular expression"):
        Replayed(read_recording(other))


async def test_secrets_and_the_persons_folders_are_not_in_it(tmp_path: Path) -> None:
    home, folder = str(tmp_path / "ann"), str(tmp_path / "ann" / "work")
    cleaning = Cleaning(mask, home, folder)
    path = tmp_path / "run.jsonl"
    asked = asks(f"My key is {KEY}, in {folder}/a.csv and {home}/.netrc, not {home}ette", system=f"At {folder}.")
    reply = [
        think(f"The key {KEY}"),
        say(f"I read {folder}/a.csv with {KEY}."),
        call("look", path=f"{folder}/a.csv", key=KEY),
    ]
    (streamed,) = await taped(path, asked, script=[Turn(reply)], cleaning=cleaning)
    text = path.read_text()
    for planted in (KEY, KEY[7:30], home + "/", folder):
        assert planted not in text
    assert f"{home}ette" in text
    played = await take(Replayed(read_recording(path), cleaning=cleaning), asked)
    assert len(played) == len(json.loads(streamed))
    pieces = [event["delta"] for event in played if "delta" in event]
    assert "".join(p.get("text", "") for p in pieces) == f"I read {folder}/a.csv with <hidden secret>."
    assert json.loads("".join(p.get("partial_json", "") for p in pieces))["path"] == f"{folder}/a.csv"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("abX-", max_size=6), min_size=1, max_size=6))
def test_a_text_in_pieces_is_changed_as_a_whole_and_stays_in_as_many(pieces: list[str]) -> None:
    changed = "".join(pieces).replace("aX", "<hidden>").replace("-", "")
    made = repieced(pieces, changed)
    assert "".join(made) == changed
    assert len(made) == len(pieces)


def test_a_reply_that_needs_no_change_is_the_same_object() -> None:
    events = reply_events([say("words"), call("look", a="b")])
    assert all(one is other for one, other in zip(retexted(events, str), events, strict=True))
    assert FOLDER not in json.dumps(events)


@pytest.mark.parametrize("secret", ['p"ss\\word', "pässword", "two\nlines"])
def test_what_is_escaped_in_a_calls_arguments_is_taken_out_too(secret: str) -> None:
    def clean(text: str) -> str:
        return text.replace(secret, "<hidden>")

    text = json.dumps({"code": f"login({secret})"})
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    events = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
        for piece in pieces
    ]
    cleaned = "".join(event["delta"]["partial_json"] for event in retexted(events, clean))
    assert json.loads(cleaned) == {"code": "login(<hidden>)"}


def test_a_secret_that_is_the_name_of_an_argument_is_taken_out_of_a_request_too() -> None:
    asked = {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": {"key-1": 1}}]}]}
    cleaned = changed(asked, lambda text: text.replace("key-1", "<hidden>"))
    assert cleaned["messages"][0]["content"][0]["input"] == {"<hidden>": 1}


@pytest.mark.parametrize("folder", ["/home/ada/project", "C:\\temp\\new", "C:\\Users\\ada"])
def test_a_folder_is_put_back_into_arguments_as_json_writes_it(folder: str) -> None:
    there = Cleaning(folder=folder)
    recorded = in_json(json.dumps({"path": f"{folder}/a.csv"}), there.clean)
    assert json.loads(recorded) == {"path": f"{FOLDER}/a.csv"}
    assert json.loads(in_json(recorded, there.put_back)) == {"path": f"{folder}/a.csv"}


def test_arguments_that_were_cut_are_changed_as_they_are_written() -> None:
    assert in_json('{"code": "key-1', lambda text: text.replace("key-1", "<hidden>")) == '{"code": "<hidden>'


@pytest.mark.parametrize("line", ["[]", "null", '{"request": []', "[" * 100_000, "\x00", '{"event": 5}'])
async def test_a_line_of_garbage_is_told_by_its_number_and_at_the_end_it_is_one_that_was_cut(
    tmp_path: Path, line: str
) -> None:
    path = tmp_path / "run.jsonl"
    await take(Recording(ScriptedModel(["Well."]), Tape(path)), asks("Go"))
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([*lines[:-1], line, lines[-1]]), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"line {len(lines)}"):
        read_recording(path)
    path.write_text("\n".join([*lines, line]), encoding="utf-8")
    assert len(read_recording(path).requests) == 1
