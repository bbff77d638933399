"""Subagents and plan mode in a notebook: which kinds there are, what each is made of, and `%agent explore | plan | agents`.

How a subagent runs is in core/subagents.py, what the model calls in tools/task.py and tools/plan.py. Read `Subagents.join`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from nbagent.app.conversation import Conversation
from nbagent.app.model import RunModel, model_of, open_beside
from nbagent.app.recording import NO_TAPES, Tapes
from nbagent.config import Settings
from nbagent.core.agents import AgentSpec
from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.hooks import Hooks
from nbagent.core.messages import Json, clean, plain_text
from nbagent.core.policy import Mode, Policy
from nbagent.core.ports import Model, Notebook
from nbagent.core.rules import Rule
from nbagent.core.run import Agent
from nbagent.core.session import Session
from nbagent.core.shown import visible_plain
from nbagent.core.subagents import spawn
from nbagent.core.tools import Call, Tool
from nbagent.extend.agentfiles import Agents, load_agents, notes_folder
from nbagent.extend.folder import FolderFiles
from nbagent.extend.hooks import HookTable
from nbagent.extend.hooks_settings import Source, as_subagent, read
from nbagent.extend.memory import Memory
from nbagent.extend.places import Places
from nbagent.extend.render import Invocation, Surroundings, render
from nbagent.extend.sessions import JsonlStore
from nbagent.models.catalog import at_most
from nbagent.models.scripted import ScriptedModel, call, result_of
from nbagent.prompt.agents import built_in, system_prompt
from nbagent.tools import plan, remember, task
from nbagent.tools.results import clip
from nbagent.view.text import one_line

if TYPE_CHECKING:
    from nbagent.app.besides import Besides
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place

EXPLORE_AT_MOST = "opus"
"""The largest model that Explore inherits, as in Claude Code."""
_SUBAGENT_MODEL = "CLAUDE_CODE_SUBAGENT_MODEL"
_TOLD = 4_000
_NOTE_TOOLS = ("remember", "recall")
ASK_WHAT = "Say what to look for: %agent explore [quick | medium | very thorough] where is revenue computed?"
PLAN_WHAT = "Say what to plan: %agent plan clean the customer table and join it to the orders"


@dataclass(frozen=True, slots=True)
class Errand:
    """One task of the person's for a subagent, without the conversation's model: `%agent explore`."""

    agent: str
    thoroughness: str

    keeps: ClassVar[tuple[str, ...]] = ()
    """Rules that allow what the person has asked for with it."""

    def model(self, words: str) -> Model:
        """Return what stands in for a model: it makes this one call and answers with what came out."""
        sent = call(
            "task",
            description=" ".join(words.split()[:6])[:60],
            prompt=words,
            agent=self.agent,
            thoroughness=self.thoroughness,
            run_in_background=False,
        )

        def answer(transcript: object) -> str:
            text = result_of(transcript, "task")  # type: ignore[arg-type]  # the messages of a request
            return text.rpartition("\n[")[0].strip() or text  # without the line on what it took

        return ScriptedModel([sent, answer], name=self.agent)

    def tools(self, notebook: Notebook | None) -> list[Tool]:  # noqa: ARG002  (an errand of its own may have some)
        """Return the tools that only this errand has."""
        return []

    def heard(self, words: str, text: str) -> str:
        """Return what the conversation is told of it with the next prompt."""
        said = clip(text, _TOLD)
        return f"The person ran `%agent explore {clean(words)}`. An {self.agent} subagent answered:\n{said}"


def _at_the_same_server(wanted: Model, parent: Model) -> None:
    """Raise `ConfigError` where a call or a project's file would send the work to a server that the person did not choose."""
    here, there = (str(getattr(model, "place", "")) for model in (parent, wanted))
    if here and there and here != there:
        raise ConfigError(
            f"{wanted.name} is at another server than this run's model, {parent.name}: only the person may send work "
            "there (a kind of subagent of their own, or CLAUDE_CODE_SUBAGENT_MODEL). Leave the model out."
        )


class Subagents:
    """The subagents and the plan mode of one run. Its `tools` are there first; `join` gives them what they work with.

    `stands_in`: the run's model is none (an errand's), so subagents that inherit get the one of the settings.
    """

    def __init__(
        self, extension: Extension, settings: Settings, place: Place, *, stands_in: bool, tapes: Tapes = NO_TAPES
    ) -> None:
        self._extension, self._settings, self._place, self._stands_in = extension, settings, place, stands_in
        self._metered = tapes.through(extension.metered)
        self._replays = tapes.replay is not None
        self._agent: Agent | None = None
        self._conversation: Conversation | None = None
        self._fresh: Callable[[], Iterable[Tool]] = list
        self._gate = Policy(settings.mode)
        making = task.Making(self.specs, self._tools, self._model, self._session, self._told, self._beside, self._hooks)
        self._tasks = task.Tasks(making, self._parent, depth=settings.agent_depth)
        self.planning = plan.Planning(lambda: self, lambda: place.approver.present, self._leave)
        self.web: tuple[Json, ...] = ()  # tools of the model's server that the run offers
        self.besides: Besides | None = None
        self.tools: list[Tool] = [
            task.task_tool(self._tasks), task.output_tool(self._look), *plan.tools(self.planning),
        ]  # fmt: skip

    def join(
        self, agent: Agent, gate: Policy, conversation: Conversation, fresh: Callable[[], Iterable[Tool]]
    ) -> Agent:
        """Return `agent` with subagents. `gate` is the run's own; `fresh` makes its tools anew, for one subagent."""
        self._agent, self._gate, self._conversation, self._fresh = agent, gate, conversation, fresh
        return replace(agent, spawn=spawn, start=self.besides.start if self.besides is not None else None)

    @property
    def gate(self) -> Policy:
        """The run's own gate."""
        return self._gate

    async def _look(self, agent_id: str, wait: float) -> str:
        if self.besides is None:
            raise ToolError("this run has no agents in the background")
        return await self.besides.look(agent_id, wait)

    def _beside(self, spec: AgentSpec, agent_id: str, title: str) -> Iterable[Tool]:
        if self.besides is None:
            raise ToolError("no subagent can go on in the background here: leave run_in_background out")
        return self._with_notes(spec, self.besides.tools(spec, agent_id, title))

    def news(self, conversation: Conversation) -> list[str]:
        """Return what to tell the model before its session goes on: kinds that are new to it, plan mode, errands."""
        specs, built = self.specs(), built_in()
        said = [task.listing(specs, [*built, *conversation.told_agents])]
        conversation.told_agents = tuple(name for name in specs if name not in built)
        if self._settings.mode is Mode.PLAN and conversation.told_mode is not Mode.PLAN:
            said.append(plan.PLAN_WORDS)
        errands, self._extension.errands = self._extension.errands, []
        return [text for text in [*said, *errands] if text]

    async def fork(self, one: Invocation, call: Call) -> str:
        """Run a skill that wants a context of its own and return what came out; raises `ToolError`, `Interrupted`."""
        agent, title = one.agent or task.GENERAL, f"skill {one.skill}"
        result = await self._tasks.run(call, one.text, agent, title, one.model, "medium")
        if result.is_error:
            raise ToolError(plain_text(list(result.content)))
        return plain_text(list(result.content))

    # ── the mode ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._gate.mode

    def change(self, mode: Mode) -> None:
        """Go on in another mode; the model is told of it by the tool that did it."""
        self._gate.change(mode)
        if self._extension.chosen.get("mode") == Mode.PLAN and mode is not Mode.PLAN:
            self._extension.choose(mode=str(mode))  # as the person has just chosen it, it holds for the next cells, too
        if self._conversation is not None:
            self._conversation.told_mode = mode

    async def _leave(self, call: Call, text: str) -> str:
        """Put an agreed plan into the notebook as a Markdown cell, where the agent's next cells go below it."""
        found = self._agent.tools.get("add_cell") if self._agent is not None else None
        if found is None or self._place.notebook is None or self._place.notebook.proposes_only:
            return ""
        try:
            result = await found.run(call, found.validate({"source": text, "cell_type": "markdown"}))
        except ToolError:
            return ""
        return f"The plan stands in the notebook: {plain_text(list(result.content))}"

    # ── what a subagent is made of ───────────────────────────────────────────────────────────────────────────────────

    def specs(self) -> Mapping[str, AgentSpec]:
        """Return the kinds of subagents by name, read anew."""
        return specs_of(self._extension)

    def _parent(self) -> Model:
        assert self._agent is not None
        return self._metered(model_of(self._settings)) if self._stands_in else self._agent.model

    def use_model(self, name: str) -> str:
        """Go on with the model `name` for the rest of this run, as a skill may ask; return what to tell people.

        Raises `ConfigError` for a name that means none, and for a model that can't go on with this conversation.
        """
        if name.strip().startswith("scripted:"):
            raise ConfigError("A skill can't name a script as its model.")  # it would import a module
        model = self._agent.model if self._agent is not None else None
        if not isinstance(model, RunModel):
            raise ConfigError("This run has no model that could be changed.")
        return model.use(name)

    def _model(self, spec: AgentSpec, wanted: str, parent: Model) -> Model:
        """Open a subagent's model: the person's own choice for all, then the call's, the kind's, its parent's."""
        if wanted.startswith("scripted:"):
            raise ConfigError("A call can't name a script as its model.")  # it would import a module
        if self._replays:  # the recording answers, whichever model it was
            return parent
        everywhere = os.environ.get(_SUBAGENT_MODEL, "").strip()
        name = (everywhere or wanted or spec.model).removesuffix("[1m]")
        if name not in {"", "inherit"}:
            opened = open_beside(self._settings, name, parent)
            if not everywhere and (wanted or spec.source == "project"):
                _at_the_same_server(opened, parent)
            return self._metered(opened)
        if spec.source == "built-in" and spec.name == "Explore" and (less := at_most(parent.name, EXPLORE_AT_MOST)):
            return self._metered(open_beside(self._settings, less, parent))
        return parent

    def _tools(self, spec: AgentSpec) -> Iterable[Tool]:
        return self._with_notes(spec, self._fresh())

    def _with_notes(self, spec: AgentSpec, tools: Iterable[Tool]) -> Iterable[Tool]:
        notes = _notes(self._extension, spec)
        if notes is None:
            return tools
        own = remember.tools(notes)  # in the place of those for the notes of the conversation
        return [*(tool for tool in tools if tool.name not in {one.name for one in own}), *own]

    def _session(self, agent_id: str, spec: AgentSpec, tools: tuple[Json, ...], about: Json) -> tuple[Session, str]:
        assert self._conversation is not None
        store = JsonlStore(self._conversation.store.path.with_suffix("") / "agents" / f"{agent_id}.jsonl")
        about = {"notebook": self._conversation.notebook, **about}
        privacy = self._extension.privacy
        session = Session(
            agent_id,
            system=privacy.vault.mask(system_prompt(spec)),
            tools=privacy.vault.masked((*tools, *self._web(spec))),
            store=store,
            about=about,
        )
        session.use(privacy.masking)
        return session, str(store.path)

    def _web(self, spec: AgentSpec) -> list[Json]:
        """Return what of the web a subagent of this kind has: what its run offers, if the kind has it among its tools."""
        only = [Rule.parse("allow", text) for text in spec.tools or ()]
        without = [Rule.parse("deny", text) for text in spec.disallowed_tools]
        return [
            one
            for one in self.web
            if (spec.tools is None or any(rule.speaks_of(str(one["name"])) for rule in only))
            and not any(rule.speaks_of(str(one["name"])) for rule in without)
        ]

    async def _told(self, spec: AgentSpec) -> str:
        """Return where a subagent is, the instructions of the project, and the notes and skills of its kind."""
        notebook = self._place.notebook
        own = f" The agent's own cell is {notebook.own_cell}." if notebook is not None and notebook.own_cell else ""
        files = self._extension.files
        notes = _notes(self._extension, spec)
        lines = [
            f"The open notebook is {notebook.path or 'unnamed'}.{own}" if notebook is not None else "",
            f"The working folder is {self._extension.folder}.",
            f"The permission mode is {self._gate.mode}.",
        ]
        place = "\n".join(line for line in lines if line)
        told = files.told.text if spec.with_instructions else ""
        skills = await _skills(files, spec)
        parts = (place, told, notes.text() if notes is not None else "", *skills)
        return "\n\n".join(part for part in parts if part)

    def _hooks(self, spec: AgentSpec) -> Hooks | None:
        table = self._agent.hooks if self._agent is not None else None
        if not spec.hooks or not isinstance(table, HookTable):
            return None
        groups = {event: list(found) for event, found in spec.hooks.items()}
        found = read(groups, Source(f"the agent {spec.name}", scope="agent"))
        return table.within(as_subagent(found.hooks))


def files_of(extension: Extension) -> tuple[Places, Agents]:
    """Return the kinds of subagents in files, read anew; those of a project that widen are there once it is trusted."""
    return extension.files.places, load_agents(extension.files.places, extension.trust)


def specs_of(extension: Extension) -> dict[str, AgentSpec]:
    """Return all kinds by name: built in, from files, from code; the later one counts.

    One with the name of a kind that only looks, only looks.
    """
    found = built = built_in()
    for spec in (*files_of(extension)[1].specs.values(), *extension.agents.values()):
        only_looks = spec.only_looks or (spec.name in built and built[spec.name].only_looks)
        tools = (*spec.tools, *_NOTE_TOOLS) if spec.tools is not None and spec.memory else spec.tools
        found = {**found, spec.name: replace(spec, only_looks=only_looks, tools=tools)}
    return found


def _notes(extension: Extension, spec: AgentSpec) -> Memory | None:
    """Return the notes that this kind keeps for itself, None where it keeps none."""
    folder = notes_folder(extension.files.places, spec)
    return None if folder is None else Memory(folder)


async def _skills(files: FolderFiles, spec: AgentSpec) -> list[str]:
    """Return the texts of the skills that this kind begins with; one that would run commands is left out, and says so."""
    texts: list[str] = []
    for name in spec.skills:
        try:
            one = await render(files.shelf.for_model(name), "", Surroundings(files.places.root))
            texts.append(f"The skill {name}:\n{one.text}")
        except ToolError as error:
            texts.append(f"The skill {name} can't be loaded: {error}.")
    return texts


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def explore(extension: Extension, rest: str) -> str:
    """Carry out `%agent explore [quick | medium | very thorough] WORDS`: an Explore subagent answers in this cell."""
    from nbagent.app.cell import agent_cell

    thoroughness, words = task.asked_for(rest.strip())
    if not words.strip():
        raise ConfigError(ASK_WHAT)
    await agent_cell(extension, words, "", errand=Errand("Explore", thoroughness))
    return ""


async def planned(extension: Extension, rest: str) -> str:
    """Carry out `%agent plan [options] WORDS`: a run that begins in plan mode."""
    from nbagent.app.cell import agent_cell

    if not rest.strip():
        raise ConfigError(PLAN_WHAT)
    await agent_cell(extension, f"--mode plan {rest}", "")
    return ""


def listed(extension: Extension) -> str:
    """Carry out `%agent agents`: the kinds of subagents, where they are from, and what is wrong with files."""
    _, files = files_of(extension)
    lines: list[str] = []
    for name, spec in specs_of(extension).items():
        tools = "only looks" if spec.only_looks else ", ".join(spec.tools) if spec.tools is not None else "all tools"
        model = f"model {spec.model}" if spec.model not in {"", "inherit"} else "the run's model"
        turns = f", {spec.max_turns} turns" if spec.max_turns is not None else ""
        lines.append(f"{name}  ({spec.source}; {tools}; {model}{turns})\n    {one_line(spec.description, 240)}")
        if unused := _unused(spec):
            lines.append(f"    not used here: {', '.join(unused)}")
    return visible_plain("\n".join([*lines, *(f"! {problem}" for problem in files.problems)]))


def _unused(spec: AgentSpec) -> list[str]:
    """Return which fields of a kind have no effect here, under Claude Code's names."""
    fields = {
        "mcpServers with a configuration": any(config is not None for config in spec.mcp_servers.values()),
        "effort": bool(spec.effort),
        "isolation (it can't be called)": bool(spec.isolation),
        "initialPrompt": bool(spec.initial_prompt),
    }
    return [name for name, there in fields.items() if there]
