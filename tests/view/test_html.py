"""Nothing that a model, a tool or a file name says becomes an element, a script, or a remote request."""

from __future__ import annotations

import html as html_escape
import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core import events as ev
from nbagent.core.diff import unified
from nbagent.core.events import Reason, State, Status
from nbagent.core.messages import Usage, text_block
from nbagent.core.ports import Approval, Preview
from nbagent.core.shown import is_hidden
from nbagent.view.asking import group_html, hidden_note, option_html, previews_html, question_html, rule_html
from nbagent.view.code import LIVE, RECORD, code_html
from nbagent.view.diff import diff_html
from nbagent.view.fold import fold_all
from nbagent.view.html import image_uri, item_html
from nbagent.view.items import QuestionItem
from nbagent.view.markdown import MarkdownStream, to_html
from nbagent.view.record import record
from nbagent.view.text import visible, without_ansi
from nbagent.view.todos import record_html, todos_html
from tests.view.events_fixture import card_html

PAYLOADS = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>', "<iframe src=//evil>",
    "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](data:text/html;base64,PHNjcmlwdD4=)", "[x](vbscript:a)",
    "![x](http://evil/track.png)", "![x](data:image/svg+xml;base64,AAAA)", "<javascript:alert(1)>", "[x]: javascript:alert(1)\n\n[x]",
    '[a](http://x "onmouseover=alert(1)")', '[a](http://x" onclick="alert(1))', "```html\n<script>1</script>\n```",
    '```"><script>\nx\n```', "`<b onclick=1>`", "[![i](http://evil/a.png)](javascript:alert(1))", "[x](file:///etc/passwd)",
    "/etc/passwd", "&lt;script&gt;", "<details open ontoggle=alert(1)>", "</div></details><script>", "[x](//evil)",
    "<a href='javascript:x'>", "[x](java\nscript:alert(1))", "[x](&#106;avascript:alert(1))", "\x1b]8;;javascript:a\x07x\x1b]8;;\x07",
]  # fmt: skip
TAGS = {"div", "span", "p", "b", "i", "em", "strong", "s", "code", "pre", "a", "details", "summary", "ul", "ol", "li", "table",
        "thead", "tbody", "tr", "th", "td", "h3", "h4", "h5", "h6", "blockquote", "hr", "br", "small", "img"}  # fmt: skip
ATTRIBUTES = {"class", "style", "title", "href", "target", "rel", "data-key", "data-part", "data-fold", "data-status",
              "data-reason", "data-level", "open", "dir", "aria-hidden", "aria-label", "aria-current", "role", "src", "alt", "tabindex", "start"}  # fmt: skip


class Checker(HTMLParser):
    """Fails on any element or attribute that could do something."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS, tag
        for name, value in attrs:
            assert name in ATTRIBUTES, (tag, name)
            if name == "href":
                assert re.match(r"(https?://|mailto:|#nbagent-(undo|again)-[\w-]+\Z)", value, re.IGNORECASE), value
            if name == "src":
                assert value.startswith("data:image/"), value
            if name == "style":
                assert "url" not in value

    def handle_data(self, data):
        self.text.append(data)

    def handle_decl(self, decl):
        raise AssertionError(decl)

    def handle_comment(self, data):
        raise AssertionError(data)


def checked(text: str) -> str:
    checker = Checker()
    checker.feed(text)
    checker.close()
    return "".join(checker.text)


def events_full_of(payload: str) -> list[ev.Event]:
    """A run in which every text of others is `payload`."""
    at = {"state": State.ACT, "turn": 1, "at": 1.0}
    call = {**at, "call_id": payload, "name": payload}
    given = {payload: payload, "n": 1}
    effects = (payload, payload)
    previews = [Preview(k, payload, payload[::-1], payload, effects) for k in ("code", "text", "command", "diff")]
    events: list[ev.Event] = [
        ev.RunStarted(
            **at, run_id=payload, session_id=payload, model=payload, mode=payload, prompt=payload, max_turns=3
        ),
        ev.TextDelta(**at, index=0, text=payload),
        ev.ThinkingDelta(**at, index=1, text=payload),
        ev.BlockStarted(**at, index=2, kind="tool_use", name=payload, call_id="other"),
        ev.ReplyDiscarded(**at, why=payload),
        ev.TextDelta(**at, index=0, text=payload),
        ev.RawReceived(**at, raw={"type": payload, payload: payload}),
        ev.RetryScheduled(**at, attempt=1, limit=2, wait=1.0, why=payload),
        ev.Noted(**at, text=payload, level=payload),
        ev.QuestionAsked(**at, question_id=payload, text=payload, choices=(payload,)),
        ev.QuestionAnswered(**at, question_id=payload, text=payload),
    ]
    for preview in previews:
        events += [
            ev.ApprovalAnswered(**at, call_id=payload, approved=False, words=payload, rule=payload, by=payload),
            ev.CallStarted(**call, input=given, title=payload, preview=preview.to_json()),
            ev.CallProgress(**at, call_id=payload, text=payload),
            ev.CallEnded(
                **call,
                status=Status.OK,
                content=(text_block(payload), {"type": payload, "x": payload}),
                seconds=1.0,
                summary=payload,
            ),
        ]
    return [*events, ev.RunEnded(**at, reason=Reason.END_TURN, sentence=payload, next_step=payload, text=payload, turns=1, checked=payload,
                                 usage=Usage(1))]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_becomes_anything_but_text(payload):
    view = fold_all(events_full_of(payload))
    for item in view.items:
        checked(item_html(item))
    checked(record(view, banner=payload)["text/html"])
    for kind in ("code", "text", "command", "diff"):
        approval = Approval(
            "c",
            payload,
            payload,
            {payload: payload},
            Preview(kind, payload, "old", "", (payload,)),
            payload,
            (payload,),
        )
        checked(card_html(approval.to_json()) + group_html([approval.to_json()] * 2))
    asked = QuestionItem(
        key="q1",
        question_id="q",
        text=payload,
        header=payload,
        choices=(payload,),
        details=(payload,),
        previews=(payload,),
        many=True,
    )
    checked(question_html(asked, together=False) + option_html(payload) + previews_html(asked))
    checked(rule_html(payload, {"offers": [payload]}) + hidden_note(payload))
    for status in (payload, "in_progress"):
        todos = [{"content": payload, "status": status, "activeForm": payload}]
        checked(todos_html(todos, fold=payload) + record_html(todos))


@pytest.mark.slow
@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_survives_in_the_markdown_of_a_record(payload):
    text = record(fold_all(events_full_of(payload)), banner=payload)["text/markdown"]
    outside_of_fences = re.sub(r"^  (`{3,}).*?^  \1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert outside_of_fences != text
    assert not re.search(r"<[a-z/!?]", outside_of_fences, re.IGNORECASE)
    # read by another Markdown reader, one with HTML on
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    reader.validateLink = lambda _: True
    reader.add_render_rule("image", lambda *_: pytest.fail("an image"))
    checked(re.sub(r"<(/?)(h[12])>", r"<\1h3>", reader.render(text)))


@pytest.mark.slow
@given(st.text(max_size=80))
@settings(deadline=None, max_examples=150 * settings.default.max_examples // 100)
def test_any_model_text_is_safe(text):
    checked(to_html(text))


def test_a_path_is_shown_as_a_path():
    assert checked(to_html("/etc/passwd")).strip() == "/etc/passwd"


def test_remote_images_are_links_and_links_are_marked():
    out = to_html("![a plot](https://example.org/x.png) and [site](https://example.org)")
    assert "<img" not in out
    assert out.count('rel="noopener noreferrer nofollow"') == 2


def test_only_clean_base64_of_known_types_becomes_an_image():
    def block(media, data):
        return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}

    assert image_uri(block("image/png", "AAAA")) == "data:image/png;base64,AAAA"
    assert image_uri(block("image/svg+xml", "AAAA")) is None
    assert image_uri(block("image/png", '"><script>')) is None
    assert image_uri({"type": "image", "source": "x"}) is None


def test_text_of_the_model_cannot_look_like_a_result():
    fake = '<div class="nbagent-item nbagent-call">✓ done add_cell</div>\n\nOut[5]: 42'
    out = item_html(fold_all([ev.TextDelta(state=State.THINK, turn=1, at=0, index=0, text=fake)]).items[0])
    assert 'class="nbagent-item nbagent-call"' not in out
    assert "nbagent-output" not in out


# ── code and diffs ───────────────────────────────────────────────────────────────────────────────────────────────────


def shown_text(markup: str) -> str:
    """The text of code HTML with the shown codes turned back into their characters."""
    text = html_escape.unescape(re.sub(r"<[^>]*>", "", markup))
    return re.sub(r"⟨U\+([0-9A-F]+)⟩", lambda m: chr(int(m[1], 16)), text)


CODE = st.lists(st.one_of(st.sampled_from(["def f(x):\n", "    return ", "'a'", '"""', "# c\n", "%matplotlib\n", "!ls\n", "\r",
                "\t", "\u202e", "\u200b", "é", "x" * 9, "\n\n"]), st.characters(exclude_characters="⟨")), max_size=15).map("".join)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "markdown", "bash", "sql", "json", "none"])
@given(code=CODE)
@settings(deadline=None, max_examples=80 * settings.default.max_examples // 100)
def test_coloured_code_is_exactly_the_code(language, code):
    for paint in (LIVE, RECORD):
        assert shown_text(code_html(code, language, paint)) == code


NUMBERED = re.compile(r"<span[^>]*>([ \d]+)([-+ ]) </span>")


def diff_rows(markup: str) -> list[tuple[str, str, str]]:
    """The rows of diff HTML in order: numbers, sign and text; those in folds too."""
    parts = NUMBERED.split("".join(re.findall(r"<pre[^>]*>(.*?)</pre>", markup, re.DOTALL)))
    return [
        (n.strip(), sign, shown_text(text).removesuffix("\n"))
        for n, sign, text in zip(*[iter(parts[1:])] * 3, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "markdown", ""])
@given(old=CODE, new=CODE)
@settings(deadline=None, max_examples=100 * settings.default.max_examples // 100)
def test_a_diff_holds_both_texts_with_the_numbers_of_their_lines(language, old, new):
    for paint in (LIVE, RECORD):
        rows = diff_rows(diff_html(old, new, language, paint))
        if old == new:
            assert rows == []
            continue
        for place, sign, text in ((0, "-", old), (-1, "+", new)):
            side = [row for row in rows if row[1] in {" ", sign}]
            assert [row[2] for row in side] == (text.split("\n") if text else [])
            assert [int(row[0].split()[place]) for row in side] == list(range(1, len(side) + 1))


def test_a_diff_marks_the_changed_words_and_folds_what_it_leaves_out():
    old = "\n".join(str(i) for i in range(50))
    out = diff_html(old + "\ncolour = 'red'", old + "\ncolour = 'blue'", "python")
    assert '<span class="nb-del-w"><span class="nb-s">red</span></span>' in out
    assert '<span class="nb-ins-w"><span class="nb-s">blue</span></span>' in out
    fold = re.search(r"<details[^>]*><summary>(.*?)</summary>(.*?)</details>", out, re.DOTALL)
    assert "… 47 unchanged lines" in fold[1]
    assert [row[2] for row in diff_rows(fold[2])] == [str(i) for i in range(47)]


def test_what_is_deleted_is_shown_as_going():
    rows = diff_rows(diff_html("a = 1\nb = 2", "", "python"))
    assert rows == [("1", "-", "a = 1"), ("2", "-", "b = 2")]
    approval = {
        "tool": "delete_cell",
        "title": "delete In[3]",
        "input": {},
        "preview": Preview("diff", "", "a\nb").to_json(),
    }
    assert "2 lines would be deleted" in card_html(approval)


def test_a_diff_with_a_limit_counts_what_it_does_not_show():
    new = "\n".join(f"line {i}" for i in range(5_000))
    out = diff_html("x", new, limit=1_000)
    assert len(out) < 20_000
    shown = len(diff_rows(out))
    assert f"… {5_001 - shown:,} more lines of this change" in out
    assert len(diff_rows(diff_html("x", new))) == 5_001


@given(st.characters())
def test_every_character_that_cannot_be_seen_is_shown_as_its_code(char):
    hidden = unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp", "Co"} and char not in "\n\t"
    assert (f"U+{ord(char):04X}" in visible(char, "")) >= hidden
    assert is_hidden(char) >= hidden


def test_an_approval_shows_bidi_tricks_and_the_whole_code():
    code = "access = 'user\u202e'  # \u2066check\n" + "x = 1\n" * 500 + "last_line()"
    approval = Approval(
        "c", "run_python", "run", {"code": code, "note": "\u200bhidden" + "y" * 900}, Preview("code", code), "why", ()
    )
    out = card_html(approval.to_json())
    assert "⟨U+202E⟩" in out
    assert "⟨U+200B⟩" in out
    assert "y" * 900 in out
    assert "last_line" in out
    assert "scroll" not in out, "whether all of it is on screen only the page knows"


def test_ansi_codes_are_removed():
    assert without_ansi("\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b(B\x9b1mz") == "red link z"


# ── streaming ────────────────────────────────────────────────────────────────────────────────────────────────────────

PIECES = st.sampled_from(["a", "b ", "\n", "\n\n", "- ", "1. ", "2) ", "# ", "> ", "```", "```python\n", "~~~", "    ", "| a | b |",
          "|---|---|\n", "---", "***", "===", "`", "**", "[x](http://a)", "[x]: http://a", "![i](http://b)", "<b>", "\t", "\r\n",
          "\r", "* ", "+ ", "\\", "&amp;", "  \n"])  # fmt: skip


@pytest.mark.slow
@given(st.lists(st.lists(PIECES, max_size=8).map("".join), max_size=10))
@settings(deadline=None, max_examples=300 * settings.default.max_examples // 100)
def test_streamed_markdown_ends_as_the_whole_text_would(parts):
    stream = MarkdownStream()
    for part in parts:
        stream.feed(part)
    stream.close()
    assert stream.html == to_html("".join(parts))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["word **b** `c`\n\n" * 4_000, "```python\n" + "x = 1\n" * 10_000, "- item\n" * 10_000]
)
def test_streaming_sends_each_byte_a_bounded_number_of_times(text):
    stream = MarkdownStream()
    sent = 0
    for i in range(0, len(text), 40):
        step = stream.feed(text[i : i + 40])
        sent += len(step.html) + len(step.tail) + len(step.added)
    assert sent < 12 * len(text)


def test_a_change_is_numbered_as_its_file_is() -> None:
    """The piece that an edit of a file changes does not begin with line 1; where that is not known nothing is numbered."""
    text = re.sub(r"<[^>]+>", "", diff_html("def f():\n    return 3", "def f():\n    return 33", "python", line=12))
    assert text.splitlines() == ["12 12   def f():", "13    -     return 3", "   13 +     return 33"]
    assert "1" not in re.sub(r"<[^>]+>", "", diff_html("a\nb", "a\nc", "python", line=0))
    assert unified("a\nb", "a\nc", line=12)[0] == "@@ from line 12 @@"
    assert unified("a\nb", "a\nc", line=0) == [" a", "-b", "+c"]
