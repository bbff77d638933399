"""What a folder's files give to one run: what the model is told, tools for skills and notes, what a prompt calls by name.

`/name` calls a skill, a command or a prompt of an MCP server. What a skill brings counts from its call on: rules until the run ends, hooks until the session ends. Must not know how a
run goes. Read `RunFiles.news`, then `RunFiles.called`.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nbagent.app.consent import before_run
from nbagent.app.model import RunModel
from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.events import Noted
from nbagent.core.hooks import Verdict
from nbagent.core.messages import Block, Json, Message, text_block
from nbagent.core.policy import Decision, Hooked, Policy
from nbagent.core.ports import Model, Question
from nbagent.core.questions import put
from nbagent.core.rules import Action, Rule, Source
from nbagent.core.shown import visible_plain
from nbagent.core.tools import Call, Result, Tool
from nbagent.extend.hooks_files import of_skill
from nbagent.extend.instructions import Instructions
from nbagent.extend.invoking import Fork, Invoker, names_a_call
from nbagent.extend.render import Invocation, Surroundings, attached_again
from nbagent.extend.skills import Skill
from nbagent.tools import remember, shell, skill
from nbagent.tools.skillcommands import runner

if TYPE_CHECKING:
    from nbagent.app.conversation import Conversation
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place

MCP = "/mcp__"
_OF_FILES = frozenset({"read_file", "write_file", "edit_file"})
"""Tools whose file may have instructions and skills of its own."""

_BEGINNING = 200
"""Characters by which the text of a skill is known again: a long one was cut."""

Ask = Callable[[Question], Awaitable[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Guarded:
    """Decides about a command of a skill as about a call of the model's: hooks first, then rules and mode."""

    gate: Policy
    before: Callable[[str, Json], Awaitable[Verdict]]
    mask: Callable[[Json], Json]

    async def decide(self, tool: Tool, given: Json) -> Decision:
        """Return the decision; raises `ToolError` where a hook ends it, or wants another command."""
        told = self.mask(given)  # some hooks are servers elsewhere
        said = await self.before(tool.name, told)
        if said.stop:
            raise ToolError(said.stop)
        if said.updated_input is not None and said.updated_input.get("command") != told["command"]:
            raise ToolError("a hook wants another command in its place")
        return await Hooked(self.gate, said, Verdict()).decide(tool, given)


def _as_it_is(_: Invocation) -> None:
    """Change no model: that of a skill that the person called is the run's from its beginning."""


class RunFiles:
    """The files of the folder in one run. Its `tools` are there first; `join` gives them what they work with.

    Without a `place` they are there to be named only. `fork` runs a skill in a subagent; `by_person` is the skill that the person called for such a run, "" for none. `reads`
    is told of each file that the run's answer depends on.
    """

    def __init__(
        self,
        extension: Extension,
        place: Place | None = None,
        fork: Fork | None = None,
        *,
        reads: Callable[[Path], None] = lambda _: None,
        by_person: str = "",
    ) -> None:
        self._extension, self._place, self._fork = extension, place, fork
        self._reads, self._by_person = reads, by_person
        self._files = extension.files
        self._gate = Policy()
        self._conversation: Conversation | None = None
        self._model: Model | None = None
        self.tools = tools_of_files(extension, self)

    def join(self, gate: Policy, conversation: Conversation, model: Model) -> None:
        """Say which gate, which conversation and which model the run has."""
        self._gate, self._conversation, self._model = gate, conversation, model

    # ── what the model is told ───────────────────────────────────────────────────────────────────────────────────────

    async def news(self, conversation: Conversation) -> list[str]:
        """Return what of the files, the notes and the state of the project the conversation does not know, or not any more."""
        vault = self._extension.privacy.vault
        self._extension.privacy.meet(part.text for part in self._files.told.parts)
        said = vault.opened(said_in(conversation.session.transcript))  # files are compared as they are
        text, conversation.told_project = await self._files.news(os.environ, said, conversation.told_project)
        lost = [one for one in conversation.called if one.text[:_BEGINNING] not in said]  # it was summed up since
        return [one for one in (text, attached_again(lost)) if one]

    def watching(self, tools: Iterable[Tool], *, child: bool = False) -> list[Tool]:
        """Return `tools` with those that reach for files telling what holds for these; `child`: a subagent's."""
        own: list[Instructions] = []

        def known() -> Instructions | None:
            if child and not own:
                own.append(self._files.instructions_anew())
                own[0].start()
            return own[0] if own else None

        return [self._watching(tool, known) if tool.name in _OF_FILES else tool for tool in tools]

    def _watching(self, tool: Tool, known: Callable[[], Instructions | None]) -> Tool:
        async def function(call: Call, **given: object) -> Result:
            result = Result.of(await tool.function(call, **given))
            more = "" if result.is_error else self._touched(str(given.get("path", "")), known())
            return dataclasses.replace(result, content=(*result.content, text_block(more))) if more else result

        return dataclasses.replace(tool, function=function)

    def _touched(self, path: str, own: Instructions | None) -> str:
        told, skills = self._files.touched(Path(path), own)
        if own is None and told.parts and self._conversation is not None:
            told = told.untold(said_in(self._conversation.session.transcript))
        return "\n\n".join(text for text in (told.text, skills) if text)

    # ── what is called by name ───────────────────────────────────────────────────────────────────────────────────────

    async def called(self, prompt: str) -> list[Block] | None:
        """Return what stands for a prompt that calls a skill, a command or an MCP server's prompt; None for any other.

        Raises `ConfigError` with a sentence for the person, where what they called can't be used.
        """
        if not names_a_call(prompt):
            return None
        if prompt.startswith(MCP):
            return await self._prompt_of_server(prompt)
        if not is_known(self._extension, prompt):
            return None

        try:
            found = await self._invoker(self._ask, own=True).called(prompt)
        except ToolError as error:
            raise ConfigError(f"{str(error).rstrip('.')}.") from None
        return [text_block("\n\n".join(map(_said_of, found)))]

    async def _ask(self, question: Question) -> str:
        """Ask before the run begins."""
        place = self._place
        return "" if place is None else await put(question, place.approver, before_run, place.view.show)

    async def _prompt_of_server(self, prompt: str) -> list[Block]:
        name, *words = prompt.split(maxsplit=1)
        try:
            given = shlex.split(words[0]) if words else []
        except ValueError:  # a quote without its other half
            given = words[0].split()
        try:
            blocks = await self._extension.mcp.prompt(name, given)
        except ToolError as error:
            raise ConfigError(f"{name}: {str(error).rstrip('.')}.") from None
        return [text_block(f"The person called {prompt.strip()}. It says:"), *blocks]

    # ── the tool `skill` ─────────────────────────────────────────────────────────────────────────────────────────────

    def brings(self, name: str) -> str:
        """See `tools.skill.Skills`: nothing to ask about where the person called it."""
        return "" if name == self._by_person else self._invoker(None, own=True).brings(name)

    async def invoke(self, name: str, arguments: str, call: Call) -> tuple[str, bool]:
        """See `tools.skill.Skills`."""
        conversation = self._conversation
        own = conversation is None or call.session == conversation.session.id

        def use(one: Invocation) -> None:
            if own:
                self._use(one)

        return await self._invoker(call.ask, own=own, use=use).invoke(name, arguments, call)

    def file(self, name: str, path: str) -> str:
        """See `tools.skill.Skills`."""
        return self._invoker(None, own=True).file(name, path)

    def _invoker(self, ask: Ask | None, *, own: bool, use: Callable[[Invocation], None] = _as_it_is) -> Invoker:
        """Return what calls skills; `own`: for the run itself. A subagent's skill widens nothing: its parent's rules count."""
        conversation = self._conversation
        session = conversation.session.id if conversation is not None else ""
        around = Surroundings(self._files.places.root, session, commands_off=self._files.wishes.commands_off)

        def took_effect(one: Invocation) -> None:
            if conversation is not None and own:  # what a subagent called is no part of this conversation
                conversation.called.append(one)
            self._take(one, own=own)
            use(one)

        async def run(command: str, called: Skill) -> str:
            return await self._command(command, called, ask)

        return Invoker(
            self._files.shelf,
            around,
            run=run if ask is not None else None,
            took_effect=took_effect,
            fork=self._fork,
            by_person=frozenset({self._by_person} - {""}),
        )

    async def _command(self, command: str, called: Skill, ask: Ask | None) -> str:
        """Run a command that a skill's text has, as the rules and the mode say; its own rules count for it."""
        if not self._files.shelf.holds_now(called):
            raise ToolError("its files have changed since you said yes to them; %agent trust shows what they do now")
        assert ask is not None
        own = self._rules("allow", called.allowed_tools, called.file)
        gate = Policy(self._gate.mode, (*self._gate.rules, *own))
        (tool,) = shell.tools(self._extension.folder)
        session = self._conversation.session.id if self._conversation is not None else ""
        before = partial(self._extension.hooks.before, session)
        hooked = _Guarded(gate, before, self._extension.privacy.vault.masked)
        return await runner(tool, hooked, self._extension.folder, ask)(command, called)

    def _take(self, one: Invocation, *, own: bool) -> None:
        """Let what a skill brings take effect."""
        called = self._files.shelf.get(one.skill)
        if called.source != "shipped":
            self._reads(called.file)
        self._gate.lend(self._rules("deny", one.deny, called.file))
        if own:
            self._gate.lend(self._rules("allow", one.allow, called.file))
        session = self._conversation.session.id if self._conversation is not None else ""
        table = self._extension.hooks.table(session)
        if one.hooks and table is not None:
            environment = {"CLAUDE_SKILL_DIR": str(called.folder), "NBAGENT_SKILL_DIR": str(called.folder)}
            table.add(
                f"skill {one.skill}",
                of_skill(
                    one.hooks,
                    one.skill,
                    trusted=called.trusted,
                    environment=environment,
                    allowed=lambda *_: self._files.shelf.holds_now(called),
                    own=own,
                ),
            )

    def _rules(self, action: Action, texts: Sequence[str], file: Path) -> list[Rule]:
        """Return a skill's rules; one that is none is left out, and the person is told."""
        places = self._files.places
        source = Source("skill", places.shown(file), str(places.root))
        rules: list[Rule] = []
        for text in texts:
            try:
                rules.append(Rule.parse(action, text, source))
            except ConfigError as error:
                self._warn(f"{source.file}: {error}")
        return rules

    def _use(self, one: Invocation) -> None:
        """Go on with the model that a skill names, for the rest of the run, where that can be."""
        if not one.model or one.fork or not isinstance(self._model, RunModel) or self._place is None:
            return
        try:
            self._place.view.show(before_run(Noted, text=self._model.use(one.model.removesuffix("[1m]")), level="info"))
        except ConfigError as error:
            self._warn(f"The skill {one.skill} names a model that is not used: {error}")

    def _warn(self, sentence: str) -> None:
        if self._place is not None:
            for text in self._extension.trusting.new([sentence]):
                self._place.view.show(before_run(Noted, text=visible_plain(text), level="warning"))


def tools_of_files(extension: Extension, skills: skill.Skills) -> list[Tool]:
    """Return `skill`, and `remember` and `recall` where notes are kept."""
    memory = extension.files.memory
    return [*skill.tools(skills), *(remember.tools(memory) if memory is not None else ())]


def is_known(extension: Extension, prompt: str) -> bool:
    """Whether a prompt begins with the name of a skill or command that there is."""
    try:
        extension.files.shelf.get(prompt.split(maxsplit=1)[0])
    except (ToolError, IndexError):
        return False
    return True


def said_in(messages: Iterable[Message]) -> str:
    """Return all texts of a conversation that are not the model's own, results of calls with them."""
    texts: list[str] = []
    for message in messages:
        if message["role"] == "user":
            for block in message["content"]:
                inner = block.get("content")
                texts += [str(one.get("text", "")) for one in (block, *(inner if isinstance(inner, list) else ()))]
    return "\n".join(texts)


def _said_of(one: Invocation) -> str:
    return f"The person called /{one.skill} {one.arguments}".rstrip() + f". Follow it now:\n\n{one.text}"
