"""A teammate's conversation is copied out of its copy of the repository, and nothing else is."""

from __future__ import annotations

from pathlib import Path

from nbagent.app.team import _session


def test_only_a_session_below_the_folder_is_copied_and_no_link_is_followed(tmp_path: Path) -> None:
    secret = tmp_path / "key.jsonl"
    secret.write_text("secret")
    own = tmp_path / "work" / ".nbagent" / "worktrees" / "t" / "ada" / ".nbagent" / "sessions" / "s.jsonl"
    own.parent.mkdir(parents=True)
    own.write_text("said")
    (own.parent / "link.jsonl").symlink_to(secret)
    folder = tmp_path / "work"
    kept = _session(folder, "t", "ada", str(own))
    assert Path(kept).read_text() == "said"
    assert _session(folder / "below", "t", "ada", str(own)), "a notebook further down: the copies lie at the top"
    assert _session(folder, "t", "ada", str(secret)) == ""
    assert _session(folder, "t", "ada", str(own.parent / "link.jsonl")) == ""
    assert _session(folder, "t", "ada", "") == ""
    assert _session(folder, "t", "ben", str(own)) == "", "another one's"
    mine = folder / ".nbagent" / "sessions" / "s.jsonl"
    other = folder / ".nbagent" / "teams" / "x.jsonl"
    for place in (mine, other):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("mine")
    assert _session(folder, "t", "ada", str(mine)), "without copies it works in the folder itself"
    assert _session(folder, "t", "ada", str(other)) == ""
    kept = _session(folder, "t", "ada", str(own))
    Path(kept).unlink()
    Path(kept).symlink_to(secret)
    assert _session(folder, "t", "ada", str(own)) == kept
    assert (secret.read_text(), Path(kept).read_text()) == ("secret", "said")
