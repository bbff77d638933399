"""`%agent allow` and `%agent deny`: the typed answer, for where no button can be clicked. Read `allow`.

While a run asks, they answer it: from a subshell, or from code beside the run, since the kernel's other cells wait. Those do
not wait for runs in the background: a yes to one of these is typed at its card, so that no Run All gives it. Where
nobody could be asked, the run has gone on or ended; then `%agent allow 1 CODE` keeps the rule for exactly the refused
call, so that running the agent's cell again passes. The code is shown with the refusal only: a notebook that holds an
`%agent allow` beforehand gives itself no permission. Where the front end takes input, a typed yes does in its place.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from nbagent.core.errors import ConfigError
from nbagent.core.ports import Answered
from nbagent.jupyter.approval import card
from nbagent.jupyter.front_end import takes_input

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbagent.app.extension import Extension
    from nbagent.app.underway import Asking
    from nbagent.core.ports import Approval
    from nbagent.jupyter.refusals import Refusal

NOTHING = "No question is open, and no call was refused in the last run of this kernel."
AGAIN = "Run the agent's cell again."


def allow(extension: Extension, rest: str) -> str:
    """Allow the call `rest` names (its number, 1 if not given, and its code); raises `ConfigError` where it can't."""
    number, code = _named(rest)
    if answered := _answer(extension, number, Answered(approved=True), sure=_is_sure):
        return answered
    if not extension.refusals.open:
        return NOTHING
    if number > len(extension.refusals.open):
        raise ConfigError(f"%agent allow: there is no refused call {number}.\n{_listed(extension)}")
    if code:
        taken = extension.refusals.take(number, code)
        if taken is None:
            raise ConfigError(f"%agent allow: {code} is not the code of call {number}.\n{_listed(extension)}")
        return _kept(taken)
    if not takes_input(extension.shell):
        return _listed(extension)
    refusal = next(refusal for refusal in extension.refusals.open if refusal.number == number)
    if _typed_yes(refusal.approval):
        extension.refusals.allow(refusal)
        return _kept(refusal)
    return "Nothing was allowed."


def deny(extension: Extension, words: str) -> str:
    """Deny what waits (a number before the words: which one) or was refused; `words` tell the model what to do instead."""
    first, _, more = words.partition(" ")
    number, said = (int(first), more.strip()) if first.isdecimal() else (1, words)
    if answered := _answer(extension, number, Answered(approved=False, words=said)):
        return answered
    words = "" if words.isdecimal() else words
    dropped = extension.refusals.deny(words)
    if not dropped and not words:
        return NOTHING
    return "It stays denied." + (f" The model is told in the next run: {words}" if words else "")


def _named(rest: str) -> tuple[int, str]:
    number, _, code = rest.partition(" ")
    if not number:
        return 1, ""
    if not number.isdecimal() or int(number) < 1:
        raise ConfigError(f"%agent allow {rest}: name the call by its number, e.g. %agent allow 1")
    return int(number), code.strip()


def _answer(
    extension: Extension, number: int, answered: Answered, sure: Callable[[Extension, Asking], bool] = lambda *_: True
) -> str:
    """Answer the open question `number` of all runs under way; return what was done, "" where none waits."""
    waiting = extension.underway.asks
    if not waiting:
        return ""
    if not 1 <= number <= len(waiting):
        count = "only one question is" if len(waiting) == 1 else f"only {len(waiting)} questions are"
        raise ConfigError(f"There is no question {number}: {count} open.")
    asked = waiting[number - 1]
    title = asked.approval.title
    if not sure(extension, asked):
        return f"Nothing was allowed. It still waits for your answer, in its panel and in the tray: {title}"
    if not asked.answer(answered):
        return "It has its answer already."
    return f"{'Allowed' if answered.approved else 'Denied'}: {title}"


def _is_sure(extension: Extension, asked: Asking) -> bool:
    """Whether the cell's word is enough: beside a run in the background it may have been written before anything was asked."""
    run = extension.underway.foreground
    at_hand = run is not None and asked.to is run.approver
    return at_hand or (takes_input(extension.shell) and _typed_yes(asked.approval))


def _typed_yes(asked: Approval) -> bool:
    print("\n".join(card(asked)))  # noqa: T201  (this front end shows text)
    try:
        return builtins.input("y = yes, exactly this, in this session; anything else = no: ").strip().casefold() in {
            "y",
            "yes",
        }
    except (EOFError, OSError, RuntimeError):  # it said that it takes input, and does not
        return False


def _kept(refusal: Refusal) -> str:
    return f"Allowed, exactly as it was: {refusal.approval.title}. {AGAIN}"


def _listed(extension: Extension) -> str:
    lines = [
        f"{refusal.number}. {refusal.approval.title}\n   to allow exactly this: {refusal.command}"
        for refusal in extension.refusals.open
    ]
    return "\n".join(["Refused in the last run, because nobody could be asked:", *lines])
