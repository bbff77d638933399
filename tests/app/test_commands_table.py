"""`%agent NAME`: every name in the table leads to a function, though most are imported only when they are called."""

from __future__ import annotations

import importlib

import pytest

from nbagent.app.reports import COMMANDS


@pytest.mark.parametrize("place", [place for place in COMMANDS.values() if isinstance(place, str)])
def test_a_command_that_lives_elsewhere_is_there(place):
    module, _, name = place.partition(":")
    assert callable(getattr(importlib.import_module(module), name))
