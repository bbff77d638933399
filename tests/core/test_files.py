"""The folder in which all of ours lies: kept out of git, and never reached through somebody's link."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nbagent.core.files import content_hash, private_folder

if TYPE_CHECKING:
    from pathlib import Path


def test_what_a_person_wrote_into_the_gitignore_stays(tmp_path: Path) -> None:
    private_folder(tmp_path / ".nbagent" / "sessions")
    ignore = tmp_path / ".nbagent" / ".gitignore"
    assert ignore.read_text() == "*\n"
    ignore.write_text("!keep-this\n")
    private_folder(tmp_path / ".nbagent" / "runs" / "deep")
    assert ignore.read_text() == "!keep-this\n"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """The project may be somebody else's."""
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".nbagent").mkdir(parents=True)
    home.mkdir()
    (project / ".nbagent" / ".gitignore").symlink_to(home / "made")
    (project / ".nbagent" / "runs").symlink_to(home)
    private_folder(project / ".nbagent" / "sessions")
    with pytest.raises(OSError, match="it is a link"):
        private_folder(project / ".nbagent" / "runs")
    assert list(home.iterdir()) == []


def test_no_file_has_another_hash_than_an_empty_one() -> None:
    assert content_hash(None) == ""
    assert content_hash(b"") != ""
    assert content_hash(b"a") != content_hash(b"b")
