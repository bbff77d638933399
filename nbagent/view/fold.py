"""One fold of a run's events to the view model that every surface is drawn from: widget, terminal and static record.

Pure: knows nothing of HTML, widgets or Jupyter, and never raises, whatever the order of the events. Read `fold`, then
`model`; each kind of events has a module of its own. Text is only ever appended here; how it looks is the business of
`html`, `record` and `terminal`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nbagent.core import events as ev
from nbagent.core.events import Event
from nbagent.view import fold_calls as calls
from nbagent.view import fold_reply as replies
from nbagent.view import nested
from nbagent.view.items import STALE, NoteItem, RawItem, RetryItem, SummaryItem, TeamItem, VerifiedItem
from nbagent.view.loopview.seen import Before, LoopSeen, see
from nbagent.view.model import ViewModel, add, key, put

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ViewModel", "coalesce", "fold", "fold_all"]


def fold(view: ViewModel, event: Event) -> ViewModel:
    """Return `view` with one more event taken in; kinds that are not known only move the clock."""
    loop = None if view.loop is None else see(view.loop, event)
    view = replace(view, state=event.state, turn=event.turn, at=event.at, loop=loop)
    match event:
        case ev.TextDelta() | ev.ThinkingDelta() | ev.InputDelta():
            return replies.delta(view, event)
        case ev.BlockStarted():
            return replies.block_started(view, event)
        case ev.ReplyStarted():
            return replace(view, reply=view.reply + 1, model=event.model or view.model, awaited=None)
        case ev.ReplyEnded():
            return replies.reply_ended(view, event)
        case ev.ReplyDiscarded():
            return replies.discard(view, event.why)
        case ev.AgentReported():
            view, item = nested.reported(view, calls.call(view, event.call_id), event, fold, ViewModel())
            return put(view, item)
        case ev.CallDecided() | ev.CallStarted() | ev.CallProgress() | ev.CallEnded():
            return calls.call_event(view, event)
        case ev.CodeAwaited() | ev.CodeEnded():
            return calls.code_event(view, event)
        case ev.ApprovalAsked() | ev.ApprovalAnswered():
            return calls.approval(view, event)
        case ev.QuestionAsked() | ev.QuestionAnswered():
            return calls.question(view, event)
        case ev.RunStarted():
            return _began(view, event)
        case ev.RunEnded():
            return calls.run_ended(view, event)
        case ev.LoopShown():
            return replace(view, loop=_opened(view, event))
        case ev.FoundStale():
            return add(replace(view, stale=event.text), NoteItem(key=key(view, "n"), text=event.text, level=STALE))
        case ev.TodosChanged():
            return replace(view, todos=event.todos, todos_carried=event.carried)
        case ev.TeamChanged():
            before = [item for item in view.items if isinstance(item, TeamItem) and item.team.team == event.team]
            known = before[0].key if before else key(view, "b")
            return put(view, TeamItem(key=known, turn=event.turn, team=event))
        case ev.AnswerChecked():
            return replies.checked(view, event.text)
        case ev.Verified():
            return add(view, VerifiedItem(key=key(view, "v"), turn=event.turn, verified=event))
        case ev.ModeChanged():
            return replace(view, mode=event.mode)
        case ev.ViewCleared():
            return ViewModel(reply=view.reply, count=view.count)  # the next items get keys of their own
        case ev.Noted():
            return add(view, NoteItem(key=key(view, "n"), turn=event.turn, text=event.text, level=event.level))
        case ev.Compacted():
            return add(view, SummaryItem(key=key(view, "s"), turn=event.turn, summed=event))
        case ev.HookStarted() | ev.HookEnded():
            return calls.hook(view, event)
        case ev.RetryScheduled():
            return add(view, RetryItem(key=key(view, "r"), turn=event.turn, attempt=event.attempt,
                                        limit=event.limit, wait=event.wait, why=event.why))  # fmt: skip
        case ev.RawReceived():
            return add(view, RawItem(key=key(view, "w"), turn=event.turn, raw=event.raw))
        case _:
            return view


def _began(view: ViewModel, event: ev.RunStarted) -> ViewModel:
    return replace(view, started=True, run_id=event.run_id, session_id=event.session_id, model=event.model,
                   mode=event.mode, prompt=event.prompt, budget=event.budget,
                   answers=event.answers, max_turns=event.max_turns)  # fmt: skip


def _opened(view: ViewModel, event: ev.LoopShown) -> LoopSeen:
    """Return the loop of a run that has only begun."""
    known = Before(event.system, event.tools, event.messages) if event.system or event.tools else None
    return see(LoopSeen(run_id=view.run_id, session_id=view.session_id, model=view.model, prompt=view.prompt,
                        max_turns=view.max_turns, before=known), event)  # fmt: skip


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
