"""What a record says of a run before it is drawn: the answer, the ending, one line a call. Plain text, made harmless.

Read `answer`. Knows nothing of HTML or Markdown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.core.endings import GOES_ON
from nbagent.core.events import Reason
from nbagent.core.shown import visible_plain
from nbagent.view import nested
from nbagent.view.html import texts_and_images
from nbagent.view.items import IN_THE_FACTS, CallItem, Nested, NoteItem, TextItem, VerifiedItem, is_listed
from nbagent.view.text import duration, few_lines, one_line, plain_output
from nbagent.view.words import LOOKS, error_line, in_one, status_of
from nbagent.view.words import facts as used

if TYPE_CHECKING:
    from nbagent.view.fold import ViewModel


_RAN = frozenset({"running", "ok", "error", "interrupted"})


def answer(view: ViewModel) -> tuple[str, str]:
    """Return the answer's text and the key of the item that shows it (may be empty)."""
    last = next(
        (i for i in reversed(view.items) if isinstance(i, TextItem) and i.text.strip() and not i.discarded), None
    )
    text = view.ended.text if view.ended is not None else ""
    if last is not None and (not text.strip() or text.strip() == (last.plain or last.text).strip()):
        return "" if _on_card(last.text, view) else last.text, last.key
    return "" if _on_card(text, view) else text, ""


def _on_card(text: str, view: ViewModel) -> bool:
    """Tell whether a text is no more than the headline of the card of a verification, which stands right below."""
    cards = [item.verified.verdict for item in view.items if isinstance(item, VerifiedItem)]
    return bool(cards) and text.strip() == str(cards[-1].get("headline", "")).strip()


def facts(view: ViewModel) -> list[str]:
    """Return model, turns, tokens, cost and time, what a teacher had set, and that no model was asked."""
    notes = {
        item.level: one_line(item.text, 600)
        for item in view.items
        if isinstance(item, NoteItem) and item.level in IN_THE_FACTS
    }
    said = [one_line(view.model, 80), *used(view), duration(view.at), *notes.values()]
    return [visible_plain(fact, spaces=False) for fact in said if fact]


def ending(view: ViewModel) -> tuple[str, str]:
    """Return how the run ended, and what the person can do next."""
    if view.ended is None:
        return "This run was cut off; nothing of it goes on.", ""
    return few_lines(view.ended.sentence), few_lines(view.ended.next_step)


def failed(view: ViewModel) -> bool:
    """Tell whether the ending is an error's text, of several sentences with commands, and not one short sentence."""
    return view.ended is not None and view.ended.reason == Reason.ERROR


def simply_answered(view: ViewModel) -> bool:
    """Tell whether the run was a question that has its answer, of which no ending needs to be told."""
    return view.answers and view.ended is not None and view.ended.reason == Reason.END_TURN


def calls(view: ViewModel) -> list[CallItem]:
    """Return the calls of the replies that counted; those that only changed the to-do list are seen in the list."""
    return [item for item in view.items if isinstance(item, CallItem) and is_listed(item)]


def did_something(view: ViewModel) -> bool:
    """Tell whether a call has run that does more than look, so that there may be something to take back."""
    return any(call.status in _RAN and _did(call) for call in calls(view))


def _did(call: CallItem) -> bool:
    """Tell whether a call does more than look; one of subagents does what they did."""
    if call.agents:
        return any(did_something(agent.view) for agent in call.agents)
    return call.name not in LOOKS


def goes_on(view: ViewModel) -> bool:
    """Tell whether the run was stopped before it was done, so that one can go on with it."""
    return view.ended is not None and view.ended.reason in GOES_ON


def line(item: CallItem) -> str:
    """Return one call on one plain line."""
    _, icon, word, took = status_of(item)
    seconds = "" if took is None else f" · {duration(took)}"
    error = error_line(texts_and_images(item.content)[0]) if item.status == "error" else ""
    error = f" · {plain_output(one_line(error, 160))}" if error else ""
    said = one_line(f"{icon} {word}: {in_one(item.name, item.title)}", 160)
    return visible_plain(said, spaces=False) + seconds + error


STEPS = 50
"""Steps of one subagent that a record names."""


def agent_steps(one: Nested) -> list[str]:
    """Return the calls of a subagent, a plain line each, those of its own subagents below them."""
    calls_made = [item for item in nested.steps(one) if isinstance(item, CallItem)]
    lines: list[str] = []
    for call in calls_made[:STEPS]:
        lines.append(line(call))
        lines += [f"  {text}" for inner in call.agents for text in agent_steps(inner)]
    return [*lines, *([f"… {len(calls_made) - STEPS} more"] if len(calls_made) > STEPS else [])]


def checked(view: ViewModel) -> str:
    """Return which cells ran after the last edit, as the run itself found out; "" where none was touched."""
    return "" if view.ended is None else plain_output(one_line(view.ended.checked, 600))
