"""Signs in the text of cells that a method may be wrong: fitted before the split, rows dropped uncounted, joins unchecked.

Hints from the syntax alone, for whoever reviews: nothing is run, no value is known, and each may be harmless where it
stands. Pure functions of sources. Must not know of cells' outputs or of any model. Read `signs`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nbagent.tools.cellcode import split

HINTS = "Hints from the text of the code alone; each may be harmless where it stands:"
MOST = 40
"""Signs of one notebook that are told."""

_TRANSFORMERS = re.compile(r"(?i)scal|imput|encod|vectori|tfidf|pca|svd|select|transform|normaliz|discretiz|pipe|prep")
_SPLITS = frozenset({"train_test_split", "split", "random_split"})
_SPLITTERS = re.compile(r"(KFold|ShuffleSplit|TimeSeriesSplit)$")
_RANDOM = re.compile(
    r"^(train_test_split|sample|KMeans|MiniBatchKMeans|TSNE|UMAP|RandomForest\w+|ExtraTrees\w+|GradientBoosting\w+|"
    r"HistGradientBoosting\w+|DecisionTree\w+|MLP\w+|SGD\w+|RandomizedSearchCV|ShuffleSplit|StratifiedShuffleSplit|"
    r"XGB\w+|LGBM\w+|CatBoost\w+|IsolationForest|GaussianMixture|resample|bootstrap|permutation_test)$"
)
_SEEDS = frozenset({"random_state", "seed", "rng", "random_seed"})
_TESTS = re.compile(
    r"^(ttest_\w+|mannwhitneyu|wilcoxon|chi2_contingency|f_oneway|kruskal|pearsonr|spearmanr|kendalltau|ks_2samp|"
    r"fisher_exact|shapiro|levene|ztest|proportions_ztest)$"
)
_CORRECTIONS = frozenset(
    {"multipletests", "fdrcorrection", "false_discovery_control", "pairwise_tukeyhsd", "tukey_hsd"}
)
_PATHS = re.compile(r"^(?:/(?:home|Users|mnt|media|data|tmp|Volumes)/|~/|[A-Za-z]:[\\/])")
_COUNTED = re.compile(r"len\(|\.shape|\.count\(|isna\(|isnull\(|\.info\(|value_counts|n_rows|\.height")
_AVERAGES = frozenset({"mean", "median"})


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign: in which of the sources (from 0) and line of it (from 1), what it is called, and what to look at."""

    place: int
    line: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class _Notebook:
    """All trees by their place, and where data is split first, as (place, line)."""

    trees: dict[int, ast.Module]
    sources: Sequence[str]
    split: tuple[int, int] | None
    seeded: bool
    corrected: bool


def signs(sources: Sequence[str], most: int = MOST) -> list[Sign]:
    """Return the signs in the code cells `sources`, in their order, `most` of them; cells that are no Python have none."""
    trees = {place: tree for place, source in enumerate(sources) if (tree := split(source).tree) is not None}
    calls = [(place, node) for place, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    splits = [(place, node.lineno) for place, node in calls if _is_split(node)]
    names = {_name(node) for _, node in calls}
    seeded = bool({"seed", "manual_seed"} & names) or any(_name(n) == "default_rng" and n.args for _, n in calls)
    notebook = _Notebook(trees, sources, min(splits, default=None), seeded, bool(_CORRECTIONS & names))
    found = [sign for look in _LOOKS for sign in look(notebook)]
    unique = {(sign.place, sign.line, sign.name): sign for sign in found}
    return sorted(unique.values(), key=lambda sign: (sign.place, sign.line))[:most]


def told(found: Sequence[Sign], names: Sequence[str]) -> str:
    """Return signs as text under a sentence that says what they are; `names` are those of the sources. "" for none."""
    if not found:
        return ""
    return "\n".join([HINTS, *(f"- {names[sign.place]}:{sign.line} {sign.name}: {sign.text}" for sign in found)])


# ── what stands in the code ──────────────────────────────────────────────────────────────────────────────────────────


def _name(node: ast.Call) -> str:
    """Return the last name of what is called: `fit` of `scaler.fit(X)`."""
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _base(node: ast.Call) -> str:
    """Return the text before the last dot of what is called, "" where there is none."""
    return ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""


def _given(node: ast.Call) -> set[str]:
    return {word.arg for word in node.keywords if word.arg}


def _unpacks(node: ast.Call) -> bool:
    """Whether a call takes `**options`, which may hold anything."""
    return any(word.arg is None for word in node.keywords)


def _is_split(node: ast.Call) -> bool:
    name = _name(node)
    if name == "split":  # of text, mostly
        return bool(_SPLITTERS.search(_base(node)) or re.search(r"(?i)fold|cv\b|splitter", _base(node)))
    return name in _SPLITS


def _is_true(node: ast.Call, name: str) -> bool:
    return any(w.arg == name and isinstance(w.value, ast.Constant) and w.value.value is True for w in node.keywords)


def _calls(notebook: _Notebook) -> Iterator[tuple[int, ast.Call]]:
    for place, tree in notebook.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield place, node


# ── the looks: each yields its signs ─────────────────────────────────────────────────────────────────────────────────


def _fits(notebook: _Notebook) -> Iterator[Sign]:
    for place, node in _calls(notebook):
        if _name(node) not in {"fit", "fit_transform"} or not isinstance(node.func, ast.Attribute):
            continue
        base, data = _base(node), " ".join(ast.unparse(arg) for arg in node.args)
        if re.search(r"(?i)test|valid|holdout", data):
            yield Sign(
                place,
                node.lineno,
                "fit on test data",
                f"`{base}.{_name(node)}({data})` learns from rows that are to test it",
            )
        elif notebook.split and (place, node.lineno) < notebook.split and _TRANSFORMERS.search(base):
            yield Sign(
                place,
                node.lineno,
                "fit before the split",
                f"`{base}` learns from all rows, those of the later test set among them",
            )


def _scores(notebook: _Notebook) -> Iterator[Sign]:
    tested = any(_name(n) == "score" and "test" in ast.unparse(n) for _, n in _calls(notebook))
    for place, node in _calls(notebook):
        if _name(node) == "score" and re.search(r"(?i)train", " ".join(map(ast.unparse, node.args))) and not tested:
            yield Sign(place, node.lineno, "scored on training data", "no score on held-out data is in sight")


def _lost_rows(notebook: _Notebook) -> Iterator[Sign]:
    for place, node in _calls(notebook):
        name = _name(node)
        if name in {"dropna", "drop_duplicates", "drop_nulls", "unique"} and name != "unique":
            after = "\n".join(notebook.sources[place].split("\n"))
            if not _COUNTED.search(after):
                yield Sign(
                    place,
                    node.lineno,
                    f"{name}() without a count",
                    "how many rows went, and which, is not shown in this cell",
                )
        elif name == "to_numeric" and any(
            isinstance(w.value, ast.Constant) and w.value.value == "coerce" for w in node.keywords
        ):
            yield Sign(place, node.lineno, "errors='coerce'", "what is no number becomes NaN silently: count them")
        elif name == "to_datetime" and any(
            isinstance(w.value, ast.Constant) and w.value.value == "coerce" for w in node.keywords
        ):
            yield Sign(place, node.lineno, "errors='coerce'", "what is no date becomes NaT silently: count them")


def _filled(notebook: _Notebook) -> Iterator[Sign]:
    for place, node in _calls(notebook):
        name = _name(node)
        if name in {"fillna", "fill_null"} and node.args:
            value = node.args[0]
            if isinstance(value, ast.Constant) and value.value == 0:
                yield Sign(place, node.lineno, f"{name}(0)", "missing becomes zero, which counts in every mean and sum")
            elif any(isinstance(n, ast.Call) and _name(n) in _AVERAGES for n in ast.walk(value)):
                before = notebook.split and (place, node.lineno) < notebook.split
                why = "the average is that of test rows, too; " if before else ""
                yield Sign(place, node.lineno, f"{name}() with an average", f"{why}the spread gets smaller than it is")
        elif name in {"bfill", "backfill"}:
            yield Sign(place, node.lineno, f"{name}()", "fills from later rows: look-ahead, where the order is time")
        elif name == "shift" and node.args and ast.unparse(node.args[0]).startswith("-"):
            yield Sign(
                place,
                node.lineno,
                "shift back",
                "a value of a later row stands beside an earlier one: right for a target, leakage for a feature",
            )


def _joins(notebook: _Notebook) -> Iterator[Sign]:
    for place, node in _calls(notebook):
        if _name(node) == "merge" and not _unpacks(node) and "validate" not in _given(node):
            yield Sign(
                place,
                node.lineno,
                "merge without validate=",
                "doubled keys multiply rows and unmatched ones vanish unseen: compare row counts, or validate= and indicator=True",
            )
        elif (
            _name(node) == "merge"
            and "how" in _given(node)
            and any(w.arg == "how" and ast.unparse(w.value) == "'cross'" for w in node.keywords)
        ):
            yield Sign(place, node.lineno, "cross join", "every row with every row")


def _order(notebook: _Notebook) -> Iterator[Sign]:
    for place, tree in notebook.trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Assign) or not any(isinstance(t, ast.Subscript) for t in node.targets):
                continue
            value = node.value
            bare = (isinstance(value, ast.Attribute) and value.attr == "values") or (
                isinstance(value, ast.Call) and _name(value) in {"to_numpy", "tolist", "to_list"}
            )
            target = next(t for t in node.targets if isinstance(t, ast.Subscript))
            if bare and ast.unparse(target.value) not in ast.unparse(value):
                yield Sign(
                    place,
                    node.lineno,
                    "values without their index",
                    "rows are matched by position, not by index: both must be in the same order",
                )
            if any(_is_chained(t) for t in node.targets):
                yield Sign(
                    place,
                    node.lineno,
                    "chained assignment",
                    "may change a copy and not the table: use .loc[rows, column]",
                )


def _is_chained(target: ast.expr) -> bool:
    """Whether a target picks rows by a condition and a column in two steps, which is no mark of nested dicts."""
    inner = target.value if isinstance(target, ast.Subscript | ast.Attribute) else None
    if not isinstance(inner, ast.Subscript) or (
        isinstance(inner.value, ast.Attribute) and inner.value.attr in {"loc", "iloc", "at", "iat"}
    ):
        return False
    return _is_mask(inner.slice) or (isinstance(target, ast.Subscript) and _is_mask(target.slice))


def _is_mask(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Compare) for part in ast.walk(node))


def _in_place(notebook: _Notebook) -> Iterator[Sign]:
    for place, node in _calls(notebook):
        if _is_true(node, "inplace"):
            yield Sign(place, node.lineno, "inplace=True", "running the cell twice changes the table twice")


def _hidden_errors(notebook: _Notebook) -> Iterator[Sign]:
    for place, tree in notebook.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and all(
                isinstance(part, ast.Pass | ast.Continue) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
                for part in node.body
            ):  # fmt: skip
                yield Sign(
                    place, node.lineno, "error swallowed", "what fails here is left out of the result without a word"
                )
    for place, node in _calls(notebook):
        if _name(node) in {"filterwarnings", "simplefilter"} and node.args and ast.unparse(node.args[0]) == "'ignore'":
            yield Sign(place, node.lineno, "warnings switched off", "a warning may be about the result")


def _paths(notebook: _Notebook) -> Iterator[Sign]:
    for place, tree in notebook.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _PATHS.match(node.value):
                yield Sign(place, node.lineno, "path of one machine", f"`{node.value[:60]}` is not there elsewhere")


def _seeds(notebook: _Notebook) -> Iterator[Sign]:
    for place, node in _calls(notebook):
        name, base = _name(node), _base(node)
        if (
            base in {"np.random", "numpy.random", "random"}
            and not notebook.seeded
            and name not in {"seed", "default_rng", "Random"}
        ):
            yield Sign(place, node.lineno, "no seed", f"`{base}.{name}` gives other numbers at each run")
        elif name == "default_rng" and not node.args and not node.keywords:
            yield Sign(place, node.lineno, "no seed", "`default_rng()` without a seed gives other numbers at each run")
        elif (
            _RANDOM.match(name)
            and not _unpacks(node)
            and not _SEEDS & _given(node)
            and base not in {"np.random", "random"}
        ):
            if name == "sample" and not (node.args or {"n", "frac", "fraction"} & _given(node)):
                continue
            yield Sign(place, node.lineno, "no random_state", f"`{name}` gives another result at each run")


def _tests(notebook: _Notebook) -> Iterator[Sign]:
    tests = [(place, node) for place, node in _calls(notebook) if _TESTS.match(_name(node))]
    looped = [
        (place, node)
        for place, tree in notebook.trees.items()
        for around in ast.walk(tree)
        if isinstance(around, ast.For | ast.While | ast.ListComp | ast.DictComp | ast.GeneratorExp)
        for node in ast.walk(around)
        if isinstance(node, ast.Call) and _TESTS.match(_name(node))
    ]
    if notebook.corrected or (len(tests) < 3 and not looped):
        return
    place, node = (looped or tests)[0]
    many = "in a loop" if looped else f"{len(tests)} times"
    yield Sign(place, node.lineno, "many tests", f"tests {many} and no correction for many comparisons in sight")


def _averages(notebook: _Notebook) -> Iterator[Sign]:
    for place, node in _calls(notebook):
        if _name(node) in _AVERAGES and isinstance(node.func, ast.Attribute):
            inner = [n for n in ast.walk(node.func.value) if isinstance(n, ast.Call)]
            if any(_name(n) in _AVERAGES for n in inner) and any(
                _name(n) in {"groupby", "group_by", "pivot_table", "resample"} for n in inner
            ):
                yield Sign(place, node.lineno, "average of averages", "groups of different size weigh the same")


def _times(notebook: _Notebook) -> Iterator[Sign]:
    for place, node in _calls(notebook):
        name = _name(node)
        if name == "tz_localize" and node.args and ast.unparse(node.args[0]) == "None":
            yield Sign(
                place, node.lineno, "time zone dropped", "times of different zones can't be told apart after this"
            )
        elif name in {"utcnow", "now", "today"} and _base(node).rpartition(".")[2] in {"datetime", "Timestamp", "date"}:
            yield Sign(place, node.lineno, "time of the run", "the result changes with the day on which it is run")


_LOOKS: tuple[Callable[[_Notebook], Iterator[Sign]], ...] = (
    _fits, _scores, _lost_rows, _filled, _joins, _order, _in_place, _hidden_errors, _paths, _seeds, _tests, _averages, _times,
)  # fmt: skip
