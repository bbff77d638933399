"""The to-do list between runs: what a new run is told and shows of it, and `%agent todos`.

The list itself is in the session's transcript (tools/todo.py). Read `told`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.app.consent import before_run
from nbagent.core.events import TodosChanged
from nbagent.core.shown import visible_plain
from nbagent.tools import todo

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place
    from nbagent.core.session import Session

NO_LIST = "There is no to-do list. The agent writes one for a task of several steps."


def told(session: Session, place: Place) -> str:
    """Show what is still open of the session's list, and return what the model is told of it; "" where nothing is.

    It is told anew with each prompt: the session may have been resumed, or its beginning may have become a summary.
    """
    todos = todo.of_messages(session.transcript)
    if not todo.is_open(todos):
        return ""
    place.view.show(before_run(TodosChanged, todos=tuple(todos), carried=True))
    return todo.reminder(todos)


def listed(extension: Extension) -> str:
    """Carry out `%agent todos`: the list of the conversation that was used last."""
    conversation = extension.last
    todos = [] if conversation is None else todo.of_messages(conversation.session.transcript)
    if not todos:
        return NO_LIST
    return visible_plain(
        "\n".join([f"{todo.done_words(todos)}  ([x] done, [>] in progress, [ ] open)", *todo.lines(todos)])
    )
