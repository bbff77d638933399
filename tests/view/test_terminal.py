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


def asked(preview: Preview, **more):
    approval = Approval("c", "edit_cell", "edit In[2]", {}, preview, "why", ())
    yield ev.ApprovalAsked(state=State.ACT, turn=1, at=1.0, call_id="c", approval=approval.to_json())
    yield ev.ApprovalAnswered(state=State.ACT, turn=1, at=1.0, call_id="c", approved=True, by="person", **more)


def started(preview: Preview):
    return ev.CallStarted(state=State.ACT, turn=1, at=1.0, call_id="c", name="edit_cell", input={}, title="edit In[2]",
                          preview=preview.to_json())  # fmt: skip


def test_a_change_is_a_diff_in_colours_with_its_words_pointed_at_and_what_it_would_do():
    preview = Preview("diff", "b = 3", "b = 2", effects=("rebinds `b`",))
    text = shown(asked(preview))
    assert "  │ -b = 2\n  │ ?    ^\n  │ +b = 3\n  │ ?    ^\n" in text
    assert "Probably: rebinds `b`" in text
    assert "\x1b[31m  │ -b = 2\x1b[0m" in shown(asked(preview), terminal=True)


def test_what_runs_after_an_edit_is_shown_for_it_is_not_what_was_asked_about():
    proposed, own = Preview("code", "proposed = 1"), Preview("code", "own = 1")
    text = shown([*asked(proposed, edited=True), started(own)])
    assert "approved by you, with your edit" in text
    assert text.index("proposed = 1") < text.index("with your edit") < text.index("own = 1")
    assert shown([*asked(proposed), started(proposed)]).count("proposed = 1") == 1


def test_which_cells_ran_after_the_last_edit_is_said_at_the_end():
    end = dataclasses.replace(penguins()[-1], checked="Ran after the last edit: In[5].")
    assert "Ran after the last edit: In[5]." in shown([end])


def test_a_hook_that_takes_its_time_is_named_and_what_came_of_one_is_said():
    about = {"state": State.ACT, "turn": 1, "at": 1.0, "hook_id": "1", "hook": "guard.sh", "on": "PreToolUse"}
    ended = {"outcome": "failed", "seconds": 5.0}
    said = shown([
        ev.HookStarted(**about),
        ev.HookStarted(**about, message="Looking at the command"),
        ev.HookEnded(**about, **ended, sentence=""),
        ev.HookEnded(**about, **ended, sentence="The hook guard.sh failed: [red]exit code 1."),
    ])  # fmt: skip
    assert said.splitlines() == ["… Looking at the command", "! The hook guard.sh failed: [red]exit code 1."]
