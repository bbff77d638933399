"""What a run read: names that its code loads before it binds them, files that it opens, names or lists."""

from __future__ import annotations

import glob
import importlib
import os
import sys
from pathlib import Path

import pandas as pd
import pytest

from nbagent.core.ports import Ran
from nbagent.tools.inputs import Inputs, matching
from nbagent.tools.lookup import Lookup
from nbagent.tools.noting import NotingKernel, watched
from nbagent.tools.opens import heard
from nbagent.tools.reads import reads
from nbagent.tools.variables import tools as variable_tools
from nbagent.tools.workspace import tools as workspace_tools
from tests.tools.calling import Calling

# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("df.head()", {"df"}),
        ("df = load(); df.head()", {"load"}),
        ("df = df.dropna()", {"df"}),
        ("x += 1", {"x"}),
        ("df['a'] = 1", {"df"}),
        ("df.a = 1", {"df"}),
        ("import pandas as pd; pd.read_csv(path)", {"path"}),
        ("for i in items: i + 1", {"items"}),
        ("[i for i in items if i > limit]", {"items", "limit"}),
        ("i = 1; [i for i in range(3)]; i", {"range"}),
        ("{k: v for k, v in d.items()}", {"d"}),
        ("if c: x = 1\nx", {"c", "x"}),
        ("if c: x = 1\nelse: x = 2\nx", {"c"}),
        ("while c: x = 1\nx", {"c", "x"}),
        ("def f(a, b=default): return a + other\n", {"default", "other"}),
        ("def f(): return later\nlater = 1\nf()", set()),
        ("def f():\n    x = 1\n    return x\n", set()),
        ("def f():\n    global g\n    g = h\nf(); g", {"g", "h"}),
        ("lambda x: x + y", {"y"}),
        ("class A(Base):\n    k = 1\n    def m(self): return k2\n", {"Base", "k2"}),
        ("with open(p) as f: f.read()", {"open", "p"}),
        ("try: x = risky()\nexcept E as e: print(e)", {"risky", "E", "print"}),
        ("match v:\n    case {'a': n, **rest}: n + rest\n    case [h, *t] if h > lim: t", {"v", "lim"}),
        ("f'{a:{w}} {b!r}'", {"a", "w", "b"}),
        ("(n := len(xs)); n", {"len", "xs"}),
        ("t.query('a > @limit')", {"t", "a", "limit"}),
        ("eval('foo + bar')", {"eval", "foo", "bar"}),
        ("globals()['df']", {"globals", "df"}),
        ("duckdb.sql('select * from sales')", {"duckdb", "select", "from", "sales"}),
        ("get_ipython().run_line_magic('time', 'df.sum()')", {"get_ipython", "time", "df", "sum"}),
        ("await client.get(url)", {"client", "url"}),
        ("del x", set()),
        ("x, (y, *z) = pair; x + y + z", {"pair"}),
    ],
)
def test_code_reads_what_it_loads_before_it_binds_it(code, names):
    assert reads(code).names == names


@pytest.mark.parametrize("code", ["1 +", "\0", "(" * 500 + ")" * 500, "%time x"])
def test_code_that_is_no_python_reads_nothing(code):
    assert reads(code).names == frozenset()


def test_the_label_of_a_column_is_no_text_that_may_name_a_file():
    assert reads("df['a.csv'] + open('b.csv')").texts == ("b.csv",)


# ── variables ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Space:
    """A kernel that runs nothing; `during` is called where code would run."""

    def __init__(self, **names: object) -> None:
        self.names = dict(names)
        self.during = lambda _: None
        self.status = "ok"

    def namespace(self):
        return self.names

    async def run(self, code, *, emit, timeout):
        self.during(code)
        return Ran(self.status, (), 1, 0.0)

    async def scratch(self, code, *, timeout, emit=None):
        self.during(code)
        return Ran("ok", (), None, 0.0)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def differences(kept: dict, namespace: dict, root: Path) -> list[str]:
    return await Lookup(namespace, root).differences(kept)


def take(space: Space, root: Path, **options: object) -> Inputs:
    return Inputs(space.namespace, root, **options)


async def test_a_variable_is_taken_as_it_was_before_its_first_use(here):
    space = Space(df=pd.DataFrame({"a": [1, 2, 3]}), other=1)
    inputs = take(space, here)
    kernel = NotingKernel(space, inputs)
    space.during = lambda _: space.names.update(df=None)
    await kernel.run("df = df.dropna()", emit=lambda _: None, timeout=None)
    await kernel.scratch("df.head()", timeout=None)
    kept = inputs.to_json()
    assert list(kept["names"]) == ["df"] and kept["names"]["df"]["facets"] == {"rows": 3, "columns": 1}
    assert await differences(kept, {"df": pd.DataFrame({"a": [1, 2, 3]})}, here) == []
    assert await differences(kept, {"df": pd.DataFrame({"a": [1]})}, here) == ["df changed: 3 rows then, 1 now"]
    assert await differences(kept, {}, here) == ["df does not exist now"]


async def test_what_the_run_bound_itself_is_no_input_but_what_it_only_looked_at_is(here):
    space = Space(x=1)
    inputs = take(space, here)
    kernel = NotingKernel(space, inputs)
    await kernel.run("made = 1", emit=lambda _: None, timeout=None)
    space.names["made"] = 1
    await kernel.run("made + 1", emit=lambda _: None, timeout=None)
    await kernel.scratch("x = 2", timeout=None)
    await kernel.scratch("x + 1", timeout=None)
    assert list(inputs.names) == ["x"]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("x = risky()", "error"),
        ("if False: x = 2", "ok"),
        ("for x in []: pass", "ok"),
        ("try: x = f()\nexcept E: 0", "ok"),
    ],
)
async def test_a_name_whose_binding_did_not_happen_is_an_input_when_it_is_read(here, code, status):
    space = Space(x=1, y=1)
    space.status = status
    inputs = take(space, here)
    kernel = NotingKernel(space, inputs)
    await kernel.run(code, emit=lambda _: None, timeout=None)
    space.status = "ok"
    await kernel.run("y = 1", emit=lambda _: None, timeout=None)  # bound, although to the same object
    await kernel.run("x + y", emit=lambda _: None, timeout=None)
    assert list(inputs.names) == ["x"]


async def test_a_function_brings_the_variables_that_it_uses(here):
    space: dict[str, object] = {"__name__": "__main__", "RATE": 2, "unused": 3}
    exec("def tax(x):\n    return helper(x)\ndef helper(x):\n    return [x * RATE for _ in x]", space)
    inputs = Inputs(lambda: space, here)
    inputs.code("tax(1)")
    assert set(inputs.names) == {"tax", "helper", "RATE"}
    space["RATE"] = 3
    assert await differences(inputs.to_json(), space, here) == ["RATE changed: 2 then, 3 now"]


@pytest.mark.slow
def test_two_thousand_variables_cost_nothing_unless_they_are_read(here):
    space = Space(**{f"v{n}": list(range(1_000)) for n in range(2_000)})
    inputs = take(space, here)
    inputs.code("v7[0]")
    assert list(inputs.names) == ["v7"]


async def test_a_listing_counts_by_what_it_told_and_an_inspected_variable_whole(here):
    space = Space(n=5, df=pd.DataFrame({"a": [1, 2]}), quiet=[1])
    inputs = take(space, here)
    calling = Calling([watched(tool, inputs) for tool in variable_tools(space)])
    await calling.carry_out("list_variables", limit=2)
    kept = inputs.to_json()
    assert set(kept["listed"]) == {"df", "quiet"}
    grown = {**space.names, "df": pd.DataFrame({"a": [1, 2, 3]})}
    assert await differences(kept, grown, here) == ["df changed: 2 rows then, 3 now"]
    assert await differences(kept, {**space.names, "df": pd.DataFrame({"a": [8, 9]}), "n": 6}, here) == []
    inspect = watched(variable_tools(space)[1], inputs)
    await inspect.function(None, name="df")
    assert await differences(inputs.to_json(), {**space.names, "df": pd.DataFrame({"a": [8, 9]})}, here) == [
        "df changed: other values than then"
    ]


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def ran(inputs: Inputs, act, code: str = "") -> dict:
    space = Space()
    space.during = lambda _: act()
    await NotingKernel(space, inputs).run(code, emit=lambda _: None, timeout=None)
    return inputs.to_json()


async def test_a_file_that_code_opens_is_taken_with_its_content_before_it_is_overwritten(here):
    (here / "a.csv").write_text("x\n1\n")

    def clean() -> None:
        table = pd.read_csv("a.csv")
        pd.DataFrame({"x": [9]}).to_csv("a.csv")
        table.to_csv("made.csv")
        pd.read_csv("made.csv")

    kept = await ran(take(Space(), here), clean)
    assert list(kept["files"]) == ["a.csv"]  # what the run made itself is no input
    (here / "a.csv").write_text("x\n1\n")
    assert await differences(kept, {}, here) == []
    (here / "a.csv").write_text("x\n2\n")
    assert await differences(kept, {}, here) == ["a.csv changed"]
    (here / "a.csv").write_text("x\n1\n2\n")
    assert await differences(kept, {}, here) == ["a.csv changed: 4 bytes then, 6 now"]
    (here / "a.csv").unlink()
    assert await differences(kept, {}, here) == ["a.csv is gone"]


async def test_only_the_persons_files_count(here, tmp_path_factory):
    """Not modules of packages, nothing hidden, nothing of nbagent's, no notebook that was not asked for by name."""
    outside = tmp_path_factory.mktemp("outside") / "f.csv"
    outside.write_text("1")
    for name in (".nbagent/log", ".hidden", "lib/site-packages/m.py", "own.ipynb", "other.ipynb"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text("{}")

    def read() -> None:
        for path in [outside, "/proc/self/stat", *here.rglob("*")]:
            if Path(path).is_file():
                Path(path).read_bytes()

    inputs = take(Space(), here, own="folder/own.ipynb")
    kept = await ran(inputs, read)
    assert kept["files"] == {}
    inputs.file("own.ipynb", asked=True)
    inputs.file("other.ipynb", asked=True)
    assert list(inputs.to_json()["files"]) == ["other.ipynb"]


async def test_a_module_of_the_folder_counts_by_its_source(here, monkeypatch):
    (here / "helpers_of_this_test.py").write_text("RATE = 1")
    monkeypatch.syspath_prepend(str(here))
    importlib.invalidate_caches()
    kept = await ran(take(Space(), here), lambda: importlib.import_module("helpers_of_this_test"))
    sys.modules.pop("helpers_of_this_test")
    assert list(kept["files"]) == ["helpers_of_this_test.py"]
    assert kept["listings"] == []  # the import looked through the folder, not the person's code


@pytest.mark.parametrize(
    "act",
    [
        lambda: glob.glob("data/*.csv"),  # noqa: PTH207
        lambda: list(Path("data").glob("*.csv")),
        lambda: os.listdir("data"),  # noqa: PTH208
        lambda: list(os.scandir("data")),
        lambda: list(Path("data").iterdir()),
        lambda: list(os.walk("data")),
        lambda: glob.glob("*.csv", root_dir="data"),  # noqa: PTH207
    ],
    ids=["glob", "Path.glob", "listdir", "scandir", "iterdir", "walk", "root_dir"],
)
async def test_a_new_file_in_a_folder_that_was_listed_is_a_change(here, act):
    (here / "data").mkdir()
    (here / "data" / "may.csv").write_text("1")
    kept = await ran(take(Space(), here), act)
    assert await differences(kept, {}, here) == []
    (here / "data" / "june.csv").write_text("1")
    assert await differences(kept, {}, here) == ["data/june.csv is new"]
    (here / "data" / "june.csv").rename(here / "elsewhere.csv")
    (here / "data" / "may.csv").unlink()
    assert await differences(kept, {}, here) == ["data/may.csv is gone"]


async def test_a_file_that_the_run_made_is_no_change_of_the_folder(here):
    def act() -> None:
        os.listdir(".")  # noqa: PTH208
        Path("plot.png").write_bytes(b"x")

    kept = await ran(take(Space(), here), act)
    assert await differences(kept, {}, here) == []


async def test_a_text_in_the_code_that_names_a_file_counts_since_some_readers_are_not_heard(here):
    """pyarrow and duckdb open files in C++, which no audit hook hears."""
    (here / "parts" / "day=1").mkdir(parents=True)
    (here / "parts" / "day=1" / "a.parquet").write_text("1")
    (here / "t.parquet").write_text("1")
    inputs = Inputs(lambda: {"path": "t.parquet"}, here)
    kept = await ran(inputs, lambda: None, "pq.read_table('parts/'); duckdb.sql(\"from 'no such'\")")
    assert list(kept["files"]) == ["parts/day=1/a.parquet"]
    kept = await ran(inputs, lambda: None, "pq.read_table('t.parquet')")
    assert "t.parquet" in kept["files"]
    (here / "parts" / "day=2").mkdir()
    (here / "parts" / "day=2" / "b.parquet").write_text("1")
    assert any("day=2" in text for text in await differences(kept, {}, here))


def test_a_variable_that_names_a_file_brings_it(here):
    (here / "t.parquet").write_text("1")
    for path in ("t.parquet", Path("t.parquet")):
        inputs = Inputs(lambda path=path: {"path": path}, here)
        inputs.code("pq.read_table(path)")
        inputs.look()
        assert list(inputs.files) == ["t.parquet"]


@pytest.mark.slow
async def test_the_file_tools_bring_their_files(here):
    for name in ("a.txt", "b.txt", "c.txt"):
        (here / name).write_text("needle in " + name)
    inputs = take(Space(), here)
    calling = Calling([watched(tool, inputs) for tool in workspace_tools(here)])
    await calling.carry_out("read_file", path="a.txt")
    await calling.carry_out("grep", pattern="needle in b")
    await calling.carry_out("write_file", path="c.txt", content="new")
    await calling.carry_out("read_file", path="c.txt")
    assert list(inputs.files) == ["a.txt", "b.txt"]
    await calling.carry_out("glob", pattern="*.txt")
    (here / "d.txt").write_text("x")
    assert "d.txt is new" in await differences({**inputs.to_json(), "written": []}, {}, here)


def test_words_of_a_shell_command_that_name_files_bring_them(here):
    (here / "a.txt").write_text("1")
    inputs = take(Space(), here)
    inputs.words("cat a.txt <a.txt | wc -l; echo 'it''s")
    inputs.look()
    assert list(inputs.files) == ["a.txt"]


def test_there_is_one_hook_a_process_and_it_is_deaf_when_nobody_listens(here):
    (here / "a").write_text("1")
    told: list[str] = []
    with heard(lambda what, path, _: told.append(path)):
        with heard(lambda *_: (here / "a").read_text()):  # a listener may open files itself
            (here / "a").read_text()
        (here / "a").read_text()
    (here / "a").read_text()
    assert told == [str(here / "a")] * 2


def test_runs_that_overlap_hear_their_files_each_whichever_ends_first(here):
    (here / "a").write_text("1")
    told: list[str] = []
    first, second = heard(lambda *_: told.append("first")), heard(lambda *_: told.append("second"))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    (here / "a").read_text()
    second.__exit__(None, None, None)
    (here / "a").read_text()
    assert told == ["second"]


async def test_texts_that_can_be_no_path_do_no_harm(here):
    """A long query on one line, and a path that may not be looked at: the code runs as if nobody had looked."""
    (here / "data").mkdir()
    (here / "loop").symlink_to("loop")
    texts = ["select " + "x, " * 200, "/" * 300, f"/root/{'y' * 300}/x", "loop", "loop/x", "data/\ud800", "~", "//"]
    inputs = Inputs(lambda: {f"t{n}": text for n, text in enumerate(texts)}, here)
    code = "\n".join([*map(repr, texts), *(f"t{n}" for n in range(len(texts)))])
    kept = await ran(inputs, lambda: None, code)
    assert kept["files"] == {} and len(kept["names"]) == len(texts)
    for path in (*texts, "a\0b"):
        for what in ("read", "write", "glob"):
            inputs.heard(what, path, "*")


@pytest.mark.slow
async def test_files_behind_a_hidden_folder_with_many_are_found(here):
    """An environment beside the data would be all that is looked at."""
    (here / ".venv").mkdir()
    for n in range(2_100):
        (here / ".venv" / str(n)).touch()
    (here / "zdata" / "deep").mkdir(parents=True)
    (here / "zdata" / "deep" / "sales.csv").write_text("1")
    inputs = Inputs(dict, here)
    inputs.matches(".", "**/*.csv")
    assert inputs.listings == {(".", "**/*.csv"): ["zdata/deep/sales.csv"]} and inputs.unseen == set()
    for n in range(2_001):
        (here / "zdata" / f"{n}.txt").touch()
    inputs.matches(".", "zdata/*.txt")
    assert {len(names) for names in inputs.listings.values()} == {1, 2_000}
    assert inputs.unseen == {"files beyond the first 500"}


@pytest.mark.parametrize(
    "pattern", ["*", "**", "**/*", "**/*.csv", "*/*.csv", "a/**/b.csv", "a*/[bc].csv", "x", "a/?.csv"]
)
def test_a_listing_finds_what_pathlib_finds(here, pattern):
    for name in ("a/b.csv", "a/x/b.csv", "a/x/y/b.csv", "ab/c.csv", "x/n.ipynb", "x/c.csv", "b.csv"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).touch()
    (here / "link").symlink_to(here / "a")
    expected = {p.relative_to(here).as_posix() for p in here.glob(pattern) if p.suffix != ".ipynb"} - {"."}
    assert set(matching(here, ".", pattern)) - expected <= ({"link"} | expected)
    if pattern != "**":  # of which pathlib finds folders only
        assert set(matching(here, ".", pattern)) == expected


async def test_files_beyond_a_gigabyte_are_compared_by_a_sample(here):
    for name in ("a.bin", "b.bin"):
        with (here / name).open("wb") as file:
            file.truncate(3 << 20)
    inputs = Inputs(dict, here, budget=1 << 20)
    for name in ("a.bin", "b.bin"):
        inputs.file(name)
    kept = inputs.to_json()
    assert [bool(inputs.files[name].weak) for name in ("a.bin", "b.bin")] == [False, True]
    assert await differences(kept, {}, here) == []
    with (here / "b.bin").open("r+b") as file:
        file.write(b"x")
    assert await differences(kept, {}, here) == ["b.bin changed"]
