"""Scripts that the tests name."""

from nbagent.models.scripted import ScriptedModel, say

TURNS = [say("one"), "two"]
NUMBER = 7


def make() -> list[object]:
    return list(TURNS)


def make_model() -> ScriptedModel:
    return ScriptedModel(["three"], name="made")
