"""Keeps the widgets of the run itself open where code says `ipywidgets.Widget.close_all()`.

All widgets of a kernel are in one registry, and ours must stay in it: a page that is loaded again asks it. Closed, the
view and the bridge would be gone for the rest of the run. Read `spared`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

VIEW = "nbagent-view"
"""The class of the live view's outermost box."""


def spared() -> tuple[Any, Callable[[], None]] | None:
    """Return ipywidgets' `Widget` and what is to stand for its `close_all`; None where no widgets are in use."""
    module: Any = sys.modules.get("ipywidgets.widgets.widget")
    if module is None:
        return None
    known: dict[str, Any] = module._instances if hasattr(module, "_instances") else module.Widget.widgets  # noqa: SLF001  (8, 7)

    def close_all() -> None:
        widgets = list(known.values())
        kept = {id(widget) for widget in _whole(filter(_is_ours, widgets))}
        for widget in widgets:
            if id(widget) not in kept:
                widget.close()

    return module.Widget, close_all


def _is_ours(widget: Any) -> bool:
    return type(widget).__module__.startswith("nbagent.") or VIEW in getattr(widget, "_dom_classes", ())


def _whole(roots: Iterable[Any]) -> Iterator[Any]:
    """Yield widgets and all that they are made of."""
    waiting = list(roots)
    while waiting:
        widget = waiting.pop()
        yield widget
        parts = (getattr(widget, "layout", None), getattr(widget, "style", None), *getattr(widget, "children", ()))
        waiting += [part for part in parts if hasattr(part, "model_id")]
