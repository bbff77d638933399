"""What a figure shows, as text: for the model beside the picture, and in place of it where there is none.

Nothing is drawn, computed or imported for it. Whoever tells of figures begins here: each function takes what its library
has of a figure (a live matplotlib figure; the JSON of plotly or Vega, live dicts with arrays too) and returns
`FigureFacts`, whatever is in it. Read `of_plotly` in figures_plotly.py as the example.
"""

from __future__ import annotations

from nbagent.tools.data.figures_facts import Axis, FigureFacts, Mark, Panel
from nbagent.tools.data.figures_matplotlib import of_matplotlib
from nbagent.tools.data.figures_plotly import of_plotly
from nbagent.tools.data.figures_vega import of_vega

__all__ = ["Axis", "FigureFacts", "Mark", "Panel", "of_matplotlib", "of_plotly", "of_vega"]
