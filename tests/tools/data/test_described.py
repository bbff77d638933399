"""What is told of each kind of object: bounded, exact, and without running, computing, reading or importing anything."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from nbagent.tools.data.ours import OURS
from nbagent.tools.describe import brief
from nbagent.tools.details import details
from tests.tools.data import objects

LONGEST = 12_000


def told(value: Any) -> tuple[str, str]:
    """Both texts about a value."""
    return brief(value), details(value)


def check(name: str, value: Any) -> None:
    line, text = told(value)
    assert "repr failed" not in line + text, f"{name}: {line}\n{text}"
    assert 0 < len(line) <= 301, name
    assert "\n" not in line, name
    assert len(text) <= LONGEST, name


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1, 200_000])
def test_empty_and_huge_objects_are_told_in_bounded_words(size: int) -> None:
    for name, value in objects.everything(size).items():
        check(name, value)


@pytest.mark.slow
def test_what_a_strangers_subclass_overrides_is_not_run() -> None:
    for name, value in objects.strangers().items():
        line, text = told(value)
        assert name in line, line
        assert "repr failed" not in line + text, f"{line}\n{text}"
    assert objects._Overrides.touched == []


@pytest.mark.slow
def test_nothing_lazy_is_computed_and_no_query_is_sent() -> None:
    for name, value in objects.lazies().items():
        check(name, value)
        if name not in {"engine", "generator"}:
            assert "not computed" in "".join(told(value)), name
    line, text = told(objects.lazies()["engine"])
    assert "joe:***@db" in line
    assert "hunter2" not in line + text
    assert "pw" not in line + text


@pytest.mark.slow
def test_odd_labels_and_hostile_cells_are_told_in_tables() -> None:
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame([[objects.Hostile()] * len(objects.ODD)], columns=pd.Index(objects.ODD, dtype=object))
    check("frame", frame)
    text = details(frame)
    for label in ("'a'", "1 ", "('x', 2)", r"'new\nline'", "None", "2.5"):
        assert f"  {label}" in text
    array = np.empty(3, dtype=object)
    for place, value in enumerate((objects.Hostile(), None, frame)):
        array[place] = value
    check("object array", array)
    labels = pd.DataFrame([[1, 2]])
    labels.columns = pd.Index([objects.Hostile(), "b"], dtype=object)
    check("hostile label", labels)


@pytest.mark.slow
def test_what_contains_itself_ends() -> None:
    import numpy as np
    import pandas as pd

    record = objects.Record()
    record.inner = [record, record, record]
    check("record", record)
    keys: list[Any] = ["a"]
    group = pd.DataFrame({"a": [1]}).groupby(keys)
    keys += [group, group]
    check("group", group)
    array = np.empty((), dtype=object)
    array[()] = array
    check("array", array)


@pytest.mark.slow
def test_models_tell_what_was_set_learned_and_worked_out_and_work_out_nothing() -> None:
    import numpy as np
    import pandas as pd
    import statsmodels.formula.api as smf
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(40), "z": rng.random(40)})
    frame["y"] = (frame["x"] > 0.5).astype(int)
    steps = make_pipeline(StandardScaler(), LogisticRegression(C=2.0))
    assert "not fitted" in brief(steps)
    steps.fit(frame[["x", "z"]], frame["y"])
    text = details(steps[-1])
    assert "parameters that differ from their defaults: C=2.0" in text
    assert "classes: 0, 1" in text
    assert brief(steps).endswith("StandardScaler, LogisticRegression, fitted")
    fitted = smf.ols("z ~ x", frame).fit()
    cached = set(fitted._results._cache)
    text = details(fitted)
    assert "OLS z ~ x, 40 observations" in text
    assert "'x'" in text
    assert "p-values were not worked out yet" in text
    assert set(fitted._results._cache) == cached
    wanted = fitted.pvalues["x"]
    assert f"p = {wanted:.3g}" in details(fitted)


@pytest.mark.slow
def test_geometries_tell_crs_kinds_and_bounds_of_a_sample() -> None:
    text = details(objects.others(2_000)["geo frame"])
    assert "CRS EPSG:4326 (WGS 84, degrees)" in text
    assert "kinds in the first 1,000 of 2,000: Point (1,000)" in text
    assert "x 0 … 999, y 0 … 0" in text


@pytest.mark.slow
def test_a_map_of_a_file_that_has_become_shorter_is_not_read(tmp_path: Any) -> None:
    import numpy as np

    file = tmp_path / "numbers.dat"
    array = np.memmap(file, dtype="f8", mode="w+", shape=(100_000,))
    assert "first 10 of 100,000 values" in details(array)
    with file.open("r+b") as opened:
        opened.truncate(8)
    assert "shorter than its array, not read" in details(array)


def test_records_of_json_are_told_by_their_schema() -> None:
    text = details([{"id": 1, "user": {"name": "a", "tags": ["q"]}}, {"id": 2.5}])
    assert "schema of the records (all 2):" in text
    assert "'id': int or float" in text
    assert "'user': dict  (in 1 of 2)" in text
    assert "'tags': list of str" in text


def test_fields_with_names_of_secrets_are_hidden_and_so_is_data_under_such_a_name() -> None:
    assert "hunter2" not in "".join(told(objects.Pair("joe", "hunter2")))
    assert details(objects.Pair("joe", "hunter2"), "credentials") == "tuple of 2: <hidden: looks like a secret>"
    assert "joe" not in details(objects.Record("joe"), "api_credentials")


@pytest.mark.parametrize("key", sorted(OURS))
def test_each_row_of_the_table_names_a_describer(key: str) -> None:
    import importlib

    module, _, function = OURS[key].partition(":")
    assert callable(getattr(importlib.import_module(f"nbagent.tools.data.{module}"), function))


def test_to_load_all_describers_imports_no_library_of_data() -> None:
    names = sorted({place.partition(":")[0] for place in OURS.values()})
    code = (
        f"import sys; {'; '.join(f'import nbagent.tools.data.{name}' for name in names)};"
        "bad = {'pandas', 'numpy', 'polars', 'pyarrow', 'duckdb', 'xarray', 'dask', 'scipy', 'sklearn', 'matplotlib',"
        "'sqlalchemy', 'plotly', 'altair', 'geopandas', 'shapely', 'statsmodels'} & set(sys.modules); assert not bad, bad"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("key", ["sslpassword", "authtoken", "private_key_passphrase", "SecretAccess", "pwd"])
def test_no_part_of_a_databases_url_tells_a_password(key: str) -> None:
    import sqlalchemy

    line, text = told(sqlalchemy.engine.make_url(f"postgresql://joe:hunter2@db/x?{key}=hunter2&sslmode=require"))
    assert "hunter2" not in line + text
    assert "require" in line
