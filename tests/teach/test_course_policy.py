"""A teacher's rules: what a file may say, sentences for what it may not, and that they never allow what was not allowed before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.app.lesson import under
from nbagent.config import Settings
from nbagent.core.errors import ConfigError
from nbagent.core.hooks import Verdict
from nbagent.core.policy import Hooked, Mode, Policy
from nbagent.core.rules import Rule
from nbagent.core.tools import Kind, Tool
from nbagent.teach.course_policy import FREE, HINT, NO_LESSON, WIDTH, Lesson, closed, parsed
from tests.core.test_narrowing import NAMES, a_tool, inputs, rules, texts, tools, verdicts

ALL = {
    "name": "Loops",
    "mode": "hint-only",
    "tools": ["read_file", "shell(git *)"],
    "max_turns": 5,
    "max-tokens": 2000,
    "model": "haiku",
    "reasoning_first": True,
    "message": " Try it alone first. ",
}


def test_a_file_says_what_counts_and_the_line_of_a_run_names_it() -> None:
    lesson = parsed(ALL, "lesson.toml")
    assert (lesson.mode, lesson.tools, lesson.max_tokens) == (HINT, (("read_file", "shell(git *)"),), 2000)
    assert lesson.message == "Try it alone first."
    assert lesson.line == (
        "This lesson: hints only, only read_file, shell(git *), at most 5 turns, at most 2,000 tokens, always the model haiku, "
        "reasoning first (lesson.toml)"
    )
    assert "three levels" in lesson.told and "reasoning first" in lesson.told
    assert (NO_LESSON.line, NO_LESSON.told, NO_LESSON.there) == ("", "", False)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("max_turn", 5, "lesson.toml: there is no field 'max_turn'. Did you mean 'max_turns'?"),
        ("zzz", 5, "lesson.toml: there is no field 'zzz'. The fields are name, mode, tools"),
        ("sources", [], "there is no field 'sources'"),
        (
            "mode",
            "hints-only",
            "mode = 'hints-only' is not one of hint-only, explain-only, free. Did you mean 'hint-only'?",
        ),
        ("mode", "bypass", "is not one of"),
        ("tools", "read_file", "tools = 'read_file' is not 'off' or a list of tools"),
        ("tools", [], "is not 'off' or a list"),
        ("tools", [3], "is not 'off' or a list"),
        ("tools", ["bad("], "bad("),
        ("max_turns", 0, "max_turns = 0 is not a whole number above 0."),
        ("max_turns", True, "is not a whole number"),
        ("max_tokens", "9", "is not a whole number"),
        ("model", "scripted:evil:turns", "a script would import"),
        ("model", "broken:deaf/scripted:evil:turns", "a script would import"),
        ("reasoning_first", "yes", "is not true or false"),
        ("message", 3, "is not a text"),
    ],
)
def test_what_is_no_field_or_no_value_gets_a_sentence_with_file_and_field(field: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parsed({field: value}, "lesson.toml")
    assert (said in str(raised.value) and "lesson.toml" in str(raised.value)) or said == "bad("


lessons = st.builds(
    Lesson,
    mode=st.sampled_from(list(WIDTH)),
    tools=st.lists(st.lists(texts, max_size=3).map(tuple), max_size=2).map(tuple),
    max_turns=st.none() | st.integers(1, 60),
    max_tokens=st.none() | st.integers(1, 9_000),
    model=st.sampled_from(["", "haiku"]),
    reasoning_first=st.booleans(),
    sources=st.just(("lesson.toml",)),
)
settings_ = st.builds(
    Settings,
    mode=st.sampled_from(list(Mode)),
    preset=st.sampled_from(["", "lookup", "session"]),
    max_turns=st.none() | st.integers(1, 90),
    budget_tokens=st.none() | st.integers(1, 9_000),
    model=st.sampled_from(["", "opus", "scripted:a:b"]),
    web=st.sampled_from([(), ("search", "fetch")]),
)
_RANK = {"deny": 0, "ask": 1, "allow": 2}


@given(settings_, lessons, st.lists(rules, max_size=3), tools, inputs, verdicts, verdicts)
async def test_no_lesson_allows_what_was_not_allowed_before(
    settings: Settings,
    lesson: Lesson,
    rules: list[Rule],
    tool: Tool,
    what: dict[str, str],
    said: Verdict,
    answered: Verdict,
) -> None:
    """Whatever the settings, the rules and the hooks say; limits, tools and the web included."""
    after = under(settings, lesson)
    decided = await Hooked(Policy(settings.mode, tuple(rules)), said, answered).decide(tool, what)
    gate = lesson.gate(Policy(after.mode, tuple(rules)))
    narrowed = await Hooked(gate, said, answered).decide(tool, what)
    assert _RANK[narrowed.action] <= _RANK[decided.action], (decided, narrowed)
    assert after.limits().max_turns <= settings.limits().max_turns
    assert (after.budget_tokens or 0) <= (settings.budget_tokens or 10_000)
    assert set(after.web) <= set(settings.web)
    assert (after.allow, after.ask, after.deny, after.base_url) == (
        settings.allow,
        settings.ask,
        settings.deny,
        settings.base_url,
    )
    assert [each.name for each in lesson.chosen([tool])] in ([], [tool.name])


@given(lessons, lessons)
def test_two_lessons_together_are_no_wider_than_either(one: Lesson, other: Lesson) -> None:
    both, four = one.both(other), [a_tool(name, Kind.SHELL) for name in NAMES]
    for each in (one, other):
        assert WIDTH[both.mode] <= WIDTH[each.mode]
        assert (both.max_turns or 999) <= (each.max_turns or 999)
        assert {tool.name for tool in both.chosen(four)} <= {tool.name for tool in each.chosen(four)}
        assert both.reasoning_first >= each.reasoning_first


@pytest.mark.parametrize("mode", list(Mode))
async def test_hints_only_runs_nothing_in_any_mode_whatever_a_hook_allows(mode: Mode) -> None:
    lesson, yes = Lesson(mode=HINT, sources=("lesson.toml",)), Verdict(decision="allow", reasons=("h",))
    gate = lesson.gate(Policy(under(Settings(mode=mode), lesson).mode))
    for kind in Kind:
        decision = await Hooked(gate, yes, yes).decide(a_tool("x", kind), {"what": "x"})
        assert (decision.action == "allow") is (kind is Kind.READ), kind


def test_a_lesson_leaves_the_scripts_of_its_notebook_alone_and_tools_off_offers_none() -> None:
    lesson = parsed({"model": "haiku", "tools": "off"}, "lesson.toml")
    assert under(Settings(model="scripted:a:b"), lesson).model == "scripted:a:b"
    assert under(Settings(model="opus", fallback_model="sonnet", web=("search",)), lesson).model == "haiku"
    assert under(Settings(model="opus", fallback_model="sonnet"), lesson).fallback_model == ""
    assert lesson.chosen([a_tool("shell", Kind.SHELL), a_tool("look", Kind.READ)]) == []
    assert "no tools" in lesson.line


def test_a_file_that_can_not_be_read_closes_and_says_so() -> None:
    lesson = closed("lesson.toml: there is no field 'max_turn'.", "lesson.toml")
    assert lesson.both(Lesson(mode=FREE)).mode == HINT
    assert lesson.line == (
        "This lesson: hints only, because its rules can't be read. lesson.toml: there is no field 'max_turn'."
    )
