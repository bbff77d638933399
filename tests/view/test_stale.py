"""The record of an earlier run: from its stored events byte for byte, and with a banner where it is stale."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from nbagent.core import events as ev
from nbagent.core import events_json
from nbagent.core.events import State
from nbagent.view.fold import ViewModel, coalesce, fold, fold_all
from nbagent.view.patches import Page
from nbagent.view.record import record
from tests.view.events_fixture import penguins

STALE = ev.FoundStale(state=State.THINK, turn=0, at=0.0, text="STALE: df <changed>: 5 rows then, 6 now.")
CLEARED = ev.ViewCleared(state=State.THINK, turn=0, at=0.0)


def stored(events: list[ev.Event]) -> list[ev.Event]:
    """The events as they come back from a file."""
    texts = [json.dumps({**events_json.to_json(event), "new": []} if "new" in events_json.to_json(event) else events_json.to_json(event))
             for event in coalesce(events)]  # fmt: skip
    return [event for text in texts if (event := events_json.from_json(json.loads(text))) is not None]


def test_stored_events_give_the_same_record_byte_for_byte():
    assert record(fold_all(stored(penguins()))) == record(fold_all(penguins()))


@given(st.data())
def test_events_come_back_from_a_file_as_they_were(data):
    event = data.draw(st.sampled_from(coalesce(penguins())))
    back = events_json.from_json(json.loads(json.dumps(events_json.to_json(event))))
    assert type(back) is type(event)
    assert json.dumps(events_json.to_json(back)) == json.dumps(events_json.to_json(event))


def test_an_event_of_a_kind_that_is_not_known_is_passed_over():
    assert events_json.from_json({"type": "of tomorrow", "state": "Think"}) is None


def test_a_stale_record_says_so_first_in_every_form():
    bundle = record(fold_all([STALE, *penguins()]))
    plain = record(fold_all(penguins()))
    assert bundle["text/plain"] == f"{STALE.text}\n\n{plain['text/plain']}"
    assert bundle["text/html"].index("STALE: df &lt;changed&gt;") < bundle["text/html"].index("<blockquote>")
    assert bundle["text/html"].count("STALE") == 1, "once, and not among the steps again"
    assert bundle["text/markdown"].startswith("**STALE: df &lt;changed>")


def test_what_was_shown_for_a_question_is_not_in_the_record_that_follows():
    asked = ev.QuestionAsked(state=State.THINK, turn=0, at=0.0, question_id="q", text="Keep?", choices=("a", "b"))
    before = [STALE, *penguins()[:-1], asked, CLEARED]
    assert record(fold_all([*before, *penguins()])) == record(fold_all(penguins()))
    assert fold_all(before).items == () and fold_all(before).questions == ()


def test_a_page_is_emptied_when_a_view_of_its_own_begins():
    page, shown = Page(), fold_all([STALE, *penguins()])
    assert "clear" not in {op["op"] for op in page.changes(shown)}
    cleared = fold(shown, CLEARED)
    again = fold_all(penguins(), cleared)
    operations = page.changes(again)
    assert operations[0]["op"] == "clear" and {op["key"] for op in operations[1:]}.isdisjoint(
        {i.key for i in shown.items}
    )
    assert [op["key"] for op in page.snapshot()] == [item.key for item in again.items]
    assert page.changes(fold(again, CLEARED)) == [{"op": "clear", "key": ""}]
    assert Page().changes(ViewModel()) == []
