"""What is said of a call and of a whole run, in the same words on every surface; plain text, not yet made harmless.

Each fact is said once: what a call's title says is not said again by the tool's name or by an argument. Knows nothing
of HTML or terminals. Read `spoken` and `arguments`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from nbagent.core.shown import effects_words
from nbagent.view.items import GOES_ON, CallItem
from nbagent.view.text import count, money, one_line, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nbagent.core.events import ApprovalAnswered, Compacted
    from nbagent.core.messages import Json
    from nbagent.view.fold import ViewModel

LEFT_OUT = "Not wanted; what was approved beside it in the same card was. Go on without this one."
"""What the model is told of a call that was not ticked."""

DEFAULTS: Mapping[str, object] = {
    "list_variables.limit": 200, "read_notebook.start": 1, "read_notebook.limit": 100, "read_file.start_line": 1,
    "profile_table.full": False, "read_data_head.rows": 10, "query.limit": 50, "query.connection": "",
    "edit_file.replace_all": False, "run_all.kept": False, "wait_for_cell.seconds": 60.0, "wait_for_cell.stop": False, "glob.folder": ".", "grep.folder": ".",
    "remember.replaces": "", "remember.about": "", "remember.kind": "project",
    "task.model": "", "task.thoroughness": "medium", "task.agent": "general-purpose",
    "task_create.description": "", "task_create.owner": "", "task_create.wants_plan": False, "task_update.result": "",
    "ask_plan.text": "", "answer_plan.text": "", "shutdown_request.reason": "", "answer_shutdown.reason": "",
}  # fmt: skip
"""Arguments that say nothing where they are what they are without being given; tests compare them with the tools."""

LOOKS = frozenset({"list_variables", "inspect_variable", "profile_table", "query", "read_data_head", "read_notebook", "read_cell", "read_file", "glob", "grep", "ask_user",
                   "read_result", "todo_write", "web_search", "web_fetch", "verify_notebook"})  # fmt: skip
"""Tools that only look: what they did is nothing that could be taken back."""

PLAIN = frozenset({"tidy_notebook"})
"""Our own tools whose title says all: neither their name nor their argument (a number on a list) says more to a person."""

STATUS_WORDS = {
    "writing": ("…", "being written"), "waiting": ("…", "waiting"), "asking": ("?", "asks you"),
    "running": ("●", "running"), "ok": ("✓", "done"), "error": ("✗", "error"), "interrupted": ("■", "interrupted"),
    "denied": ("⊘", "denied"), "skipped": ("–", "skipped"), "invalid": ("!", "invalid"),
}  # fmt: skip
"""Icon and word of each state of a call: the icon alone never carries the meaning."""

_CODE_WORDS = {
    GOES_ON: ("running", "●", "still runs"), "ended": ("ok", "✓", "ended"), "failed": ("error", "✗", "failed"),
    "stopped": ("interrupted", "■", "stopped by the agent"), "limit": ("interrupted", "■", "stopped at its limit"),
    "interrupted": ("interrupted", "■", "interrupted"),
}  # fmt: skip

_CELL = re.compile(r"In\[\d+\]")
_NONE = object()
_SECONDS = frozenset({"timeout", "seconds"})
_ERROR = re.compile(r"[\w.]*(?:Error|Exception|Interrupt|Exit|Warning|Iteration|ExceptionGroup)(?::|$)")
_ASIDE = re.compile(r"\s*(?:Hint:|\[.*left out)|\s*$")


def status_of(item: CallItem) -> tuple[str, str, str, float | None]:
    """Return the state of a call or of its code that outlasts it, its icon and word, and how long it took (seconds)."""
    if (said := _CODE_WORDS.get(item.code)) is not None:
        return *said, item.code_seconds
    return item.status, *STATUS_WORDS.get(item.status, ("?", item.status)), item.seconds


def spoken(name: str, title: str) -> tuple[str, str]:
    """Return a call's title, and the tool's name where that adds something to it (else "").

    A title that is no more than the tool's name and what it is called on is spoken: "edit file report.py".
    """
    said = title.strip() or name
    if said.split(" ", 1)[0] == name and "__" not in name:
        said = name.replace("_", " ") + said[len(name) :]
    return said, "" if name in PLAIN or set(_words(name)) <= set(_words(said)) else name


def in_one(name: str, title: str) -> str:
    """Return title and, where it adds something, name of a call as one text."""
    said, tool = spoken(name, title)
    return f"{said} [{tool}]" if tool else said


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def arguments(given: Json, preview: Json, *, name: str, title: str, whole: bool) -> Iterator[tuple[str, str]]:
    """Yield name and text of each argument that neither preview nor title says already.

    `whole`: for a decision: only what is certain to be said elsewhere is left out.
    """
    shown = {str(preview.get("body", "")), str(preview.get("old", ""))} if preview.get("kind", "none") != "none" else ()
    if name in PLAIN:
        return
    said = _words(title)
    for key, value in given.items():
        if name == "ask_user" and key == "questions" and not whole:
            continue  # the question itself is shown
        if value is None or (isinstance(value, str) and value.strip() and value in shown):
            continue
        if value == DEFAULTS.get(f"{name}.{key}", _NONE):
            continue
        if name.endswith("_cell") and _says(key, value, said, given):
            continue
        if (key == "cell" and name.endswith("_cell") and (_CELL.search(title) or _stands_in(str(value), title))) or (
            key == "path" and title == f"{name} {value}"
        ):
            continue
        if not whole and isinstance(value, str) and (value == "*" or _stands_in(value, title)):
            continue
        yield key, _text(key, value)


def _says(key: str, value: object, title: list[str], given: Json) -> bool:
    """Whether the title of a call of a cell tool says an argument: what kind of cell, and whether it is run."""
    if key == "cell_type":
        return value in title
    return key == "run" and (value is ("run" in title) or given.get("cell_type") == "markdown")


def _stands_in(value: str, title: str) -> bool:
    return bool(value.strip()) and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", title) is not None


def _text(key: str, value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    if key in _SECONDS and isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g} s"
    return json.dumps(value, ensure_ascii=False, default=str)


def answered(answer: ApprovalAnswered) -> str:
    """Return who approved or denied a call, and whether with an edit; the words are said beside it."""
    who = "you" if answer.by in {"", "person"} else one_line(answer.by, 80)
    if not answer.approved:
        return f"Left out by {who}" if answer.words == LEFT_OUT else f"Denied by {who}"
    return f"Approved by {who}, with {'your' if who == 'you' else 'an'} edit" if answer.edited else f"Approved by {who}"


def answer_words(answer: ApprovalAnswered) -> str:
    """Return what the person said with their answer, "" for words that we chose for them."""
    return "" if answer.words == LEFT_OUT else answer.words


def hint(preview: Json) -> str:
    """Return what a call's code would probably do, as one line; "" where nothing is known."""
    effects = preview.get("effects")
    return effects_words([str(effect) for effect in effects]) if isinstance(effects, list | tuple) else ""


def running_name(item: CallItem) -> tuple[str, bool]:
    """Return what runs, in few words, and whether it is a cell: its number where the title says it, else the title."""
    if found := _CELL.search(item.title):
        return found[0], True
    return ("The new cell", True) if item.name == "add_cell" else (spoken(item.name, item.title)[0], False)


def error_line(texts: Sequence[str]) -> str:
    """Return the line that says what went wrong: the last one that names an error, else the last one of all."""
    lines = [line for text in texts for line in text.splitlines() if not _ASIDE.match(line)]
    named = next((line for line in reversed(lines) if _ERROR.match(line)), None)
    return named or (lines[-1].strip() if lines else "")


def brief(item: CallItem, texts: Sequence[str]) -> str:
    """Return a few words on what came of a call: its error, else its summary, else how its result begins."""
    if item.status == "error" and (error := error_line(texts)):
        return one_line(error, 200)
    return item.summary or (one_line(texts[0], 90) if texts else "")


def summed_up(event: Compacted) -> str:
    """Return the sentence that says that a conversation was summed up, and how much is left of it."""
    return f"The conversation was summed up: {tokens(event.before)} → {tokens(event.after)} tokens."


def cost(view: ViewModel) -> str:
    """Return what the run has cost, "" where nothing was used or no price is known."""
    return money(view.cost) if view.cost is not None and view.usage.total else ""


def facts(view: ViewModel) -> list[str]:
    """Return turns, tokens and cost; what nothing was used of is left out."""
    turns = view.ended.turns if view.ended is not None else view.turn
    used = f"{tokens(view.usage.total)} {'token' if view.usage.total == 1 else 'tokens'}" if view.usage.total else ""
    searches = f"{view.usage.searches} web search{'es' * (view.usage.searches != 1)}" if view.usage.searches else ""
    return [fact for fact in (count(turns, "turn"), used, searches, cost(view)) if fact]
