"""What a text of instructions imports: not what stands in code, and nothing that only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.extend.imports import imports, without_comments


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See @README for it and @docs/a.md.", ("README", "docs/a.md")),
        ("- @~/.claude/mine.md\n* @/abs/x.md", ("~/.claude/mine.md", "/abs/x.md")),
        ("@a.md @a.md", ("a.md",)),
        (r"@my\ notes/a.md", ("my notes/a.md",)),
        ("(@a.md), **@b.md**", ("a.md", "b.md")),
        ("mail me@example.com", ()),
        ("`@a.md` and ``x ` @b.md`` @c.md", ("c.md",)),
        ("```\n@a.md\n```\n@b.md", ("b.md",)),
        ("~~~~\n@a.md\n~~~\n@b.md\n~~~~\n@c.md", ("c.md",)),
        ("```\n@a.md", ()),
        ("text\n\n    @code.md\n\ntext", ()),
        ("- item\n\n    @listed.md", ("listed.md",)),
        ("`open\n\n@a.md `", ("a.md",)),
        ("`one\n@a.md`", ()),
        ("@a.md#part", ("a.md",)),
        ("@ and @@x", ()),
    ],
)
def test_imports_are_found_outside_of_code(text, found):
    assert imports(text) == found


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\n<!-- note -->\nb", "a\nb"),
        ("a\n<!-- two\nlines -->\nb", "a\nb"),
        ("a\n<!-- x --> rest\nb", "a\n rest\nb"),
        ("a <!-- inline --> b", "a <!-- inline --> b"),
        ("```\n<!-- kept -->\n```", "```\n<!-- kept -->\n```"),
        ("a\n<!-- never closed\nb", "a\n<!-- never closed\nb"),
    ],
)
def test_comments_for_people_are_left_out(text, kept):
    assert without_comments(text) == kept


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(["@a.md", "`", "``", "```\n", "~~~\n", "\n", "\n\n", " ", "    ", "- ", "<!--", "-->", "x"]),
        max_size=30,
    )
)
def test_any_text_is_read_and_what_is_fenced_never_imports(pieces):
    text = "".join(pieces)
    assert set(imports(text)) <= {"a.md", *(found for found in imports(text) if found.startswith("a.md"))}
    fenced = "```\n" + text.replace("`", "") + "\n```\n"
    assert imports(fenced) == ()
    assert "x" not in without_comments(f"<!-- {text.replace('<!--', '').replace('-->', '')} -->")


def test_many_backticks_take_no_time():
    assert imports("`" * 50_001 + " `` @a.md " * 2000) is not None
