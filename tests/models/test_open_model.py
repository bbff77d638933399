from __future__ import annotations

import pytest

from nbagent.core.errors import ConfigError
from nbagent.models import AnthropicModel, ScriptedModel, open_model
from tests.models.conftest import reply_of


@pytest.mark.parametrize(
    ("spec", "name"),
    [("sonnet", "claude-sonnet-5-5"), (" Opus ", "claude-opus-5-5"), ("claude-new-9", "claude-new-9")],
)
def test_short_names_and_ids_of_anthropic_are_models(spec, name):
    model = open_model(spec)
    assert isinstance(model, AnthropicModel)
    assert model.name == name


@pytest.mark.parametrize("name", ["qwen2.5-coder", "llama3.2:3b", "org/model"])
def test_any_name_is_a_model_of_another_server(name, monkeypatch):
    assert open_model(name, base_url="http://127.0.0.1:1").name == name
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    assert open_model(name).name == name


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r"Unknown model 'sonet'\. Did you mean 'sonnet'"):
        open_model("sonet")


@pytest.mark.parametrize("spec", ["", "  "])
def test_an_empty_name_is_answered_with_the_choices(spec):
    with pytest.raises(ConfigError, match="sonnet, opus, haiku, fable"):
        open_model(spec)


@pytest.mark.parametrize("spec", ["\u202eopus", "qwen\x1b[31m", "a b", "''", "`x`", "a" * 201, "a\nb"])
def test_what_can_not_be_seen_or_is_no_name_is_no_model_whoever_serves_it(spec):
    with pytest.raises(ConfigError, match="can't be the name of a model") as caught:
        open_model(spec, base_url="http://127.0.0.1:1")
    assert str(caught.value).isprintable()


def test_a_bad_base_url_is_told_when_the_model_is_chosen():
    with pytest.raises(ConfigError, match="base_url 'localhost:1'"):
        open_model("qwen", base_url="localhost:1")


@pytest.mark.parametrize(
    ("attribute", "name"),
    [("TURNS", "example_scripts (scripted)"), ("make", "example_scripts (scripted)"), ("make_model", "made")],
)
async def test_a_script_is_found_in_an_importable_module(attribute, name):
    model = open_model(f"scripted:tests.models.example_scripts:{attribute}")
    assert isinstance(model, ScriptedModel)
    assert model.name == name
    assert (await reply_of(model)).complete


def test_two_models_of_one_script_do_not_share_their_place_in_it():
    one, two = (open_model("scripted:tests.models.example_scripts:TURNS") for _ in range(2))
    assert one is not two


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nonsense", "scripted:package.module:attribute"),
        (":x", "scripted:package.module:attribute"),
        ("no.such.module:x", "cannot be imported"),
        ("..models:x", "scripted:package.module:attribute"),
        ("tests.models.example_scripts:nothing", "has no script 'nothing'"),
        ("os:fspath", "can't be made: fspath"),
        ("tests.models.example_scripts:NUMBER", "is a int; it must be a list of turns"),
    ],
)
def test_a_script_that_is_not_there_is_told(path, said):
    with pytest.raises(ConfigError, match=said):
        open_model(f"scripted:{path}")
