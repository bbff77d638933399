"""Foreign tools' names and schemas: fit for the Messages API, short, and checked as they were meant."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import ToolError
from nbagent.extend.mcp_schema import NAME_LIMIT, SCHEMA_LIMIT, Arguments, tool_name

TEXT = {"type": "string"}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["type", "properties", "$ref", "oneOf", "anyOf", "allOf", "items", "enum", "required", "ä b", "$defs"]),
        inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


def test_plain_names_stay_and_servers_come_before_tools():
    assert tool_name("github", "create_issue") == "mcp__github__create_issue"
    assert tool_name("git__hub", "x") == "mcp__git_hub__x", "else a rule for the server git would speak of it"


@given(st.text(min_size=1, max_size=90), st.text(min_size=1, max_size=90))
def test_any_name_is_made_fit_and_is_the_same_each_time(server, tool):
    name = tool_name(server, tool)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)
    assert name == tool_name(server, tool)


def test_long_names_differ_though_their_beginnings_are_one():
    long = "x" * 70
    names = {tool_name("s", long + "a"), tool_name("s", long + "b")}
    assert len(names) == 2
    assert all(len(name) <= NAME_LIMIT for name in names)


def test_a_taken_name_gets_a_hash():
    assert tool_name("s", "ä", ["mcp__s___", tool_name("s", "ä")]) != tool_name("s", "ä")


@pytest.mark.slow
@given(
    st.dictionaries(st.sampled_from(["type", "properties", "oneOf", "anyOf", "$ref", "required", "$defs"]), JSON_VALUES)
)
def test_no_schema_is_too_odd_to_be_shown(schema):
    arguments = Arguments.of(schema)
    assert arguments.shown["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf", "$ref"} & arguments.shown.keys()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) for name in arguments.shown["properties"])
    assert len(json.dumps(arguments.shown, ensure_ascii=False)) <= SCHEMA_LIMIT


def test_alternatives_at_the_top_are_folded_and_still_checked():
    arguments = Arguments.of({
        "type": "object",
        "oneOf": [{"properties": {"id": TEXT}, "required": ["id"]}, {"properties": {"name": TEXT}, "required": ["name"]}],
    })  # fmt: skip
    assert set(arguments.shown["properties"]) == {"id", "name"}
    assert "required" not in arguments.shown
    assert arguments.check("t", {"id": "1"}) == {"id": "1"}
    with pytest.raises(ToolError, match="wrong arguments for t"):
        arguments.check("t", {"id": "1", "name": "n"})


def test_a_reference_at_the_top_is_followed_and_one_to_another_document_is_not():
    arguments = Arguments.of({
        "$ref": "#/$defs/Input", "$defs": {"Input": {"properties": {"q": TEXT, "x": {"$ref": "http://evil/x.json"}},
                                                    "required": ["q"]}}})  # fmt: skip
    assert arguments.shown["properties"] == {"q": TEXT, "x": {}}
    assert arguments.shown["required"] == ["q"]
    assert arguments.check("t", {"q": "?", "x": 1}) == {"q": "?", "x": 1}, "what can't be checked here is the server's"


def test_references_within_are_kept_and_checked():
    schema = {
        "type": "object",
        "properties": {"s": {"$ref": "#/definitions/n"}},
        "definitions": {"n": {"type": "number"}},
    }
    arguments = Arguments.of(schema)
    assert arguments.shown["properties"]["s"] == {"$ref": "#/definitions/n"}
    with pytest.raises(ToolError, match="s: 'x' is not of type 'number'"):
        arguments.check("t", {"s": "x"})


def test_names_that_the_api_refuses_are_renamed_and_named_rightly_to_the_server():
    arguments = Arguments.of({"properties": {"größe": {"type": "integer"}, "ok": TEXT}, "required": ["größe"]})
    plain = next(name for name in arguments.shown["properties"] if name != "ok")
    assert arguments.shown["required"] == [plain]
    assert arguments.shown["properties"][plain]["description"] == "(größe)"
    assert arguments.sent(arguments.check("t", {plain: 3})) == {"größe": 3}
    with pytest.raises(ToolError, match="größe"):
        arguments.check("t", {plain: "x"})


def test_a_long_schema_loses_words_first_and_structure_last():
    deep = {
        "type": "object",
        "properties": {"n": {"type": "string", "description": "why " * 400, "examples": ["x" * 900]}},
    }
    schema = {"properties": {f"a{i}": {**deep, "description": "what " * 300} for i in range(30)}, "required": ["a3"]}
    shown = Arguments.of(schema).shown
    assert len(json.dumps(shown)) <= SCHEMA_LIMIT
    assert len(shown["properties"]) == 30
    assert shown["required"] == ["a3"]
    many = Arguments.of({"properties": {f"argument_number_{i}": TEXT for i in range(5000)}}).shown
    assert 100 < len(many["properties"]) < 1000


@pytest.mark.parametrize("broken", [{"type": "nonsense"}, {"properties": {"a": {"pattern": "("}}}, {"required": 5}])
def test_a_broken_schema_checks_nothing(broken):
    assert Arguments.of(broken).check("t", {"a": "x"}) == {"a": "x"}
