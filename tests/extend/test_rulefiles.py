"""Rules from settings files: which files count, what a project may say before it was trusted, and what is wrong with them."""

from __future__ import annotations

import json

import pytest

from nbagent import config
from nbagent.core.policy import Mode
from nbagent.extend.places import Places
from nbagent.extend.rulefiles import read_rules
from nbagent.extend.survey import survey


@pytest.fixture
def places(tmp_path):
    home = tmp_path / "home"
    work = home / "work" / "sub"
    work.mkdir(parents=True)
    (home / "work" / ".git").mkdir()
    made = Places.of(work, {}, home=home, own=home / ".config" / "nbagent")
    return Places(made.folder, made.root, made.home, made.own, made.claude, tmp_path / "managed")


def put(path, said):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(said if isinstance(said, str) else json.dumps(said))


def permissions(**said):
    return {"permissions": said}


def read(places, *, trusted=False):
    return read_rules(places, lambda _: trusted)


def shown(found):
    return [f"{rule.action} {rule.told}" for rule in found.rules]


def test_rules_of_all_files_add_up_and_say_where_they_are_from(places):
    put(places.claude / "settings.json", permissions(allow=["Bash(ls:*)"], deny=["Read(./.env)"]))
    put(places.own / "settings.toml", '[permissions]\nask = ["shell(git push *)"]\n')
    put(places.root / ".claude" / "settings.json", permissions(deny=["Bash(rm *)"], ask=["WebFetch"]))
    put(places.root / ".nbagent" / "settings.toml", '[permissions]\ndeny = ["run_all"]\n')
    put(places.folder / ".claude" / "settings.local.json", permissions(deny=["Edit(/data/**)"]))
    found = read(places)
    assert set(shown(found)) == {
        "deny Read(./.env) in ~/.claude/settings.json",
        "allow Bash(ls:*) in ~/.claude/settings.json",
        "ask shell(git push *) in ~/.config/nbagent/settings.toml",
        "deny Bash(rm *) in .claude/settings.json",
        "ask WebFetch in .claude/settings.json",
        "deny run_all in .nbagent/settings.toml",
        "deny Edit(/data/**) in sub/.claude/settings.local.json",
    }
    bases = {rule.source.scope: rule.source.base for rule in found.rules}
    assert bases["local"] == str(places.folder)
    assert bases["project"] == str(places.root)
    assert not found.inert
    assert not found.problems


@pytest.mark.parametrize("name", [".claude/settings.json", ".claude/settings.local.json", ".nbagent/settings.toml"])
def test_what_a_project_widens_waits_for_trust_and_what_it_narrows_does_not(places, name):
    said = (
        '[permissions]\nallow = ["Bash(make)"]\ndeny = ["Bash(rm *)"]\ndefaultMode = "acceptEdits"\n'
        'additionalDirectories = ["../other"]\n'
        if name.endswith("toml")
        else permissions(
            allow=["Bash(make)"], deny=["Bash(rm *)"], defaultMode="acceptEdits", additionalDirectories=["../other"]
        )
    )
    put(places.root / name, said)
    before, after = read(places), read(places, trusted=True)
    assert shown(before) == [f"deny Bash(rm *) in {name}"]
    assert (before.project_mode, before.directories) == (None, ())
    assert len(before.inert) == 3
    assert shown(after) == [f"deny Bash(rm *) in {name}", f"allow Bash(make) in {name}"]
    assert (after.project_mode, after.project_trusted) == (Mode.ACCEPT_EDITS, True)
    assert [str(one) for one in after.directories] == [str(places.root / "../other")]
    assert not after.inert


@pytest.mark.parametrize("name", [".claude/settings.json", ".nbagent/settings.toml"])
def test_what_is_trusted_is_what_was_asked_about(places, name):
    """The very powers that the question names open the rules, and no others."""
    text = '[permissions]\nallow = ["Bash(make)"]\n' if name.endswith("toml") else permissions(allow=["Bash(make)"])
    put(places.root / name, text)
    powers = set(survey(places).powers)
    assert len(powers) == 1
    assert shown(read_rules(places, powers.__contains__)) == [f"allow Bash(make) in {name}"]
    put(places.root / name, str(text if isinstance(text, str) else json.dumps(text)).replace("make", "make evil"))
    assert shown(read_rules(places, powers.__contains__)) == []


def test_a_narrower_mode_of_a_project_counts_at_once_and_never_widens_the_persons(places):
    put(places.root / ".claude" / "settings.json", permissions(defaultMode="plan"))
    assert read(places).project_mode is Mode.PLAN
    put(places.root / ".claude" / "settings.json", permissions(defaultMode="default"))
    put(places.claude / "settings.json", permissions(defaultMode="plan"))
    found = read(places)
    assert (found.mode, found.project_mode) == (Mode.PLAN, None)


def test_auto_is_read_as_default_and_said_so(places):
    put(places.claude / "settings.json", permissions(defaultMode="auto"))
    found = read(places)
    assert found.mode is Mode.DEFAULT
    assert "classifier" in found.problems[0]


@pytest.mark.parametrize(
    ("claude", "ours"),
    [
        ("default", "default"),
        ("acceptEdits", "accept-edits"),
        ("plan", "plan"),
        ("dontAsk", "dont-ask"),
        ("bypassPermissions", "bypass"),
    ],
)
def test_claudes_modes_have_our_names(places, claude, ours):
    put(places.claude / "settings.json", permissions(defaultMode=claude))
    assert read(places).mode == ours


def test_any_file_may_forbid_bypass(places):
    put(places.root / ".claude" / "settings.json", permissions(disableBypassPermissionsMode="disable"))
    found = read(places)
    assert found.no_bypass == ".claude/settings.json"
    settings = config.load(places.folder, {"NBAGENT_MODE": "bypass"}, files=found)
    assert settings.mode is Mode.DEFAULT
    assert "forbids it" in settings.ignored[-1]


def test_the_administrators_rules_can_be_the_only_ones_that_allow(places):
    put(
        places.managed / "managed-settings.json",
        {"allowManagedPermissionRulesOnly": True, **permissions(allow=["Bash(ls)"])},
    )
    put(places.managed / "managed-settings.d" / "a.json", permissions(deny=["Bash(curl *)"]))
    put(places.claude / "settings.json", permissions(allow=["Bash"], deny=["Bash(rm *)"]))
    assert [f"{rule.action} {rule}" for rule in read(places, trusted=True).rules] == [
        "deny Bash(rm *)", "allow Bash(ls)", "deny Bash(curl *)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("{", "is not used"),
        ("[]", "must be an object"),
        (permissions(deny="Bash"), "must be a list"),
        (permissions(deny=["Bash("]), "is not a rule"),
        (permissions(deny=[1.5]), "is not a rule"),
        ({"permissions": []}, "must be an object"),
        (permissions(defaultMode="yolo"), "no mode 'yolo'"),
        (permissions(additionalDirectories="x"), "must be a list"),
        ("[" * 100_000, "is not used"),
    ],
)
def test_what_is_wrong_is_a_sentence_and_the_rest_counts(places, said, problem):
    put(places.claude / "settings.json", said)
    put(places.root / ".claude" / "settings.json", said)
    put(places.root / ".nbagent" / "settings.json", permissions(deny=["Bash(rm *)"]))
    found = read(places)
    assert shown(found) == ["deny Bash(rm *) in .nbagent/settings.json"]
    assert any(problem in text for text in found.problems)


def test_settings_files_count_below_options_and_above_nothing(places):
    put(places.claude / "settings.json", permissions(defaultMode="acceptEdits", allow=["Bash(ls *)"]))
    found = read(places)
    assert config.load(places.folder, {}, files=found).mode is Mode.ACCEPT_EDITS
    assert config.load(places.folder, {"NBAGENT_MODE": "plan"}, files=found).mode is Mode.PLAN
    settings = config.load(places.folder, {}, {"deny": ["shell"]}, files=found)
    assert [f"{rule.action} {rule}" for rule in settings.policy().rules] == ["allow Bash(ls *)", "deny shell"]
