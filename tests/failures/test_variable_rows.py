"""Rows of group (d), variables, through the tools in a real kernel: what the model reads of them, and what looking does."""

from __future__ import annotations

import pytest

from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]

ALLOW = {"NBAGENT_ALLOW": "run_python\nadd_cell"}

HOSTILE = '''
import pathlib, collections
touched = []

class Raises:
    def __init__(self, error): self.__dict__["error"] = error
    def __repr__(self): raise self.error
    __str__ = __repr__

class Empty:
    def __repr__(self): return ""

class Number:
    def __repr__(self): return 3

class Spy:
    """Everything that could be asked of it is written down."""
    @property
    def shape(self): touched.append("shape"); pathlib.Path("side-effect").touch(); return (1, 2)
    @property
    def __dict__(self): touched.append("__dict__"); return {}
    def __getattr__(self, name): touched.append(name); raise AttributeError(name)
    def __len__(self): touched.append("len"); return 1
    def __bool__(self): touched.append("bool"); return True
    def __eq__(self, other): touched.append("eq"); return True
    __hash__ = None

class AttrDict(dict):
    """Makes the keys that it is asked for, as an AttrDict does."""
    def __getattr__(self, name): self[name] = AttrDict(); return self[name]

class Deep:
    def __getattr__(self, name): return getattr(self, name)

bad_value, bad_exit, bad_stop = Raises(ValueError("no")), Raises(SystemExit(3)), Raises(KeyboardInterrupt())
empty, number, spy, attr, deep = Empty(), Number(), Spy(), AttrDict(a=1), Deep()
mixed = [Raises(RuntimeError("x")), {"k": Spy()}]
last = collections.deque([bad_exit])
'''


async def test_objects_that_fail_or_act_when_looked_at_are_told_and_left_alone(tmp_path):
    """Rows 93 and 94: listing and inspecting call nothing of theirs; nothing is drawn in the person's cell."""
    names = ["bad_value", "bad_exit", "bad_stop", "empty", "number", "spy", "attr", "deep", "mixed", "last"]
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            await room.cell(HOSTILE)
            shown = await room.cell(
                "%%agent\nlook",
                calls("list_variables"),
                *(calls("inspect_variable", name=name) for name in names),
                "All seen.",
            )
            shown.says("All seen.")
            assert not shown.error and [o.output_type for o in shown.cell.outputs] == ["display_data"]
            listed, *inspected = room.results()
            assert all(f"\n{name}: " in f"\n{listed}" for name in names), listed
            assert all(text.strip() and "Traceback" not in text for text in inspected), inspected
            assert await room.value("[touched, dict(attr)]") == [[], {"a": 1}]
            assert not (tmp_path / "side-effect").exists()
            await room.still_works()
        server.assert_clean()


LAZY = """
import polars as pl, pandas as pd, numpy as np
computed = []
def count(frame): computed.append("polars"); return frame
fresh = pl.LazyFrame({"a": [1, 2], "b": ["x", "y"]})
lazy = fresh.map_batches(count, schema={"a": pl.Int64, "b": pl.String})

def stub(module, name):
    def fail(self, *args): computed.append(f"{module} {name}"); raise RuntimeError("computed")
    made = type(name, (), {"__module__": module, "__len__": fail, "__repr__": fail, "__bool__": fail, "__eq__": fail,
                           "__getattr__": fail, "__hash__": None, "shape": property(fail), "columns": property(fail)})
    return made()
dask, spark, ibis = stub("dask.dataframe.dask_expr", "DataFrame"), stub("pyspark.sql.connect.dataframe", "DataFrame"), stub("ibis.expr.types", "Table")
class Mine(type(dask)): pass
sub = object.__new__(Mine)
gen, it, file = (n for n in range(3)), iter([1, 2, 3]), open("data.txt", "w+")
file.write("text"); file.seek(0)
ring = []; ring.append(ring)
loop = {}; loop["self"] = loop
tower = []
for _ in range(10_000): tower = [tower]
"""


async def test_lazy_and_endless_things_are_never_computed_consumed_or_followed(tmp_path):
    """Rows 95 and 97: frames that compute, things that are used up, containers that hold themselves or never end."""
    names = ["fresh", "lazy", "dask", "spark", "ibis", "sub", "gen", "it", "file", "ring", "loop", "tower"]
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            await room.cell(LAZY)
            shown = await room.cell(
                "%%agent\nlook",
                calls("list_variables"),
                *(calls("inspect_variable", name=name) for name in names),
                "All seen.",
            )
            shown.says("All seen.")
            listed, *inspected = room.results()
            assert all(f"\n{name}: " in f"\n{listed}" for name in names), listed
            assert all(len(text) < 3_000 and "failed" not in text for text in room.results())
            told = dict(zip(names, inspected, strict=True))
            assert all("not computed" in told[name] for name in ("fresh", "lazy", "dask", "spark", "ibis", "sub")), told
            assert "'a'  Int64" in told["fresh"]
            assert "collect_schema()" in told["lazy"]  # to resolve a plan may read files: it is left to the person
            assert await room.value("[computed, list(gen), list(it), file.read()]") == [
                [],
                [0, 1, 2],
                [1, 2, 3],
                "text",
            ]
            await room.still_works()
        server.assert_clean()


ODD = """
import pandas as pd, numpy as np
odd = pd.DataFrame([[1, 2, 3, 4, 5, 6, 7, pd.NaT]] * 2, columns=["a", "a", 1, "1", ("x", 2), "line\\nbreak", "<script>alert(1)</script>", "größe \\u202e"],
                   index=pd.Index([np.nan, "x"], name="i"))
zoned = pd.DataFrame({"t": pd.to_datetime(["2024-03-31 01:30", None]).tz_localize("UTC").tz_convert("Europe/Berlin")}).set_index("t", drop=False)
levels = pd.DataFrame(np.ones((2, 4)), columns=pd.MultiIndex.from_product([["p", "q"], [1, "1"]], names=["up", None]))
wide = pd.DataFrame(np.arange(4000).reshape(100, 40), columns=[f"col_{n}" for n in range(40)])
gone = pd.DataFrame({"c": pd.Series([None, None], dtype="object"), "k": pd.Categorical(["u", None]), "n": pd.array([1, None], dtype="Int64")})
"""


async def test_labels_and_values_are_told_exactly_and_samples_as_samples(tmp_path):
    """Rows 98 and 99: labels as they must be written, in text that is escaped for the page; 100 by 40 is not 3 by 12."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            await room.cell(ODD)
            steps = [calls("inspect_variable", name=name) for name in ("odd", "zoned", "levels", "wide", "gone")]
            steps += [
                calls("inspect_variable", name="odd", column=label) for label in ("1", "'1'", "('x', 2)", "line\nbreak")
            ]
            steps += [calls("run_python", code="wide"), calls("add_cell", source="odd")]
            shown = await room.cell("%%agent --max-turns 30\nlook", *steps, "All seen.")
            shown.says("All seen.")
            assert not shown.error
            odd, zoned, levels, wide, gone, *rest = room.results()
            for label in ("'a'", "1 ", "'1'", "('x', 2)", r"'line\nbreak'", "'<script>alert(1)</script>'"):
                assert f"  {label}" in odd, odd
            assert "occur more than once" in odd and "('p', 1)" in levels and "('q', '1')" in levels
            assert "Europe/Berlin" in zoned and "failed" not in f"{odd}{zoned}{levels}{wide}{gone}"
            assert "100 rows x 40 columns" in wide and all(f"'col_{n}'" in wide for n in range(40))
            assert "sample, 3 of 100 rows, 12 of 40 columns" in wide
            assert [text.split(",")[0].split("column ")[1] for text in rest[:4]][2:] == ["('x'", r"'line\nbreak'"]
            html = shown.cell.outputs[0]["data"]["text/html"]
            assert "<script>" not in html and "\u202e" not in html
            await room.still_works()
        server.assert_clean()


async def test_what_the_agent_looked_at_is_collected_once_the_person_lets_go(tmp_path):
    """Row 101: after looks, errors, a column's counts and a rebinding cell; undo keeps only what was rebound."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            await room.cell(
                "import gc, weakref, pandas as pd\ndf = pd.DataFrame({'a': range(1000)}); ref = weakref.ref(df)"
            )
            await room.cell("other = pd.DataFrame({'b': range(10)}); second = weakref.ref(other)")
            shown = await room.cell(
                "%%agent\nlook",
                calls("list_variables"),
                calls("inspect_variable", name="df"),
                calls("inspect_variable", name="df", column="a"),
                calls("run_python", code="df"),
                calls("run_python", code="def f(frame):\n    part = frame.head()\n    return part['none']\nf(df)"),
                calls("add_cell", source="df.describe()"),
                calls("add_cell", source="def g(frame): return frame['none']\ng(df)"),
                calls("add_cell", source="other = other.head(3)"),
                "Seen.",
            )
            shown.says("Seen.")
            await room.cell("del df")
            assert await room.value("[gc.collect() * 0, ref() is None]") == [0, True]
            assert await room.value("second() is None") is False, "undo can still bring it back"
            await room.cell("%agent forget")
            assert await room.value("[gc.collect() * 0, second() is None]") == [0, True]
            await room.still_works()
        server.assert_clean()
