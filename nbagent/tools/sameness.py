"""Whether a cell shows the same as before: two lists of outputs compared as a reader would, not byte by byte.

What differs between any two runs does not count: memory addresses, times of day, durations, the last digits of floats,
names that libraries draw at random for the ids of a figure. Pure; it must not know of notebooks. Read `compared`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from nbagent.core.ports import Output, is_whole
from nbagent.tools.marks import is_marker
from nbagent.tools.results import fold_terminal
from nbagent.tools.sameimages import images_differ

Sameness = Literal["same", "differs", "unknown"]

TOLERANCE = 1e-6
"""Relative difference of two numbers up to which they count as one."""
LONGEST = 1_000_000
"""Characters of one text that are compared line by line; what comes after them must be equal to the letter."""
_SAID = 100
_TOKEN = re.compile(
    r"(?P<address>0x[0-9a-fA-F]{6,16}\b)"
    r"|(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|(?P<cell>ipykernel_\d+[\\/]\d+|<ipython-input-\d+-[0-9a-f]+>|Cell In\[\d+\])"
    r"|(?P<number>[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)"
)
_TIMED = re.compile(
    r"wall time|cpu times|per loop|it/s\b|s/it\b|elapsed|\btook\b|(?:finished|done|completed|trained|loaded) in\b|\bETA\b|"
    r"\bin \d+(?:\.\d+)? ?(?:ms|s|sec|seconds|min)\b|\bpid\b",
    re.IGNORECASE,
)
_DURATION = re.compile(
    r"\d+:\d\d(?::\d\d)?(?:\.\d+)?|[\d,]+ (?:runs|loops?)\b|\bpid:? \d+"
    r"|\d+(?:\.\d+)? ?(?:ns|[µμu]s|ms|s|secs?|seconds?|min(?:ute)?s?|h|hours?|it/s|s/it)(?![\w/])"
)
_TAG = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_RANDOM_IDS = re.compile(
    r"\b(?:id|for|href|xlink:href|clip-path|aria-\w+|data-\w+)=\"[^\"]*\"|url\(#[^)]*\)|<dc:date>.*?</dc:date>|#\w+"
)
_GENERATED = re.compile(r"(?:data-|view_|param_|concat_)[0-9a-f]+")
_HEX = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}|[0-9a-fA-F]{8,}|\b[pe]\d{4,}\b")
_WIDGET = "application/vnd.jupyter.widget-view+json"
_UNCOMPARED = "widgets can't be compared"
_UNDRAWN = "what its HTML draws can't be compared"


@dataclass(frozen=True, slots=True)
class Compared:
    """How two lists of outputs compare; `what` says in a few words what differs, or why that is unknown.

    `noise`: they are the same but for what differs between any two runs.
    """

    sameness: Sameness
    what: str = ""
    noise: bool = False


def compared(before: Sequence[Output], after: Sequence[Output], *, now: datetime | None = None) -> Compared:
    """Compare the outputs that are shown with those of another run of the same code.

    `now` is when the second ran (None: this moment): a time of day close to it is no difference.
    """
    if not is_whole(before) or not is_whole(after):
        return Compared("unknown", "an output is too large to be read")
    one, other = _parts(before), _parts(after)
    if any(kind == "widget" for kind, _ in (*one, *other)):
        return Compared("unknown", _UNCOMPARED)
    loud = [part for part in one if part[0] != "stderr"], [part for part in other if part[0] != "stderr"]
    moment = now or datetime.now().astimezone()
    if [kind for kind, _ in loud[0]] != [kind for kind, _ in loud[1]]:
        return Compared("differs", _kinds(loud[0], loud[1]))
    unknown = ""
    for (kind, a), (_, b) in zip(*loud, strict=True):
        what = _difference(kind, a, b, moment) if a != b else ""
        if what and what != _UNDRAWN:
            return Compared("differs", what)
        unknown = unknown or what
    return Compared("unknown", unknown) if unknown else Compared("same", noise=one != other)


_Part = tuple[str, Any]


def _parts(outputs: Sequence[Output]) -> list[_Part]:
    """Return what a reader sees, each with its kind; text of one stream in one piece, empty text left out."""
    parts: list[_Part] = []
    for output in outputs:
        if is_marker(output):
            continue
        kind, value = _part(output)
        if (
            kind in {"stdout", "stderr"}
            and (at := next((n for n, p in enumerate(parts) if p[0] == kind), None)) is not None
        ):
            parts[at] = (kind, parts[at][1] + value)
        else:
            parts.append((kind, value))
    folded = [(kind, fold_terminal(value) if kind in {"stdout", "stderr", "value"} else value) for kind, value in parts]
    return [(kind, value) for kind, value in folded if not isinstance(value, str) or value.strip()]


def _part(output: Output) -> _Part:
    kind = output.get("output_type")
    if kind == "stream":
        return str(output.get("name") or "stdout"), _text(output.get("text"))
    if kind == "error":
        return "error", f"{output.get('ename')}: {_text(output.get('evalue'))}"
    data = output.get("data")
    data = data if isinstance(data, dict) else {}
    if _WIDGET in data:
        return "widget", "widget"
    for mime in ("image/png", "image/jpeg"):
        if mime in data:
            return "image", "".join(_text(data[mime]).split())
    if "image/svg+xml" in data:
        return "drawing", _text(data["image/svg+xml"])
    found = next(
        (m for m in data if m.startswith("application/") and m.endswith("json") and isinstance(data[m], dict)), ""
    )
    if found:
        return "figure" if "plotly" in found or "vega" in found else "data", data[found]
    return _written(data)


def _written(data: Mapping[str, Any]) -> _Part:
    """Return what a reader sees of a bundle of texts: the richest of them, as a page shows it."""
    rich = _text(data.get("text/html"))
    if "<table" in rich:
        return "table", _words(rich)
    if rich.strip():
        return "html", rich
    for mime in ("text/markdown", "text/latex", "text/plain"):
        if data.get(mime) is not None:
            return "value", _text(data[mime])
    return "value", json.dumps(data, sort_keys=True, default=str)


def _words(rich: str) -> str:
    """Return the words of HTML, without what its tags, styles and scripts hold."""
    return html.unescape(_TAG.sub(" ", rich))


def _text(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def _kinds(one: Sequence[_Part], other: Sequence[_Part]) -> str:
    """Say which kinds of output came or went."""
    before, after = [kind for kind, _ in one], [kind for kind, _ in other]
    said = [f"no {_NAMES.get(k, k)} any more" for k in dict.fromkeys(before) if before.count(k) > after.count(k)]
    for kind in dict.fromkeys(after):
        if after.count(kind) > before.count(kind):
            value = next((str(v) for k, v in other if k == kind), "") if kind == "error" else ""
            said.append(f"{value[:_SAID]}" if value else f"{_NAMES.get(kind, kind)} that was not there")
    return "; ".join(said) or "outputs in another order"


_NAMES = {"stdout": "printed text", "stderr": "warnings", "image": "image", "drawing": "drawing", "table": "table",
          "value": "value", "figure": "figure", "error": "error", "html": "rich output", "data": "data"}  # fmt: skip


def _difference(kind: str, one: Any, other: Any, now: datetime) -> str:
    """Return in a few words how two outputs of a kind differ, "" where only what any two runs differ in does."""
    match kind:
        case "image":
            return images_differ(one, other)
        case "drawing":
            return _texts(
                _RANDOM_IDS.sub("", one), _RANDOM_IDS.sub("", other), now, "the drawing is another one", quote=False
            )
        case "figure" | "data":
            where = _json(one, other, ())
            return f"the {kind} differs at {where}" if where else ""
        case "html":
            return _html(one, other, now)
        case _:
            return _texts(one, other, now, f"another {_NAMES.get(kind, kind)}")


def _html(one: str, other: str, now: datetime) -> str:
    """Compare HTML by its words; where it has none, a map or a figure of its own scripts, only what is equal is known."""
    before, after = _words(one), _words(other)
    if before.strip() or after.strip():
        return _texts(before, after, now, "another rich output")
    return "" if _HEX.sub("", one) == _HEX.sub("", other) else _UNDRAWN


def _texts(one: str, other: str, now: datetime, what: str, *, quote: bool = True) -> str:
    if len(one) > LONGEST or len(other) > LONGEST:
        begins = _texts(one[:LONGEST], other[:LONGEST], now, what, quote=quote)
        return begins or (f"{what} far below its beginning" if one[LONGEST:] != other[LONGEST:] else "")
    first, second = one.split("\n"), other.split("\n")
    first, second = [line.rstrip() for line in first], [line.rstrip() for line in second]
    for a, b in zip(first, second, strict=False):
        if a != b and not _alike(a, b, now):
            return f"{what}: {_cut(a)} → {_cut(b)}" if quote else what
    if len(first) != len(second):
        more = "more" if len(second) > len(first) else "fewer"
        return f"{what}: {len(second)} lines, {more} than the {len(first)} shown"
    return ""


def _cut(line: str) -> str:
    line = " ".join(line.split())
    return f"“{line if len(line) <= _SAID else line[: _SAID - 1] + '…'}”"


def _alike(one: str, other: str, now: datetime) -> bool:
    """Whether two lines say the same, their numbers, times and addresses taken for what they are."""
    if " ".join(one.split()) == " ".join(other.split()):
        return True
    if _TIMED.search(one) and _TIMED.search(other):
        one, other = (_DURATION.sub(" ", line) for line in (one, other))
    a, b = list(_TOKEN.finditer(one)), list(_TOKEN.finditer(other))
    if len(a) != len(b) or [m.lastgroup for m in a] != [m.lastgroup for m in b]:
        return False
    if "".join(_TOKEN.sub("", one).split()) != "".join(_TOKEN.sub("", other).split()):
        return False
    return all(_same_token(str(m.lastgroup), m[0], n[0], now) for m, n in zip(a, b, strict=True))


def _same_token(kind: str, one: str, other: str, now: datetime) -> bool:
    if one == other or kind in {"address", "cell"}:
        return True
    if kind == "time":
        return _is_now(other, now)
    return close(float(one), float(other))


def close(one: float, other: float) -> bool:
    """Whether two numbers are one but for rounding; whole numbers must be equal."""
    if one == other or (one != one and other != other):  # noqa: PLR0124  (not a number)
        return True
    if one.is_integer() and other.is_integer():
        return False
    return abs(one - other) <= TOLERANCE * max(abs(one), abs(other), 1e-9)


def _is_now(text: str, now: datetime) -> bool:
    """Whether a time is about that of the run, so that it is the clock and no data."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return False
    here = now.replace(tzinfo=None) if found.tzinfo is None else now
    return abs(found - here) < timedelta(days=1)


def _json(one: Any, other: Any, path: tuple[str, ...]) -> str:
    """Return where two JSON values differ, "" where they do not; generated names are passed over."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        keys = [key for key in dict.fromkeys([*one, *other]) if key not in {"uid", "$schema", "usermeta", "bdata"}]
        if path[-1:] == ("datasets",) and len(one) == len(other):  # their keys are hashes
            return next((w for a, b in zip(one.values(), other.values(), strict=True) if (w := _json(a, b, path))), "")
        found = next((w for key in keys if (w := _json(one.get(key), other.get(key), (*path, str(key))))), "")
        return found or ("" if one.get("bdata") == other.get("bdata") else _at((*path, "values")))
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return _at(path)
        return next(
            (w for n, (a, b) in enumerate(zip(one, other, strict=True)) if (w := _json(a, b, (*path, str(n))))), ""
        )
    if isinstance(one, float | int) and isinstance(other, float | int) and not isinstance(one, bool):
        return "" if close(float(one), float(other)) else _at(path)
    return "" if one == other or (_generated(one) and _generated(other)) else _at(path)


def _generated(name: object) -> bool:
    """Whether a name is one that altair numbers or hashes anew in each kernel."""
    return isinstance(name, str) and _GENERATED.fullmatch(name) is not None


def _at(path: Sequence[str]) -> str:
    return ".".join(path[:6]) or "its top"
