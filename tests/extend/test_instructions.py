"""Instructions: their order, imports, rules for paths, what leads out, and files that are no good."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from nbagent.extend.instructions import LARGE, TOTAL_LIMIT, Instructions
from tests.extend.project_rig import Rig


@pytest.fixture
def rig(tmp_path):
    return Rig(tmp_path)


def start(rig, trust=None, **more):
    return Instructions(rig.places, trust or rig.trust(), **more).start()


def shown(loaded):
    return [part.shown for part in loaded.parts]


def test_all_files_are_told_general_before_particular_with_their_sources(rig):
    for path in (
        "~/.claude/CLAUDE.md", "~/.claude/rules/b.md", "~/config/NBAGENT.md", "~/config/rules/a.md", "CLAUDE.md",
        ".claude/CLAUDE.md", "NBAGENT.md", ".nbagent/NBAGENT.md", ".claude/rules/z/deep.md", ".claude/rules/a.md",
        ".nbagent/rules/c.md", "CLAUDE.local.md", "work/CLAUDE.md", "work/CLAUDE.local.md",
    ):  # fmt: skip
        rig.write(path, f"This is {path}")
    loaded = start(rig)
    assert shown(loaded) == [
        "~/.claude/CLAUDE.md", "~/.claude/rules/b.md", "~/config/NBAGENT.md", "~/config/rules/a.md", "CLAUDE.md",
        ".claude/CLAUDE.md", "NBAGENT.md", ".nbagent/NBAGENT.md", ".claude/rules/a.md", ".claude/rules/z/deep.md",
        ".nbagent/rules/c.md", "CLAUDE.local.md", "work/CLAUDE.md", "work/CLAUDE.local.md",
    ]  # fmt: skip
    assert [part.memory_type for part in loaded.parts] == ["User"] * 4 + ["Project"] * 7 + ["Local", "Project", "Local"]
    assert (
        "# From work/CLAUDE.md (this project's, shared by those who work on it)\n\nThis is work/CLAUDE.md"
        in loaded.text
    )
    assert "CLAUDE.local.md  23 characters, local" in loaded.report
    assert loaded.problems == ()


def test_the_administrators_files_come_first(rig, tmp_path):
    (tmp_path / "etc/.claude/rules").mkdir(parents=True)
    (tmp_path / "etc/CLAUDE.md").write_text("for all")
    (tmp_path / "etc/.claude/rules/r.md").write_text("a rule")
    rig.write("CLAUDE.md", "project")
    loaded = Instructions(replace(rig.places, managed=tmp_path / "etc"), rig.trust()).start()
    assert [(part.text, part.memory_type) for part in loaded.parts] == [
        ("for all", "Managed"),
        ("a rule", "Managed"),
        ("project", "Project"),
    ]


def test_no_files_are_no_message(rig):
    assert start(rig).text == ""
    assert "No instructions" in start(rig).report


def test_imports_follow_four_times_each_file_once_and_circles_end(rig):
    rig.write("CLAUDE.md", "top @docs/one.md\n`@docs/never.md`")
    rig.write("docs/one.md", "one @two.md @../CLAUDE.md")
    rig.write("docs/two.md", "two @sub/three.md @one.md")
    rig.write("docs/sub/three.md", "three @four.md")
    rig.write("docs/sub/four.md", "four @five.md")
    rig.write("docs/sub/five.md", "five")
    rig.write("docs/never.md", "never")
    loaded = start(rig)
    assert shown(loaded) == ["CLAUDE.md", "docs/one.md", "docs/two.md", "docs/sub/three.md", "docs/sub/four.md"]
    assert loaded.parts[2].reason == "include"
    assert loaded.parts[2].parent == rig.project / "docs/one.md"
    assert loaded.problems == (
        "docs/sub/four.md imports five.md; imports are followed 4 times only, so it is not read.",
    )


def test_an_import_that_is_not_there_is_named_if_it_was_meant_as_one(rig):
    rig.write("CLAUDE.md", "@docs/gone.md @someone @data.bin @pic.png @.env and\n@work")
    rig.write("pic.png", b"\x89PNG")
    rig.write(".env", "KEY=1")
    loaded = start(rig)
    assert shown(loaded) == ["CLAUDE.md"]
    assert loaded.problems == (
        "CLAUDE.md imports docs/gone.md, and there is no such file.",
        "CLAUDE.md imports pic.png, which is no text; it is not read.",
        "CLAUDE.md imports .env, which is no text; it is not read.",
    )


@pytest.mark.parametrize("how", ["import", "absolute", "link", "rule link"])
def test_what_leads_out_of_the_project_is_read_only_once_the_person_agreed(rig, how):
    secret = rig.write("~/private/notes.md", "private words @more.md")
    rig.write("~/private/more.md", "more private")
    if how == "link":
        (rig.project / "CLAUDE.md").symlink_to(secret)
    elif how == "rule link":
        (rig.project / ".claude/rules").mkdir(parents=True)
        (rig.project / ".claude/rules/r.md").symlink_to(secret)
    else:
        rig.write("CLAUDE.md", "@~/private/notes.md" if how == "import" else f"@{secret}")
    trust = rig.trust()
    instructions = Instructions(rig.places, trust)
    before = instructions.start()
    assert "private words" not in before.text
    assert "it is not read until you trust" in before.problems[0]
    assert str(secret) in trust.doubt(instructions.powers).text
    trust.answer(instructions.powers, yes=True)
    assert "private words" in instructions.start().text
    assert "more private" not in instructions.start().text, "what it imports is asked about by itself"


def test_the_persons_own_files_import_what_they_like(rig):
    rig.write("~/notes.md", "mine")
    rig.write("~/.claude/CLAUDE.md", "@~/notes.md")
    assert "mine" in start(rig).text


def test_rules_for_paths_are_told_with_their_imports_when_such_a_file_is_touched(rig):
    rig.write(
        ".claude/rules/sql.md",
        "---\npaths:\n  - '**/*.{sql,ddl}'\n  - work/db/**\n---\nWrite keywords large. @../../docs/more.md",
    )
    rig.write("docs/more.md", "---\npaths: never\n---\nMore on SQL")
    instructions = Instructions(rig.places, rig.trust())
    assert instructions.start().parts == ()
    assert instructions.touched(rig.project / "a/b.py").parts == ()
    found = instructions.touched(rig.folder / "q.sql")
    assert found.parts[0].reason == "path_glob_match"
    assert found.parts[0].globs == ("**/*.{sql,ddl}", "work/db/**")
    assert found.parts[0].trigger == rig.folder / "q.sql"
    assert "More instructions, for the files" in found.text
    assert [part.text for part in found.parts][1:] == ["More on SQL"]
    assert instructions.touched(rig.folder / "other.sql").text == ""
    instructions.start("compact")
    assert "keywords" in instructions.touched(rig.folder / "db/x.py").text, "after a compaction it is told again"


def test_files_of_a_folder_below_are_told_when_something_in_it_is_touched(rig):
    rig.write("work/CLAUDE.md", "here")
    rig.write("work/sub/CLAUDE.md", "below @x.md")
    rig.write("work/sub/x.md", "imported")
    rig.write("work/sub/deep/NBAGENT.md", "deeper")
    rig.write("other/CLAUDE.md", "beside")
    instructions = Instructions(rig.places, rig.trust())
    assert shown(instructions.start()) == ["work/CLAUDE.md"]
    found = instructions.touched(rig.folder / "sub/deep/data.csv")
    assert shown(found) == ["work/sub/CLAUDE.md", "work/sub/x.md", "work/sub/deep/NBAGENT.md"]
    assert found.parts[0].reason == "nested_traversal"
    assert instructions.touched(rig.folder / "sub/y.py").parts == ()
    assert instructions.touched(rig.project / "other/y.py").parts == ()
    assert instructions.touched(rig.home / "y.py").parts == ()


def test_excluded_files_are_not_told(rig):
    rig.write("CLAUDE.md", "top")
    rig.write("work/CLAUDE.md", "here")
    assert shown(start(rig, excludes=["**/work/CLAUDE.md"])) == ["CLAUDE.md"]


def test_notes_for_people_are_left_out(rig):
    rig.write("CLAUDE.md", "a\n<!-- for maintainers @x.md -->\nb")
    rig.write("x.md", "x")
    assert start(rig).parts[0].text == "a\nb"


def test_windows_files_are_read_as_others(rig):
    rig.write("CLAUDE.md", b"\xef\xbb\xbfone\r\ntwo\r\n")
    rig.write("work/CLAUDE.md", "drei \N{EURO SIGN}".encode("utf-16"))
    assert [part.text for part in start(rig).parts] == ["one\ntwo", "drei \N{EURO SIGN}"]


def test_garbage_is_one_sentence_each_and_the_rest_is_told(rig):
    rig.write("CLAUDE.md", b"caf\xe9")
    rig.write(".claude/CLAUDE.md", b"\x00\x00")
    rig.write("NBAGENT.md", b"x" * (5 * 1024 * 1024))
    os.mkfifo(rig.project / "CLAUDE.local.md")
    rig.write(".claude/rules/cut.md", "---\npaths: 'a\n---\ntext")
    (rig.folder / "CLAUDE.md").symlink_to("CLAUDE.md")
    (rig.folder / "NBAGENT.md").symlink_to("nowhere.md")
    (rig.project / ".claude/rules/loop").symlink_to(rig.project / ".claude/rules")
    loaded = start(rig)
    assert shown(loaded) == ["CLAUDE.md", ".claude/rules/cut.md"]
    said = "\n".join(loaded.problems)
    for words in ("not UTF-8", "not a text file", "the limit is", "not a regular file", "not YAML", "leads nowhere"):
        assert said.count(words) == 1, words
    assert len(loaded.problems) == 7


def test_files_above_the_project_that_belong_to_somebody_else_are_not_read(rig, tmp_path):
    (tmp_path / "CLAUDE.md").write_text("above")
    assert "above" in start(rig).text
    if os.getuid() == 0:
        os.chown(tmp_path / "CLAUDE.md", 12345, 12345)
        loaded = start(rig)
        assert "above" not in loaded.text
        assert "belongs to somebody else" in loaded.problems[0]


def test_too_much_is_cut_and_named(rig):
    rig.write("CLAUDE.md", "x" * (LARGE + 1))
    rig.write("work/CLAUDE.md", "y" * TOTAL_LIMIT)
    rig.write("work/CLAUDE.local.md", "never told")
    loaded = start(rig)
    assert len(loaded.text) < TOTAL_LIMIT + 1000
    assert "never told" not in loaded.text
    assert [one for one in loaded.problems if "is cut" in one]
    assert "is not followed well" in loaded.problems[0]


def test_a_home_folder_that_is_a_project_tells_its_files_once(tmp_path):
    rig = Rig(tmp_path)
    rig.write("~/.claude/CLAUDE.md", "mine")
    rig.write("~/.claude/rules/r.md", "---\npaths: '*.py'\n---\nrule")
    (rig.home / ".git").mkdir()
    rig.folder = rig.home
    instructions = Instructions(rig.places, rig.trust())
    assert [part.text for part in instructions.start().parts] == ["mine"]
    assert len(instructions.touched(rig.home / "a.py").parts) == 1


@pytest.mark.parametrize("key", [".env", "work/.env.local", ".netrc", "id_rsa", ".git/config", "secrets.toml"])
def test_files_of_keys_are_told_neither_as_imports_nor_behind_a_link(rig, key):
    """Row 110: a folder that somebody else made must not send the keys that lie in it."""
    target = rig.write(key, "KEY=abc")
    rig.write("CLAUDE.md", f"top @{key} @notes.md")
    (rig.project / "notes.md").symlink_to(target)
    (rig.project / ".claude/rules").mkdir(parents=True)
    (rig.project / ".claude/rules/r.md").symlink_to(target)
    loaded = start(rig)
    assert shown(loaded) == ["CLAUDE.md"]
    assert "KEY=abc" not in loaded.text
    assert any("hold keys" in problem for problem in loaded.problems)


def test_skills_behind_a_link_to_keys_are_not_there(rig):
    """Row 110: a folder that somebody else made must not send the keys that lie in it."""
    target = rig.write(".env", "KEY=abc")
    (rig.project / ".claude/commands").mkdir(parents=True)
    (rig.project / ".claude/commands/go.md").symlink_to(target)
    shelf = rig.shelf()
    assert shelf.skills == ()
    assert "hold keys" in shelf.problems[0]
