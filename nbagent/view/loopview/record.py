"""The loop view in a record: the diagram as a picture with the path, and the table of turns; no script, no stylesheet. Read `diagram_html`."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from nbagent.view.loopview.diagram import diagram_svg, words
from nbagent.view.loopview.table import now_html, path_html, turns_html
from nbagent.view.text import escape

if TYPE_CHECKING:
    from nbagent.view.loopview.seen import LoopSeen


def diagram_html(seen: LoopSeen) -> str:
    """Return the static picture of a run's loop, folded away: as an `<img>`, which pages keep that take out an `<svg>`."""
    uri = base64.b64encode(diagram_svg(seen).encode()).decode()
    image = (
        f'<img alt="{escape(words(seen))}" width="640" style="max-width:100%" src="data:image/svg+xml;base64,{uri}">'
    )
    return f"<details open><summary>The loop</summary>{image}{path_html(seen)}{now_html(seen)}{turns_html(seen, inline=True)}</details>"
