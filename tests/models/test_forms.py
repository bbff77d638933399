"""A form made of a schema: its fields, what their texts mean, and what is told to be missing before a reply is sent."""

from __future__ import annotations

from typing import Literal

import pytest

from nbagent.core.errors import ToolError
from nbagent.core.tools import tool
from nbagent.models.forms import fields_of, input_of, problems
from nbagent.models.human import call_block


@tool
async def draw(
    _: object,
    title: str,
    code: str,
    kind: Literal["bar", "line"],
    bins: int = 10,
    width: float | None = None,
    grid: bool = False,
    columns: list[str] | None = None,
    style: dict[str, int] | None = None,
    mixed: int | str = 1,
) -> str:
    """Draw.

    Args:
        title: What stands above.
    """
    return title


@tool
async def plot(_: object, kind: Literal["Bar", "Line"]) -> str:
    """Plot."""
    return kind


SCHEMA = draw.schema
TOOLS = [draw.to_param()]


def test_each_argument_gets_the_field_that_fits_its_type():
    fields = {field.name: field for field in fields_of(SCHEMA)}
    kinds = {name: (field.kind, field.required) for name, field in fields.items()}
    assert kinds == {
        "title": ("text", True), "code": ("lines", True), "kind": ("choice", True), "bins": ("number", False),
        "width": ("number", False), "grid": ("choice", False), "columns": ("json", False), "style": ("json", False),
        "mixed": ("json", False),
    }  # fmt: skip
    assert fields["title"].description == "What stands above."
    assert (fields["bins"].default, fields["kind"].choices, fields["grid"].choices) == (
        "10", ("bar", "line"), ("true", "false"),
    )  # fmt: skip


def test_a_field_that_refers_to_a_definition_is_read_there():
    schema = {
        "properties": {"how": {"anyOf": [{"$ref": "#/$defs/How"}, {"type": "null"}], "default": None}},
        "$defs": {"How": {"enum": ["fast", "slow"], "type": "string"}},
    }
    (field,) = fields_of(schema)
    assert (field.kind, field.choices, field.required, field.default) == ("choice", ("fast", "slow"), False, "")


def test_texts_become_the_input_and_what_is_empty_is_left_out():
    texts = {
        "title": "12",
        "code": "a\nb\n",
        "kind": "bar",
        "bins": "5",
        "width": " ",
        "grid": "true",
        "columns": '["a"]',
    }
    given = input_of(SCHEMA, texts)
    assert given == {"title": "12", "code": "a\nb\n", "kind": "bar", "bins": 5, "grid": True, "columns": ["a"]}
    assert draw.validate(given)["width"] is None
    assert problems([call_block("draw", given)], TOOLS) == []


def test_what_cannot_be_read_goes_out_as_it_is_and_is_named():
    given = input_of(SCHEMA, {"bins": "many", "columns": "a, b", "kind": "pie"})
    assert given == {"kind": "pie", "bins": "many", "columns": "a, b"}
    said = " ".join(problems([call_block("draw", given)], TOOLS))
    for part in (
        "title is required",
        "code is required",
        "one of bar, line",
        "of type integer, not many",
        "array, not a, b",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("blocks", "said"),
    [([], "reply is empty"), ([call_block("paint", {})], "no tool 'paint'"), ([call_block("draw", [])], "must be an object"),
     ([call_block("draw", {"title": True, "code": "", "kind": "bar"})], "of type string, not true"),
     ([call_block("draw", {"title": "", "code": "", "kind": "bar", "bins": True})], "of type integer, not true"),
     ([call_block("draw", {"title": "", "code": "", "kind": "bar", "size": 1})], "no argument 'size'")],
)  # fmt: skip
def test_what_is_plainly_wrong_is_told_before_it_is_sent(blocks: list, said: str):
    assert said in " ".join(problems(blocks, TOOLS))


def test_the_runtime_names_the_words_that_a_choice_may_have_as_they_are_written():
    with pytest.raises(ToolError, match="kind: input should be 'Bar' or 'Line'"):
        plot.validate({"kind": "bar"})
