"""The labelled snippets of snippets.txt: read, looked at, and counted (see tests/tools/measure_effects.py)."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from nbagent.tools.effects import effects, hints

_HEAD = re.compile(r"^== (\d+) (tune|held|later|last) (risky|calm): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """One snippet: what running it would do, and whether a rule that allows it must be asked about again."""

    number: int
    kept: str
    risky: bool
    title: str
    code: str
    labels: frozenset[str]


def snippets() -> list[Snippet]:
    """All snippets of the file."""
    text = (Path(__file__).parent / "snippets.txt").read_text("utf-8")
    _, *parts = _HEAD.split(text)
    found = []
    for number, kept, risk, title, body in zip(*(parts[i::5] for i in range(5)), strict=True):
        lines = body.strip("\n").splitlines()
        labels = {line[3:] for line in lines if line.startswith("-> ")}
        code = "\n".join(line for line in lines if not line.startswith("-> ")).rstrip() + "\n"
        found.append(Snippet(int(number), kept, risk == "risky", title, code, frozenset(labels - {"nothing"})))
    return found


def names() -> dict[str, object]:
    """The variables that exist when a snippet is looked at."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    import numpy as np
    import pandas as pd
    import polars as pl

    mpl.use("agg")
    table = {"region": ["n", "s"], "price": [1.0, 2.0], "n": [1, 2]}
    fig, ax = plt.subplots()
    plt.close(fig)

    def clean(frame):
        return frame.dropna()

    frames = {"df": pd.DataFrame(table), "sales": pd.DataFrame(table), "lf": pl.DataFrame(table), "arr": np.arange(5.0)}
    plain = {"items": [], "d": {}, "seen": set(), "x": 3, "total": 0.0, "name": "report", "path": Path("data/raw.csv")}
    others = {"con": sqlite3.connect(":memory:"), "rng": np.random.default_rng(0), "fig": fig, "ax": ax, "rows": [{}]}
    known = {"gen": (n for n in range(3)), "pd": pd, "np": np, "plt": plt, "clean": clean}
    return frames | plain | others | known


@dataclass(frozen=True)
class Score:
    """Micro-averaged counts: what was found and is there, found and isn't, is there and wasn't found."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


def _score(pairs) -> Score:
    pairs = list(pairs)
    return Score(
        sum(len(found & true) for found, true in pairs),
        sum(len(found - true) for found, true in pairs),
        sum(len(true - found) for found, true in pairs),
    )


def score_of_labels(given: list[Snippet], namespace: dict[str, object]) -> Score:
    """Count the words of `hints` against the labels."""
    return _score((frozenset(hints(s.code, namespace)), s.labels) for s in given)


def score_of_risk(given: list[Snippet], namespace: dict[str, object]) -> Score:
    """Count `effects` (any at all) against risky or calm."""
    pairs = ((effects(s.code, namespace), s.risky) for s in given)
    return _score(
        (frozenset({"risky"} if found else ()), frozenset({"risky"} if true else ())) for found, true in pairs
    )
