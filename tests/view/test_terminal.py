"""The terminal view: lines that read well in a log, and text of others that cannot steer the terminal."""

from __future__ import annotations

import dataclasses
import io

from rich.console import Console

from nbagent.core import events as ev
from nbagent.core.events import State
from nbagent.core.ports import Approval, Preview
from nbagent.view.terminal import TerminalView
from tests.view.events_fixture import penguins


def shown(events, *, terminal: bool = False) -> str:
    out = io.StringIO()
    view = TerminalView(
        Console(file=out, width=60, force_terminal=terminal, color_system="standard" if terminal else None)
    )
    for event in events:
        view.show(event)
    return out.getvalue()


def test_without_a_terminal_it_writes_plain_lines_in_order():
    text = shown(penguins())
    assert "\x1b" not in text
    places = [text.index(part) for part in ("claude-sonnet-5", "… thinking", "I look at your variables first.", "✗ discarded",
              "↻ trying again", '  │ clean = penguins.dropna(subset=["bill_len"])', "✗ error: add_cell", "  │ -clean", "  │ ?", "  │ +clean",
              "denied by you: no installs", "? Shall I keep", "✓ Done: 2 cells", "5 turns · 33.7k")]  # fmt: skip
    assert places == sorted(places)


def test_streamed_text_is_written_once():
    assert shown(penguins()).count("| Gentoo | 123 |") == 1


def test_text_of_others_cannot_move_the_cursor_or_use_markup():
    at = {"state": State.THINK, "turn": 1, "at": 1.0}
    events = [
        ev.TextDelta(**at, index=0, text="a\x1b[2J\x1b]0;title\x07b\rc [red]x[/red]"),
        ev.Noted(**at, text="[bold]n\x1b[1m"),
    ]
    text = shown(events)
    assert "\x1b" not in text
    assert "\r" not in text
    assert "[red]x[/red]" in text
    assert "[bold]n" in text


def test_an_approval_shows_all_of_the_code_and_what_is_hidden_in_it():
    code = "x = 1\n" * 400 + "evil('\u202e')"
    approval = Approval("c", "run_python", "run", {"code": code, "timeout": 5}, Preview("code", code), "why", ())
    event = ev.ApprovalAsked(state=State.ACT, turn=1, at=1.0, call_id="c", approval=approval.to_json())
    text = shown([event])
    assert text.count("x = 1") == 400
    assert "evil('⟨U+202E⟩')" in text
    assert "timeout: 5 s" in text


def test_on_a_terminal_nothing_is_drawn_twice_or_erased():
    text = shown(penguins(), terminal=True)
    assert "\x1b[2K" not in text
    assert "\x1b[1A" not in text


def test_a_person_at_a_terminal_reads_that_the_model_is_awaited_and_a_log_does_not():
    request = ev.RequestSent(state=State.THINK, turn=1, at=0.0, model="m", new=(), prefix="")
    assert "… waiting for the model" in shown([request], terminal=True)
    assert shown([request]) == ""


def test_one_is_no_plural():
    start = penguins()[0]
    assert "up to 25 turns" in shown([start])
    assert "up to 1 turn\n" in shown([dataclasses.replace(start, max_turns=1)])
