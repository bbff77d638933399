"""What a model reads of outputs: folded, typed, bounded, and nothing lost."""

from __future__ import annotations

import base64
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from nbagent.core.errors import ToolError
from nbagent.core.tools import Call, Result, tool
from nbagent.tools.results import ResultStore, capped, clip, fold_terminal, output_blocks

CALL = Call("c1", lambda _: None, lambda _: None)


def png(width: int, height: int, kind: str = "PNG", noise: bool = False) -> str:
    picture = Image.effect_noise((width, height), 90) if noise else Image.new("RGB", (width, height), "red")
    buffer = io.BytesIO()
    (Image.merge("RGB", [picture] * 3) if noise else picture).save(buffer, kind)
    return base64.b64encode(buffer.getvalue()).decode()


def out(text: str, name: str = "stdout") -> dict:
    return {"output_type": "stream", "name": name, "text": text}


# ── fold_terminal ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\ntext\n", "plain\ntext\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        (" 10%\r 20%\r100%\ndone", "100%\ndone"),
        ("longer text\rshort", "shortr text"),
        ("longer text\r\x1b[Kshort", "short"),
        ("ab\bc", "ac"),
        ("\x1b[31mred\x1b[0m \x1b[1;32mgreen\x1b[39m", "red green"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("bell\x07null\x00", "bellnull"),
        ("progress\r", "progress"),
        ("abc\x1b[2DX", "aXc"),
        ("tab\there", "tab\there"),
    ],
)
def test_terminal_text_is_folded_to_what_is_seen(text: str, seen: str) -> None:
    assert fold_terminal(text) == seen


def test_a_progress_bar_of_many_redraws_is_one_line_and_cheap() -> None:
    """Row 66: 2,000 redraws are their last state."""
    at = time.perf_counter()
    bar = "".join(f"\r\x1b[32m{n}%|{'#' * 60}|\x1b[A" for n in range(20_000))
    assert fold_terminal(bar).startswith("19999%|")
    assert time.perf_counter() - at < 2


@given(st.text(alphabet="ab \r\n\b\t\x1b[0123;mKJ\x07é😀"))
def test_folding_leaves_no_controls_adds_no_lines_and_is_stable(text: str) -> None:
    folded = fold_terminal(text)
    assert not set(folded) & set("\r\b\x1b\x07")
    assert folded.count("\n") == text.count("\n")
    assert fold_terminal(folded) == folded


@pytest.mark.slow
@given(st.lists(st.text(alphabet="abc", max_size=6), min_size=1))
def test_overprinting_shows_the_last_text_over_the_rest_of_the_longest(pieces: list[str]) -> None:
    screen: list[str] = []
    for piece in pieces:
        screen[: len(piece)] = piece
    assert fold_terminal("\r".join(pieces)) == "".join(screen)


# ── clip, store, capped ──────────────────────────────────────────────────────────────────────────────────────────────


@given(st.text(alphabet="ab\n", max_size=400), st.integers(0, 100))
def test_clip_keeps_short_texts_and_head_and_tail_of_long_ones(text: str, limit: int) -> None:
    cut = clip(text, limit)
    if len(text) <= limit:
        assert cut == text
        return
    head, _, rest = cut.rpartition("\n[")
    tail = rest.partition("here]\n")[2]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) <= limit
    left_out = int(rest.split(" ")[0].replace(",", ""))
    assert len(head) + left_out + len(tail) == len(text)


def test_a_long_result_is_cut_and_its_whole_text_can_be_read_on() -> None:
    text = "".join(f"line {n}\n" for n in range(5000))

    @tool
    async def long(_call: Call) -> str:
        """Give much."""
        return text

    store = ResultStore()
    wrapped = capped(long, store, limit=1000)

    async def check() -> None:
        result = await wrapped.run(CALL, {})
        shown = result.content[0]["text"]
        assert len(shown) < 1200
        assert "read_result(ref='r1', offset=" in shown
        assert "lines) left out" in shown
        offset, pieces = 0, []
        while offset < len(text):
            piece = store.read("r1", offset, 7000).partition("\n[")[0]
            pieces.append(piece)
            offset += len(piece)
        assert "".join(pieces) == text

    import asyncio

    asyncio.run(check())


async def test_short_results_images_and_error_flags_pass_unchanged() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 50_000}}

    @tool
    async def small(_call: Call) -> Result:
        """Give little."""
        return Result(({"type": "text", "text": "short"}, image), is_error=True, cells=("c",))

    result = await capped(small, ResultStore(), limit=100).run(CALL, {})
    assert result == Result(({"type": "text", "text": "short"}, image), is_error=True, cells=("c",))


def test_an_unknown_reference_or_offset_names_what_there_is() -> None:
    store = ResultStore()
    store.keep("text")
    with pytest.raises(ToolError, match=r"'r9'. Kept: r1"):
        store.read("r9")
    with pytest.raises(ToolError, match="which has 4 characters"):
        store.read("r1", 10)


def test_the_store_forgets_the_oldest_when_it_is_full() -> None:
    store = ResultStore()
    for _ in range(4):
        store.keep("x" * 8_000_000)
    with pytest.raises(ToolError, match="Kept: r3, r4"):
        store.read("r1")


# ── output_blocks ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_streams_images_and_values_keep_their_order_and_types() -> None:
    blocks = output_blocks(
        [
            out("before\n"),
            {
                "output_type": "display_data",
                "data": {"image/png": png(20, 10), "text/plain": "<Figure>"},
                "metadata": {},
            },
            out("after\n"),
            {"output_type": "execute_result", "data": {"text/plain": "42", "text/html": "<b>42</b>"}, "metadata": {}},
        ]
    )
    assert [b["type"] for b in blocks] == ["text", "image", "text"]
    assert blocks[2]["text"] == "after\n42"


def test_nothing_is_said_to_be_nothing() -> None:
    assert output_blocks([]) == output_blocks([out("\n")]) == [{"type": "text", "text": "(no output)"}]


def test_an_error_is_short_without_colours_and_names_the_failure() -> None:
    trace = [
        "\x1b[31m" + "-" * 75 + "\x1b[39m",
        "\x1b[31mKeyError\x1b[39m   Traceback",
        *["frame\n"] * 300,
        "KeyError: 'zz'",
    ]
    text = output_blocks([{"output_type": "error", "ename": "KeyError", "evalue": "'zz'", "traceback": trace}])[0][
        "text"
    ]
    assert "\x1b" not in text
    assert "lines left out" in text
    assert text.endswith("KeyError: 'zz'")
    assert len(text.splitlines()) < 50


def test_an_error_without_a_traceback_still_tells_its_name() -> None:
    blocks = output_blocks([{"output_type": "error", "ename": "E", "evalue": "why", "traceback": []}])
    assert blocks[0]["text"] == "E: why"


def test_asyncio_run_gets_a_hint() -> None:
    """Row 33: with the way that works in a notebook."""
    said = "asyncio.run() cannot be called from a running event loop"
    text = output_blocks([{"output_type": "error", "ename": "RuntimeError", "evalue": said, "traceback": []}])[0][
        "text"
    ]
    assert "await main()" in text


def test_html_alone_is_read_without_its_tags_and_scripts() -> None:
    html = "<style>x{}</style><table><tr><td>a</td><td>b&amp;c</td></tr></table><script>bad()</script>"
    blocks = output_blocks([{"output_type": "display_data", "data": {"text/html": html}, "metadata": {}}])
    assert blocks[0]["text"] == "a\tb&c"


@pytest.mark.parametrize(("kind", "mime"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif")])
def test_a_small_image_goes_as_it_is(kind: str, mime: str) -> None:
    data = png(30, 30, kind)
    block = output_blocks([{"output_type": "display_data", "data": {mime: data}, "metadata": {}}])[0]
    assert block["source"] == {"type": "base64", "media_type": mime, "data": data}


@pytest.mark.slow
def test_a_large_image_is_scaled_and_a_noisy_one_becomes_small_enough() -> None:
    for data in (png(4000, 1000), png(2500, 2500, noise=True)):
        block = output_blocks([{"output_type": "display_data", "data": {"image/png": data}, "metadata": {}}])[0]
        raw = base64.b64decode(block["source"]["data"])
        with Image.open(io.BytesIO(raw)) as picture:
            assert max(picture.size) <= 1568
        assert len(block["source"]["data"]) <= 3_500_000


@pytest.mark.parametrize("data", ["not base64!", base64.b64encode(b"no image").decode()])
def test_a_broken_image_is_named_and_does_not_fail(data: str) -> None:
    blocks = output_blocks([{"output_type": "display_data", "data": {"image/png": data}, "metadata": {}}, out("x")])
    assert "image" in blocks[0]["text"]
    assert blocks[0]["text"].endswith("x")


def test_lists_of_lines_and_stderr_are_read() -> None:
    assert output_blocks([out(["a\n", "b"]), out("warn", "stderr")])[0]["text"] == "a\nb\n[stderr]\nwarn"
