"""What a new session is begun with where it can't replay another one as it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.messages import joined_text, last_words
from nbagent.core.seeding import seed, thinks

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
SEARCH = {"type": "server_tool_use", "id": "srv1", "name": "web_search", "input": {"query": "iris"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv1", "content": [
    {"type": "web_search_result", "title": "Iris", "url": "https://a.org", "encrypted_content": "sealed"}]}  # fmt: skip
FAILED = {**FOUND, "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}}
SAID = {"type": "text", "text": "150", "citations": [{"type": "web_search_result_location", "url": "https://a.org"}]}
PLAIN = {"type": "text", "text": "Yes."}
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
BLOCKS = st.lists(st.sampled_from([THOUGHT, SEARCH, FOUND, FAILED, SAID, PLAIN, CALL]), min_size=1, max_size=6)


def test_what_was_found_stays_in_words_and_nothing_sealed_or_thought_goes_along():
    (made,) = seed([{"role": "assistant", "content": [THOUGHT, SEARCH, FOUND, SAID]}])
    assert made["content"] == [
        {"type": "text", "text": "(web_search: iris)"},
        {"type": "text", "text": "(web_search found: Iris https://a.org)"},
        {"type": "text", "text": "150"},
    ]


def test_at_the_same_server_with_the_same_tool_its_blocks_stay_as_they_are():
    (made,) = seed([{"role": "assistant", "content": [THOUGHT, SEARCH, FOUND, SAID]}], ["web_search"])
    assert made["content"] == [SEARCH, FOUND, SAID]


@given(BLOCKS)
def test_a_seed_is_never_empty_and_holds_only_what_every_server_takes(blocks):
    (made,) = seed([{"role": "assistant", "content": blocks}])
    assert made["content"] and not thinks([made])
    assert {b["type"] for b in made["content"]} <= {"text", "tool_use"}
    assert all(b["text"].strip() and "citations" not in b for b in made["content"] if b["type"] == "text")
    assert [b for b in made["content"] if b["type"] == "tool_use"] == [b for b in blocks if b is CALL]


def test_texts_around_a_citation_are_one_text_and_the_words_after_a_search_are_the_answer():
    text = {"type": "text", "text": " rows."}
    assert joined_text([PLAIN, PLAIN]) == "Yes.\n\nYes."
    assert joined_text([SAID, text]) == "150 rows."
    assert last_words([PLAIN, SEARCH, FOUND, SAID, text]) == "150 rows."
    assert last_words([PLAIN, SEARCH, FOUND]) == "Yes."
