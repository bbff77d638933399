"""Row 22: images never make a conversation unsendable; the oldest go where there are too many or the server refuses."""

from __future__ import annotations

import json

import pytest

from nbagent.core import images
from nbagent.core.errors import ContextFull, ImagesRefused
from nbagent.core.events import Noted, Reason
from nbagent.core.messages import image_block, text_block
from nbagent.core.tools import Call, Result, Toolset, tool
from nbagent.models.scripted import ScriptedModel, call, say, think
from tests.core.rig import Rig, check_transcript, play
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Status, calls

PIXEL = "iVBORw0KGgo="


class Gallery(Rig):
    """A rig whose `look` gives an image."""

    size = 1

    def tools(self) -> Toolset:
        size = self.size

        async def look(call: Call, what: str = "") -> Result:
            """Look."""
            return Result((text_block(f"plot {what}"), image_block("image/png", PIXEL + "A" * size)))

        return Toolset([*(t for t in super().tools().values() if t.name != "look"), tool(look)])


def sent(model: ScriptedModel) -> list[list[int]]:
    """The number of images in each message of the newest request."""
    return [len(list(images.images([message]))) for message in model.last_request.messages]


async def test_a_refused_image_is_left_out_and_the_request_made_once_more():
    looks = [[think("hm"), call("look", what=str(n))] for n in range(2)]
    model = ScriptedModel(
        [
            *looks,
            ImagesRefused("no images (400)."),
            "I go on without.",
        ]
    )
    ran = await play(model=model, rig=Gallery())
    assert (ran.end.reason, ran.end.text) == (Reason.END_TURN, "I go on without.")
    assert sent(model) == [0] * 5
    text = json.dumps(list(model.last_request.messages))
    assert text.count("An image was here") == 2 and '"thinking"' not in text
    assert len(list(images.images(ran.messages))) == 2, "the transcript keeps all"
    assert "asked again without" in ran.of(Noted)[0].text


async def test_where_the_conversation_no_longer_fits_the_newest_images_stay():
    model = ScriptedModel([call("look", what="a"), call("look", what="b"), ContextFull("413"), "fits"])
    ran = await play(model=model, rig=Gallery())
    assert ran.end.reason == Reason.END_TURN
    assert sent(model) == [0, 0, 0, 0, 1]


async def test_a_second_refusal_stands():
    model = ScriptedModel([call("look", what="a"), call("look", what="b"), *[ContextFull("It is too long.")] * 2])
    ran = await play(model=model, rig=Gallery())
    assert (ran.end.reason, ran.end.sentence) == (Reason.CONTEXT_FULL, "It is too long.")
    assert "--new" in ran.end.next_step


async def test_without_images_a_full_context_is_asked_once():
    model = ScriptedModel([call("look", what="a"), ContextFull("It is too long."), "never"])
    ran = await play(model=model)
    assert ran.end.reason == Reason.CONTEXT_FULL and model.played == 2


@pytest.mark.slow
@pytest.mark.parametrize(("size", "turns"), [(images.ROOM // 3, 4), (1, images.COUNT + 1)])
async def test_no_request_carries_more_images_than_the_api_takes(size, turns):
    rig = Gallery()
    rig.size = size
    checked = []

    def reply(messages):
        assert not images.too_many(messages)
        checked.append(len(list(images.images(messages))))
        return [say("on"), call("look", what=str(len(checked)))] if len(checked) <= turns else "done"

    model = ScriptedModel([reply] * (turns + 1))
    ran = await play(model=model, rig=rig, limits=_many(turns + 2))
    assert ran.end.reason == Reason.END_TURN, ran.end.sentence
    assert max(checked) >= 2 and checked[-1] < turns
    check_transcript(ran.messages)


def _many(turns):
    from nbagent.core.limits import Limits

    return Limits(max_turns=turns, longest_wait=0.0)


PLOTS = """
import matplotlib.pyplot as plt
for n in range({count}):
    plt.figure(figsize={size}, dpi=100); plt.plot([1, 2, n])
plt.show()
"""


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_huge_and_many_figures_are_scaled_before_they_enter_the_conversation(tmp_path):
    """A figure of 100 by 100 inches, 25 of 24 by 24, and a server that refuses: the run goes on each time."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, NBAGENT_ALLOW="add_cell") as room:
            shown = await room.cell(
                "%%agent\nplot",
                calls("add_cell", source=PLOTS.format(count=1, size=(100, 100))),
                calls("add_cell", source=PLOTS.format(count=25, size=(24, 4))),
                Status(400, message="messages.2.content.0.image: too many images"),
                "Two cells with plots.",
                within=90,
            )
            shown.says("Two cells with plots.")
            assert not shown.error
            first, many = ([b["type"] for b in _result(seen)] for seen in server.requests[1:3])
            assert first.count("image") == 1 and many.count("image") == 25
            assert not list(images.images(server.requests[3].body["messages"]))
            assert "An image was here" in json.dumps(server.requests[3].body)
            await room.still_works()
        server.assert_clean()


def _result(seen):
    return seen.body["messages"][-1]["content"][0]["content"]
