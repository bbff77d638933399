"""The Markdown of a report: what others wrote into it says what it said, and does nothing wherever it is drawn."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nbagent.view.report.harmless import fenced, from_html, harmless, literal
from nbagent.view.report.markdown import markdown_of
from nbagent.view.report.model import AnswerPart, CodePart, Picture, Prose, Report, Table, TextPart, Words

PIECES = ("<script>alert(1)</script>", "<img src=http://e.example/x onerror=a>", "<iframe/>", "<!-- ", "<b", ">", "![x](http://e.example/a.png)",
          "![x][r]", "\n[r]: http://e.example/b.png\n", "[j](javascript:a)", "[k](java&#115;cript:a)", "[d](data:text/html,x)", "`", "``", "```", "~~~",
          "\n", "\n\n", "    ", "- ", "> ", "| a | b |\n|---|---|\n", "|", "\\", "\t", "$", "word ", "![", "](", "1. ", "[", "]", "# ", "\n---\n", "<http://a.b/`c>",
          "&lt;", "<br>", "![l](fig.png)")  # fmt: skip


def live(text: str) -> list[str]:
    """What a program that draws raw HTML and pictures would do beyond showing text."""
    found: list[str] = []
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.validateLink = lambda _: True  # type: ignore[method-assign]  # as careless as there is
    for token in (inner for outer in parser.parse(text) for inner in (outer, *(outer.children or ()))):
        if token.type in {"html_inline", "html_block"} and not re.fullmatch(
            r'(<a id="cell-\w+">|</a>)', token.content.strip()
        ):
            found.append(token.content)
        address = str(token.attrs.get("src") or token.attrs.get("href") or "")
        if token.type == "image" or not re.match(r"https?://|mailto:|#|[^:]*$", address):
            found.append(address)
    return found


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_whatever_is_written_nothing_of_it_acts_or_loads(text):
    assert live(harmless(text)) == []


def test_words_code_links_and_hidden_characters_are_seen_as_they_are():
    text = "# A <b>bold</b> claim\r\n`x < y` and a < b, [here](https://a.example) <https://b.example>\n\n```html\n<b>\n```\n\n    <i>"
    shown = "# A bold claim\n`x < y` and a &lt; b, [here](https://a.example) <https://b.example>\n\n```html\n<b>\n```\n\n```\n<i>\n```"
    assert harmless(text) == shown
    assert harmless("a\u202eb\x07 \x1b[31mred") == "a⟨U+202E⟩b⟨U+0007⟩ red"
    assert harmless("![kept](a/b.png) ![](//e/x) ![](\\\\e\\x) ![](http://e/x)", pictures=True) == (
        "![kept](a/b.png) [image: ](//e/x) [image: &#93;(\\\\e\\x) [image: ](http://e/x)"
    )


def test_what_was_printed_can_not_end_its_block():
    assert fenced("a\n```\n<b>\n````") == "`````text\na\n```\n<b>\n````\n`````"


def test_a_table_of_html_is_a_table_and_other_html_its_words():
    head = "<thead><tr><th></th><th colspan=2>mass</th></tr><tr><th>kind</th><th>min</th><th>max</th></tr></thead>"
    body = "<tr><th rowspan=2>A|b</th><td>1 &lt;b&gt;</td><td>2</td></tr><tr><td>![x](http://e)</td><td>*4*</td></tr>"
    assert from_html(f"<div><table>{head}<tbody>{body}</tbody></table><p>2 rows</p></div>") == (
        "| kind | mass / min | mass / max |\n| --- | --- | --- |\n| A\\|b | 1 &lt;b> | 2 |\n|  | !\\[x\\](http://e) | \\*4\\* |\n\n2 rows"
    )
    assert from_html("<b>5076.016</b>") == "5076.016"
    assert from_html("<pre>a\n &lt;b&gt;</pre>") == "```text\na\n <b>\n```"
    assert from_html("<table><tr><td>1<table><tr><td>in</td></tr></table></td></tr>") == "|  |\n| --- |\n| 1 in |"


@pytest.mark.parametrize("code", [True, False])
def test_no_part_of_a_report_acts_or_loads(code):
    evil = "- x\n\n    <script>a</script>\n<img src=http://e/x> ![p](http://e/p.png) [j](javascript:a) \u202e\n```\n<b>"
    drawing = b'<svg xmlns="http://www.w3.org/2000/svg"><script>a</script></svg>'
    shown = [Words(evil), Words(evil, "error"), Words(evil, "note"), Prose(evil), Table(f"<table><tr><td>{evil}</td></tr></table>"),
             Picture(b"1", "image/png", evil, evil), Picture(drawing, "image/svg+xml", "x")]  # fmt: skip
    parts = [TextPart("a", evil, "agent"), CodePart("b", 1, evil, shown, evil), AnswerPart("c", evil, evil, evil)]
    text, files = markdown_of(Report(evil, [evil], parts, [], evil, evil, code=code, notes=[evil]), "out")
    assert (
        list(files) == ["out_files/figure-1.png"]
        and "A drawing (SVG) that loads or runs something was left out." in text
    )
    assert live(text) == ["out_files/figure-1.png"]
    assert "\u202e" not in text and ("```python" in text or "````python" in text) == code


def test_a_drawing_of_matplotlib_is_kept():
    drawing = (
        b'<!DOCTYPE svg PUBLIC "x"><svg xmlns:xlink="http://x"><g clip-path="url(#p)"><use xlink:href="#m"/></g></svg>'
    )
    parts = [CodePart("a", 1, "x", [Picture(drawing, "image/svg+xml", "A *b*")])]
    text, files = markdown_of(Report("T", [], parts, []), "my out")
    assert files == {"my out_files/figure-1.svg": drawing} and "![A \\*b\\*](my%20out_files/figure-1.svg)" in text
    assert literal("a_b _c_ <d") == "a_b \\_c\\_ &lt;d"
