"""What the blocks of the model's replies do to the view model: they begin, grow, end, or count no more.

Pure, and never raises, whatever the order of the events. Read `block_started`, then `reply_ended`.
"""

from __future__ import annotations

from dataclasses import replace

from nbagent.core import events as ev
from nbagent.view.citing import with_citations
from nbagent.view.items import WAITING, CallItem, Item, RawItem, TextItem, ThinkingItem
from nbagent.view.model import ViewModel, add, key, put


def _block(view: ViewModel, index: int) -> TextItem | ThinkingItem | CallItem | None:
    for item in reversed(view.items):
        if isinstance(item, TextItem | ThinkingItem | CallItem) and item.reply == view.reply and item.index == index:
            return item
    return None


def delta(view: ViewModel, event: ev.TextDelta | ev.ThinkingDelta | ev.InputDelta) -> ViewModel:
    """Return the view with a piece of a block added."""
    item = _block(view, event.index)
    if isinstance(event, ev.InputDelta):
        if isinstance(item, CallItem):
            return put(view, replace(item, written=item.written + len(event.text)))
        return view
    if isinstance(event, ev.TextDelta):
        if not isinstance(item, TextItem):
            item = TextItem(key=key(view, "t"), turn=event.turn, reply=view.reply, index=event.index)
        return put(view, replace(item, text=item.text + event.text))
    if not isinstance(item, ThinkingItem):
        item = ThinkingItem(key=key(view, "h"), turn=event.turn, reply=view.reply, index=event.index)
    seconds = None if item.started is None else event.at - item.started
    return put(view, replace(item, text=item.text + event.text, seconds=seconds))


def block_started(view: ViewModel, event: ev.BlockStarted) -> ViewModel:
    """Return the view with a block begun."""
    if (last := _block(view, event.index)) is not None and not isinstance(last, CallItem):
        return view
    turn, reply, index = event.turn, view.reply, event.index
    match event.kind:
        case "text":
            item: Item = TextItem(key=key(view, "t"), turn=turn, reply=reply, index=index)
        case "thinking" | "redacted_thinking":
            item = ThinkingItem(key=key(view, "h"), turn=turn, reply=reply, index=index, started=event.at)
        case _ if event.call_id:
            item = CallItem(
                key=key(view, "c"), turn=turn, reply=reply, index=index, call_id=event.call_id, name=event.name
            )
        case _:
            item = RawItem(key=key(view, "w"), turn=turn, raw={"type": event.kind, "name": event.name})
    return add(view, item)


def reply_ended(view: ViewModel, event: ev.ReplyEnded) -> ViewModel:
    """Return the view with a reply that is whole."""
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
        view = block_started(view, started)
        match _block(view, index):
            case TextItem() | ThinkingItem() as item:
                view = put(view, replace(item, text=str(block.get(kind, ""))))
            case _:
                pass
    return view


def checked(view: ViewModel, text: str) -> ViewModel:
    """Return the view with `text` in the place of the last text: the answer, with what it cites looked up."""
    last = next(
        (i for i in reversed(view.items) if isinstance(i, TextItem) and i.text.strip() and not i.discarded), None
    )
    return view if last is None else put(view, replace(last, text=text, plain=text, done=True))


def discard(view: ViewModel, why: str) -> ViewModel:
    """Return the view with what came of the broken reply marked as discarded."""
    items = tuple(
        replace(item, discarded=why or "the reply broke off")
        if isinstance(item, TextItem | ThinkingItem | CallItem) and item.reply == view.reply and not item.discarded
        else item
        for item in view.items
    )
    return replace(view, items=items, reply=view.reply + 1)
