"""The report of a notebook: what stands in it, that nothing in it acts, and who is told to have run what."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from nbagent.app import report as report_command
from nbagent.app.report import read, title_of
from nbagent.app.reportfigures import picture_of
from nbagent.app.reporting import Material, Run, made, rows
from nbagent.app.safehtml import bounded, cleaner
from nbagent.core.errors import ConfigError
from nbagent.tools.data.pictures import Pictures
from nbagent.tools.times import RunTimes
from nbagent.view.report.model import AnswerPart

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
ENDED = {"reason": "end_turn", "text": "Gentoo weigh **5,076 g** (In[3]).", "at": 12.5, "cost": 0.01, "cells": ["c4"]}
RUNS = {"run-0a": Run("run-0a", 1_780_000_000.0, "opus", "Which is heaviest?", answers=False, ended=ENDED)}
EVIL = (
    "<table onclick=x><tr><td onmouseover=x style='color:red;position:fixed'>ok</td></tr></table><a href='javascript:alert(1)'>j</a>"
    "<scr<style></style>ipt>alert(2)</script><img src=x onerror=alert(3)>"
)


def shows(**data: str) -> list:
    return [new_output("display_data", {name.replace("_", "/"): value for name, value in data.items()})]


def cells() -> list:
    link = '<a href="#nbagent-again-run-0a">Run again</a>'
    return [
        new_markdown_cell("# Birds\n\n342 birds <script>alert(4)</script> ![x](https://evil.example/a.png)", id="m1"),
        new_code_cell("print(len(df))", id="c2", execution_count=2, outputs=[new_output("stream", text="342\n")]),
        new_code_cell("means", id="c3", execution_count=3, outputs=shows(text_plain="5076.016", text_html="<b>5076.016</b>")),
        new_code_cell("%%agent\nWhich is heaviest?", id="a1", execution_count=4, outputs=shows(text_html=link)),
        new_code_cell("ax.set_title('Mass')", id="c4", execution_count=6, outputs=shows(image_png=PNG),
                      metadata={"nbagent": {"run": "run-0a"}}),
        new_code_cell("evil", id="c5", execution_count=5, outputs=shows(text_html=EVIL)),
        new_code_cell("never()", id="c6"),
    ]  # fmt: skip


def material(folder, found=None) -> Material:
    return Material(found or cells(), "birds.ipynb", RUNS, cleaner(), folder, RunTimes())


async def written(folder, kind: str, *, code: bool = True, summary: str = "") -> str:
    page = await made(
        material(folder), title="Birds", code=code, summary=summary, checked="1 number looked up." if summary else ""
    )
    target = folder / f"out.{kind}"
    report_command._put(page, target, kind)
    return target.read_text("utf-8")


async def test_the_page_has_texts_answers_figures_and_numbers_that_lead_to_their_cells(tmp_path):
    page = await written(tmp_path, "html", summary="## Summary\n\nGentoo: 5,076 g.")
    assert page.count("<h1>") == 1 and "<h1>Birds</h1>" in page and 'id="summary"' in page
    assert '<a class="from" href="#cell-c2">342</a>' in page and '<a class="from" href="#cell-c3">5,076</a>' in page
    assert 'alt="Mass"' in page and "Figure 1. Mass" in page and "Answer of opus" in page
    anchors = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= anchors, "each link leads somewhere"
    bare = await written(tmp_path, "html", code=False)
    assert "<details>" not in bare and "print(" not in bare.partition('class="appendix"')[0] and "Figure 1" in bare


async def test_nothing_of_an_output_acts_in_the_page_or_loads_anything(tmp_path):
    page = (await written(tmp_path, "html")).lower()
    assert "default-src 'none'" in page
    body = page.partition("<body>")[2]
    assert not re.search(r"<(script|iframe|object|embed|svg|style|link)\b", body)
    assert (
        not re.search(r"<[^>]+\son\w+\s*=", body)
        and not re.search(r'href="javascript:', body)
        and "position:" not in body
    )
    assert not re.search(r'<img[^>]+src="(?!data:)', body)


async def test_markdown_has_the_figures_as_files_beside_it(tmp_path):
    text = await written(tmp_path, "md")
    name = re.search(r"!\[Mass\]\((out_files/[^)]+)\)", text)
    assert name and (tmp_path / name[1]).read_bytes().startswith(b"\x89PNG")
    assert "[342](#cell-c2)" in text and '<a id="cell-c2"></a>' in text and "| [In[6]](#cell-c4) |" in text
    assert "onerror" not in text and "<td>never" not in text


def test_what_was_run_stands_in_the_order_of_the_runs_with_who_did_it(tmp_path):
    ran = rows(material(tmp_path))
    assert [one.number for one in ran] == [2, 3, 4, 5, 6, None]
    by = {one.number: one for one in ran}
    assert by[2].by == "person" and by[6].by == "agent (opus, run In[4])" and by[None].note == "not run"
    assert by[4].by == "agent (opus), asked by a person" and by[4].took and "1 cell added or run" in by[4].note


async def test_commands_that_look_at_the_notebook_are_in_the_list_and_no_answers_of_the_analysis(tmp_path):
    link = '<a href="#nbagent-again-run-0b">Run again</a>'
    check = new_code_cell("%agent verify", id="v1", execution_count=7, outputs=shows(text_html=link))
    said = Run("run-0b", 1_780_000_100.0, "verify", "verify this notebook", answers=False,
               ended={"reason": "end_turn", "text": "Not reproducible: In[2] fails.", "at": 3.0})  # fmt: skip
    stuff = replace(material(tmp_path, [*cells(), check]), runs={**RUNS, "run-0b": said})
    page = await made(stuff, title="Birds", code=True)
    assert [part.cell for part in page.parts if isinstance(part, AnswerPart)] == ["a1"]
    (row,) = [one for one in page.ran if one.cell == "v1"]
    assert (row.what, row.by, row.note) == ("%agent verify", "person", "Not reproducible: In[2] fails.")
    assert page.notes[-1].endswith("%agent verify said: Not reproducible: In[2] fails.")
    for kind in ("html", "md"):
        report_command._put(page, tmp_path / f"out.{kind}", kind)
        text = (tmp_path / f"out.{kind}").read_text("utf-8")
        assert "In[7]" in text and "#cell-v1" not in text, "no link to a cell that is not in the page"


async def test_a_vega_figure_is_drawn_still_and_loads_nothing(tmp_path):
    spec = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "title": "Dots", "mark": "point",
            "data": {"values": [{"a": 1}]}, "encoding": {"x": {"field": "a", "type": "quantitative"}}}  # fmt: skip
    found = await picture_of({"application/vnd.vegalite.v5+json": spec}, "chart", Pictures())
    assert found and found.alt == "Dots" and found.data.startswith(b"\x89PNG")
    away = {**spec, "data": {"url": "http://127.0.0.1:9/x.csv"}}
    assert await picture_of({"application/vnd.vegalite.v5+json": away}, "chart", Pictures()) is None


def test_the_line_is_read_with_its_mistakes_told():
    assert read("--to markdown --title 'A b' --no-code").kind == "md" and read("-o x.html").file == "x.html"
    for line, said in (("x.pdf", "HTML or Markdown"), ("--to pdf", "invalid choice"), ("x.md --to html", "don't go together"),
                       ("--write --from a.ipynb", "--write needs"), ("'a", "not closed")):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            read(line)
    assert title_of([nbformat.from_dict({"cell_type": "markdown", "source": "x\n# A *b*"})]) == "A b"


@pytest.mark.parametrize(
    ("html", "kept"),
    [
        ("<table>" + "<tr><td>1</td></tr>" * 20_000 + "</table>", 1_500),
        ("<div>1" * 20_000, 150),
        ("<br>1" * 20_000, 12_000),
        ("<" * 50_000 + "1", 0),
    ],
    ids=["a long table", "tags in tags", "many lines", "signs"],
)
def test_of_an_output_that_is_too_large_to_be_made_harmless_the_beginning_is_kept(html, kept):
    assert bounded(html).count("1") == kept
    small = "<table><tr><td>1<br>2</td></tr></table>" * 100
    assert bounded(small) == small
