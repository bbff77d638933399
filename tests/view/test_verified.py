"""The card of a clean run: all of it readable without styles, nothing of others as markup, a picture that is one."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.events import Reason, RunEnded, State, Verified
from nbagent.tools.verdict import Judged, Verdict
from nbagent.view.flowpicture import Box, picture_svg, picture_text
from nbagent.view.fold import fold_all
from nbagent.view.record import record
from nbagent.view.verified import card_html, lines, markdown, plain

CELLS = (
    Judged("aa", "In[1]", "df = pd.read_csv('a.csv')", "same", (), 0.2),
    Judged("bb", "In[3]", "df.head()", "differs", ("Another table: “5” → “4”.",), 0.1),
    Judged("cc", "In[2]", "x", "fails", ("NameError: name `x` is not defined.",)),
)
VERDICT = Verdict(
    "not reproducible",
    "Not reproducible: In[2] fails.",
    CELLS,
    ("A note.",),
    (("aa", "bb", "df"),),
    "0123456789ab",
    3.0,
    2,
)


def event(verdict: Verdict = VERDICT) -> Verified:
    return Verified(state=State.OBSERVE, turn=1, at=1.0, call_id="c", verdict=verdict.to_json())


def test_the_card_says_what_differs_links_to_the_cells_and_folds_the_rest() -> None:
    html = card_html(event())
    assert html.index("Not reproducible") < html.index("#nbagent-cell-bb") < html.index("<details")
    assert "name <code>x</code> is not defined" in html
    assert html.count("<details") == html.count("</details>") == 2
    assert "2 clean runs" in html and "0123456789ab" in html


def test_every_surface_of_the_record_has_the_card() -> None:
    bundle = record(fold_all([event()]))
    assert "#nbagent-cell-cc" in bundle["text/html"] and "<svg" in bundle["text/html"]
    assert "**Not reproducible: In\\[2\\] fails.**" in bundle["text/markdown"]
    assert "df ← In[1]" in bundle["text/plain"]


def test_only_the_last_verdict_of_a_run_stands_in_its_record() -> None:
    later = Verdict("verified", "Verified from a clean kernel: all 3 cells show the same.", CELLS)
    html = record(fold_all([event(), event(later)]))["text/html"]
    assert "Verified from a clean kernel" in html and "Not reproducible" not in html


def test_an_answer_that_is_the_headline_of_the_card_is_not_said_twice() -> None:
    text = VERDICT.headline
    bundle = record(
        fold_all(
            [
                event(),
                RunEnded(
                    state=State.DONE,
                    turn=2,
                    at=2.0,
                    reason=Reason.END_TURN,
                    sentence="Done.",
                    next_step="",
                    turns=2,
                    text=text,
                ),
            ]
        )
    )
    assert all(words.count("In[2] fails.") + words.count("In\\[2\\] fails.") == 1 for words in bundle.values()), bundle


def test_the_picture_leaves_out_what_was_left_out_and_is_tied_to_nothing() -> None:
    asks = Judged("dd", "In[4]", "%agent tidy", "skipped")
    html = card_html(event(replace(VERDICT, cells=(*CELLS, asks))))
    assert "%agent tidy" not in html.partition("<svg")[2] and "%agent tidy" in html


HOSTILE = "</svg><script>alert(1)</script>\"'&\u202e\x1b[31m"


def test_nothing_of_a_notebook_becomes_markup() -> None:
    cells = (Judged('a"><script>', HOSTILE, HOSTILE, "fails", (HOSTILE,)),)
    verdict = Verdict("runs", HOSTILE, cells, (HOSTILE,), (('a"><script>', "b", HOSTILE),), HOSTILE)
    html = card_html(event(verdict))
    assert "<script" not in html and "\u202e" not in html and "\x1b" not in html
    assert "\u202e" not in plain(event(verdict))
    assert "<" not in markdown(event(verdict), lambda text: text.replace("<", "&lt;"))


@pytest.mark.parametrize(
    "verdict", [{}, {"cells": 5}, {"kind": "x", "headline": "y", "cells": [1]}, {"cells": [{"id": 1}]}]
)
def test_what_is_no_verdict_is_no_card(verdict: dict[str, object]) -> None:
    found = Verified(state=State.OBSERVE, turn=1, at=1.0, call_id="c", verdict=verdict)
    assert (card_html(found), lines(found), plain(found), markdown(found, str)) == ("", [], "", "")


BOXES = st.lists(
    st.builds(Box, st.sampled_from("abcdef"), st.text(max_size=20), st.text(max_size=80), st.sampled_from(["same", "fails", "odd"])),
    max_size=6, unique_by=lambda box: box.id,
)  # fmt: skip


@given(
    BOXES, st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.text(max_size=30)), max_size=12)
)
def test_the_picture_is_well_formed_whatever_the_cells_say(
    boxes: list[Box], arrows: list[tuple[str, str, str]]
) -> None:
    svg = picture_svg(boxes, arrows)
    if boxes:
        root = ET.fromstring(svg)
        kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert kinds <= {"svg", "g", "title", "rect", "text", "tspan", "path"}
        assert len(root.findall(".//{*}rect")) == len(boxes)
    else:
        assert svg == ""
    assert len(picture_text(boxes, arrows)) == len(boxes)


def test_a_long_notebook_is_drawn_in_part_with_what_matters() -> None:
    boxes = [Box(str(n), f"In[{n}]", "x", "fails" if n == 499 else "same") for n in range(500)]
    svg = picture_svg(boxes, [(str(n), str(m), "x") for n in range(100) for m in range(n, 100)])
    assert "In[499]" in svg and len(svg) < 150_000
