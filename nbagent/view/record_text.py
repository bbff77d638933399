"""The record of a run as Markdown and as plain text, for readers that show no HTML.

Bounded, and no text of others in it becomes HTML, an image or a script link. Read `markdown`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nbagent.core.diff import unified
from nbagent.core.shown import visible_plain
from nbagent.view import outline, teamtext, todos, verified
from nbagent.view.html import line_of
from nbagent.view.items import TeamItem, VerifiedItem
from nbagent.view.loopview.words import record_text
from nbagent.view.text import clip, count, few_lines, one_line, plain_output
from nbagent.view.web import found, pages_lines
from nbagent.view.words import hint

if TYPE_CHECKING:
    from nbagent.view.fold import ViewModel
    from nbagent.view.items import CallItem

ANSWER_LIMIT = 30_000
PROMPT_LIMIT = 2_000

PLAIN_STEPS = 200
"""Calls that are listed one by one."""

CODE_LINES = 60
"""Lines of what one call ran or changed."""

LINE_LIMIT = 500
CODE_TOTAL = 60_000
"""Characters of what all calls ran and changed, in Markdown."""

UNDO, AGAIN = "`%agent undo` takes this run back.", "`%%agent --again` asks the model anew."
"""What can still be done with a run."""

_TICKS = re.compile(r"`{3,}")
_UNSAFE_TARGET = re.compile(r"\]\((?!https?://|mailto:|#nbagent-cell-)", re.IGNORECASE)


def neutral_markdown(text: str) -> str:
    """Return the model's Markdown so that no reader of Markdown makes HTML, an image or a script link of it."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("![", "!\\[").replace("]:", "]\\:")
    return _UNSAFE_TARGET.sub(r"]\\(", text)


def markdown(view: ViewModel, banner: str = "") -> str:
    """Return the record as Markdown: the answer first, then the calls, with what they ran and changed in fences."""
    sentence, next_step = outline.ending(view)
    answer = neutral_markdown(clip(outline.answer(view)[0].strip(), ANSWER_LIMIT))
    prompt = _markdown_words(clip(view.prompt.strip(), PROMPT_LIMIT)).replace("\n", "\n> ")
    bold = "" if outline.failed(view) else "**"
    ending = "  \n".join(f"{bold}{_markdown_sentence(line)}{bold}" for line in sentence.split("\n"))
    parts = [f"**{_markdown_words(few_lines(banner))}**" if banner.strip() else ""]
    parts += [f"> {prompt}" if prompt and not view.answers else "", answer, _markdown_words(outline.checked(view))]
    told = "" if outline.simply_answered(view) else f"{ending} {_markdown_sentence(next_step)}"
    loop = f"```\n{record_text(view.loop)}\n```" if view.loop is not None else ""
    parts += [told, _todos(view), *_teams(view), *_verdict(view), loop, _calls(view)]
    parts += [f"*{_markdown_words(' · '.join(outline.facts(view)))}*"]
    parts += [_markdown_sentence(_still(view))]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _still(view: ViewModel) -> str:
    """What can still be done with the run; "" of a run that never began."""
    return " ".join([UNDO, AGAIN] if outline.did_something(view) else [AGAIN]) if view.run_id else ""


def _todos(view: ViewModel) -> str:
    """The to-do list that this run wrote, as a task list."""
    if not view.todos or view.todos_carried:
        return ""
    tasks = [f"- [{'x' if done else ' '}] {_markdown_words(said)}" for done, said in todos.record_tasks(view.todos)]
    return "\n".join([f"{_markdown_words(todos.heading(view.todos))}", "", *tasks])


def _teams(view: ViewModel) -> list[str]:
    return [teamtext.markdown(item.team, _markdown_words) for item in view.items if isinstance(item, TeamItem)]


def _verdict(view: ViewModel) -> list[str]:
    found = [item.verified for item in view.items if isinstance(item, VerifiedItem)]
    return [verified.markdown(found[-1], _markdown_words)] if found else []


def _calls(view: ViewModel) -> str:
    """One list item a call, under it what it ran or changed, as long as there is room."""
    calls = outline.calls(view)
    room = CODE_TOTAL
    items: list[str] = []
    for call in calls[:PLAIN_STEPS]:
        fence = _fence(call)
        if len(fence) > room:
            fence = ""
        room -= len(fence)
        said = hint(call.preview)
        below = f"  \n  {_markdown_sentence(one_line(said, 300))}" if said else ""
        inner = [text for one in call.agents for text in outline.agent_steps(one)] + pages_lines(found(call.content))
        nested = "".join(f"\n  - {_markdown_words(text.strip())}" for text in inner)
        items.append(f"- {_markdown_words(outline.line(call))}{below}{fence}{nested}")
    if len(calls) > PLAIN_STEPS:
        items.append(f"- … {count(len(calls) - PLAIN_STEPS, 'more call')}")
    return "\n".join(items)


def _fence(call: CallItem) -> str:
    """What a call ran or changed as a fenced block inside a list item, cut if it is long; may be empty."""
    body, kind = str(call.preview.get("body", "")), call.preview.get("kind")
    match kind:
        case "diff":
            language, lines = "diff", unified(str(call.preview.get("old", "")), body, line=line_of(call.preview))
        case "markdown":
            language, lines = "markdown", visible_plain(body).split("\n")
        case "code" | "command":
            language = "bash" if kind == "command" else str(call.preview.get("language") or "python")
            lines = visible_plain(body).split("\n")
        case _:
            return ""
    kept = lines[:CODE_LINES]
    cut = [f"… {count(len(lines) - len(kept), 'more line')}"] if len(lines) > len(kept) else []
    text = "\n".join(f"  {line[:LINE_LIMIT]}" for line in [*kept, *cut])
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"\n\n  {fence}{language if language.isalnum() else ''}\n{text}\n  {fence}\n"


def _markdown_words(text: str) -> str:
    """Plain words inside Markdown."""
    return re.sub(r"([\\`*_{}\[\]#|~$!])", r"\\\1", plain_output(text).replace("&", "&amp;").replace("<", "&lt;"))


def _markdown_sentence(line: str) -> str:
    """A sentence of ours: what stands in backticks stays code."""
    parts = re.split(r"(`[^`<>&\\]+`)", line)
    return "".join(part if n % 2 else _markdown_words(part) for n, part in enumerate(parts))


def plain(view: ViewModel, banner: str = "") -> str:
    """Return the record as plain text."""
    sentence, next_step = outline.ending(view)
    answer = plain_output(clip(outline.answer(view)[0].strip(), ANSWER_LIMIT))
    calls = outline.calls(view)
    lines = [line for call in calls[:PLAIN_STEPS] for line in (outline.line(call), *_changes(call))]
    if len(calls) > PLAIN_STEPS:
        lines.append(f"… {count(len(calls) - PLAIN_STEPS, 'more call')}")
    parts = [few_lines(banner), answer, outline.checked(view)]
    parts += ["" if outline.simply_answered(view) else f"{sentence} {next_step}".strip()]
    if not view.todos_carried:
        parts.append("\n".join(todos.record_lines(view.todos)))
    parts += ["\n".join(teamtext.lines(item.team)) for item in view.items if isinstance(item, TeamItem)]
    parts += [verified.plain(item.verified) for item in view.items if isinstance(item, VerifiedItem)][-1:]
    parts += [record_text(view.loop)] if view.loop is not None else []
    parts += ["\n".join(lines), " · ".join(outline.facts(view)), _still(view).replace("`", "")]
    return "\n\n".join(part for part in parts if part)


def _changes(call: CallItem) -> list[str]:
    """What a call changed, or its subagents did, under its line."""
    if pages := found(call.content):
        return [f"    {text}" for text in pages_lines(pages)]
    if call.agents:
        return [f"    {text}" for one in call.agents for text in outline.agent_steps(one)]
    if call.preview.get("kind") != "diff":
        return []
    lines = unified(str(call.preview.get("old", "")), str(call.preview.get("body", "")), line=line_of(call.preview))
    cut = [f"… {count(len(lines) - CODE_LINES, 'more line')}"] if len(lines) > CODE_LINES else []
    return [f"    {line[:LINE_LIMIT]}" for line in [*lines[:CODE_LINES], *cut]]
