"""One fold of a run's events to the view model that every surface is drawn from: widget, terminal and static record.

Pure: knows nothing of HTML, widgets or Jupyter, and never raises, whatever the order of the events. Read `fold`, then
`items`. Text is only ever appended here; how it looks is the business of `html`, `record` and `terminal`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nbagent.core import events as ev
from nbagent.core.events import Event, State, Status
from nbagent.core.messages import Json, Usage
from nbagent.view import nested
from nbagent.view.citing import with_citations
from nbagent.view.items import (
    ASKING,
    OPEN,
    RUNNING,
    STALE,
    WAITING,
    CallItem,
    EndedItem,
    Item,
    NoteItem,
    QuestionItem,
    RawItem,
    RetryItem,
    SummaryItem,
    TextItem,
    ThinkingItem,
    is_quiet,
)
from nbagent.view.words import running_name, spoken

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewModel:
    """All that a surface needs to draw a run. `at` is seconds since the run began, as of the last event.

    `stale` is the sentence for the record of an earlier run whose inputs have changed, else ""; `approvals` are the open
    approvals as JSON (see `ports.Approval`), oldest first; `todos` is the to-do list (`todos_carried`: of an earlier run); `reply` and `count` number the replies and items seen so far.
    """

    state: State = State.THINK
    run_id: str = ""
    session_id: str = ""
    model: str = ""
    mode: str = ""
    prompt: str = ""
    budget: str = ""
    started: bool = False
    turn: int = 0
    max_turns: int = 0
    at: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    items: tuple[Item, ...] = ()
    approvals: tuple[Json, ...] = ()
    questions: tuple[QuestionItem, ...] = ()
    ended: ev.RunEnded | None = None
    stale: str = ""
    hooks: tuple[ev.HookStarted, ...] = ()
    todos: tuple[Json, ...] = ()
    todos_carried: bool = False
    reply: int = 0
    count: int = 0

    @property
    def activity(self) -> str:
        """What goes on now, as a few words for the person."""
        if self.ended is not None:
            return "Done"
        if self.approvals:
            return "Waiting for you to approve or deny"
        if self.questions:
            return "Waiting for your answer"
        if self.hooks:
            return self.hooks[-1].message or f"Running the hook {self.hooks[-1].hook}"
        if not self.started:
            return "Starting…"
        if (running := self.running) is not None:
            if agents := nested.at_work(running):
                return agents
            what, is_cell = running_name(running)
            return f"Running {what[:1].lower() + what[1:] if is_cell and not what.startswith('In[') else what}"
        return _last_activity(self)

    @property
    def running(self) -> CallItem | None:
        """The call that runs now, the last of several."""
        if self.ended is None:
            for item in reversed(self.items):
                if isinstance(item, CallItem) and item.status == RUNNING and not is_quiet(item):
                    return item
        return None


def _last_activity(view: ViewModel) -> str:
    last = view.items[-1] if view.items else None
    match last:
        case RetryItem():
            return "Trying again soon"
        case ThinkingItem(done=False, discarded=""):
            return "Thinking"
        case TextItem(done=False, discarded=""):
            return "Writing"
        case CallItem(status="writing", discarded="", name="todo_write"):
            return "Writing the to-do list"
        case CallItem(status="writing", discarded="", name=name):
            return f"Writing: {spoken(name, '')[0]}"
        case _:
            return "Waiting for the model" if view.state is State.THINK else str(view.state)


def fold(view: ViewModel, event: Event) -> ViewModel:
    """Return `view` with one more event taken in; kinds that are not known only move the clock."""
    view = replace(view, state=event.state, turn=event.turn, at=event.at)
    match event:
        case ev.TextDelta() | ev.ThinkingDelta() | ev.InputDelta():
            return _delta(view, event)
        case ev.BlockStarted():
            return _block_started(view, event)
        case ev.ReplyStarted():
            return replace(view, reply=view.reply + 1, model=event.model or view.model)
        case ev.ReplyEnded():
            return _reply_ended(view, event)
        case ev.ReplyDiscarded():
            return _discard(view, event.why)
        case ev.AgentReported():
            view, item = nested.reported(view, _call(view, event.call_id), event, fold, ViewModel())
            return _put(view, item)
        case ev.CallDecided() | ev.CallStarted() | ev.CallProgress() | ev.CallEnded():
            return _call_event(view, event)
        case ev.ApprovalAsked() | ev.ApprovalAnswered():
            return _approval(view, event)
        case ev.QuestionAsked() | ev.QuestionAnswered():
            return _question(view, event)
        case ev.RunStarted():
            return replace(view, started=True, run_id=event.run_id, session_id=event.session_id, model=event.model,
                           mode=event.mode, prompt=event.prompt, budget=event.budget,
                           max_turns=event.max_turns)  # fmt: skip
        case ev.RunEnded():
            return _run_ended(view, event)
        case ev.FoundStale():
            return _add(replace(view, stale=event.text), NoteItem(key=_key(view, "n"), text=event.text, level=STALE))
        case ev.TodosChanged():
            return replace(view, todos=event.todos, todos_carried=event.carried)
        case ev.ModeChanged():
            return replace(view, mode=event.mode)
        case ev.ViewCleared():
            return ViewModel(reply=view.reply, count=view.count)  # the next items get keys of their own
        case ev.Noted():
            return _add(view, NoteItem(key=_key(view, "n"), turn=event.turn, text=event.text, level=event.level))
        case ev.Compacted():
            return _add(view, SummaryItem(key=_key(view, "s"), turn=event.turn, summed=event))
        case ev.HookStarted() | ev.HookEnded():
            return _hook(view, event)
        case ev.RetryScheduled():
            return _add(view, RetryItem(key=_key(view, "r"), turn=event.turn, attempt=event.attempt,
                                        limit=event.limit, wait=event.wait, why=event.why))  # fmt: skip
        case ev.RawReceived():
            return _add(view, RawItem(key=_key(view, "w"), turn=event.turn, raw=event.raw))
        case _:
            return view


def fold_all(events: Iterable[Event], view: ViewModel | None = None) -> ViewModel:
    """Return `view` (default: a new one) with all `events` taken in."""
    result = ViewModel() if view is None else view
    for event in events:
        result = fold(result, event)
    return result


def coalesce(events: Sequence[Event]) -> list[Event]:
    """Merge neighbouring deltas of one block into one, so that folding n deltas costs O(their text)."""
    merged: list[Event] = []
    run: list[Event] = []

    def close() -> None:
        if run:
            last = run[-1]
            merged.append(last if len(run) == 1 else nested.with_text(last, "".join(map(nested.text_of, run))))
            run.clear()

    for event in events:
        if (block := nested.block_of(event)) is not None:
            if run and nested.block_of(run[0]) != block:
                close()
            run.append(event)
        else:
            close()
            merged.append(event)
    close()
    return merged


# ── items ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _key(view: ViewModel, prefix: str) -> str:
    return f"{prefix}{view.count}"


def _add(view: ViewModel, item: Item) -> ViewModel:
    return replace(view, items=(*view.items, item), count=view.count + 1)


def _put(view: ViewModel, item: Item) -> ViewModel:
    for place in range(len(view.items) - 1, -1, -1):
        if view.items[place].key == item.key:
            return replace(view, items=(*view.items[:place], item, *view.items[place + 1 :]))
    return _add(view, item)


def _block(view: ViewModel, index: int) -> TextItem | ThinkingItem | CallItem | None:
    for item in reversed(view.items):
        if isinstance(item, TextItem | ThinkingItem | CallItem) and item.reply == view.reply and item.index == index:
            return item
    return None


def _delta(view: ViewModel, event: ev.TextDelta | ev.ThinkingDelta | ev.InputDelta) -> ViewModel:
    item = _block(view, event.index)
    if isinstance(event, ev.InputDelta):
        if isinstance(item, CallItem):
            return _put(view, replace(item, written=item.written + len(event.text)))
        return view
    if isinstance(event, ev.TextDelta):
        if not isinstance(item, TextItem):
            item = TextItem(key=_key(view, "t"), turn=event.turn, reply=view.reply, index=event.index)
        return _put(view, replace(item, text=item.text + event.text))
    if not isinstance(item, ThinkingItem):
        item = ThinkingItem(key=_key(view, "h"), turn=event.turn, reply=view.reply, index=event.index)
    seconds = None if item.started is None else event.at - item.started
    return _put(view, replace(item, text=item.text + event.text, seconds=seconds))


def _block_started(view: ViewModel, event: ev.BlockStarted) -> ViewModel:
    if (last := _block(view, event.index)) is not None and not isinstance(last, CallItem):
        return view
    turn, reply, index = event.turn, view.reply, event.index
    match event.kind:
        case "text":
            item: Item = TextItem(key=_key(view, "t"), turn=turn, reply=reply, index=index)
        case "thinking" | "redacted_thinking":
            item = ThinkingItem(key=_key(view, "h"), turn=turn, reply=reply, index=index, started=event.at)
        case _ if event.call_id:
            item = CallItem(
                key=_key(view, "c"), turn=turn, reply=reply, index=index, call_id=event.call_id, name=event.name
            )
        case _:
            item = RawItem(key=_key(view, "w"), turn=turn, raw={"type": event.kind, "name": event.name})
    return _add(view, item)


def _reply_ended(view: ViewModel, event: ev.ReplyEnded) -> ViewModel:
    if not any(isinstance(i, TextItem | ThinkingItem | CallItem) and i.reply == view.reply for i in view.items):
        view = _from_content(view, event)
    view = replace(view, items=with_citations(view.items, view.reply, event.content))
    inputs = {str(b.get("id")): b.get("input") for b in event.content if b.get("type") == "tool_use"}
    items: list[Item] = []
    for item in view.items:
        match item:
            case TextItem(done=False) | ThinkingItem(done=False) if item.reply == view.reply:
                items.append(replace(item, done=True))
            case CallItem(status="writing") if item.reply == view.reply:
                given = inputs.get(item.call_id)
                known = given if isinstance(given, dict) else item.input
                items.append(replace(item, status=WAITING, input=known))
            case _:
                items.append(item)
    cost = view.cost if event.cost is None else (view.cost or 0.0) + event.cost
    return replace(view, items=tuple(items), usage=view.usage + event.usage, cost=cost, reply=view.reply + 1)


def _from_content(view: ViewModel, event: ev.ReplyEnded) -> ViewModel:
    """Draw a reply that did not stream (a stored one) from its blocks."""
    for index, block in enumerate(event.content):
        kind = str(block.get("type"))
        started = ev.BlockStarted(state=event.state, turn=event.turn, at=event.at, index=index, kind=kind,
                                  name=str(block.get("name", "")), call_id=str(block.get("id", "")))  # fmt: skip
        view = _block_started(view, started)
        match _block(view, index):
            case TextItem() | ThinkingItem() as item:
                view = _put(view, replace(item, text=str(block.get(kind, ""))))
            case _:
                pass
    return view


def _discard(view: ViewModel, why: str) -> ViewModel:
    items = tuple(
        replace(item, discarded=why or "the reply broke off")
        if isinstance(item, TextItem | ThinkingItem | CallItem) and item.reply == view.reply and not item.discarded
        else item
        for item in view.items
    )
    return replace(view, items=items, reply=view.reply + 1)


# ── calls, approvals, questions, the end ─────────────────────────────────────────────────────────────────────────────


def _call(view: ViewModel, call_id: str, name: str = "") -> CallItem:
    """Return the open call of that id, or a new one: some servers use one id in several turns."""
    for item in reversed(view.items):
        if isinstance(item, CallItem) and item.call_id == call_id and item.status in OPEN and not item.discarded:
            return item
    return CallItem(key=_key(view, "c"), turn=view.turn, call_id=call_id, name=name, status=WAITING)


def _call_event(view: ViewModel, event: ev.CallDecided | ev.CallStarted | ev.CallProgress | ev.CallEnded) -> ViewModel:
    item = _call(view, event.call_id)
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
                           seconds=event.seconds, summary=event.summary, cells=event.cells)  # fmt: skip
            view, item = nested.closed(_drop_approval(view, event.call_id), item, _closed)
    return _put(view, item)


def _drop_approval(view: ViewModel, call_id: str) -> ViewModel:
    if not view.approvals:
        return view
    return replace(view, approvals=tuple(a for a in view.approvals if a.get("call_id") != call_id))


def _approval(view: ViewModel, event: ev.ApprovalAsked | ev.ApprovalAnswered) -> ViewModel:
    view = _drop_approval(view, event.call_id)
    item = _call(view, event.call_id)
    if isinstance(event, ev.ApprovalAnswered):
        return _put(view, replace(item, answer=event, status=WAITING))
    asked = event.approval
    preview = asked.get("preview")
    item = replace(item, name=str(asked.get("tool") or item.name), title=str(asked.get("title") or item.title),
                   preview=preview if isinstance(preview, dict) else {}, status=ASKING)  # fmt: skip
    return _put(replace(view, approvals=(*view.approvals, {**asked, "call_id": event.call_id})), item)


def _hook(view: ViewModel, event: ev.HookStarted | ev.HookEnded) -> ViewModel:
    """A hook is seen while it runs, and afterwards only if something came of it."""
    if isinstance(event, ev.HookStarted):
        return replace(view, hooks=(*view.hooks, event))
    view = replace(view, hooks=tuple(hook for hook in view.hooks if hook.hook_id != event.hook_id))
    if not event.sentence:
        return view
    level = "warning" if event.outcome in {"failed", "block", "stop"} else "info"
    return _add(view, NoteItem(key=_key(view, "n"), turn=event.turn, text=event.sentence, level=level))


def _question(view: ViewModel, event: ev.QuestionAsked | ev.QuestionAnswered) -> ViewModel:
    if isinstance(event, ev.QuestionAsked):
        item = QuestionItem(key=_key(view, "q"), turn=event.turn, question_id=event.question_id, text=event.text,
                            choices=event.choices, header=event.header, details=event.details, previews=event.previews,
                            many=event.many, group=event.group, of=event.of)  # fmt: skip
        return replace(_add(view, item), questions=(*view.questions, item))
    still = tuple(q for q in view.questions if q.question_id != event.question_id)
    for item in reversed(view.items):
        if isinstance(item, QuestionItem) and item.question_id == event.question_id and item.answer is None:
            return _put(replace(view, questions=still), replace(item, answer=event.text))
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
            case QuestionItem(answer=None):
                over.append(replace(item, answer=""))
            case TextItem(done=False) | ThinkingItem(done=False):
                over.append(replace(item, done=True))
            case _:
                over.append(item)
    return tuple(over)


def _run_ended(view: ViewModel, event: ev.RunEnded) -> ViewModel:
    usage = event.usage if event.usage.total else view.usage
    cost = view.cost if event.cost is None else event.cost
    items = _closed(view.items)
    view = replace(view, items=items, approvals=(), questions=(), hooks=(), ended=event, usage=usage, cost=cost)
    return _add(view, EndedItem(key=_key(view, "e"), turn=event.turn, ended=event))
