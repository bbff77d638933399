"""Notes for later sessions: how much is told, how they are kept, and that they keep to their folder."""

from __future__ import annotations

import datetime as dt

import pytest

from nbagent.core.errors import ToolError
from nbagent.extend.memory import BYTES, LINES, Memory, memory_folder
from nbagent.extend.places import Places
from tests.extend.project_rig import Rig


@pytest.fixture
def memory(tmp_path):
    return Memory(tmp_path / "p" / "memories", lambda: dt.date(2026, 11, 30))


def test_no_notes_are_not_told(memory):
    assert memory.text() == ""
    with pytest.raises(ToolError, match=r"no notes in MEMORY\.md. Topics: none yet"):
        memory.read()


def test_notes_are_kept_line_by_line_and_told_at_the_start(memory):
    assert memory.add("Code 9 means\nunknown.") == "kept in MEMORY.md"
    memory.add("Prices are net.")
    assert memory.read() == "- Code 9 means unknown.\n- Prices are net.\n"
    assert "- Prices are net." in Memory(memory.folder).text()


def test_a_topic_has_a_head_with_its_day_and_is_told_by_name_only(memory):
    memory.add("orders.csv comes from the shop.", "data-sources", about="Where: data", kind="reference")
    memory.add("It is made at night.", "data-sources")
    assert memory.read("data-sources.md") == (
        '---\nname: data-sources\ndescription: "Where: data"\ntype: reference\nmodified: 2026-11-30\n---\n\n'
        "- orders.csv comes from the shop.\n- It is made at night.\n"
    )  # fmt: skip
    said = memory.text()
    assert "- data-sources (reference, 2026-11-30): Where: data" in said
    assert "orders.csv" not in said


def test_a_note_takes_the_place_of_another_or_removes_it(memory):
    memory.add("Code 9 means unknown.")
    memory.add("Code 9 means closed.", replaces="Code 9 means unknown.")
    assert memory.read() == "- Code 9 means closed.\n"
    memory.add("", replaces="- Code 9 means closed.\n")
    assert memory.text() == ""
    with pytest.raises(ToolError, match="stands 0 times"):
        memory.add("x", replaces="never written")


def test_a_topic_is_forgotten_as_a_whole(memory):
    memory.add("x", "old")
    assert memory.forget("old") == "removed old.md"
    assert memory.topics() == []
    with pytest.raises(ToolError, match="no notes"):
        memory.forget("old")


@pytest.mark.parametrize("topic", ["../x", "a/b", "/etc/passwd", "..", "a" * 80, "ä", ".hidden", "a\0"])
def test_a_topic_that_is_no_name_is_refused(memory, topic):
    for act in (lambda: memory.add("x", topic), lambda: memory.read(topic), lambda: memory.forget(topic)):
        with pytest.raises(ToolError, match="no name for a topic"):
            act()


def test_links_are_not_followed_out(memory, tmp_path):
    outside = tmp_path / "outside.md"
    outside.write_text("- secret\n")
    memory.folder.mkdir(parents=True)
    for name in ("MEMORY.md", "topic.md"):
        (memory.folder / name).symlink_to(outside)
    assert "secret" not in memory.text()
    for topic in ("", "topic"):
        with pytest.raises(ToolError):
            memory.read(topic)
        with pytest.raises(ToolError, match="is a link"):
            memory.add("x", topic)
    assert outside.read_text() == "- secret\n"


def test_only_the_beginning_of_a_long_list_is_told(memory):
    memory.folder.mkdir(parents=True)
    (memory.folder / "MEMORY.md").write_text("".join(f"- note {n}\n" for n in range(500)))
    said = memory.text()
    assert f"- note {LINES - 1}\n… (300 more lines: read them with `recall`)" in said
    (memory.folder / "MEMORY.md").write_text(f"- {'é' * 30_000}\n- last\n")
    assert len(memory.text().encode()) < BYTES + 1000
    assert "longer than what is told" in memory.add("one more")
    with pytest.raises(ToolError, match="would have more than"):
        memory.add("x" * 300_000)


def test_notes_that_a_person_edited_are_kept_as_they_are(memory):
    memory.folder.mkdir(parents=True)
    (memory.folder / "MEMORY.md").write_bytes(b"\xef\xbb\xbf# Mine\r\n\r\nText\r\n")
    memory.add("new")
    assert memory.read() == "# Mine\n\nText\n- new\n"


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="the notes can't be written"):
        Memory(tmp_path / "file" / "memories").add("x")


def test_garbage_among_the_notes_is_passed_over(memory):
    memory.add("x", "good")
    (memory.folder / "bad.md").write_bytes(b"\x00\xff")
    (memory.folder / "Not A Topic.md").write_text("x")
    assert {topic.name for topic in memory.topics()} == {"good", "bad"}
    assert "good" in memory.text()


def test_notes_are_of_a_project_for_a_person_and_its_worktrees_share_them(tmp_path):
    rig = Rig(tmp_path)
    folder = memory_folder(rig.places)
    assert folder.parent.parent.parent == rig.places.own
    assert folder.parent.name.startswith("project-")
    tree = tmp_path / "tree"
    tree.mkdir()
    gitdir = rig.project / ".git" / "worktrees" / "tree"
    gitdir.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {gitdir}\n")

    def of(place):
        return memory_folder(Places.of(place, {}, home=rig.home, own=rig.own))

    assert of(tree) != folder, "only the worktree says so: it may be somebody else's"
    (gitdir / "gitdir").write_text(f"{tree / '.git'}\n")
    assert of(tree) == folder
