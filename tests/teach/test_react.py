"""ReAct beside tool blocks: what the parser reads, and which slips of a model come through in which form."""

from __future__ import annotations

from contextlib import aclosing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbagent.models.scripted import ScriptedModel, Turn
from nbagent.teach.react import Answer, Happened, Read, Step, Unread, careful, parse, react, written
from nbagent.teach.react_count import SLIPS, Table, count, counter, in_blocks, in_text, some_steps
from tests.source import ROOT

PENGUINS = ROOT / "notebooks" / "data" / "penguins.csv"
DONE = "Thought: I know it.\nAnswer: 2"
_LABELS = ("Thought:", "Action:", "Input:", "Answer:")

words = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"))
    .map(str.strip)
    .filter(lambda text: not any(line.startswith(_LABELS) for line in text.split("\n")))
)
"""Anything that no line of looks like a label, colons and newlines included."""
names = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)


async def _react(*turns: str | Turn, read: object = parse, max_turns: int = 10) -> list[Happened]:
    tools = {"double": lambda text: str(2 * int(text))}
    events = react(ScriptedModel(turns), "Go", tools, read=read, max_turns=max_turns)  # type: ignore[arg-type]
    async with aclosing(events):
        return [event async for event in events]


@given(st.one_of(st.builds(Step, words, names, words), st.builds(Answer, words, words)))
@example(Step("It is 14:30: late", "count", "time == 14:30\n\nnote == a: b"))
def test_a_well_formed_reply_is_read_as_it_was_written(reply: Step | Answer) -> None:
    assert parse(written(reply)) == reply


@given(
    st.text()
    | st.lists(st.sampled_from([*_LABELS, "Observation:", "```", "**Action:**", "\n", ": ", "x"])).map("".join)
)
@pytest.mark.parametrize("read", [parse, careful])
def test_whatever_a_model_writes_is_read_or_refused(read: object, text: str) -> None:
    found: Read = read(text)  # type: ignore[operator]
    assert isinstance(found, Step | Answer | Unread)
    assert not isinstance(found, Unread) or found.why


def test_a_stray_colon_is_another_tool_for_the_plain_parser_and_none_for_the_careful_one() -> None:
    text = "Thought: I count.\nAction: count:\nInput: year == 2008"
    assert parse(text) == Step("I count.", "count:", "year == 2008")
    assert careful(text) == Step("I count.", "count", "year == 2008")


async def test_a_run_goes_from_call_to_observation_to_answer() -> None:
    seen = await _react(written(Step("I double it.", "double", "21")), DONE)
    assert [(one.kind, one.text) for one in seen if one.kind != "said"] == [("acted", "42"), ("ended", "2")]


async def test_a_model_that_forgets_the_format_is_told_and_may_try_again() -> None:
    seen = await _react("I would double it.", written(Step("", "triple", "2")), Turn("Answer: 1", "max_tokens"), DONE)
    told = [one.text for one in seen if one.kind == "told"]
    assert ["Action: or Input:" in told[0], "'triple'" in told[1], "cut off" in told[2]] == [True, True, True]
    assert seen[-1] == Happened("ended", "2")


async def test_a_run_without_an_end_stops_at_the_limit() -> None:
    seen = await _react(*[written(Step("", "double", "1"))] * 3, max_turns=3)
    assert sum(one.kind == "acted" for one in seen) == 3
    assert seen[-1] == Happened("ended", "max_turns")


def _of(table: Table, slip: str, outcome: str) -> tuple[int, int, int]:
    row = table.rows[slip]
    return row["text"][outcome], row["careful text"][outcome], row["blocks"][outcome]


async def test_the_table_counts_what_ran_in_each_form() -> None:
    steps = some_steps(PENGUINS)[:2]
    table = await count(steps, counter(PENGUINS))
    assert list(table.rows) == list(SLIPS)
    assert all(sum(found.values()) == 2 for row in table.rows.values() for found in row.values())
    assert _of(table, "as it was asked for", "right") == (2, 2, 2)
    assert _of(table, "a stray colon after the tool's name", "right") == (0, 2, 2)
    assert _of(table, "a code fence that belongs to the input", "right") == (2, 0, 2)  # a repair is a bug elsewhere
    assert _of(table, "an observation that the model made up", "wrong") == (2, 0, 0)
    assert _of(table, "a line of the input that looks like a label", "wrong") == (2, 2, 0)
    assert _of(table, "a code fence around the input", "wrong") == (2, 2, 2)  # blocks are no cure for that
    assert _of(table, "a quotation mark lost", "told") == (0, 0, 2)
    assert table.total("blocks", "right") > table.total("careful text", "right") > table.total("text", "right")
    assert "a stray colon" in repr(table)
    assert table._repr_html_().count("<tr>") == len(SLIPS) + 2


async def test_the_tool_of_the_table_counts_rows() -> None:
    where = counter(PENGUINS)
    assert where("species == Adelie") == "152"
    assert int(where("species == Adelie\nisland == Dream")) == 56
    assert {await in_text(SLIPS["cut off at the output limit"](some_steps(PENGUINS)[0]), where)} == {"told"}
    assert await in_blocks(SLIPS["two calls in one reply"](some_steps(PENGUINS)[0]), where) == "right"
