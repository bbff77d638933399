r"""Reads how far running code is from what it prints: bars of tqdm, rich and others, `\r` lines, "Epoch 3/10", "45%".

Pure, but for bars that are widgets: their values are looked up among the live ones, and nothing of theirs is run. Must not
know whose code it is. Read `of_text`, then `Watch`.
"""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from nbagent.core.ports import Output
from nbagent.tools.data.kinds import names_of
from nbagent.tools.results import fold_terminal
from nbagent.tools.times import duration

_TAIL = 4_000  # characters of output that are looked at
_LINE = 120
_PERCENT = re.compile(r"(?<![\d.])(\d{1,3})(?:\.\d+)?\s?%")
_PAIR = re.compile(r"(?<![\d./-])(\d[\d,.]{0,14})\s?[kMG]?B?\s?(?:/|(?:out\s)?of)\s?(\d[\d,.]{0,14})(?![\d./-])")
_LEFT = re.compile(
    r"<\s*(?:(\d+):)?(\d{1,2}):(\d{2})|(?:ETA|eta|remaining)[: ]+(?:(\d+):)?(\d{1,2}):(\d{2})|\s(\d+):(\d{2}):(\d{2})\s*\Z"
)
_BAR = re.compile(r"[█▏▎▍▌▋▊▉━╸╺#=>-]{3,}|\|")
_NAME = re.compile(r"\A\s*([A-Za-z][\w .()-]{0,40}?)\s*[:\s]\s*(?=\d|\[|━|\|)")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far something is: its name ("" if it has none), 0 to 100 percent, and the seconds left where it says so."""

    name: str
    percent: float
    left: float | None = None

    def text(self) -> str:
        """Return it in a few words: "Training 42 %, 12 s left"."""
        named = f"{self.name} " if self.name else ""
        left = f", {duration(self.left)} left" if self.left is not None else ""
        return f"{named}{self.percent:.0f} %{left}"


def of_text(text: str) -> Progress | None:
    """Return the progress that the last line that tells one tells, None where none of the last lines does."""
    for line in reversed(fold_terminal(text[-_TAIL:]).splitlines()[-6:]):
        if (found := _of_line(line)) is not None:
            return found
    return None


def _of_line(line: str) -> Progress | None:
    line = line[:400]
    percent, pair = _PERCENT.search(line), _PAIR.search(line)
    name = _NAME.match(line)
    if percent is not None and float(percent[1]) <= 100 and (pair or _BAR.search(line) or len(line) <= 80):
        done = float(percent[1])
    elif pair is not None and (name or _BAR.search(line)) and 0 < _number(pair[2]) >= _number(pair[1]):
        done = 100 * _number(pair[1]) / _number(pair[2])
    else:
        return None
    return Progress(name[1].strip() if name else "", done, _left(line))


def _number(text: str) -> float:
    try:
        return float(text.replace(",", "").rstrip("."))
    except ValueError:  # "1.2.3"
        return 0.0


def _left(line: str) -> float | None:
    found = _LEFT.search(line)
    if found is None:
        return None
    parts = [int(part) for part in found.groups() if part is not None]
    return float(sum(part * 60**place for place, part in enumerate(reversed(parts))))


def of_widget(data: Mapping[Any, Any]) -> Progress | None:
    """Return the progress of a bar that is a widget (tqdm.notebook, ipywidgets), by its model's id in a mime bundle."""
    module: Any = sys.modules.get("ipywidgets.widgets.widget")
    known, view = getattr(module, "_instances", None), data.get("application/vnd.jupyter.widget-view+json")
    if type(known) is not dict or type(view) is not dict:
        return None
    return _of_traits(known.get(view.get("model_id")), known, 3)


def _of_traits(widget: Any, known: Mapping[Any, Any], depth: int) -> Progress | None:
    held = _traits(widget)
    low, high, value = (_float(held.get(name)) for name in ("min", "max", "value"))
    if low is not None and high is not None and value is not None and high > low:
        return Progress(str(held.get("description") or "")[:40], 100 * (value - low) / (high - low))
    children = held.get("children")
    if depth and type(children) in (list, tuple):
        parts: list[Any] = list(children or ())[:8]
        found = next((f for child in parts if (f := _of_traits(child, known, depth - 1)) is not None), None)
        words = [text for child in parts if type(text := _traits(child).get("value")) is str]
        if found is not None and words:
            name = words[0].partition(":")[0].strip() if not words[0].strip()[:1].isdigit() else ""
            return Progress(found.name or name[:40], found.percent, _left(words[-1]))
        return found
    return None


def _float(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) else None


def _traits(widget: Any) -> dict[str, Any]:
    if "ipywidgets.widgets.widget.Widget" not in names_of(type(widget)):
        return {}
    held = object.__getattribute__(widget, "__dict__").get("_trait_values")
    return held if type(held) is dict else {}


def _nobody(_: str) -> None:
    """Where nobody hears it."""


def of_outputs(outputs: Sequence[Output]) -> Progress | None:
    """Return how far code is by its outputs, the last bar or line that tells it; None where none does."""
    for output in reversed(outputs):
        found: Progress | None = None
        if output.get("output_type") == "stream":
            text = output.get("text") or ""
            found = of_text("".join(map(str, text)) if isinstance(text, list) else str(text))
        elif type(data := output.get("data")) is dict:
            found = of_widget(data) if "application/vnd.jupyter.widget-view+json" in data else None
        if found is not None:
            return found
    return None


TICK = 1.0
"""Seconds between two looks at how far running code is."""


@dataclass(frozen=True, slots=True)
class Saying:
    """Where it is said how far code is: `now` on the loop, `soon` from a thread while the code holds the loop."""

    now: Callable[[str], object]
    soon: Callable[[str], object] = _nobody

    def after(self, head: str) -> Saying:
        """Return what says the same after `head`."""
        return Saying(lambda text: self.now(f"{head} · {text}"), lambda text: self.soon(f"{head} · {text}"))


@asynccontextmanager
async def watched(emit: Callable[[Output], None], saying: Saying) -> AsyncGenerator[Watch]:
    """While entered, say each `TICK` seconds how far the code is.

    Synchronous code holds the loop: then a thread says it, which sees its outputs all the same.
    """
    watch, beat, over = Watch(emit), _Beat(), threading.Event()
    ticker = asyncio.create_task(_ticks(watch, saying, beat), name="nbagent-progress")
    aside = threading.Thread(target=_aside, args=(watch, saying, beat, over), name="nbagent-aside", daemon=True)
    aside.start()  # before the code begins: what begins meanwhile is taken for the code's own
    try:
        yield watch
    finally:
        over.set()
        ticker.cancel()


class _Beat:
    """When the loop was heard last, in monotonic seconds."""

    def __init__(self) -> None:
        self.at = time.monotonic()


async def _ticks(watch: Watch, saying: Saying, beat: _Beat) -> None:
    while True:
        await asyncio.sleep(TICK)
        beat.at = time.monotonic()
        saying.now(watch.text())


def _aside(watch: Watch, saying: Saying, beat: _Beat, over: threading.Event) -> None:
    while not over.wait(TICK):
        if time.monotonic() - beat.at > 1.5 * TICK:
            saying.soon(watch.text())


class Watch:
    """Sees the outputs of one running cell on their way, from whatever thread they come, and knows how far it is."""

    def __init__(self, emit: Callable[[Output], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._emit, self._clock = emit, clock
        self._lock = threading.Lock()
        self._tail = ""
        self._bars: dict[str, dict[str, Any]] = {}
        self._began = clock()

    def emit(self, output: Output) -> None:
        """Take one output and hand it on."""
        self._emit(output)
        with self._lock:
            if output.get("output_type") == "stream":
                self._tail = (self._tail + str(output.get("text") or ""))[-_TAIL:]
            elif type(data := output.get("data")) is dict and "application/vnd.jupyter.widget-view+json" in data:
                self._bars = {"": data}  # the last bar counts

    @property
    def progress(self) -> Progress | None:
        """How far the code says that it is, None where it says nothing."""
        with self._lock:
            bars, tail = list(self._bars.values()), self._tail
        return next((found for data in bars if (found := of_widget(data)) is not None), None) or of_text(tail)

    def text(self) -> str:
        """Return how long it runs, how far it is, and else its last line."""
        parts = [f"runs for {duration(float(int(self._clock() - self._began)))}"]
        if (found := self.progress) is not None:
            parts.append(found.text())
        else:
            lines = [line.strip() for line in fold_terminal(self._tail).splitlines() if line.strip()]
            parts += [f"last output: {lines[-1][:_LINE]}"] if lines else []
        return " · ".join(parts)
