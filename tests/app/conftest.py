"""What tests of commands and cells share: a plain shell, and a home and a working folder of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    yield made
    made.restore_sys_module_state()


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without settings; the working folder is `work` below it."""
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    monkeypatch.chdir(home / "work")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    return home
