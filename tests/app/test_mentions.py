"""What an @-mention in a prompt stands for, looked up in a notebook without a page."""

from __future__ import annotations

import pytest

from nbagent.app.extension import Extension
from nbagent.app.mentions import given_with
from nbagent.headless.memory import MemoryNotebook
from tests.tools.desk import raw

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def extension(shell, at_home) -> Extension:
    return Extension(shell)


def figure(name: str, number: int, **data: object) -> dict[str, object]:
    cell = raw(name, f"draw_{name}()")
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    return {**cell, "execution_count": number, "outputs": [output]}


async def test_the_plot_that_was_drawn_last_is_meant_though_it_is_interactive_and_has_no_picture(extension):
    away = {"$schema": "v6", "mark": "bar", "data": {"url": "https://example.org/a.csv"}, "title": "Sales"}
    cells = [
        figure("old", 1, **{"image/png": PNG}),
        figure("new", 2, **{"application/vnd.vegalite.v6+json": away}),
    ]
    given = await given_with(extension, "What does @plot show?", MemoryNotebook(cells))
    (told,) = given.blocks
    assert "the figure of In[2]" in told["text"] and "in words" in told["text"] and "Sales" in told["text"]
    given = await given_with(extension, "What does @plot show?", MemoryNotebook(cells[:1]))
    assert "the figure of In[1] (cell old), as an image below" in given.blocks[0]["text"]
    assert [block["type"] for block in given.blocks] == ["text", "image"]
