"""What is shipped holds together: the wheel has all its files, what is exported is there."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from typing import TYPE_CHECKING

import pytest

import nbagent
from tests.source import PACKAGE, ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("nbagent/")}
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.parts)
    }
    assert shipped == ours
    assert {"nbagent/py.typed", "nbagent/prompt/10_identity.md", "nbagent/jupyter/static/bridge.js"} <= shipped


def test_what_is_exported_is_there() -> None:
    assert [name for name in nbagent.__all__ if not hasattr(nbagent, name)] == []


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert nbagent.__version__ == project["version"]
    assert f"## [{nbagent.__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_example_data_is_the_published_one() -> None:
    lines = (ROOT / "notebooks" / "data" / "penguins.csv").read_text("utf-8").splitlines()
    assert lines[0] == "species,island,bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g,sex,year"
    assert len(lines) == 1 + 344
    assert {line.split(",")[0] for line in lines[1:]} == {"Adelie", "Chinstrap", "Gentoo"}
    assert sum("NA" in line.split(",") for line in lines) == 11


def test_what_make_makes_is_left_out_of_the_repository_even_as_a_link() -> None:
    """With a slash at its end a line of .gitignore is about folders only; a linked `build` was committed that way."""
    left_out = (ROOT / ".gitignore").read_text("utf-8").split()
    assert {".venv", "build", "node_modules"} <= set(left_out)
