"""The static record of a run: what the cell holds when it is over, on GitHub, in nbconvert, without a kernel.

No script, no stylesheet, no widget: semantic HTML with `<details>` and a few inline styles, beside Markdown and plain
text. Everything is escaped and bounded. Knows nothing of widgets. Read `record`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nbagent.core.shown import visible_plain
from nbagent.view import nested, outline, teamboard, todos, verified
from nbagent.view.code import RECORD, code_html
from nbagent.view.diff import diff_html
from nbagent.view.html import arguments_html, image_alt, line_of, preview_html, texts_and_images
from nbagent.view.items import (
    IN_THE_FACTS,
    STALE,
    CallItem,
    Item,
    Nested,
    NoteItem,
    QuestionItem,
    RetryItem,
    SummaryItem,
    TeamItem,
    TextItem,
    ThinkingItem,
    VerifiedItem,
    is_quiet,
)
from nbagent.view.loopview.record import diagram_html
from nbagent.view.markdown import to_html
from nbagent.view.querytable import result_html
from nbagent.view.record_text import ANSWER_LIMIT, PROMPT_LIMIT, markdown, plain
from nbagent.view.text import clip, clip_end, code_marked, count, duration, escape, few_lines, one_line, without_ansi
from nbagent.view.web import found, pages_html
from nbagent.view.words import answer_words, answered, hint, summed_up

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbagent.core.messages import Json
    from nbagent.view.fold import ViewModel

IMAGE_LIMIT = 200_000
"""Characters of one image's data URI, and of all images together, that a record keeps."""

TOTAL_LIMIT = 300_000
"""Characters of the HTML of one record."""

OUTPUT_LIMIT = 3_000
CODE_LIMIT = 6_000
MISSES = 5
"""Steps that did not fit whole after which the others are not even tried: drawing them takes time."""

_ERRANDS = frozenset({"tidy", "verify"})
"""What stands in for a model in commands that ask none."""

_ID = re.compile(r"[\w-]{1,80}", re.ASCII)
_BANNER = "border-left:4px solid #b35c00;padding:.2em .6em"


def record(view: ViewModel, *, banner: str = "") -> dict[str, str]:
    """Return the record of a run as a MIME bundle: text/html, text/markdown, text/plain.

    The same events give the same bytes. `banner` is a line above all, on what has become of the run since ("Taken back
    on …", "STALE: df changed").
    """
    banner = banner or view.stale
    return {
        "text/html": _html(view, banner),
        "text/markdown": markdown(view, banner),
        "text/plain": plain(view, banner),
    }


def _html(view: ViewModel, banner: str) -> str:
    answer, answer_key = outline.answer(view)
    sentence, next_step = outline.ending(view)
    calls = outline.calls(view)
    parts = ['<div style="padding-left:.5em">']  # where the text of other outputs begins
    if banner.strip():
        parts.append(f'<p style="{_BANNER}"><b>{_words(few_lines(banner))}</b></p>')
    if (
        view.prompt.strip() and not view.answers
    ):  # of a question the cell says what was asked, and no more is said around the answer
        parts.append(f"<blockquote>{_words(clip(view.prompt.strip(), PROMPT_LIMIT))}</blockquote>")
    if answer.strip():
        parts.append(f"<div>{to_html(clip(answer, ANSWER_LIMIT), RECORD)}</div>")
    if said := outline.checked(view):
        parts.append(f"<p>{_words(said)}</p>")
    if not outline.simply_answered(view):
        ending = "<br>".join(code_marked(escape(line)) for line in sentence.split("\n"))
        ending = ending if outline.failed(view) else f"<b>{ending}</b>"
        parts.append(f"<p>{ending}" + (f"<br>{code_marked(escape(next_step))}</p>" if next_step else "</p>"))
    if view.todos and not view.todos_carried:
        parts.append(todos.record_html(view.todos))
    parts += [teamboard.record_html(item.team) for item in view.items if isinstance(item, TeamItem)]
    parts += [verified.card_html(item.verified) for item in view.items if isinstance(item, VerifiedItem)][-1:]
    parts += [diagram_html(view.loop)] if view.loop is not None else []
    foot = f"<p><small>{escape(' · '.join(outline.facts(view)))}{_links(view)}</small></p>"
    steps = [item for item in view.items if item.key != answer_key and not is_quiet(item)]
    room = TOTAL_LIMIT - sum(len(part) for part in parts) - len(foot) - 1_000
    shown = _steps(steps, room)
    if shown:
        cells = len({cell for call in calls for cell in call.cells})
        failed = sum(call.status in {"error", "invalid"} for call in calls)
        numbers = {"call": len(calls), "cell": cells}
        said = [count(number, what) for what, number in numbers.items() if number] + [f"{failed} failed"] * bool(failed)
        label = ": ".join(filter(None, ("Steps", ", ".join(said))))
        parts.append(f"<details><summary>{label}</summary>{''.join(shown)}</details>")
    return "".join([*parts, foot, "</div>"])


def _links(view: ViewModel) -> str:
    """What can still be done with the run. A living notebook listens to the links; elsewhere they read as instructions."""
    if not _ID.fullmatch(view.run_id):
        return ""
    undo = f'<a href="#nbagent-undo-{view.run_id}">%agent undo</a> takes this run back · '
    again = f'<a href="#nbagent-again-{view.run_id}">Run again</a> {"looks anew" if view.model in _ERRANDS else "asks the model anew"}'
    on = f'<a href="#nbagent-continue-{view.run_id}">Continue</a> goes on with it · ' if outline.goes_on(view) else ""
    return f"<br>{on}{undo if outline.did_something(view) else ''}{again}"


def _words(text: str) -> str:
    return escape(visible_plain(without_ansi(text), spaces=False)).replace("\n", "<br>")


def _steps(items: list[Item], room: int) -> list[str]:
    """Return the steps as HTML in at most `room` characters: bodies go first, then lines."""
    images = _kept_images(items, min(IMAGE_LIMIT, room * 2 // 3))
    room -= sum(len(uri) + 100 for uris in images.values() for uri in uris)
    shown: list[str] = []
    misses = 0
    for place, item in enumerate(items):
        kept = images.get(item.key, [])
        whole = _step(item, kept) if misses < MISSES or any(kept) else ""
        size = len(whole) - sum(len(uri) for uri in kept)  # kept images are paid for already
        if not whole or size > room:
            misses += bool(whole)
            whole = f"<p>{escape(outline.line(item))}</p>" if isinstance(item, CallItem) and not item.discarded else ""
            size = len(whole)
        if size > room:
            shown.append(f"<p><i>… {count(len(items) - place, 'more step')} left out: the record is full.</i></p>")
            break
        room -= size
        shown.append(whole)
    return [part for part in shown if part]


def _kept_images(items: Iterable[Item], room: int) -> dict[str, list[str]]:
    """Return the data URIs to keep by item; "" stands for one left out. The last images are kept first."""
    kept: dict[str, list[str]] = {}
    for item in reversed(list(items)):
        if isinstance(item, CallItem):
            uris: list[str] = []
            for uri in texts_and_images(item.content)[1]:
                fits = len(uri) <= room
                uris.append(uri if fits else "")
                room -= len(uri) if fits else 0
            kept[item.key] = uris
    return kept


def _step(item: Item, images: list[str]) -> str:
    match item:
        case TextItem(discarded=""):
            return to_html(clip(item.text, OUTPUT_LIMIT), RECORD)
        case ThinkingItem(discarded="") if item.text.strip():
            return _fold("Thinking", f"<p>{_words(clip(item.text, OUTPUT_LIMIT))}</p>")
        case TextItem() | ThinkingItem() if item.discarded:
            return f"<p><i>✗ A broken reply was discarded: {_words(one_line(item.discarded, 300))}</i></p>"
        case CallItem(discarded=""):
            return _call(item, images)
        case NoteItem() if item.level not in {STALE, *IN_THE_FACTS}:
            icon = "i" if item.level == "info" else "!"
            return f"<p><i>{icon} {_words(one_line(item.text, 600))}</i></p>"
        case SummaryItem():
            body = to_html(clip(item.summed.summary, OUTPUT_LIMIT), RECORD)
            return _fold(f"≡ {escape(summed_up(item.summed))}", f"<div>{body}</div>")
        case RetryItem():
            return f"<p><i>↻ Tried again after {duration(item.wait)}: {_words(one_line(item.why, 300))}</i></p>"
        case QuestionItem():
            asked = f"<p>? {_words(clip(item.text, 1_000))}<br>"
            answer = ", ".join((item.answer or "not answered").splitlines())
            return f"{asked}→ {_words(clip(answer, 1_000))}</p>"
        case _:
            return ""


def _fold(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>{body}</details>"


def _call(item: CallItem, images: list[str]) -> str:
    parts: list[str] = []
    if item.answer is not None:
        text = answered(item.answer)
        text += f", rule kept: {one_line(item.answer.rule, 300)}" if item.answer.rule else ""
        text += f": {one_line(words, 600)}" if (words := answer_words(item.answer)) else ""
        parts.append(f"<p><small>{_words(text)}</small></p>")
    parts += [
        arguments_html(item.input, item.preview, name=item.name, title=item.title, paint=RECORD),
        _preview(item.preview),
        f"<p><small>{code_marked(_words(one_line(said, 600)))}</small></p>" if (said := hint(item.preview)) else "",
    ]
    parts.append(pages_html(found(item.content)))
    texts, _ = texts_and_images(item.content)
    if texts:
        parts.append("<small>Result</small>")
    cut = clip_end if item.status == "error" else clip
    parts += [result_html(item.name, without_ansi(cut(text, OUTPUT_LIMIT)), RECORD) for text in texts]
    parts += [_agent(one) for one in item.agents]
    for uri in images:
        parts.append(
            f'<img alt="{image_alt(item)}" style="max-width:100%" src="{uri}">'
            if uri
            else "<p><i>An image was left out of this record: it is too big.</i></p>"
        )
    return _fold(escape(outline.line(item)), "".join(parts))


def _agent(one: Nested) -> str:
    """A subagent: its steps on a line each, and how it ended."""
    said = f"{one.agent}: {one.title}" if one.title else one.agent
    lines = [f"<p><small>{_words(text)}</small></p>" for text in outline.agent_steps(one)]
    head = _words(one_line(f"{said} · {nested.facts(one)}", 200))
    if listed := todos.record_lines(one.view.todos):
        lines.append(f"<p><small>{'<br>'.join(map(_words, listed))}</small></p>")
    return _fold(head, "".join([*lines, f"<p><small>{_words(nested.line(one))}</small></p>"]))


def _preview(preview: Json) -> str:
    """The code or change of a call, cut if it is long (the whole is in the transcript and in the cell)."""
    body, old, kind = str(preview.get("body", "")), str(preview.get("old", "")), preview.get("kind")
    if len(body) + len(old) <= CODE_LIMIT:
        return preview_html(preview, RECORD)
    language = str(preview.get("language", "")) if kind in {"code", "diff"} else ""
    if kind == "diff":
        return diff_html(old, body, language, RECORD, limit=CODE_LIMIT, line=line_of(preview))
    return code_html(clip(body, CODE_LIMIT), language, RECORD)
