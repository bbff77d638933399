"""README's table of capabilities, the notebooks that show its rows, and a notebook that is run without a key."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat

from tests.source import ROOT

CAPABILITIES = ROOT / "notebooks" / "capabilities.ipynb"
ANALYSIS = ROOT / "notebooks" / "12_data_analysis.ipynb"
NOTEBOOKS = (CAPABILITIES, ANALYSIS)
README = (ROOT / "README.md").read_text("utf-8")


def rows() -> dict[int, tuple[str, str, str]]:
    """README's table: number → what it is called, how to see it, where more is told."""
    table = README.partition("## What it can do")[2].partition("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if line[:3] == "| *"
    ]
    found: dict[int, tuple[str, str, str]] = {}
    for what, see, more in cells:
        named = re.match(r"\*\*(\d+)\. (.+?)\*\*", what)
        assert named, what
        found[int(named[1])] = (named[2], see, more.strip(" |"))
    return found


def sections() -> dict[int, tuple[str, str, list[str]]]:
    """The notebooks' sections: number → title, text, sources of its code cells."""
    found: dict[int, tuple[str, str, list[str]]] = {}
    for path in NOTEBOOKS:
        number = 0
        for cell in nbformat.read(path, as_version=4).cells:
            if title := re.match(r"## (\d+)\. (.+)", cell.source):
                number = int(title[1])
                found[number] = (title[2], cell.source, [])
            elif number and cell.cell_type == "code":
                found[number][2].append(cell.source)
    return found


def run(notebook: Path, folder: Path, *flags: str) -> nbformat.NotebookNode:
    """Run a copy of a notebook and of its data in `folder`, in a real kernel; return what it is then."""
    shutil.copytree(ROOT / "notebooks" / "data", folder / "data")
    shutil.copy(notebook, folder)
    command = [sys.executable, "-m", "nbagent", "run", notebook.name, "-o", "out.ipynb", "--mode", "accept-edits"]
    env = {
        name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC") and name != "MPLBACKEND"
    }
    env["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [*command, *flags], cwd=folder, env=env, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    finished = nbformat.read(folder / "out.ipynb", as_version=4)
    nbformat.validate(finished)
    return finished


def shown(cell: nbformat.NotebookNode) -> str:
    """What a cell shows, as text."""
    texts: list[str] = []
    for output in cell.outputs:
        data = output.get("data", {})
        texts += [output.get("text", ""), data.get("text/markdown", ""), data.get("text/plain", "")]
    return "\n".join(texts)


def unsaid(notebook: nbformat.NotebookNode, cell_id: str, words: Sequence[str]) -> str:
    """Which of these words a cell does not show, with what it shows; "" where it shows all of them."""
    (cell,) = [cell for cell in notebook.cells if cell.id == cell_id]
    text = shown(cell)
    missing = [word for word in words if word not in text]
    return f"{missing} not in:\n{text}" if missing else ""
