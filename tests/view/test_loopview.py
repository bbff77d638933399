"""The loop view: a pure fold of events, source lines that are really there, and HTML in which all text is data."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbagent
from nbagent.core import events as ev
from nbagent.core.events import Event, Reason, State, Status
from nbagent.core.limits import Limits
from nbagent.core.messages import Usage, image_block, text_block
from nbagent.models.scripted import ScriptedModel, Turn, call, say, think
from nbagent.view.fold import coalesce, fold_all
from nbagent.view.loopview import Before, LoopSeen, diagram_html, html, places, see, see_all, text
from nbagent.view.loopview.exchange import rebuilt
from nbagent.view.loopview.panel import MESSAGES, Pieces
from nbagent.view.loopview.source import Sources
from nbagent.view.record import record
from tests.core.rig import Person, play

EVIL = '<script>alert(1)</script><img src="http://evil.example/x.png" onerror=alert(2)> \u202egnp.exe \x1b[31m'


def task(*more):
    """Three turns: a call, two calls of which one fails, an answer."""
    return (
        Turn([say("I look."), call("look", what="df")], usage=Usage(2100, 64, 3000, 0)),
        Turn([think("hm"), call("change", what="x = 1"), call("fail")], usage=Usage(300, 84, 400, 3000)),
        Turn("Done.", usage=Usage(120, 31, 200, 3400)),
        *more,
    )


class Heard(ScriptedModel):
    """Keeps the messages of each request as it got them."""

    def __init__(self, turns) -> None:
        super().__init__(turns)
        self.heard: list[list] = []

    def stream(self, request):
        self.heard.append(list(request.messages))
        return super().stream(request)


# ── the fold ─────────────────────────────────────────────────────────────────────────────────────────────────────────

words = st.text(max_size=20)
blocks = st.one_of(
    st.builds(text_block, words),
    st.builds(lambda i, n: {"type": "tool_use", "id": i, "name": n, "input": {}}, words, words),
    st.dictionaries(st.sampled_from(["type", "text", "name", "content", "tool_use_id"]), words),
)
messages = st.builds(lambda c: {"role": "user", "content": c}, st.one_of(words, st.lists(blocks, max_size=3)))
usages = st.builds(Usage, *[st.integers(0, 10_000)] * 4)
_at = {"state": st.sampled_from(State), "turn": st.integers(0, 4), "at": st.floats(0, 100)}
several = st.lists(blocks, max_size=3).map(tuple)
some_events = st.one_of(
    st.builds(ev.RunStarted, **_at, run_id=words, session_id=words, model=words, mode=words, prompt=words, max_turns=st.just(9)),
    st.builds(ev.RequestSent, **_at, model=words, new=st.lists(messages, max_size=3).map(tuple), prefix=words, host=words),
    st.builds(ev.ReplyStarted, **_at, model=words),
    st.builds(ev.TextDelta, **_at, index=st.just(0), text=words),
    st.builds(ev.ReplyEnded, **_at, content=several, stop_reason=words, usage=usages, cost=st.none() | st.floats(0, 9)),
    st.builds(ev.ReplyDiscarded, **_at, why=words),
    st.builds(ev.RetryScheduled, **_at, attempt=st.just(2), limit=st.just(3), wait=st.just(0.0), why=words),
    st.builds(ev.CallEnded, **_at, call_id=words, name=words, status=st.sampled_from(Status), content=several, seconds=st.just(0.1)),
    st.builds(ev.ResultsAppended, **_at, call_ids=st.lists(words, max_size=3).map(tuple)),
    st.builds(ev.Noted, **_at, text=words),
    st.builds(ev.Compacted, **_at, trigger=words, before=st.just(9), after=st.just(1), summary=words, session_id=words, compacted_from=words),
    st.builds(ev.RunEnded, **_at, reason=st.sampled_from(Reason), sentence=words, next_step=words, text=words, turns=st.integers(0, 4)),
)  # fmt: skip


@given(st.lists(some_events, max_size=25))
def test_any_events_in_any_order_are_folded_and_drawn(events: list[Event]):
    seen = see_all(events)
    assert sum(step.events for step in seen.path) == sum(not isinstance(event, ev.TextDelta) for event in events)
    for one in seen.requests:
        assert one.first >= 0 and one.upto <= len(seen.messages)
    page = html(seen) + diagram_html(seen)
    assert page.count("<div") == page.count("</div>")
    assert text(seen)


@given(st.lists(some_events, max_size=15), st.lists(some_events, max_size=15))
def test_what_was_seen_and_the_rest_is_the_whole(first: list[Event], rest: list[Event]):
    before = see_all(first)
    kept = before
    assert see_all(rest, before) == see_all([*first, *rest])
    assert before == kept == see_all(first), "what was seen stays as it was"


async def test_the_path_is_the_one_that_was_walked():
    seen = see_all((await play(*task(), person=Person(True))).events)
    assert [(step.turn, str(step.state)) for step in seen.path] == [
        (0, "Think"), (1, "Think"), (1, "Act"), (1, "Observe"), (2, "Think"), (2, "Act"), (2, "Observe"), (3, "Think"), (3, "Done")]  # fmt: skip
    assert "Walked so far, in 3 turns: Start → Think → Act → Observe" in diagram_html(seen)


async def test_the_transcript_that_was_seen_is_the_one_that_was_sent():
    ran = await play(*task(), person=Person(True))
    assert [said.message for said in see_all(ran.events).messages] == ran.messages


async def test_each_request_is_rebuilt_as_it_was_sent():
    model = Heard(task())
    ran = await play(model=model, person=Person(True))
    seen = see_all(ran.events)
    for asked, sent in zip(seen.requests, model.heard, strict=True):
        found = rebuilt(seen, asked)
        assert found.whole, "the hash is that of what was sent"
        assert found.body["messages"] == sent
    lacking = see_all([e for e in ran.events if not (isinstance(e, ev.RequestSent) and e.turn == 1)])
    assert not rebuilt(lacking, lacking.requests[-1]).whole, "a request that lacks a message is not said to be whole"


async def test_what_is_known_of_the_session_before_is_in_the_request():
    ran = await play(*task(), person=Person(True))
    session = ran.session
    seen = see_all(ran.events, LoopSeen(before=Before(session.system, session.tools)))
    found = rebuilt(seen, seen.requests[0])
    assert found.whole and found.body["system"] == "be good"
    assert next(tool["name"] for tool in found.body["tools"]) == "look"


async def test_tokens_and_cost_are_counted_by_turn():
    seen = see_all((await play(*task(), person=Person(True))).events)
    assert [turn.usage.cache_read for turn in seen.turns if turn.replies] == [0, 3000, 3400]
    assert seen.usage == Usage(2520, 179, 3600, 6400)
    assert seen.cost is None, "the price of a script is not known"
    assert [status for _, _, status in seen.turns[-2].calls] == ["ok", "error"]


async def test_results_are_seen_before_they_are_sent_and_stand_once():
    events = (await play(*task(), person=Person(True))).events
    at = next(n for n, event in enumerate(events) if isinstance(event, ev.ResultsAppended))
    seen = see_all(events[: at + 1])
    assert not seen.messages[-1].sent and seen.is_new(seen.messages[-1])
    after = see_all(events[at + 1 : at + 2], seen)
    assert isinstance(events[at + 1], ev.RequestSent)
    assert len(after.messages) == len(seen.messages) and after.messages[-1].sent


async def test_at_the_limit_of_turns_the_results_are_there():
    ran = await play(*task()[:1], "It is not done.", limits=Limits(max_turns=1, longest_wait=0.0))
    assert [said.message for said in see_all(ran.events).messages] == ran.messages


# ── where in the code ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_lines_that_are_shown_are_in_the_files_and_make_the_event():
    events = (await play(*task(), person=Person(True))).events
    root, sources = Path(nbagent.__file__).parents[1], Sources()
    for event in events:
        made, passed = places(event, sources)
        for place in (made, passed):
            lines = (root / place.file).read_text("utf-8").splitlines()
            assert tuple(lines[place.first - 1 : place.first - 1 + len(place.lines)]) == place.lines
            assert place.lit and set(place.lit) <= set(range(place.first, place.first + len(place.lines)))
        assert re.search(rf"event\(\s*{type(event).__name__}\b", made.text), made.text
        assert passed.file == "nbagent/core/loop.py" and passed.function == "run"
        assert passed.text.strip() == ("yield this.ended()" if isinstance(event, ev.RunEnded) else "yield event")


def test_every_event_that_the_core_makes_has_its_line():
    root = Path(nbagent.__file__).parent / "core"
    made = {
        node.args[0].id
        for path in root.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "event"
        and node.args
        and isinstance(node.args[0], ast.Name)
    }
    sources = Sources()
    for name in made - {"kind"}:
        event = object.__new__(getattr(ev, name))
        ended = {"status": Status.OK} if name == "CallEnded" else {}
        for field, value in {"state": State.THINK, "turn": 1, "at": 0.0, **ended}.items():
            object.__setattr__(event, field, value)
        assert len(places(event, sources)) == 2, name
    assert places(ev.FoundStale(state=State.THINK, turn=0, at=0.0, text=""), sources) == (), "not the loop's own"


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "seconds", "settled"), [(Status.OK, 0.0, False), (Status.ERROR, 0.2, False), (Status.DENIED, 0.0, True)]
)
def test_a_call_that_ran_does_not_come_from_the_line_of_those_that_did_not(
    status: Status, seconds: float, settled: bool
):
    event = ev.CallEnded(
        state=State.ACT,
        turn=1,
        at=0.0,
        call_id="c",
        name="look",
        status=status,
        content=(),
        seconds=seconds,
        summary="",
    )
    sources = Sources()
    assert [place.function == "settle" for place in places(event, sources)] == [settled, False]
    assert places(event, sources) == places(event, sources)


async def test_all_text_is_data():
    script = Turn([say(EVIL), call(EVIL, what=EVIL), call("look", what=EVIL)], stop_reason="tool_use")
    ran = await play(script, EVIL)
    seen = see_all(ran.events)
    for page in (html(seen), diagram_html(seen)):
        assert "<script" not in page.lower() and "evil.example" not in re.sub(r"&lt;.*?&gt;", "", page)
        assert not re.search(r"<[^>]*\bon\w+=", page) and "\u202e" not in page and "\x1b" not in page
    assert "U+202E" in html(seen)
    assert "\u202e" not in text(seen) and "\x1b" not in text(seen)


@pytest.mark.parametrize("filling", ["x", "<", "\u202e"])
def test_a_long_run_with_a_huge_result_stays_small(filling):
    seen, at = LoopSeen(), {"at": 0.0}
    for turn in range(1, 201):
        call_id = f"t{turn}"
        content = ({"type": "tool_use", "id": call_id, "name": "look", "input": {"what": filling * 3000}},)
        result = [text_block(filling * (1_000_000 if turn == 200 else 2000)), image_block("image/png", "A" * 5000)]
        for event in (
            ev.RequestSent(state=State.THINK, turn=turn, **at, model="m", new=({"role": "user", "content": result},), prefix="p"),
            ev.ReplyEnded(state=State.THINK, turn=turn, **at, content=content, stop_reason="tool_use", usage=Usage(1, 1), cost=0.1),
            ev.CallEnded(state=State.ACT, turn=turn, **at, call_id=call_id, name="look", status=Status.OK, content=tuple(result), seconds=0.1),
            ev.ResultsAppended(state=State.OBSERVE, turn=turn, **at, call_ids=(call_id,)),
        ):  # fmt: skip
            seen = see(seen, event)
    page = html(seen)
    assert len(page.encode()) <= 1_000_000 and len(diagram_html(seen).encode()) <= 40_000
    assert "<b>400. assistant</b>" in page, "the newest are there"


async def test_what_is_new_since_the_last_turn_is_marked():
    seen = see_all((await play(*task(), person=Person(True))).events)
    page = html(seen)
    assert page.count('class="nbl-tag">new<') == 2, "the results that the last request brought, and its reply"
    assert page.count("nbl-said") - page.count(".nbl-said") == len(seen.messages)


async def test_a_turn_can_be_chosen():
    seen = see_all((await play(*task(), person=Person(True))).events)
    assert "Turn 1: the exact request" in html(seen, turn=1) and "1 message, 1 new" in html(seen, turn=1)
    assert "Turn 3: the exact request" in html(seen) and "5 messages, 1 new" in html(seen)


async def test_a_broken_reply_is_counted_and_its_request_is_one():
    seen = see_all((await play(Turn("Half a", cut=3), "Whole.")).events)
    assert [asked.tries for asked in seen.requests] == [2]
    assert seen.turns[-1].discarded == 1 and seen.turns[-1].replies == 1
    assert "1 broken" in html(seen)


def test_nothing_yet_is_said():
    assert "Nothing has happened yet" in text(LoopSeen()) and "Nothing has happened yet" in html(LoopSeen())


# ── live ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_step_draws_only_what_is_new():
    events, pieces, seen = (await play(*task(), person=Person(True))).events, Pieces(), LoopSeen()
    for event in events:
        seen = see(seen, event)
        for piece in pieces.changes(seen):
            assert piece["html"]
    assert pieces.drawn <= 3 * len(seen.messages), "when it comes, when it is sent, when it is not new any more"
    assert [piece["key"] for piece in pieces.all() if piece["region"] == "transcript"] == [f"m{n}" for n in range(6)]
    assert pieces.changes(seen) == []


async def test_the_live_view_keeps_the_last_messages():
    pieces, seen = Pieces(), LoopSeen()
    for turn in range(1, 60):
        new = ({"role": "user", "content": [text_block(f"message {turn}")]},)
        seen = see(seen, ev.RequestSent(state=State.THINK, turn=turn, at=0.0, model="m", new=new, prefix="p"))
        pieces.changes(seen)
    keys = [piece["key"] for piece in pieces.all() if piece["region"] == "transcript"]
    assert keys == [f"m{n}" for n in range(59 - MESSAGES, 59)]


def opened(events: list[Event]) -> list[Event]:
    """The events with the loop opened where the run begins."""
    shown = ev.LoopShown(state=State.THINK, turn=0, at=0.0, system="be good", tools=({"name": "look"},))
    return [events[0], shown, *events[1:]]


async def test_the_record_has_the_loop_only_where_it_was_opened():
    events = (await play(*task(), person=Person(True))).events
    plain, traced = record(fold_all(events)), record(fold_all(opened(events)))
    assert not any("The loop" in text for text in plain.values())
    assert "data:image/svg+xml;base64," in traced["text/html"] and "<table>" in traced["text/html"]
    for kind in ("text/plain", "text/markdown"):
        assert "Path: Start → Think → Act → Observe" in traced[kind] and "3,400" in traced[kind]
    loop = fold_all(coalesce(opened(events))).loop
    assert loop.before.system == "be good" and loop.prompt == "do it" and loop.max_turns == 25


async def test_the_panel_sends_what_it_was_shown_within_its_interval(person):
    events = opened((await play(*task(), person=Person(True))).events)
    person.shows(events)
    panel = person.view.widget.children[-2]
    came = person.page.arrival = asyncio.Event()
    await asyncio.wait_for(came.wait(), 5)
    sent = [
        d["content"] for c, t, d in person.page if c == panel.model_id and t == "comm_msg" and d["method"] == "custom"
    ]
    assert [message["seq"] for message in sent] == list(range(1, len(sent) + 1))
    shown = {piece["key"]: piece["html"] for message in sent for piece in message["pieces"]}
    assert "Over after 3 turns" in shown["state"] and "Done." in shown["m5"]
