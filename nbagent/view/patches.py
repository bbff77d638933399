"""What changed between two view models, as small operations for the page; and the whole page, for one that has nothing.

Each item's HTML is sent once; streaming text is only appended to. Knows nothing of widgets. Read `Page.changes`.

Operations: `put` {key, html} creates or replaces an item; `more` {key, html, tail} adds finished blocks and sets the
open tail; `add` {key, text} appends to the tail; `set` {key, part, text} replaces the text of one part;
`clear` takes all items away; `todos` {html, text} puts another to-do list in place and says `text` of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nbagent.core.shown import visible_plain
from nbagent.view import nested, todos
from nbagent.view.html import item_html, text_html
from nbagent.view.items import WRITING, CallItem, Item, TextItem, ThinkingItem, is_quiet
from nbagent.view.markdown import MarkdownStream, Step
from nbagent.view.text import count

if TYPE_CHECKING:
    from nbagent.core.messages import Json
    from nbagent.view.fold import ViewModel


class Page:
    """What the pages show now, and the way from there to a newer view model."""

    def __init__(self) -> None:
        self._shown: dict[str, Item] = {}
        self._streams: dict[str, MarkdownStream] = {}
        self._todos = ("", "")

    def changes(self, view: ViewModel) -> list[Json]:
        """Return the operations that bring a page up to `view`, and take it as shown."""
        operations: list[Json] = []
        items = [item for item in view.items if not is_quiet(item)]
        if self._shown and (not items or items[0].key not in self._shown):  # a view of its own begins
            operations.append({"op": "clear", "key": ""})
            self._shown, self._streams = {}, {}
        for item in items:
            before = self._shown.get(item.key)
            if before is not item:
                operations += self._change(before, item)
                self._shown[item.key] = item
        listed = _todos(view)
        if listed != self._todos:
            self._todos = listed
            operations.append(self._list())
        return operations

    def snapshot(self) -> list[Json]:
        """Return `put` operations of all that is shown, and the to-do list."""
        shown: list[Json] = [{"op": "put", "key": item.key, "html": self._html(item)} for item in self._shown.values()]
        return [*shown, *([self._list()] if self._todos[0] else [])]

    def _list(self) -> Json:
        html, said = self._todos
        return {"op": "todos", "key": "", "html": html, "text": said}

    def _html(self, item: Item) -> str:
        if isinstance(item, TextItem) and (stream := self._streams.get(item.key)) is not None:
            return text_html(item, stream.html, stream.tail)
        return item_html(item)

    def _change(self, before: Item | None, item: Item) -> list[Json]:
        match before, item:
            case (None | TextItem(), TextItem()):
                return self._text(before if isinstance(before, TextItem) else None, item)
            case (ThinkingItem(), ThinkingItem(done=False, discarded="")):
                return [{"op": "add", "key": item.key, "text": item.text[len(before.text) :]}]
            case (CallItem(), CallItem()) if replace(before, written=item.written, progress=item.progress) == item:
                text = f"{count(item.written, 'character')} so far" if item.status == WRITING else item.progress
                return [{"op": "set", "key": item.key, "part": "progress", "text": visible_plain(text, spaces=False)}]
            case (CallItem(), CallItem()) if _lines_only(before, item):
                lines = [(one.agent_id, nested.line(one)) for one in item.agents]
                said = [(one.agent_id, nested.line(one)) for one in before.agents]
                return [
                    {"op": "set", "key": item.key, "part": part, "text": visible_plain(text, spaces=False)}
                    for part, text in [*lines, ("progress", item.progress)]
                    if (part, text) not in said and (part, text) != ("progress", before.progress)
                ]
            case _:
                return [{"op": "put", "key": item.key, "html": item_html(item)}]

    def _text(self, before: TextItem | None, item: TextItem) -> list[Json]:
        old = before.text if before is not None else ""
        changed = item.done and not item.text.startswith(old)  # a piece that now stands in another item
        if item.discarded or changed or (before is not None and before.done):
            self._streams.pop(item.key, None)
            return [{"op": "put", "key": item.key, "html": item_html(item)}]
        stream = self._streams.get(item.key)
        operations: list[Json] = []
        if stream is None:
            stream = self._streams[item.key] = MarkdownStream()
            operations.append({"op": "put", "key": item.key, "html": text_html(item, "", "")})
        step = stream.feed(item.text[len(old) :])
        if item.done:
            step = Step(html=step.html + stream.close())
            del self._streams[item.key]
        if step.html or item.done:
            operations.append({"op": "more", "key": item.key, "html": step.html, "tail": step.tail})
        elif step.added:
            operations.append({"op": "add", "key": item.key, "text": step.added})
        return operations


def _todos(view: ViewModel) -> tuple[str, str]:
    """The to-do list, and what is said of it to who does not see it."""
    over = view.ended is not None
    html = todos.todos_html(view.todos, carried=view.todos_carried, over=over)
    if not html or over:
        return html, ""
    doing = todos.now(view.todos)
    return html, todos.heading(view.todos, carried=view.todos_carried) + (f". Now: {doing}" if doing else "")


def _lines_only(before: CallItem, item: CallItem) -> bool:
    """Whether nothing of a call has changed but the lines on what its subagents do now."""
    if len(before.agents) != len(item.agents) or replace(before, agents=item.agents, progress=item.progress) != item:
        return False
    return all(
        old is new
        or (
            old.view.ended is new.view.ended
            and old.view.todos is new.view.todos
            and nested.steps(old) == nested.steps(new)
        )
        for old, new in zip(before.agents, item.agents, strict=True)
    )
