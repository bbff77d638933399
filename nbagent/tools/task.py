"""The tool by which the model hands a part of its work to a subagent: `task`, in the shape of Claude Code's Agent tool.

It must not know where kinds of subagents, models, sessions or tools come from (`Making`), nor how a subagent runs
(`Call.spawn`, `Call.start`). Read `Tasks.run`, then `Tasks.start`.
"""

from __future__ import annotations

import asyncio
import difflib
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from nbagent.core.agents import AgentSpec, Child
from nbagent.core.errors import ConfigError, Interrupted, ToolError
from nbagent.core.events import Reason, RunEnded
from nbagent.core.hooks import Hooks
from nbagent.core.limits import PRESETS
from nbagent.core.messages import Json, clean, text_block
from nbagent.core.narrowing import chosen
from nbagent.core.ports import Model, Preview
from nbagent.core.session import Session
from nbagent.core.tools import Call, Kind, Result, Tool, Toolset, tool

GENERAL = "general-purpose"
AT_ONCE = 10
"""Subagents of one conversation that run at the same time; more wait for a place."""

NOT_FOR_CHILDREN = frozenset({"ask_user", "enter_plan", "exit_plan", "task", "agent_output"})
"""Tools that no subagent has; `task` comes back where it may have subagents of its own."""

Thoroughness = Literal["quick", "medium", "very thorough"]
TURNS: dict[str, int] = {
    "quick": PRESETS["lookup"], "medium": PRESETS["research"], "very thorough": PRESETS["autonomous"],
}  # fmt: skip
"""The limit of turns by thoroughness, for kinds that name none of their own."""

LONGEST_WAIT = 600.0
"""Seconds for which `agent_output` waits at most."""

_STARTED = (
    "{0} goes on in the background as {1}. You are told what it found in a message, at a later turn or with the person's next "
    "prompt: don't wait for it and don't ask again and again. Go on with other work, or end your turn. Only if you can't go on "
    "without it, agent_output(id={1!r}, wait=60) waits."
)
_NOT_BESIDE = "a subagent waits for the subagents of its own: leave run_in_background out"
_FINE = frozenset({Reason.END_TURN, Reason.MAX_TURNS, Reason.BUDGET, Reason.MAX_TOKENS})


async def _nothing(_: AgentSpec) -> str:
    return ""


def _inherited(_: AgentSpec) -> Hooks | None:
    return None


@dataclass(frozen=True, slots=True)
class Making:
    """What subagents are made of.

    `specs` gives the kinds by name, read anew. `tools` makes a new set of tools for one subagent, all that its parent
    has. `model` opens a model by name ("" and "inherit": the parent's, which is its second argument); it raises
    `ConfigError`. `session` begins a session for an id, with the first record's facts, and gives the path of its file.
    `told` is what a kind is told before its task: the place, instructions, notes. `beside` makes the tools of one that goes on
    beside its parent, by its kind, id and title (None: none can). `hooks` are those of a kind beside the session's own.
    """

    specs: Callable[[], Mapping[str, AgentSpec]]
    tools: Callable[[AgentSpec], Iterable[Tool]]
    model: Callable[[AgentSpec, str, Model], Model]
    session: Callable[[str, AgentSpec, tuple[Json, ...], Json], tuple[Session, str]]
    told: Callable[[AgentSpec], Awaitable[str]] = _nothing
    beside: Callable[[AgentSpec, str, str], Iterable[Tool]] | None = None
    hooks: Callable[[AgentSpec], Hooks | None] = _inherited


class Tasks:
    """The subagents of one run. `depth`: how many levels of them there may be; `parent` gives the model of who asks."""

    def __init__(
        self, making: Making, parent: Callable[[], Model], *, depth: int = 1, places: asyncio.Semaphore | None = None
    ) -> None:
        self._making, self._parent, self._depth = making, parent, depth
        self._places = places or asyncio.Semaphore(AT_ONCE)

    async def run(self, call: Call, prompt: str, agent: str, title: str, model: str, thoroughness: str) -> Result:
        """Run a subagent to its end and return what it says, and what it cost."""
        child = await self.prepare(prompt, agent, title, model, thoroughness, call)
        if self._places.locked():
            call.progress("waits until another subagent has ended")
        async with self._places:
            call.progress("")
            ended = await _spawned(call, child)
        return result_of(child, ended)

    async def start(self, call: Call, prompt: str, agent: str, title: str, model: str, thoroughness: str) -> Result:
        """Begin a subagent that goes on beside the run, and say so at once."""
        if self._making.beside is None:
            raise ToolError(_NOT_BESIDE)
        child = await self.prepare(prompt, agent, title, model, thoroughness, call, beside=True)
        await call.start(child)
        return Result(
            (text_block(_STARTED.format(child.spec.name, child.id)),), f"goes on in the background as {child.id}"
        )

    def in_background(self, agent: str) -> bool:
        """Whether a kind goes on in the background unless it is told otherwise."""
        spec = self._making.specs().get(agent)
        return spec is not None and spec.background and self._making.beside is not None

    async def prepare(
        self,
        prompt: str,
        agent: str,
        title: str,
        model: str,
        thoroughness: str,
        call: Call | None = None,
        *,
        beside: bool = False,
    ) -> Child:
        """Make a subagent that is ready to run; raises `ToolError` with a sentence for the model."""
        spec, agent_id = self._spec(agent), f"agent-{secrets.token_hex(4)}"
        if not clean(prompt).strip():
            raise ToolError("the prompt is empty: say what is to be done, with all that it needs to know")
        if spec.isolation:
            raise ToolError(
                f"{spec.name} works on a copy of the project (isolation: {spec.isolation}), which is not possible here"
            )
        try:
            opened = self._making.model(spec, model.strip(), self._parent())
            own = self._making.beside(spec, agent_id, title) if beside and self._making.beside is not None else None
            tools = self._tools(spec, opened, own)
            hooks = self._making.hooks(spec)
        except ConfigError as error:
            raise ToolError(str(error)) from error
        about: Json = {
            "agent": spec.name,
            "title": title,
            "parent": call.session if call else "",
            "call": call.id if call else "",
        }
        session, path = self._making.session(agent_id, spec, tools.params(), about)
        told = await self._making.told(spec)
        blocks = [text_block(f"<context>\n{told}\n</context>")] if told.strip() else []
        task = f"{clean(prompt).strip()}\n\nThoroughness: {thoroughness}." if spec.max_turns is None else clean(prompt)
        return Child(
            id=agent_id, spec=spec, title=title, model=opened, tools=tools, session=session,
            blocks=[*blocks, text_block(task)], prompt=prompt, max_turns=spec.max_turns or TURNS[thoroughness],
            hooks=hooks, transcript=path,
        )  # fmt: skip

    def _spec(self, name: str) -> AgentSpec:
        specs = self._making.specs()
        if name in specs:
            return specs[name]
        near = difflib.get_close_matches(name.lower(), [known.lower() for known in specs], 1)
        hint = next((f" Did you mean {known}?" for known in specs if near and known.lower() == near[0]), "")
        raise ToolError(f"there is no agent {name!r}.{hint} There are: {', '.join(specs)}")

    def _tools(self, spec: AgentSpec, model: Model, own: Iterable[Tool] | None = None) -> Toolset:
        made = self._making.tools(spec) if own is None else own
        tools = [tool for tool in made if tool.name not in NOT_FOR_CHILDREN]
        if self._depth > 1:
            deeper = Tasks(
                replace(self._making, beside=None),
                lambda: model,
                depth=self._depth - 1,
                places=asyncio.Semaphore(AT_ONCE),
            )
            tools.append(task_tool(deeper))
        return Toolset(chosen(tools, spec))


async def _spawned(call: Call, child: Child) -> RunEnded:
    try:
        return await call.spawn(child)
    except Interrupted as stopped:
        raise Interrupted(f"{child.spec.name} ({child.id}): {stopped.output}") from stopped


def result_of(child: Child, ended: RunEnded) -> Result:
    """Return a subagent's end as the result of its call: its answer, or what is done and what is left."""
    tokens = f"{ended.usage.total:,} tokens"
    foot = f"[{child.spec.name} {child.id}: stop_reason={ended.reason}, {ended.turns} turns, {tokens}]"
    words = ended.text.strip()
    if ended.reason is Reason.END_TURN:
        text = words or f"(It ended without a word. {ended.sentence})"
    else:
        said = f"What it says is done and left:\n{words}" if words else "It did not say what is done and what is left."
        text = (
            f"NOT FINISHED ({ended.reason}). {ended.sentence}\n\n{said}\n\n"
            "What it did stays. Go on from there yourself, or give what is left to another task."
        )
    cost = "" if not ended.cost else f" · {ended.cost:.2f} USD"
    turns = f"{ended.turns} turn{'' if ended.turns == 1 else 's'}"
    summary = f"{turns} · {tokens}{cost}"
    if ended.reason is not Reason.END_TURN:
        summary = f"not finished ({str(ended.reason).replace('_', ' ')}) · {summary}"
    return Result((text_block(text), text_block(foot)), summary, ended.reason not in _FINE, ended.cells)


def listing(specs: Mapping[str, AgentSpec], known: Sequence[str] = ()) -> str:
    """Return the kinds of subagents beside those `known` already, a line each, for a message; "" where there are none."""
    lines = [
        f"- {name}: {' '.join(clean(spec.description).split())[:1000]}"
        for name, spec in specs.items()
        if name not in known
    ]
    return "\n".join(["More agents for the tool `task`:", *lines]) if lines else ""


def task_tool(tasks: Tasks) -> Tool:
    """Return `task`."""

    def title(given: Json) -> str:
        return f"{given['agent']}: {given['description'].strip()}"[:160]

    @tool(
        kind=Kind.READ,  # what it does is decided call by call, by its parent's gate
        subject=lambda given: f"{given['agent']} {given['description']}".strip(),
        title=title,
        preview=lambda given: Preview("text", given["prompt"]),
        beside=True,
    )
    async def task(
        call: Call,
        description: str,
        prompt: str,
        agent: str = GENERAL,
        model: str = "",
        thoroughness: Thoroughness = "medium",
        run_in_background: bool | None = None,
    ) -> Result:
        """Hand a task to a subagent: it works with a context of its own and comes back with one answer.

        Use it for work that reads much and needs little said of it, and for parts that don't depend on one another:
        several of these calls in one reply run side by side. Don't use it for what one or two calls of yours can do. It
        sees nothing of this conversation and can't ask back: the prompt must have all that it needs, and say what to
        report. Its answer goes to you only: tell the person what matters. What it may do is never more than what you may.

        Kinds: Explore (only looks: finds things in the notebook, variables and files), Plan (only looks: works out how to
        do something), general-purpose (all tools). You are told in a message if there are more.

        Args:
            description: three to five words on what it does, for the person.
            prompt: the whole task.
            agent: which kind.
            model: another model than the kind's own: haiku, sonnet, opus, or an id.
            thoroughness: how far it goes: "quick" is one lookup, "very thorough" a long search.
            run_in_background: true lets it go on beside you: the call returns at once, and you are told in a message when it
                has ended. For long work whose result you don't need now.
        """
        beside = tasks.in_background(agent) if run_in_background is None else run_in_background
        go = tasks.start if beside else tasks.run
        return await go(call, prompt, agent, clean(description).strip()[:80], model, thoroughness)

    return task


Look = Callable[[str, float], Awaitable[str]]
"""Waits for a subagent in the background, by its id, for so many seconds at most, and says how it is; raises `ToolError`."""


def output_tool(look: Look) -> Tool:
    """Return `agent_output`."""

    @tool(kind=Kind.READ, subject=lambda given: given["id"], title=lambda given: f"look at {given['id']}"[:160])
    async def agent_output(id: str, wait: float = 0.0) -> str:  # noqa: A002  (the model's word)
        """Look what a subagent in the background does or has found, or wait for its end.

        You are told in a message when it has ended, so use this only where you can't go on without its answer.

        Args:
            id: the id that the task gave.
            wait: seconds to wait for its end, 600 at most; 0 only looks.
        """
        return await look(id.strip(), min(max(wait, 0.0), LONGEST_WAIT))

    return agent_output


def without_children(tools: Iterable[Tool]) -> list[Tool]:
    """Return the tools of a run that has no subagents."""
    return [tool for tool in tools if tool.name not in {"task", "agent_output"}]


def asked_for(words: str) -> tuple[Thoroughness, str]:
    """Split what a person wrote after `%agent explore`: how thorough, if it begins with that, and the rest."""
    choices: tuple[Any, ...] = ("very thorough", "medium", "quick")
    for choice in choices:
        head, rest = words[: len(choice)], words[len(choice) :]
        if head.lower() == choice and (not rest or not rest[0].isalnum()):
            return choice, rest.lstrip(" :,")
    return "medium", words
