"""The line of `%%agent`, and the transformer that makes one awaiting line of the cell."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.app.completion import complete
from nbagent.app.options import names, parse
from nbagent.app.transform import transform
from nbagent.core.errors import ConfigError


def test_options_come_first_and_the_rest_of_the_line_is_prompt_literally():
    options, prompt = parse('-m opus --max-turns 3  what\'s {x} in "df"?')
    assert options == {"model": "opus", "max_turns": 3}
    assert prompt == 'what\'s {x} in "df"?'


def test_an_equals_sign_works_too():
    assert parse("--mode=plan go")[0] == {"mode": "plan"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--moed plan", "Did you mean --mode?"),
        ("--mode", "expected one argument"),
        ("--mode fast", "invalid choice"),
        ("--max-turns many", "invalid int"),
        ("--max-turns 3 --preset lookup", "not allowed with"),
        ("--yes do it", "there is no option --yes"),
        ("--out get_ipython go", "a name of Python's or IPython's own"),
        ("--out print go", "a name of Python's or IPython's own"),
        ("--out Out go", "a name of Python's or IPython's own"),
    ],
)
def test_a_wrong_option_is_one_line_with_the_nearest_spelling(line, said):
    with pytest.raises(ConfigError) as caught:
        parse(line)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@given(
    body=st.text(),
    line=st.text(
        alphabet=st.characters(exclude_characters="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", exclude_categories=["Cs"])
    ),
)
def test_the_body_and_the_line_reach_the_magic_literally(body, line):
    made = transform([f"%%agent {line}\n", *body.splitlines(keepends=True)])
    assert len(made) == 1
    call = ast.parse(made[0]).body[0].value.value
    assert [a.value for a in call.args] == ["agent", line.strip(), body or "\n"]


def test_blank_lines_and_comments_may_stand_before():
    made = transform(["\n", "# a note\n", "%%agent -m opus\n", "go\n"])
    assert made == ["await get_ipython().run_cell_magic('agent', '-m opus', 'go\\n')\n"]


def test_a_question_in_the_words_of_a_command_is_no_question_for_help():
    made = transform(["%agent explore where is x computed?\n"])
    assert made == ["await get_ipython().run_cell_magic('agent', 'explore where is x computed?', None)\n"]


@pytest.mark.parametrize(
    "cell",
    [
        ["%agent?\n"],
        ["%agent ??\n"],
        ["x = 1\n"],
        ["%%agents\n"],
        ["%%time\n", "%%agent\n"],
        ["x\n", "%%agent\n"],
        [],
        ["# only\n"],
    ],
)
def test_other_cells_are_left_alone(cell):
    assert transform(cell) is cell


def test_tab_completes_options_values_and_subcommands():
    assert complete("%%agent --mo") == names()
    assert "plan" in complete("%%agent --mode ")
    assert "doctor" in complete("%agent ")
    assert "opus" in complete("%agent model ")


def test_where_a_run_begins_is_one_word_and_a_prompt_after_fork_is_no_point():
    assert parse("--fork What is x?") == ({"fork": ""}, "What is x?")
    assert parse("--fork 20261129-235801-1f9c@2 go") == ({"fork": "20261129-235801-1f9c@2"}, "go")
    assert parse("--fork @3 go") == ({"fork": "@3"}, "go")
    assert parse("--fork=bold@1 go") == ({"fork": "bold@1"}, "go")
    assert parse("--session bold --tools a,b go") == ({"session": "bold", "tools": "a,b"}, "go")
    assert parse("--continue go") == ({"go_on": True}, "go")
    with pytest.raises(ConfigError, match="not allowed with"):
        parse("--new --fork go")
