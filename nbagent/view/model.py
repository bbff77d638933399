"""The view model: what a surface needs to draw a run, and how an item is put into it.

Pure and frozen; knows nothing of events' order, which is the business of `fold`. Read `ViewModel`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nbagent.core import events as ev
from nbagent.core.events import State
from nbagent.core.messages import Json, Usage
from nbagent.models.human import NAME as HUMAN
from nbagent.view import nested
from nbagent.view.items import (
    GOES_ON,
    RUNNING,
    CallItem,
    Item,
    QuestionItem,
    RetryItem,
    TextItem,
    ThinkingItem,
    is_quiet,
)
from nbagent.view.loopview.seen import LoopSeen
from nbagent.view.words import running_name, spoken

YOUR_REPLY = "Waiting for your reply: you are the model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewModel:
    """All that a surface needs to draw a run. `at` is seconds since the run began, as of the last event.

    `stale` is the sentence for the record of an earlier run whose inputs have changed, else ""; `approvals` are the open
    approvals as JSON (see `ports.Approval`), oldest first; `answers`: it only answers; `todos` is the to-do list (`todos_carried`: of an earlier run); `awaited` is the code that the run waits for; `loop`: the run's loop, where it is shown, too; `reply` and `count` number the replies and items seen so far.
    """

    state: State = State.THINK
    run_id: str = ""
    session_id: str = ""
    model: str = ""
    mode: str = ""
    prompt: str = ""
    budget: str = ""
    answers: bool = False
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
    awaited: ev.CodeAwaited | None = None
    todos: tuple[Json, ...] = ()
    todos_carried: bool = False
    loop: LoopSeen | None = None
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
        if (awaited := self.awaited) is not None:
            return f"Waits for {awaited.label}"
        if (running := self.running) is not None:
            if agents := nested.at_work(running):
                return agents
            if running.name == "wait_for_cell" and running.title.startswith("wait for "):
                return f"Waits for {running.title.removeprefix('wait for ')}"
            what, is_cell = running_name(running)
            return f"Running {what[:1].lower() + what[1:] if is_cell and not what.startswith('In[') else what}"
        return _last_activity(self)

    @property
    def asks_person(self) -> bool:
        """Whether nothing goes on before the person has answered something."""
        return bool(self.approvals or self.questions) or self.activity == YOUR_REPLY

    @property
    def counting(self) -> float | None:
        """When what the run waits for began, in seconds since the run did (may be below 0); None where it waits for no code."""
        if (awaited := self.awaited) is not None:
            return awaited.at - awaited.seconds
        running = self.running
        if running is None or running.name != "wait_for_cell":
            return None
        going = (item for item in reversed(self.items) if isinstance(item, CallItem) and item.code == GOES_ON)
        return next((item.code_began for item in going), None)

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
            if view.state is not State.THINK:
                return str(view.state)
            return YOUR_REPLY if view.model == HUMAN else "Waiting for the model"


def key(view: ViewModel, prefix: str) -> str:
    """Return the name of the next item; `prefix` says its kind."""
    return f"{prefix}{view.count}"


def add(view: ViewModel, item: Item) -> ViewModel:
    """Return the view with one more item."""
    return replace(view, items=(*view.items, item), count=view.count + 1)


def put(view: ViewModel, item: Item) -> ViewModel:
    """Return the view with `item` in the place of the one of its key, or at the end."""
    for place in range(len(view.items) - 1, -1, -1):
        if view.items[place].key == item.key:
            return replace(view, items=(*view.items[:place], item, *view.items[place + 1 :]))
    return add(view, item)
