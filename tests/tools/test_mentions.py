"""What counts as a mention in a person's words, and what is only an @."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.tools.mentions import MOST, mentions, typed


def found(text: str) -> list[str]:
    return [one.shown for one in mentions(text)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Plot @df, then @df.price.", ["@df", "@df.price"]),
        ('@df["unit price"] and @df[\'a b\']', ["@df['unit price']", "@df['a b']"]),
        ("See @cell:7: and @cell:ab-12!", ["@cell:7", "@cell:ab-12"]),
        ("Load @sales.csv, @data/x.parquet, @./y, @\"my file.csv\" and @'z z.csv'", ["@sales.csv", "@data/x.parquet", "@./y", '@"my file.csv"', '@"z z.csv"']),
        ("@last_error @plot @plots", ["@last_error", "@plot", "@plots"]),
        ("(@a) [@b] “@c” **@d** - @e\n> @f\n* @g", ["@a", "@b", "@c", "@d", "@e", "@f", "@g"]),
        ("@größe und @df.größe", ["@größe", "@df.größe"]),
        ("@df and @df again", ["@df"]),
    ],
)  # fmt: skip
def test_names_cells_files_and_words_are_mentions(text, shown):
    assert found(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "mail me@x.com or bob@corp",
        r"\@df stays",
        "df.query('price > @limit') and df.eval(\"x = @y\")",
        "rows where price > @limit or x=@y",
        "`@df` and ``a @df``",
        "```\n@df\n```\n~~~python\n@df",
        "@cache\n@app.route('/x')\ndef f(): pass",
        "https://x.com/@jack and a/@b",
        "A @ B",
        "@server:file:///x",
        "pkg@1.0 @5pm",
        "@",
        "@'' @\"\"",
    ],
)
def test_addresses_decorators_code_and_escapes_are_no_mentions(text):
    assert found(text) == []


def test_each_mention_says_where_it_stands():
    text = 'Join @"my file.csv" with @df["a b"].'
    assert [text[one.start : one.end] for one in mentions(text)] == ['@"my file.csv"', '@df["a b"]']


def test_their_number_is_bounded():
    assert len(mentions(" ".join(f"@x{n}" for n in range(100)))) == MOST


@pytest.mark.parametrize(
    ("text", "part"),
    [("plot @d", "d"), ("@", ""), ('x @"my f', '"my f'), ("@cell:", "cell:"), ("@data/s", "data/s"), ("me@x", None), ("x", None),
     ("@df ", None), ("a > @l", None), (r"\@d", None)],
)  # fmt: skip
def test_what_is_being_typed(text, part):
    assert typed(text) == part


NAME = st.text(string.ascii_letters + "_", min_size=1, max_size=12)


@given(st.text(), NAME, st.text())
def test_a_name_between_blanks_is_found_in_any_text_or_is_in_code(before, name, after):
    del after
    text = f"{before} @{name}"
    inside = any(sign in before for sign in "`@~(.<=!|^>") or text.count("@") > 1
    assert inside or found(text)[-1:] == [f"@{name}"]


@given(st.text())
def test_mentions_are_pieces_of_the_text_and_nothing_else_happens(text):
    for one in mentions(text):
        assert text[one.start] == "@"
        assert one.name.strip("'\"") in text[one.start : one.end]
    typed(text)


@given(NAME, NAME)
def test_a_word_right_before_the_sign_makes_it_an_address(word, name):
    assert found(f"{word}@{name}.com") == []
