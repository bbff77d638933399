"""What a lesson draws fits a narrow page: JupyterLab cuts off an SVG that is wider than the cell."""

from __future__ import annotations

from playwright.async_api import expect

from nbagent.teach.pictures_phases import two_forms
from tests.browser.lab import Lab

DRAWS = "from nbagent.teach import pictures_phases, stop_reasons\n"


async def test_a_picture_and_a_table_of_the_course_fit_a_narrow_page(lab: Lab) -> None:
    cells = [f"{DRAWS}pictures_phases.two_forms()", "await stop_reasons.of_ours()"]
    async with lab.open(cells, viewport=(600, 800), theme="dark") as notebook:
        await notebook.run(0)
        await notebook.run(1)
        picture, table = notebook.output(0).locator("img"), notebook.output(1).locator("table")
        await expect(picture).to_have_attribute("alt", two_forms().alt)
        for drawn, area in ((picture, notebook.output(0)), (table, notebook.output(1))):
            inner, outer = await drawn.bounding_box(), await area.bounding_box()
            assert inner
            assert outer
            assert inner["width"] > 100
            assert inner["x"] + inner["width"] <= outer["x"] + outer["width"]
        assert await picture.evaluate("one => one.complete && one.naturalWidth > 0")
