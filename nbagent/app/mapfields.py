"""Answers with named fields: what a map asks for with `schema`, the tool by which a run gives it, and how it is read back.

The answer stands in the run's transcript as a call of the tool `answer`, so it is there after any crash. Must not know of
tables or workers. Read `fields_of`, then `answering`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.messages import Json
from nbagent.core.tools import Call, Kind, Result, Tool
from nbagent.extend.hooks_python import hook_of
from nbagent.extend.mcp_schema import Arguments
from nbagent.extend.mcp_tool import foreign
from nbagent.extend.sessions import read_session

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.jobs import Job

NAME = "answer"
"""The tool by which a run gives its answer."""

ROLE = "nbagent.app.mapfields:answering"
"""What a worker is told to do before the run (`Job.role`)."""

_DESCRIPTION = (
    "Give the answer to the task, as the fields that are asked for, and end. Call it once, when all of it is known: nothing "
    "is done after it."
)
_STILL = "The task asks for named fields. Call the tool `answer` with all of them now."
_KINDS: Mapping[str, type] = {"str": str, "int": int, "float": float, "bool": bool, "text": str, "number": float}


@dataclass(frozen=True, slots=True)
class Fields:
    """Which fields an answer has: a JSON `schema`, and the pydantic `model` that reads them (None: as they are)."""

    schema: Json
    model: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields, in their order."""
        return tuple(self.schema.get("properties", {}))

    def read(self, given: Json) -> Json:
        """Return the fields of an answer as JSON; raises `ToolError` where they are not as asked for."""
        if self.model is None:
            return dict(Arguments.of(self.schema, limit=10**6).check(NAME, given))
        from pydantic import ValidationError

        try:
            return self.model.model_validate(given).model_dump(mode="json")
        except ValidationError as error:
            said = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in error.errors()[:5])
            raise ToolError(f"The answer's fields are not as asked for: {said}") from None


def fields_of(schema: object) -> Fields | None:
    """Return the fields that `schema` asks for: a dict of name → type (or list of choices), a pydantic model, a JSON schema.

    None asks for none. Raises `ConfigError` for what is nothing of these.
    """
    if schema is None:
        return None
    if isinstance(schema, Mapping):
        found = cast("Mapping[str, Any]", schema)
        if found.get("type") == "object" and isinstance(found.get("properties"), Mapping):
            return Fields(json.loads(json.dumps(found)))
        return _of_types(found)
    if hasattr(schema, "model_json_schema") and hasattr(schema, "model_validate"):
        model: Any = schema
        return Fields(model.model_json_schema(), model)
    raise ConfigError(
        f"schema = {schema!r} says no fields. Take a dict such as {{'total': float, 'currency': ['EUR', 'USD']}}, a pydantic "
        "model, or a JSON schema of an object."
    )


def _of_types(given: Mapping[str, Any]) -> Fields:
    from pydantic import ConfigDict, PydanticSchemaGenerationError, PydanticUserError, create_model

    if not given:
        raise ConfigError("schema has no fields.")
    fields: dict[str, Any] = {}
    for name, kind in given.items():
        if not str(name).isidentifier():
            raise ConfigError(f"schema: {name!r} is no name for a column: letters, digits and _.")
        fields[name] = (_type(name, kind), ...)
    try:
        model: Any = create_model("Answer", __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)
        return Fields(model.model_json_schema(), model)
    except (PydanticSchemaGenerationError, PydanticUserError, NameError, TypeError) as error:
        raise ConfigError(f"schema can't be read: {str(error).splitlines()[0]}") from None


def _type(name: str, kind: Any) -> Any:
    """Return the type that is meant by a type, its name, or a list of the values that are allowed."""
    if isinstance(kind, list | tuple) and kind:
        return Literal[tuple(kind)]  # type: ignore[valid-type]  # made of the person's values
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ConfigError(f"schema: {name} = {kind!r} is no type. The names are {', '.join(_KINDS)}.")
        return _KINDS[kind]
    return kind


# ── in the worker ────────────────────────────────────────────────────────────────────────────────────────────────────


def answering(extension: Extension, job: Job) -> None:
    """Offer the tool `answer` to the run of a job, and keep the run from its end until it was called, once."""
    given = [False]

    async def take(call: Call, arguments: Json) -> Result:
        given[0] = True
        call.answered(json.dumps(arguments, ensure_ascii=False))
        return Result.of("Taken.")

    def still(_: Json) -> Json:
        return {} if given[0] or _.get("stop_hook_active") else {"decision": "block", "reason": _STILL}

    extension.tools = [tool for tool in extension.tools if tool.name != NAME] + [_tool(job.about["schema"], take)]
    extension.hooks.register(hook_of(still, "Stop"))


def _tool(schema: Json, take: Any) -> Tool:
    takes = Arguments.of(schema)
    return foreign(NAME, _DESCRIPTION, takes, take, kind=lambda: Kind.READ, title="Answer:")


# ── in the process that gave the work out ────────────────────────────────────────────────────────────────────────────


def answer_in(session: Path) -> Json | None:
    """Return the fields that the run of a session gave last, None where it gave none that were taken."""
    found = read_session(session)
    taken: Json | None = None
    calls: dict[str, Json] = {}
    for message in found.messages if found is not None else ():
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "tool_use" and block.get("name") == NAME:
                calls[str(block["id"])] = block["input"]
            elif block.get("type") == "tool_result" and not block.get("is_error") and block["tool_use_id"] in calls:
                taken = calls[str(block["tool_use_id"])]
    return taken
