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
    Path(kept).unlink()
    Path(kept).symlink_to(secret)
    assert _session(folder, "t", "ada", str(own)) == kept
    assert (secret.read_text(), Path(kept).read_text()) == ("secret", "said")
