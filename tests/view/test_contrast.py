"""Every colour of text that the view uses can be read on everything that it stands upon, in the themes of JupyterLab."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import pytest

import nbagent.view
from nbagent.view.code import RECORD
from nbagent.view.teamboard import FILLS
from tests.view.contrast import Colour, Colours, contrast

SHEET = (Path(nbagent.view.__file__).parent / "static" / "view.css").read_text(encoding="utf-8")
THEMES = Path(sys.prefix) / "share" / "jupyter" / "lab" / "themes" / "@jupyterlab"
LEAST = 4.5

WORDS = ("text", "dim", "brand-text", "good-text", "bad-text", "warn-text")
CODE = tuple("kscnfbdo")


def theme(name: str) -> str:
    return (THEMES / f"theme-{name}-extension" / "index.css").read_text(encoding="utf-8") if name else ""


@pytest.mark.parametrize("name", ["light", "dark", ""])
def test_all_text_of_the_live_view_can_be_read(name: str) -> None:
    colours = Colours(theme(name), SHEET)
    page, card, soft = (colours.of(f"var({each})") for each in ("--jp-layout-color0, #fff", "--nb-card", "--nb-soft"))
    code = colours.of("var(--nb-code)").over(card)
    grounds = {"page": page, "card": card, "soft": soft, "code": code}
    for change in ("ins", "del"):
        grounds[change] = colours.of(f"var(--nb-{change})").over(code)
        grounds[f"{change}-word"] = colours.of(f"var(--nb-{change}-word)").over(grounds[change])
    said = [*itertools.product(WORDS, ("page", "card", "soft", "code"))]
    said += itertools.product((*CODE, "text", "bad-text"), ("code", "ins", "ins-word", "del", "del-word"))
    said += itertools.product(("dim",), ("ins", "del"))
    for does in ("works", "plans", "waits"):
        grounds[f"lane-{does}"] = colours.of(f"var(--nb-lane-{does})").over(card)
        said.append(("text", f"lane-{does}"))
    low = {
        (text, below): round(value, 2)
        for text, below in said
        if (value := contrast(colours.of(f"var(--nb-{text})"), grounds[below])) < LEAST
    }
    assert low == {}


@pytest.mark.parametrize(("below", "text"), [("#fff", "rgba(0,0,0,.87)"), ("#111", "#fff")])
def test_the_lanes_of_a_record_can_be_read_on_a_light_and_on_a_dark_page(below: str, text: str) -> None:
    colours = Colours()
    page = colours.of(below)
    low = {
        state: round(value, 2)
        for state, fill in FILLS.items()
        if (value := contrast(colours.of(text).over(page), colours.of(fill).over(page))) < LEAST
    }
    assert low == {}


@pytest.mark.parametrize(("below", "text"), [("#fff", "rgba(0,0,0,.87)"), ("#111", "#fff")])
def test_all_code_of_a_record_can_be_read_on_a_light_and_on_a_dark_page(below: str, text: str) -> None:
    styles = RECORD.styles or {}
    colours = Colours(current=Colours().of(text).over(Colours().of(below)))
    page = colours.of(below)
    low: dict[tuple[str, ...], float] = {}
    for line, word in [("", ""), ("ins", ""), ("del", ""), ("ins", "ins-w"), ("del", "del-w")]:
        ground: Colour = page
        for look in filter(None, (line, word)):
            ground = colours.of(styles[look].partition("background:")[2]).over(ground)
        for look, style in styles.items():
            colour = re.search(r"(?<![-\w])color:([^;]+)", style)
            if colour and (value := contrast(colours.of(colour[1]), ground)) < LEAST:
                low[line, word, look] = round(value, 2)
    assert low == {}
