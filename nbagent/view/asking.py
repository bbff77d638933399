"""What a card shows of the calls that it asks about, as safe HTML: everything that the answer is about, nothing cut.

Knows nothing of widgets or of answers. Read `call_html` and `preview_box`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.core.shown import UNUSUAL, is_hidden, rule_words, visible_plain
from nbagent.view.code import LIVE, plain_html
from nbagent.view.html import arguments_html, preview_html
from nbagent.view.text import code_marked, count, one_line, visible, without_ansi
from nbagent.view.words import hint, spoken

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nbagent.core.messages import Json
    from nbagent.view.items import QuestionItem

PLAN = "exit_plan"
"""The call by which a plan is shown: its card asks about the plan, not about a call."""
_MARK = LIVE.attr("ctl")
_PLAN_WAYS = "Edit lets you change it before you approve. What you write in the box is for a new plan: nothing is changed until you approve."


def preview_of(approval: Json) -> Json:
    """Return the preview of an approval, empty where there is none."""
    preview = approval.get("preview")
    return preview if isinstance(preview, dict) else {}


def title_of(approval: Json) -> str:
    """Return what a call would do, as one plain line."""
    return visible_plain(str(approval.get("title") or approval.get("tool") or ""))


def call_html(approval: Json, *, grouped: bool) -> str:
    """Return what one call would do: its title, why it is asked about, and the arguments that are not seen elsewhere.

    `grouped`: it stands among others, and the card's own line says what is the same for all.
    """
    tool, title = str(approval.get("tool", "")), str(approval.get("title", ""))
    given = approval.get("input")
    rows = arguments_html(
        given if isinstance(given, dict) else {}, preview_of(approval), name=tool, title=title, whole=True
    )
    asked = "" if grouped else f"<b>{_asks(approval)}Allow this?</b> "
    said, name = spoken(tool, title)
    why = "" if grouped else _why(approval)
    if tool == PLAN:
        asked, said, name, why = (
            "<b>The plan:</b> ",
            "go on with it?",
            "",
            f'<div class="nbagent-why">{_PLAN_WAYS}</div>',
        )
    return (
        f'<div class="nbagent-ask"><div class="nbagent-asktitle">{asked}<span class="nbagent-askedfor">'
        f'{visible(said, _MARK)}</span> <span class="nbagent-tool">{visible(name, _MARK)}</span></div>'
        f"{why}{rows}</div>"
    )


def _asks(approval: Json) -> str:
    """Return who asks where it is a subagent, "" for the agent itself."""
    agent = visible_plain(one_line(str(approval.get("agent") or ""), 120), spaces=False)
    return f"{visible(agent, _MARK)} asks: " if agent else ""


def _why(approval: Json) -> str:
    why = str(approval.get("why", ""))
    return f'<div class="nbagent-why">{visible(why[:1].upper() + why[1:], _MARK)}{_where(approval)}</div>'


def _where(approval: Json) -> str:
    notebook = visible(str(approval.get("notebook") or ""), _MARK)
    return f'<span class="nbagent-where"> · in {notebook}</span>' if notebook else ""


def group_html(approvals: Sequence[Json]) -> str:
    """Return the line above several calls, with each reason why they are asked about."""
    why = visible(_together(str(approval.get("why", "")) for approval in approvals), _MARK)
    return (
        f'<div class="nbagent-ask"><div class="nbagent-asktitle"><b>{_asks(approvals[0])}Allow these {len(approvals)}?</b> '
        f"They run in this order; untick what you do not want.</div>"
        f'<div class="nbagent-why">{why[:1].upper()}{why[1:]}{_where(approvals[0])}</div></div>'
    )


def _together(reasons: Iterable[str]) -> str:
    """Different reasons as one sentence; what they begin with in common is said once."""
    said: dict[str, list[str]] = {}
    for reason in dict.fromkeys(reasons):
        begin, colon, rest = reason.partition(": ")
        said.setdefault(begin + colon, []).append(rest)
    return "; ".join(begin + ", or ".join(rests) for begin, rests in said.items() if begin)


def preview_box(approval: Json) -> str:
    """Return what the call would run or change, all of it; the page says so where a part of it is out of sight."""
    preview = preview_of(approval)
    body, old = str(preview.get("body", "")), str(preview.get("old", ""))
    if preview.get("kind") == "diff" and not body and old:
        size = f"{count(old.count(chr(10)) + 1, 'line')} would be deleted"
    else:
        size = ""
    said = f'<div class="nbagent-size">{size}</div>' if size else ""
    return f'<div class="nbagent-preview" tabindex="0">{preview_html(preview)}</div>{said}'


def effects_html(approval: Json, *, edited: bool = False) -> str:
    """Return the hint on what the code would do; of an edited code it says that it is of the proposal."""
    said = hint(preview_of(approval))
    if not said:
        return ""
    said = said.replace("Probably", "The proposal would probably (your version may not)", 1) if edited else said
    return f'<div class="nbagent-effects" title="From a look at the code; a hint, not a promise">{code_marked(visible(said, _MARK))}</div>'


def hidden_note(text: str) -> str:
    """Return a warning where a text that is to be edited holds characters that cannot be seen, else ""."""
    found = {match[0] for match in UNUSUAL.finditer(text) if is_hidden(match[0])}
    if not found:
        return ""
    return (
        '<div class="nbagent-hiddennote">This text holds characters that you can\'t see in the box: '
        f"{visible(''.join(sorted(found)), _MARK)}</div>"
    )


def questions_html(number: int) -> str:
    """Return the line above several questions."""
    return f'<div class="nbagent-ask"><div class="nbagent-asktitle"><b>{number} questions for you</b></div></div>'


def question_html(question: QuestionItem, *, together: bool) -> str:
    """Return a question of the model to the person, as plain text; `together`: with others, below a line that says so."""
    shown = visible(without_ansi(question.text), _MARK, spaces=False)
    head = visible(one_line(without_ansi(question.header), 24), _MARK, spaces=False)
    header = f'<span class="nbagent-chip">{head}</span>' if head else ""
    many = '<div class="nbagent-size">You can choose more than one.</div>' if question.many else ""
    title = "" if together else "<b>A question for you</b>"
    first = f"<div>{title} {header}</div>" if title or header else ""
    return f'<div class="nbagent-ask">{first}<div class="nbagent-asked">{shown}</div>{many}</div>'


def option_html(detail: str) -> str:
    """Return what stands beside the button of a choice."""
    return f'<div class="nbagent-detail">{visible(without_ansi(detail), _MARK, spaces=False)}</div>'


def previews_html(question: QuestionItem) -> str:
    """Return the previews of the choices that have one, each in a fold under its choice's name."""
    folds: list[str] = []
    for choice, preview in zip(question.choices, question.previews, strict=False):
        if preview.strip():
            name = visible(one_line(choice, 60), _MARK)
            folds.append(f"<details><summary>Preview: {name}</summary>{plain_html(preview, spaces=True)}</details>")
    return "".join(folds)


def rule_html(rule: str, approval: Json) -> str:
    """Return what a rule offered by `approval` means, in words, and its exact text."""
    kind = str(preview_of(approval).get("kind", "none"))
    words = rule_words(rule, [str(offer) for offer in approval.get("offers") or ()], kind)
    return f'<div>{visible(words, _MARK)}</div><code class="nbagent-rule">{visible(rule, _MARK)}</code>'


def rule_face(rule: str, approval: Json) -> str:
    """Return what a button that keeps `rule` says, e.g. "Allow this code", "Allow every add_cell"."""
    tool, _, pattern = rule.partition("(")
    if not pattern:
        return label(f"Allow every {tool}")
    if not pattern.startswith("sha256:"):
        return label(f"Allow {rule}")
    kind = str(preview_of(approval).get("kind", "none"))
    return f"Allow this {({'command': 'command', 'code': 'code', 'diff': 'code'}).get(kind, 'call')}"


def label(text: str, limit: int = 60) -> str:
    """Return plain text for a button's face."""
    return visible_plain(one_line(text, limit), spaces=False)
