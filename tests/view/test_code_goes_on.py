"""Code that outlasts its call, on every surface: what the run waits for and since when, and how the code ended."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from nbagent.core import events as ev
from nbagent.core.event import Reason, State, Status
from nbagent.core.events_json import from_json, to_json
from nbagent.view.fold import fold_all
from nbagent.view.html import header, item_html
from nbagent.view.items import CallItem
from nbagent.view.outline import line
from nbagent.view.record_text import markdown
from nbagent.view.terminal import TerminalView


def at(seconds: float, turn: int = 1) -> dict:
    return {"state": State.ACT, "turn": turn, "at": seconds}


BEGUN: list[ev.Event] = [
    ev.RunStarted(**at(0.0, 0), run_id="r", session_id="s", model="m", mode="default", prompt="Fit it", max_turns=9),
    ev.CallStarted(**at(5.0), call_id="c", name="add_cell", input={}, title="add and run a code cell", preview={}),
    ev.CallEnded(**at(65.0), call_id="c", name="add_cell", status=Status.OK, content=(), seconds=60.0,
                 summary="still runs after 1 min", goes_on=True),
]  # fmt: skip
AWAITED = ev.CodeAwaited(**at(70.0, 2), call_id="c", label="the cell `fit()`", seconds=65.0)
WAITS = ev.CallStarted(
    **at(80.0, 2), call_id="w", name="wait_for_cell", input={}, title="wait for the cell `fit()`", preview={}
)
ENDED = ev.RunEnded(**at(200.0, 2), reason=Reason.INTERRUPTED, sentence="Stopped.", next_step="", text="", turns=2)


def ends(how: str) -> ev.CodeEnded:
    return ev.CodeEnded(**at(135.0, 2), call_id="c", how=how, seconds=130.0)


def call_of(*events: ev.Event) -> CallItem:
    (call,) = [i for i in fold_all([*BEGUN, *events]).items if isinstance(i, CallItem) and i.call_id == "c"]
    return call


def test_the_header_says_what_the_run_waits_for_and_since_when_until_the_code_ends():
    for waits in (AWAITED, WAITS):
        head = header(fold_all([*BEGUN, waits]))
        assert (head["activity"], head["since"]) == ("Waits for the cell `fit()`", 5.0)
    assert header(fold_all(BEGUN))["since"] is None
    for then in (ends("ended"), ev.ReplyStarted(**at(140.0, 2), model="m"), ENDED):
        head = header(fold_all([*BEGUN, AWAITED, then]))
        assert head["since"] is None
        assert "Waits" not in head["activity"]


@pytest.mark.parametrize(
    ("how", "said"),
    [("ended", "✓ ended"), ("failed", "✗ failed"), ("stopped", "■ stopped by the agent"), ("limit", "■ stopped at its limit"),
     ("interrupted", "■ interrupted")],
)  # fmt: skip
def test_the_card_says_that_the_code_still_runs_and_then_how_it_ended_and_after_how_long(how, said):
    runs, over = call_of(), call_of(ends(how))
    assert "still runs" in item_html(runs)
    assert 'data-status="running"' in item_html(runs)
    assert line(runs) == "● still runs: add and run a code cell"
    icon, word = said.split(" ", 1)
    assert word in item_html(over)
    assert "2 min 10 s" in item_html(over)
    assert line(over) == f"{icon} {word}: add and run a code cell · 2 min 10 s"
    assert word in markdown(fold_all([*BEGUN, ends(how), ENDED]))


def test_code_that_the_end_of_the_run_ended_is_not_said_to_run_for_ever():
    assert call_of(AWAITED, ENDED).code == "interrupted"


def test_the_terminal_says_both():
    out = io.StringIO()
    view = TerminalView(Console(file=out, width=100))
    for event in (*BEGUN, AWAITED, ends("stopped")):
        view.show(event)
    assert "● still runs: add_cell" in out.getvalue()
    assert "■ stopped by the agent: add and run a code cell · 2 min 10 s" in out.getvalue()


def test_the_events_come_back_from_a_file_and_an_older_call_has_code_that_ended_with_it():
    for event in (BEGUN[-1], AWAITED, ends("limit")):
        assert from_json(to_json(event)) == event
    old = {name: value for name, value in to_json(BEGUN[-1]).items() if name != "goes_on"}
    read = from_json(old)
    assert isinstance(read, ev.CallEnded)
    assert read.goes_on is False
