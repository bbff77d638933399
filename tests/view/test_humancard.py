"""The card in which a person is the model: what it shows, what it sends, and that it sends once."""

from __future__ import annotations

import asyncio
import json

import ipywidgets
import pytest

from nbagent.core.tools import tool
from nbagent.models.human import Turn
from tests.view.person import Person, settle, tree


@tool
async def look(_: object, path: str, limit: int = 5) -> str:
    """Look at a file.

    Args:
        path: Where it is <b>.
    """
    return path


TURN = Turn(2, "You help.", (look.to_param(),), ({"role": "user", "content": "Hi"},),
            ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True,
                                            "content": "no <script> file"}]},))  # fmt: skip


class Desk:
    """The card of a person who is asked for one reply, and the reply when it is there."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.reply = asyncio.create_task(person.view.compose(TURN))

    @property
    def card(self):
        return self.person.view._human[0]

    async def send(self, **fields: str) -> None:
        """Send, with what the page reads in the boxes of these numbers (`f3="…"`)."""
        read = {name.removeprefix("f"): text for name, text in fields.items()}
        self.person.from_page({"op": "card", "card": self.card.serial, "press": "send", "fields": read})
        await settle()

    def shown(self) -> str:
        return " ".join(w.value for w in tree(self.card.widget) if isinstance(w, ipywidgets.HTML))

    async def add_call(self) -> list:
        await self.person.clicks(self.card.add)
        return list(self.card.calls[-1].boxes.values())


@pytest.fixture
async def desk(person):
    made = Desk(person)
    await settle()
    person.waits()
    yield made
    made.reply.cancel()
    await asyncio.wait({made.reply})


async def test_it_shows_what_the_model_sees_and_all_of_it_is_text(desk):
    shown = desk.shown()
    for part in (
        "Reply 2",
        "You help.",
        "Look at a file.",
        "error result of toolu_1",
        "&quot;limit&quot;",
        "Earlier messages",
    ):
        assert part in shown
    assert "<script>" not in shown
    await desk.add_call()
    assert "Where it is &lt;b&gt;." in desk.shown()
    assert "may be left out (then 5)" in desk.shown()


async def test_words_and_forms_become_the_reply_as_the_page_read_them(desk):
    path, limit = await desk.add_call()
    path.widget.value = "a"  # as it was synced; the page has read more
    assert "&quot;path&quot;: &quot;a&quot;" in desk.card._preview.value
    await desk.send(**{f"f{desk.card.words.key}": "I look.", f"f{path.key}": "a.csv", f"f{limit.key}": "3"})
    text, call = desk.reply.result().content
    assert text["text"] == "I look."
    assert (call["name"], call["input"]) == ("look", {"path": "a.csv", "limit": 3})
    await settle()
    assert desk.person.view._human == []


async def test_what_is_wrong_is_told_first_and_goes_out_where_the_person_wants_it(desk):
    await desk.send()
    assert "The reply is empty" in desk.shown()
    _, limit = await desk.add_call()
    limit.widget.value = "many"
    await desk.send()
    assert "path is required" in desk.shown()
    assert not desk.reply.done()
    await desk.send(**{f"f{desk.card.check.key}": "false"})
    (call,) = desk.reply.result().content
    assert call["input"] == {"limit": "many"}


async def test_a_call_can_be_taken_back(desk):
    await desk.add_call()
    await desk.add_call()
    await desk.person.clicks(desk.card.calls[0].remove)
    assert len(desk.card.calls) == 1
    desk.card.calls[0].boxes["path"].widget.value = "b"
    await desk.send()
    assert [call["input"] for call in desk.reply.result().content] == [{"path": "b"}]


async def test_blocks_can_be_written_as_json_beginning_with_what_the_form_holds(desk):
    desk.card.words.widget.value = "Hello."
    desk.card.as_json.widget.value = True
    assert json.loads(desk.card.raw.widget.value) == [{"type": "text", "text": "Hello."}]
    await desk.send(**{f"f{desk.card.raw.key}": "[{]"})
    assert "This is not JSON" in desk.shown()
    assert not desk.reply.done()
    strange = [{"type": "tool_use", "id": "toolu_x", "name": "nonsense", "input": 3}]
    await desk.send(**{f"f{desk.card.raw.key}": json.dumps(strange), f"f{desk.card.check.key}": "false"})
    assert list(desk.reply.result().content) == strange


async def test_a_click_that_comes_too_soon_or_twice_sends_nothing_and_a_stop_takes_the_card_away(person):
    desk = Desk(person)
    await settle()
    await desk.send(**{f"f{desk.card.words.key}": "too soon"})
    assert not desk.reply.done()
    assert desk.card.send.disabled
    desk.reply.cancel()
    await asyncio.wait({desk.reply})
    assert person.view._human == []
    assert person.view._asks.children == ()
