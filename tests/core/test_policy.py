"""Modes, rules and the order in which they speak."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import ConfigError
from nbagent.core.policy import TABLE, Mode, Policy, Rule, table_text
from nbagent.core.ports import text_hash
from nbagent.core.tools import Call, Kind, Tool, tool


def make(kind: Kind = Kind.RUN_CELL, *, exact: bool = True) -> Tool:
    async def act(call: Call, what: str) -> str:
        """Act."""
        return what

    return tool(kind=kind, exact=exact)(act)


def decide(policy: Policy, made: Tool, what: str = "x") -> str:
    return asyncio.run(policy.decide(made, {"what": what})).action


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("mode", list(Mode))
def test_without_rules_the_table_decides(kind, mode):
    assert decide(Policy(mode), make(kind)) == TABLE[kind][mode]


def test_every_kind_stands_in_the_table_with_every_mode():
    assert set(TABLE) == set(Kind)
    assert all(set(row) == set(Mode) for row in TABLE.values())
    assert all(str(kind) in table_text() for kind in Kind)


@pytest.mark.slow
@given(
    rules=st.lists(
        st.tuples(
            st.sampled_from(["allow", "ask", "deny"]), st.sampled_from(["act", "act(x)", "act(y)", "other", "*"])
        ),
        max_size=6,
    ),
    mode=st.sampled_from(list(Mode)),
)
def test_a_deny_rule_that_matches_always_wins_and_an_ask_rule_never_allows(rules, mode):
    parsed = tuple(Rule.parse(a, t) for a, t in rules)
    action = decide(Policy(mode, parsed), make())
    matching = {a for a, t in rules if t in {"act", "act(x)", "*"}}
    if "deny" in matching:
        assert action == "deny"
    elif "ask" in matching:
        assert action in {"ask", "deny"}


def test_an_allow_rule_widens_asking_modes_and_dont_ask_but_never_plan_or_read_only():
    rules = (Rule.parse("allow", "act"),)
    widened = {mode: decide(Policy(mode, rules), make()) for mode in Mode}
    assert widened[Mode.DEFAULT] == widened[Mode.DONT_ASK] == "allow"
    assert widened[Mode.PLAN] == widened[Mode.READ_ONLY] == "deny"


def test_a_rule_for_code_means_one_exact_text_and_no_prefix():
    rules = (Rule.parse("allow", "act(print(1))"),)
    assert decide(Policy(rules=rules), make(), "print(1)") == "allow"
    assert decide(Policy(rules=rules), make(), "print(1); import os") == "ask"
    star = (Rule.parse("allow", "act(print*)"),)
    assert decide(Policy(rules=star), make(), "print(1)") == "ask"


@pytest.mark.parametrize("text", ["rm -rf x", "cd /tmp && rm -rf x", "echo $(rm x)", "ls\nrm x"])
def test_a_deny_rule_for_commands_takes_globs_and_looks_inside(text):
    rules = (Rule.parse("allow", "act"), Rule.parse("deny", "act(rm *)"))
    assert decide(Policy(Mode.BYPASS, rules), make(Kind.SHELL), text) == "deny"
    assert decide(Policy(Mode.BYPASS, rules), make(Kind.SHELL), "ls") == "allow"


def test_a_rule_by_hash_means_the_text_with_that_hash():
    rules = (Rule.parse("allow", f"act(sha256:{text_hash('print(1)')})"),)
    assert decide(Policy(rules=rules), make(), "print(1)") == "allow"
    assert decide(Policy(rules=rules), make(), "print(2)") == "ask"


def test_a_path_pattern_sees_through_dots():
    rules = (Rule.parse("allow", "act(data/*)"),)
    made = make(Kind.WRITE_FILE, exact=False)
    assert decide(Policy(rules=rules), made, "data/a.csv") == "allow"
    assert decide(Policy(rules=rules), made, "data/../secret") == "ask"


def test_a_protected_call_is_not_allowed_by_a_rule_for_the_whole_tool():
    made = make(Kind.PROTECTED, exact=False)
    assert decide(Policy(rules=(Rule.parse("allow", "act"),)), made, ".git/config") == "ask"
    assert decide(Policy(rules=(Rule.parse("allow", "act(.git/config)"),)), made, ".git/config") == "allow"
    assert decide(Policy(Mode.BYPASS), made, ".git/config") == "ask"


def test_code_that_ends_the_kernel_is_asked_about_whatever_the_rules():
    made = make(Kind.PROTECTED)
    assert decide(Policy(Mode.BYPASS, (Rule.parse("allow", "act(exit())"),)), made, "exit()") == "ask"


@pytest.mark.slow
@given(subject=st.text(max_size=300))
def test_every_offered_rule_allows_the_call_it_was_offered_for(subject):
    for exact in (True, False):
        made, policy = make(Kind.SHELL, exact=exact), Policy()
        for offer in policy.offers(made, {"what": subject}, Kind.SHELL):
            kept = Policy()
            kept.keep(offer)
            assert decide(kept, made, subject) == "allow"


def test_a_kept_rule_goes_on_from_run_to_run_and_is_kept_once():
    kept: list[Rule] = []
    Policy(Mode.DONT_ASK, kept=kept).keep("act")
    policy = Policy(kept=kept)
    policy.keep("act")
    assert [str(r) for r in policy.rules] == ["act"]


@pytest.mark.parametrize("text", ["", "()", "a b", "act(", "act()"])
def test_what_is_no_rule_is_refused_with_a_sentence(text):
    with pytest.raises(ConfigError, match="is not a rule"):
        Rule.parse("allow", text)


def test_a_rule_for_the_whole_tool_does_not_cover_code_that_shells_out_or_deletes():
    made = make(Kind.RISKY_CODE)
    assert decide(Policy(rules=(Rule.parse("allow", "act"),)), made, "!rm x") == "ask"
    assert decide(Policy(rules=(Rule.parse("allow", "act(!rm x)"),)), made, "!rm x") == "allow"
