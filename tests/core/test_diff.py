"""What changed between two texts: nothing is lost or invented, words are marked where they changed, and it is quick."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.diff import Row, lines_of, part_line, rows, stretches, unified

TEXTS = st.lists(st.sampled_from(["a", "b = 1", "", "  c(d, e)", "x" * 40, "\t日本 \u202e"]), max_size=30).map(
    "\n".join
)


@pytest.mark.slow
@given(TEXTS, TEXTS)
@settings(deadline=None)
def test_the_rows_are_both_texts(old, new):
    every = rows(old, new)
    assert [row.text for row in every if row.sign != "+"] == lines_of(old)
    assert [row.text for row in every if row.sign != "-"] == lines_of(new)
    assert [row.old for row in every if row.sign != "+"] == list(range(1, len(lines_of(old)) + 1))
    assert [row.new for row in every if row.sign != "-"] == list(range(1, len(lines_of(new)) + 1))
    assert all(row.sign == " " for row in every) == (old == new)


@pytest.mark.slow
@given(st.text("ab \t(", max_size=30), st.text("ab \t(", max_size=30))
@settings(deadline=None)
def test_what_is_not_marked_of_a_changed_line_is_the_same_on_both_sides(old, new):
    def stayed(row: Row) -> str:
        ends = [0, *(at for mark in row.marks for at in mark), len(row.text)]
        return "".join(row.text[a:b] for a, b in zip(ends[::2], ends[1::2], strict=True))

    changed = [row for row in rows(old, new) if row.marks]
    if len(changed) == 2:
        assert "".join(stayed(changed[0]).split()) == "".join(stayed(changed[1]).split())


@pytest.mark.slow
@given(TEXTS, TEXTS, st.integers(0, 4))
@settings(deadline=None)
def test_the_stretches_are_all_rows_and_every_change_is_seen_with_its_surroundings(old, new, context):
    every = rows(old, new)
    parts = list(stretches(every, context))
    assert [row for _, part in parts for row in part] == every
    assert all(row.sign == " " for seen, part in parts if not seen for row in part)
    assert all(len(part) > 2 for seen, part in parts if not seen)
    seen = [flag for flag, part in parts for _ in part]
    for place, row in enumerate(every):
        if row.sign != " ":
            assert all(seen[max(0, place - context) : place + context + 1])


def test_lines_that_moved_apart_are_still_found():
    old = "import a\n\ndef f():\n    return 1\n\ndef g():\n    return 2"
    new = "import a\nimport b\n\ndef g():\n    return 2\n\n\ndef h():\n    return 3"
    kept = [row.text for row in rows(old, new) if row.sign == " " and row.text]
    assert kept == ["import a", "def g():", "    return 2"]


def test_the_line_most_like_the_old_one_has_its_words_marked():
    every = rows("value = compute(a)", "# first\nvalue = compute(a, b)\nprint(value)")
    marked = {row.text: [row.text[a:b] for a, b in row.marks] for row in every if row.marks}
    assert marked == {"value = compute(a, b)": [", b"]}


def numbers(count: int) -> list[str]:
    return [str(random.Random(n).random()) for n in range(count)]


SLOW = {
    "all lines the same": (["x"] * 2_000, ["x"] * 1_000 + ["y"] + ["x"] * 2_000),
    "two kinds of lines": ([random.Random(n).choice("ab") for n in range(2_000)],
                           [random.Random(-n).choice("ab") for n in range(1, 2_001)]),
    "blank lines between": ([line for n in range(1_000) for line in (f"a{n}", "")],
                            [line for n in range(1_000) for line in (f"b{n}", "")]),
    "nothing in common": (numbers(2_000), [f"-{line}" for line in numbers(2_000)]),
    "reversed": (numbers(2_000), numbers(2_000)[::-1]),
    "words that all moved": ([f"{'a b ' * 200}{n}" for n in range(2_000)], [f"{'b a ' * 200}{n}" for n in range(2_000)]),
    "one line of 200,000 words": (["a b " * 100_000], ["b a c " * 100_000]),
    "100,000 lines": ([str(n) for n in range(100_000)], [str(n) for n in range(5, 100_000, 2)]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_no_two_texts_take_long(name):
    old, new = ("\n".join(lines) for lines in SLOW[name])
    began = time.process_time()
    every = rows(old, new)
    assert time.process_time() - began < 5  # all take less than 0.6 s; the worst of difflib took minutes
    assert len(every) >= len(SLOW[name][1])


def test_a_plain_diff_says_where_it_is_and_what_it_leaves_out_and_points_at_words():
    old = "\n".join(str(n) for n in range(1, 31)) + "\ncolour = 'red'\n\t日本 = a\nend"
    new = old.replace("red", "blue").replace("= a", "= b")
    assert unified(old, new, carets=True) == [
        "@@ 27 unchanged lines, then line 28 @@", " 28", " 29", " 30",
        "-colour = 'red'", "?          ^^^", "-\t日本 = a", "?\t       ^",
        "+colour = 'blue'", "?          ^^^^", "+\t日本 = b", "?\t       ^", " end",
    ]  # fmt: skip
    assert unified("a", "a") == ["(no change)"]
    assert unified("", "x\u202e = 1") == ["+x⟨U+202E⟩ = 1"]


def test_a_line_that_moves_to_another_part_does_not_hide_where_the_parts_begin():
    head, tail = part_line("In[1]"), part_line("In[2]")
    old, new = f"{head}\nimport a\n\n{tail}\nimport b\nb.run()", f"{head}\nimport a\nimport b\n\n{tail}\nb.run()"
    assert [(row.sign, row.text) for row in rows(old, new)] == [
        (" ", head), (" ", "import a"), ("+", "import b"), (" ", ""), (" ", tail), ("-", "import b"), (" ", "b.run()"),
    ]  # fmt: skip
    gone = rows(f"{head}\na\n\n{tail}\nb", f"{tail}\na\nb")
    assert [row.text for row in gone if row.sign != "+"] == [head, "a", "", tail, "b"], (
        "parts that are not the same are only lines"
    )
