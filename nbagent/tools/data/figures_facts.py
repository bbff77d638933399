"""What is told of a figure, whichever library made it: its title, panels, axes, ranges, legend and kinds of marks.

Values only; must not know any library. Read `FigureFacts.text`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from nbagent.tools.secrets import mask

PANELS = 12
"""Panels of a figure that are told one by one; the others are counted."""

_TEXT = 120
_NAMES = 12
_KINDS = 8
_NOTES = 6
_TAG = re.compile(r"<[^<>]{0,200}>")
_BREAK = re.compile(r"(?i)<br\s*/?>")


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis or scale: its name in the figure ("x"), its label, what it goes from and to, and how ("log")."""

    name: str
    label: str = ""
    low: str = ""
    high: str = ""
    scale: str = ""
    values: tuple[str, ...] = ()
    """The categories of a scale that has no numbers, in order."""
    more: int = 0
    """How many categories there are beyond `values`."""
    data: bool = False
    """Whether `low` and `high` are the least and the largest of what is drawn: the ends of the axis are not known."""

    def text(self) -> str:
        """Return it in a few words: `x "year" (date) 2020-01-01 to 2024-12-31`."""
        scale = f" ({line_of(self.scale)})" if self.scale and self.scale != "linear" else ""
        label = f' "{line_of(self.label)}"' if self.label else ""
        if self.values:
            return f"{self.name}{label}{scale}: {listed(self.values, self.more)}"
        span = f" {'data ' * self.data}{line_of(self.low)} to {line_of(self.high)}" if self.low or self.high else ""
        return f"{self.name}{label}{scale}{span}"


@dataclass(frozen=True, slots=True)
class Mark:
    """One trace, line, set of bars or layer: its kind, what it is called in the legend, and how many points it has."""

    kind: str
    name: str = ""
    points: int | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes, and what is drawn in it."""

    title: str = ""
    axes: tuple[Axis, ...] = ()
    marks: tuple[Mark, ...] = ()
    legend: tuple[str, ...] = ()
    legend_title: str = ""
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return the panel in a few lines, without its title."""
        found = ["; ".join(axis.text() for axis in self.axes[:8])] if self.axes else []
        if self.marks:
            found.append(_marks(self.marks))
        if self.legend:
            title = f' "{line_of(self.legend_title)}"' if self.legend_title else ""
            found.append(f"legend{title}: {listed(self.legend)}")
        return [*found, *(line_of(note, 200) for note in self.notes[:_NOTES])]


@dataclass(frozen=True, slots=True)
class FigureFacts:
    """What is told of a figure. `kind` says whose it is ("plotly figure"), `size` how large ("700 x 450 pixels")."""

    kind: str
    title: str = ""
    size: str = ""
    panels: tuple[Panel, ...] = ()
    unseen: int = 0
    """How many panels there are beyond `panels`."""
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many panels the figure has."""
        return len(self.panels) + self.unseen

    def brief(self) -> str:
        """Return one line, for a list of variables: `plotly figure "Sales by month", 3 traces`."""
        title = self.title or next((panel.title for panel in self.panels if panel.title), "")
        named = f' "{line_of(title, 60)}"' if title else ""
        panels = f", {self.count} panels" if self.count > 1 else ""
        marks = [mark for panel in self.panels for mark in panel.marks]
        return mask(f"{self.kind}{named}{panels}" + (f", {_marks(tuple(marks))}" if marks else ", empty"))

    def text(self) -> str:
        """Return all that is told, in at most some 40 lines; keys of a known shape are hidden."""
        title = f' "{line_of(self.title)}"' if self.title else ""
        size = f", {self.size}" if self.size else ""
        panels = f", {self.count} panels" if self.count > 1 else ""
        lines = [f"{self.kind}{title}{size}{panels}"]
        for place, panel in enumerate(self.panels[:PANELS], 1):
            if self.count > 1:
                named = f' "{line_of(panel.title)}"' if panel.title else ""
                lines.append(f"panel {place}{named}:")
            elif panel.title and panel.title != self.title:
                lines.append(f'title "{line_of(panel.title)}"')
            lines += [f"  {line}" for line in panel.lines() or ["nothing is drawn in it"]]
        if (rest := self.count - min(len(self.panels), PANELS)) > 0:
            lines.append(f"… and {rest} more panels")
        if not self.panels:
            lines.append("  nothing is drawn in it")
        return mask("\n".join([*lines, *(line_of(note, 300) for note in self.notes[:_NOTES])]))


def _marks(marks: tuple[Mark, ...]) -> str:
    """Return kinds with their numbers and points: `2 lines, 1 bars (36 points)`."""
    kinds = Counter(mark.kind for mark in marks)
    shown = [
        f"{line_of(kind, 40)}" if n == 1 else f"{n} x {line_of(kind, 40)}" for kind, n in kinds.most_common(_KINDS)
    ]
    more = f", … {len(kinds) - _KINDS} more kinds" if len(kinds) > _KINDS else ""
    known = [mark.points for mark in marks if mark.points is not None]
    points = f" ({sum(known):,} points)" if known else ""
    return f"{', '.join(shown)}{more}{points}"


def line_of(text: str, limit: int = _TEXT) -> str:
    """Return a text of a figure on one line, without tags, cut after `limit` characters."""
    text = text[: 4 * limit]
    if "<" in text:
        text = _TAG.sub("", _BREAK.sub(" ", text))
    text = " ".join(text.split())
    return text if len(text) <= limit else text[:limit] + "…"


def listed(names: Iterable[str], more: int = 0) -> str:
    """Return the first names, and how many there are besides."""
    every = list(names)
    rest = len(every) - _NAMES + more if len(every) > _NAMES else more
    return ", ".join(line_of(name, 40) for name in every[:_NAMES]) + (f", … {rest:,} more" if rest > 0 else "")


def number(value: float) -> str:
    """Return a number of an axis as people read it."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124  (NaN is not itself)
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.4g}" if 1e-3 <= abs(value) < 1e6 else f"{value:.4g}"
