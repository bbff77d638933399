"""What code would do, told before the click: in plain words, of any text, without running any of it."""

from __future__ import annotations

import ast
import linecache
import time

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.policy import TABLE, Mode
from nbagent.core.tools import Kind
from nbagent.tools.effects import effects, hints, kind_of
from tests.tools.snippets import names, score_of_labels, score_of_risk, snippets

# ── measured ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def namespace():
    return names()


def test_there_are_sixty_snippets_and_more_of_which_a_third_was_held_out():
    kept = [snippet.kept for snippet in snippets()]
    assert (kept.count("tune"), kept.count("held")) == (40, 20)
    assert kept.count("later") >= 30
    assert sum(snippet.risky for snippet in snippets()) >= 30


@pytest.mark.slow
def test_precision_and_recall_stay_what_they_are(namespace):
    first = [snippet for snippet in snippets() if snippet.kept in {"tune", "held"}]
    labels, risk = score_of_labels(first, namespace), score_of_risk(first, namespace)
    assert (round(labels.precision, 3), round(labels.recall, 3)) >= (0.988, 1.0)
    assert (risk.precision, risk.recall) == (1.0, 1.0)


@pytest.mark.slow
def test_precision_and_recall_of_what_came_later_stay_too(namespace):
    later = [snippet for snippet in snippets() if snippet.kept in {"later", "last"}]
    labels, risk = score_of_labels(later, namespace), score_of_risk(later, namespace)
    assert min(labels.precision, labels.recall) >= 0.98
    assert risk.precision >= 0.95
    assert risk.recall == 1.0


# ── names and objects ────────────────────────────────────────────────────────────────────────────────────────────────


def test_new_names_are_no_news():
    assert hints("df = 1\nfor x in [1]: y = x\nimport os\ndef f(): pass\nclass C: pass", {}) == ()
    assert hints("df = 1", {"df": 0}) == ("rebinds `df`",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    ["x, (y, *z) = 1, (2, 3)", "for x in []: pass", "with f() as x: pass", "(x := 1)", "import os as x", "from os import path as x",
     "def x(): pass", "class x: pass", "async def x(): pass", "x: int = 1", "[x := 1 for _ in ()]", "x += 1", "%time x = 1", "x = !ls",
     "try: pass\nexcept OSError as x: pass", "match 1:\n    case x: pass", "exec('x = 1')", "globals()['x'] = 1", "%%capture x\n1",
     "import __main__\n__main__.x = 1", "def f():\n    global x\n    x = 1\nf()"],
)  # fmt: skip
def test_a_name_is_rebound_in_many_ways(code):
    assert "rebinds `x`" in hints(code, {"x": 0})


@pytest.mark.parametrize(
    "code",
    ["[x for x in [1]]", "lambda x: x", "def f(x):\n    x = 1\nf(2)", "x == 1", "%timeit x = 1", "%%timeit\nx = 1",
     "def f():\n    global x\n    x = 1", "x: int", "f(x=1)", "class C:\n    x = 1"],
)  # fmt: skip
def test_a_name_of_another_scope_is_not_rebound(code):
    assert hints(code, {"x": 0}) == ()


def test_the_same_import_again_is_no_news():
    assert hints("import pandas as pd\nfrom pathlib import Path", {"pd": pd, "Path": __import__("pathlib").Path}) == ()
    assert hints("import numpy as pd", {"pd": pd}) == ("rebinds `pd`",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    ["df['a'] = 1", "df.loc[0, 'a'] = 1", "df.drop('a', inplace=True)", "df.columns = []", "del df['a']", "df.insert(0, 'b', 1)",
     "df += 1", "df['a'] += 1", "df['a'].fillna(0, inplace=True)", "a = b = df\nb['x'] = 1", "setattr(df, 'a', 1)", "df.pop('a')",
     "for c in ['a']: df[c] = 0", "for f in (df,): f['a'] = 1", "(df if df is not None else 0)['a'] = 1", "df, n = df, 1\ndf['x'] = n",
     "[df.pop(c) for c in 'ab']", "def f(d): d['a'] = 1\nf(df)", "f = lambda d: d.pop('a')\nf(df)", "drop = df.drop\ndrop('a', inplace=True)",
     "class C:\n    def __init__(self, d): self.d = d\n    def go(self): self.d['a'] = 1\nC(df).go()"],
)  # fmt: skip
def test_an_object_changes_in_place_under_whatever_name(code):
    assert "changes `df` in place" in hints(code, {"df": pd.DataFrame({"a": [1]})})


@pytest.mark.parametrize(
    "code",
    ["df.drop('a')", "df = df.copy()\ndf['a'] = 1", "d = df[df['a'] > 0]\nd['b'] = 1", "d = df.copy()\nd['a'] = 1", "df['a']", "len(df)",
     "d = {'df': 1}\nd['df'] = 2", "df.groupby('a').apply(len)", "x = df.loc[0]\nx['a'] = 1", "df.append", "print(df.drop)"],
)  # fmt: skip
def test_an_object_that_only_is_read_or_copied_does_not_change(code):
    assert "changes `df` in place" not in hints(code, {"df": pd.DataFrame({"a": [1]})})


def test_what_a_type_can_not_do_is_not_said():
    assert hints("s.update('a'); s.append(1); t.add(1)", {"s": "text", "t": (1,)}) == ()
    assert hints("n += 1; t += (2,); s += 'x'", {"n": 1, "t": (1,), "s": ""}) == (
        "rebinds `n`",
        "rebinds `t`",
        "rebinds `s`",
    )


def test_a_number_is_counted_up_and_not_written_behind_another():
    assert hints("n += 1\nopen(f'{n}.csv', 'w')", {"n": 3}) == ("rebinds `n`", "writes ….csv")
    assert hints("open(f'{n + 1}.csv', 'w')", {"n": 3}) == ("writes ….csv",)
    assert hints("s += 'b'\nopen(s + '.csv', 'w')", {"s": "a"}) == ("rebinds `s`", "writes ab.csv")


# ── functions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_function_does_what_it_does_when_it_is_called():
    definition = "import os\ndef tidy(name): os.remove(name)\n"
    assert hints(definition, {}) == ("could delete files later",)
    assert hints(definition + "tidy('a.csv')", {}) == ("deletes a.csv",)
    assert hints(definition + "list(map(tidy, names))", {}) == ("deletes files",)


def test_a_function_of_another_cell_is_gone_into():
    source = "import os\n\ndef tidy(name='x.log'):\n    os.remove(name)\n    log.append(name)\n"
    file = "<ipython-input-7-test>"
    made: dict = {"__name__": "__main__", "log": []}
    exec(compile(source, file, "exec"), made)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    try:
        said = hints("tidy('old.csv')", made)
        kind = kind_of("tidy()", Kind.RUN_CELL, made)
    finally:
        del linecache.cache[file]
    assert said == ("deletes old.csv", "changes `log` in place")
    assert kind is Kind.RISKY_CODE
    assert kind_of("tidy()", Kind.RUN_CELL, made) is Kind.RUN_CELL  # without its source nothing is known of it


def test_a_name_that_nothing_explains_is_taken_for_what_it_looks_like():
    assert hints("requests.get('https://a.example/').json()", {}) == ("goes to the network (a.example)",)
    assert hints("requests.head(5); requests['a'].sum()", {}) == ()
    assert hints("requests.get('https://a.example/')", {"requests": {}}) == ()


def test_a_generator_runs_when_something_is_taken():
    code = "import os\ndef g():\n    os.remove('a')\n    yield 1\n"
    assert hints(code + "g()", {}) == ("could delete files later",)
    for taking in ("list(g())", "for _ in g(): pass", "[x for x in g()]", "next(g())"):
        assert "deletes a" in hints(code + taking, {}), taking


def test_a_function_that_calls_itself_comes_to_an_end():
    assert hints("def f(n):\n    items.append(n)\n    return f(n - 1)\nf(3)", {"items": []}) == (
        "changes `items` in place",
    )


# ── any text ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PIECES = ["x", "df", "=", "+=", "(", ")", "[", "]", "{", "}", ":", "\n", "    ", "for x in df", "def f(x)", "class C", "lambda x",
          "import os", "os.remove", "open('a', 'w')", "%reset", "!rm x", "%%bash", "'", '"""', "f'{x}'", "del ", "global df", "with x as df",
          "try:\n pass\nexcept E as df", "yield", "await ", "*", "**", "match x:\n case df", "exec('df=1')", "globals()", ".a", ",", "\0", "\\"]  # fmt: skip


@pytest.mark.slow
@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_text_is_looked_at_without_failing(code):
    said = hints(code, {"df": [], "x": 1})
    assert all(words and "\n" not in words for words in said)


EXPRESSIONS = st.recursive(
    st.sampled_from(["df", "items", "x", "'a'", "1", "pd", "os", "path", "f'{x}.csv'", "getattr", "open", "map", "exec"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["a", "append", "loc", "unlink", "system", "to_csv", "drop", "pop", "__dict__"])).map(".".join),
        st.tuples(inner, inner).map("{0[0]}[{0[1]}]".format),
        st.tuples(inner, st.lists(inner, max_size=2)).map(lambda t: f"{t[0]}({', '.join(t[1])})"),
        st.tuples(inner, inner).map("({0[0]} + {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} / {0[1]})".format),
        inner.map("(lambda x: {})".format),
        inner.map("[{} for x in items]".format),
        inner.map("f'{{{}}}'".format),
    ),
    max_leaves=8,
)  # fmt: skip
STATEMENTS = st.one_of(
    EXPRESSIONS,
    EXPRESSIONS.map("df = {}".format),
    EXPRESSIONS.map("df[{}] = 1".format),
    EXPRESSIONS.map("for x in {}:\n    df = x".format),
    EXPRESSIONS.map("def f(x):\n    return {}".format),
    EXPRESSIONS.map("if x:\n    df = {}\nelse:\n    del df".format),
    st.just("f(df)"),
)


@pytest.mark.slow
@given(st.lists(STATEMENTS, max_size=6))
def test_any_program_is_looked_at_without_failing(lines):
    code = "\n".join(lines)
    said = hints(code, {"df": pd.DataFrame(), "items": [], "pd": pd, "x": 1})
    try:
        ast.parse(code)
    except SyntaxError:
        assert not any(words.startswith("rebinds") for words in said)


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    ["x" + ".y" * 3000, "(" * 3000, "-" * 5000 + "1", "a = " + "[" * 90 + "]" * 90, "f" + "(1)" * 500, "x = 1\n" * 10_000, "if x:\n" * 1,
     "+".join(["a"] * 5000), "\n".join(f"{' ' * n}if x:" for n in range(90)) + "\n" + " " * 90 + "x = 1", "f(" * 80 + ")" * 80,
     "def f(): g(); g()\ndef g(): h(); h()\ndef h(): k(); k()\ndef k(): f(); f()\nf()", "lambda: " * 500 + "1", "\x00", "\ud800 = 1", "é = 1",
     "\n".join(f"def f{n}(): f{n + 1}(); f{n + 1}(); f{n + 1}()" for n in range(12)) + "\nf0()", "x = '" + "a" * 1_000_000 + "'"],
)  # fmt: skip
def test_strange_code_is_looked_at_in_bounded_time(code):
    begin = time.process_time()
    hints(code, {"x": 1})
    assert time.process_time() - begin < 5


@pytest.mark.slow
def test_code_that_is_too_much_to_look_at_says_so():
    nested = "\n".join(f"def f{n}(): f{n + 1}(); f{n + 1}(); f{n + 1}()" for n in range(5))
    nested += "\ndef f5():\n" + "    len('a')\n" * 1_000 + "f0()\nx = 1"
    assert "does more than could be looked at" in hints(nested, {"x": 1})
    long = hints("x = 1\n" * 100_000 + "import os; os.remove('a')", {"x": 1})
    assert long == ("could delete files later", "could run code not shown later", "does more than could be looked at")
    assert kind_of("x = 1\n" * 100_000, Kind.RUN_CELL) is Kind.RISKY_CODE


def test_many_effects_are_counted_not_poured_out():
    said = hints("\n".join(f"df['{n}'] = x{n} = {n}" for n in range(100)), {f"x{n}": 0 for n in range(100)})
    assert len(said) == 31
    assert said[-1] == "and 71 more"


def test_the_worst_comes_first_and_nothing_is_said_twice():
    code = (
        "x = 1\ndf['a'] = 1\n" * 2
        + "import os\nos.remove('a')\nimport requests\nrequests.get('https://b.example/')\nexit()\n"
    )
    assert hints(code, {"x": 0, "df": {}}) == (
        "ends the kernel",
        "deletes a",
        "goes to the network (b.example)",
        "rebinds `x`",
        "changes `df` in place",
    )


def test_nothing_of_the_persons_objects_is_touched():
    touched = []

    class Meta(type):
        def __getattribute__(cls, name):
            touched.append(name)
            return type.__getattribute__(cls, name)

    class Hostile(metaclass=Meta):
        def __getattribute__(self, name):
            touched.append(name)
            return object.__getattribute__(self, name)

        def __eq__(self, other):
            touched.append("==")
            return True

        __hash__ = None

    namespace = {"thing": Hostile(), "Kind": Hostile}
    touched.clear()
    said = hints("thing['a'] = 1; thing.append(2); thing += 1; Kind(); thing = Kind", namespace)
    assert touched == []
    assert said == ("rebinds `thing`", "changes `thing` in place")


def test_names_and_files_are_shown_on_one_line_and_short():
    (said,) = hints(r"open('a\nb\u202egpj' + 'x' * 3 + 'y', 'w')", {})
    assert "\n" not in said
    assert "\u202e" not in said
    assert len(hints(f"open('{'a' * 500}.csv', 'w')", {})[0]) < 80


# ── it raises questions and answers none ─────────────────────────────────────────────────────────────────────────────

STRICT = {"allow": 0, "ask": 1, "deny": 2}


@pytest.mark.slow
@given(st.lists(st.sampled_from([*PIECES, "os.system('x')", "exit()", "\n"]), max_size=12).map("".join))
def test_the_look_never_makes_a_question_milder(code):
    for otherwise in (Kind.SCRATCH, Kind.RUN_CELL):
        kind = kind_of(code, otherwise)
        for mode in Mode:
            assert STRICT[TABLE[kind][mode]] >= STRICT[TABLE[otherwise][mode]], (code, mode)


def test_what_is_only_hinted_at_asks_no_question_of_its_own():
    code = "df['a'] = 1\nopen('out.csv', 'w')\nx = 1"
    assert hints(code, {"df": {}, "x": 0})
    assert effects(code) == frozenset()
    assert kind_of(code, Kind.RUN_CELL) is Kind.RUN_CELL
