"""The seed's comparison of carriers, measured instead of asserted: what it claims, and what was counted here.

The claims are those of ../shared/seeds/async-generator-loop.txt ("Comparison Matrix", "Comparison with RxJS"). Read `matrix`, then
`against_reactive`. Every verdict goes by a figure of `nbagent.teach.measured`; what can't be measured says so.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from nbagent.teach import measured
from nbagent.teach.carriers import CARRIERS
from nbagent.teach.measured import Ended, Growth
from nbagent.teach.tables import Table

CLAIMED: dict[str, tuple[str, str, str, str]] = {
    "Stack overflow risk": ("yes", "no", "no", "no"),
    "Memory per step": ("grows", "constant", "constant", "constant"),
    "Linear readability": ("good", "poor", "poor", "excellent"),
    "Observable": ("no", "yes", "manual", "each yield"),
    "Pausable": ("no", "hard", "yes", "native"),
    "Resumable": ("no", "hard", "yes", "native"),
    "Backpressure": ("no", "no", "manual", "built-in"),
    "Cancellable": ("hard", "manual", "manual", ".return()"),
}
"""The seed's first table: aspect → recursion, event emitter, state machine, async generator."""

_ORDER = ("recursion", "event emitter", "state machine", "async generator")
_UNCLAIMED = "–"
_STILL, _NOTHING = 0.5, 100.0
"""Frames and bytes a step below which a carrier counts as not growing (the meter itself keeps a number a step)."""


@dataclass(frozen=True, slots=True)
class Figures:
    """All that was counted of one carrier."""

    growth: Growth
    observed: list[str]
    paused: tuple[int, bool]
    lead: int
    flagged: Ended
    left: Ended
    timed_out: Ended
    shape: str


async def figures(carrier: ModuleType, steps: int = measured.STEPS) -> Figures:
    """Put one carrier to every test; takes well under a second."""
    return Figures(
        await measured.growth(carrier, steps),
        await measured.observed(carrier),
        await measured.paused(carrier),
        await measured.lead(carrier),
        await measured.flagged(carrier),
        await measured.left(carrier),
        await measured.timed_out(carrier),
        shape(carrier),
    )


def shape(carrier: ModuleType) -> str:
    """Return how much a reader has to hold together: lines, functions and fields of the loop, without its `consume`."""
    tree = ast.parse(inspect.getsource(carrier))
    parts = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    loop = [node for node in parts if node.name not in {"consume", "_end"}]
    inside = [each for node in loop for each in ast.walk(node)]
    functions = sum(isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in inside)
    fields = {each.attr for each in inside if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)}
    lines = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in loop)
    return f"{lines} lines, {functions} function{'s' * (functions != 1)}, {len(fields)} fields"


def found(of: Figures, events: int) -> dict[str, str]:
    """Return the verdict on each aspect, with the figure that it goes by; `events` is what an attentive consumer is told."""
    went_on, resumed = of.paused
    grows = of.growth.frames_per_step > _STILL
    return {
        "Stack overflow risk": f"yes: {of.growth.ended} after {of.growth.steps} steps" if grows else f"no: {of.growth.steps} steps",
        "Memory per step": f"grows: {of.growth.bytes_per_step:,.0f} bytes" if of.growth.bytes_per_step > _NOTHING else "constant",
        "Linear readability": of.shape,
        "Observable": f"{'yes' if len(of.observed) == events else 'no'}: {len(of.observed)} of {events} events",
        "Pausable": "yes: nothing went on" if went_on == 0 else f"no: {went_on} calls went on",
        "Resumable": "yes" if resumed and went_on == 0 else "never stood still",
        "Backpressure": "yes: never ahead" if of.lead <= 1 else f"no: {of.lead} calls ahead",
        "… by a flag": _ended(of.flagged),
        "… by its consumer": _ended(of.left),
        "… by a timeout": _ended(of.timed_out),
    }  # fmt: skip


def _ended(of: Ended) -> str:
    if of.late_calls:
        return f"no: {of.late_calls} calls went on"
    return f"yes, {of.kept} result{'s' * (of.kept != 1)} seen{'' if of.gave_back else ', connection left open'}"


async def measure(carriers: Mapping[str, ModuleType] = CARRIERS) -> dict[str, Figures]:
    """Return the figures of all carriers that can be used here; one whose library is missing is left out."""
    known: dict[str, Figures] = {}
    for name, carrier in carriers.items():
        try:
            known[name] = await figures(carrier)
        except ModuleNotFoundError:
            continue
    return known


def matrix(known: Mapping[str, Figures]) -> Table:
    """Return the seed's first table with what was measured below each claim."""
    events = max(len(of.observed) for of in known.values())
    verdicts = {name: found(of, events) for name, of in known.items()}
    names = list(verdicts)
    rows: list[tuple[str, ...]] = []
    for aspect, claims in CLAIMED.items():
        claimed: dict[str, str] = dict(zip(_ORDER, claims, strict=True))
        rows.append((aspect, "seed", *(claimed.get(name, _UNCLAIMED) for name in names)))
        asked = [aspect] if aspect != "Cancellable" else ["… by a flag", "… by its consumer", "… by a timeout"]
        rows += [(" " if one == aspect else one, "here", *(verdicts[name][one] for name in names)) for one in asked]
    return Table(("", "", *names), tuple(rows), _NOTE)


_NOTE = (
    "Readability can't be measured; lines, functions and fields say how much has to be held together. Where the seed says “manual” or “hard” "
    "and here stands yes or no: the carriers here are written as their users would write them."
)
