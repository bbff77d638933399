"""Numbers in a text, and in which cell's output each of them stands: 12.4 % where a cell printed 0.12391.

A number counts as standing in an output where the output's, rounded as the text has it, is the same. Pure functions of
texts. Must not know of notebooks' files or of who wrote the text. Read `traced`.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_NUMBER = re.compile(
    r"(?<![\w.,/:$#-])(?P<sign>[-−+]?)(?P<whole>\d{1,3}(?:[,\u00a0\u202f\u2009']\d{3})+|\d+)(?P<rest>\.\d+)?(?P<power>[eE][-+]?\d{1,3})?"
    r"(?P<unit>[ \u00a0\u202f]?%| ?(?:thousand|million|billion)\b|[kM]\b)?(?![\w/:]|[.,]\d|-\d)"
)
_SHOWN = re.compile(
    r"(?<![\w.])[-−+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,3})?(?![\w])|(?<![\w.])[-−+]?\.\d+"
)
_SKIPPED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]{1,200}\$|!?\[[^\]\n]*\]\([^)\n]*\)|<[^>\n]*>|https?://\S+|"
    r"In\[\d+\]|Out\[\d+\]|\b\d{4}-\d{2}(?:-\d{2})?(?:[T ]\d{2}:\d{2}(?::\d{2})?)?\b|\b\d{1,2}:\d{2}(?::\d{2})?\b|"
    r"^[ \t]*\d+[.)][ \t]|^#{1,6} *\d+[.)]?(?=[ \t])|\b(?:Figure|Table|Step|Chapter|Section|Fig\.|Abbildung|Tabelle) \d+",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_CITED = re.compile(r"In\[(\d+)\]")
_SENTENCE_ENDS = re.compile(r"[.!?](?=\s)|\n")
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "k": 1e3, "M": 1e6}
_YEARS = (1800, 2200)
_SMALL = 12
"""Whole numbers up to this are words more than results ("two groups", "3 steps")."""
_MOST = 200_000
"""Numbers of one cell's outputs that are known."""


@dataclass(frozen=True, slots=True)
class Source:
    """One cell as numbers are looked for in it: its id, its In[n], the text of its outputs, and that of its code."""

    id: str
    number: int | None
    shown: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a text, from `start` to `end`. `step` is one unit of its last digit; `trivial`: no result by its looks.

    `percent`: it is a share in hundredths. `cited` is the In[n] that its sentence names after it, 0 for none.
    """

    text: str
    start: int
    end: int
    value: float
    step: float
    trivial: bool
    percent: bool
    cited: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """What came of one number: the cell that it stands in ("" for none), and why it does not hold ("" where it does)."""

    number: Number
    cell: str
    problem: str = ""


def numbers_in(text: str) -> Iterator[Number]:
    """Yield the numbers of a Markdown text; those in code, links, formulas, dates and numbering are none."""
    skipped = [match.span() for match in _SKIPPED.finditer(text)]
    starts = [span[0] for span in skipped]
    for match in _NUMBER.finditer(text):
        place = bisect.bisect_right(starts, match.start("whole")) - 1
        if place >= 0 and match.start("whole") < skipped[place][1]:
            continue
        yield _number(match, _cited(text, match.end()))


def _number(match: re.Match[str], cited: int) -> Number:
    whole, rest, power = re.sub(r"\D", "", match["whole"]), match["rest"] or "", match["power"] or ""
    unit = (match["unit"] or "").strip()
    scale = _SCALES.get(unit, 1.0) * (10.0 ** int(power[1:]) if power else 1.0)
    value = float(f"{whole}{rest}") * scale * (-1 if match["sign"] in {"-", "−"} else 1)
    plain = not rest and not power and not unit
    trivial = plain and (int(whole) <= _SMALL or (_YEARS[0] <= int(whole) <= _YEARS[1] and len(match["whole"]) == 4))
    step = 10.0 ** -max(0, len(rest) - 1) * scale
    return Number(match[0], match.start(), match.end(), value, step, trivial, unit == "%", cited)


def _cited(text: str, end: int) -> int:
    """Return the In[n] that follows in the same sentence, 0 for none."""
    stop = _SENTENCE_ENDS.search(text, end)
    found = _CITED.search(text, end, stop.start() if stop else len(text))
    return int(found[1]) if found else 0


class Shown:
    """The numbers in the outputs of a notebook's cells, sorted, so that one is found at once."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._values = {source.id: _values(source.shown) for source in sources}
        self._code = {source.id: _values(source.code) for source in sources}

    def trace(self, number: Number) -> Trace:
        """Return in which cell `number` stands: the one that its sentence cites, else the last one that shows it.

        What stands in no output may stand in the code, as a threshold does: then that cell is named.
        """
        if number.cited:
            cited = [source for source in self._sources if source.number == number.cited]
            if not cited:
                return Trace(number, "", f"there is no In[{number.cited}]")
            if any(self._stands(number, self._values[s.id]) or self._stands(number, self._code[s.id]) for s in cited):
                return Trace(number, cited[-1].id)
            return Trace(number, "", f"not in the output of In[{number.cited}]")
        for values in (self._values, self._code):
            for source in reversed(self._sources):
                if self._stands(number, values[source.id]):
                    return Trace(number, source.id)
        return Trace(number, "", "in no output")

    def _stands(self, number: Number, values: Sequence[float]) -> bool:
        """Whether a value rounds to the number; a share may be shown as 0.124 and told as 12.4 %. Signs may be in words."""
        half = number.step * 0.5 * (1 + 1e-9) + abs(number.value) * 1e-12
        for value in dict.fromkeys((abs(number.value), -abs(number.value))):
            if _near(values, value, half) or (number.percent and _near(values, value / 100, half / 100)):
                return True
        return False


def _near(values: Sequence[float], value: float, half: float) -> bool:
    place = bisect.bisect_left(values, value - half)
    return place < len(values) and values[place] <= value + half


def _values(text: str) -> list[float]:
    found: list[float] = []
    for match in _SHOWN.finditer(text):
        if len(found) >= _MOST:
            break
        try:
            found.append(float(match[0].replace(",", "").replace("−", "-")))
        except (ValueError, OverflowError):
            continue
    return sorted(value for value in found if value == value)  # noqa: PLR0124  (NaN has no place)


def traced(text: str, shown: Shown, write: Callable[[Trace], str]) -> tuple[str, list[Trace]]:
    """Return `text` with each number as `write` gives it, and what came of each; numbers that look like none stay as they are."""
    traces = [shown.trace(number) for number in numbers_in(text) if not number.trivial]
    parts: list[str] = []
    last = 0
    for one in traces:
        parts += [text[last : one.number.start], write(one)]
        last = one.number.end
    return "".join([*parts, text[last:]]), traces


def cells_linked(text: str, ids: Mapping[int, str]) -> str:
    """Return `text` with each In[n] of `ids` as a link to its cell; in code, and where a link is, it stays as it is."""
    skipped = [match.span() for match in _SKIPPED.finditer(text) if not _CITED.fullmatch(match[0])]
    starts = [span[0] for span in skipped]

    def linked(match: re.Match[str]) -> str:
        place = bisect.bisect_right(starts, match.start()) - 1
        inside = place >= 0 and match.start() < skipped[place][1]
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 2]
        name = ids.get(int(match[1]))
        if inside or name is None or before == "[" or after == "](":
            return match[0]
        return f"[{match[0]}](#nbagent-cell-{name})"

    return _CITED.sub(linked, text)


def summed_up(traces: Sequence[Trace]) -> str:
    """Return one sentence on what came of the numbers of a text."""
    if not traces:
        return "It has no numbers that could be looked up."
    wrong = [one for one in traces if one.problem]
    looked = f"{len(traces)} number{'s' * (len(traces) != 1)} looked up in the outputs"
    if not wrong:
        return f"{looked}: {'all stand' if len(traces) > 1 else 'it stands'} there."
    named = ", ".join(f"{one.number.text.strip()} ({one.problem})" for one in wrong[:5])
    return f"{looked}; {len(wrong)} not found: {named}."
