"""Sessions read back: torn ends, cut calls, seals, what a list tells; and which of them a person means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbagent.app.finding import find, last_of, same_notebook, split_point
from nbagent.core.errors import ConfigError
from nbagent.core.messages import text_block
from nbagent.core.session import MAYBE, NEVER_BEGAN, Session
from nbagent.extend.holds import Holds
from nbagent.extend.seals import Seals
from nbagent.extend.sessions import FOLDER, JsonlStore, outline, read_session
from nbagent.extend.sessions_read import prompts
from tests.core.rig import check_transcript

CALLS = [{"type": "tool_use", "id": f"t{n}", "name": "do", "input": {"n": n}} for n in range(4)]


def session(folder: Path, name: str = "20261129-235801-1f9c", **about) -> tuple[Session, JsonlStore]:
    store = JsonlStore(folder / FOLDER / f"{name}.jsonl", Seals(folder / "keys"))
    return Session(name, system="s", tools=(), store=store, about={"notebook": "n.ipynb", **about}), store


def event(kind: str, **fields) -> dict:
    return {"type": "event", "event": {"type": kind, **fields}}


def cut(folder: Path) -> Path:
    """A session whose kernel ended in the middle of a reply's four calls."""
    made, store = session(folder)
    store.append(event("run_started", prompt="do it", notebook="n.ipynb", model="m"))
    made.transcript.ask([text_block("<context>\nnews\n</context>"), text_block("do it")])
    made.transcript.reply(CALLS)
    store.append(event("reply_ended", usage={"input": 5, "output": 2}, cost=0.01))
    store.append(event("call_started", call_id="t0"))
    store.append(event("call_ended", call_id="t0", status="ok", content=[text_block("zero")]))
    store.append(event("call_started", call_id="t1"))
    store.append(event("approval_answered", call_id="t2", approved=True))
    store.append({"type": "cell", "cell": "c", "first": None})
    return store.path


def test_calls_that_were_cut_off_get_what_is_known_of_them(tmp_path):
    found = read_session(cut(tmp_path), Seals(tmp_path / "keys"))
    assert found is not None and found.sealed and found.unfinished == "c"
    told = {call: block["content"][0]["text"] for call, block in found.closing.items()}
    assert told == {"t0": "zero", "t1": MAYBE, "t2": MAYBE, "t3": NEVER_BEGAN}
    assert [bool(block.get("is_error")) for block in found.closing.values()] == [False, True, True, True]
    check_transcript([*found.messages, {"role": "user", "content": list(found.closing.values())}])
    assert found.spent[0].total == 7 and found.spent[1] == 0.01


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.integers(0, 5_000))
def test_wherever_the_file_is_torn_what_is_left_is_a_valid_session_that_can_be_written_on(tmp_path, size):
    path = cut(tmp_path)
    path.write_bytes(path.read_bytes()[:size])
    seals = Seals(tmp_path / "keys")
    found = read_session(path, seals)
    if found is None:
        assert size < len(path.read_bytes().split(b"\n")[0]) + 2
        path.unlink()
        return
    assert found.sealed, "what is torn is not somebody else's"
    whole = [*found.messages, *([{"role": "user", "content": list(found.closing.values())}] if found.closing else [])]
    check_transcript(whole)
    JsonlStore(path, seals, last=found.last).append({"type": "title", "title": "goes on"})
    again = read_session(path, seals)
    assert again is not None and again.title == "goes on" and again.sealed and again.messages == found.messages
    path.unlink()


def test_a_session_that_was_changed_or_is_somebody_elses_is_told_from_ours(tmp_path):
    path = cut(tmp_path)
    seals = Seals(tmp_path / "keys")
    assert read_session(path, Seals(tmp_path / "other")).sealed is False
    assert read_session(path).sealed is False, "without a key nothing is known"
    lines = path.read_text().splitlines()
    for changed in (
        lines[:2] + lines[3:],
        [*lines[:2], lines[2].replace("do it", "do more"), *lines[3:]],
        [*lines, lines[-1]],
    ):
        path.write_text("\n".join(changed) + "\n")
        found = read_session(path, seals)
        assert found is not None and not found.sealed


def test_what_a_list_tells_is_read_without_the_messages(tmp_path):
    one = outline(cut(tmp_path))
    assert one is not None
    assert (one.prompt, one.runs, one.turns, one.cost, one.messages, one.beside) == ("do it", 1, 1, 0.01, 2, False)
    branch, store = session(tmp_path, "20261129-235802-aaaa", beside=True, title="bold")
    branch.transcript.ask([text_block("other words")])
    beside = outline(store.path)
    assert beside is not None and beside.beside and beside.title == "bold" and beside.prompt == "other words"
    store.append({"type": "resumed", "moved": True})
    assert outline(store.path).beside is False, "the notebook went over to it"


def test_a_session_is_found_by_id_its_beginning_its_end_or_its_name_and_the_nearest_is_told(tmp_path):
    cut(tmp_path)
    other, _ = session(tmp_path, "20261130-080000-aaaa", title="Bold one")
    other.transcript.ask([text_block("x")])
    for ref in ("20261130-080000-aaaa", "20261130", "aaaa", "Bold one", "bold one"):
        assert find(tmp_path, ref).id == "20261130-080000-aaaa"
    with pytest.raises(ConfigError, match="2 sessions begin with '2026'"):
        find(tmp_path, "2026")
    with pytest.raises(ConfigError, match="Did you mean Bold one"):
        find(tmp_path, "Blod one")
    with pytest.raises(ConfigError, match=r"no session '\.\./x'"):
        find(tmp_path, "../x")
    assert last_of(tmp_path, "n.ipynb") is not None and last_of(tmp_path, "m.ipynb") is None
    assert split_point("abc@2") == ("abc", 2) and split_point("@1") == ("", 1) and split_point("abc") == ("abc", None)
    with pytest.raises(ConfigError, match="from 1 on"):
        split_point("abc@0")


def test_one_notebook_is_known_under_the_roots_of_two_servers():
    assert same_notebook("work/n.ipynb", "n.ipynb") and same_notebook("a/b/n.ipynb", "b/n.ipynb")
    assert not same_notebook("a/n.ipynb", "b/n.ipynb") and not same_notebook("", "n.ipynb")


def test_prompts_are_what_a_person_said_and_not_results_or_reminders(tmp_path):
    messages = [
        {"role": "user", "content": [text_block("one")]},
        {"role": "assistant", "content": [CALLS[0]]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t0", "content": [text_block("x")]}]},
        {"role": "user", "content": [text_block("(From the runtime, not the person:) Go on.")]},
        {"role": "user", "content": [text_block("<context>\nnews\n</context>"), text_block("two")]},
    ]
    assert prompts(messages) == [0, 4]


def test_a_session_is_held_by_one_process_only_and_free_again_when_that_ends(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path; from nbagent.extend.holds import Holds\n"
        f"print(Holds(Path({str(tmp_path / FOLDER)!r})).take('one'), flush=True); sys.stdin.read()"
    )
    holds = Holds(tmp_path / FOLDER)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        assert holds.elsewhere("one") and not holds.take("one") and holds.take("two") and not holds.elsewhere("two")
        other.kill()
    assert holds.take("one")
    holds.close()
    assert json.dumps(sorted(path.name for path in (tmp_path / FOLDER).iterdir())) == '[".lock"]'


@pytest.mark.parametrize(
    "content",
    [
        ["x"],
        [None],
        [{"type": "tool_result"}],
        [{"type": ["x"]}],
        [{"type": "tool_use", "id": {}}],
        [{"text": "no type"}],
    ],
)
def test_a_message_with_a_block_that_is_none_ends_what_can_be_read_and_harms_no_list(tmp_path, content):
    """A damaged file, or one of somebody else's folder: the sessions beside it stay in the list."""
    good = {"role": "user", "content": [{"type": "text", "text": "first"}]}
    about = {"type": "session", "v": 1, "system": "", "tools": []}
    for number, messages in enumerate(
        [[good, {"role": "assistant", "content": content}], [{"role": "user", "content": content}]]
    ):
        path = tmp_path / f"{number}.jsonl"
        records = [about, *({"type": "message", "message": message} for message in messages)]
        path.write_text("\n".join(map(json.dumps, records)) + "\n")
        assert list(read_session(path).messages) == ([good] if number == 0 else [])
        assert outline(path).prompt == ("first" if number == 0 else "")


def test_events_about_calls_without_a_name_are_passed_over(tmp_path):
    asked = [{"role": "user", "content": [{"type": "text", "text": "a"}]},
             {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "n", "input": {}}]}]  # fmt: skip
    records = [{"type": "session", "v": 1, "system": "", "tools": []},
               *({"type": "message", "message": message} for message in asked),
               {"type": "event", "event": {"type": "call_ended", "call_id": [1]}},
               {"type": "event", "event": {"type": "call_started", "call_id": {}}}]  # fmt: skip
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
    assert list(read_session(tmp_path / "s.jsonl").closing) == ["c"]
