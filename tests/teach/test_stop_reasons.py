"""Lesson 09's tables come from real runs, and its window fills as a real one does; the pictures can be drawn anywhere."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from nbagent.core.events import Reason
from nbagent.teach import pictures_phases
from nbagent.teach.pictures import Picture
from nbagent.teach.stop_reasons import API, Filling, fill, of_ours, of_the_api
from tests.source import ROOT


async def test_every_ending_of_ours_is_made_to_happen() -> None:
    found = await of_ours()
    assert {name: str(one.end.reason) for name, one in found.runs.items()} == {
        str(reason): str(reason) for reason in Reason
    }
    assert all(one.end.sentence for one in found.runs.values())
    assert "waits" in found.runs["timeout"].end.sentence
    assert found._repr_html_().count("<tr>") == len(Reason) + 1


async def test_every_stop_reason_of_the_api_is_made_to_happen() -> None:
    found = await of_the_api()
    assert list(found.runs) == list(API)
    reasons = {name: str(one.end.reason) for name, one in found.runs.items() if one.end.reason is not Reason.END_TURN}
    assert reasons == {
        "max_tokens, again": "max_tokens",
        "refusal": "refusal",
        "model_context_window_exceeded": "context_full",
        "a new one": "error",
    }
    assert found.runs["max_tokens, in a text"].end.text == "It is 8."
    assert found.runs["max_tokens, in a call"].noted == ("The call of look is answered as invalid.",)
    assert "broke off" in repr(found.runs["none: the stream broke off"])


async def test_the_page_on_long_work_and_the_lesson_know_the_same_stop_reasons() -> None:
    page = (ROOT / "docs" / "context.md").read_text("utf-8")
    table = page.partition("| `stop_reason` of the API |")[2].partition("\n\n")[0]
    named = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert named == {name.partition(",")[0] for name in API} - {"a new one", "none: the stream broke off"}


async def test_a_window_fills_and_is_summed_up_before_it_is_full() -> None:
    grown = await fill(summing=False)
    assert list(grown.sizes) == sorted(grown.sizes)
    assert max(grown.sizes) > grown.window
    summed = await fill()
    assert summed.summed
    assert max(summed.sizes) < summed.window
    assert all(summed.sizes[place] < summed.sizes[place - 1] for place in summed.summed)


@pytest.mark.parametrize(
    "picture",
    [
        pictures_phases.nested(),
        pictures_phases.two_forms(),
        pictures_phases.costs([(1, 0.1, 0.2), (64, 6.4, 0.3)]),
        pictures_phases.filling(Filling((100, 900, 200), (2,), 1000, 0.8)),
        pictures_phases.filling(Filling((100, 1900), (), 1000, 0.8)),
    ],
)
def test_a_picture_has_its_own_ground_and_is_told_in_words(picture: Picture) -> None:
    drawn = ET.fromstring(picture.svg)
    assert drawn.get("viewBox")
    assert "max-width:100%" in drawn.get("style", "")
    assert any(part.tag.endswith("rect") and part.get("fill") == "#fbfbf8" for part in drawn)
    assert len(picture.alt) > 40
