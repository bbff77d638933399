"""What a figure shows, as text: real figures of each library, huge ones and hostile JSON."""

from __future__ import annotations

import json
import time
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import plotly.express as px
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from nbagent.tools.data.figures import of_matplotlib, of_plotly, of_vega
from nbagent.tools.data.figures_bundles import figure_in
from nbagent.tools.data.figures_vega import remote

SALES = pd.DataFrame(
    {"day": pd.date_range("2024-01-01", periods=6), "sum": [1, 2, 3, 4, 5, 1000], "shop": list("xxyyyx")}
)


def test_plotly_is_told_by_title_axes_scales_ranges_traces_and_legend() -> None:
    figure = px.line(SALES, x="day", y="sum", color="shop", title="Sales", log_y=True)
    assert of_plotly(json.loads(figure.to_json())).text().splitlines() == [
        'plotly figure "Sales"',
        '  x "day" (date) data 2024-01-01 to 2024-01-06; y "sum" (log) data 1 to 1,000',
        "  2 x scatter (lines) (6 points)",
        '  legend "shop": x, y',
    ]


@pytest.mark.parametrize(
    "figure",
    [
        px.scatter(SALES, x="day", y="sum", facet_col="shop"),
        px.imshow(np.arange(12).reshape(3, 4)),
        px.pie(SALES, names="shop", values="sum"),
    ],
)
def test_a_live_plotly_figure_is_told_as_its_json_is(figure: Any) -> None:
    live = {"data": figure._data, "layout": figure._layout}
    assert of_plotly(live).text() == of_plotly(json.loads(figure.to_json())).text()


def test_altair_is_told_layers_and_panels_with_their_fields() -> None:
    points = alt.Chart(SALES).mark_point().encode(x="day", y=alt.Y("sum", scale=alt.Scale(type="log")), color="shop")
    chart = points.properties(title="Sales") | alt.Chart(SALES).mark_bar().encode(x="shop", y="mean(sum)")
    said = of_vega(chart.to_dict()).text()
    assert 'panel 1 "Sales"' in said
    assert '"sum" (log) data 1 to 1,000; color "shop" (category): x, y' in said
    assert 'y "mean of sum"' in said


def test_an_address_in_a_chart_is_found_wherever_it_stands() -> None:
    chart = alt.Chart("https://example.com/a.json").mark_line().encode(x="a:Q", y="b:Q")
    assert remote((chart | chart).to_dict()) == "https://example.com/a.json"
    assert remote({"encoding": {"url": {"field": "picture"}}}) == "an address that is computed"
    assert "unknown place" in remote({"layer": [[0]] * 50_000})
    assert remote(alt.Chart(SALES).mark_point().encode(x="day").to_dict()) == ""


def test_a_matplotlib_figure_is_told_and_not_drawn() -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.plot(SALES["day"], SALES["sum"], label="all")
    left.legend(title="Shop")
    left.set(title="Sales", xlabel="day", yscale="log")
    right.bar(SALES["shop"], SALES["sum"])
    figure.colorbar(right.imshow([[0, 7]]), label="degrees")
    said = of_matplotlib(figure).text()
    assert 'panel 1 "Sales":\n  x "day" (date) 2023-12-31 18:00 to 2024-01-06 06:00; y (log)' in said
    assert "line (6 points)" in said
    assert 'legend "Shop": all' in said
    assert "bars, image of 1 x 2 (6 points)" in said
    assert 'colour scale "degrees": 0 to 7' in said


def test_axes_of_the_persons_own_class_are_named_and_not_asked() -> None:
    from matplotlib.axes import Axes

    class Own(Axes):
        def get_title(self, *_: Any, **__: Any) -> str:
            raise SystemExit

    figure = Figure()
    figure.add_axes(Own(figure, (0, 0, 1, 1)))
    assert "Own, not looked into" in of_matplotlib(figure).text()


@pytest.mark.slow
def test_huge_figures_are_told_in_bounded_time_and_length() -> None:
    values = np.arange(1_000_000)
    huge = {"data": [{"type": "scattergl", "x": values, "y": values}] * 400, "layout": {}}
    panels = {"data": [{"x": [1], "y": [1], "xaxis": f"x{n}", "yaxis": f"y{n}"} for n in range(60)], "layout": {}}
    began = time.perf_counter()
    facts = [of_plotly(huge), of_plotly(panels)]
    assert time.perf_counter() - began < 20
    assert "400 x scattergl (400,000,000 points)" in facts[0].text()
    assert "… and 48 more panels" in facts[1].text()
    assert max(len(told.text()) for told in facts) < 4_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "data",
                    "layout",
                    "type",
                    "x",
                    "y",
                    "z",
                    "marker",
                    "color",
                    "title",
                    "text",
                    "xaxis",
                    "yaxis",
                    "range",
                    "domain",
                    "annotations",
                    "mark",
                    "layer",
                    "hconcat",
                    "spec",
                    "facet",
                    "encoding",
                    "field",
                    "scale",
                    "datasets",
                    "values",
                    "name",
                    "marks",
                    "axes",
                    "legends",
                    "bdata",
                    "dtype",
                    "params",
                    "url",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


def test_a_long_column_is_told_with_its_smallest_and_largest_though_few_of_it_are_looked_at() -> None:
    y = np.zeros(300_000)
    y[[7, 8, 9]] = 55.5, -44.5, np.nan
    told = of_plotly({"data": [{"type": "scatter", "y": y}], "layout": {}}).text()
    assert "about -44.5" in told and "55.5" in told


@given(JSON)
def test_whatever_json_there_is_something_is_told_and_nothing_raised(given_json: Any) -> None:
    for tell in (of_plotly, of_vega):
        assert tell(given_json).text()
        assert tell({"data": given_json, "layout": given_json, "layer": given_json, "encoding": given_json}).brief()


def test_a_figure_is_found_in_the_html_that_its_library_wrote() -> None:
    html = px.line(SALES, x="day", y="sum").to_html(include_plotlyjs=False, full_html=False)
    plotly = figure_in({"text/html": html})
    assert plotly is not None
    assert "scatter (lines) (6 points)" in plotly.text()
    chart = figure_in(alt.Chart(SALES).mark_point().encode(x="sum")._repr_mimebundle_())
    assert chart is not None
    assert "point (6 points)" in chart.text()
    assert figure_in({"text/html": "<b>vegaEmbed Plotly.newPlot(</b>"}) is None
