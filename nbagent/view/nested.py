"""Subagents in the view model: what one reports is folded into a view of its own, under the call that it works for.

What asks the person is lifted to the top, wherever it comes from; so is what it cost. Pure, and never raises. Read
`reported`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nbagent.core import events as ev
from nbagent.view.items import WRITING, CallItem, EndedItem, Item, Nested, TextItem, ThinkingItem, is_quiet
from nbagent.view.text import count, one_line, tokens
from nbagent.view.words import cost, in_one

if TYPE_CHECKING:
    from nbagent.view.fold import ViewModel

Fold = Callable[["ViewModel", ev.Event], "ViewModel"]
Close = Callable[[Sequence[Item]], tuple[Item, ...]]


def reported(
    view: ViewModel, item: CallItem, event: ev.AgentReported, fold: Fold, empty: ViewModel
) -> tuple[ViewModel, CallItem]:
    """Return the view and the call `item` after a subagent of it has reported something."""
    before = next((one.view for one in item.agents if one.agent_id == event.agent_id), empty)
    after = fold(before, event.event)
    found = Nested(event.agent_id, event.agent, event.title, after)
    agents = tuple(found if one.agent_id == found.agent_id else one for one in item.agents)
    agents = agents if found in agents else (*agents, found)
    leaf = ev.innermost(event)
    if isinstance(leaf, ev.ReplyEnded):
        cost = view.cost if leaf.cost is None else (view.cost or 0.0) + leaf.cost
        view = replace(view, usage=view.usage + leaf.usage, cost=cost)
    return _lifted(view, found, before, after), replace(item, agents=agents)


def _lifted(view: ViewModel, found: Nested, before: ViewModel, after: ViewModel) -> ViewModel:
    """Have the view ask what the subagent asks now, and no longer what it does not ask any more."""
    if before.approvals is not after.approvals:
        was = {str(a.get("call_id")) for a in before.approvals}
        approvals = [a for a in view.approvals if str(a.get("call_id")) not in was]
        view = replace(view, approvals=(*approvals, *after.approvals))
    if before.questions is not after.questions:
        asked = {question.question_id for question in before.questions}
        questions = [question for question in view.questions if question.question_id not in asked]
        new = [
            replace(question, key=f"{found.agent_id}.{question.key}", text=f"{found.agent}: {question.text}")
            for question in after.questions
        ]
        view = replace(view, questions=(*questions, *new))
    return view


def closed(view: ViewModel, item: CallItem, close: Close) -> tuple[ViewModel, CallItem]:
    """Return the view and a call that has ended: no subagent of it goes on or asks any more."""
    agents: list[Nested] = []
    for one in item.agents:
        over = one.view
        if over.ended is None:
            over = replace(over, items=close(over.items), approvals=(), questions=(), hooks=())
            view = _lifted(view, one, one.view, over)
        agents.append(replace(one, view=over))
    return view, replace(item, agents=tuple(agents))


def block_of(event: ev.Event) -> tuple[object, ...] | None:
    """Return what names the block that a delta adds to, also of a subagent's; None for other events."""
    agents: list[object] = []
    while isinstance(event, ev.AgentReported):
        agents += [event.call_id, event.agent_id]
        event = event.event
    if not isinstance(event, ev.TextDelta | ev.ThinkingDelta | ev.InputDelta):
        return None
    return (*agents, type(event), event.index, event.turn)


def text_of(event: ev.Event) -> str:
    """Return the text of a delta, also of a subagent's."""
    return str(getattr(ev.innermost(event), "text", ""))


def with_text(event: ev.Event, text: str) -> ev.Event:
    """Return a delta, also of a subagent's, with another text."""
    if isinstance(event, ev.AgentReported):
        return replace(event, event=with_text(event.event, text))
    assert isinstance(event, ev.TextDelta | ev.ThinkingDelta | ev.InputDelta)
    return replace(event, text=text)


def steps(nested: Nested) -> tuple[Item, ...]:
    """Return what stands under a subagent's line: what it has done or begun, not what still streams."""
    return tuple(item for item in nested.view.items if _stands(item))


def _stands(item: Item) -> bool:
    match item:
        case CallItem() if is_quiet(item):
            return False
        case TextItem() | ThinkingItem():
            return item.done and bool(item.text.strip()) and not item.discarded
        case CallItem():
            return item.status != WRITING and not item.discarded
        case EndedItem():
            return False
        case _:
            return True


def line(nested: Nested) -> str:
    """Return what a subagent does now, or how it ended, as one line."""
    view = nested.view
    if view.ended is not None:
        return one_line(view.ended.sentence, 200)
    if not view.started and view.turn and not view.approvals:
        return "Stopped."
    last = next((item for item in reversed(view.items) if not isinstance(item, EndedItem)), None)
    match last:
        case TextItem(done=False) if last.text.strip():
            return one_line(last.text.strip().splitlines()[-1], 200)
        case CallItem(status="running"):
            return one_line(last.progress or in_one(last.name, last.title), 200)
        case _:
            return view.activity


def facts(nested: Nested) -> str:
    """Return what a subagent has done so far: steps, tokens, cost; what is not known is left out."""
    calls = sum(isinstance(item, CallItem) for item in steps(nested))
    used = f"{tokens(nested.view.usage.total)} tokens" if nested.view.usage.total else ""
    return " · ".join(fact for fact in (count(calls, "step"), used, cost(nested.view)) if fact)


def at_work(item: CallItem) -> str:
    """Return what the subagents of a running call do, for the head of the view; "" where it has none at work."""
    working = [one for one in item.agents if one.view.ended is None]
    if len(working) == 1:
        return f"{working[0].agent}: {working[0].view.activity}"
    return f"{len(working)} agents at work" if working else ""
