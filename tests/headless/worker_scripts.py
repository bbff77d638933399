"""Scripts for jobs in workers: found by name in the worker's own process."""

from __future__ import annotations

from nbagent.core.messages import Usage
from nbagent.models.scripted import ScriptedModel, Turn, call, result_of


def hello() -> ScriptedModel:
    return ScriptedModel(
        [
            Turn([call("list_variables")], usage=Usage(100, 10)),
            lambda seen: Turn("Hello " + result_of(seen, "list_variables"), usage=Usage(200, 20)),
        ]
    )
