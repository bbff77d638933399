"""The text that a model gets of a skill: arguments put in, commands run and replaced by what they printed.

All is filled in once over the skill's own text: neither an argument nor what a command printed is looked through again,
so neither can bring a command. An argument reaches a command only as one word that the shell can't read as anything
else. Who runs a command, and asks before, is given from outside. Read `render`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbagent.core.errors import ToolError
from nbagent.core.messages import Json, clean
from nbagent.extend.skills import Skill, commands, parts

Runner = Callable[[str, Skill], Awaitable[str]]
"""Runs one command of a skill, asking before where that is needed, and returns what it printed; `ToolError` if it failed."""

OUTPUT_LIMIT = 30_000
"""Characters of what one command printed."""
KEEP_EACH, KEEP_ALL = 20_000, 100_000
"""Characters of a skill, and of all skills, that are attached again after a compaction (5,000 and 25,000 tokens)."""

_VARIABLE = re.compile(r"\$\{(?:CLAUDE|NBAGENT)_(SESSION_ID|SKILL_DIR|PROJECT_DIR|EFFORT)\}")
_PLAIN = re.compile(r"[\w./:=@%+,~ -]*")
_QUOTING = re.compile(r"['\"\\`]|\$\(|<<")
_OFF = "[shell command execution disabled by policy]"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a skill's variables stand for. `commands_off`: the setting `disableSkillShellExecution` is on."""

    project: Path
    session: str = ""
    effort: str = ""
    commands_off: bool = False


@dataclass(frozen=True, slots=True)
class Invocation:
    """A skill that was called: the text for the model, and what holds from now on.

    `allow` and `deny` are texts of rules for this turn only (they end with the person's next message); `model` and
    `effort` hold for the rest of the turn; `fork` means that the text is a task for the subagent `agent` (of the kind
    general-purpose where it is ""), waited for unless `background`. `hooks` hold until the session ends.
    """

    skill: str
    text: str
    arguments: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    model: str = ""
    effort: str = ""
    fork: bool = False
    agent: str = ""
    background: bool = True
    hooks: Mapping[str, tuple[Json, ...]] = field(default_factory=dict[str, tuple[Json, ...]])
    folder: Path | None = None


async def render(skill: Skill, arguments: str, around: Surroundings, run: Runner | None = None) -> Invocation:
    """Call `skill` with `arguments` as they were typed.

    Raises `ToolError` with a sentence where one of its commands may not run, can't be run, or fails: the model then gets
    nothing of the skill, since the text was written for what the command prints.
    """
    arguments = clean(arguments).strip()
    off = around.commands_off and skill.source != "shipped"
    if commands(skill.body) and not off:
        _may_run(skill, run)
    values = _Values(skill, arguments, around)
    text: list[str] = []
    for kind, part in parts(skill.body):
        if kind == "text":
            text.append(values.into_text(part))
        elif off:
            text.append(_OFF)
        else:
            assert run is not None  # _may_run saw to it
            text.append(_cut(await _output(skill, values.into_command(part), run)))
    whole = "".join(text).strip()
    if arguments and not values.used:
        whole = f"{whole}\n\nARGUMENTS: {arguments}"
    if skill.kind == "skill":
        whole = f"Base directory for this skill: {skill.folder}\n\n{whole}"
    granted = skill if skill.trusted else None
    return Invocation(
        skill.name,
        whole,
        arguments,
        allow=tuple(values.variables(rule) for rule in granted.allowed_tools) if granted else (),
        deny=skill.disallowed_tools,
        model="" if skill.model == "inherit" else skill.model,
        effort=skill.effort,
        fork=skill.context == "fork",
        agent=skill.agent,
        background=skill.background,
        hooks=granted.hooks if granted else {},
        folder=skill.folder,
    )


def attached_again(invocations: Sequence[Invocation]) -> str:
    """Return the text by which the skills that were called survive a compaction, "" where there are none.

    Of each skill the last call, the newest first, as far as the room goes.
    """
    latest = {one.skill: one for one in invocations if not one.fork}
    newest = sorted(latest.values(), key=lambda one: -max(i for i, other in enumerate(invocations) if other is one))
    kept: list[str] = []
    room = KEEP_ALL
    for one in newest:
        text = one.text if len(one.text) <= KEEP_EACH else f"{one.text[:KEEP_EACH]}\n… (the rest was left out)"
        if len(text) > room:
            break
        room -= len(text)
        kept.append(f"## Skill {one.skill}\n\n{text}")
    return "\n\n".join(["These skills were loaded before; they still hold.", *kept]) if kept else ""


class _Values:
    """What the placeholders of one skill stand for in one call; `used` tells whether an argument was asked for."""

    def __init__(self, skill: Skill, arguments: str, around: Surroundings) -> None:
        self._skill = skill
        self._whole = arguments
        self._parts = _split(arguments)
        self._variables = {
            "SESSION_ID": around.session,
            "SKILL_DIR": str(skill.folder),
            "PROJECT_DIR": str(around.project),
            "EFFORT": around.effort,
        }
        named = "|".join(re.escape(name) for name in sorted(skill.arguments, key=len, reverse=True))
        names = rf"|(?P<name>{named})(?!\w)" if named else "|(?P<name>(?!))"
        self._placeholder = re.compile(
            rf"(?P<slashes>\\*)\$(?:ARGUMENTS\[(?P<index>\d{{1,4}})\]|(?P<all>ARGUMENTS)(?!\w)|(?P<short>\d{{1,4}}){names})"
            rf"|{_VARIABLE.pattern}"
        )
        self.used = False

    def into_text(self, text: str) -> str:
        """Return `text` with all placeholders filled in."""
        return self._placeholder.sub(lambda found: self._filled(found, _same), text)

    def into_command(self, command: str) -> str:
        """Return `command` with all placeholders filled in, arguments as words of the shell's; `ToolError` if that can't be."""
        quotes = bool(_QUOTING.search(self._placeholder.sub("", command)))

        def word(value: str) -> str:
            several = value == self._whole  # $ARGUMENTS are as many words as were typed
            if _PLAIN.fullmatch(value) and (several or quotes or " " not in value):
                return value
            if quotes or self._skill.shell != "bash":
                raise ToolError(
                    f"{self._skill.name} was not loaded: {value[:80]!r} can't be put into its command {command[:200]!r}, "
                    "which has quotes of its own. Use an argument of letters, digits and ./:=@%+,~-"
                )
            return " ".join(shlex.quote(part) for part in _split(value)) if several else shlex.quote(value)

        return self._placeholder.sub(lambda found: self._filled(found, word), command)

    def variables(self, rule: str) -> str:
        """Return a rule of `allowed-tools` with the variables filled in."""
        return _VARIABLE.sub(lambda found: self._variables[found[1]], rule)

    def _filled(self, found: re.Match[str], shape: Callable[[str], str]) -> str:
        if (variable := found[found.re.groups]) is not None:
            return shape(self._variables[variable])
        slashes, token = found["slashes"], found[0][len(found["slashes"]) :]
        if len(slashes) == 1:
            return token  # written \$1 where $1 is meant
        if found["all"]:
            self.used = True
            return slashes + shape(self._whole)
        if found["name"]:
            self.used = True
            return slashes + shape(self._at(self._skill.arguments.index(found["name"])) or "")
        value = self._at(int(found["index"] or found["short"]))
        if value is None:
            return slashes + token
        self.used = True
        return slashes + shape(value)

    def _at(self, index: int) -> str | None:
        return self._parts[index] if index < len(self._parts) else None


def _may_run(skill: Skill, run: Runner | None) -> None:
    if not skill.trusted:
        raise ToolError(
            f"{skill.name} was not loaded: it runs commands ({commands(skill.body)[0][:80]!r}), and the person has not said "
            "that the files of this folder are to be trusted. %agent trust shows what they would run"
        )
    if run is None:
        raise ToolError(f"{skill.name} was not loaded: it runs commands, and nothing here can run them")


async def _output(skill: Skill, command: str, run: Runner) -> str:
    try:
        return await run(command, skill)
    except ToolError as error:
        raise ToolError(
            f"{skill.name} was not loaded: its command {command[:200]!r} did not run to its end: {error}"
        ) from None


def _cut(text: str) -> str:
    text = clean(text).rstrip("\n")
    if len(text) <= OUTPUT_LIMIT:
        return text
    half = OUTPUT_LIMIT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:  # a quote without its other half: don't
        return arguments.split()


def _same(value: str) -> str:
    return value
