"""What a map is given becomes inputs with prompts, keys and variables; what can't be one is said in a sentence."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import json
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.app.mapinputs import Item, asked, items_of, prompted, variables
from nbagent.core.errors import ConfigError


def only(given: object, folder: Path = Path()) -> Item:
    (item,) = items_of([given], folder.absolute())
    return item


def test_a_text_that_names_a_file_is_that_file_and_any_other_is_text(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("a\n1\n")
    assert [item.kind for item in items_of(["sales.csv", "sales of May", "", "sales.csv\nmore"], tmp_path)] == [
        "file", "text", "text", "text",
    ]  # fmt: skip
    assert only("sales.csv", tmp_path).path == str(tmp_path / "sales.csv")
    assert only("sales.csv", tmp_path).fields["item"] == "sales.csv"


def test_notebooks_and_folders_are_named_whole_since_their_runs_work_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.ipynb").write_text("{}")
    folder, notebook = items_of([Path("deep"), Path("deep/a.ipynb")], tmp_path)
    assert (folder.kind, notebook.kind) == ("folder", "notebook")
    assert folder.fields["path"] == str(tmp_path / "deep")
    assert notebook.fields == {
        "item": str(tmp_path / "deep/a.ipynb"), "path": str(tmp_path / "deep/a.ipynb"), "name": "a.ipynb", "stem": "a",
        "folder": str(tmp_path / "deep"),
    }  # fmt: skip
    assert notebook.shown == {"input": "deep/a.ipynb"}


def test_rows_of_data_frames_are_dicts_of_plain_values() -> None:
    frame = pd.DataFrame(
        {"n": [1, 2], "when": pd.to_datetime(["2026-01-02", None]), "x": [0.5, float("nan")]}, index=[7, 9]
    )
    assert [item.shown for item in items_of(frame, Path())] == [
        {"n": 1, "when": "2026-01-02T00:00:00", "x": 0.5},
        {"n": 2, "when": None, "x": None},
    ]
    polars = pl.DataFrame({"n": [1], "name": ["é"]})
    assert [item.shown for item in items_of(polars, Path())] == [{"n": 1, "name": "é"}]
    assert [item.given for item in items_of(pd.Series([3, 4]), Path())] == [3, 4]


def test_values_travel_as_json() -> None:
    Point = collections.namedtuple("Point", "x y")  # noqa: PYI024
    assert only(Point(1, 2)).shown == {"x": 1, "y": 2}
    assert only((1, "b")).fields == {"0": 1, "1": "b", "item": [1, "b"]}
    assert only({"d": dt.date(2026, 1, 2), "m": decimal.Decimal("1.10")}).shown == {
        "d": "2026-01-02",
        "m": "1.10",
    }
    assert only(5).fields == {"item": 5}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (pd.DataFrame({"a": [1]}), "Data does not travel"),
        (pd.Series([1]), "Data does not travel"),
        (object(), "can't travel"),
        ({"a": object()}, "holds a object"),
        (["x" * 300_000], "larger than 256 KB"),
        (Path("not-there.csv"), "not-there.csv, is not there"),
    ],
)
def test_what_can_not_be_an_input_is_said(wrong: object, said: str) -> None:
    with pytest.raises(ConfigError, match=r"Input 1 .*|Input 1, .*") as error:
        items_of(["fine", wrong], Path())
    assert said in str(error.value)


def test_what_holds_itself_can_not_be_an_input() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ConfigError, match="Input 0 holds itself"):
        items_of([endless], Path())


@pytest.mark.parametrize("wrong", ["one.csv", Path("one.csv"), {"a": 1}, 5])
def test_one_input_is_no_list_of_inputs(wrong: object) -> None:
    with pytest.raises(ConfigError, match="inputs"):
        items_of(wrong, Path())


def test_fields_are_put_into_the_prompt_and_all_else_is_left() -> None:
    row = only({"region": "North", "n": 3, "set": {"a": 1}})
    assert (
        prompted("{region}: {n} of {set} {0} {} {other word} f{{x}}", row)
        == 'North: 3 of {"a": 1} {0} {} {other word} f{{x}}'
    )
    assert prompted("write {{region}} for {region}", row) == "write {region} for North"
    assert prompted("{0} and {1}", only(("a", "b"))) == "a and b"


def test_a_field_that_is_nearly_one_is_taken_for_a_slip() -> None:
    with pytest.raises(ConfigError, match=r"no field 'regoin'. Did you mean \{region\}\?.*\{\{regoin\}\}"):
        prompted("{regoin}", only({"region": "North"}))
    assert prompted("{{regoin}} {region}", only({"region": "N"})) == "{regoin} N"


def test_a_prompt_without_fields_is_told_its_input_below(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    assert prompted("Sum it up.", only("a.csv", tmp_path)) == "Sum it up.\n\nThe file is a.csv."
    assert prompted("Answer:", only("why?")) == "Answer:\n\nwhy?"
    assert prompted("", only("why?")) == "why?"
    assert prompted("Go", only({"n": 1, "not a name": 2, "list": 3})) == (
        'Go\n\n{"n": 1, "not a name": 2, "list": 3}\n\nIn the kernel: item, n'.replace("n:", "n:") + "."
    )


def test_a_prompt_may_be_a_function_of_what_was_given() -> None:
    assert prompted(lambda row: f"{row['n'] + 1}!", only({"n": 1})) == "2!"
    with pytest.raises(ConfigError, match="prompt of input 0 is empty"):
        prompted(lambda _: " ", only("x"))


def test_only_names_that_can_be_variables_are_put_into_the_kernel() -> None:
    item = only({"n": 1, "list": 2, "class": 3, "a b": 4, "_": 5, "In": 6})
    assert set(variables(item)) == {"item", "n"}


def test_same_inputs_have_keys_of_their_own_that_stay_the_same() -> None:
    first = [one.key for one in asked("{item}", items_of(["a", "b", "a"], Path()))]
    again = [one.key for one in asked("{item}", items_of(["b", "a", "a"], Path()))]
    assert len(set(first)) == 3
    assert sorted(first) == sorted(again)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s), max_leaves=8))  # fmt: skip
def test_any_json_value_is_an_input_whose_job_is_json(value: object) -> None:
    for one in asked("{item}", items_of([[value]], Path())):
        json.dumps([one.variables, one.item.shown]).encode()
        assert one.prompt == json.dumps(one.item.fields["item"], ensure_ascii=False)


@given(st.text())
def test_a_prompt_without_fields_of_the_input_is_never_changed(text: str) -> None:
    item = only({"qqqqqqqqqq": 1})
    assert prompted(text, item).startswith(text.strip())


def test_what_a_prompt_of_ones_own_raises_names_the_input_and_a_long_text_is_no_prompt(tmp_path):
    with pytest.raises(KeyError) as raised:
        asked(lambda item: item["nope"], items_of([{"a": 1}], tmp_path))
    assert raised.value.__notes__ == ["This was raised by the prompt of input 0."]
    with pytest.raises(ConfigError, match="Input 1 is a text of more than 256 KB: save it to a file"):
        items_of(["short", "x" * 300_000], tmp_path)
