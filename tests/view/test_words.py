"""Each fact of a call is said once, in words that mean something to a person."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

from nbagent.core import events as ev
from nbagent.core.events import Reason, State, Status
from nbagent.core.messages import Usage, text_block
from nbagent.core.seat import Seat
from nbagent.tools import remember, team, variables, workspace
from nbagent.view.asking import rule_face, rule_html
from nbagent.view.fold import fold_all
from nbagent.view.html import header, item_html
from nbagent.view.items import CallItem
from nbagent.view.record import record
from nbagent.view.text import clip_end, money
from nbagent.view.words import (
    DEFAULTS,
    LEFT_OUT,
    answer_words,
    answered,
    arguments,
    error_line,
    facts,
    in_one,
    running_name,
)
from tests.core.team_rig import MemoryBoards
from tests.view.events_fixture import card_html

AT = {"state": State.ACT, "turn": 1, "at": 1.0}
CODE = {"kind": "code", "body": "x = 1", "old": "", "language": "python"}
TRACE = "\n".join([*(f"----> {n} deeper()" for n in range(3_000)), "TypeError: can only concatenate str",
                   "Hint: convert it first."])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "title", "said"),
    [
        ("list_variables", "list variables", "list variables"),
        ("list_variables", "list variables df*", "list variables df*"),
        ("add_cell", "add and run a code cell", "add and run a code cell"),
        ("edit_cell", "edit and run In[4]", "edit and run In[4] [edit_cell]"),
        ("write_file", "write_file data/x.csv", "write file data/x.csv"),
        ("run_python", "look: df.head()", "look: df.head() [run_python]"),
        ("mytool", "", "mytool"),
        ("profile_table", "profile_table df in full", "profile table df in full"),
        ("tidy_notebook", "delete In[2]: it is empty", "delete In[2]: it is empty"),
    ],
)
def test_a_tools_name_is_said_only_where_the_title_does_not_say_it(name, title, said):
    assert in_one(name, title) == said


def test_a_number_on_our_own_list_is_no_argument_that_a_person_is_shown():
    assert given({"change": 3}, name="tidy_notebook", title="delete In[2]: it is empty") == {}
    assert given({"change": 3}, name="other", title="x") == {"change": "3"}


def test_a_note_has_the_same_sign_in_the_record_as_in_the_panel():
    notes = [ev.Noted(**AT, text="Given: df.", level="info"), ev.Noted(**AT, text="It broke.", level="warning")]
    html = record(fold_all(notes))["text/html"]
    assert "<i>i Given: df.</i>" in html and "<i>! It broke.</i>" in html


def given(call, *, name, title, preview=CODE, whole=True):
    return dict(arguments(call, preview, name=name, title=title, whole=whole))


def test_arguments_that_title_or_preview_say_are_not_said_again():
    call = {"source": "x = 1", "cell_type": "code", "after": None, "run": True}
    assert given(call, name="add_cell", title="add and run a code cell") == {}
    assert given({"cell": "abc", "run": False}, name="edit_cell", title="edit the cell") == {"cell": "abc"}
    assert given({"cell": "abc", "run": False}, name="edit_cell", title="edit cell abc") == {}
    assert given({"cell": "abc"}, name="edit_cell", title="edit cell abc", whole=False) == {}
    assert given({"pattern": "*", "limit": 20}, name="list_variables", title="", whole=False) == {"limit": "20"}


def test_an_argument_that_the_title_contradicts_is_shown():
    assert given({"run": False}, name="add_cell", title="add and run a code cell") == {"run": "false"}
    assert given({"run": True}, name="edit_cell", title="edit In[4]") == {"run": "true"}
    assert given({"run": False}, name="my_tool", title="my_tool") == {"run": "false"}


def test_ids_and_defaults_are_not_for_people(tmp_path):
    assert given({"cell": "5864a846-x"}, name="delete_cell", title="delete In[3]") == {}
    assert given({"cell": "5864a846-x"}, name="delete_cell", title="delete the cell") == {"cell": "5864a846-x"}
    assert given({"path": "a.py", "replace_all": False}, name="edit_file", title="edit_file a.py") == {}
    assert given({"path": "a.py", "replace_all": True}, name="edit_file", title="edit_file a.py") == {
        "replace_all": "true"
    }
    assert given({"replace_all": False}, name="other", title="other") == {"replace_all": "false"}
    assert in_one("mcp__x__y", "mcp__x__y z") == "mcp__x__y z", "a name that is not ours stays as it is"
    seat = Seat(MemoryBoards(), "lead")
    of_teams = [*team.lead_tools(seat), *team.teammate_tools(seat)]
    tools = [*workspace.tools(tmp_path), *variables.tools(None), *remember.tools(None), *of_teams]
    known = {
        f"{t.name}.{name}": p.default for t in tools for name, p in inspect.signature(t.function).parameters.items()
    }
    ours = {key: value for key, value in DEFAULTS.items() if key.split(".")[0] in {t.name for t in tools}}
    assert ours == {key: known[key] for key in ours}
    assert {"edit_file.replace_all", "answer_plan.text", "remember.replaces", "remember.about", "remember.kind"} <= set(
        ours
    )


def test_a_rules_button_says_what_is_allowed():
    approval = {"preview": CODE}
    faces = [rule_face(rule, approval) for rule in ("add_cell(sha256:ab)", "add_cell", "write_file(data/a.csv)")]
    assert faces == ["Allow this code", "Allow every add_cell", "Allow write_file(data/a.csv)"]


def ran(name: str, status: Status, **more):
    return [
        ev.RunStarted(state=State.THINK, turn=0, at=0, run_id="run-1", session_id="s", model="m", mode="default", prompt="p",
                      max_turns=9, budget=""),
        ev.CallEnded(**AT, call_id="c", name=name, status=status, content=(), seconds=1.0, summary="", **more),
        ev.RunEnded(**AT, reason=Reason.END_TURN, sentence="Done.", next_step="", text="", turns=1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "status", "offered"),
    [
        ("add_cell", Status.OK, True),
        ("add_cell", Status.ERROR, True),
        ("add_cell", Status.DENIED, False),
        ("read_file", Status.OK, False),
        ("my_own", Status.OK, True),
    ],
)
def test_undo_is_offered_where_something_may_have_been_done(name, status, offered):
    bundle = record(fold_all(ran(name, status)))
    assert ["undo" in text for text in bundle.values()] == [offered] * 3
    assert all("again" in text for text in bundle.values())


def test_a_failed_step_is_said_where_the_steps_are_folded():
    assert "Steps: 1 call, 1 failed<" in record(fold_all(ran("add_cell", Status.ERROR)))["text/html"]
    assert "Steps: 1 call<" in record(fold_all(ran("add_cell", Status.OK)))["text/html"]
    begun, _, ended = ran("add_cell", Status.OK)
    asked = [
        ev.QuestionAsked(**AT, question_id="q", text="Trust?"),
        ev.QuestionAnswered(**AT, question_id="q", text="no"),
    ]
    assert "<summary>Steps</summary>" in record(fold_all([begun, *asked, ended]))["text/html"], "not: 0 calls"


def test_a_record_that_is_asked_about_says_nothing_of_its_old_cost():
    view = fold_all([*ran("add_cell", Status.OK)[:1], ev.FoundStale(**AT, text="df changed")])
    view = replace(view, usage=Usage(5_000), cost=0.01)
    assert (header(view)["tokens"], header(view)["cost"]) == (0, "")


def test_seconds_have_their_unit():
    assert given({"timeout": 120.0}, name="shell", title="run ls") == {"timeout": "120 s"}


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        ([TRACE], "TypeError: can only concatenate str"),
        (["In[4] failed", "a.b.MyError: bad\n  detail of it"], "a.b.MyError: bad"),
        (["no such file: x.csv"], "no such file: x.csv"),
        (["KeyboardInterrupt"], "KeyboardInterrupt"),
        ([], ""),
    ],
)
def test_the_line_that_says_what_went_wrong(texts, line):
    assert error_line(texts) == line


def failed():
    return fold_all([
        ev.CallStarted(**AT, call_id="c", name="add_cell", input={"source": "x = 1"}, title="add and run a code cell",
                       preview=CODE),
        ev.CallEnded(**AT, call_id="c", name="add_cell", status=Status.ERROR, content=(text_block(TRACE),), seconds=1.0,
                     summary="error in 1.0 s"),
    ])  # fmt: skip


def test_a_failed_call_is_folded_with_its_error_in_sight_and_its_end_kept():
    out = item_html(failed().items[0])
    summary = out[out.index('data-fold="output"') : out.index("</summary>", out.index('data-fold="output"'))]
    assert "TypeError: can only concatenate str" in summary
    assert '<details data-fold="output" open>' not in out
    assert "nbagent-fromend" in out
    assert "----&gt; 0 deeper" not in out
    assert out.count("TypeError") == 2
    bundle = record(failed())
    for text in bundle.values():
        assert "TypeError: can only concatenate str" in text
    assert "----&gt; 0 deeper" not in bundle["text/html"]


def test_the_source_of_a_waiting_call_keeps_its_line_breaks():
    item = CallItem(key="c", call_id="c", name="add_cell", status="waiting", input={"source": "a = 1\nb = 2"})
    out = item_html(item)
    assert "Code · 2 lines" in out
    assert "a = 1 b = 2" not in out
    approval = {"tool": "mine", "title": "mine", "input": {"text": "one\n  two"}, "preview": {"kind": "none"}}
    assert "one\n  two" in card_html(approval)


def test_a_rule_is_offered_in_words_and_exactly():
    approval = {"offers": ["add_cell(sha256:ab)", "add_cell"], "preview": CODE}
    exact, every = (rule_html(rule, approval) for rule in approval["offers"])
    assert "exactly this code, nothing else" in exact
    assert "add_cell(sha256:ab)" in exact
    assert "every call of add_cell from now on, whatever the code" in every


def ended(sentence: str, reason: Reason = Reason.ERROR, **more):
    return fold_all([ev.RunEnded(**AT, reason=reason, sentence=sentence, next_step="", text="", turns=1, **more)])


def test_where_nothing_was_used_no_cost_is_said():
    view = ended("No key.", cost=0.0)
    assert facts(view) == ["1 turn"]
    assert header(view)["cost"] == ""
    assert facts(ended("Done.", usage=Usage(1), cost=0.0)) == ["1 turn", "1 token", "0 USD"]
    assert money(0.000001) == "0.0001 USD"


def test_an_errors_sentences_are_plain_lines_with_commands_as_code():
    view = ended("No key: set it.\nTo try it run `make demo`.")
    out = record(view)["text/html"]
    assert "No key: set it.<br>To try it run <code>make demo</code>." in out
    assert "<b>" not in out
    assert "run `make demo`" in record(view)["text/markdown"]
    assert "<code>make demo</code>" in item_html(view.items[-1])
    assert "<b>Done.</b>" in record(ended("Done.", Reason.END_TURN))["text/html"]


def test_what_is_cut_at_its_beginning_says_so():
    assert clip_end("abcdef", 3) == "… 3 characters left out …\ndef"
    assert clip_end("abc", 3) == "abc"


def answer(**more):
    return ev.ApprovalAnswered(**AT, call_id="c", **{"approved": True, "by": "person", **more})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (answer(), "Approved by you"),
        (answer(edited=True), "Approved by you, with your edit"),
        (answer(edited=True, by="colleague"), "Approved by colleague, with an edit"),
        (answer(approved=False, edited=True), "Denied by you"),
        (answer(approved=False, by="policy"), "Denied by policy"),
        (answer(approved=False, words=LEFT_OUT), "Left out by you"),
    ],
)
def test_who_answered_how(given, said):
    assert answered(given) == said


def test_words_that_we_chose_for_the_model_are_not_put_into_the_persons_mouth():
    assert answer_words(answer(approved=False, words=LEFT_OUT)) == ""
    assert answer_words(answer(approved=False, words="not now")) == "not now"


@pytest.mark.parametrize(
    ("name", "title", "said"),
    [
        ("edit_cell", "edit and run In[7]", ("In[7]", True)),
        ("add_cell", "add and run a code cell", ("The new cell", True)),
        ("shell", "run make test", ("run make test", False)),
    ],
)
def test_what_runs_is_named_in_few_words(name, title, said):
    assert running_name(CallItem(key="c", call_id="c", name=name, title=title)) == said


def test_effects_are_a_hint_and_are_escaped_wherever_they_stand():
    preview = {**CODE, "effects": ["rebinds df", "writes <b>out.csv"]}
    said = "Probably: rebinds df · writes &lt;b&gt;out.csv"
    assert said in card_html({"tool": "add_cell", "title": "add", "input": {}, "preview": preview})
    view = fold_all([ev.CallStarted(**AT, call_id="c", name="add_cell", input={}, title="add", preview=preview)])
    assert said in item_html(view.items[0])
    assert said in record(view)["text/html"]
    assert "Probably: rebinds df · writes &lt;b>out.csv" in record(view)["text/markdown"]
    assert "Probably" not in card_html({"tool": "a", "title": "a", "input": {}, "preview": CODE})


def test_names_that_the_same_is_done_with_stand_together():
    preview = {**CODE, "effects": ["rebinds `df`", "writes out.csv", *(f"rebinds `x{n}`" for n in range(20))]}
    card = card_html({"tool": "add_cell", "title": "add", "input": {}, "preview": preview})
    names = ", ".join(f"<code>{name}</code>" for name in ["df", *(f"x{n}" for n in range(7))])
    assert f"Probably: rebinds {names} and 13 other names · writes out.csv" in card


def test_which_cells_ran_after_the_last_edit_stands_with_the_answer():
    view = ended("Done.", Reason.END_TURN, checked="Ran after the last edit: In[5].")
    assert "Ran after the last edit: In[5]." in item_html(view.items[-1])
    for text in record(view).values():
        assert "Ran after the last edit: In" in text
        assert text.index("Ran after") < text.index("Done.")
