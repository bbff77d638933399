"""Hints after errors that small models answer in circles."""

from __future__ import annotations

import sys

import pytest

from nbagent.tools.hints import hint
from nbagent.tools.results import output_blocks


def test_a_missing_package_names_those_that_are_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "altair", None)  # as where it is not installed
    said = hint("ModuleNotFoundError", "No module named 'seabornish'")
    assert "seabornish is not installed here" in said
    assert "matplotlib" in said
    assert "altair" not in said


def test_an_unknown_name_says_to_import_or_assign_first():
    assert "nothing is named sns" in hint("NameError", "name 'sns' is not defined")


@pytest.mark.parametrize(
    "error", [("KeyError", "'bill'"), ("NameError", "odd"), ("TypeError", "name 'x' is not defined")]
)
def test_other_errors_get_no_hint(error):
    assert hint(*error) == ""


def test_the_hint_is_the_last_line_of_what_the_model_gets():
    error = {"output_type": "error", "ename": "NameError", "evalue": "name 'sns' is not defined", "traceback": ["..."]}
    assert output_blocks([error])[0]["text"].splitlines()[-1].startswith("Hint: nothing is named sns")
