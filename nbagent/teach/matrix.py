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

_EXPECTED = {"yes": True, "native": True, "each yield": True, "built-in": True, ".return()": True, "grows": True,
             "no": False, "hard": False, "constant": False}  # fmt: skip
"""What a word of the seed lets one expect of the figure; "manual" and words about style let one expect nothing."""

DIFFERS = "≠\u00a0seed"
MISSING = (
    "There is no column “reactive”: it needs reactivex. %pip install 'jupyter-nbagent[teach]', then run this again."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`yes` or not, by the figure that `text` has; None where a figure decides nothing. `words` are what yes and no are called."""

    yes: bool | None
    text: str
    words: tuple[str, str] = ("yes", "no")


@dataclass(frozen=True, slots=True)
class Figures:
    """All that was counted of one carrier; `whole` is the growth with the whole transcript kept."""

    growth: Growth
    whole: Growth
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
        await measured.growth(carrier, steps // 4, window=None),
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


def found(of: Figures, events: int) -> dict[str, dict[str, Verdict]]:
    """Return the verdicts on each aspect of the seed, by the row's name ("" where one is enough).

    `events` is what an attentive consumer is told.
    """
    went_on, resumed = of.paused
    held = went_on == 0
    return {
        "Stack overflow risk": {"": _overflow(of.growth)},
        "Memory per step": {"": _memory(of.growth), "… with the transcript": _memory(of.whole)},
        "Linear readability": {"": Verdict(None, of.shape)},
        "Observable": {"": Verdict(len(of.observed) == events, f"{len(of.observed)} of {events} events")},
        "Pausable": {"": Verdict(held, "nothing went on" if held else f"{went_on} calls went on")},
        "Resumable": {"": Verdict(held and resumed, "to its end" if held and resumed else "never stood still")},
        "Backpressure": {"": Verdict(of.lead <= 1, "never ahead" if of.lead <= 1 else f"{of.lead} calls ahead")},
        "Cancellable": {
            "… by a flag": _ended(of.flagged),
            "… by its consumer": _ended(of.left),
            "… by a timeout": _ended(of.timed_out),
        },
    }


def _overflow(of: Growth) -> Verdict:
    steps = f"{of.steps:,} steps"
    return Verdict(of.frames_per_step > _STILL, steps if of.ended == "done" else f"{of.ended} after {steps}")


def _memory(of: Growth) -> Verdict:
    return Verdict(of.bytes_per_step > _NOTHING, f"{max(0.0, of.bytes_per_step):,.0f} bytes", ("grows", "constant"))


def _ended(of: Ended) -> Verdict:
    if of.late_calls:
        return Verdict(False, f"{of.late_calls} calls went on")
    has = f"{of.kept} result{'s' * (of.kept != 1)} in hand"
    return Verdict(of.gave_back, has if of.gave_back else f"{has}, connection left open")


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
    """Return the seed's first table with what was measured below each claim; a figure that contradicts its claim says so."""
    events = max(len(of.observed) for of in known.values())
    verdicts = {name: found(of, events) for name, of in known.items()}
    rows: list[tuple[str, ...]] = []
    for aspect, claims in CLAIMED.items():
        claimed: dict[str, str] = dict(zip(_ORDER, claims, strict=True))
        rows.append((aspect, "seed", *(claimed.get(name, _UNCLAIMED) for name in known)))
        parts = next(iter(verdicts.values()))[aspect]
        rows += [
            (part, "here", *(said(verdicts[name][aspect][part], claimed.get(name, "")) for name in known))
            for part in parts
        ]
    return Table(("", "", *known), tuple(rows), _NOTE if "reactive" in known else f"{MISSING} {_NOTE}")


def said(verdict: Verdict, claim: str) -> str:
    """Return a cell of the table: yes or no, the figure, and that it contradicts what the seed claims, if it does."""
    if verdict.yes is None:
        return verdict.text
    differs = _EXPECTED.get(claim, verdict.yes) is not verdict.yes
    yes, no = verdict.words
    return f"{yes if verdict.yes else no}: {verdict.text}{f' ({DIFFERS})' * differs}"


_NOTE = (
    f"“{DIFFERS}”: the figure says something else than the text. A word like “manual” is neither yes nor no: here somebody has done that "
    "work. The transcript grows in every carrier: that is the agent's memory, not the carrier's. "
    "Readability can't be measured; lines, functions and fields say how much has to be held together."
)
