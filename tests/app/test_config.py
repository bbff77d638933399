"""Where settings come from, and what a project's file may not do."""

from __future__ import annotations

from dataclasses import replace

import platformdirs
import pytest

from nbagent.config import Settings, load
from nbagent.core.errors import ConfigError
from nbagent.core.policy import Mode


def project(folder, text):
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_later_sources_win_and_rules_add_up(tmp_path):
    project(tmp_path, '[tool.nbagent]\nmodel = "haiku"\nmax-turns = 7\ndeny = ["shell"]')
    settings = load(tmp_path, {"NBAGENT_MODEL": "opus", "NBAGENT_DENY": "a\nb"}, {"model": "sonnet"}, {"max_turns": 9})
    assert (settings.model, settings.max_turns, settings.deny) == ("sonnet", 9, ("shell", "a", "b"))


def test_a_projects_file_in_a_parent_folder_counts(tmp_path):
    project(tmp_path, '[tool.nbagent]\nmodel = "haiku"')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert load(inner, {}).model == "haiku"


def test_a_projects_file_can_narrow_but_never_widen_or_move_the_server(tmp_path):
    project(tmp_path, '[tool.nbagent]\nbase_url = "http://evil"\nallow = ["shell"]\nmode = "bypass"\nask = ["look"]')
    settings = load(tmp_path, {})
    assert (settings.base_url, settings.allow, settings.mode) == ("", (), Mode.DEFAULT)
    assert settings.ask == ("look",)
    assert len(settings.ignored) == 3, settings.ignored
    assert load(project(tmp_path, '[tool.nbagent]\nmode = "plan"'), {}).mode is Mode.PLAN


def test_the_persons_own_file_may_set_everything(tmp_path):
    own = platformdirs.user_config_path("nbagent")
    own.mkdir(parents=True, exist_ok=True)
    (own / "config.toml").write_text('base_url = "http://localhost:1"\nmode = "accept-edits"')
    try:
        settings = load(tmp_path, {})
    finally:
        (own / "config.toml").unlink()
    assert (settings.base_url, settings.mode) == ("http://localhost:1", Mode.ACCEPT_EDITS)


def test_parts_of_the_prompt_are_overridden_by_name(tmp_path):
    project(tmp_path, '[tool.nbagent.prompt]\ncells = "One cell only."')
    assert load(tmp_path, {}).prompt == {"cells": "One cell only."}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"modell": "x"}, "Did you mean 'model'"),
        ({"mode": "fast"}, "mode = 'fast' is not one of default"),
        ({"max_turns": "many"}, "max_turns = 'many' is not a whole number"),
        ({"budget": -1}, "budget = -1 must be a number above 0"),
    ],
)
def test_a_wrong_setting_names_source_key_value_and_fix(tmp_path, given, said):
    with pytest.raises(ConfigError, match="option") as caught:
        load(tmp_path, {}, given)
    assert said in str(caught.value)


def test_presets_are_turns_by_type_of_task(tmp_path):
    assert [
        load(tmp_path, {}, {"preset": p}).limits().max_turns for p in ("lookup", "research", "autonomous", "session")
    ] == [5, 25, 50, 100]
    assert load(tmp_path, {}).limits().max_turns == 25
    with pytest.raises(ConfigError, match="There is no preset 'quick'"):
        load(tmp_path, {}, {"preset": "quick"}).limits()


def test_a_broken_file_is_named(tmp_path):
    project(tmp_path, "[tool")
    with pytest.raises(ConfigError, match=r"pyproject\.toml can't be read"):
        load(tmp_path, {})


@pytest.mark.parametrize(
    "line",
    [
        'base-url = "http://evil"', 'allow = ["shell"]', 'mode = "accept-edits"', 'model = "scripted:evil:turns"',
    ],
)  # fmt: skip
def test_however_it_is_spelled_a_project_can_not_widen(tmp_path, line):
    project(tmp_path, f"[tool.nbagent]\n{line}")
    assert replace(load(tmp_path, {}), ignored=()) == Settings()


def test_a_project_can_not_undo_what_the_person_narrowed(tmp_path):
    project(tmp_path, '[tool.nbagent]\nmode = "default"\nmax_turns = 5000\nbudget = 9.0')
    own = {"mode": "read-only", "max_turns": 5, "budget": 1.0}
    path = platformdirs.user_config_path("nbagent")
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.toml").write_text("\n".join(f"{k} = {v!r}" for k, v in own.items()))
    try:
        settings = load(tmp_path, {})
    finally:
        (path / "config.toml").unlink()
    assert (settings.mode, settings.max_turns, settings.budget) == (Mode.READ_ONLY, 5, 1.0)


def test_a_later_preset_beats_an_earlier_number_of_turns(tmp_path):
    assert load(tmp_path, {"NBAGENT_MAX_TURNS": "3"}, {"preset": "lookup"}).limits().max_turns == 5


def test_numbers_must_be_finite(tmp_path):
    with pytest.raises(ConfigError, match="above 0"):
        load(tmp_path, {}, {"budget": float("nan")})


def test_claudes_auto_mode_is_read_as_default(tmp_path):
    assert load(tmp_path, {}, {"mode": "auto"}).mode is Mode.DEFAULT


@pytest.mark.parametrize(
    "line", ["ask = 5", "deny = [1]", 'mode = ["bypass"]', "model = 3", 'prompt = "x"', 'max_turns = "x"']
)
def test_a_value_of_the_wrong_type_in_a_file_is_a_sentence(tmp_path, line):
    project(tmp_path, f"[tool.nbagent]\n{line}")
    with pytest.raises(ConfigError, match=line.split(" ")[0]):
        load(tmp_path, {})


@pytest.mark.parametrize("text", ["tool = 5", "[tool]\nnbagent = 5"])
def test_a_table_that_is_none_does_no_harm(tmp_path, text):
    project(tmp_path, text)
    try:
        assert load(tmp_path, {}) == Settings()
    except ConfigError as error:
        assert "must be a table" in str(error)
