"""Where files lie, how they are read, and patterns for paths."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.extend.globs import expanded, matches
from nbagent.extend.places import Places
from nbagent.extend.textfiles import is_inside, read_text, tree_digest
from tests.extend.project_rig import Rig


def test_a_project_reaches_up_to_its_repository(tmp_path):
    rig = Rig(tmp_path, "a/b")
    assert rig.places.upward() == (rig.folder, rig.project / "a", rig.project)
    plain = tmp_path / "plain" / "deep"
    plain.mkdir(parents=True)
    assert Places.of(plain, {}, home=rig.home, own=rig.own).upward() == (plain,)


def test_a_home_folder_that_is_a_repository_is_no_project(tmp_path):
    rig = Rig(tmp_path)
    (rig.home / ".git").mkdir()
    below = rig.home / "work"
    below.mkdir()
    places = Places.of(below, {}, home=rig.home, own=rig.own)
    assert places.root == below
    assert Places.of(rig.home, {}, home=rig.home, own=rig.own).project("skills") == (rig.home / ".nbagent/skills",)


def test_claudes_folder_can_be_elsewhere(tmp_path):
    rig = Rig(tmp_path)
    moved = Places.of(rig.folder, {"CLAUDE_CONFIG_DIR": str(tmp_path / "moved")}, home=rig.home, own=rig.own)
    assert moved.user("skills") == (rig.own / "skills", tmp_path / "moved/skills")
    assert (
        Places.of(rig.folder, {"CLAUDE_CONFIG_DIR": "relative"}, home=rig.home, own=rig.own).claude
        == rig.home / ".claude"
    )


def test_a_path_is_shown_as_people_write_it(tmp_path):
    rig = Rig(tmp_path)
    assert [rig.places.shown(path) for path in (rig.folder / "a", rig.home / "b", tmp_path / "c")] == [
        "work/a",
        "~/b",
        str(tmp_path / "c"),
    ]


@pytest.mark.parametrize(
    ("pattern", "fits", "not_fits"),
    [
        ("**/*.ts", ["a.ts", "x/y/a.ts"], ["a.tsx", "ts"]),
        ("src/**/*", ["src/a", "src/a/b"], ["a/src/b", "src"]),
        ("*.md", ["a.md"], ["x/a.md"]),
        ("src/**/*.{ts,tsx}", ["src/a.ts", "src/b/a.tsx"], ["src/a.js"]),
        ("{a,b{1,2}}/*", ["a/x", "b1/x", "b2/x"], ["b/x"]),
        ("./docs/", ["docs/a/b", "docs/a"], ["doc/a"]),
        ("a?[bc]", ["axb"], ["axd", "ab"]),
        ("", [], ["a", ""]),
    ],
)
def test_patterns_fit_as_in_claude_code(pattern, fits, not_fits):
    assert [path for path in [*fits, *not_fits] if matches(path, [pattern])] == fits


def test_a_pattern_takes_bounded_time():
    began = time.process_time()
    for pattern in ("*a" * 100 + "b", "**/" * 60 + "x", "{" * 200, "{a,b}" * 60, "a" * 5000):
        assert not matches("a" * 200 + "/" + "/".join("a" * 60), [pattern])
    assert expanded("{a,b}" * 10) == ["{a,b}" * 10]
    assert time.process_time() - began < 5


@settings(max_examples=60)
@given(st.text("ab/*?{},[]!", max_size=20), st.text("ab/", max_size=10))
def test_any_pattern_gives_an_answer(pattern, path):
    assert matches(path, [pattern]) in {True, False}
    assert matches("a/b", ["**"])


def test_what_is_no_file_or_too_large_is_one_sentence(tmp_path):
    assert read_text(tmp_path / "none") is None
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "large").write_bytes(b"x" * 100)
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("loop", "circle"), ("large", "the limit is 10"), ("pipe", "regular"), (".", "regular")):
        read = read_text(tmp_path / name, 10)
        assert said in read.problem
        assert (read.text, read.digest) == ("", "")


def test_inside_is_told_by_where_links_lead(tmp_path):
    rig = Rig(tmp_path)
    (rig.folder / "out").symlink_to(rig.home)
    (rig.folder / "in").symlink_to(rig.project)
    (rig.folder / "loop").symlink_to("loop")
    found = [is_inside(rig.folder / name, rig.project) for name in ("a", "in/x", "out", "out/x", "../..", "loop")]
    assert found == [True, True, False, False, False, False]


def test_a_tree_is_told_by_names_and_contents(tmp_path):
    rig = Rig(tmp_path)
    rig.write("work/a/b.txt", "x")
    before = tree_digest(rig.folder)
    assert tree_digest(rig.folder) == before
    rig.write("work/a/c.txt", "")
    after = tree_digest(rig.folder)
    assert after != before
    assert tree_digest(rig.folder, (".py",)) == tree_digest(rig.home)
    (rig.folder / "out").symlink_to(rig.home)
    assert tree_digest(rig.folder) is None
    (rig.folder / "out").unlink()
    (rig.folder / "in").symlink_to(rig.folder / "a")
    assert tree_digest(rig.folder) not in {None, after}
    for number in range(600):
        (rig.folder / f"f{number}").touch()
    assert tree_digest(rig.folder) is None
