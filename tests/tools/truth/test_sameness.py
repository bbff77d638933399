"""Two lists of outputs are the same where a reader would say so, and different where one would."""

from __future__ import annotations

import base64
import io
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from nbagent.core.ports import WITHHELD
from nbagent.tools.marks import as_stale
from nbagent.tools.sameness import compared

NOW = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)


def value(text: str) -> list[dict[str, Any]]:
    """The output of a cell that ends with a value."""
    return [{"output_type": "execute_result", "data": {"text/plain": text}, "metadata": {}, "execution_count": 1}]


def printed(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def image(
    color: tuple[int, int, int], size: tuple[int, int] = (20, 20), dot: tuple[int, int] | None = None
) -> list[dict[str, Any]]:
    made = Image.new("RGB", size, color)
    if dot:
        made.paste((0, 0, 0), (0, 0, *dot))
    file = io.BytesIO()
    made.save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    return [{"output_type": "display_data", "data": {"image/png": data, "text/plain": "<Figure>"}, "metadata": {}}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<A object at 0x7f12345678>", "<A object at 0x7fabcdef00>"),
        ("mean 0.1234567891", "mean 0.1234567899"),
        ("run at 2024-01-01 10:00:00", "run at 2026-11-30 17:59:01"),
        ("Wall time: 3.2 s", "Wall time: 812 ms"),
        ("CPU times: user 3 ms, sys: 1 ms, total: 4 ms", "CPU times: user 1.2 s, sys: 9 ms, total: 1.3 s"),
        ("100%|####| 10/10 [00:03<00:00, 3.1it/s]", "100%|####| 10/10 [00:05<00:00, 2.0it/s]"),
        ("a   1\nb  22", "a 1\nb 22"),
        ("/tmp/ipykernel_12/345.py:1: note", "/tmp/ipykernel_99/1.py:1: note"),
        ("nan 1.0", "nan 1.0"),
    ],
)
def test_what_any_two_runs_differ_in_is_no_difference(one: str, other: str) -> None:
    assert compared(value(one), value(other), now=NOW).sameness == "same"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5", "4"),
        ("mean 0.12345", "mean 0.12346"),
        ("sold on 2024-01-01 10:00:00", "sold on 2024-01-02 10:00:00"),
        ("a\nb", "a\nb\nc"),
        ("rows: 100", "rows: 101"),
        ("Adelie", "Gentoo"),
        ("median wait 12.5 min", "median wait 13.5 min"),
    ],
)
def test_what_a_reader_would_call_another_result_is_a_difference(one: str, other: str) -> None:
    found = compared(value(one), value(other), now=NOW)
    assert found.sameness == "differs"
    assert found.what


def test_tables_are_compared_by_their_values() -> None:
    def table(number: str, style: str = "") -> list[dict[str, Any]]:
        html = f"<style>{style}</style><table><tr><td>{number}</td></tr></table>"
        return [{"output_type": "execute_result", "data": {"text/html": html, "text/plain": "…"}, "metadata": {}}]

    assert compared(table("1.00000001"), table("1.00000002", "#id7 {}")).sameness == "same"
    assert compared(table("1.5"), table("1.6")).sameness == "differs"


def test_images_are_compared_by_their_pixels() -> None:
    assert compared(image((9, 9, 9)), image((11, 9, 9))).sameness == "same"
    assert "pixels" in compared(image((255, 255, 255)), image((255, 255, 255), dot=(9, 9))).what
    assert "10x20 in place of 20x20" in compared(image((9, 9, 9)), image((9, 9, 9), (10, 20))).what


def test_figures_are_compared_by_their_data_and_not_by_generated_names() -> None:
    def figure(y: float, uid: str) -> list[dict[str, Any]]:
        return [{"output_type": "display_data", "metadata": {},
                 "data": {"application/vnd.plotly.v1+json": {"data": [{"y": [1, y], "uid": uid}]}}}]  # fmt: skip

    assert compared(figure(2.0, "a"), figure(2.0, "b")).sameness == "same"
    assert "data.0.y.1" in compared(figure(2.0, "a"), figure(3.5, "a")).what


@pytest.mark.parametrize("mime", ["text/html", "text/markdown", "text/latex"])
def test_rich_texts_are_compared_by_what_they_say_and_not_by_the_name_of_their_object(mime: str) -> None:
    def rich(said: str) -> list[dict[str, Any]]:
        bundle = {mime: said, "text/plain": "<IPython.core.display.HTML object>"}
        return [{"output_type": "display_data", "data": bundle, "metadata": {}}]

    assert "5" in (found := compared(rich("<b>sum 5</b>"), rich("<b>sum 6</b>"))).what
    assert found.sameness == "differs"
    assert compared(rich("<b id='a1'>sum 5</b>"), rich("<b id='a1'>sum 5</b>")).sameness == "same"


def test_html_that_draws_by_itself_is_the_same_only_where_it_is_equal_but_for_its_ids() -> None:
    def drawn(uid: str, data: str) -> list[dict[str, Any]]:
        html = f'<div id="{uid}"></div><script>draw("{uid}", [{data}])</script>'
        return [{"output_type": "display_data", "data": {"text/html": html, "text/plain": "<Map>"}, "metadata": {}}]

    assert compared(drawn("3f2a90bc", "1, 2"), drawn("77aa01de", "1, 2")).sameness == "same"
    assert compared(drawn("3f2a90bc", "1, 2"), drawn("77aa01de", "1, 3")).sameness == "unknown"


def test_a_large_image_is_compared_to_its_end() -> None:
    def noisy(bottom: int) -> list[dict[str, Any]]:
        made = Image.frombytes("RGB", (400, 400), random.Random(7).randbytes(480_000))
        made.paste((bottom, 0, 0), (0, 300, 400, 400))
        file = io.BytesIO()
        made.save(file, "PNG")
        data = base64.b64encode(file.getvalue()).decode()
        assert len(data) > 400_000
        return [{"output_type": "display_data", "data": {"image/png": data, "text/plain": "<Figure>"}, "metadata": {}}]

    assert "pixels" in compared(noisy(0), noisy(200)).what
    assert compared(noisy(0), noisy(2)).sameness == "same"


def test_a_long_text_is_compared_to_its_end() -> None:
    long = "a line of a log\n" * 100_000
    assert compared([printed(f"{long}total 5")], [printed(f"{long}total 5")]).sameness == "same"
    assert compared([printed(f"{long}total 5")], [printed(f"{long}total 6")]).sameness == "differs"


def test_names_that_altair_numbers_anew_do_not_count_and_those_of_traces_do() -> None:
    def figure(mime: str, said: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"output_type": "display_data", "metadata": {}, "data": {mime: said}}]

    plotly, vega = "application/vnd.plotly.v1+json", "application/vnd.vegalite.v6+json"
    one, other = ({"data": [{"name": f"region_{n}"}]} for n in (1, 2))
    assert compared(figure(plotly, one), figure(plotly, other)).sameness == "differs"
    one, other = ({"params": [{"name": f"param_{n}", "views": [f"view_{n}"]}]} for n in (1, 9))
    assert compared(figure(vega, one), figure(vega, other)).sameness == "same"


def test_pieces_of_a_stream_are_one_text_and_warnings_do_not_count() -> None:
    assert compared([printed("a\n"), printed("b\n")], [printed("a\nb\n")]).sameness == "same"
    assert compared([printed("a")], [printed("a"), printed("DeprecationWarning", "stderr")]).sameness == "same"


def test_an_output_that_came_or_went_is_named() -> None:
    error = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": []}
    assert "no value any more" in compared(value("5"), [printed("a")]).what
    assert "KeyError: 'x'" in compared(value("5"), [error]).what


def test_what_can_not_be_compared_is_unknown() -> None:
    widget = [{"output_type": "display_data", "data": {"application/vnd.jupyter.widget-view+json": {}}, "metadata": {}}]
    large = [{"output_type": "display_data", "data": {}, "metadata": {WITHHELD: True}}]
    assert compared(widget, widget).sameness == "unknown"
    assert compared(value("5"), large).sameness == "unknown"


def test_the_mark_of_old_outputs_is_no_output() -> None:
    assert compared(as_stale(value("5")), value("5")).sameness == "same"


@given(st.text(max_size=200))
def test_every_text_is_the_same_as_itself(text: str) -> None:
    assert compared(value(text), value(text)).sameness == "same"
