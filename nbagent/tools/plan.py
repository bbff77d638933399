"""Plan mode: the tools by which the model begins to plan, shows its plan, and goes on once the person agrees.

In plan mode nothing is changed; only the person's yes to a plan ends it, and they choose what may then happen unasked.
They must not know how the mode is kept (`Modes`) or who asks. Read `tools`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from nbagent.core.errors import ToolError
from nbagent.core.messages import Json, clean, text_block
from nbagent.core.policy import Mode
from nbagent.core.ports import Preview, Question
from nbagent.core.tools import Call, Kind, Result, Tool, tool

ASK, EDITS, ALL = "Ask me before changes", "Edit without asking", "All without asking, as before"
_WHICH: dict[str, Mode] = {ASK: Mode.DEFAULT, EDITS: Mode.ACCEPT_EDITS, ALL: Mode.BYPASS}

PLAN_WORDS = (
    "In plan mode you look, work out a plan, and change nothing: calls that change something are refused. When the plan "
    "is ready call exit_plan with it; the person may change it, agree, or say what to think over. A question that needs "
    "no change is simply answered."
)
"""What the model is told where a run begins in plan mode."""


class Modes(Protocol):
    """The mode of a run, which may change while it goes on."""

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        ...

    def change(self, mode: Mode) -> None:
        """Go on in another mode."""
        ...


@dataclass(slots=True)
class Planning:
    """Plan mode in one run. `present`: whether a person can agree; `leave` puts an agreed plan into the notebook."""

    modes: Callable[[], Modes]
    present: Callable[[], bool]
    leave: Callable[[Call, str], Awaitable[str]] | None = None
    before: Mode | None = field(default=None, init=False)

    @property
    def on(self) -> bool:
        """Whether the run is in plan mode."""
        return self.modes().mode is Mode.PLAN

    def begin(self) -> None:
        """Go over to plan mode; raises `ToolError` where that can't be, or where nobody could end it."""
        modes = self.modes()
        if self.on:
            raise ToolError("you are in plan mode already: look, then call exit_plan with the plan")
        if modes.mode in {Mode.READ_ONLY, Mode.DONT_ASK} or not self.present():
            raise ToolError("nobody can agree to a plan now: say in a few lines what you will do, and go on")
        self.before = modes.mode
        modes.change(Mode.PLAN)

    def choices(self) -> tuple[str, ...]:
        """How a run may go on after its plan."""
        return (ASK, EDITS, ALL) if self.before is Mode.BYPASS else (ASK, EDITS)

    def end(self, choice: str) -> Mode:
        """Go on in the mode that the person chose; anything else that they said means that they want to be asked."""
        mode = _WHICH[choice] if choice in self.choices() else Mode.DEFAULT
        self.modes().change(mode)
        return mode


def tools(planning: Planning) -> list[Tool]:
    """Return enter_plan and exit_plan."""
    return [_enter(planning), _exit(planning)]


def _enter(planning: Planning) -> Tool:
    @tool(title=lambda _: "begin to plan")
    async def enter_plan(call: Call) -> Result:
        """Go over to plan mode: until the person agrees to your plan you only look.

        For a task of many steps, or one that changes much, where the person would want to see the way before you take it.
        """
        planning.begin()
        call.mode_is(str(Mode.PLAN))
        return Result((text_block(f"The mode is now plan. {PLAN_WORDS}"),), "plan mode")

    return enter_plan


def _exit(planning: Planning) -> Tool:
    def kind(_: Json) -> Kind:
        return Kind.PLAN if planning.on else Kind.READ  # outside of plan mode it says so, and nothing else

    @tool(
        kind=kind,
        subject="plan",
        title=lambda _: "go on with this plan",
        preview=lambda given: Preview("markdown", given["plan"], language="markdown"),
        exact=True,
        amend="plan",
    )
    async def exit_plan(call: Call, plan: str) -> Result:
        """Show the person your plan. If they agree, plan mode ends and you carry the plan out.

        They may change its text: then theirs is the plan. If they say what to think over instead, go on planning.

        Args:
            plan: the plan as Markdown: the steps in order, what each one changes, how you will check it. Short.
        """
        if not planning.on:
            raise ToolError("you are not in plan mode: nothing keeps you from beginning")
        text = clean(plan).strip()
        if not text:
            raise ToolError("the plan is empty")
        question = Question(f"{call.id}-mode", "How shall it go on?", planning.choices())
        choice = clean(await call.ask(question)).strip()
        mode = planning.end(choice)
        call.mode_is(str(mode))
        words = f" They say: {choice}" if choice and choice not in _WHICH else ""
        kept = await planning.leave(call, text) if planning.leave is not None else ""
        said = f"The person agreed to the plan. The mode is now {mode}.{words} {kept}".strip()
        return Result((text_block(f"{said}\nCarry it out now, step by step."),), f"agreed, mode {mode}")

    return exit_plan
