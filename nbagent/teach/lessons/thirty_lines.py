"""The exercises of lesson 01, a loop in thirty lines: the learner writes the loop, makes it safe, and finds it in ours."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from nbagent.core.tools import tool
from nbagent.models.scripted import call
from nbagent.teach.bench import bench
from nbagent.teach.exercises import Exercise, NotYet
from nbagent.teach.mini import Messages, Reply, stubborn_model

_ENOUGH = 50
"""Events after which an agent that should have ended has not."""


def _text(words: str) -> Reply:
    return {"stop_reason": "end_turn", "content": [{"type": "text", "text": words}]}


class _Watched:
    """A model that answers from a list and keeps what it was asked: calls of `double`, then an answer from the results."""

    def __init__(self, calls: list[list[tuple[str, Any]]]) -> None:
        self._calls = calls
        self.asked: list[Messages] = []

    async def __call__(self, messages: Messages) -> Reply:
        self.asked.append([dict(message) for message in messages])
        turn = len(self.asked)
        if turn > len(self._calls):
            return _text("The results are " + " and ".join(_results(messages)))
        return {
            "stop_reason": "tool_use",
            "content": [
                {"type": "tool_use", "id": f"toolu_{turn}_{place}", "name": tool, "input": {"number": number}}
                for place, (tool, number) in enumerate(self._calls[turn - 1])
            ],
        }


def _results(messages: Messages) -> list[str]:
    return [str(block["content"]) for block in _blocks(messages, "tool_result")]


def _blocks(messages: Messages, kind: str) -> list[dict[str, Any]]:
    return [b for m in messages if isinstance(m["content"], list) for b in m["content"] if b.get("type") == kind]


async def _double(number: int) -> str:
    return str(2 * number)


async def _run(
    agent: Callable[..., AsyncGenerator[tuple[str, Any]]], model: object, tools: object, **more: int
) -> list[Any]:
    """What an agent yields, `_ENOUGH` events at most."""
    seen: list[Any] = []
    generator = agent(model, tools, "Go", **more)
    if not hasattr(generator, "__anext__"):
        raise NotYet("my_agent is no async generator: it needs `async def`, and at least one `yield`.")
    async with aclosing(generator) as events:
        async for event in events:
            seen.append(event)
            if len(seen) > _ENOUGH:
                raise NotYet(f"it yielded more than {_ENOUGH} events for a task of three turns. What should end it?")
    return seen


async def _loop(names: Mapping[str, Any]) -> None:
    model = _Watched([[("double", 4)], [("double", 5), ("double", 6)]])
    seen = await _run(names["my_agent"], model, {"double": _double})
    if len(model.asked) < 2:
        raise NotYet("the model was asked once only. While its reply has calls, the loop goes on.")
    if len(model.asked) != 3:
        raise NotYet(f"the model was asked {len(model.asked)} times for a task of three turns.")
    last = model.asked[-1]
    called, answered = _blocks(last, "tool_use"), _blocks(last, "tool_result")
    if not called:
        raise NotYet("the model does not see its own calls: the reply goes into the messages, as role assistant.")
    if [b["id"] for b in called] != [b.get("tool_use_id") for b in answered]:
        raise NotYet("each call needs one result that carries its id (`tool_use_id`), in the order of the calls.")
    if _results(last) != ["8", "10", "12"]:
        raise NotYet(f"the results that went back are {_results(last)}; the tool gave ['8', '10', '12'].")
    if [message["role"] for message in last] != ["user", "assistant", "user", "assistant", "user"]:
        raise NotYet("the roles must take turns: all results of one reply go into ONE user message.")
    if not seen or tuple(seen[-1]) != ("done", "end_turn"):
        raise NotYet('the last event should be ("done", "end_turn").')


async def _safe(names: Mapping[str, Any]) -> None:
    agent = names["safe_agent"]
    asked: list[int] = []

    async def counted(messages: Messages) -> Reply:
        asked.append(len(messages))
        return await stubborn_model(messages)

    async def columns(file: str) -> str:
        return file

    seen = await _run(agent, counted, {"columns": columns}, max_turns=4)
    if len(asked) != 4:
        raise NotYet(f"with max_turns=4 a model that never ends was asked {len(asked)} times.")
    if tuple(seen[-1]) != ("done", "max_turns"):
        raise NotYet(f'a run that was cut off must say so: the last event is {seen[-1]!r}, not ("done", "max_turns").')
    model = _Watched([[("triple", 4)]])
    seen = await _run(agent, model, {"double": _double}, max_turns=4)
    told = _results(model.asked[-1])
    if len(told) != 1 or "triple" not in told[0]:
        raise NotYet(
            "a call of a tool that does not exist needs a result, too: one that names it, so that the model can choose again."
        )
    if tuple(seen[-1]) != ("done", "end_turn"):
        raise NotYet("after such a result the loop goes on, and the model ends it by answering.")


async def _swap(names: Mapping[str, Any]) -> None:
    translate = names["to_pair"]

    @tool
    async def double(_: object, number: int) -> str:
        """Double a number.

        Args:
            number: The number.
        """
        return str(2 * number)

    events = await bench([call("double", number=4), "It is 8."], [double]).collect("Go")
    pairs = [pair for event in events if (pair := translate(event)) is not None]
    kinds = [pair[0] for pair in pairs]
    if kinds != ["think", "reply", "call", "result", "think", "reply", "done"]:
        raise NotYet(f"for a run of two turns with one call your translation gives {kinds}.")
    if pairs[-1][1] != "end_turn":
        raise NotYet(f"the reason of the end is {pairs[-1][1]!r}, and it should be 'end_turn'.")


_LOOP = """
async def my_agent(model, tools, prompt):
    messages = [{"role": "user", "content": prompt}]
    while True:
        reply = await model(messages)
        messages.append({"role": "assistant", "content": reply["content"]})
        yield "reply", reply
        if reply["stop_reason"] != "tool_use":
            yield "done", "end_turn"
            return
        results = []
        for block in reply["content"]:
            if block["type"] == "tool_use":
                result = await tools[block["name"]](**block["input"])
                results.append({"type": "tool_result", "tool_use_id": block["id"], "content": result})
                yield "result", result
        messages.append({"role": "user", "content": results})
"""

_SAFE = """
async def safe_agent(model, tools, prompt, max_turns=10):
    messages = [{"role": "user", "content": prompt}]
    for turn in range(max_turns):
        reply = await model(messages)
        messages.append({"role": "assistant", "content": reply["content"]})
        yield "reply", reply
        if reply["stop_reason"] != "tool_use":
            yield "done", "end_turn"
            return
        results = []
        for block in reply["content"]:
            if block["type"] == "tool_use":
                tool = tools.get(block["name"])
                result = await tool(**block["input"]) if tool else f"There is no tool {block['name']!r}."
                results.append({"type": "tool_result", "tool_use_id": block["id"], "content": result})
                yield "result", result
        messages.append({"role": "user", "content": results})
    yield "done", "max_turns"
"""

_SWAP = """
def to_pair(event):
    match event.type:
        case "request_sent":
            return "think", event.turn
        case "reply_ended":
            return "reply", event.content
        case "call_started":
            return "call", event
        case "call_ended":
            return "result", event
        case "run_ended":
            return "done", str(event.reason)
    return None
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "01.loop",
        "your loop asks, runs the calls, hands the results back, and ends when the model does",
        (
            "What must be true for the loop to go round once more? It stands in the reply.",
            "Four steps: ask the model; put its reply into the messages; if it has no calls, say done and return; run each call and put the results into the messages.",
            'A result is {"type": "tool_result", "tool_use_id": <the call\'s id>, "content": <text>}. All results of one reply go into one message of role "user".',
        ),
        _LOOP,
        _loop,
    ),
    Exercise(
        "01.safe",
        "your loop ends by itself when the model does not, and answers calls of tools that do not exist",
        (
            "`while True` trusts the model to end. What else could count?",
            "A `for` over `range(max_turns)`, and one more event after it. For unknown names: `tools.get(name)` gives None instead of raising.",
            'After the for loop: `yield "done", "max_turns"`. For a missing tool the result is a sentence with its name; everything else stays as it was.',
        ),
        _SAFE,
        _safe,
    ),
    Exercise(
        "01.swap",
        "you found your own steps in the events of the real loop",
        (
            "Print `[event.type for event in events]` of a run: which of these names mean the same as think, reply, call, result and done?",
            "request_sent, reply_ended, call_started, call_ended, run_ended; all others give None.",
            'A `match event.type:` with five cases. The end\'s pair is ("done", str(event.reason)).',
        ),
        _SWAP,
        _swap,
    ),
)  # fmt: skip
