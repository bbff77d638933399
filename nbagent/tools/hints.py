"""One line after an error that models tend to answer in circles: what would really help. Looks at nothing but names."""

from __future__ import annotations

import importlib.util
import re

_PACKAGES = (
    "pandas",
    "polars",
    "numpy",
    "scipy",
    "sklearn",
    "statsmodels",
    "matplotlib",
    "seaborn",
    "plotly",
    "altair",
)
_QUOTED = re.compile(r"'([^']+)'")


def hint(ename: str, evalue: str) -> str:
    """Return the hint for an error named `ename` with the text `evalue`, "" where there is none."""
    if "asyncio.run() cannot be called from a running event loop" in evalue:
        return "Hint: a notebook's loop already runs: write `await main()` at the top level of the cell instead."
    found = _QUOTED.search(evalue)
    if found is None:
        return ""
    name = found[1]
    if ename == "ModuleNotFoundError":
        there = ", ".join(package for package in _PACKAGES if _is_installed(package))
        return f"Hint: {name} is not installed here. Do it with a package that is ({there}), or ask the person."
    if ename == "NameError" and "is not defined" in evalue:
        return f"Hint: nothing is named {name} yet. Import or assign it in the same cell before it is used."
    return ""


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # a module of that name without a spec, made by hand
        return True
