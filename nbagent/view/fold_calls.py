"""What calls, their approvals, questions, hooks and the end of a run do to the view model.

Pure, and never raises, whatever the order of the events. Read `call_event`, then `run_ended`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nbagent.core import events as ev
from nbagent.core.events import Status
from nbagent.view import nested
from nbagent.view.items import (
    ASKING,
    GOES_ON,
    OPEN,
    RUNNING,
    WAITING,
    CallItem,
    EndedItem,
    Item,
    NoteItem,
    QuestionItem,
    TextItem,
    ThinkingItem,
)
from nbagent.view.model import ViewModel, add, key, put


def call(view: ViewModel, call_id: str, name: str = "") -> CallItem:
    """Return the open call of that id, or a new one: some servers use one id in several turns."""
    for item in reversed(view.items):
        if isinstance(item, CallItem) and item.call_id == call_id and item.status in OPEN and not item.discarded:
            return item
    return CallItem(key=key(view, "c"), turn=view.turn, call_id=call_id, name=name, status=WAITING)


def call_event(view: ViewModel, event: ev.CallDecided | ev.CallStarted | ev.CallProgress | ev.CallEnded) -> ViewModel:
    """Return the view after a call went on."""
    item = call(view, event.call_id)
    match event:
        case ev.CallDecided():
            item = replace(item, name=event.name, input=event.input, decision=f"{event.action}: {event.rule}")
        case ev.CallStarted():
            item = replace(item, name=event.name, input=event.input, title=event.title, preview=event.preview,
                           status=RUNNING)  # fmt: skip
        case ev.CallProgress():
            item = replace(item, progress=event.text)
        case ev.CallEnded():
            item = replace(item, name=event.name, status=str(event.status), content=event.content, progress="",
                           seconds=event.seconds, summary=event.summary, cells=event.cells,
                           code=GOES_ON if event.goes_on else "", code_began=event.at - event.seconds)  # fmt: skip
            view, item = nested.closed(_drop_approval(view, event.call_id), item, _closed)
    return put(view, item)


def code_event(view: ViewModel, event: ev.CodeAwaited | ev.CodeEnded) -> ViewModel:
    """Return the view after the run began to wait for the code of a call, or that code has ended."""
    if isinstance(event, ev.CodeAwaited):
        return replace(view, awaited=event)
    view = replace(view, awaited=None)
    for item in reversed(view.items):
        if isinstance(item, CallItem) and item.call_id == event.call_id and item.code == GOES_ON:
            return put(view, replace(item, code=event.how, code_seconds=event.seconds))
    return view


def _drop_approval(view: ViewModel, call_id: str) -> ViewModel:
    if not view.approvals:
        return view
    return replace(view, approvals=tuple(a for a in view.approvals if a.get("call_id") != call_id))


def approval(view: ViewModel, event: ev.ApprovalAsked | ev.ApprovalAnswered) -> ViewModel:
    """Return the view after an approval was asked or answered."""
    view = _drop_approval(view, event.call_id)
    item = call(view, event.call_id)
    if isinstance(event, ev.ApprovalAnswered):
        return put(view, replace(item, answer=event, status=WAITING))
    asked = event.approval
    preview = asked.get("preview")
    item = replace(item, name=str(asked.get("tool") or item.name), title=str(asked.get("title") or item.title),
                   preview=preview if isinstance(preview, dict) else {}, status=ASKING)  # fmt: skip
    return put(replace(view, approvals=(*view.approvals, {**asked, "call_id": event.call_id})), item)


def hook(view: ViewModel, event: ev.HookStarted | ev.HookEnded) -> ViewModel:
    """A hook is seen while it runs, and afterwards only if something came of it."""
    if isinstance(event, ev.HookStarted):
        return replace(view, hooks=(*view.hooks, event))
    view = replace(view, hooks=tuple(hook for hook in view.hooks if hook.hook_id != event.hook_id))
    if not event.sentence:
        return view
    level = "warning" if event.outcome in {"failed", "block", "stop"} else "info"
    return add(view, NoteItem(key=key(view, "n"), turn=event.turn, text=event.sentence, level=level))


def question(view: ViewModel, event: ev.QuestionAsked | ev.QuestionAnswered) -> ViewModel:
    """Return the view after a question was asked or answered."""
    if isinstance(event, ev.QuestionAsked):
        item = QuestionItem(key=key(view, "q"), turn=event.turn, question_id=event.question_id, text=event.text,
                            choices=event.choices, header=event.header, details=event.details, previews=event.previews,
                            many=event.many, group=event.group, of=event.of)  # fmt: skip
        return replace(add(view, item), questions=(*view.questions, item))
    still = tuple(q for q in view.questions if q.question_id != event.question_id)
    for item in reversed(view.items):
        if isinstance(item, QuestionItem) and item.question_id == event.question_id and item.answer is None:
            return put(replace(view, questions=still), replace(item, answer=event.text))
    return view


def _closed(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items of a run that goes on no more: nothing of them is open."""
    over: list[Item] = []
    for item in items:
        match item:
            case CallItem() if item.status in OPEN:
                status = Status.INTERRUPTED if item.status == RUNNING else Status.SKIPPED
                agents = nested.closed(ViewModel(), item, _closed)[1].agents
                over.append(replace(item, status=str(status), progress="", agents=agents))
            case CallItem(code="goes on"):
                over.append(replace(item, code="interrupted"))
            case QuestionItem(answer=None):
                over.append(replace(item, answer=""))
            case TextItem(done=False) | ThinkingItem(done=False):
                over.append(replace(item, done=True))
            case _:
                over.append(item)
    return tuple(over)


def run_ended(view: ViewModel, event: ev.RunEnded) -> ViewModel:
    """Return the view of a run that is over: nothing of it is open."""
    usage = event.usage if event.usage.total else view.usage
    cost = view.cost if event.cost is None else event.cost
    items = _closed(view.items)
    view = replace(
        view, items=items, approvals=(), questions=(), hooks=(), awaited=None, ended=event, usage=usage, cost=cost
    )
    return add(view, EndedItem(key=key(view, "e"), turn=event.turn, ended=event))
