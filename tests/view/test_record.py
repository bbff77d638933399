"""The static record reads well anywhere, holds the answer first, and stays small whatever the run did."""

from __future__ import annotations

import dataclasses

from nbagent.core import events as ev
from nbagent.core.events import State, Status
from nbagent.core.messages import image_block, text_block
from nbagent.view.fold import ViewModel, fold_all
from nbagent.view.record import IMAGE_LIMIT, TOTAL_LIMIT, record
from tests.view.events_fixture import penguins, until


def test_it_holds_prompt_answer_ending_steps_and_facts_in_that_order():
    text = record(fold_all(penguins()))["text/html"]
    places = [text.index(part) for part in ("Which penguin", "Adelie and Chinstrap", "Done: 2 cells were added", "Steps: 5 calls, 2 cells",
              "list_variables", "KeyError", "data:image/png", "no installs, please", "claude-sonnet-5 · 5 turns · 33.7k tokens")]  # fmt: skip
    assert places == sorted(places)
    assert text.count("Adelie and Chinstrap differ") == 1


def test_it_needs_no_script_no_stylesheet_and_no_widget():
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
