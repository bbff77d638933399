"""The page's side of the live view's timeline: where its one ES module and its stylesheet are. Read `Timeline`."""

from __future__ import annotations

import pathlib

import anywidget
import traitlets

from nbagent import esm

_STATIC = pathlib.Path(__file__).parent / "static"


class Timeline(anywidget.AnyWidget):
    """The page's side of the timeline; items come as custom messages.

    `head` are the header's values, and of a running call what the page needs to ask by itself whether to wait for it.
    """

    _esm = esm.module(_STATIC, "view.js")
    _css = _STATIC / "view.css"
    head = traitlets.Dict().tag(sync=True)
