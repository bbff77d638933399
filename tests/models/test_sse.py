from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.models.sse import SseDecoder, SseEvent

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
events = st.lists(st.tuples(st.sampled_from(["message_start", "x", "ping"]), texts), max_size=6)
line_ends = st.sampled_from(["\n", "\r\n", "\r"])
noise = st.sampled_from(["", ": comment\n", "id: 7\n", "retry: 10\n", "nonsense\n"])


def decode(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()


@pytest.mark.slow
@given(events, line_ends, st.lists(st.integers(min_value=0, max_value=400)))
def test_events_are_the_same_whatever_way_the_bytes_are_cut(sent, end, cuts):
    text = "".join(f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n" for name, data in sent)
    raw = text.replace("\n", end).encode()
    places = sorted({0, len(raw), *(c for c in cuts if c < len(raw))})
    chunks = [raw[a:b] for a, b in pairwise(places)]
    assert decode(*chunks) == [SseEvent(name, json.dumps(data, ensure_ascii=False)) for name, data in sent]


@given(st.binary(max_size=300), st.integers(min_value=0, max_value=300))
def test_any_bytes_give_the_same_events_in_one_piece_and_in_two(raw, cut):
    assert decode(raw) == decode(raw[:cut], raw[cut:])


@pytest.mark.slow
@given(events, st.lists(noise, max_size=6))
def test_comments_and_unknown_fields_change_no_event(sent, extra):
    plain = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in sent]
    mixed = "".join((extra[i % len(extra)] if extra else "") + text for i, text in enumerate(plain))
    assert decode(mixed.encode()) == decode("".join(plain).encode())


def test_an_event_comes_out_as_soon_as_its_blank_line_is_there():
    decoder = SseDecoder()
    assert decoder.feed(b"data: 1\r\n\r") == [SseEvent("message", "1")]
    assert decoder.feed(b"\ndata: 2\n\n") == [SseEvent("message", "2")]


@pytest.mark.parametrize(
    ("raw", "data"),
    [
        (b"data: a\ndata: b\n\n", "a\nb"),
        (b"data:a\n\n", "a"),
        (b"data:  a\n\n", " a"),
        (b"\xef\xbb\xbfdata: a\n\n", "a"),
        (b"data: \xff\n\n", "\ufffd"),
        (b"data: no blank line", "no blank line"),
        ("data: one\u2028line\x85\x0b\n\n".encode(), "one\u2028line\x85\x0b"),
    ],
)
def test_data_is_read_as_the_standard_says(raw, data):
    assert decode(raw) == [SseEvent("message", data)]


def test_an_event_without_data_is_none():
    assert decode(b"event: ping\n\n:\n\n") == []


def test_a_name_counts_for_its_own_event_only():
    assert decode(b"event: a\ndata: 1\n\ndata: 2\n\n") == [SseEvent("a", "1"), SseEvent("message", "2")]


def test_a_line_of_megabytes_in_small_pieces_is_read_in_linear_time():
    decoder = SseDecoder()
    decoder.feed(b"data: ")
    for _ in range(40_000):
        decoder.feed(b"x" * 100)
    assert [len(event.data) for event in decoder.feed(b"\n\n")] == [4_000_000]
