"""Items of the view model as safe HTML for the live view. All text of others passes through `text`, `code`, `markdown`.

Results of tools stand in cards that no model text can imitate: Markdown gives no elements with our classes. Read
`item_html`. Knows nothing of widgets; the page's script finds its way by `data-key`, `data-part` and `data-fold`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nbagent.core.served import FOUND
from nbagent.core.shown import visible_plain
from nbagent.view import nested, todos, verified
from nbagent.view.code import LIVE, Paint, code_html, plain_html
from nbagent.view.diff import diff_html
from nbagent.view.items import (
    IN_THE_FACTS,
    OPEN,
    RUNNING,
    STALE,
    WRITING,
    CallItem,
    EndedItem,
    Item,
    Nested,
    NoteItem,
    QuestionItem,
    RawItem,
    RetryItem,
    SummaryItem,
    TeamItem,
    TextItem,
    ThinkingItem,
    VerifiedItem,
)
from nbagent.view.markdown import to_html
from nbagent.view.querytable import TOOL, result_html
from nbagent.view.teamboard import team_html
from nbagent.view.text import (
    clip,
    clip_end,
    code_marked,
    count,
    duration,
    escape,
    few_lines,
    one_line,
    visible,
    without_ansi,
)
from nbagent.view.web import found, pages_html
from nbagent.view.words import (
    STATUS_WORDS,
    answer_words,
    answered,
    arguments,
    brief,
    cost,
    hint,
    spoken,
    status_of,
    summed_up,
)

if TYPE_CHECKING:
    from nbagent.core.messages import Block, Json
    from nbagent.view.fold import ViewModel

OUTPUT_LIMIT = 20_000
"""Characters of one result that the live view shows."""

STEP_LIMIT = 2_000
"""Characters of one result, or text, of a subagent's step."""

_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")


def header(view: ViewModel) -> Json:
    """Return what the header shows, as plain values that the page writes as text."""
    return {
        "state": str(view.state) if view.started else "Starting…",
        "activity": view.activity,
        "model": view.model,
        "mode": view.mode,
        "turn": view.turn,
        "max_turns": view.max_turns,
        "tokens": 0 if view.stale else view.usage.total,  # a record that is shown again has cost nothing now
        "cost": "" if view.stale else cost(view),
        "running": view.ended is None,
        "since": view.counting,
        "ended": str(view.ended.reason) if view.ended else "",
        "asking": view.asks_person,
    }


def item_html(item: Item) -> str:
    """Return one item as an element with `data-key`."""
    match item:
        case TextItem():
            return text_html(item, to_html(item.text), "")
        case ThinkingItem():
            return thinking_html(item)
        case CallItem():
            return _wrap(item, "call", _call(item), f'data-status="{escape(status_of(item)[0])}"')
        case QuestionItem():
            return _wrap(item, "question", _question(item))
        case NoteItem():
            icon = "i" if item.level in {"info", *IN_THE_FACTS} else "!"
            head = "" if item.level == STALE else f"<b>{icon} Note</b> "
            return _wrap(item, "note", f"{head}{_said(item.text)}", f'data-level="{escape(item.level)}"')
        case SummaryItem():
            body = f'<div dir="auto">{to_html(clip(item.summed.summary, OUTPUT_LIMIT))}</div>'
            return _wrap(
                item, "note", _fold("summary", f"<b>≡</b> {summed_up(item.summed)}", body), 'data-level="info"'
            )
        case TeamItem():
            return _wrap(item, "team", team_html(item.team))
        case VerifiedItem():
            return _wrap(item, "verified", verified.card_html(item.verified))
        case RetryItem():
            wait = f"Trying again in {duration(item.wait)} (try {item.attempt} of {item.limit}): {_said(item.why)}"
            return _wrap(item, "note", f"<b>↻ Retry</b> {wait}")
        case RawItem():
            kind = _said(str(item.raw.get("type", "unknown")))
            body = plain_html(clip(_json(item.raw), 4_000))
            return _wrap(item, "raw", _fold("raw", f"Not known to this version: {kind}", body))
        case EndedItem():
            return _wrap(item, "ended", ended_html(item), f'data-reason="{escape(str(item.ended.reason))}"')
        case _:
            return _wrap(item, "raw", "")


def _wrap(item: Item, kind: str, inner: str, extra: str = "") -> str:
    return f'<div class="nbagent-item nbagent-{kind}" data-key="{escape(item.key)}" {extra}>{inner}</div>'


def _fold(name: str, summary: str, body: str, *, opened: bool = False) -> str:
    state = " open" if opened else ""
    return f'<details data-fold="{name}"{state}><summary>{summary}</summary>{body}</details>'


def _said(text: str) -> str:
    """One line of somebody's words, hidden characters shown."""
    return visible(one_line(without_ansi(text), 600), LIVE.attr("ctl"), spaces=False)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


# ── the model's words ────────────────────────────────────────────────────────────────────────────────────────────────


def text_html(item: TextItem, blocks: str, tail: str) -> str:
    """Return a text item of finished `blocks` (HTML) and an open raw `tail`."""
    if item.discarded:
        body = plain_html(item.text)
        return _wrap(item, "discarded", _fold("discarded", f"✗ Discarded: {_said(item.discarded)}", body))
    shown = f'<div data-part="tail" class="nbagent-tail">{escape(tail)}</div>'
    return _wrap(item, "text", f'<div data-part="blocks">{blocks}</div>{shown}', 'dir="auto"')


def thinking_html(item: ThinkingItem) -> str:
    """Return a thinking item: folded, plain text."""
    body = f'<div data-part="tail" class="nbagent-thought" dir="auto">{escape(item.text)}</div>'
    if item.discarded:
        return _wrap(item, "discarded", _fold("discarded", f"✗ Discarded: {_said(item.discarded)}", body))
    label = "Thinking…"
    if item.done:
        label = "Thought" if item.seconds is None else f"Thought for {duration(item.seconds)}"
    return _wrap(item, "thinking", _fold("thinking", label, body))


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _call(item: CallItem) -> str:
    if item.discarded:
        return f'<div class="nbagent-line">✗ Discarded call of {_said(item.name)}: {_said(item.discarded)}</div>'
    status, icon, word, took = status_of(item)
    seconds = "" if took is None else f" · {duration(took)}"
    title, tool = spoken(item.name, item.title)
    head = (
        f'<span class="nbagent-status" data-status="{escape(status)}"><span aria-hidden="true">{icon}</span> '
        f'{escape(word)}</span><span class="nbagent-title">{_said(title)}</span>'
        f'<span class="nbagent-tool">{_said(tool)}</span>'
        f'<span class="nbagent-time">{escape(seconds.removeprefix(" · "))}</span>'
    )
    parts = [f'<div class="nbagent-line">{head}</div>']
    if item.status == WRITING:
        size = f"{count(item.written, 'character')} so far" if item.written else ""
        parts.append(f'<div class="nbagent-progress" data-part="progress">{size}</div>')
        return parts[0] + parts[1]
    if item.answer is not None:
        parts.append(f'<div class="nbagent-answer">{_answer(item)}</div>')
    if item.status != "asking":
        parts.append(_shown_input(item))
    parts.append(f'<div class="nbagent-progress" data-part="progress">{_said(item.progress)}</div>')
    parts += [_agent(one, title) for one in item.agents]
    if item.content:
        parts.append(_result(item))
    return "".join(parts)


# ── subagents: a line that says what one does now, its steps folded ──────────────────────────────────────────────────


def _agent(one: Nested, above: str = "") -> str:
    """One subagent; `above` is the title of its call, which often says already what it is for."""
    said = f"{one.agent}: {one.title}" if one.title else one.agent
    name = "" if said == above else f"<b>{_said(said)}</b> "
    now = f'<span data-part="{escape(one.agent_id)}">{_said(nested.line(one))}</span>'
    fold = _fold(
        escape(one.agent_id), escape(nested.facts(one)), "".join(_agent_step(item) for item in nested.steps(one))
    )
    listed = todos.todos_html(one.view.todos, over=one.view.ended is not None, fold=f"{one.agent_id}-todos")
    return f'<div class="nbagent-agent"><div class="nbagent-agentline">{name}{now}</div>{listed}{fold}</div>'


def _agent_step(item: Item) -> str:
    """One step of a subagent, short: it is drawn again with each step that comes after it."""
    match item:
        case TextItem():
            return f'<div class="nbagent-agentstep">{to_html(clip(item.text, STEP_LIMIT))}</div>'
        case CallItem():
            icon, word = STATUS_WORDS.get(item.status, ("?", item.status))
            title, tool = spoken(item.name, item.title)
            texts, images = texts_and_images(item.content)
            short = item.summary or brief(item, texts)
            head = f'<span class="nbagent-status" data-status="{escape(item.status)}"><span aria-hidden="true">{icon}</span> {escape(word)}</span> {_said(title)} <span class="nbagent-tool">{_said(tool)}</span> <span class="nbagent-short">{_said(short)}</span>'
            cut = clip_end if item.status == "error" else clip
            body = preview_html(item.preview) + "".join(plain_html(without_ansi(cut(t, STEP_LIMIT))) for t in texts)
            body += f"<div>{count(len(images), 'image')}</div>" if images else ""
            inner = "".join(_agent(one) for one in item.agents)
            step = _fold(f"step-{escape(item.call_id)}", head, body) if body else head
            return f'<div class="nbagent-agentstep">{step}{inner}</div>'
        case NoteItem():
            return f'<div class="nbagent-agentstep">! {_said(item.text)}</div>'
        case SummaryItem():
            return f'<div class="nbagent-agentstep">≡ {summed_up(item.summed)}</div>'
        case RetryItem():
            return f'<div class="nbagent-agentstep">↻ {_said(item.why)}</div>'
        case QuestionItem():
            return f'<div class="nbagent-agentstep">? {_said(item.text)} → {_said(item.answer or "")}</div>'
        case _:
            return ""


def _answer(item: CallItem) -> str:
    answer = item.answer
    assert answer is not None
    text = _said(answered(answer))
    if answer.rule:
        text += f", and allowed from now on: <code>{_said(answer.rule)}</code>"
    if words := answer_words(answer):
        text += f": “{_said(words)}”"
    return text


def _shown_input(item: CallItem) -> str:
    body = preview_html(item.preview)
    given = arguments_html(item.input, item.preview, name=item.name, title=item.title)
    if not body:
        return given
    text = str(item.preview.get("body", ""))
    label = {"code": "Code", "command": "Command", "diff": "Change"}.get(str(item.preview.get("kind")), "Text")
    size = "" if item.preview.get("kind") == "diff" else f" · {count(text.count(chr(10)) + 1, 'line')}"
    said = f'<div class="nbagent-effects">{code_marked(_said(hint(item.preview)))}</div>' if hint(item.preview) else ""
    return given + _fold("input", label + size, body + said, opened=item.status == RUNNING)


def _result(item: CallItem) -> str:
    texts, images = texts_and_images(item.content)
    lines = sum(text.count("\n") + 1 for text in texts)
    label = "Result" if item.status in {"ok", *OPEN} and not item.code else "What the model was told"
    pages = found(item.content)
    sizes = [count(len(pages), "page")] if pages else [count(lines, "line")] if texts else []
    sizes += [count(len(images), "image")] if images else []
    head = f'{label} · {", ".join(sizes) or "nothing"} <span class="nbagent-short">{_said(brief(item, texts))}</span>'
    failed = item.status == "error"
    cut = clip_end if failed else clip
    body = pages_html(pages) + "".join(result_html(item.name, without_ansi(cut(text, OUTPUT_LIMIT))) for text in texts)
    body += "".join(f'<img class="nbagent-image" alt="{image_alt(item)}" src="{src}">'
                    for src in images)  # fmt: skip
    end = " nbagent-fromend" if failed else ""  # of a long traceback, the end says what it was
    whole = f'<div class="nbagent-output{end}"><div>{body}</div></div>'
    return _fold("output", head, whole, opened=(bool(pages) and not texts) or (item.name == TOOL and not failed))


def image_alt(item: CallItem) -> str:
    """Return the text that stands for an image of a call's result, safe in an attribute."""
    return escape(visible_plain(one_line(f"Image from: {spoken(item.name, item.title)[0]}", 120), spaces=False))


def texts_and_images(content: tuple[Block, ...]) -> tuple[list[str], list[str]]:
    """Return the texts of result blocks, and their images as data URIs; blocks of other kinds become JSON text."""
    texts: list[str] = []
    images: list[str] = []
    for block in content:
        if block.get("type") == "text":
            texts.append(str(block.get("text", "")))
        elif (uri := image_uri(block)) is not None:
            images.append(uri)
        elif block.get("type") in FOUND:  # drawn as links (web.py)
            continue
        else:
            texts.append(clip(_json(block), 2_000))
    return texts, images


def image_uri(block: Block) -> str | None:
    """Return an image block as a data URI, None where it is not an image of a known type in clean base64."""
    source = block.get("source")
    if block.get("type") != "image" or not isinstance(source, dict):
        return None
    media, data = str(source.get("media_type")), "".join(str(source.get("data", "")).split())
    if media not in _IMAGE_TYPES or not data or not _BASE64.issuperset(data):
        return None
    return f"data:{media};base64,{data}"


def preview_html(preview: Json, paint: Paint = LIVE) -> str:
    """Return what a call will run or write, whole, or "" where there is nothing to show."""
    body, kind = str(preview.get("body", "")), preview.get("kind", "none")
    match kind:
        case "code":
            return code_html(body, str(preview.get("language") or "python"), paint)
        case "command":
            return code_html(body, "bash", paint)
        case "diff":
            language = str(preview.get("language") or "")
            return diff_html(str(preview.get("old", "")), body, language, paint, line=line_of(preview))
        case "text":
            return plain_html(body, paint, spaces=True)
        case "markdown":
            return to_html(visible_plain(body, spaces=False), paint)
        case _:
            return ""


def line_of(preview: Json) -> int:
    """Return the number in its file of the line that a diff begins with; 0: not known."""
    line = preview.get("line", 1)
    return line if isinstance(line, int) else 0


def arguments_html(
    given: Json, preview: Json, *, name: str, title: str, whole: bool = False, paint: Paint = LIVE
) -> str:
    """Return the arguments that preview and title do not say; long ones are cut and folded unless `whole`."""
    separator = " " if paint.styles is None else " · "  # the live view has a stylesheet for the gaps
    rows: list[str] = []
    blocks: list[str] = []
    for key, text in arguments(given, preview, name=name, title=title, whole=whole):
        label = visible(key, paint.attr("ctl"))
        if "\n" in text:
            blocks.append(_argument_block(key, label, text, whole=whole, paint=paint))
        else:
            shown = visible(text if whole else one_line(text, 200), paint.attr("ctl"))
            rows.append(f"<span><b>{label}</b> <code>{shown}</code></span>")
    look = ' class="nbagent-args"' if paint.styles is None else ""
    return (f"<div{look}>{separator.join(rows)}</div>" if rows else "") + "".join(blocks)


def _argument_block(key: str, label: str, text: str, *, whole: bool, paint: Paint) -> str:
    """An argument of several lines, its line breaks kept."""
    shown = text if whole else clip(text, 6_000)
    is_code = key in {"source", "code"}
    body = code_html(shown, "python", paint) if is_code else plain_html(shown, paint, spaces=True)
    if whole:
        return f"<div><b>{label}</b>{body}</div>"
    # the fold of the code that waits is the one of the code that runs, so that it stays as the person left it
    fold = "input" if is_code else escape(f"argument-{key}")
    return _fold(fold, f"{'Code' if is_code else label} · {count(text.count(chr(10)) + 1, 'line')}", body)


# ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _question(item: QuestionItem) -> str:
    text = visible(without_ansi(item.text), LIVE.attr("ctl"), spaces=False)
    if item.answer is None:  # a card below asks it
        return "<b>? Question</b> waiting for your answer"
    answer = _said(", ".join(item.answer.splitlines())) or "not answered"
    return f'<b>? Question</b> <span class="nbagent-asked">{text}</span><div class="nbagent-answer">→ {answer}</div>'


def ended_html(item: EndedItem) -> str:
    """Return the sentence on how the run ended and what to do next."""
    icon = "✓" if item.ended.reason == "end_turn" else "■"
    step = f'<div class="nbagent-next">{code_marked(_said(item.ended.next_step))}</div>' if item.ended.next_step else ""
    said = "<br>".join(code_marked(_said(line)) for line in few_lines(item.ended.sentence).split("\n"))
    checked = f'<div class="nbagent-checked">{_said(item.ended.checked)}</div>' if item.ended.checked else ""
    return f'<div><b aria-hidden="true">{icon}</b> {said}</div>{checked}{step}'
