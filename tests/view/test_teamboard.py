"""A team on every surface: board, lanes and messages; whatever is in them, nothing raises and nothing gets out."""

from __future__ import annotations

import dataclasses
import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from nbagent.core import events as ev
from nbagent.core.events_json import from_json, to_json
from nbagent.view.fold import ViewModel, fold, fold_all
from nbagent.view.html import item_html
from nbagent.view.items import TeamItem
from nbagent.view.patches import Page
from nbagent.view.record import record
from nbagent.view.teamshown import LETTERS, SPANS, shown
from nbagent.view.teamtext import lines, news
from nbagent.view.terminal import TerminalView
from tests.view.team_fixture import AT, large, small

LEAF = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("<b onclick=x>"))
NAMES = ("id", "title", "state", "owner", "needs", "result", "past", "wants_plan", "plan", "plan_answer", "ended", "name",
         "spans", "from", "to", "sender", "text", "kind", "why")  # fmt: skip
STATES = st.sampled_from(["pending", "in_progress", "completed", "working", "idle", "lost"])
ROW = st.dictionaries(st.sampled_from(NAMES), st.one_of(LEAF, STATES, st.lists(LEAF, max_size=3)), max_size=8)
SPAN = st.dictionaries(st.sampled_from(["state", "title", "from", "to"]), st.one_of(LEAF, STATES), max_size=4)
LANE = st.fixed_dictionaries({}, optional={"name": LEAF, "spans": st.one_of(LEAF, st.lists(SPAN, max_size=5))})
ROWS = st.one_of(LEAF, st.lists(st.one_of(LEAF, ROW), max_size=5))
BOARD = st.dictionaries(st.sampled_from(["goal", "tasks", "members", "letters", "last_letter", "more"]), ROWS)
EVENT = st.builds(
    lambda team, board, lanes, seconds, note, marks: ev.TeamChanged(
        **AT, team=team, board=board, lanes=tuple(lanes), seconds=seconds, note=note, marks=marks
    ),
    st.sampled_from(["", "a", "b"]), BOARD, st.lists(LANE, max_size=4), st.floats(), st.text(max_size=8),
    st.dictionaries(st.text(max_size=2), LEAF, max_size=2),
)  # fmt: skip


def surfaces(view: ViewModel) -> list[str]:
    """All that is drawn of a view: live, and as a record."""
    return ["".join(map(item_html, view.items)), *record(view).values()]


def in_terminal(*events: ev.Event) -> str:
    out = io.StringIO()
    view = TerminalView(Console(file=out, width=200))
    for event in events:
        view.show(event)
    return out.getvalue()


@settings(deadline=None, max_examples=60 * settings.default.max_examples // 100)
@given(st.lists(EVENT, max_size=4))
def test_whatever_a_board_holds_every_surface_draws_it_and_no_markup_gets_out(events):
    view = fold_all(events)
    page = Page()
    for event in events:
        page.changes(fold(view, event))
    html, static, *_ = surfaces(view)
    assert "<b onclick" not in html + static
    in_terminal(*events)
    assert len(view.items) == len({event.team for event in events})


def test_a_team_is_one_item_with_its_latest_state_only():
    later = dataclasses.replace(small(), board={"tasks": []}, seconds=99.0)
    view = fold_all([small(), ev.Noted(**AT, text="between"), later])
    [item] = [item for item in view.items if isinstance(item, TeamItem)]
    assert item.team == later
    assert view.items.index(item) == 0, "it stays where it began"
    other = dataclasses.replace(small(), team="others")
    assert len([item for item in fold(view, other).items if isinstance(item, TeamItem)]) == 2


def test_the_page_gets_one_operation_a_change_and_none_where_nothing_changed():
    page, view = Page(), fold_all([small()])
    assert [operation["op"] for operation in page.changes(view)] == ["put"]
    assert page.changes(view) == []
    assert [operation["op"] for operation in page.changes(fold(view, large()))] == ["put"]


def test_an_event_of_a_team_survives_its_file():
    assert from_json(to_json(small())) == small()


@pytest.mark.parametrize("surface", range(4))
def test_every_surface_says_tasks_owners_conflicts_and_messages(surface):
    text = re.sub(r"<[^>]+>", " ", surfaces(fold_all([small()]))[surface]).replace("\\", "")
    for said in ("Team fixers: 2 of 4 tasks done, 1 in progress, 1 conflict", "Months without sales are missing", "anna",
                 "conflict in report/totals.py: both sides are kept", "plan approved", "ben → all", "net_total"):  # fmt: skip
        assert said in text, said
    assert re.search(r"needs 1 ✓, 2 ✓, 3|1, 2, 3", text)


def test_the_board_has_a_column_a_state_with_conflicts_first_and_what_waits_last():
    team = shown(large())
    assert [len(team.column(state)) for state in ("pending", "in_progress", "completed")] == [15, 8, 17]
    pending = [task.blocked for task in team.column("pending")]
    assert pending == sorted(pending)
    assert any(pending)
    assert [task.id for task in shown(small()).column("completed")] == ["2", "1"]


def test_lanes_have_no_gaps_and_no_overlaps_and_end_with_the_team():
    for event in (small(), large()):
        team = shown(event)
        for lane in team.lanes:
            ends = [0.0, *(span.end for span in lane.spans)]
            assert [span.begin for span in lane.spans] == ends[:-1]
            assert ends[-1] == team.seconds


def test_a_span_begins_with_the_number_of_its_task():
    labels = [span.label for lane in shown(small()).lanes for span in lane.spans]
    assert "1 Dates are read in the wrong order" in labels
    assert "plans: 3 Months without sales are missing" in labels


def test_what_is_too_much_to_read_is_counted_and_not_drawn():
    spans = [{"state": "working", "title": f"t{n}", "from": n, "to": n + 1} for n in range(500)]
    tasks = [{"id": str(n), "title": "x" * 5_000, "state": "completed"} for n in range(1_000)]
    letters = [{"id": str(n), "sender": "a", "to": "b", "text": "y" * 5_000} for n in range(500)]
    event = dataclasses.replace(
        small(), board={"tasks": tasks, "letters": letters}, lanes=({"name": "a", "spans": spans},)
    )
    team = shown(event)
    assert (len(team.lanes[0].spans), len(team.letters), team.earlier, team.left) == (SPANS + 1, LETTERS, 440, 800)
    html, static, markdown, plain = surfaces(fold_all([event]))
    assert len(html) < 250_000
    assert max(len(static), len(markdown), len(plain)) < 200_000
    assert "800 more tasks" in html
    assert "440 earlier messages" in html


def test_the_terminal_shows_the_whole_team_once_and_then_what_is_new():
    first = small()
    done = first.board["tasks"][2] | {"state": "completed", "result": "report.py: fills with 0"}
    letter = {"id": "5", "sender": "anna", "to": "lead", "text": "All done."}
    board = {**first.board, "tasks": [*first.board["tasks"][:2], done, *first.board["tasks"][3:]],
             "letters": [*first.board["letters"], letter], "last_letter": 5}  # fmt: skip
    later = dataclasses.replace(first, board=board, seconds=120.0)
    [head, *rest] = news(first, later)
    assert head == "Team fixers: 3 of 4 tasks done, 1 conflict"
    assert rest[0] == "  ✓ 3 Months without sales are missing (completed, anna): report.py: fills with 0"
    assert rest[-1] == "  anna → lead: All done."
    assert news(later, dataclasses.replace(later, seconds=130.0)) == []
    text = in_terminal(first, later, dataclasses.replace(later, seconds=130.0))
    assert text.count("Team fixers") == 2
    assert text.startswith("\n".join(lines(first)))
