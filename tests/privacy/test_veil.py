"""Hidden variables and columns: what is told of them, whose outputs are held back, which names are hidden with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from nbagent.core.ports import is_whole
from nbagent.tools.details import details
from nbagent.tools.variables import describe_all
from nbagent.tools.veil import Veil
from nbagent.tools.veil_names import made_of

TABLE = pd.DataFrame({"ssn": ["123-45-6789", "987-65-4321"], "age": [41, 36], "city": ["Ulm", "Bonn"]})
NAMES: dict[str, Any] = {
    "patients": TABLE,
    "df": TABLE,
    "n": 3,
    "notes": ["Ada was here"],
    "a": np.arange(8.0),
    "pd": pd,
}


def text(value: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": value}


def test_of_a_hidden_variable_only_the_name_is_told() -> None:
    told = describe_all({name: Veil(hidden=("patients",)).told(name, v) for name, v in NAMES.items()})
    assert "patients: hidden by the person" in told and "df: pandas DataFrame 2 rows" in told


def test_schema_only_tells_types_shapes_dtypes_and_labels_and_no_value() -> None:
    veil = Veil(schema=("patients", "notes", "a"))
    said = {
        name: f"{details(veil.told(name, v))} {veil.told(name, v).line}" for name, v in NAMES.items() if veil.of(name)
    }
    assert "'ssn'  " in said["patients"] and "int64" in said["patients"] and "2 rows x 3 columns" in said["patients"]
    assert "list of 1" in said["notes"] and "(8,) float64" in said["a"]
    assert not any(value in str(said) for value in ("123-45", "Ulm", "Ada", "41"))


def test_of_a_table_with_a_hidden_column_the_rest_is_told() -> None:
    told = Veil(hidden=("df.ssn",)).told("df", TABLE)
    assert "Ulm" in told.more(None) and "'ssn' (" in told.more(None) and "123-45" not in told.more(None)
    assert "hidden by the person" in told.more("ssn") and "36" in told.more("age")


@pytest.mark.parametrize(
    "code",
    [
        "patients",
        "print(patients.head())",
        "# patients",
        "globals()",
        "Out[3]",
        "_5",
        "%whos",
        "eval('pa' + 'tients')",
        "import __main__; print(getattr(__main__, 'pa' + 'tients'))",
        "sys.modules['__main__'].__dict__",
        "sys._getframe().f_globals['pa' + 'tients']",
        "show.__globals__['pa' + 'tients']",
        "get_ipython().ev('pa' + 'tients')",
        "get_ipython().run_cell('pa' + 'tients')",
        "get_ipython().user_module.__dict__",
    ],
)
def test_outputs_of_code_that_reaches_a_hidden_variable_are_held_back(code: str) -> None:
    veil = Veil(hidden=("patients",))
    error = {"output_type": "error", "ename": "KeyError", "evalue": "'Ada'", "traceback": ["KeyError: 'Ada'"]}
    seen = veil.outputs(code, [text("Ada 41"), error], NAMES)
    assert "Ada" not in str(seen) and "held back" in str(seen) and "KeyError" in str(seen)
    assert not is_whole(seen), "what stands for outputs is never written back over them"


@pytest.mark.parametrize("code", ["print(n)", "in_patients = 3", "df.head()"])
def test_outputs_of_other_code_are_shown(code: str) -> None:
    assert Veil(hidden=("patients",)).outputs(code, [text("3")], {**NAMES, "df": TABLE.copy()}) == (text("3"),)
    assert not Veil(hidden=("patients",)).hints(code, {"n": 3})


def test_with_a_hidden_column_only_outputs_that_show_it_are_held_back() -> None:
    veil = Veil(hidden=("df.ssn",))
    assert "held back" in str(veil.outputs("df.head()", [text(str(TABLE))], NAMES))
    assert "held back" in str(veil.outputs("print(df.iloc[0, 0])", [text("123-45-6789")], NAMES))
    assert veil.outputs("df.age.mean()", [text("38.5")], NAMES) == (text("38.5"),)
    without = str(TABLE.drop(columns="ssn"))
    assert veil.outputs("df.drop(columns='ssn')", [text(without)], NAMES) == (text(without),)
    assert veil.hints("df.ssn.tolist()", NAMES) == ("reads `df.ssn`, which you have hidden",)


CELLS = [
    "patients = load()", "adults = patients[patients.age > 18]\nrows = []\nfor p in adults:\n    rows.append(p)",
    "def show():\n    return adults", "n = 3\nm = len(rows)", "adults = None\nbox['x'] = m",
]  # fmt: skip


def test_names_that_are_made_of_hidden_ones_are_hidden_until_they_are_bound_anew() -> None:
    made = made_of(CELLS, lambda name: name == "patients", lambda name: name == "pd")
    assert set(made) == {"p", "rows", "show", "m", "box"}
    assert made["m"] == {"patients"}


def test_the_body_of_a_cell_magic_counts_and_modules_are_never_filled() -> None:
    cells = [
        "get_ipython().run_cell_magic('time', '', 'x = patients.copy()\\n')",
        "pd.set_option(patients)",
        "%%time\ny = x",
    ]
    assert set(made_of(cells, lambda name: name == "patients", lambda name: name == "pd")) == {"x", "y"}


def test_what_is_shown_again_is_shown_and_patterns_hide_no_modules() -> None:
    veil = Veil(hidden=("p*",), shown=frozenset({"patients"}), made={"adults": {"patients"}})
    assert not veil.of("patients") and veil.of("prices") == "hidden" and not veil.of("pd", pd)
    assert not veil.of("adults"), "what was made of it too"
