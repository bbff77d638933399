"""The loop view: where the loop stands, what it has walked, what was sent and what came back. Read `see`, then `html`."""

from nbagent.view.loopview.page import html
from nbagent.view.loopview.record import diagram_html
from nbagent.view.loopview.seen import Before, LoopSeen, see, see_all
from nbagent.view.loopview.source import Place, places
from nbagent.view.loopview.words import text

__all__ = ["Before", "LoopSeen", "Place", "diagram_html", "html", "places", "see", "see_all", "text"]
