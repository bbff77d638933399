"""The heads of files as people write them: what Claude Code forgives is forgiven, and nothing in a file raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.extend.frontmatter import Fields, parse, pieces

ALPHABET = st.sampled_from(
    [*"ab1 \n\t:-[]{}#&*!|>'%@`,.?~=\\", '"', "é", "\u202e", "\U0001f600", "\ud800", "\x00", "\ufeff"]
)
"""What heads are made of, and what breaks them."""


def fields(head: str, *known: str) -> Fields:
    front = parse(f"---\n{head}\n---\nbody")
    assert front.problem == ""
    return Fields(front.fields, known)


def test_a_head_and_a_body_are_told_apart():
    front = parse("---\nname: a\n---\n# Title\n\n---\nrest")
    assert (front.fields, front.body, front.problem) == ({"name": "a"}, "# Title\n\n---\nrest", "")


@pytest.mark.parametrize("text", ["", "plain", "# Title\n---\n", "--- \n", "text\n---\nname: a\n---\n"])
def test_a_text_without_a_head_is_all_body(text):
    front = parse(text)
    assert (front.fields, front.body, front.problem) == ({}, text, "")


def test_a_byte_order_mark_before_the_head_does_not_hide_it():
    assert parse("\ufeff---\nname: a\n---\nx").fields == {"name": "a"}


def test_a_head_that_is_never_closed_is_text_and_says_so():
    front = parse("---\nname: a\ntext")
    assert front.body == "---\nname: a\ntext"
    assert "no second ---" in front.problem


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("description: Use this: when it fits", "Use this: when it fits"),
        ("description: **/*.py files", "**/*.py files"),
        ("description: @team does it", "@team does it"),
        ("description: [a] or {b", "[a] or {b"),
        ("description: `code` here", "`code` here"),
        ("description: 50% of it", "50% of it"),
        ("description: 2026-01-02", "2026-01-02"),
        ("description: 12:30", "12:30"),
        ("description: on", "on"),
        ("description: 'it''s'", "it's"),
        ("description: >\n  two\n  lines", "two lines"),
        ("description: null", ""),
        ("description: [file] [mode]", "[file] [mode]"),
        ("description: [file]", "[file]"),
    ],
)
def test_a_value_is_the_text_that_was_meant(line, value):
    assert fields(line).text("description") == value


def test_lists_come_in_three_ways():
    for head in (
        "tools: Read, Bash(git add *) Edit",
        "tools: [Read, Bash(git add *), Edit]",
        "tools:\n- Read\n- Bash(git add *)\n- Edit",
    ):
        assert fields(head).names("tools") == ("Read", "Bash(git add *)", "Edit")
    assert fields("name: a").names("tools") is None
    assert fields("paths: src/**/*.{ts,tsx}, docs/a b.md").patterns("paths") == ("src/**/*.{ts,tsx}", "docs/a b.md")


@pytest.mark.parametrize(
    ("word", "value"),
    [("true", True), ("Yes", True), ("on", True), ("1", True), ("false", False), ("OFF", False), ("0", False)],
)
def test_yes_and_no_are_understood_in_any_form(word, value):
    assert fields(f"flag: {word}").flag("flag", default=not value) is value


def test_what_does_not_fit_is_left_out_and_named():
    read = fields("flag: perhaps\nturns: -3\nhooks: no\ncontext: spoon\ntools: {a: 1}\ndescription: {a: 1}")
    assert read.flag("flag", default=True)
    assert read.number("turns") is None
    assert read.table("hooks") == {}
    assert read.choice("context", ("fork",)) == ""
    assert read.names("tools") == ()
    assert read.text("description") == ""
    assert [one.partition(" ")[0] for one in read.problems] == [
        "flag",
        "turns",
        "hooks",
        "context",
        "tools",
        "description",
    ]


def test_a_field_with_a_slip_in_its_name_is_pointed_out():
    assert fields("allowed_tools: Read", "allowed-tools").problems == [
        "it has no field 'allowed_tools'; 'allowed-tools' is meant?"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "head",
    [
        "a: &x [1]\nb: *x",
        "a: !!python/object/apply:os.system ['x']",
        "a: b: [\n  c",
        "[" * 1100,
        "? [a, b]\n: 1",
        "\t- a\n b",
    ],
)
def test_what_is_no_plain_yaml_is_one_sentence(head):
    front = parse(f"---\n{head}\n---\nbody")
    assert front.fields == {} or "a" in front.fields
    assert front.body == "body"
    assert "\n" not in front.problem


def test_aliases_never_multiply_a_text():
    front = parse(
        "---\n" + "a: &a [x,x,x,x,x,x,x,x]\n" + "".join(f"b{n}: &b{n} [*a,*a,*a]\n" for n in range(9)) + "---\nx"
    )
    assert all(isinstance(value, str) and len(value) < 30 for value in front.fields.values())
    assert "quotes" in parse("---\na:\n  - &x [1]\n  - *x\n---\n").problem


def test_a_huge_head_is_not_read():
    assert "more than" in parse("---\n" + "a: b\n" * 20_000 + "---\nx").problem


@settings(max_examples=40)
@given(st.text(ALPHABET, max_size=80))
def test_any_text_gives_fields_or_a_sentence(text):
    for whole in (text, f"---\n{text}\n---\nbody"):
        front = parse(whole)
        assert "\n" not in front.problem
        json.dumps(dict(front.fields), default=repr)
        read = Fields(front.fields, ("name", "description"))
        for name in front.fields:
            read.text(name), read.flag(name), read.number(name), read.names(name), read.table(name), read.patterns(name)


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from(["name", "tools", "x-y"]),
        st.one_of(
            st.text(st.sampled_from("ab '\"\\:#-[]é\U0001f600")),
            st.booleans(),
            st.integers(-(10**12), 10**12),
            st.lists(st.text(st.sampled_from("ab:'é"), max_size=5), max_size=3),
        ),
    )
)
def test_what_a_program_wrote_is_read_back(values):
    head = "\n".join(f"{name}: {json.dumps(value)}" for name, value in values.items())
    assert parse(f"---\n{head}\n---\n").fields == values


WORD = st.text(st.sampled_from("abR"), min_size=1, max_size=4)


@settings(max_examples=40)
@given(
    st.lists(st.builds(lambda name, inner: f"{name}({inner})" if inner else name, WORD, st.text("ab*, :", max_size=6)))
)
def test_pieces_put_together_are_split_again(names):
    assert pieces(", ".join(names), ", ") == names
