"""The static record of a run: what the cell holds when it is over, on GitHub, in nbconvert, without a kernel.

No script, no stylesheet, no widget: semantic HTML with `<details>` and a few inline styles, beside Markdown and plain
text. Everything is escaped and bounded. Knows nothing of widgets. Read `record`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nbagent.core.events import Reason
from nbagent.core.shown import visible_plain
from nbagent.view.code import RECORD, code_html, plain_html
from nbagent.view.html import STATUS_WORDS, arguments_html, image_alt, preview_html, texts_and_images
from nbagent.view.items import CallItem, Item, NoteItem, QuestionItem, RetryItem, TextItem, ThinkingItem
from nbagent.view.markdown import to_html
from nbagent.view.text import (
    clip,
    clip_end,
    code_marked,
    count,
    duration,
    escape,
    few_lines,
    one_line,
    plain_output,
    without_ansi,
)
from nbagent.view.words import error_line, facts, in_one

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbagent.core.messages import Json
    from nbagent.view.fold import ViewModel

IMAGE_LIMIT = 200_000
"""Characters of one image's data URI, and of all images together, that a record keeps."""

TOTAL_LIMIT = 300_000
"""Characters of the HTML of one record."""

ANSWER_LIMIT = 30_000
PROMPT_LIMIT = 2_000
OUTPUT_LIMIT = 3_000
CODE_LIMIT = 6_000
MISSES = 5
"""Steps that did not fit whole after which the others are not even tried: drawing them takes time."""

PLAIN_STEPS = 200
"""Steps that are listed one by one in the Markdown and plain text of a record."""


def record(view: ViewModel) -> dict[str, str]:
    """Return the record of a run as a MIME bundle: text/html, text/markdown, text/plain."""
    return {"text/html": _html(view), "text/markdown": _markdown(view), "text/plain": _plain(view)}


def _answer(view: ViewModel) -> tuple[str, str]:
    """Return the answer's text and the key of the item that shows it (may be empty)."""
    last = next(
        (i for i in reversed(view.items) if isinstance(i, TextItem) and i.text.strip() and not i.discarded), None
    )
    text = view.ended.text if view.ended is not None else ""
    if last is not None and (not text.strip() or text.strip() == last.text.strip()):
        return last.text, last.key
    return text, ""


def _facts(view: ViewModel) -> list[str]:
    said = [one_line(view.model, 80), *facts(view), duration(view.at)]
    return [visible_plain(fact, spaces=False) for fact in said if fact]


def _ending(view: ViewModel) -> tuple[str, str]:
    if view.ended is None:
        return "This run was cut off; nothing of it goes on.", ""
    return few_lines(view.ended.sentence), few_lines(view.ended.next_step)


def _failed(view: ViewModel) -> bool:
    """Whether the ending is an error's text, of several sentences with commands, and not one short sentence."""
    return view.ended is not None and view.ended.reason == Reason.ERROR


def _calls(view: ViewModel) -> list[CallItem]:
    return [item for item in view.items if isinstance(item, CallItem) and not item.discarded]


def _line(item: CallItem) -> str:
    """One call on one plain line."""
    icon, word = STATUS_WORDS.get(item.status, ("?", item.status))
    seconds = "" if item.seconds is None else f" · {duration(item.seconds)}"
    error = error_line(texts_and_images(item.content)[0]) if item.status == "error" else ""
    error = f" · {plain_output(one_line(error, 160))}" if error else ""
    said = one_line(f"{icon} {word}: {in_one(item.name, item.title)}", 160)
    return visible_plain(said, spaces=False) + seconds + error


# ── HTML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _html(view: ViewModel) -> str:
    answer, answer_key = _answer(view)
    sentence, next_step = _ending(view)
    calls = _calls(view)
    parts = ['<div style="padding-left:.5em">']  # where the text of other outputs begins
    if view.prompt.strip():
        parts.append(f"<blockquote>{_words(clip(view.prompt.strip(), PROMPT_LIMIT))}</blockquote>")
    if answer.strip():
        parts.append(f"<div>{to_html(clip(answer, ANSWER_LIMIT), RECORD)}</div>")
    ending = "<br>".join(code_marked(escape(line)) for line in sentence.split("\n"))
    ending = ending if _failed(view) else f"<b>{ending}</b>"
    parts.append(f"<p>{ending}" + (f"<br>{code_marked(escape(next_step))}</p>" if next_step else "</p>"))
    facts_line = f"<p><small>{escape(' · '.join(_facts(view)))}</small></p>"
    steps = [item for item in view.items if item.key != answer_key]
    room = TOTAL_LIMIT - sum(len(part) for part in parts) - len(facts_line) - 1_000
    shown = _steps(steps, room)
    if shown:
        cells = len({cell for call in calls for cell in call.cells})
        label = "Steps: " + ", ".join([count(len(calls), "call"), *([count(cells, "cell")] if cells else [])])
        parts.append(f"<details><summary>{label}</summary>{''.join(shown)}</details>")
    return "".join([*parts, facts_line, "</div>"])


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
            whole = f"<p>{escape(_line(item))}</p>" if isinstance(item, CallItem) and not item.discarded else ""
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
        case NoteItem():
            return f"<p><i>! {_words(one_line(item.text, 600))}</i></p>"
        case RetryItem():
            return f"<p><i>↻ Tried again after {duration(item.wait)}: {_words(one_line(item.why, 300))}</i></p>"
        case QuestionItem():
            asked = f"<p>? {_words(clip(item.text, 1_000))}<br>"
            return f"{asked}→ {_words(clip(item.answer or 'not answered', 1_000))}</p>"
        case _:
            return ""


def _fold(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>{body}</details>"


def _call(item: CallItem, images: list[str]) -> str:
    parts: list[str] = []
    if item.answer is not None:
        who = "you" if item.answer.by in {"", "person"} else item.answer.by
        text = f"{'Approved' if item.answer.approved else 'Denied'} by {one_line(who, 80)}"
        text += f", rule kept: {one_line(item.answer.rule, 300)}" if item.answer.rule else ""
        text += f": {one_line(item.answer.words, 600)}" if item.answer.words else ""
        parts.append(f"<p><small>{_words(text)}</small></p>")
    parts += [
        arguments_html(item.input, item.preview, name=item.name, title=item.title, paint=RECORD),
        _preview(item.preview),
    ]
    texts, _ = texts_and_images(item.content)
    if texts:
        parts.append("<small>Result</small>")
    cut = clip_end if item.status == "error" else clip
    parts += [plain_html(without_ansi(cut(text, OUTPUT_LIMIT)), RECORD) for text in texts]
    for uri in images:
        parts.append(
            f'<img alt="{image_alt(item)}" style="max-width:100%" src="{uri}">'
            if uri
            else "<p><i>An image was left out of this record: it is too big.</i></p>"
        )
    return _fold(escape(_line(item)), "".join(parts))


def _preview(preview: Json) -> str:
    """The code or change of a call, cut if it is long (the whole is in the transcript and in the cell)."""
    body, kind = str(preview.get("body", "")), preview.get("kind")
    if len(body) + len(str(preview.get("old", ""))) <= CODE_LIMIT:
        return preview_html(preview, RECORD)
    language = str(preview.get("language", "")) if kind == "code" else ""
    return code_html(clip(body, CODE_LIMIT), language, RECORD)


# ── Markdown and plain text ──────────────────────────────────────────────────────────────────────────────────────────


_UNSAFE_TARGET = re.compile(r"\]\((?!https?://|mailto:)", re.IGNORECASE)


def neutral_markdown(text: str) -> str:
    """Return the model's Markdown so that no reader of Markdown makes HTML, an image or a script link of it."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("![", "!\\[").replace("]:", "]\\:")
    return _UNSAFE_TARGET.sub(r"]\\(", text)


def _step_lines(view: ViewModel) -> list[str]:
    calls = _calls(view)
    lines = [_line(call) for call in calls[:PLAIN_STEPS]]
    if len(calls) > PLAIN_STEPS:
        lines.append(f"… {count(len(calls) - PLAIN_STEPS, 'more call')}")
    return lines


def _markdown(view: ViewModel) -> str:
    sentence, next_step = _ending(view)
    answer = neutral_markdown(clip(_answer(view)[0].strip(), ANSWER_LIMIT))
    prompt = _markdown_words(clip(view.prompt.strip(), PROMPT_LIMIT)).replace("\n", "\n> ")
    bold = "" if _failed(view) else "**"
    ending = "  \n".join(f"{bold}{_markdown_sentence(line)}{bold}" for line in sentence.split("\n"))
    parts = [f"> {prompt}" if prompt else "", answer, f"{ending} {_markdown_sentence(next_step)}"]
    parts += ["\n".join(f"- {_markdown_words(line)}" for line in _step_lines(view))]
    parts += [f"*{_markdown_words(' · '.join(_facts(view)))}*"]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _markdown_words(text: str) -> str:
    """Plain words inside Markdown."""
    return re.sub(r"([\\`*_{}\[\]#|~$!])", r"\\\1", plain_output(text).replace("&", "&amp;").replace("<", "&lt;"))


def _markdown_sentence(line: str) -> str:
    """A sentence of ours: what stands in backticks stays code."""
    parts = re.split(r"(`[^`<>&\\]+`)", line)
    return "".join(part if n % 2 else _markdown_words(part) for n, part in enumerate(parts))


def _plain(view: ViewModel) -> str:
    sentence, next_step = _ending(view)
    answer = plain_output(clip(_answer(view)[0].strip(), ANSWER_LIMIT))
    parts = [answer, f"{sentence} {next_step}".strip(), "\n".join(_step_lines(view)), " · ".join(_facts(view))]
    return "\n\n".join(part for part in parts if part)
