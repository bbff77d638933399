"""Scripts of long runs, named in tests as `scripted:tests.app.long_scripts:NAME`."""

from __future__ import annotations

from nbagent.core.messages import Usage
from nbagent.models.scripted import ScriptedModel, Turn, call, say


def stops() -> ScriptedModel:
    """Reaches a limit of one turn and says what is left."""
    return ScriptedModel([call("list_variables"), "Done: looked. Left: the rest."])


def goes_on() -> ScriptedModel:
    """Says what it was asked for last."""
    return ScriptedModel([lambda seen: str(seen[-1]["content"])])


def fills() -> ScriptedModel:
    """Fills a window of 1,000 tokens, is summed up, and says what it then knows."""
    full = Turn([say("I look"), call("read_notebook"), call("list_variables")], usage=Usage(input=900))
    return ScriptedModel([full, "SUMMARY: x is 1", lambda seen: str([m["content"] for m in seen])])


def sums_up() -> ScriptedModel:
    """What is said when a person asks for a summary."""
    return ScriptedModel([lambda seen: f"BRIEF of {len(seen)}: {seen[-1]['content'][0]['text'][-30:]}"])


def has_nothing() -> ScriptedModel:
    """Has nothing to say."""
    return ScriptedModel([])
