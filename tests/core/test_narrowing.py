"""A subagent never widens its parent's permissions: its gate is the parent's and the narrowing of its kind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.agents import AgentSpec
from nbagent.core.errors import ConfigError
from nbagent.core.hooks import Verdict
from nbagent.core.narrowing import MODES, Narrowed, chosen
from nbagent.core.policy import TABLE, Hooked, Mode, Policy
from nbagent.core.rules import Rule
from nbagent.core.tools import Call, Kind, Tool, tool

FEWER = settings(max_examples=60 * settings.default.max_examples // 100)
_RANK = {"deny": 0, "ask": 1, "allow": 2}


def a_tool(name: str, kind: Kind) -> Tool:
    async def function(call: Call, what: str) -> str:
        """Do something."""
        return what

    return tool(name=name, kind=kind)(function)


NAMES = ["look", "shell", "add_cell", "task", "read_file"]
tools = st.builds(a_tool, st.sampled_from(NAMES), st.sampled_from(list(Kind)))
inputs = st.fixed_dictionaries({"what": st.sampled_from(["git log", "git push", "rm -rf x", "a.py", "data/a.csv", ""])})
patterns = st.sampled_from(["{}", "{}(git *)", "{}(git log)", "{}(*)", "{}(data/*)", "{}(what:rm*)"])
texts = st.builds(
    lambda form, name: form.format(name), patterns, st.sampled_from([*NAMES, "Bash", "Read", "Edit", "*"])
)
rules = st.builds(Rule.parse, st.sampled_from(["allow", "ask", "deny"]), texts)
gates = st.builds(
    lambda mode, rules: Policy(mode, tuple(rules)), st.sampled_from(list(Mode)), st.lists(rules, max_size=4)
)
specs = st.builds(
    lambda only, without, mode, looks: AgentSpec(
        "x", "d", tools=only, disallowed_tools=without, permission_mode=mode, only_looks=looks
    ),
    st.none() | st.lists(texts, max_size=3).map(tuple),
    st.lists(texts, max_size=3).map(tuple),
    st.sampled_from(["", *MODES]),
    st.booleans(),
)
verdicts = st.builds(Verdict, decision=st.sampled_from(["", "allow", "ask", "deny"]), reasons=st.just(("h",)))


@pytest.mark.slow
@FEWER
@given(gates, st.lists(specs, min_size=1, max_size=3), tools, inputs, verdicts, verdicts)
async def test_no_kind_of_subagent_may_do_what_its_parent_may_not(gate, chain, tool, what, said, answered):
    """Whatever rules, modes, kinds (also one below the other) and hooks say."""
    parent = await Hooked(gate, said, answered).decide(tool, what)
    for spec in chain:
        gate = Narrowed(gate, spec)
        child = await Hooked(gate, said, answered).decide(tool, what)
        assert _RANK[child.action] <= _RANK[parent.action]
        parent = child


@pytest.mark.slow
@FEWER
@given(gates, specs, tools, inputs, verdicts, verdicts)
async def test_a_kind_that_only_looks_does_nothing_else_whatever_hooks_say(gate, spec, tool, what, said, answered):
    looks = AgentSpec("x", "d", tools=spec.tools, permission_mode=spec.permission_mode, only_looks=True)
    decision = await Hooked(Narrowed(gate, looks), said, answered).decide(tool, what)
    assert decision.action == "deny" or decision.kind is Kind.READ


@pytest.mark.slow
@FEWER
@given(specs, tools, inputs, st.lists(rules, max_size=4), verdicts, verdicts)
async def test_a_kind_in_plan_mode_is_held_to_it_whatever_rules_and_hooks_say(
    spec, tool, what, given_rules, said, answered
):
    plan = AgentSpec("x", "d", tools=spec.tools, disallowed_tools=spec.disallowed_tools, permission_mode="plan")
    gate = Narrowed(Policy(Mode.DEFAULT, tuple(given_rules)), plan)
    decision = await Hooked(gate, said, answered).decide(tool, what)
    assert _RANK[decision.action] == 0 or TABLE[decision.kind][Mode.PLAN] != "deny"


def narrowed(parent: Mode, wanted: str) -> Mode:
    return Narrowed(Policy(parent), AgentSpec("x", "d", permission_mode=wanted)).mode


@pytest.mark.parametrize(
    ("parent", "wanted", "mode"),
    [
        (Mode.DEFAULT, "plan", Mode.PLAN),
        (Mode.DEFAULT, "dontAsk", Mode.DONT_ASK),
        (Mode.DEFAULT, "acceptEdits", Mode.DEFAULT),
        (Mode.DEFAULT, "bypassPermissions", Mode.DEFAULT),
        (Mode.DEFAULT, "auto", Mode.DEFAULT),
        (Mode.DONT_ASK, "default", Mode.DONT_ASK),
        (Mode.PLAN, "default", Mode.PLAN),
        (Mode.PLAN, "dontAsk", Mode.PLAN),
        (Mode.BYPASS, "plan", Mode.BYPASS),
        (Mode.ACCEPT_EDITS, "plan", Mode.ACCEPT_EDITS),
    ],
)
def test_the_mode_of_a_kind_only_narrows_and_bypass_and_accept_edits_overrule_it(parent, wanted, mode):
    assert narrowed(parent, wanted) is mode


def test_a_mode_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match="'planning'"):
        narrowed(Mode.DEFAULT, "planning")


async def test_a_kind_with_a_rule_for_a_tool_may_make_those_calls_only():
    gate = Narrowed(Policy(Mode.BYPASS), AgentSpec("x", "d", tools=("shell(git *)",)))
    shell = a_tool("shell", Kind.SHELL)
    assert (await gate.decide(shell, {"what": "git log"})).action == "allow"
    refused = await gate.decide(shell, {"what": "rm x"})
    assert (refused.action, refused.rule) == ("deny", "agent x: it may use shell(git *) only")


def test_the_tools_of_a_kind_are_named_in_our_words_or_in_claudes():
    all_tools = [a_tool(name, Kind.READ) for name in ("read_file", "grep", "shell", "add_cell", "read_result")]
    spec = AgentSpec("x", "d", tools=("Read", "Bash(git *)"), disallowed_tools=("grep", "shell(git push *)"))
    assert [t.name for t in chosen(all_tools, spec)] == ["read_file", "shell", "read_result"]
    assert [t.name for t in chosen(all_tools, AgentSpec("x", "d", disallowed_tools=("Edit",)))] == [
        "read_file", "grep", "shell", "read_result",
    ]  # fmt: skip


def test_what_a_person_keeps_for_a_subagent_is_kept_for_the_session():
    policy = Policy()
    Narrowed(policy, AgentSpec("x", "d")).keep("shell(git log)")
    assert [str(rule) for rule in policy.kept] == ["shell(git log)"]
