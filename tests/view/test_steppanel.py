"""The line of a stepped run says where it stands; what others wrote in it is data."""

from __future__ import annotations

import pytest

from nbagent.core.event import Event, State
from nbagent.core.events import AgentReported, ApprovalAsked, CallStarted, RequestSent, RunStarted
from nbagent.view.steppanel import Stand, line_html

STARTED = RunStarted(
    state=State.THINK, turn=0, at=0, run_id="r", session_id="s", model="m", mode="default", prompt="", max_turns=5
)
SENT = RequestSent(state=State.THINK, turn=1, at=0, model="m", new=(), prefix="")
CALL = CallStarted(state=State.ACT, turn=1, at=0, call_id="c", name="<b>look", input={}, title="", preview={})
ASKED = ApprovalAsked(state=State.ACT, turn=1, at=0, call_id="c", approval={})
BELOW = AgentReported(state=State.ACT, turn=1, at=0, call_id="c", agent_id="a", agent="x", title="", event=CALL)


@pytest.mark.parametrize(
    ("events", "at", "resting", "said"),
    [
        (
            (STARTED, SENT),
            2,
            "one step",
            ("event 2: <code>request_sent", "Paused by not pulling", "Why here: one step.", 'data-kind="rests"'),
        ),
        ((STARTED, SENT), 1, "one step", ("event 1 of 2: <code>run_started", "You look back", 'data-kind="back"')),
        ((STARTED, CALL), 2, "", ("<b>Act</b> · turn 1", "&lt;b&gt;look", 'data-kind="goes"')),
        ((STARTED, BELOW), 2, "", ("agent_reported", "› <code>call_started</code> &lt;b&gt;look")),
        ((STARTED, ASKED), 2, "", ("Waits for your answer",)),
        ((), 0, "", ("The run begins",)),
    ],
)
def test_the_line_says_where_a_stepped_run_stands(
    events: tuple[Event, ...], at: int, resting: str, said: tuple[str, ...]
) -> None:
    html = line_html(Stand(events, at, resting))
    for part in said:
        assert part in html
