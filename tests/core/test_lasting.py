"""The end of a run whose code still runs: it waits, the model hears how the code ended and answers; a stop ends both."""

from __future__ import annotations

import asyncio
from typing import Any

from nbagent.core.events import CodeAwaited, CodeEnded, Noted, Reason, RunEnded
from nbagent.core.lasting import Ended
from nbagent.core.limits import Limits
from nbagent.core.messages import text_block
from nbagent.core.run import Stop
from nbagent.models.scripted import call
from tests.core.rig import play
from tests.support.turns import at_once


class Code:
    """Code under way that ends when it is waited for, or never; what happened to it is kept in `did`."""

    def __init__(self, *, ends: bool = True, news: tuple[str, ...] = ()) -> None:
        self.label, self.did, self._ends, self._news = "the cell `fit()`", list[str](), ends, news
        self._endings: tuple[Ended, ...] = ()

    @property
    def running(self) -> str:
        return self.label

    def news(self) -> tuple[str, ...]:
        told, self._news = self._news, ()
        return told

    @property
    def since(self) -> tuple[str, float]:
        return ("call-1", 130.0) if self.label else ("", 0.0)

    def endings(self) -> tuple[Ended, ...]:
        told, self._endings = self._endings, ()
        return told

    async def ended(self) -> list[Any]:
        self.did.append("waited for")
        if not self._ends:
            await asyncio.Event().wait()
        self.label, self._endings = "", (Ended("call-1", "ended", 140.0),)
        return [text_block("cell fit has ended: accuracy 0.93")]

    async def stop(self) -> None:
        if self.label:
            self.did.append("stopped")
            self._endings = (Ended("call-1", "interrupted", 131.0),)
            await at_once(None)


def said_last(ran: Any) -> list[str]:
    return [block["text"] for block in ran.messages[-2]["content"]]


async def test_the_model_hears_how_its_code_ended_and_answers_once_more() -> None:
    code = Code()
    ran = await play("It runs now.", "The accuracy is 0.93.", lasting=code)
    assert code.did == ["waited for"]
    assert said_last(ran) == ["cell fit has ended: accuracy 0.93"]
    assert (ran.end.reason, ran.end.text) == (Reason.END_TURN, "The accuracy is 0.93.")
    assert [e.text for e in ran.of(Noted)] == [
        "The cell `fit()` still runs. The run ends when it has ended; Stop ends both."
    ]
    (awaited,) = ran.of(CodeAwaited)
    assert (awaited.call_id, awaited.label, awaited.seconds) == ("call-1", "the cell `fit()`", 130.0)
    assert [(e.call_id, e.how, e.seconds) for e in ran.of(CodeEnded)] == [("call-1", "ended", 140.0)]


async def test_at_the_last_turn_the_code_is_waited_for_and_the_answer_stands() -> None:
    code = Code()
    ran = await play("It runs now.", limits=Limits(max_turns=1, longest_wait=0.0), lasting=code)
    assert code.did == ["waited for"]
    assert (ran.end.reason, ran.end.text) == (Reason.END_TURN, "It runs now.")


async def test_a_stop_while_the_code_is_waited_for_ends_both() -> None:
    code, stop = Code(ends=False), Stop()

    def heard(event: Any) -> None:
        if isinstance(event, Noted):
            asyncio.get_running_loop().call_soon(stop.ask)

    ran = await play("It runs now.", lasting=code, stop=stop, on_event=heard)
    assert code.did == ["waited for", "stopped"]
    assert isinstance(ran.end, RunEnded)
    assert [e.how for e in ran.of(CodeEnded)] == ["interrupted"]


async def test_what_ended_meanwhile_is_told_beside_the_next_results() -> None:
    code = Code(news=("cell a has ended: ok",))
    code.label = ""
    ran = await play([call("look", what="x")], "done", lasting=code)
    assert {"type": "text", "text": "cell a has ended: ok"} in ran.messages[2]["content"]
