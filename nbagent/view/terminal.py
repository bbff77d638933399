"""A run on a terminal: text as it comes, one line a call, approvals as plain text. Works without a TTY, too.

Nothing is ever redrawn, so the same lines are good in a log. Text of others cannot move the cursor or colour itself.
Read `TerminalView.show`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.core import events as ev
from nbagent.core.diff import unified
from nbagent.core.shown import visible_plain
from nbagent.view import teamtext, todos, verified
from nbagent.view.fold import ViewModel, fold
from nbagent.view.html import line_of
from nbagent.view.items import CallItem, TeamItem, is_quiet
from nbagent.view.loopview.words import record_text
from nbagent.view.text import clip, clip_end, count, duration, few_lines, one_line, plain_output
from nbagent.view.web import found, pages_lines
from nbagent.view.words import (
    STATUS_WORDS,
    answer_words,
    answered,
    arguments,
    facts,
    hint,
    in_one,
    status_of,
    summed_up,
)

if TYPE_CHECKING:
    from rich.console import Console

    from nbagent.core.messages import Json

OUTPUT_LIMIT = 1_200
_SIGNS = {"+": "green", "-": "red", "?": "yellow", "@": "dim"}
"""Styles of the lines of a diff, by how they begin."""
_GOOD = frozenset({"ok"})
_BAD = frozenset({"error", "invalid", "denied", "interrupted"})


class TerminalView:
    """Writes the events of one run to a rich console as they come."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._open = False  # whether the cursor stands after streamed text
        self._thinking = False
        self.view = ViewModel()

    def show(self, event: ev.Event) -> None:
        """Take one event and write what it says."""
        before, self.view = self.view, fold(self.view, event)
        match event:
            case ev.TodosChanged():
                self._todos(before, event)
            case ev.CallStarted() | ev.CallEnded() if self._is_quiet(event.call_id):
                pass
            case ev.RunStarted():
                limit = f"up to {count(event.max_turns, 'turn')}"
                self._line(f"{plain_output(event.model)} · {plain_output(event.mode)} · {limit}", "dim")
            case ev.RequestSent() if self._console.is_terminal:
                self._line("… waiting for the model", "dim")
            case ev.TextDelta():
                self._stream(event.text)
            case ev.ThinkingDelta() if not self._thinking:
                self._thinking = True
                self._line("… thinking", "dim")
            case ev.ReplyEnded():
                self._end_text()
                self._thinking = False
            case ev.ReplyDiscarded():
                self._thinking = False
                self._line(f"✗ discarded what was shown of this reply: {_said(event.why)}", "yellow")
            case ev.RetryScheduled():
                again = f"↻ trying again in {duration(event.wait)} (try {event.attempt} of {event.limit})"
                self._line(f"{again}: {_said(event.why)}", "yellow")
            case ev.ApprovalAsked():
                self._approval(event.approval)
            case ev.ApprovalAnswered() if event.by not in {"", "person"} or event.words or event.rule or event.edited:
                self._answered(event)
            case ev.CallStarted():
                self._started(event)
            case ev.CallEnded() | ev.CodeEnded():
                self._ended_call(event)
            case ev.QuestionAsked():
                self._question(event, "")
            case ev.AgentReported():
                self._nested(event)
            case ev.TeamChanged():
                self._team(before, event)
            case ev.AnswerChecked():
                self._line(f"! {_said(event.note)}", "dim")
            case ev.Verified():
                self._line(verified.plain(event))
            case ev.ModeChanged():
                self._line(f"! the mode is now {plain_output(event.mode)}", "dim")
            case ev.FoundStale():
                self._line(f"! {_said(event.text)}", "yellow")
            case ev.Noted():
                self._line(f"! {_said(event.text)}", "yellow" if event.level == "warning" else "dim")
            case ev.Compacted():
                self._line(f"≡ {summed_up(event)}", "dim")
            case ev.HookStarted() if event.message:
                self._line(f"… {_said(event.message)}", "dim")
            case ev.HookEnded() if event.sentence:
                self._line(f"! {_said(event.sentence)}", "dim" if event.outcome == "ok" else "yellow")
            case ev.RunEnded():
                self._ended(event)
            case _:
                pass

    def _nested(self, event: ev.AgentReported) -> None:
        """What a subagent does, a line each, behind its name."""
        inner, names = event.event, [event.agent]
        while isinstance(inner, ev.AgentReported):
            inner, names = inner.event, [*names, inner.agent]
        who = f"  ⤷ {_said(' › '.join(names))}"
        match inner:
            case ev.RunStarted():
                self._line(f"{who}: {_said(event.title or 'begins')} ({plain_output(inner.model)})", "dim")
            case ev.ApprovalAsked():
                self._approval(inner.approval)
            case ev.ApprovalAnswered() if inner.by not in {"", "person"} or inner.words or inner.rule or inner.edited:
                self._answered(inner)
            case ev.QuestionAsked():
                self._question(inner, f"{_said(event.agent)}: ")
            case ev.TodosChanged():
                self._todos(self.view, inner, f"{who}: ")
            case ev.CallEnded(name="todo_write", status=ev.Status.OK):
                pass
            case ev.CallEnded():
                icon, word = STATUS_WORDS.get(inner.status, ("?", str(inner.status)))
                style = "dim" if inner.status in _GOOD else "red"
                said = _said(inner.summary or inner.name)
                self._line(f"{who}: {icon} {word}: {_said(inner.name)} · {duration(inner.seconds)} · {said}", style)
            case ev.Noted() | ev.RetryScheduled():
                self._line(f"{who}: ! {_said(inner.text if isinstance(inner, ev.Noted) else inner.why)}", "yellow")
            case ev.RunEnded():
                self._line(f"{who}: {few_lines(inner.sentence)}", "dim")
            case _:
                pass

    def _team(self, before: ViewModel, event: ev.TeamChanged) -> None:
        """How a team stands: all of it once, then what is new."""
        was = [item.team for item in before.items if isinstance(item, TeamItem) and item.team.team == event.team]
        head, *rows = teamtext.news(was[0] if was else None, event) or [""]
        if head:
            self._line(head, "cyan")
        for row in rows:
            self._line(row)

    def _todos(self, before: ViewModel, event: ev.TodosChanged, who: str = "") -> None:
        """How far the to-do list is, and of its items those that changed."""
        if not event.todos:
            return
        doing = todos.now(event.todos)
        said = todos.heading(event.todos, carried=event.carried) + (f" · {doing}" if doing else "")
        self._line(f"{who}{said}", "cyan")
        if not who:
            for line in todos.news(before.todos, event.todos):
                self._line(f"  {line}")

    def _is_quiet(self, call_id: str) -> bool:
        last = [item for item in self.view.items if isinstance(item, CallItem) and item.call_id == call_id]
        return bool(last) and is_quiet(last[-1])

    def _stream(self, text: str) -> None:
        self._open = True
        self._console.print(plain_output(text), end="", markup=False, highlight=False, soft_wrap=True)

    def _end_text(self) -> None:
        if self._open:
            self._open = False
            self._console.print()

    def _line(self, text: str, style: str = "") -> None:
        self._end_text()
        self._console.print(text, style=style or None, markup=False, highlight=False, soft_wrap=True)

    def _block(self, text: str, style: str = "") -> None:
        """Lines behind a bar: what stands there comes from a tool, never from the model's text."""
        for line in text.rstrip("\n").split("\n"):
            self._line(f"  │ {line}", style)

    def _started(self, event: ev.CallStarted) -> None:
        self._line(f"● {_said(in_one(event.name, event.title))}", "cyan")
        calls = [i for i in self.view.items if isinstance(i, CallItem) and i.call_id == event.call_id]
        asked = [call.answer for call in calls if call.answer is not None]
        if not asked or asked[-1].edited:  # else an approval has shown it already
            self._preview(event.preview, OUTPUT_LIMIT)

    def _ended_code(self, event: ev.CodeEnded) -> None:
        for item in reversed(self.view.items):
            if isinstance(item, CallItem) and item.call_id == event.call_id and item.code:
                _, icon, word, _ = status_of(item)
                self._line(f"{icon} {word}: {_said(in_one(item.name, item.title))} · {duration(event.seconds)}", "dim")
                return

    def _ended_call(self, event: ev.CallEnded | ev.CodeEnded) -> None:
        if isinstance(event, ev.CodeEnded):
            self._ended_code(event)
            return
        icon, word = STATUS_WORDS.get(event.status, ("?", str(event.status)))
        if event.goes_on:
            icon, word = "●", "still runs"
        style = "green" if event.status in _GOOD else "red" if event.status in _BAD else "dim"
        short = f" · {_said(event.summary)}" if event.summary else ""
        self._line(f"{icon} {word}: {_said(event.name)} · {duration(event.seconds)}{short}", style)
        texts = [str(b.get("text", "")) for b in event.content if b.get("type") == "text"]
        if texts and (event.status != "ok" or not event.summary):
            cut = clip_end if event.status == "error" else clip
            self._block(plain_output(cut("\n".join(texts), OUTPUT_LIMIT)), "dim")
        for text in pages_lines(found(event.content)):
            self._block(text, "dim")
        if images := sum(b.get("type") == "image" for b in event.content):
            self._block(count(images, "image"), "dim")

    def _approval(self, approval: Json) -> None:
        """Everything that the answer is about, nothing cut."""
        tool, title = str(approval.get("tool", "")), str(approval.get("title", ""))
        asks = f"{_said(str(approval['agent']))} asks: " if approval.get("agent") else ""
        self._line(f"? {asks}Allow this? {visible_plain(in_one(tool, title))}", "bold")
        if why := str(approval.get("why", "")):
            self._line(f"  {plain_output(why)}", "dim")
        preview, given = approval.get("preview"), approval.get("input")
        shown: Json = preview if isinstance(preview, dict) else {}
        for key, text in arguments(given if isinstance(given, dict) else {}, shown, name=tool, title=title, whole=True):
            self._line(f"  {visible_plain(key)}: {visible_plain(text)}")
        self._preview(shown)
        if said := hint(shown):
            self._line(f"  {visible_plain(said)}", "yellow")

    def _question(self, event: ev.QuestionAsked, who: str) -> None:
        self._line(f"? {who}{plain_output(event.text)}", "bold")
        for number, choice in enumerate(event.choices, 1):
            detail = event.details[number - 1] if number <= len(event.details) else ""
            self._line(f"  {number}. {_said(choice)}" + (f": {_said(detail)}" if detail else ""))

    def _preview(self, preview: Json, limit: int | None = None) -> None:
        """What a call runs or changes, whole or cut to `limit` characters; a diff in colours."""
        text = _preview(preview)
        if not text:
            return
        text = text if limit is None else clip(text, limit)
        if preview.get("kind") != "diff":
            self._block(text, "dim" if limit is not None else "")
            return
        for line in text.split("\n"):
            self._block(line, _SIGNS.get(line[:1], ""))

    def _answered(self, event: ev.ApprovalAnswered) -> None:
        text = answered(event)
        text = _said(text[:1].lower() + text[1:])
        text += f", rule kept: {_said(event.rule)}" if event.rule else ""
        text += f": {_said(words)}" if (words := answer_words(event)) else ""
        self._line(f"  {text}", "dim")

    def _ended(self, event: ev.RunEnded) -> None:
        self._line(f"{'✓' if event.reason == 'end_turn' else '■'} {few_lines(event.sentence)}", "bold")
        if event.checked:
            self._line(f"  {_said(event.checked)}")
        if event.next_step:
            self._line(f"  {_said(event.next_step)}")
        self._line(" · ".join([*facts(self.view), duration(event.at)]), "dim")
        if self.view.loop is not None:
            self._block(record_text(self.view.loop))


def _said(text: str) -> str:
    return one_line(plain_output(text), 300)


def _preview(preview: Json) -> str:
    """A preview as plain text, hidden characters shown."""
    body = str(preview.get("body", ""))
    match preview.get("kind"):
        case "diff":
            return "\n".join(unified(str(preview.get("old", "")), body, carets=True, line=line_of(preview)))
        case "command":
            return "$ " + visible_plain(body)
        case "code" | "text" | "markdown":
            return visible_plain(body)
        case _:
            return ""
