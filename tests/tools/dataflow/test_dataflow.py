"""How cells depend on one another: edges, what is above and below, and names that nothing above defines."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from nbagent.tools.dataflow import Dataflow, Missing, dataflow


@dataclass(frozen=True)
class Source:
    """A cell as the functions need it."""

    id: str
    source: str
    type: str = "code"


def of(*sources: str) -> Dataflow:
    """The dataflow of code cells named a, b, c …"""
    return dataflow(Source("abcdefghij"[n], source) for n, source in enumerate(sources))


def test_a_cell_needs_the_last_cell_above_that_made_or_changed_what_it_uses() -> None:
    found = of("df = 1", "df['x'] = 2", "df.head()")
    assert [(e.source, e.target, e.names) for e in found.edges] == [("a", "b", ("df",)), ("b", "c", ("df",))]
    assert found.upstream("c") == ("a", "b")
    assert found.downstream("a") == ("b", "c")


def test_a_new_binding_cuts_the_way_to_the_old_one() -> None:
    assert of("x = 1", "x = 2", "x").upstream("c") == ("b",)


def test_what_is_bound_in_a_branch_leaves_the_way_to_the_older_one_too() -> None:
    assert of("x = 1", "if 0:\n    x = 2", "x").upstream("c") == ("a", "b")


def test_imports_and_files_are_edges_of_their_own_kind() -> None:
    found = of("import pandas as pd", "pd.DataFrame().to_csv('o.csv')", "import pandas as pd\npd.read_csv('./o.csv')")
    assert [(e.source, e.target, e.kind) for e in found.edges] == [("a", "b", "import"), ("b", "c", "file")]


def test_a_path_that_a_cell_above_holds_is_known_below() -> None:
    assert of("D = 'data'", "open(D + '/a.csv')")["b"].read_files == ("data/a.csv",)
    assert of("D = 'data'", "D = other()", "open(D + '/a.csv')")["c"].read_files == ()


def test_a_name_that_is_defined_only_below_is_missing_and_said_to_be_below() -> None:
    assert of("y = x", "x = 1").undefined("a") == (Missing("x", 1, "b"),)
    assert of("y = x").undefined("a") == (Missing("x", 1),)
    assert of("x = 1", "del x", "\nx").undefined("c") == (Missing("x", 2, "", "b"),)


def test_a_cell_that_uses_what_only_itself_makes_is_missing_it() -> None:
    assert of("n = n + 1").undefined("a") == (Missing("n", 1, "a"),)


def test_functions_may_use_what_is_made_below_them() -> None:
    found = of("def f():\n    return k", "k = 1", "f()")
    assert found.undefined("a") == ()
    assert [(e.source, e.target, e.late) for e in found.edges] == [("a", "c", False), ("b", "a", True)]
    assert found.upstream("c") == ("a", "b")
    assert of("def f():\n    return k").undefined("a") == (Missing("k", 2),)


def test_nothing_is_missing_below_a_star_import_or_of_pythons_and_ipythons_own() -> None:
    assert of("from math import *", "x").undefined("b") == ()
    assert of("print(len(_), _12, In, display)").undefined("a") == ()


def test_definers_and_users_of_a_name_are_told() -> None:
    found = of("x = 1", "x", "x = 2", "def f():\n    return x")
    assert (found.definers("x"), found.users("x")) == (("a", "c"), ("b", "d"))


_NAMES = st.sampled_from("uvwxyz")
_CELLS = st.lists(
    st.one_of(
        st.builds("{} = {}".format, _NAMES, _NAMES),
        st.builds("{} = 1".format, _NAMES),
        st.builds("{}.append({})".format, _NAMES, _NAMES),
        st.builds("def {}(): return {}".format, _NAMES, _NAMES),
        st.builds("del {}".format, _NAMES),
    ),
    max_size=10,
)


@given(_CELLS)
def test_what_is_said_to_be_missing_is_what_python_misses_first(sources: list[str]) -> None:
    found, space = of(*sources), {}
    for cell, source in zip(found.cells, sources, strict=True):
        missing = {each.name for each in found.undefined(cell.id)} & cell.uses
        try:
            exec(source, space)
        except NameError as error:
            assert error.name in missing
            return
        except AttributeError:
            return
        assert not missing


@given(st.lists(st.text(max_size=60), max_size=6))
def test_no_source_is_too_odd(sources: list[str]) -> None:
    found = of(*sources)
    for cell in found.cells:
        assert cell.id not in found.upstream(cell.id)
