"""What a run in a clean kernel shows of a notebook's truth: cell by cell what is the same, what differs, and why.

Pure: from the cells as they are shown, the outputs of one or two clean runs, and the code (dataflow.py). It must not know
how the clean runs were made. Read `Verdict`, then `judge`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

from nbagent.core.messages import Json
from nbagent.core.ports import Cell, Output
from nbagent.tools.cells import first_line, starts_agent
from nbagent.tools.dataflow import Dataflow, dataflow
from nbagent.tools.marks import is_stale
from nbagent.tools.sameness import compared

State = Literal["same", "differs", "random", "fails", "new", "unknown", "skipped", "not run"]
"""How a cell came out. `new`: it had not run before, or not since its edit, so there is nothing to compare."""

VERIFIED, RUNS, BROKEN, STOPPED = "verified", "runs", "not reproducible", "stopped"

_NAME = re.compile(r"name '([^']+)' is not defined")
_MODULE = re.compile(r"No module named '([^']+)'")
_FILE = re.compile(
    r"No such file or directory: '([^']+)'|File (?:b?')?([^' ]+)'? does not exist|unable to open (?:database )?file"
)


@dataclass(frozen=True, slots=True)
class Came:
    """How one cell came out of a clean run: its outputs, None where it did not run, and the seconds that it took."""

    outputs: tuple[Output, ...] | None
    seconds: float = 0.0


CleanRun = Mapping[str, Came]
"""A run in a clean kernel, by the ids of the cells."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One cell: how people know it (`label`), its first line, how it came out, what is to be said of it, and its seconds."""

    id: str
    label: str
    line: str
    state: State
    said: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of it. `kind` is one of VERIFIED, RUNS, BROKEN, STOPPED; `sources` the hash of the code that was judged.

    `headline` and `notes` are sentences for people. `edges` are (from, to, names) of the dependencies between code cells.
    """

    kind: str
    headline: str
    cells: tuple[Judged, ...]
    notes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str, str], ...] = ()
    sources: str = ""
    seconds: float = 0.0
    runs: int = 1

    @property
    def verified(self) -> bool:
        """Whether it may be said that the notebook is verified from a clean kernel."""
        return self.kind == VERIFIED

    def to_json(self) -> Json:
        """Return the verdict as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Json) -> Verdict:
        """Return the verdict of `to_json`, also when it came through a file; raises KeyError, TypeError or ValueError for none."""
        edges = tuple((str(a), str(b), str(names)) for a, b, names in data.get("edges", ()))
        return cls(
            str(data["kind"]),
            str(data["headline"]),
            tuple(map(_cell_of, data["cells"])),
            tuple(map(str, data.get("notes", ()))),
            edges,
            str(data.get("sources", "")),
            float(data.get("seconds", 0.0)),
            int(data.get("runs", 1)),
        )

    def text(self) -> str:
        """Return the verdict for the model: headline, what is to be said of cells, and the hash of the code."""
        told = [cell for cell in self.cells if cell.said or cell.state not in {"same", "skipped"}]
        lines = [f"- {c.label} ({c.id}) {_WORDS[c.state]}{': ' if c.said else ''}{' '.join(c.said)}" for c in told[:60]]
        more = [f"… and {len(told) - 60} more cells"] if len(told) > 60 else []
        took = f"{self.runs} clean run{'s' * (self.runs > 1)}, {self.seconds:.0f} s. Hash of the code: {self.sources}."
        return "\n".join([self.headline, *lines, *more, *self.notes, took])


def _cell_of(data: Json) -> Judged:
    state = _STATES.get(str(data["state"]), "unknown")
    said = tuple(map(str, data.get("said", ())))
    return Judged(str(data["id"]), str(data["label"]), str(data["line"]), state, said, float(data.get("seconds", 0.0)))


_WORDS: dict[State, str] = {
    "same": "shows the same",
    "differs": "shows something else",
    "random": "is random",
    "fails": "fails",
    "new": "runs; there was nothing to compare",
    "unknown": "runs; it can't be compared",
    "skipped": "was left out",
    "not run": "did not run",
}


_STATES: dict[str, State] = {state: state for state in _WORDS}


def word_of(state: str) -> str:
    """Return in words how a cell came out."""
    return next((word for known, word in _WORDS.items() if known == state), state)


def hash_of(cells: Sequence[Cell]) -> str:
    """Return what tells a notebook's code from any other: all code cells in order, but the agent's own (12 hex digits)."""
    made = hashlib.sha256()
    for cell in cells:
        if is_verifiable(cell):
            made.update(cell.source.encode("utf-8", "replace") + b"\0\0")
    return made.hexdigest()[:12]


def is_verifiable(cell: Cell) -> bool:
    """Whether a cell runs in a clean kernel: code, and none of nbagent's own commands."""
    return cell.type == "code" and bool(cell.source.strip()) and not starts_agent(cell.source) and not is_loading(cell)


def is_loading(cell: Cell) -> bool:
    """Whether a cell only loads or configures nbagent, or asks it something without an agent (`%%ask`)."""
    lines = [line.strip() for line in cell.source.splitlines() if line.strip() and not line.strip().startswith("#")]
    return bool(lines) and (
        lines[0].startswith("%%ask") or all(line.startswith(("%load_ext nbagent", "%config NbAgent", "%agent")) for line in lines)
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known beside the outputs.

    `ran`: what this kernel ran as In[n]; `missing`: files that the code reads and that are not there; `seeded`: cells that
    are the same in two runs with a seed set at the top (None: not tried).
    """

    ran: Mapping[int, str] = field(default_factory=dict[int, str])
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    seeded: frozenset[str] | None = None


def judge(
    cells: Sequence[Cell], first: CleanRun, second: CleanRun | None = None, evidence: Evidence | None = None
) -> Verdict:
    """Return the verdict over cells (with their outputs, as shown) and what one or two clean runs of them gave.

    A cell whose two clean runs differ is random; one that differs only from what is shown has hidden state behind it, or data
    that changed. `seconds` and `notes` of the run itself are the caller's to add.
    """
    evidence = evidence or Evidence()
    flow = dataflow(cells)
    shown = _Shown(cells, first, evidence)
    judged = [_judged(cell, first.get(cell.id), second, flow, shown, evidence) for cell in cells if cell.type == "code"]
    judged = [cell for cell in judged if cell.line != "(empty)"]
    kind, headline = _headline(judged)
    return Verdict(kind, headline, tuple(judged), _notes(judged, shown, evidence), _edges(flow), hash_of(cells),
                   runs=1 if second is None else 2)  # fmt: skip


class _Shown:
    """What the notebook itself says of how it was run."""

    def __init__(self, cells: Sequence[Cell], first: CleanRun, evidence: Evidence) -> None:
        numbered = [cell for cell in cells if cell.number is not None and is_verifiable(cell)]
        self.disorder = tuple(
            (above, below) for above, below in pairwise(numbered) if (above.number or 0) > (below.number or 0)
        )
        known = [cell for cell in numbered if cell.number in evidence.ran]
        same = [cell for cell in known if _plain(evidence.ran[cell.number or 0]) == _plain(cell.source)]
        ours = bool(same) and 2 * len(same) >= len(known)  # else the numbers are those of an earlier kernel
        self.edited = {cell.id for cell in known if cell not in same} if ours else set[str]()
        self.edited |= {cell.id for cell in cells if is_stale(cell)}
        self.numbers = {cell.id: cell.number for cell in cells}
        self.failed = {
            cell for cell, came in first.items() if any(o.get("output_type") == "error" for o in came.outputs or ())
        }


def _only_comments(source: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in source.splitlines())


def _plain(source: str) -> str:
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def shown_as(cell: Cell) -> str:
    """Return how people know a cell on the page: In[n], or its place from the top where it has not run."""
    return f"In[{cell.number}]" if cell.number is not None else f"cell {cell.index + 1}"


def _judged(
    cell: Cell, came: Came | None, second: CleanRun | None, flow: Dataflow, shown: _Shown, evidence: Evidence
) -> Judged:
    made = Judged(cell.id, shown_as(cell), first_line(cell.source), "same", seconds=came.seconds if came else 0.0)
    if not is_verifiable(cell):
        return replace(made, state="skipped")
    if came is None or came.outputs is None:
        return replace(made, state="not run")
    failed = next((output for output in came.outputs if output.get("output_type") == "error"), None)
    was = any(output.get("output_type") == "error" for output in cell.outputs) and cell.id not in shown.edited
    if failed is not None:
        why = [*_why(cell, failed, flow, shown), *(["It fails in what is shown, too."] if was else [])]
        return replace(made, state="fails", said=tuple(why))
    said = [
        f"{_listed(files)} {'is' if len(files) == 1 else 'are'} not there."
        for files in [evidence.missing.get(cell.id)]
        if files
    ]
    said += _suspicious(cell, flow)
    never = cell.number is None and not cell.outputs and not _only_comments(cell.source)
    found = compared(cell.outputs, came.outputs)
    if found.sameness == "same":
        edited = ("It was edited after it ran, and shows the same.",) if cell.id in shown.edited else ()
        return replace(made, said=(*edited, *(["It has never run."] if never else []), *said))
    if cell.id in shown.edited:
        return replace(
            made, state="new", said=("It was edited after it ran, so its output is not of this code.", *said)
        )
    if never:
        return replace(made, state="new", said=("It has never run.", *said))
    if found.sameness == "unknown":
        return replace(made, state="unknown", said=(f"{found.what[:1].upper()}{found.what[1:]}.", *said))
    again = second.get(cell.id) if second is not None else None
    if again is not None and again.outputs is not None and compared(came.outputs, again.outputs).sameness == "differs":
        return replace(made, state="random", said=(_random(cell, evidence), *said))
    return replace(made, state="differs", said=(f"{found.what[:1].upper()}{found.what[1:]}.", *said))


def _random(cell: Cell, evidence: Evidence) -> str:
    if evidence.seeded is not None and cell.id not in evidence.seeded:
        return "Two clean runs differ, and a seed at the top does not change that: the clock, the order of a set, threads, or the network."
    proof = " (tried: so it does)" if evidence.seeded is not None else ""
    return f"Two clean runs differ: set a seed above it, so that it shows the same each time{proof}: {seed_for(cell.source)}."


def seed_for(source: str) -> str:
    """Return the line that would make a cell's random numbers the same each time, guessed from its words."""
    if "torch" in source:
        return "`torch.manual_seed(0)`"
    if "default_rng" in source:
        return "`np.random.default_rng(0)`"
    if "train_test_split" in source or "sklearn" in source or "random_state" in source or ".sample(" in source:
        return "`random_state=0` in the call"
    return "`np.random.seed(0)`" if "np." in source or "numpy" in source else "`random.seed(0)`"


def _why(cell: Cell, error: Output, flow: Dataflow, shown: _Shown) -> list[str]:
    """Return why a cell fails in a clean kernel: in its own words, and what these mean."""
    value = "".join(error["evalue"]) if isinstance(error.get("evalue"), list) else str(error.get("evalue") or "")
    said = [f"{error.get('ename')}: {first_line(value, 160)}."]
    if found := _NAME.search(value):
        missing = next((m for m in flow.undefined(cell.id) if m.name == found[1]), None)
        below = missing.below if missing is not None else next(iter(flow.definers(found[1])), "")
        if missing is not None and missing.deleted_by:
            said.append(f"A cell above it deletes `{found[1]}`.")
        elif made := next(
            (maker for maker in flow.definers(found[1]) if maker in shown.failed and maker != cell.id), ""
        ):
            said.append(f"{_label(made, shown)}, which makes `{found[1]}`, failed.")
        elif below and below != cell.id:
            said.append(f"`{found[1]}` is made only in {_label(below, shown)} below it: move that up.")
        else:
            said.append(f"No cell makes `{found[1]}`: it was left in the old kernel by code that is gone.")
    elif found := _MODULE.search(value):
        said.append(f"The package {found[1]} is not installed in a clean kernel of this environment.")
    elif found := _FILE.search(value):
        said.append(
            f"The file {next((part for part in found.groups() if part), '')} is not there.".replace(
                "file  is", "file is"
            )
        )
    return said


def _suspicious(cell: Cell, flow: Dataflow) -> list[str]:
    """What may yet go wrong in a cell that ran: names that only functions use and nobody makes."""
    late = [m for m in flow.undefined(cell.id) if m.name in flow[cell.id].later and not m.below]
    return [f"It uses {_listed([f'`{m.name}`' for m in late])}, which no cell makes."] if late else []


def _label(cell_id: str, shown: _Shown) -> str:
    number = shown.numbers.get(cell_id)
    return f"In[{number}]" if number is not None else "a cell"


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _headline(judged: Sequence[Judged]) -> tuple[str, str]:
    by = {state: [cell for cell in judged if cell.state == state] for state in _WORDS}
    ran = [cell for cell in judged if cell.state not in {"skipped", "not run"}]
    same = f"{len(by['same'])} of {len(ran)} cells show the same"
    if by["fails"]:
        first = by["fails"][0]
        more = f", and {len(by['fails']) - 1} more" if len(by["fails"]) > 1 else ""
        return (
            BROKEN,
            f"Not reproducible: {first.label} fails ({first.said[0].rstrip('.') if first.said else 'error'}){more}.",
        )
    if by["not run"] or not ran:
        return (
            STOPPED,
            f"Not verified: {len(by['not run'])} cells did not run."
            if ran
            else "Not verified: there is no code to run.",
        )
    if len(by["same"]) == len(ran):
        every = "the 1 cell shows" if len(ran) == 1 else f"all {len(ran)} cells show"
        return VERIFIED, f"Verified from a clean kernel: {every} the same."
    if by["differs"]:
        return (
            BROKEN,
            f"Not reproducible: it runs from a clean kernel, but {_listed([c.label for c in by['differs']])} show{'s' * (len(by['differs']) == 1)} something else ({same}).",
        )
    if by["random"]:
        return (
            RUNS,
            f"Runs from a clean kernel: {same}; {_listed([c.label for c in by['random']])} {'is' if len(by['random']) == 1 else 'are'} random.",
        )
    return RUNS, f"Runs from a clean kernel: {same}; of the others nothing was shown that could be compared."


def _notes(judged: Sequence[Judged], shown: _Shown, evidence: Evidence) -> tuple[str, ...]:
    notes: list[str] = []
    if shown.disorder:
        pairs = [f"In[{above.number}] stands above In[{below.number}]" for above, below in shown.disorder]
        notes.append(f"What is shown was run out of order: {_listed(pairs, 3)}.")
    if any(cell.state == "random" for cell in judged) and evidence.seeded is None:
        notes.append("%agent verify --seed tries whether a seed at the top would make it the same.")
    if left := [cell.label for cell in judged if cell.state == "skipped" and cell.line.startswith("%%agent")]:
        notes.append(f"Agent cells were left out ({_listed(left, 3)}); the cells that they added ran.")
    return tuple(notes)


def _edges(flow: Dataflow) -> tuple[tuple[str, str, str], ...]:
    """Return the edges for the picture: names and files; imports are in every cell and would hide the rest."""
    found: dict[tuple[str, str], list[str]] = {}
    for edge in flow.edges:
        if edge.kind != "import":
            found.setdefault((edge.source, edge.target), []).extend(edge.names)
    return tuple((start, end, ", ".join(names[:6])) for (start, end), names in found.items())


def stopped(cells: Sequence[Cell], why: str) -> Verdict:
    """Return the verdict where no clean run came to its end: `why` in a sentence."""
    return Verdict(STOPPED, f"Not verified: {why}", (), edges=_edges(dataflow(cells)), sources=hash_of(cells))


def verdict_of(data: Any) -> Verdict | None:
    """Return the verdict in what came from elsewhere, None where it is none."""
    try:
        return Verdict.from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
