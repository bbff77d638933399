"""Elicitation: a server's question to the person, field by field, and their answers as what the server asked for."""

from __future__ import annotations

import pytest

from nbagent.extend.mcp_ask import DECLINE, DONE, LEAVE_OUT, form, page


class Replies:
    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def __call__(self, text, choices):
        self.asked.append((text, choices))
        return self.replies.pop(0) if self.replies else ""


FIELDS = {
    "properties": {
        "sure": {"type": "boolean", "title": "Are you sure?"},
        "many": {"type": "integer", "minimum": 1, "maximum": 5},
        "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
        "tags": {"type": "array", "items": {"enum": ["x", "y", "z"]}},
        "note": {"type": "string"},
    },
    "required": ["sure", "many", "color", "tags"],
}


async def test_each_field_is_asked_and_gets_its_type():
    ask = Replies("yes", "3", "Blue", "x, z", LEAVE_OUT)
    assert await form("srv", "Fill in", FIELDS, ask) == (
        "accept", {"sure": True, "many": 3, "color": "b", "tags": ["x", "z"]})  # fmt: skip
    assert "“srv” asks: Fill in" in ask.asked[0][0]
    assert ask.asked[2][1] == ("Red", "Blue", DECLINE)


async def test_an_answer_that_does_not_fit_is_asked_again_with_the_reason():
    ask = Replies("maybe", "no", "9", "5", "Red", "x", "hi")
    assert (await form("srv", "m", FIELDS, ask))[1]["many"] == 5
    assert "neither yes nor no" in ask.asked[1][0]
    assert "outside of the limits" in ask.asked[3][0]


async def test_after_three_wrong_answers_it_is_cancelled():
    assert await form("srv", "m", FIELDS, Replies("yes", "x", "y", "z")) == ("cancel", None)


async def test_nobody_there_cancels_and_a_no_declines():
    assert await form("srv", "m", FIELDS, Replies()) == ("cancel", None)
    assert await form("srv", "m", FIELDS, Replies(DECLINE)) == ("decline", None)


@pytest.mark.parametrize(
    ("said", "action"), [("Yes", "accept"), ("No", "decline"), ("", "cancel"), ("what?", "decline")]
)
async def test_a_question_without_fields_is_a_yes_or_no(said, action):
    assert (await form("srv", "Go on?", {}, Replies(said)))[0] == action


async def test_a_page_is_shown_and_never_opened():
    ask = Replies(DONE)
    assert await page("srv", "Log in", "https://x.test/?a=1", ask) == ("accept", None)
    assert "https://x.test/?a=1" in ask.asked[0][0]
    assert (await page("srv", "Log in", "https://x.test", Replies(DECLINE)))[0] == "decline"


async def test_hidden_characters_of_a_server_are_shown_as_codes_and_its_words_are_bounded():
    ask = Replies("Yes")
    await form("s\u202erv", "a\u202eb" + "x" * 9000, {}, ask)
    assert "⟨U+202E⟩" in ask.asked[0][0] and "\u202e" not in ask.asked[0][0]
    assert len(ask.asked[0][0]) < 2500
