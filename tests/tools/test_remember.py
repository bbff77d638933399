"""The tools for notes: shown before they are kept, never with a secret in them."""

from __future__ import annotations

import pytest

from nbagent.core.errors import ToolError
from nbagent.core.tools import Kind
from nbagent.extend.memory import Memory
from nbagent.tools import remember
from tests.tools.calling import Calling


@pytest.fixture
def call(tmp_path):
    return Calling(remember.tools(Memory(tmp_path / "memories")))


async def test_a_note_is_kept_and_read_again(call):
    assert await call.text("remember", note="Code 9 means unknown.") == "kept in MEMORY.md"
    assert await call.text("recall") == "- Code 9 means unknown.\n"
    assert (
        await call.text("remember", note="By night.", topic="sources", about="Data", kind="reference")
        == "kept in sources.md"
    )
    assert "By night." in await call.text("recall", topic="sources")
    assert await call.text("remember", note="", replaces="- Code 9 means unknown.\n") == "kept in MEMORY.md"


def test_keeping_is_asked_about_as_writing_a_file_is_and_reading_is_not(call):
    assert call.kind("remember", note="x") is Kind.WRITE_FILE
    assert call.kind("recall") is Kind.READ
    assert (call.subject("remember", note="x"), call.subject("remember", note="x", topic="a")) == ("MEMORY", "a")


async def test_a_person_sees_the_notes_as_they_would_be(call):
    await call("remember", note="old")
    preview = call.preview("remember", note="new")
    assert (preview.kind, preview.old, preview.body) == ("diff", "- old\n", "- old\n- new\n")
    assert call.preview("remember", note="x", replaces="not there").kind == "text"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"note": "the key is sk-ant-api03-" + "a1B2" * 24}, "key or password"),
        ({"note": "  "}, "empty"),
        ({"note": "x" * 5000}, "characters"),
        ({"note": "x", "topic": "../x"}, "no name for a topic"),
        ({"note": "x", "kind": "other"}, "kind"),
    ],
)
async def test_what_is_not_kept_is_refused_in_words(call, arguments, said):
    with pytest.raises(ToolError, match=said):
        await call("remember", **arguments)
