"""Signs that a method may be wrong are found in the code, and not where the code is careful."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.tools.methodsigns import HINTS, signs, told

SPLIT = "X_train, X_test = train_test_split(X, random_state=0)"


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["scaler.fit_transform(X)", SPLIT], "fit before the split"),
        (["model.fit(X_test, y_test)"], "fit on test data"),
        (["model.score(X_train, y_train)"], "scored on training data"),
        (["df = df.dropna()"], "dropna() without a count"),
        (["df['a'] = pd.to_numeric(df['a'], errors='coerce')"], "errors='coerce'"),
        (["df['a'] = df['a'].fillna(0)"], "fillna(0)"),
        (["df['a'] = df['a'].fillna(df['a'].mean())"], "fillna() with an average"),
        (["a.merge(b, on='id')"], "merge without validate="),
        (["df['x'] = other['y'].values"], "values without their index"),
        (["df[df.a > 1]['b'] = 2"], "chained assignment"),
        (["df['b'][df.a > 1] = 2"], "chained assignment"),
        (["df.drop(columns='a', inplace=True)"], "inplace=True"),
        (["try:\n    f()\nexcept Exception:\n    pass"], "error swallowed"),
        (["pd.read_csv('/home/anna/data.csv')"], "path of one machine"),
        (["train_test_split(X)"], "no random_state"),
        (["np.random.normal(size=3)"], "no seed"),
        (["for c in cols:\n    ttest_ind(a[c], b[c])"], "many tests"),
        (["df.groupby('g').x.mean().mean()"], "average of averages"),
        (["t.dt.tz_localize(None)"], "time zone dropped"),
        (["df['next'] = df.x.shift(-1)"], "shift back"),
    ],
)
def test_a_sign_is_found_at_its_line(cells, expected):
    found = signs(["%matplotlib inline\n# first", *cells])
    assert expected in [sign.name for sign in found], found
    assert all(sign.place >= 1 for sign in found)


def test_careful_code_has_no_signs():
    careful = [
        "import numpy as np\nrng = np.random.default_rng(1)\nrng.normal()", SPLIT, "scaler.fit(X_train)\nscaler.score(X_test)",
        "before = len(df)\ndf = df.dropna()\nprint(before - len(df))", "a.merge(b, on='id', validate='1:1')",
        "df.loc[df.a > 1, 'b'] = 2", "d['a']['b'] = 1", "df['x'] = df['x'].values", "ttest_ind(a, b)", "'a b'.split()",
    ]  # fmt: skip
    assert signs(careful) == []


def test_they_are_told_as_hints_with_cell_and_line():
    text = told(signs(["x = 1\ndf.sort_values('a', inplace=True)"]), ["In[7]"])
    assert text.startswith(HINTS) and "- In[7]:2 inplace=True:" in text
    assert told([], []) == ""


@given(st.lists(st.text(max_size=60), max_size=4))
def test_no_text_of_a_cell_makes_it_fail(cells):
    signs(cells)
