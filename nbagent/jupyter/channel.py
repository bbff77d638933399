"""What carries the bridge's messages between the kernel and the pages, and what a page says of itself.

Knows the widget that loads static/bridge.js into each page; must not know of operations. Read `Channel`, then `Hello`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import anywidget
import traitlets

from nbagent.core.errors import NotebookError
from nbagent.core.messages import Json
from nbagent.esm import module

VERSION = 1
PROTOCOL = "nbagent-bridge/1"


class PageRefused(NotebookError):
    """The page answered and did not do it; `code` says why: unknown_cell, changed, not_code, or what the page sent."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code

    @classmethod
    def of(cls, reply: Json) -> PageRefused:
        """Make the error of a page's refusing reply, with a sentence for the model."""
        return cls(_sentence(reply), str(reply.get("code")))


class Channel(Protocol):
    """What carries messages to the pages and back: a comm, or its double in tests."""

    def send(self, content: Json) -> None:
        """Send to every page that shows the notebook; may be called from any thread."""
        ...

    def on_message(self, receive: Callable[[Json], None]) -> None:
        """Call `receive` with each message from a page, on whatever thread it comes."""
        ...

    def close(self) -> None:
        """Stop for good."""
        ...


class BridgeWidget(anywidget.AnyWidget):
    """The comm as a widget without a view: the page loads static/bridge.js for it."""

    _esm = module(Path(__file__).parent / "static", "bridge.js")
    _view_name: Any = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    protocol = traitlets.Unicode(PROTOCOL).tag(sync=True)


class WidgetChannel:
    """The channel over a `BridgeWidget`'s comm; made in the running cell, so that the page of that cell hears it."""

    def __init__(self) -> None:
        self.widget = BridgeWidget()

    def send(self, content: Json) -> None:
        """Send a custom message; iopub takes it from any thread."""
        self.widget.send(content)

    def on_message(self, receive: Callable[[Json], None]) -> None:
        """Register `receive` for the widget's custom messages."""
        self.widget.on_msg(lambda _widget, content, _buffers: receive(content))

    def close(self) -> None:
        """Close the widget and the layout that came with it, so that neither leaves state in the saved notebook."""
        layout = self.widget.layout
        self.widget.close()
        if layout is not None:
            layout.close()


@dataclass(frozen=True, slots=True)
class Hello:
    """What the page that holds the lease said of itself.

    `document`: it can reach the notebook's document. `interactive`: a person can click there. `own_cell`: id of the
    running cell, if the page knows it; `running`: it was started there. `front_end`: jupyterlab, notebook, vscode, colab,
    headless or unknown. `session`: id of the server's session of notebook and kernel, the same in every tab, after a
    reload and under a new name; "" where there is none.
    """

    page: str
    path: str
    document: bool
    interactive: bool
    own_cell: str | None
    front_end: str
    running: bool = False
    session: str = ""

    @classmethod
    def of(cls, page: str, result: Json) -> Hello:
        """Read a page's answer; what is missing counts as not there."""
        own = result.get("own_cell")
        return cls(
            page=page,
            path=str(result.get("path") or ""),
            document=result.get("document") is True,
            interactive=result.get("interactive") is True,
            own_cell=str(own) if own else None,
            front_end=str(result.get("front_end") or "unknown"),
            running=result.get("running") is True,
            session=str(result.get("session") or ""),
        )

    def lacks(self, cell: str | None) -> bool:
        """Whether the page has a document, but not the one with `cell` (None: any will do)."""
        return self.document and cell is not None and self.own_cell != cell

    def fits(self, cell: str | None) -> bool:
        """Whether the page has the document with `cell`."""
        return self.document and not self.lacks(cell)


def _sentence(reply: Json) -> str:
    more = reply.get("more")
    cell = str(more.get("cell") if isinstance(more, dict) else "")
    match reply.get("code"):
        case "unknown_cell":
            return f"there is no cell {cell}: it may have been deleted; read the notebook for current ids"
        case "changed":
            return f"cell {cell} changed since you read it: read it again"
        case "not_code":
            return f"cell {cell} is not a code cell: only code cells run and have outputs"
        case "exists":
            return f"there is a cell {cell} already: a second one can't have its id"
        case "not_saved":
            return "the notebook was not saved: its file changed on disk, and the page asks the person which version to keep"
        case _:
            return f"the notebook's page could not do it: {str(reply.get('error') or 'no reason given')[:300]}"
