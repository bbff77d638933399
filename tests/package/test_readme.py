"""What the README says is so: its code runs, its table is the policy, its commands and options exist."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from nbagent.core.policy import TABLE
from nbagent.core.tools import Kind
from tests.source import ROOT

README = (ROOT / "README.md").read_text("utf-8")

ROWS = {
    "look at variables, cells, files, also by SQL that only reads": Kind.READ,
    "run scratch code that leaves nothing behind": Kind.SCRATCH,
    "add, edit, move a cell without running it": Kind.EDIT_CELL,
    "run or delete a cell": Kind.RUN_CELL,
    "run all cells, after a look at the list, or a copy of them in a clean kernel": Kind.RUN_ALL,
    "run a cell that took 30 s or more the last time": Kind.LONG_RUN,
    "run a cell that you marked with `%agent keep`": Kind.KEPT,
    "put a secret that the model does not see into a cell or file where it was not before": Kind.PUTS_BACK,
    "write or edit a file in the notebook's folder": Kind.WRITE_FILE,
    "run code that shells out, deletes, installs or goes to the network": Kind.RISKY_CODE,
    "shell, network": Kind.SHELL,
    "protected paths, paths outside the folder, ending the kernel": Kind.PROTECTED,
}


def _table(header: str) -> list[list[str]]:
    lines = README[README.index(header) :].splitlines()
    rows = [line for line in lines[2:] if line.startswith("|")][: len(ROWS)]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_its_table_is_the_policy() -> None:
    columns = [["default"], ["accept-edits"], ["plan", "read-only"], ["dont-ask"], ["bypass"]]
    rows = _table("| what a call does |")
    assert {row[0] for row in rows} == set(ROWS)
    for what, *said in rows:
        for modes, action in zip(columns, said, strict=True):
            for mode in modes:
                assert TABLE[ROWS[what]][mode] == action.rstrip("¹"), (what, mode)
    assert {TABLE[Kind.SHELL_READ][mode] for mode in ("plan", "read-only")} == {"ask"}


@pytest.mark.slow
def test_its_tool_can_be_registered_and_called() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    check = (
        "\nresult = await fahrenheit.run(None, fahrenheit.validate({'celsius': 20}))\n"
        "print(fahrenheit.schema['properties']['celsius']['description'], '|', result.content[0]['text'])"
    )
    command = [sys.executable, "-m", "IPython", "--ext=nbagent", "--colors=nocolor", "-c", code + check]
    out = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert out.stdout.strip() == "the temperature in degrees Celsius. | 68.0 °F", out.stdout + out.stderr


def test_the_options_that_it_names_exist() -> None:
    from nbagent.app.options import names

    section = README[README.index("`%%agent?` lists") :].split("\n\n")[0]
    named = set(re.findall(r"`(-{1,2}[a-z-]+)", section)) | {"--mode", "--timeout", "--cell-timeout"}
    assert named <= set(names())


def test_the_files_that_it_names_exist() -> None:
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    assert [name for name in linked if not (ROOT / name).exists()] == []
