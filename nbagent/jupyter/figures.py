"""Figures that a tool of the person's draws: they become part of its result, before anything is waited for.

The inline backend draws open figures when a cell ends or when a widget's message was handled, whichever comes first; a
figure that is still open at an approval would go to the click, whose outputs the page drops. Read `with_figures`.
"""

from __future__ import annotations

import dataclasses
import io
import sys
from typing import Any

from nbagent.core.messages import Block, text_block
from nbagent.core.tools import Call, Result, Tool
from nbagent.tools.data.figures import of_matplotlib
from nbagent.tools.describe import safely
from nbagent.tools.results import scaled_image

_AT_MOST = 20
_DPI = 100


def with_figures(tool: Tool) -> Tool:
    """Return `tool` so that the figures which it leaves open are images of its result, and closed."""

    async def function(call: Call, **given: Any) -> Result:
        result = Result.of(await tool.function(call, **given))
        drawn = open_figures()
        return dataclasses.replace(result, content=(*result.content, *drawn)) if drawn else result

    return dataclasses.replace(tool, function=function)


def open_figures() -> list[Block]:
    """Draw and close the figures that the inline backend would draw at the end of the cell; [] with other backends."""
    backend: Any = sys.modules.get("matplotlib_inline.backend_inline")
    if backend is None or not getattr(backend.show, "_draw_called", False):
        return []
    managers: list[Any] = backend.Gcf.get_all_fig_managers()
    blocks = [block for manager in managers[:_AT_MOST] for block in _seen(manager.canvas.figure)]
    backend.matplotlib.pyplot.close("all")
    backend.show._to_draw, backend.show._draw_called = [], False  # noqa: SLF001  (as its own flush leaves them)
    return blocks


def _seen(figure: Any) -> list[Block]:
    """Return what is told of a figure, and its picture."""
    facts = safely(lambda: of_matplotlib(figure).text())
    return [text_block(facts), scaled_image(_png(figure), "image/png")]


def _png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight", dpi=_DPI)
    return file.getvalue()
