"""A person as the model: what they are shown, what is streamed of their reply, and what is let through to the runtime."""

from __future__ import annotations

import json

import pytest

from nbagent.app.model import run_model, stands_in
from nbagent.config import Settings
from nbagent.core.errors import ConfigError, Rejected
from nbagent.core.events import CallEnded, RunEnded, Status
from nbagent.core.tools import tool
from nbagent.models import open_model
from nbagent.models.human import HumanModel, Reply, Turn, blocks_of, call_block
from nbagent.teach.bench import bench
from tests.models.conftest import LOOK, reply_of, request


class Person:
    """Answers from a list, and keeps the turns that it was shown."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.turns: list[Turn] = []

    async def __call__(self, turn: Turn) -> Reply:
        self.turns.append(turn)
        return self.replies.pop(0)


@tool
async def double(_: object, number: int) -> int:
    """Double a number.

    Args:
        number: The number.
    """
    return 2 * number


async def test_words_and_calls_are_streamed_as_a_servers_reply_is():
    calls = [call_block("look", {}), call_block("look", {"depth": 1})]
    person = Person(Reply.of("I look.", calls), Reply.of("Done."), Reply.of("half", ()), Reply(()))
    model = HumanModel(person)
    reply = await reply_of(model)
    assert (reply.complete, reply.stop_reason, reply.model) == (True, "tool_use", "human")
    assert reply.content == [{"type": "text", "text": "I look."}, *calls]
    assert (await reply_of(model)).stop_reason == "end_turn"
    assert (await reply_of(model)).text == "half"
    assert (await reply_of(model)).content == []


async def test_a_turn_has_what_a_server_would_get_and_says_what_is_new():
    person = Person(Reply.of("Hello."))
    said = {"role": "assistant", "content": [{"type": "text", "text": "What?"}]}
    await reply_of(HumanModel(person), request("Hi", said, "Look"))
    (turn,) = person.turns
    assert (turn.number, turn.system, turn.tools) == (2, "You are a test.", (LOOK,))
    assert [message["content"] for message in turn.new] == ["Look"]
    assert [message["role"] for message in turn.earlier] == ["user", "assistant"]
    assert 10 < turn.tokens < 100


async def test_the_runtime_answers_a_persons_mistakes_as_it_answers_a_models():
    wrong = [call_block("treble", {"number": 1}), call_block("double", {"number": "many"}), call_block("double", [1]),
             call_block("double", {"number": 4})]  # fmt: skip
    person = Person(Reply.of("", wrong), Reply.of("8"))
    events = await bench(HumanModel(person), [double]).collect("Double 4")
    ended = [event for event in events if isinstance(event, CallEnded)]
    assert [event.status for event in ended] == [Status.INVALID] * 3 + [Status.OK]
    results = person.turns[1].new[0]["content"]
    assert [result["tool_use_id"] for result in results] == [call["id"] for call in wrong]
    texts = json.dumps(results)
    assert "There is no tool 'treble'" in texts
    assert "number: input should be a valid integer" in texts
    assert "must be a JSON object" in texts
    assert isinstance(events[-1], RunEnded)
    assert events[-1].text == "8"


@pytest.mark.parametrize(
    ("text", "said"),
    [("[", "not JSON"), ("3", "list of blocks"), ('[{"type": "text"}]', 'a text has "text"'),
     ('[{"type": "tool_use", "name": "look"}]', '"name" and "input"'), ('["hi"]', 'needs "type"')],
)  # fmt: skip
def test_what_no_server_could_send_is_refused_with_a_sentence(text: str, said: str):
    with pytest.raises(ValueError, match=said):
        blocks_of(text)


def test_blocks_as_json_keep_their_ids_or_get_one():
    one = {"type": "tool_use", "id": "toolu_mine", "name": "nonsense", "input": [1]}
    assert blocks_of(json.dumps([one])) == (one,)
    (made,) = blocks_of('{"type": "tool_use", "name": "look", "input": {}}')
    assert made["id"].startswith("toolu_")


async def test_where_nobody_is_there_a_run_does_not_begin_or_another_model_answers():
    assert open_model("human").name == "human"
    with pytest.raises(Rejected, match="nobody can be asked"):
        await reply_of(open_model("human"))
    with pytest.raises(ConfigError, match="--fallback MODEL"):
        run_model(Settings(model="human"))
    with pytest.raises(ConfigError, match="--fallback MODEL"):
        stands_in(Settings(model="human"), None)
    helped = Settings(model="human", fallback_model="scripted:tests.models.example_scripts:TURNS")
    assert "answers instead" in stands_in(helped, None)
    assert run_model(helped).name != "human"
    assert stands_in(helped, Person()) == stands_in(Settings(model="haiku"), None) == ""
    assert run_model(helped, ask=Person()).name == "human"
