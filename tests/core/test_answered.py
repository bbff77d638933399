"""A tool may take the answer of a run: the run is done with that call, and the model is not asked again."""

from __future__ import annotations

from nbagent.core.events import Reason, RunEnded
from nbagent.core.tools import Call, Toolset, tool
from nbagent.models.scripted import call
from tests.core.rig import Rig, play


async def answer(called: Call, total: int) -> str:
    """Give the answer.

    Args:
        total: The number that was asked for.
    """
    called.answered(f"total = {total}")
    return "Taken."


class Answering(Rig):
    """A rig whose tools include one that takes the answer."""

    def tools(self) -> Toolset:
        return Toolset([*super().tools().values(), tool(answer)])


async def test_a_run_ends_with_the_call_that_takes_its_answer() -> None:
    ran = await play([call("look", what="a"), call("answer", total=3), call("change", what="b")], rig=Answering())
    assert isinstance(ran.end, RunEnded)
    assert (ran.end.reason, ran.end.text, ran.end.turns) == (Reason.END_TURN, "total = 3", 1)
    assert ran.rig.ran == ["look a"]
    assert len(ran.last_results()) == 3  # also of the call that did not run any more


async def test_an_answer_that_the_tool_refuses_ends_nothing() -> None:
    ran = await play(call("answer", total="many"), "I can't say.", rig=Answering())
    assert isinstance(ran.end, RunEnded)
    assert (ran.end.text, ran.end.turns) == ("I can't say.", 2)
