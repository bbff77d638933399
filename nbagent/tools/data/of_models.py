"""Describes models: estimators and pipelines of scikit-learn, results and models of statsmodels.

Only what an instance holds is read: no property, no get_params (both may be the person's code), and of statsmodels'
results, which are worked out when they are asked for, only those that were asked for already. Must import neither.
Read `estimator`.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

from nbagent.tools.data.kinds import bases_of, held, is_a, library
from nbagent.tools.data.tabular import kind_of
from nbagent.tools.describe import brief, brief_of, label_of, short

_PARAMETERS = 40
_FITTED = 30
_STEPS = 40
_COEFFICIENTS = 40
_PLAIN = frozenset({int, float, str, bool, type(None)})

# ── scikit-learn ─────────────────────────────────────────────────────────────────────────────────────────────────────


def estimator(value: Any) -> Iterator[str]:
    """Describe an estimator, a pipeline or a search, also of somebody who builds on scikit-learn."""
    inside = held(value)
    steps = _steps(inside)
    names = f": {', '.join(short(type(one).__name__, 40) for _, one, _ in steps[:8])}" if steps else ""
    state = "fitted" if _is_fitted(value) else "not fitted"
    yield f"{kind_of(value, 'scikit-learn estimator')}{names}, {state}"
    changed = _changed(value, inside)
    yield f"parameters that differ from their defaults: {', '.join(changed) or 'none'}"
    for name, one, columns in steps[:_STEPS]:
        of = f" on {brief(columns, 2)}" if columns is not None else ""
        yield f"  step {brief(name, 1)}: {brief(one, 1)}{of}"
    yield from _seen(inside)
    yield from _scores(inside)
    others = [name for name in inside if _is_result(name) and name not in _TOLD]
    if others:
        yield f"learned ({len(others):,}):"
    for name in others[:_FITTED]:
        yield f"  .{name} = {short(brief_of(name, inside[name], 1), 160)}"


_TOLD = frozenset({"feature_names_in_", "n_features_in_", "classes_", "best_params_", "best_score_", "best_index_"})


def _is_result(name: Any) -> bool:
    return type(name) is str and name.endswith("_") and not name.startswith("_") and not name.endswith("__")


def _is_fitted(value: Any, depth: int = 8) -> bool:
    """Whether it has learned something: by scikit-learn's own rule, names that end in "_"; of a pipeline, its last step."""
    inside = held(value)
    if any(_is_result(name) for name in inside):
        return True
    steps = inside.get("steps")
    if depth <= 0 or type(steps) is not list or not steps:
        return inside.get("booster_") is not None or inside.get("_Booster") is not None
    real = [pair[1] for pair in steps[-_STEPS:] if type(pair) is tuple and len(pair) == 2 and not _is_blank(pair[1])]
    return bool(real) and _is_fitted(real[-1], depth - 1)


def _is_blank(step: Any) -> bool:
    return step is None or (type(step) is str and step == "passthrough")


def _steps(inside: dict[Any, Any]) -> list[tuple[Any, Any, Any]]:
    """Return name, estimator and columns (or None) of each step, transformer, or the estimator that is searched."""
    for name in ("steps", "transformers_", "transformers", "transformer_list", "estimators"):
        found = inside.get(name)
        if type(found) is list and found and all(type(one) is tuple and len(one) in {2, 3} for one in found[:_STEPS]):
            return [(one[0], one[1], one[2] if len(one) == 3 else None) for one in found[: _STEPS + 1]]
    for name in ("best_estimator_", "estimator"):
        if inside.get(name) is not None and not isinstance(inside[name], str):
            return [(name, inside[name], None)]
    return []


def _changed(value: Any, inside: dict[Any, Any]) -> list[str]:
    """Return what was set otherwise than by default, as `name=value`."""
    makes = next(
        (
            vars_of["__init__"]
            for c in bases_of(type(value))
            if "__init__" in (vars_of := type.__getattribute__(c, "__dict__"))
        ),
        None,
    )
    if not inspect.isfunction(makes):
        return []
    code = makes.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[1:count]
    positional = code.co_varnames[1 : code.co_argcount]
    given: Any = makes.__defaults__ or ()
    defaults: dict[str, Any] = dict(zip(positional[len(positional) - len(given) :], given, strict=True))
    defaults.update(makes.__kwdefaults__ or {})
    changed = [
        f"{name}={short(brief_of(name, inside[name], 1), 80)}"
        for name in names
        if name in inside
        and name not in {"steps", "transformers", "transformer_list"}
        and not _same(inside[name], defaults.get(name, inspect.Parameter.empty))
    ]
    return changed[:_PARAMETERS]


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return type(value) in _PLAIN and type(default) in _PLAIN and type(value) is type(default) and value == default


def _seen(inside: Any) -> Iterator[str]:
    count, names = inside.get("n_features_in_"), inside.get("feature_names_in_")
    if type(count) is int:
        listed = ""
        if is_a(names, "numpy:ndarray") and library(type(names)) == "numpy":
            listed = (
                ": " + ", ".join(short(label_of(n), 60) for n in names[:20].tolist()) + (", …" if count > 20 else "")
            )
        yield f"features seen: {count:,}{listed}"
    classes = inside.get("classes_")
    if is_a(classes, "numpy:ndarray") and library(type(classes)) == "numpy":
        yield f"classes: {', '.join(brief(c, 1) for c in classes[:20].tolist())}{', …' if len(classes) > 20 else ''}"


def _scores(inside: dict[Any, Any]) -> Iterator[str]:
    if "best_score_" in inside:
        best = inside.get("best_params_")
        yield f"best score {brief(inside['best_score_'], 1)} with {brief(best, 2)}"
    results = inside.get("cv_results_")
    if type(results) is dict and type(tried := results.get("params")) is list:
        yield f"{len(tried):,} candidates tried"


# ── statsmodels ──────────────────────────────────────────────────────────────────────────────────────────────────────

_STATISTICS = ("rsquared", "rsquared_adj", "fvalue", "f_pvalue", "llf", "aic", "bic", "prsquared", "deviance", "scale")


def results(value: Any) -> Iterator[str]:
    """Describe what a model of statsmodels gave: coefficients, and their p-values where they were worked out."""
    inside = held(value)
    if "_results" in inside:
        inside = held(inside["_results"])
    model = inside.get("model")
    yield f"statsmodels {type(value).__name__} of {_model_words(model)}{_observations(inside, model)}"
    stored: Any = inside.get("_cache")
    known = {**(dict(dict.items(stored)) if isinstance(stored, dict) else {}), **inside}
    numbers = [f"{name} {float(known[name]):.6g}" for name in _STATISTICS if _is_number(known.get(name))]
    if numbers:
        yield ", ".join(numbers)
    if type(known.get("converged")) is bool and not known["converged"]:
        yield "it did not converge"
    if type(known.get("cov_type")) is str:
        yield f"covariance: {known['cov_type']}"
    yield from _coefficients(known, model)


def _is_number(found: Any) -> bool:
    return type(found) in {int, float} or is_a(found, "numpy:number")


def _model_words(model: Any) -> str:
    inside = held(model)
    formula = inside.get("formula")
    said = f" {short(formula, 200)}" if type(formula) is str else f" of {_names(model, 'ynames')}"
    return f"{type(model).__name__}{said}"


def _names(model: Any, which: str) -> Any:
    """Return the names of what is explained (`ynames`) or of what explains (`xnames`), as far as they are stored."""
    data = held(held(model).get("data"))
    stored: Any = data.get("_cache")
    found = stored.get(which) if isinstance(stored, dict) else None
    if found is None:
        found = data.get(f"_{which}", data.get(which))
    if found is None and is_a(
        frame := data.get("orig_exog" if which == "xnames" else "orig_endog"), "pandas:DataFrame"
    ):
        found = list(itertools.islice(frame.columns, 200)) if library(type(frame)) == "pandas" else None
    if found is None and is_a(one := data.get("orig_endog"), "pandas:Series") and which == "ynames":
        found = one.name
    return found if type(found) in {str, list} else "a column without a name"


def _observations(inside: dict[Any, Any], model: Any) -> str:
    count = inside.get("nobs", held(model).get("nobs"))
    if not _is_number(count) and is_a(explained := held(model).get("endog"), "numpy:ndarray"):
        count = len(explained)
    return f", {count:,.0f} observations" if _is_number(count) else ""


def _coefficients(known: dict[Any, Any], model: Any) -> Iterator[str]:
    parameters = _values(known.get("params"))
    if parameters is None:
        return
    errors, p_values = _values(known.get("bse")), _values(known.get("pvalues"))
    names = known.get(
        "param_names", known.get("_cache", {}).get("param_names") if type(known.get("_cache")) is dict else None
    )
    if type(names) is not list:
        names = _names(model, "xnames")
    labels = (
        names if type(names) is list and len(names) == len(parameters) else [f"[{n}]" for n in range(len(parameters))]
    )
    head = (
        "coefficients"
        + (" (standard error)" if errors is not None else "")
        + (" and p-values" if p_values is not None else "")
    )
    yield f"{head}:"
    for place, number in enumerate(parameters[:_COEFFICIENTS]):
        error = f" ({errors[place]:.4g})" if errors is not None else ""
        p_value = f"  p = {p_values[place]:.3g}" if p_values is not None else ""
        yield f"  {label_of(labels[place])}  {number:.6g}{error}{p_value}"
    if len(parameters) > _COEFFICIENTS:
        yield f"  … and {len(parameters) - _COEFFICIENTS:,} more"
    if p_values is None:
        yield "p-values were not worked out yet: .pvalues or .summary() does"


def _values(found: Any) -> list[float] | None:
    """Return numbers of an array of numpy or a series of pandas, as far as they are shown; None for anything else."""
    if is_a(found, "pandas:Series"):
        found = found.array
        found = getattr(found, "_ndarray", None)
    if not is_a(found, "numpy:ndarray") or found.dtype.kind not in "fiu":
        return None
    return [float(v) for v in found.reshape(-1)[:10_000].tolist()]


def model(value: Any) -> Iterator[str]:
    """Describe a model of statsmodels that is not fitted: its formula or names."""
    inside = held(value)
    yield f"statsmodels model {_model_words(value)}{_observations(inside, value)}, not fitted here"
    names = _names(value, "xnames")
    if type(names) is list:
        yield f"explained by: {', '.join(short(label_of(n), 60) for n in names[:30])}{', …' if len(names) > 30 else ''}"
