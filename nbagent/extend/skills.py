"""A skill: one Markdown file with a head, which says how a kind of task is done. A slash command is the same in one file.

Reads one skill from its file; where skills lie and which counts is `shelf.py`, the text that a model gets of it is
`render.py`. Read `Skill`, then `read_skill`.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from nbagent.core.messages import Json
from nbagent.extend.frontmatter import Fields, parse
from nbagent.extend.survey import handler_does, hook_words
from nbagent.extend.textfiles import TextFile, read_text, sha256, tree_digest
from nbagent.extend.trust import Power

SHIPPED = Path(__file__).parents[1] / "skills"
"""The folder of the skills that come with nbagent."""
SKILL_FILE = "SKILL.md"
FILE_LIMIT = 1024 * 1024
"""Bytes of a skill's own file."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")

Source = Literal["shipped", "user", "project"]
Part = tuple[Literal["text", "inline", "block"], str]

_FIELDS = (
    *("name", "description", "when_to_use", "argument-hint", "arguments", "disable-model-invocation", "user-invocable"),
    *("allowed-tools", "disallowed-tools", "model", "effort", "context", "agent", "background", "hooks", "paths"),
    *("shell", "license", "compatibility", "metadata"),
)
_INLINE = re.compile(r"(?<!\S)!`([^`\n]+)`")
_OPENS = re.compile(r"[ \t]*```![ \t]*\n")
_CLOSES = re.compile(r"[ \t]*```[ \t]*\n?")


Scripts = Callable[[Sequence[str]], Sequence[str]]
"""Tells of commands which of the project's own files they name, each as a text that changes with its content."""


def _no_scripts(_: Sequence[str]) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill or slash command as its file has it. `name` is what it is called by; `body` the text below the head.

    `for_model`: the model may load it by itself; `for_person`: it is offered to the person. `context` is "fork" where it
    runs in a context of its own, by the subagent `agent`. `hooks` has the shape of a settings file's `hooks`: event →
    groups with `matcher` and `hooks`; a handler with `once` is removed after it ran. `power` names what must be trusted
    (None: nothing in it runs or widens); `trusted` says whether that is so.
    """

    name: str
    kind: Literal["skill", "command"]
    source: Source
    file: Path
    body: str
    title: str = ""
    description: str = ""
    when_to_use: str = ""
    argument_hint: str = ""
    arguments: tuple[str, ...] = ()
    for_model: bool = True
    for_person: bool = True
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    model: str = ""
    effort: str = ""
    context: str = ""
    agent: str = ""
    background: bool = True
    hooks: Mapping[str, tuple[Json, ...]] = field(default_factory=dict[str, tuple[Json, ...]])
    paths: tuple[str, ...] = ()
    shell: str = "bash"
    license: str = ""
    compatibility: str = ""
    metadata: Json = field(default_factory=dict[str, Any])
    power: Power | None = None
    trusted: bool = True

    @property
    def folder(self) -> Path:
        """The folder that the skill's other files lie in."""
        return self.file.parent

    @property
    def has_power(self) -> bool:
        """Whether it runs commands, brings hooks or allows tools, wherever it comes from."""
        return bool(self.allowed_tools or self.hooks or commands(self.body))


def read_skill(
    name: str,
    kind: Literal["skill", "command"],
    source: Source,
    path: Path,
    shown: str,
    problems: list[str],
    scripts: Scripts = _no_scripts,
) -> Skill | None:
    """Return the skill in the file `path`, None where there is no file that can be used.

    `shown` is how the path is named to a person; `scripts` tells of the project's files that commands name, which count
    with them for trust. What can't be read goes into `problems`, a sentence each: single fields
    are left out; a file that can't be read, or whose hooks can't, is not used.
    """
    read = read_text(path, FILE_LIMIT)
    if read is None:
        return None
    if read.problem:
        problems.append(read.problem)
    if read.problem and not read.text:
        return None
    front = parse(read.text)
    fields = Fields(front.fields, _FIELDS)
    hooks = hook_tables(fields)
    skill = Skill(
        name,
        kind,
        source,
        path,
        front.body.strip(),
        title=fields.text("name"),
        description=fields.text("description") or _first_paragraph(front.body),
        when_to_use=fields.text("when_to_use"),
        argument_hint=fields.text("argument-hint"),
        arguments=tuple(one for one in fields.names("arguments") or () if re.fullmatch(r"[A-Za-z_][\w-]*", one)),
        for_model=not fields.flag("disable-model-invocation"),
        for_person=fields.flag("user-invocable", default=True),
        allowed_tools=fields.names("allowed-tools") or (),
        disallowed_tools=fields.names("disallowed-tools") or (),
        model=safe_model(fields, source),
        effort=fields.choice("effort", EFFORTS),
        context=fields.choice("context", ("fork", "inline")).replace("inline", ""),
        agent=fields.text("agent"),
        background=fields.flag("background", default=True),
        hooks=hooks or {},
        paths=fields.patterns("paths"),
        shell=fields.choice("shell", ("bash", "powershell"), "bash"),
        license=fields.text("license"),
        compatibility=fields.text("compatibility"),
        metadata=fields.table("metadata"),
    )
    problems += [f"{shown}: {one}." for one in [front.problem, *fields.problems] if one]
    return _with_power(skill, read, shown, problems, scripts) if hooks is not None else None


def _with_power(skill: Skill, read: TextFile, shown: str, problems: list[str], scripts: Scripts) -> Skill:
    """Add what must be trusted, where the skill came with a project; one that can't be vouched for is never trusted."""
    if skill.source != "project" or not skill.has_power:
        return skill
    tree = tree_digest(skill.folder) if skill.kind == "skill" else ""
    if tree is None:
        problems.append(
            f"{shown}: its folder has too many or too large files, or a link that leads out, so it can't be trusted; "
            "what it runs or allows is left out."
        )
        return replace(skill, trusted=False)
    rules = [rule.partition("(")[2].rstrip("()") for rule in skill.allowed_tools]
    named = scripts([*commands(skill.body), *rules, *hook_words(skill.hooks)])
    digest = sha256("\n".join([read.digest, tree, *named]).encode("utf-8", "replace"))
    return replace(skill, power=Power(skill.kind, skill.name, shown, does(skill), digest), trusted=False)


def does(skill: Skill) -> str:
    """Return in plain words what a skill runs, allows or brings."""
    said = [f"runs `{command}`" for command in commands(skill.body)]
    said += [f"allows {', '.join(skill.allowed_tools)} for a turn"] if skill.allowed_tools else []
    said += [f"brings a hook for {event}, which {_handlers(groups)}" for event, groups in skill.hooks.items()]
    return "; ".join(said)


def _handlers(groups: tuple[Json, ...]) -> str:
    return ", ".join(handler_does(handler) for group in groups for handler in group.get("hooks", ()))


def commands(body: str) -> tuple[str, ...]:
    """Return the commands that would run when the text is loaded, in order."""
    return tuple(text for kind, text in parts(body) if kind != "text")


def parts(body: str) -> Iterator[Part]:
    """Split a body into text and commands: !`…` after a space or at the start of a line, and fenced blocks ```!."""
    lines = body.splitlines(keepends=True)
    closing = [number for number, line in enumerate(lines) if _CLOSES.fullmatch(line)]
    begin = number = 0
    while number < len(lines):
        end = bisect.bisect(closing, number) if _OPENS.fullmatch(lines[number]) else len(closing)
        if end < len(closing):
            yield from _inline("".join(lines[begin:number]))
            yield "block", "".join(lines[number + 1 : closing[end]]).strip("\n")
            begin = number = closing[end]
            lines[begin] = "\n" if lines[begin].endswith("\n") else ""
        number += 1
    yield from _inline("".join(lines[begin:]))


def _inline(text: str) -> Iterator[Part]:
    end = 0
    for found in _INLINE.finditer(text):
        yield "text", text[end : found.start()]
        yield "inline", found[1].strip()
        end = found.end()
    yield "text", text[end:]


def hook_tables(fields: Fields) -> Mapping[str, tuple[Json, ...]] | None:
    """Return the field `hooks` as a settings file has it; None where it has another shape, with the reason in `problems`.

    What brings it must not be used then: its guards would be missing. A handler that can't run stays: it fails closed.
    """
    value = fields.values.get("hooks")
    tables = value if isinstance(value, dict) else {} if value is None else {"": value}
    for event, groups in tables.items():
        fine = isinstance(groups, list) and all(
            isinstance(group, dict)
            and isinstance(group.get("hooks"), list)
            and all(isinstance(handler, dict) for handler in group["hooks"])
            for group in groups
        )
        if not fine:
            named = f"hooks.{event}" if event else "hooks"
            fields.problems.append(f"{named} is not a list of groups with `hooks`, so it is not used")
            return None
    return {str(event): tuple(groups) for event, groups in tables.items() if groups}


def safe_model(fields: Fields, source: str) -> str:
    """Return the field `model`; a script is a module that would be imported, which a project's file can't ask for."""
    model = fields.text("model")
    if source == "project" and model.startswith("scripted:"):
        fields.problems.append(f"model = {model!r} would run code of this folder; it is left out")
        return ""
    return "" if model == "inherit" else model


def _first_paragraph(body: str) -> str:
    """Return what stands for a missing description: the first lines of text that are no heading."""
    lines: list[str] = []
    for line in body.strip().split("\n"):
        if line.startswith("#") and not lines:
            continue
        if not line.strip() and lines:
            break
        lines += [line.strip()] if line.strip() else []
    return " ".join(lines)[:500]
