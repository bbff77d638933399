"""Scripts of runs with subagents, named in tests as `scripted:tests.app.agent_scripts:NAME`."""

from __future__ import annotations

from nbagent.models.scripted import ScriptedModel, call, prompt_text, result_of


def delegates() -> ScriptedModel:
    """Hands one task to Explore; parent and subagent play one script in turns."""
    sent = call("task", description="find x", prompt="what is x?", agent="Explore")
    return ScriptedModel([sent, call("list_variables"), "x is 1", lambda seen: f"told: {result_of(seen, 'task')}"])


def looks() -> ScriptedModel:
    """What Explore does for `%agent explore`."""
    return ScriptedModel([call("list_variables"), "x is 1"])


def changes() -> ScriptedModel:
    """An Explore that tries to change something."""
    return ScriptedModel([call("run_python", code="x = 2"), call("write_file", path="a.txt", content="a"), "no"])


def repeats() -> ScriptedModel:
    """Says what it was told."""
    return ScriptedModel([lambda seen: str([m["content"] for m in seen]), prompt_text])
