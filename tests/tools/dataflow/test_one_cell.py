"""What one cell does, from its source: names, files, changes in place, in all the syntax that a notebook takes."""

from __future__ import annotations

import pytest

from nbagent.tools.cellflow import Flow, flow_of


def flow(source: str) -> Flow:
    """What a code cell with this source does."""
    return flow_of("c", 0, source)


@pytest.mark.parametrize(
    ("source", "defines", "uses"),
    [
        ("x = y + 1", "x", "y"),
        ("x = 1\ny = x", "x y", ""),
        ("x += 1", "x", "x"),
        ("a, (b, *c) = d", "a b c", "d"),
        ("for i in rows:\n    total = i", "i total", "rows"),
        ("[n for n in rows if n > low]", "", "rows low"),
        ("[(last := n) for n in rows]", "last", "rows"),
        ("with open(p) as f:\n    text = f.read()", "f text", "open p"),
        ("try:\n    x = 1\nexcept E as error:\n    x = 2", "x error", "E"),
        ("@wrap\ndef f(a, b=c):\n    return a + b", "f", "wrap c"),
        ("class A(Base):\n    n = m\n    def f(self):\n        return self.n", "A", "Base m"),
        ("match v:\n    case {'a': n, **rest}:\n        pass", "n rest", "v"),
        ("x: int = y", "x", "y"),
        ("x: int", "", ""),
        ("f'{a:{b}}'", "", "a b"),
        ("lambda v, k=d: v", "", "d"),
        ("r = await fetch(u)", "r", "fetch u"),
        ("global g\ng = 1", "g", ""),
        ("%time x = f(y)", "x", "f y"),
        ("%%time\nx = f(y)", "x", "f y"),
        ("%%capture out\nx = 1", "out x", ""),
        ("files = !ls", "files", ""),
        ("%timeit x = f(y)", "", ""),
        ("df?", "", ""),
        ("%store -r a b", "a b", ""),
        ("%%sql res <<\nselect 1", "res", ""),
        ("%%bash --out lines\nls", "lines", ""),
        ("globals()['x'] = y", "x", "globals y"),
        ("x = 1\ndel x", "", ""),
        ("del x\nx = 1", "x", "x"),
        ("# only a comment", "", ""),
        ("", "", ""),
    ],
)
def test_a_cell_defines_and_uses_the_names_that_python_would_bind_and_read(
    source: str, defines: str, uses: str
) -> None:
    found = flow(source)
    assert (found.defines, found.uses) == (frozenset(defines.split()), frozenset(uses.split()))


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("df['a'] = 1", "df"),
        ("df.loc[m, 'a'] = 1", "df"),
        ("df.columns = names", "df"),
        ("items.append(1)", "items"),
        ("config['a']['b'].update(x)", "config"),
        ("df.dropna(inplace=True)", "df"),
        ("df['a'].fillna(0, inplace=True)", "df"),
        ("del d['k']", "d"),
        ("random.shuffle(rows)", "rows"),
        ("model.fit(X)", "model"),
        ("ax.set_title('t')", "ax"),
        ("n += 1", "n"),
        ("df.dropna(inplace=False)", ""),
        ("df.assign(a=1)", ""),
        ("def f(d):\n    d['a'] = 1", ""),
        ("def f():\n    items.append(1)", ""),
        ("[row.append(1) for row in rows]", ""),
    ],
)
def test_objects_that_are_changed_in_place_are_told(source: str, changes: str) -> None:
    assert flow(source).changes == frozenset(changes.split())


@pytest.mark.parametrize(
    ("source", "read", "written"),
    [
        ("pd.read_csv('a.csv')", "a.csv", ""),
        ("pd.read_csv('./d/a.csv')", "d/a.csv", ""),
        ("P = Path('d')\npd.read_parquet(P / 'a.parquet')", "d/a.parquet", ""),
        ("pd.read_csv(os.path.join('d', f'{\"a\"}.csv'))", "d/a.csv", ""),
        ("open('a.txt')", "a.txt", ""),
        ("open('a.txt', 'w')", "", "a.txt"),
        ("open('a.txt', mode='a')", "", "a.txt"),
        ("Path('a.txt').read_text()", "a.txt", ""),
        ("Path('a.txt').write_text(t)", "", "a.txt"),
        ("Path('a.txt').open('w')", "", "a.txt"),
        ("df.to_csv('o.csv')", "", "o.csv"),
        ("plt.savefig(fname='f.png')", "", "f.png"),
        ("np.load('a.npy'); np.save('b.npy', x)", "a.npy", "b.npy"),
        ("pd.read_csv('https://x.org/a.csv')", "", ""),
        ("df.to_numpy('x'); pd.read_sql('select 1', con)", "", ""),
        ("p = 'a.csv'\np = other\npd.read_csv(p)", "", ""),
    ],
)
def test_files_are_known_by_literal_paths_and_names_that_hold_them(source: str, read: str, written: str) -> None:
    found = flow(source)
    assert (" ".join(found.read_files), " ".join(found.written_files)) == (read, written)


def test_what_only_functions_need_is_needed_later() -> None:
    found = flow("def f():\n    return k + len(rows)\nrows = 1")
    assert (found.uses, found.later) == (frozenset(), frozenset({"k", "len"}))


def test_words_of_queries_and_shell_lines_are_names_perhaps() -> None:
    assert "limit" in flow("df.query('a > @limit')").maybe
    assert "folder" in flow("!ls {folder}").maybe
    assert {"df", "low"} <= flow("%%sql\nselect * from df where a > {{low}}").maybe
    assert flow("df.query('a > @limit')").uses == {"df"}


@pytest.mark.parametrize(
    "source", ["from os import *", "exec(code)", "%run other.py", "globals().update(d)", "globals()[n] = 1", "%pylab"]
)
def test_what_may_bind_any_name_is_said_to(source: str) -> None:
    assert flow(source).opens


def test_a_name_bound_in_a_branch_is_not_certain() -> None:
    found = flow("if a:\n    x = 1\ny = 2")
    assert (found.defines, found.certain) == ({"x", "y"}, {"y"})


def test_imports_are_told_with_their_modules_and_lines() -> None:
    found = flow("import numpy as np\nimport os.path\nfrom sklearn.cluster import KMeans as K")
    assert [(i.name, i.module, i.line) for i in found.imports] == [
        ("np", "numpy", 1), ("os", "os.path", 2), ("K", "sklearn.cluster", 3),
    ]  # fmt: skip


def test_agent_cells_text_cells_and_broken_code_do_nothing() -> None:
    assert flow("%%agent\nx = 1") == Flow("c", 0, agent=True)
    assert flow_of("c", 0, "x = 1", "markdown") == Flow("c", 0, "markdown")
    assert flow("def (").problem and not flow("def (").defines


@pytest.mark.parametrize(
    ("source", "shows"), [("df.head()", True), ("x = 1", False), ("print(x)", True), ("ax.plot(x)\ny = 1", True), ("'text'", False)]
)  # fmt: skip
def test_whether_a_cell_shows_something_is_told(source: str, shows: bool) -> None:
    assert flow(source).shows is shows


def test_a_cell_of_a_hundred_thousand_characters_is_not_read_and_says_so():
    flow = flow_of("a", 0, "x = 1\n" * 20_000)
    assert "longer than 100,000 characters" in flow.problem and flow.opens == flow.problem and not flow.defines
