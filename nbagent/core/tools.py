"""A tool is a typed async function; its docstring is its description and its signature is its schema.

Read `tool` (the decorator) first. pydantic is imported when the first tool is built, not with this module.
This module knows nothing of what any tool does.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, get_type_hints, overload

from nbagent.core.errors import ToolError
from nbagent.core.hooks import Verdict
from nbagent.core.messages import Block, Json, text_block
from nbagent.core.payloads import Payload
from nbagent.core.ports import Preview, Question
from nbagent.core.rules import Grammar

if TYPE_CHECKING:
    from nbagent.core.agents import Child
    from nbagent.core.events import RunEnded

ToolFunction = Callable[..., Awaitable[Any]]


class Kind(StrEnum):
    """What a call does to the person's things: the row of the policy table that it falls in."""

    READ = "look"
    SCRATCH = "run scratch code"
    EDIT_CELL = "add, edit or move a cell without running it"
    RUN_CELL = "run or delete a cell"
    WRITE_FILE = "write a file"
    SHELL = "shell or network"
    SHELL_READ = "read-only shell command"
    MCP = "use a tool of an MCP server that is not marked read-only"
    RUN_ALL = "run many cells at once"
    LONG_RUN = "run a cell whose last run took long"
    KEPT = "run a cell that is marked “don't rerun”"
    RISKY_CODE = "run code that shells out, deletes, installs or goes to the network"
    PUTS_BACK = "put a hidden secret into a cell or file where it was not before"
    PLAN = "end planning and begin to do it"
    PROTECTED = "touch a protected path, end the kernel or answer nbagent's own questions"


@dataclass(frozen=True, slots=True)
class Result:
    """What a call gives: blocks for the model, a short line for people, and the ids of the cells it touched.

    `code` says of code that was begun: "goes on", "limit" (it was stopped at its time limit), else "".
    """

    content: tuple[Block, ...]
    summary: str = ""
    is_error: bool = False
    cells: tuple[str, ...] = ()
    code: Literal["", "goes on", "limit"] = ""

    @classmethod
    def of(cls, value: Any) -> Result:
        """Make a result from what a tool function returned: a Result, text, None, a list of text and image blocks, or a JSON value."""
        if isinstance(value, Result):
            return value
        if value is None or (isinstance(value, str) and not value.strip()):
            return cls((text_block("(no output)"),))
        if isinstance(value, str):
            return cls((text_block(value),))
        if isinstance(value, list) and value and all(_is_block(item) for item in value):
            return cls(tuple(value))
        return cls((text_block(json.dumps(value, ensure_ascii=False, default=str)),))


def _is_block(value: Any) -> bool:
    """Whether `value` is a block that a result may hold: only these reach the transcript, all else becomes text."""
    if not isinstance(value, dict):
        return False
    match value.get("type"):
        case "text":
            return isinstance(value.get("text"), str) and bool(value["text"].strip())
        case "image":
            return isinstance(value.get("source"), dict)
        case _:
            return False


async def silent(_: Payload) -> Verdict:
    """Say what hooks say where there are none."""
    return Verdict()


async def childless(_: Child) -> RunEnded:
    """Say that no subagent can run here."""
    raise ToolError("no subagent can be started here")


async def never_beside(_: Child) -> None:
    """Say that no subagent can go on beside this run."""
    raise ToolError("no subagent can go on in the background here: leave run_in_background out")


def _no_mode(_: str) -> None:
    """Nothing shows the mode."""


def _no_todos(_: Sequence[Json]) -> None:
    """Nothing shows the to-do list."""


def _no_run(_: str) -> None:
    """There is no run that could end."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a running tool function may know and say of its own call."""

    id: str
    progress: Callable[[str], None]
    """Say in a short line how far the call is; it replaces the line before."""
    ask: Callable[[Question], Awaitable[str]]
    """Put a question to the person and wait; returns "" at once where nobody is there."""
    session: str = ""
    run: str = ""
    """Ids of the session and the run that the call belongs to."""
    hook: Callable[[Payload], Awaitable[Verdict]] = silent
    """Ask the hooks about something that the call does (a task that it makes); what they say to the model is told."""
    spawn: Callable[[Child], Awaitable[RunEnded]] = childless
    """Run a subagent inside the call, to its end; its events are shown under the call. Raises `Interrupted`."""
    mode_is: Callable[[str], None] = _no_mode
    """Say that another permission mode is in force from now on."""
    together: Callable[[Sequence[Question]], Awaitable[list[str]]] | None = None
    """Put several questions at once, where the person can be shown them together."""
    todos_are: Callable[[Sequence[Json]], None] = _no_todos
    """Show another to-do list in the place of the one before."""
    answered: Callable[[str], None] = _no_run
    """End the run after this call, done: what the call was given is the answer, and the text stands for it without words."""
    start: Callable[[Child], Awaitable[None]] = never_beside
    """Begin a subagent that goes on beside the run, and return at once. Raises `ToolError` where it can't be."""

    soon: Callable[[str], None] = _no_run
    """Say in a short line how far the call is from a thread, while synchronous code holds the loop; it is kept nowhere."""

    async def ask_all(self, questions: Sequence[Question]) -> list[str]:
        """Put questions to the person, together where that is possible, and return the answers in their order."""
        if self.together is not None:
            return await self.together(questions)
        return [await self.ask(question) for question in questions]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `kind`, `subject`, `title` and `preview` take the validated input of a call.

    `subject` is what a rule's pattern is matched against (a path, a command, code); `title` a short line for people.
    `exact` says that a pattern must equal the subject (tools that run code): no globs. `amend` puts a preview's body,
    as a person changed it, into the input (None: it can't be changed). `target` names what a call changes, "" something
    new (None: the call is always asked about alone): calls with different targets can be asked about in one card.
    `grammar` reads the rules for the tool (None: `rules.Plain`). `beside`: neighbouring calls of it run side by side.
    """

    name: str
    description: str
    schema: Json
    function: ToolFunction
    kind: Callable[[Json], Kind]
    subject: Callable[[Json], str]
    title: Callable[[Json], str]
    preview: Callable[[Json], Preview]
    exact: bool = False
    amend: Callable[[Json, str], Json] | None = None
    target: Callable[[Json], str] | None = None
    grammar: Grammar | None = None
    beside: bool = False
    _model: list[Any] = field(default_factory=list[Any])

    def to_param(self) -> Json:
        """Return the tool as the `tools` entry of a request."""
        return {"name": self.name, "description": self.description, "input_schema": self.schema}

    def validate(self, given: Json) -> Json:
        """Return `given` with defaults filled in; raise `ToolError` that names each wrong argument and what is expected."""
        from pydantic import ValidationError  # noqa: PLC0415  (see the module's docstring)

        try:
            return self._model[0].model_validate(given).model_dump()
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(str(p) for p in e['loc']) or 'input'}: {e['msg'][:1].lower()}{e['msg'][1:]}"
                for e in error.errors()
            )
            message = f"wrong arguments for {self.name}: {problems}. Expected: {self.signature}"
            raise ToolError(message) from None

    @property
    def signature(self) -> str:
        """The arguments as a person would write them down, e.g. `path: string, limit: integer = 200`."""
        required = set(self.schema.get("required", []))
        parts = [
            f"{name}: {_type_name(spec)}" + ("" if name in required else f" = {spec.get('default')!r}")
            for name, spec in self.schema.get("properties", {}).items()
        ]
        return f"{self.name}({', '.join(parts)})"

    async def run(self, call: Call, given: Json) -> Result:
        """Run the function on validated input."""
        return Result.of(await self.function(call, **given))


class Toolset(Mapping[str, Tool]):
    """Tools by name, in a fixed order; raises ValueError on two of one name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for item in tools:
            if item.name in self._tools:
                msg = f"two tools are named {item.name!r}"
                raise ValueError(msg)
            self._tools[item.name] = item

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def params(self) -> tuple[Json, ...]:
        """Return all tools as the `tools` of a request."""
        return tuple(item.to_param() for item in self._tools.values())


def _nothing(_: Json) -> Preview:
    return Preview()


@overload
def tool(function: ToolFunction, /) -> Tool: ...
@overload
def tool(
    function: None = None,
    /,
    *,
    name: str | None = None,
    kind: Kind | Callable[[Json], Kind] = Kind.READ,
    subject: Callable[[Json], str] | str | None = None,
    title: Callable[[Json], str] | None = None,
    preview: Callable[[Json], Preview] = _nothing,
    exact: bool = False,
    amend: str | Callable[[Json, str], Json] | None = None,
    target: Callable[[Json], str] | None = None,
    grammar: Grammar | None = None,
    beside: bool = False,
) -> Callable[[ToolFunction], Tool]: ...


def tool(
    function: ToolFunction | None = None,
    /,
    *,
    name: str | None = None,
    kind: Kind | Callable[[Json], Kind] = Kind.READ,
    subject: Callable[[Json], str] | str | None = None,
    title: Callable[[Json], str] | None = None,
    preview: Callable[[Json], Preview] = _nothing,
    exact: bool = False,
    amend: str | Callable[[Json, str], Json] | None = None,
    target: Callable[[Json], str] | None = None,
    grammar: Grammar | None = None,
    beside: bool = False,
) -> Tool | Callable[[ToolFunction], Tool]:
    """Make a `Tool` of an async function whose first parameter is its `Call`.

    The docstring's first part is the description; a Google-style `Args:` section describes the arguments; types and
    defaults come from the signature. `kind` is a row of the policy table or a function of the input; `subject` names
    the argument (or computes the text) that rules match; without it the first argument is taken. `amend` names the
    argument that holds the preview's body (or puts it into the input), if a person may change it before they approve;
    `target`, `grammar` and `beside`: see `Tool`.
    """

    def build(func: ToolFunction) -> Tool:
        tool_name = name or func.__name__
        description, arguments = _parse_docstring(inspect.getdoc(func) or "")
        model = _input_model(func, tool_name, arguments)
        schema = _schema(model)
        first = next(iter(schema.get("properties", {})), None)
        key = subject if isinstance(subject, str) else first
        of_kind = kind if not isinstance(kind, Kind) else _always(kind)
        of_subject = subject if callable(subject) else lambda given: str(given.get(key, "")) if key else ""
        return Tool(
            name=tool_name,
            description=description,
            schema=schema,
            function=func,
            kind=of_kind,
            subject=of_subject,
            title=title or (lambda given: _default_title(tool_name, of_subject(given))),
            preview=preview,
            exact=exact,
            amend=_putting(amend) if isinstance(amend, str) else amend,
            target=target,
            grammar=grammar,
            beside=beside,
            _model=[model],
        )

    return build(function) if function is not None else build


def _always(kind: Kind) -> Callable[[Json], Kind]:
    return lambda _: kind


def _putting(argument: str) -> Callable[[Json, str], Json]:
    return lambda given, body: {**given, argument: body}


def _default_title(name: str, subject: str) -> str:
    lines = subject.strip().splitlines()
    short = lines[0][:80] if lines else ""
    return f"{name} {short}".strip()


def _input_model(func: ToolFunction, tool_name: str, arguments: Mapping[str, str]) -> Any:
    from pydantic import ConfigDict, Field, create_model  # noqa: PLC0415

    hints = get_type_hints(func, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(func).parameters.values())[1:]:
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        described = Field(default, description=arguments.get(parameter.name))
        fields[parameter.name] = (hints.get(parameter.name, Any), described)
    return create_model(f"{tool_name}_input", __config__=ConfigDict(extra="forbid"), **fields)


def _schema(model: Any) -> Json:
    schema: Json = model.model_json_schema()
    schema.pop("title", None)
    for spec in schema.get("properties", {}).values():
        spec.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def _type_name(spec: Json) -> str:
    if "enum" in spec:
        return " | ".join(repr(v) for v in spec["enum"])
    if "anyOf" in spec:
        return " | ".join(_type_name(s) for s in spec["anyOf"])
    return str(spec.get("type", "any"))


_ARGUMENT = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


def _parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a Google-style docstring into its description and the texts of its `Args:` section."""
    head, _, rest = text.partition("\nArgs:\n")
    arguments: dict[str, str] = {}
    current = ""
    for line in inspect.cleandoc(rest).splitlines():
        if re.match(r"^\w+:$", line):  # the next section
            break
        if (found := _ARGUMENT.match(line)) and not line.startswith(" "):
            current = found[1]
            arguments[current] = found[2].strip()
        elif current and line.strip():
            arguments[current] += " " + line.strip()
    return head.strip(), arguments
