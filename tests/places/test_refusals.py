"""What was refused can be allowed by who has seen its code, once, for the next run, and by guessing never."""

from __future__ import annotations

from nbagent.core.ports import Approval, Preview
from nbagent.jupyter.refusals import Refusals, RememberingApprover
from nbagent.view.appendix import Note, appended, plain


def approval(body, *, offers=None):
    offers = (f"run_python(sha256:{body})", "run_python") if offers is None else offers
    return Approval("id", "run_python", f"run {body}", {"code": body}, Preview("code", body), "why", offers)


async def test_a_refused_call_is_denied_at_once_and_remembered_once():
    refusals = Refusals(iter(["aa", "bb", "cc"]).__next__)
    approver = RememberingApprover(refusals)
    for body in ("one", "two", "one"):
        answered = await approver.ask(approval(body))
        assert (answered.approved, answered.by) == (False, "policy")
    assert [refusal.command for refusal in refusals.open] == ["%agent allow 1 aa", "%agent allow 2 bb"]
    assert not approver.present


def test_what_has_no_rule_of_its_own_cannot_be_allowed_this_way():
    refusals = Refusals()
    refusals.add(approval("protected", offers=()))
    refusals.add(approval("any", offers=("delete_cell",)))  # the narrowest rule is the whole tool
    assert refusals.open == ()


def test_the_code_allows_exactly_that_call_for_the_next_run_and_no_other():
    refusals = Refusals(iter(["aa", "bb"]).__next__)
    refusals.add(approval("one"))
    refusals.add(approval("two"))
    assert refusals.take(1, "bb") is None and refusals.take(3, "aa") is None and refusals.take(1, "") is None
    taken = refusals.take(2, "bb")
    assert taken is not None and taken.approval.preview.body == "two"
    assert refusals.take(2, "bb") is None, "once"
    allowed, said = refusals.begin()
    assert allowed == ("run_python(sha256:two)",)
    assert len(said) == 1 and "run two" in said[0]
    assert refusals.begin() == ((), ()) and refusals.open == ()


def test_three_wrong_codes_drop_all():
    refusals = Refusals(lambda: "aa")
    refusals.add(approval("one"))
    assert [refusals.take(1, guess) for guess in ("ab", "ac", "ad", "aa")] == [None] * 4
    assert refusals.open == () and refusals.begin() == ((), ())


def test_a_denial_with_words_is_told_in_the_next_run():
    refusals = Refusals()
    refusals.add(approval("one"))
    assert len(refusals.deny("use the file")) == 1
    assert refusals.open == ()
    assert refusals.begin() == ((), ("The person denied run one. They say: use the file",))


def test_notes_stand_below_the_record_in_each_format_escaped_and_to_be_copied():
    record = {"text/html": "<p>r</p>", "text/markdown": "r", "text/plain": "r"}
    note = Note("Proposed <b>", "print('```')\n# <i>\u202e")
    bundle = appended(record, [note])
    assert bundle["text/html"].startswith("<p>r</p>") and "Proposed &lt;b&gt;" in bundle["text/html"]
    assert "<i>" not in bundle["text/html"] and "U+202E" in bundle["text/html"]
    assert "````python\nprint('```')\n# <i>⟨U+202E⟩\n````" in bundle["text/markdown"]
    assert "\nprint('```')\n# <i>⟨U+202E⟩\n" in bundle["text/plain"]
    assert appended(record, []) == record
    assert plain([Note("only a line")]) == "only a line"
