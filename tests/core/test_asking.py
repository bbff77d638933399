"""Several changes of one reply are asked about in one card; a person leaves some out, or changes their text."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import CutOff, Interrupted, ToolError
from nbagent.core.events import ApprovalAnswered, ApprovalAsked, CallDecided, CallEnded, CallStarted, RunEnded
from nbagent.core.policy import Mode
from nbagent.core.ports import Answered, Preview
from nbagent.core.run import Stop
from nbagent.core.tools import Call, Kind, Toolset, tool
from nbagent.models.scripted import call
from tests.core.rig import Person, Rig, play


class Notes(Rig):
    """Tools on notes: `put` changes the note `name` (asked in one card), `runs` runs code, `look` looks."""

    def tools(self) -> Toolset:
        ran = self.ran

        def preview(given: dict) -> Preview:
            return Preview("diff", given["text"], old="old")

        @tool(kind=Kind.EDIT_CELL, target=lambda given: given["name"], amend="text", preview=preview)
        async def put(call: Call, name: str, text: str = "") -> str:
            """Change a note."""
            if text == "bad":
                raise ToolError("this note can't be changed so")
            ran.append(f"put {name}={text}")
            return f"put {call.session} {call.run} {call.id}"

        @tool(
            kind=Kind.RUN_CELL,
            target=lambda _: "",
            amend="text",
            exact=True,
            preview=lambda g: Preview("code", g["text"]),
        )
        async def runs(_call: Call, text: str) -> str:
            """Run code."""
            ran.append(f"run {text}")
            return "ran"

        @tool()
        async def look(_call: Call) -> str:
            """Look."""
            ran.append("look")
            return "seen"

        return Toolset([put, runs, look, *(t for name, t in Rig.tools(self).items() if name in {"change", "hang"})])


def put(name: str, text: str = "x") -> dict:
    return call("put", name=name, text=text)


def groups(ran) -> list[tuple[str, int]]:
    return [(e.approval["group"], e.approval["of"]) for e in ran.of(ApprovalAsked)]


@pytest.mark.slow
async def test_changes_that_stand_side_by_side_are_asked_in_one_card_and_run_in_order():
    person = Person(True, True, True)
    ran = await play([put("a"), put("b"), call("runs", text="1")], "Done.", person=person, rig=Notes())
    (group, of), *others = groups(ran)
    assert group
    assert of == 3
    assert set(others) == {(group, 3)}
    assert ran.rig.ran == ["put a=x", "put b=x", "run 1"]
    kinds = [type(e) for e in ran.events if isinstance(e, ApprovalAsked | ApprovalAnswered | CallStarted)]
    assert kinds == [ApprovalAsked] * 3 + [ApprovalAnswered] * 3 + [CallStarted] * 3
    assert ran.result_texts()[0].startswith("put s1 run ")


async def test_a_call_alone_is_asked_as_before():
    ran = await play([put("a")], "Done.", person=Person(True), rig=Notes())
    assert groups(ran) == [("", 1)]


async def test_those_left_out_are_denied_with_words_and_the_others_run():
    person = Person(True, Answered(approved=False, words="left out"), True)
    ran = await play([put("a"), put("b"), put("c")], "Done.", person=person, rig=Notes())
    assert ran.rig.ran == ["put a=x", "put c=x"]
    assert "left out" in ran.result_texts()[1]
    assert ran.end.reason == "end_turn"


async def test_a_bare_deny_of_the_card_ends_the_run_with_every_call_answered():
    ran = await play([put("a"), put("b")], person=Person(False, False), rig=Notes())
    assert ran.rig.ran == []
    assert ran.end.reason == "denied"
    assert all(text.startswith("Denied by the person") for text in ran.result_texts())


async def test_two_changes_of_one_thing_are_asked_one_after_the_other():
    """The second is decided on what the first left behind."""
    ran = await play([put("a"), put("b"), put("a", "y")], "Done.", person=Person(True, True, True), rig=Notes())
    assert [of for _, of in groups(ran)] == [2, 2, 1]
    assert ran.rig.ran == ["put a=x", "put b=x", "put a=y"]


class Learning(Notes):
    """`risky` runs code: after the code "turn" it is risky code, after "swap" it shows something else."""

    def tools(self) -> Toolset:
        ran = self.ran

        def kind(_given: dict) -> Kind:
            return Kind.RISKY_CODE if "run turn" in ran else Kind.RUN_CELL

        def body(given: dict) -> Preview:
            return Preview("code", given["text"], old=str("run swap" in ran))

        @tool(kind=kind, target=lambda _: "", amend="text", exact=True, preview=body)
        async def risky(_call: Call, text: str) -> str:
            """Run code that may be risky by then."""
            ran.append(f"run {text}")
            return "ran"

        return Toolset([*Notes.tools(self).values(), risky])


async def test_what_a_rule_allows_is_decided_after_what_was_asked_before_it_has_run():
    calls = [call("runs", text="turn"), call("risky", text="go()")]
    person = Person(True, Answered(approved=False, words="no"))
    ran = await play(calls, "Done.", person=person, rig=Learning(), rules=["allow risky"])
    assert [approval.tool for approval in person.asked] == ["runs", "risky"]
    assert ran.rig.ran == ["run turn"]
    assert [(e.name, str(e.action)) for e in ran.of(CallDecided)] == [("runs", "ask"), ("risky", "ask")]


async def test_a_deny_still_denies_what_was_approved_in_the_same_card_once_code_has_run():
    """In the mode plan scratch code is asked about, and code that shells out is denied."""

    class Plan(Learning):
        def tools(self) -> Toolset:
            ran = self.ran

            @tool(kind=lambda _: Kind.RISKY_CODE if ran else Kind.SCRATCH, target=lambda _: "", exact=True)
            async def scratch(_call: Call, text: str) -> str:
                """Run scratch code."""
                ran.append(text)
                return "ran"

            return Toolset([scratch])

    person = Person(True, True)
    calls = [call("scratch", text="go = os.system"), call("scratch", text="go('rm')")]
    ran = await play(calls, "Done.", person=person, rig=Plan(), mode=Mode.PLAN)
    assert {e.approval["of"] for e in ran.of(ApprovalAsked)} == {2}
    assert ran.rig.ran == ["go = os.system"]
    assert "not allowed any more" in ran.result_texts()[1]


async def test_what_was_approved_is_not_asked_again_and_what_is_not_as_it_was_shown_does_not_run():
    person = Person(True, True)
    ran = await play([call("risky", text="turn"), call("risky", text="x")], "Done.", person=person, rig=Learning())
    assert ran.rig.ran == ["run turn", "run x"]
    assert len(person.asked) == 2
    person = Person(True, True)
    ran = await play([call("risky", text="swap"), call("risky", text="x")], "Done.", person=person, rig=Learning())
    assert ran.rig.ran == ["run swap"]
    assert "not as it was shown" in ran.result_texts()[1]


class AtTheKeyboard(Person):
    """Answers at once, or presses Ctrl-C."""

    async def ask(self, approval):
        answered = await super().ask(approval)
        if answered.words == "^C":
            raise Interrupted
        return answered


async def test_an_interrupt_at_the_first_question_of_a_card_puts_none_of_the_others():
    person = AtTheKeyboard(Answered(approved=False, words="^C"), True, True)
    ran = await play([put("a"), put("b"), put("c")], person=person, rig=Notes())
    assert len(person.asked) == 1
    assert (ran.rig.ran, ran.end.reason) == ([], "interrupted")


async def test_questions_of_one_card_are_open_side_by_side():
    class Buttons(Person):
        everything = asyncio.Event()

        async def ask(self, approval):
            self.asked.append(approval)
            if len(self.asked) == 3:
                self.everything.set()
            await asyncio.wait_for(self.everything.wait(), 5)
            return Answered(approved=True)

    ran = await play([put("a"), put("b"), put("c")], "Done.", person=Buttons(), rig=Notes())
    assert ran.rig.ran == ["put a=x", "put b=x", "put c=x"]


async def test_no_rule_is_kept_for_a_text_that_the_person_changed():
    """It was offered for what was shown."""
    person = Person(Answered(approved=True, rule="put", edited="mine"), True)
    ran = await play([put("a")], [put("b")], "Done.", person=person, rig=Notes())
    assert len(person.asked) == 2
    assert [e.rule for e in ran.of(ApprovalAnswered)] == ["", ""]


async def test_a_look_in_between_sees_what_came_before_it():
    ran = await play([put("a"), call("look"), put("b")], "Done.", person=Person(True, True), rig=Notes())
    assert [of for _, of in groups(ran)] == [1, 1]
    assert ran.rig.ran == ["put a=x", "look", "put b=x"]


async def test_a_call_without_a_target_is_asked_alone():
    ran = await play(
        [put("a"), call("change", what="z"), put("b")], "Done.", person=Person(True, True, True), rig=Notes()
    )
    assert [of for _, of in groups(ran)] == [1, 1, 1]
    assert ran.rig.ran == ["put a=x", "change z", "put b=x"]


async def test_after_a_failure_code_of_the_same_card_does_not_run_but_other_changes_are_made():
    """As Run All stops at the first error: what was approved counted on what came before."""
    calls = [put("a", "bad"), call("runs", text="1"), put("b")]
    ran = await play(calls, "Done.", person=Person(True, True, True), rig=Notes())
    assert ran.rig.ran == ["put b=x"]
    assert [str(e.status) for e in ran.of(CallEnded)] == ["error", "skipped", "ok"]
    assert "earlier call" in ran.result_texts()[1]


async def test_what_runs_is_what_the_person_made_of_it_and_the_model_is_told():
    person = Person(Answered(approved=True, edited="mine"), True)
    ran = await play([put("a"), put("b")], "Done.", person=person, rig=Notes())
    assert ran.rig.ran == ["put a=mine", "put b=x"]
    assert "changed the text" in ran.result_texts()[0]
    assert "mine" in ran.result_texts()[0]
    assert [e.edited for e in ran.of(ApprovalAnswered)] == [True, False]
    started = ran.of(CallStarted)[0]
    assert (started.input["text"], started.preview["body"]) == ("mine", "mine")


async def test_the_same_text_sent_back_is_no_edit():
    ran = await play([put("a")], "Done.", person=Person(Answered(approved=True, edited="x")), rig=Notes())
    assert not ran.of(ApprovalAnswered)[0].edited
    assert "changed the text" not in ran.result_texts()[0]


async def test_an_edited_text_is_decided_again_and_a_deny_rule_still_denies():
    person = Person(Answered(approved=True, edited="rm -rf /"))
    ran = await play([call("runs", text="1")], "Done.", person=person, rig=Notes(), rules=["deny runs(rm *)"])
    assert ran.rig.ran == []
    assert "not allowed" in ran.result_texts()[0]


async def test_what_a_mode_allows_is_not_asked():
    ran = await play([put("a"), put("b")], "Done.", rig=Notes(), mode=Mode.ACCEPT_EDITS)
    assert ran.rig.ran == ["put a=x", "put b=x"]
    assert ran.of(ApprovalAsked) == []


async def test_an_approval_says_whether_it_can_be_edited():
    ran = await play([put("a")], [call("change", what="z")], "Done.", person=Person(True, True), rig=Notes())
    assert [e.approval["editable"] for e in ran.of(ApprovalAsked)] == [True, False]


async def test_an_interrupt_meant_for_the_call_does_not_end_the_run():
    """“Interrupt cell” and Stop are two things: the call's result says what happened, and the model goes on."""
    rig, stop = Notes(), Stop()

    async def press() -> None:
        await rig.hanging.wait()
        stop.spare()

    pressing = asyncio.create_task(press())
    ran = await play([call("hang"), put("a")], "Done.", person=Person(True), rig=rig, stop=stop)
    await pressing
    assert "interrupted this call (not the run)" in ran.result_texts()[0]
    assert rig.ran == ["put a=x"]
    assert ran.end.reason == "end_turn"


async def test_a_call_that_is_cancelled_alone_tells_the_model_what_it_had_done():
    stop = Stop()

    class Waiting(Notes):
        def tools(self) -> Toolset:
            @tool()
            async def waiting(_call: Call) -> str:
                """Be cancelled."""
                asyncio.get_running_loop().call_soon(stop.spare)
                try:
                    return await asyncio.Event().wait() or ""
                except asyncio.CancelledError:
                    raise CutOff("half") from None

            return Toolset([waiting])

    ran = await play([call("waiting")], "Done.", rig=Waiting(), stop=stop)
    assert "interrupted this call (not the run)" in ran.result_texts()[0]
    assert "Output so far:\nhalf" in ran.result_texts()[0]
    assert ran.end.reason == "end_turn"


async def test_the_word_that_only_the_call_was_meant_may_come_after_the_interrupt():
    """It waits in the kernel's queue behind the synchronous code that was interrupted."""
    stop = Stop()

    class Busy(Notes):
        def tools(self) -> Toolset:
            @tool()
            async def busy(_call: Call) -> str:
                """Be interrupted."""
                asyncio.get_running_loop().call_later(0.01, stop.spare)
                raise Interrupted("half")

            return Toolset([busy])

    ran = await play([call("busy")], "Done.", rig=Busy(), stop=stop)
    assert "half" in ran.result_texts()[0]
    assert ran.end.reason == "end_turn"


@pytest.mark.slow
async def test_an_interrupt_without_that_word_ends_the_run():
    class Busy(Notes):
        def tools(self) -> Toolset:
            @tool()
            async def busy(_call: Call) -> str:
                """Be interrupted."""
                raise Interrupted("half")

            return Toolset([busy])

    ran = await play([call("busy")], rig=Busy())
    assert ran.end.reason == "interrupted"


async def test_a_spare_without_a_running_call_does_nothing():
    stop = Stop()
    stop.spare()
    ran = await play([call("look")], "Done.", rig=Notes(), stop=stop)
    assert ran.end.reason == "end_turn"


async def test_the_end_says_which_cells_ran():
    ran = await play("Done.", rig=Notes(), closing=lambda: "Ran after the last edit: In[5].")
    assert isinstance(ran.end, RunEnded)
    assert ran.end.checked == "Ran after the last edit: In[5]."


NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(st.one_of(st.tuples(st.just("put"), NAMES, st.booleans()), st.tuples(st.just("look"), st.just(""), st.just(True))), min_size=1, max_size=7)  # fmt: skip


@pytest.mark.slow
@given(STEPS)
@pytest.mark.filterwarnings("error")
def test_whatever_is_asked_together_runs_in_the_order_of_the_reply(steps):
    calls = [put(name) if kind == "put" else call("look") for kind, name, _ in steps]
    answers = [Answered(approved=yes, words="" if yes else "no") for kind, _, yes in steps if kind == "put"]
    ran = asyncio.run(play(calls, "Done.", person=Person(*answers), rig=Notes()))
    expected = [f"put {name}=x" if kind == "put" else "look" for kind, name, yes in steps if yes]
    assert ran.rig.ran == expected
    asked = [e.approval for e in ran.of(ApprovalAsked)]
    for group in {a["group"] for a in asked if a["group"]}:
        names = [a["input"]["name"] for a in asked if a["group"] == group]
        assert len(names) == len(set(names)) == next(a["of"] for a in asked if a["group"] == group)
