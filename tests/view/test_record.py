"""The static record reads well anywhere, holds the answer first, and stays small whatever the run did."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pytest

from nbagent.core import events as ev
from nbagent.core.events import State, Status
from nbagent.core.messages import image_block, text_block
from nbagent.view.fold import ViewModel, fold_all
from nbagent.view.record import IMAGE_LIMIT, TOTAL_LIMIT, record
from tests.view.events_fixture import penguins, until


def test_it_holds_prompt_answer_ending_steps_and_facts_in_that_order():
    text = record(fold_all(penguins()))["text/html"]
    places = [text.index(part) for part in ("Which penguin", "Adelie and Chinstrap", "Done: 2 cells were added", "Steps: 5 calls, 2 cells",
              "list variables", "KeyError", "data:image/png", "no installs, please", "claude-sonnet-5 · 5 turns · 33.7k tokens")]  # fmt: skip
    assert places == sorted(places)
    assert text.count("Adelie and Chinstrap differ") == 1


def test_it_needs_no_script_no_stylesheet_and_no_widget():
    """Row 58: a notebook that is opened again has no widgets."""
    text = record(fold_all(penguins()))["text/html"]
    assert "<script" not in text
    assert "<style" not in text
    assert "class=" not in text


def test_markdown_and_plain_text_hold_the_answer_and_the_calls():
    bundle = record(fold_all(penguins()))
    for kind in ("text/markdown", "text/plain"):
        assert "| Gentoo | 123 |" in bundle[kind]
        assert "5 turns" in bundle[kind]
        assert "✗ error: add" in bundle[kind]


def test_a_run_that_was_cut_off_says_so():
    for kind, text in record(fold_all(until(ev.CallStarted))).items():
        assert "cut off" in text, kind
    assert "cut off" in record(ViewModel())["text/plain"]


def calls(number: int, *content, preview: str = "") -> list[ev.Event]:
    at = {"state": State.ACT, "turn": 1, "at": 1.0}
    return [
        e
        for n in range(number)
        for e in (
            ev.CallStarted(**at, call_id=f"c{n}", name="run_python", input={"code": preview}, title=f"call number {n} " + "of many " * 15,
                           preview={"kind": "code", "body": preview, "old": "", "language": "python"}),
            ev.CallEnded(**at, call_id=f"c{n}", name="run_python", status=Status.OK, content=content, seconds=1.0),
        )
    ]  # fmt: skip


@pytest.mark.slow
def test_a_huge_run_gives_a_bounded_record():
    text = text_block("<line> & more\n" * 100_000)
    answer = ev.TextDelta(state=State.THINK, turn=1, at=1.0, index=0, text="**a** <b>\n\n" * 100_000)
    for events in (calls(400, text, preview="x = 1\n" * 5_000), [*calls(30, text), answer], calls(2_500)):
        bundle = record(fold_all(events))
        assert all(len(part) <= TOTAL_LIMIT for part in bundle.values())
        assert "left out" in bundle["text/html"]


def test_the_answer_survives_a_huge_run():
    end = dataclasses.replace(penguins()[-1], text="the answer is 42")
    assert "the answer is 42" in record(fold_all([*calls(400, text_block("x" * 9_000)), end]))["text/html"]


def test_images_are_kept_from_the_end_within_the_limit_and_the_others_named():
    image = image_block("image/png", "A" * 80_000)
    text = record(fold_all(calls(4, image)))["text/html"]
    assert text.count("data:image/png") == 2
    assert text.count("An image was left out") == 2
    assert text.rindex("An image was left out") < text.index("data:image/png")
    assert (
        "data:image" not in record(fold_all(calls(1, image_block("image/png", "A" * (IMAGE_LIMIT + 1)))))["text/html"]
    )


def test_money_is_no_formula():
    assert "$" not in record(fold_all(penguins()))["text/html"]


def test_what_has_become_of_the_run_stands_above_all():
    bundle = record(fold_all(penguins()), banner="STALE: `df` changed <b>\u202e")
    assert bundle["text/html"].index("STALE: `df` changed &lt;b&gt;⟨U+202E⟩") < bundle["text/html"].index(
        "Which penguin"
    )
    assert bundle["text/markdown"].startswith("**STALE: ")
    assert bundle["text/plain"].startswith("STALE: `df` changed <b>⟨U+202E⟩\n")
    assert "STALE" not in record(fold_all(penguins()))["text/html"]


def test_it_ends_with_what_can_still_be_done_as_links_that_read_as_instructions():
    bundle = record(fold_all(penguins()))
    links = '<a href="#nbagent-undo-run-1">%agent undo</a> takes this run back · <a href="#nbagent-again-run-1">Run again</a> '
    assert links + "asks the model anew" in bundle["text/html"]
    for kind in ("text/markdown", "text/plain"):
        assert bundle[kind].rstrip().endswith("asks the model anew.")
    odd = dataclasses.replace(penguins()[0], run_id='"><script>')
    assert "href" not in record(fold_all([odd]))["text/html"]


SCRIPT = """
import json
from nbagent.view.fold import fold_all
from nbagent.view.record import record
from tests.view.events_fixture import penguins
print(json.dumps(record(fold_all(penguins()), banner="again")))
"""


@pytest.mark.slow
def test_the_same_events_give_the_same_bytes_in_every_process():
    made = [
        subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True, encoding="utf-8",
                       env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONUTF8": "1"}).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert made[0] == made[1]
    assert json.loads(made[0]) == record(fold_all(penguins()), banner="again")


def changed(old: str, new: str, **more) -> list[ev.Event]:
    at = {"state": State.ACT, "turn": 1, "at": 1.0}
    preview = {"kind": "diff", "body": new, "old": old, "language": "python", **more}
    return [
        ev.CallStarted(**at, call_id="c", name="edit_cell", input={}, title="edit In[4]", preview=preview),
        ev.CallEnded(**at, call_id="c", name="edit_cell", status=Status.OK, content=(text_block("ok"),), seconds=1.0),
    ]


def test_a_change_is_a_diff_in_every_form():
    bundle = record(fold_all(changed("a = 1\nb = 2", "a = 1\nb = 3")))
    assert "2   - </span>b = " in bundle["text/html"]
    assert "  ```diff\n   a = 1\n  -b = 2\n  +b = 3\n  ```" in bundle["text/markdown"]
    assert "    -b = 2\n    +b = 3" in bundle["text/plain"]


def test_a_fence_in_the_code_does_not_end_the_fence_around_it():
    bundle = record(fold_all(changed("x", "````\n<script>\n````")))
    assert "  `````diff\n" in bundle["text/markdown"]


@pytest.mark.slow
def test_a_huge_change_is_cut_and_says_so():
    old, new = "\n".join(f"a{n}" for n in range(5_000)), "\n".join(f"b{n}" for n in range(5_000))
    bundle = record(fold_all(changed(old, new)))
    assert "more lines of this change" in bundle["text/html"]
    for kind in ("text/markdown", "text/plain"):
        assert "9,941 more lines" in bundle[kind]
    assert max(len(text) for text in bundle.values()) < 60_000
