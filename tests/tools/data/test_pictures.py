"""What a model sees of figures: the picture that the person saw, or one that is drawn aside; else words that say so."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import altair as alt
import pandas as pd
import plotly.graph_objects as go
import pytest
from matplotlib.figure import Figure

from nbagent.tools.data.pictures import PLAINLY, Pictures
from nbagent.tools.results import output_blocks

pytestmark = pytest.mark.slow
FAST = {"plotly": ("matplotlib",), "vega-lite": ("vl-convert",), "svg": ("vl-convert",)}


def _plotly() -> Any:
    return go.Figure(go.Scatter(x=[1, 2, 3], y=[1, 10, 100], name="s"), layout={"title": "T"})


def _output(data: dict[str, Any]) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": {}}


async def test_interactive_figures_are_drawn_once_and_what_the_person_sees_is_not_touched() -> None:
    pictures = Pictures(engines=FAST)
    plotly = _output({"application/vnd.plotly.v1+json": json.loads(_plotly().to_json()), "text/html": "<div/>"})
    chart = alt.Chart(pd.DataFrame({"a": [1, 2]})).mark_bar().encode(x="a")
    vega = _output({"application/vnd.vegalite.v6+json": chart.to_dict(), "text/plain": "chart"})
    svg = _output({"image/svg+xml": '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><rect/></svg>'})
    before = json.dumps([plotly, vega, svg])
    blocks = output_blocks(await pictures.seen([plotly, vega, svg]))
    assert [block["type"] for block in blocks] == ["text", "image", "text", "image", "image"]
    assert blocks[0]["text"].startswith('plotly figure "T"') and PLAINLY in blocks[0]["text"]
    assert blocks[2]["text"].startswith("altair chart")
    assert json.dumps([plotly, vega, svg]) == before
    assert output_blocks(await pictures.seen([plotly])) == blocks[:2]


async def test_a_figure_shown_as_svg_is_told_in_words_too() -> None:
    pictures, figure, file = Pictures(engines=FAST), Figure(figsize=(2, 1)), io.StringIO()
    figure.subplots().set_title("Growth")
    figure.savefig(file, format="svg")
    pictures.shown.took(figure, {"image/svg+xml": file.getvalue()})
    words, image = output_blocks(await pictures.seen([_output({"image/svg+xml": file.getvalue().splitlines(True)})]))
    assert 'title "Growth"' in words["text"] and image["type"] == "image"


async def test_without_what_draws_it_the_words_say_that_there_is_no_picture() -> None:
    pictures = Pictures(engines={})
    output = _output({"application/vnd.plotly.v1+json": json.loads(_plotly().to_json())})
    (block,) = output_blocks(await pictures.seen([output]))
    assert "no picture of it" in block["text"]
    away = {"mark": "point", "data": {"url": "file:///etc/passwd"}}
    (block,) = output_blocks(await Pictures().seen([_output({"application/vnd.vegalite.v6+json": away})]))
    assert "file:///etc/passwd, which is not loaded" in block["text"]


async def test_a_drawing_that_takes_too_long_is_given_up() -> None:
    pictures = Pictures(engines=FAST, seconds=0.01)
    output = _output({"application/vnd.plotly.v1+json": json.loads(_plotly().to_json())})
    (block,) = output_blocks(await pictures.seen([output]))
    assert "matplotlib did not draw it within 0.01 s" in block["text"]


async def test_a_live_figure_is_seen_as_it_was_shown_and_else_drawn_if_its_code_is_nobodys_own() -> None:
    pictures = Pictures(engines=FAST)
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 2])
    (drawn,) = await pictures.of_value(axes)
    assert drawn["type"] == "image"
    axes.xaxis.set_major_formatter(lambda value, _: f"{value}")
    assert await pictures.of_value(figure) == []
    pictures.shown.took(figure, {"image/png": drawn["source"]["data"], "text/plain": "Figure"})
    assert await pictures.of_value(figure) == [drawn]
    png = base64.b64decode(drawn["source"]["data"])
    assert pictures.shown.facts(png).startswith("matplotlib figure")
    note, picture = await pictures.of_value(_plotly())
    assert picture["type"] == "image" and PLAINLY in note["text"], "a plain drawing is not told as the person's figure"
    assert await pictures.of_value(pd.DataFrame()) == []
