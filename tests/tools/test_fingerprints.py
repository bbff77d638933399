"""Fingerprints of variables: no code of the person's is run, nothing is computed, and every process says the same."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import functools
import os
import pickle
import subprocess
import sys
import time
import types

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.tools.fingerprints import ITEMS, SAMPLED, TYPE_ONLY, Fingerprint, difference, fingerprint, surface

MAIN = "__main__"  # the module of a class that was made in a notebook


def same(a: object, b: object) -> bool:
    return fingerprint("x", a).digest == fingerprint("x", b).digest


def changed(then: object, now: object) -> str:
    return difference("df", fingerprint("df", then), fingerprint("df", now))


# ── no code of the person's ──────────────────────────────────────────────────────────────────────────────────────────


class Touched(BaseException):
    """Code of the person's was run."""


def _touch(*_: object, **__: object) -> object:
    raise Touched


HOSTILE = ("__repr__", "__str__", "__eq__", "__hash__", "__len__", "__iter__", "__getattr__", "__getattribute__", "__bool__",
           "__getitem__", "__contains__", "__index__", "__float__", "__int__", "__reduce_ex__", "__array__", "__fspath__",
           "__buffer__", "__sizeof__", "__format__", "__call__", "__class_getitem__", "keys", "items", "values", "copy")  # fmt: skip


def hostile(base: type, *, module: str = MAIN, **more: object) -> type:
    """A class all of whose methods raise."""
    methods = {name: _touch for name in HOSTILE if not (name == "__hash__" and base in (list, dict, set))}
    return type("Hostile", (base,), {**methods, "shape": property(_touch), "__module__": module, **more})


@pytest.mark.slow
@pytest.mark.parametrize("base", [object, list, dict, set, tuple, frozenset, str, int, float, bytes, collections.deque])
@pytest.mark.parametrize("module", [MAIN, "somewhere.else"])
def test_no_method_of_an_object_is_called(base, module):
    """Rows 93 and 94: properties, __getattr__, __repr__, __eq__, __len__ … of any object are left alone."""
    value = hostile(base, module=module)()
    assert fingerprint("x", value).kind
    assert surface("x", value).kind
    assert same([value, {"k": value}], [value, {"k": value}])


def test_a_subclass_of_a_table_is_not_looked_into():
    """Row 94: its properties are the person's code."""
    table = hostile(pd.DataFrame, __init__=lambda self: None)
    value = table.__new__(table)
    assert fingerprint("x", value).weak == TYPE_ONLY


def test_a_property_named_dict_is_not_read():
    """Row 94."""
    cls = type("Sly", (), {"__dict__": property(_touch), "__module__": MAIN})
    assert fingerprint("x", cls()).weak == TYPE_ONLY


def test_an_enum_a_dataclass_and_slots_are_read_without_their_code():
    """Row 94: attributes are taken from where Python keeps them."""
    colour = enum.Enum("Colour", ["RED", "GREEN"], module=MAIN)
    slots = type("Slots", (), {"__slots__": ("a", "b"), "__module__": MAIN})
    config = dataclasses.make_dataclass("Config", ["limit"], namespace={"__module__": MAIN})
    assert not same(colour.RED, colour.GREEN)
    one, other = slots(), slots()
    one.a, other.a = 1, 2
    assert not same(one, other)
    assert not same(config(0.5), config(0.7)) and same(config(0.5), config(0.5))
    assert fingerprint("c", config(0.5)).weak == ""


def test_an_object_of_a_library_says_that_only_its_type_was_compared():
    value = hostile(object, module="sklearn.svm")()
    found = fingerprint("model", value)
    assert found.weak == TYPE_ONLY
    assert found.digest == fingerprint("model", type(value)()).digest


# ── nothing is computed or consumed ──────────────────────────────────────────────────────────────────────────────────


def test_a_lazy_frame_is_not_computed():
    """Row 95."""
    computed = []
    lazy = pl.DataFrame({"a": [1]}).lazy().map_batches(lambda frame: (computed.append(1), frame)[1])
    assert fingerprint("lf", lazy).weak == TYPE_ONLY
    assert not computed


def test_a_generator_and_an_open_file_are_not_consumed(tmp_path):
    """Row 95."""
    (tmp_path / "f").write_text("text")
    numbers = (n for n in range(3))
    with (tmp_path / "f").open() as file:
        assert fingerprint("g", numbers).weak == fingerprint("f", file).weak == TYPE_ONLY
        assert file.read() == "text"
    assert list(numbers) == [0, 1, 2]


def test_a_stand_in_for_a_lazy_library_is_not_touched():
    """Row 95: a dask frame by its type's name."""
    value = hostile(object, module="dask.dataframe.core")()
    assert fingerprint("ddf", value).weak == TYPE_ONLY


@pytest.mark.slow
def test_nothing_is_imported_for_it():
    code = (
        "import sys\nfrom nbagent.tools.fingerprints import fingerprint\nfor v in ([1], {'a': {2}}, print, int, sys):\n"
        "    fingerprint('x', v)\nprint([m for m in ('numpy', 'pandas', 'polars', 'torch', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# ── what is seen ─────────────────────────────────────────────────────────────────────────────────────────────────────


def frame(rows: int = 1_000) -> pd.DataFrame:
    numbers = np.random.default_rng(0)
    return pd.DataFrame({
        "n": numbers.integers(0, 9, rows), "x": numbers.normal(size=rows), "s": numbers.choice(["a", "b"], rows),
        "t": pd.date_range("2024", periods=rows), "c": pd.Categorical(numbers.choice(["u", "v"], rows)),
        "m": pd.array([None, *range(1, rows)], dtype="Int64"), "o": [[n] for n in range(rows)],
        "i": pd.arrays.IntervalArray.from_breaks(range(rows + 1)), "z": pd.arrays.SparseArray([0, 1] * (rows // 2)),
        "tz": pd.date_range("2024", periods=rows, tz="Europe/Berlin"),
    })  # fmt: skip


@pytest.mark.slow
def test_any_one_value_of_a_frame_counts():
    then = frame()
    assert changed(then, frame()) == ""
    for label, value in {"n": 99, "x": 0.5, "s": "new", "t": pd.Timestamp("1999"), "c": "v", "m": 7, "o": 3}.items():
        now = frame()
        now.loc[777, label] = value if then.loc[777, label] != value else "u"
        assert changed(then, now) == "df changed: other values than then", label


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda df: pd.concat([df, df]), "df changed: 1,000 rows then, 2,000 now"),
        (lambda df: df.assign(new=1), "df changed: 10 columns then, 11 now"),
        (lambda df: df.rename(columns={"n": "N"}), "df changed: other values than then"),
        (lambda df: df.iloc[::-1], "df changed: other values than then"),
        (lambda df: df.set_index("t"), "df changed: 10 columns then, 9 now"),
        (lambda df: df.astype({"n": "int32"}), "df changed: other values than then"),
        (lambda df: df["x"], "df changed: a DataFrame then, a Series now"),
        (lambda df: 5, "df changed: a DataFrame then, an int now"),
    ],
)
def test_what_changed_in_a_frame_is_said_in_words(change, said):
    assert changed(frame(), change(frame())) == said


def test_odd_labels_and_values_are_taken():
    """Row 98: duplicate names, ints and texts, a MultiIndex, NaN in the index, names with newlines."""
    odd = pd.DataFrame([[1, 2, 3, 4]], columns=["a", "a", 2020, ("x", 1)], index=[np.nan])
    deep = pd.DataFrame(np.eye(4), index=pd.MultiIndex.from_product([["a", "b"], [1, 2]]), columns=list("a\nbc"))
    for table in (odd, deep):
        assert fingerprint("t", table).weak == "" and same(table, table.copy())
    assert not same(deep, deep.rename(index={"a": "z"}))


def test_a_table_of_polars_counts_in_every_value_and_in_its_order():
    then = pl.DataFrame({"a": [1, 2, 3], "s": ["x", None, "z"], "l": [[1], [2], []]})
    assert same(then, then.clone())
    assert not same(then, then.reverse())
    assert not same(then, then.with_columns(s=pl.Series(["x", "y", "z"])))
    assert changed(then, then.head(2)) == "df changed: 3 rows then, 2 now"
    assert not same(then["a"], then["a"].cast(pl.Int32))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12).reshape(3, 4), np.arange(12).reshape(3, 4).T, np.arange(20)[::3], np.array(["a", "bc"]),
        np.array([1, "a", None], object), np.array(5), np.zeros(0), np.array(["2024"], "M8[D]"), np.ma.masked_less([1, 2, 3], 2),
        np.array([(1, 2.0)], [("a", int), ("b", float)]), np.float32(3.5), np.datetime64("2024"),
    ],
    ids=str,
)  # fmt: skip
def test_an_array_is_the_same_as_its_copy_and_not_as_another(array):
    assert same(array, array.copy())
    assert fingerprint("a", array).weak == ""
    other = np.asarray(array.copy())
    if other.size and other.dtype.kind in "iuf":
        assert not same(array, array + 1)


def test_containers_count_by_their_content():
    assert same({"a": [1, (2, {3})]}, {"a": [1, (2, {3})]})
    assert not same({"a": [1, (2, {3})]}, {"a": [1, (2, {4})]})
    assert not same([1, 2], (1, 2))
    assert not same([1], [True]) and not same([1], [1.0]) and not same("1", b"1")
    assert same({"b", "a"}, {"a", "b"})
    assert not same(["ab", "c"], ["a", "bc"])
    assert changed([1, 2], [1]) == "df changed: 2 items then, 1 now"
    assert changed(5, 6) == "df changed: 5 then, 6 now"
    assert changed("old", "new") == "df changed: 'old' then, 'new' now"
    assert changed(dt.date(2024, 5, 1), dt.date(2024, 6, 1)).endswith("date(2024, 6, 1) now")


def test_a_value_that_looks_like_a_secret_is_not_told():
    then, now = (fingerprint("password", text) for text in ("hunter2", "hunter3"))
    said = difference("password", then, now)
    assert said.startswith("password changed") and "hunter" not in said


def test_a_recursive_or_very_deep_container_is_taken_within_bounds():
    """Row 97."""
    loop: list[object] = []
    loop.append(loop)
    ring: dict[str, object] = {}
    ring["self"] = ring
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    for value in (loop, ring, deep):
        assert fingerprint("x", value).digest == fingerprint("x", value).digest
    assert fingerprint("x", deep).weak == SAMPLED


def test_a_function_counts_by_what_it_does_not_by_where_it_stands():
    space: dict[str, object] = {}
    exec("def one(a, k=2):\n    return [a + k for _ in range(3)]", space)
    exec("\n\n\ndef two(a, k=2):\n    return [a + k for _ in range(3)]", space)
    exec("def one_(a, k=3):\n    return [a + k for _ in range(3)]", space)
    one, two, other = space["one"], space["two"], space["one_"]
    two.__name__ = other.__name__ = "one"
    assert same(one, two) and not same(one, other)
    assert not same(functools.partial(one, 1), functools.partial(one, 2))


def test_a_class_of_the_notebook_counts_by_its_methods():
    def make(number: int) -> type:
        space: dict[str, object] = {"__name__": MAIN}
        exec(f"class Model:\n    rate = {number}\n    def fit(self):\n        return self.rate + {number}", space)
        return space["Model"]

    assert same(make(1), make(1)) and not same(make(1), make(2))


def test_a_module_counts_by_its_version_and_one_in_the_folder_by_its_source(tmp_path):
    helpers = types.ModuleType("helpers")
    helpers.__file__ = str(tmp_path / "helpers.py")
    (tmp_path / "helpers.py").write_text("RATE = 1")
    then = fingerprint("helpers", helpers, tmp_path)
    (tmp_path / "helpers.py").write_text("RATE = 2")
    assert fingerprint("helpers", helpers, tmp_path).digest != then.digest
    assert fingerprint("helpers", helpers).digest == fingerprint("helpers", helpers).digest
    other = types.ModuleType("helpers")
    other.__version__ = "2"
    assert not same(types.ModuleType("helpers"), other)


# ── cost, form, determinism ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_very_large_value_is_sampled_and_says_so():
    big = [[n] for n in range(10 * ITEMS)]
    assert fingerprint("x", big).weak == SAMPLED
    table = np.zeros(10_000_000)
    assert fingerprint("x", table).weak == SAMPLED
    other = table.copy()
    other[-1] = 1  # head and tail are always looked at
    assert not same(table, other)


@pytest.mark.slow
def test_a_large_value_costs_little():
    """A million rows: what is measured is tens of ms; the bound is wide, for a busy machine."""
    table = pd.DataFrame({"a": np.arange(1_000_000), "b": np.random.default_rng(0).normal(size=1_000_000)})
    values = [table, list(range(1_000_000)), {n: str(n) for n in range(100_000)}, [[n] for n in range(300_000)]]
    for value in values:
        begin = time.thread_time()
        fingerprint("x", value)
        assert time.thread_time() - begin < 1.5, type(value)


SCRIPT = """
import collections, datetime, pathlib, pickle, sys
from nbagent.tools.fingerprints import fingerprint, surface
values = pickle.loads(sys.stdin.buffer.read())
def f(x, *, k=(1, {"a"})): return {x, "y", "z"}
for value in [*values, f, sys.float_info, {n: {str(n), "q"} for n in range(50)}, {"a", "b", ("c", 1)}]:
    print(fingerprint("x", value).digest, surface("x", value).digest)
"""


@pytest.mark.slow
def test_every_process_says_the_same():
    """Neither `id` nor the salted `hash` of a text goes into a fingerprint."""
    values = [
        {"a", "b", "c"}, frozenset({("x", 1), ("y", 2)}), {"k": {"p", "q"}}, "text", b"b", 3, 2**100, 1.5, float("nan"),
        frame(50), frame(50)["s"], np.arange(5), pl.DataFrame({"a": [1, 2], "s": ["u", None]}),
        collections.OrderedDict(a={1, 2, "z"}), dt.date(2024, 1, 1), sys.intern("interned"), ["interned"] * 2,
    ]  # fmt: skip
    told = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT], input=pickle.dumps(values), capture_output=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(told) == 1


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    | st.tuples(inner, inner) | st.frozensets(st.integers() | st.text(max_size=3), max_size=4),
    max_leaves=12,
)  # fmt: skip


def form(value: object) -> object:
    """The value with its types, so that 1, True and 1.0 are three values, and an order counts where it shows."""
    match value:
        case dict():
            return ("dict", [(key, form(item)) for key, item in value.items()])
        case list() | tuple():
            return (type(value).__name__, [form(item) for item in value])
        case frozenset():
            return ("set", sorted(map(repr, value)))
        case _:
            return (type(value).__name__, repr(value))


@pytest.mark.slow
@given(PLAIN, PLAIN)
def test_two_plain_values_have_one_fingerprint_exactly_if_they_are_the_same(a, b):
    assert same(a, pickle.loads(pickle.dumps(a)))
    assert same(a, b) == (form(a) == form(b))


@pytest.mark.slow
@given(PLAIN)
def test_a_fingerprint_comes_back_from_json(value):
    found = fingerprint("x", value)
    assert Fingerprint.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    "broken", [{}, {"kind": 1}, {"kind": "a", "digest": "b", "facets": [], "told": "", "weak": ""}]
)
def test_what_is_no_fingerprint_is_refused(broken):
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        Fingerprint.from_json(broken)


def test_a_listing_tells_sizes_and_small_values_but_not_what_is_inside():
    assert surface("df", frame(10)).digest == surface("df", frame(10).assign(n=0)).digest
    assert surface("df", frame(10)).digest != surface("df", frame(20)).digest
    assert surface("n", 5).digest != surface("n", 6).digest
    assert surface("x", [1, 2]).digest == surface("x", [3, 4]).digest
