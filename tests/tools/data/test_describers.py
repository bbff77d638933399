"""Describers of other people: found by class, bounded, and never the end of a tool, whatever they do."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import nbagent
from nbagent.tools.data import describers
from nbagent.tools.describe import brief
from nbagent.tools.details import details
from nbagent.tools.variables import column_of


class Graph:
    """A class of a person's library."""

    def __init__(self, size: int = 3) -> None:
        self.size = size


class Tree(Graph):
    """Made from it."""


NAME = f"{Graph.__module__}.Graph"


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    describers.forget(NAME)


def test_a_describer_tells_of_a_class_and_of_those_made_from_it() -> None:
    made: list[str] = []

    @nbagent.describer(NAME)
    def graph(value: Graph) -> Iterator[str]:
        yield f"Graph of {value.size} nodes"
        made.append("more")
        yield "  no cycles"

    assert brief(Tree(5)) == "Graph of 5 nodes"
    assert made == []  # a list of variables asks for the first line only
    assert details(Graph()) == "Graph of 3 nodes\n  no cycles"
    assert brief([Graph()]) == "list of 1: [Graph of 3 nodes]"


def test_a_class_is_found_where_it_can_be_imported_from_too() -> None:
    import collections
    import sys
    import types

    public = types.ModuleType("graphs_of_a_test")
    public.Shown = type("Shown", (), {"__module__": "graphs_of_a_test._inside.core"})  # type: ignore[attr-defined]
    sys.modules["graphs_of_a_test"] = public
    try:
        nbagent.describer("graphs_of_a_test.Shown")(lambda _: "shown")
        assert brief(public.Shown()) == "shown"  # type: ignore[attr-defined]
        assert brief(collections.OrderedDict()) == "collections.OrderedDict of 0: {}"
    finally:
        describers.forget("graphs_of_a_test.Shown")
        del sys.modules["graphs_of_a_test"]


def test_a_class_can_be_given_itself() -> None:
    nbagent.describer(Graph)(lambda graph: f"Graph, given itself, of {graph.size}")
    assert brief(Graph()) == "Graph, given itself, of 3"


def _raises(_: Any) -> str:
    raise SystemExit


def _late(_: Any) -> Iterator[str]:
    yield "Graph"
    raise KeyError


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (_raises, "failed: SystemExit"),
        (lambda _: None, "failed: TypeError"),
        (lambda _: [3], "failed: TypeError"),
        (lambda _: "", "said nothing"),
        (_late, "failed: KeyError"),
    ],
)
def test_one_that_fails_is_named_and_the_plain_description_follows(function: Any, line: str) -> None:
    nbagent.describer(NAME)(function)
    text = details(Graph())
    assert f"its describer {NAME} {line}" in text
    assert ".size = 3" in text
    assert "\n" not in brief(Graph())


def test_what_one_says_is_bounded_and_masked() -> None:
    def endless(_: Any) -> Iterator[str]:
        yield "first\nline ghp_" + "a1B2" * 9
        while True:
            yield "x" * 100_000

    nbagent.describer(NAME)(endless)
    assert brief(Graph()) == "first line <hidden secret>"
    assert len(details(Graph())) < 500_000


def test_a_column_of_ones_own_kind_of_table_is_told() -> None:
    nbagent.describer(NAME, column=lambda value, name: f"{name} of {value.size}")(lambda _: "Graph")
    assert column_of("g", Graph(), "weight") == "weight of 3"
    assert "hidden" in column_of("g", Graph(), "password")


def test_one_replaces_the_former_and_a_name_without_a_module_is_refused() -> None:
    nbagent.describer(NAME)(lambda _: "one")
    nbagent.describer(NAME)(lambda _: "two")
    assert brief(Graph()) == "two"
    with pytest.raises(ValueError, match=r"package\.module\.Class"):
        nbagent.describer("Graph")
    describers.forget(NAME)
    assert brief(Graph()) == f"object of class {NAME}"


def test_what_a_describer_prints_reaches_no_cell_and_what_others_print_meanwhile_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @nbagent.describer(NAME, column=lambda value, name: print("noise") or f"{name} of {value.size}")
    def graph(value: Graph) -> Iterator[str]:
        print("noise")
        print("noise", file=sys.stderr)
        other = threading.Thread(target=lambda: print("of another thread"))
        other.start()
        other.join()
        yield f"Graph of {value.size} nodes"
        print("noise")
        yield "more"

    assert details(Graph()) == "Graph of 3 nodes\nmore"
    assert column_of("g", Graph(), "mass") == "mass of 3"
    print("heard")
    assert capsys.readouterr() == ("of another thread\nheard\n", "")


def test_hidden_characters_of_labels_are_shown_as_codes() -> None:
    @nbagent.describer(NAME)
    def graph(_: Graph) -> str:
        return "Graph \u202eab\x1b[31m"

    assert brief(Graph()) == "Graph ⟨U+202E⟩ab⟨U+001B⟩[31m"
    told = details(pd.DataFrame({"mass\u202e": [1]}, index=pd.Index([1], name="kind\x07\u200b")))
    assert not re.search("[\u202e\x07\u200b]", told)
    assert "kind" in told
