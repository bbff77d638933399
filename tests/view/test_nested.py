"""Subagents on every surface: their steps under the call, their last line live, their questions at the top."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace

import pytest
from rich.console import Console

from nbagent.core import events as ev
from nbagent.core.events import Event, Reason, State, Status
from nbagent.core.messages import Usage, text_block
from nbagent.core.ports import Approval, Preview
from nbagent.jupyter.approval import card
from nbagent.view import nested
from nbagent.view.asking import call_html, preview_box
from nbagent.view.fold import ViewModel, coalesce, fold_all
from nbagent.view.html import item_html
from nbagent.view.items import CallItem
from nbagent.view.patches import Page
from nbagent.view.record import record
from nbagent.view.terminal import TerminalView


def at(kind: type[Event], /, **fields) -> Event:
    return kind(state=State.ACT, turn=1, at=1.0, **fields)


@dataclass
class Story:
    """The events of a run with one `task` call; `inner` are those of its subagent."""

    events: list[Event] = field(default_factory=list)

    def tell(self, kind: type[Event], /, **fields) -> Story:
        self.events.append(at(kind, **fields))
        return self

    def inner(self, kind: type[Event], /, agent_id: str = "agent-1", agent: str = "Explore", **fields) -> Story:
        return self.tell(
            ev.AgentReported, call_id="t1", agent_id=agent_id, agent=agent, title="find it", event=at(kind, **fields)
        )

    def begun(self) -> Story:
        self.tell(ev.RunStarted, run_id="r", session_id="s", model="m", mode="default", prompt="p", max_turns=9)
        self.tell(ev.CallStarted, call_id="t1", name="task", input={}, title="Explore: find it", preview={})
        return self.inner(
            ev.RunStarted,
            run_id="agent-1",
            session_id="agent-1",
            model="small",
            mode="default",
            prompt="q",
            max_turns=5,
        )

    def look(self, call_id: str = "c1", text: str = "three <b>hits</b>") -> Story:
        self.inner(ev.CallStarted, call_id=call_id, name="grep", input={"pattern": "x"}, title="grep x", preview={})
        return self.inner(
            ev.CallEnded, call_id=call_id, name="grep", status=Status.OK, content=(text_block(text),), seconds=0.1,
            summary="3 hits",
        )  # fmt: skip

    def said(self, text: str, tokens: int = 100) -> Story:
        self.inner(ev.BlockStarted, index=0, kind="text")
        self.inner(ev.TextDelta, index=0, text=text)
        return self.inner(
            ev.ReplyEnded, content=(text_block(text),), stop_reason="end_turn", usage=Usage(input=tokens), cost=0.01
        )

    def asked(self, agent_id: str = "agent-1") -> Story:
        return self.inner(ev.ApprovalAsked, agent_id=agent_id, call_id=f"c-{agent_id}", approval=APPROVAL.to_json())

    def over(self) -> Story:
        return self.inner(
            ev.RunEnded, reason=Reason.END_TURN, sentence="Done.", next_step="", text="it is in a.py", turns=2,
            usage=Usage(input=100), cost=0.01,
        )  # fmt: skip

    @property
    def view(self) -> ViewModel:
        return fold_all(self.events)

    @property
    def call(self) -> CallItem:
        return next(item for item in self.view.items if isinstance(item, CallItem))


APPROVAL = Approval(
    "c-agent-1",
    "add_cell",
    "add a cell",
    {},
    Preview("code", "x = 1"),
    "mode default asks",
    (),
    agent="Explore (find it)",
)


def test_steps_of_a_subagent_stand_under_its_call_and_not_beside_it():
    story = Story().begun().look().said("found").over()
    (item,) = [i for i in story.view.items if isinstance(i, CallItem)]
    (one,) = item.agents
    assert (one.agent, one.title) == ("Explore", "find it")
    assert [type(step).__name__ for step in nested.steps(one)] == ["CallItem", "TextItem"]


def test_two_subagents_of_one_call_have_a_view_each():
    story = Story().begun().look()
    story.inner(ev.Noted, agent_id="agent-2", agent="Plan", text="hm")
    assert [one.agent for one in story.call.agents] == ["Explore", "Plan"]
    assert len(nested.steps(story.call.agents[0])) == 1


def test_the_last_line_says_what_it_does_now_and_then_how_it_ended():
    story = Story().begun()
    story.inner(ev.CallStarted, call_id="c1", name="grep", input={}, title="grep x", preview={})
    assert nested.line(story.call.agents[0]) == "grep x"
    assert story.view.activity == "Explore: Running grep x"
    story.over()
    assert nested.line(story.call.agents[0]) == "Done."


def test_tokens_and_cost_of_subagents_are_shown_with_those_of_the_run():
    story = Story().begun().said("a", 100).said("b", 50)
    assert story.view.usage.total == 150
    assert story.view.cost == 0.02


def test_what_a_subagent_asks_is_asked_at_the_top_until_it_is_answered():
    story = Story().begun().asked()
    assert [a["agent"] for a in story.view.approvals] == ["Explore (find it)"]
    assert story.view.activity == "Waiting for you to approve or deny"
    story.inner(ev.ApprovalAnswered, call_id="c-agent-1", approved=True)
    assert story.view.approvals == ()


def test_approvals_of_subagents_side_by_side_do_not_disturb_one_another():
    story = Story().begun().asked().asked("agent-2")
    assert len(story.view.approvals) == 2
    story.inner(ev.ApprovalAnswered, call_id="c-agent-1", approved=True)
    assert [a["call_id"] for a in story.view.approvals] == ["c-agent-2"]


def test_a_question_of_a_subagent_is_asked_with_its_name():
    story = Story().begun()
    story.inner(ev.QuestionAsked, question_id="q", text="Go on?", choices=("yes",))
    (question,) = story.view.questions
    assert question.text == "Explore: Go on?"
    story.inner(ev.QuestionAnswered, question_id="q", text="yes")
    assert story.view.questions == ()


def test_when_its_call_ends_nothing_of_a_subagent_is_open_or_asked():
    story = Story().begun().asked()
    story.inner(ev.CallStarted, call_id="c9", name="grep", input={}, title="grep", preview={})
    story.tell(ev.CallEnded, call_id="t1", name="task", status=Status.INTERRUPTED, content=(), seconds=1.0)
    assert story.view.approvals == ()
    assert {step.status for step in story.call.agents[0].view.items if isinstance(step, CallItem)} == {
        "interrupted", "skipped",
    }  # fmt: skip


def test_a_run_that_is_cut_off_closes_its_subagents_too():
    story = Story().begun().asked()
    story.tell(ev.RunEnded, reason=Reason.ERROR, sentence="gone", next_step="", text="", turns=1)
    assert story.view.approvals == ()
    assert story.call.agents[0].view.approvals == ()


def test_html_shows_the_line_and_folds_the_steps_and_escapes_them():
    html = item_html(Story().begun().look().said("**found**").call)
    assert '<span data-part="agent-1">' in html
    assert '<details data-fold="agent-1"><summary>1 step · 100 tokens · 0.01 USD</summary>' in html
    assert "three &lt;b&gt;hits" in html
    assert "<strong>found</strong>" in html
    assert html.count("data-key=") == 1


def test_while_a_subagent_writes_the_page_gets_its_last_line_and_nothing_else():
    story = Story().begun().look()
    page = Page()
    page.changes(story.view)
    story.inner(ev.BlockStarted, index=0, kind="text")
    page.changes(story.view)
    story.inner(ev.TextDelta, index=0, text="I <see>")
    key = story.call.key
    assert page.changes(story.view) == [{"op": "set", "key": key, "part": "agent-1", "text": "I <see>"}]
    story.inner(ev.ReplyEnded, content=(text_block("I <see>"),), stop_reason="end_turn", usage=Usage(), cost=None)
    (operation,) = page.changes(story.view)
    assert operation["op"] == "put"
    assert page.snapshot() == [{"op": "put", "key": key, "html": item_html(story.call)}]


def test_neighbouring_pieces_of_one_subagent_are_merged_and_those_of_two_are_not():
    story = Story()
    for agent_id in ("a", "a", "b", "a"):
        story.inner(ev.TextDelta, agent_id=agent_id, index=0, text="x")
    merged = coalesce(story.events)
    assert [(e.agent_id, e.event.text) for e in merged] == [("a", "xx"), ("b", "x"), ("a", "x")]


def test_the_record_names_the_steps_in_html_markdown_and_text():
    story = Story().begun().look().said("found").over()
    story.tell(ev.CallEnded, call_id="t1", name="task", status=Status.OK, content=(text_block("in a.py"),), seconds=1.0)
    story.tell(ev.RunEnded, reason=Reason.END_TURN, sentence="Done.", next_step="", text="in a.py", turns=2)
    bundle = record(story.view)
    assert "<summary>Explore: find it · 1 step · 100 tokens · 0.01 USD</summary>" in bundle["text/html"]
    for text in bundle.values():
        assert "grep x" in text


def test_a_subagent_of_a_subagent_nests_once_more():
    story = Story().begun()
    story.inner(ev.CallStarted, call_id="t2", name="task", input={}, title="Plan: deeper", preview={})
    deep = at(ev.CallStarted, call_id="c7", name="glob", input={}, title="glob *.py", preview={})
    of_plan = at(ev.AgentReported, call_id="t2", agent_id="agent-2", agent="Plan", title="deeper", event=deep)
    story.tell(ev.AgentReported, call_id="t1", agent_id="agent-1", agent="Explore", title="find it", event=of_plan)
    (inner,) = [i for i in story.call.agents[0].view.items if isinstance(i, CallItem)]
    assert inner.agents[0].agent == "Plan"
    assert "glob *.py" in item_html(story.call)


def test_a_terminal_shows_a_line_a_step_behind_the_name():
    out = io.StringIO()
    terminal = TerminalView(Console(file=out, width=200, color_system=None))
    for event in Story().begun().look().asked().over().events:
        terminal.show(event)
    said = out.getvalue()
    assert "⤷ Explore: find it (small)" in said
    assert "⤷ Explore: ✓ done: grep" in said
    assert "? Explore (find it) asks: Allow this? add a cell" in said
    assert "│ x = 1" in said


def test_every_card_says_which_subagent_asks_and_the_answer_is_bound_to_it():
    assert "<b>Explore (find it) asks: Allow this?</b>" in call_html(APPROVAL.to_json(), grouped=False)
    assert card(APPROVAL)[1].startswith("Explore (find it) asks: add a cell")
    assert APPROVAL.hash != replace(APPROVAL, agent="").hash


def test_a_plan_is_shown_as_markdown_with_nothing_hidden():
    plan = Approval(
        "c", "exit_plan", "go on with this plan", {}, Preview("markdown", "# Plan\n\n- a\u202eb <img src=x>"), "w", ()
    )
    html = preview_box(plan.to_json())
    assert "<h" in html
    assert "⟨U+202E⟩" in html
    assert "<img" not in html


@pytest.mark.parametrize(("name", "offered"), [("grep", False), ("run_python", True), ("add_cell", True)])
def test_undo_is_offered_after_a_subagent_only_if_it_did_more_than_look(name, offered):
    story = Story().begun()
    story.events[0] = replace(story.events[0], run_id="run-1")
    story.inner(ev.CallStarted, call_id="c1", name=name, input={}, title=name, preview={})
    story.inner(ev.CallEnded, call_id="c1", name=name, status=Status.OK, content=(), seconds=0.1, summary="")
    story.tell(ev.CallEnded, call_id="t1", name="task", status=Status.OK, content=(), seconds=1.0, summary="")
    story.tell(ev.RunEnded, reason=Reason.END_TURN, sentence="Done.", next_step="", text="", turns=1)
    assert ["undo" in text for text in record(fold_all(story.events)).values()] == [offered] * 3
