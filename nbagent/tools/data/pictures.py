"""Gives a model the pictures of figures: what was shown as one is passed on, an interactive one is drawn aside.

What the person sees is never touched: outputs are copied for the model's eyes. A drawing is made in a process of its own
(draw.py), within limits of time, memory and size, without the network, once for each figure. Read `Pictures.seen`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import dataclasses
import hashlib
import json
import os
import sys
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nbagent.core.messages import Block, text_block
from nbagent.core.ports import Kernel, Output
from nbagent.core.tools import Call, Result, Tool
from nbagent.tools.data.figures import of_matplotlib
from nbagent.tools.data.figures_bundles import FACTS, Figure, figure_in, live
from nbagent.tools.data.figures_drawing import drawn_figure
from nbagent.tools.data.figures_vega import remote
from nbagent.tools.data.kinds import names_of
from nbagent.tools.describe import safely
from nbagent.tools.processes import run_command

ENGINES = {
    "plotly": ("kaleido", "matplotlib"),
    "vega-lite": ("vl-convert",),
    "vega": ("vl-convert",),
    "svg": ("vl-convert",),
}
"""What draws each kind of figure, best first."""

_NEEDS = {"kaleido": "kaleido and a Chrome", "matplotlib": "matplotlib", "vl-convert": "vl-convert-python"}
PLAINLY = (
    "drawn anew by matplotlib: the person sees the same data in another look, and perhaps traces that are left out here"
)
"""What a model is told of a picture that is not the library's own."""
_SECONDS = 30.0  # one drawing
_ROOM = 30_000_000  # characters of JSON of a figure that is drawn
_DRAWN = 6  # figures of one result that are drawn; of the others the text alone is given
_KEPT = 40
_FACTS = 200


class Shown:
    """How figures of this kernel looked when they were last shown. Filled by jupyter/figurewatch.py, on the main thread."""

    def __init__(self) -> None:
        self._facts: OrderedDict[str, str] = OrderedDict()
        self._bundles: OrderedDict[int, tuple[weakref.ref[Any], dict[str, Any]]] = OrderedDict()

    def took(self, value: Any, data: Mapping[str, Any]) -> None:
        """Remember that `value` was just shown as the bundle `data`."""
        figure = matplotlib_figure(value)
        if figure is None and not _of_library(value):
            return
        if figure is not None and (key := _key(data.get("image/png")) or _svg_key(data.get("image/svg+xml"))):
            self._facts[key] = safely(lambda: of_matplotlib(figure).text())
            while len(self._facts) > _FACTS:
                self._facts.popitem(last=False)
        kept = {mime: shown for mime, shown in data.items() if mime != "text/plain"}
        subject = figure if figure is not None else value
        if kept:
            self._bundles[id(subject)] = (weakref.ref(subject), kept)
            self._bundles.move_to_end(id(subject))
        while len(self._bundles) > _KEPT:
            self._bundles.popitem(last=False)

    def facts(self, png: Any) -> str:
        """Return what was told of the matplotlib figure that this PNG (bytes or base64) is of, "" where that is not known."""
        return self._facts.get(_key(png), "") if self._facts else ""

    def facts_of_svg(self, svg: Any) -> str:
        """Return the same of a figure that was shown as SVG (its text, or the lines of it)."""
        return self._facts.get(_svg_key(svg), "") if self._facts else ""

    def last(self, value: Any) -> dict[str, Any] | None:
        """Return the bundle as which `value` was last shown, None where it was not."""
        figure = matplotlib_figure(value)
        subject = figure if figure is not None else value
        found = self._bundles.get(id(subject))
        return found[1] if found is not None and found[0]() is subject else None


def matplotlib_figure(value: Any) -> Any:
    """Return the matplotlib figure that a value is, lies in, or holds (axes, a grid of seaborn); None for others."""
    names = set(names_of(type(value)))
    if "matplotlib.figure.Figure" in names:
        return value
    held = object.__getattribute__(value, "__dict__") if names & _HOLDERS else {}
    for name in ("_figure", "figure", "_parent_figure"):
        found = held.get(name)
        if found is not None and "matplotlib.figure.Figure" in set(names_of(type(found))):
            return found
    return None


_HOLDERS = {"matplotlib.axes._base._AxesBase", "seaborn.axisgrid._BaseGrid", "ipympl.backend_nbagg.Canvas", "matplotlib.backend_bases.FigureCanvasBase"}  # fmt: skip


def _of_library(value: Any) -> bool:
    names = list(names_of(type(value)))
    return any(name.startswith(("plotly.", "altair.vegalite.", "seaborn._core.plot.")) for name in names)


def _svg_key(svg: Any) -> str:
    text = "".join(map(str, svg)) if type(svg) is list else svg if type(svg) is str else ""
    return f"svg {hashlib.sha256(text.strip().encode('utf-8', 'replace')).hexdigest()}" if text else ""


def _key(png: Any) -> str:
    if type(png) is list:
        png = "".join(map(str, png))
    try:
        raw = png if type(png) is bytes else base64.b64decode(png) if type(png) is str else b""
    except (binascii.Error, ValueError):
        return ""
    return hashlib.sha256(raw).hexdigest() if raw else ""


class Pictures:
    """Draws figures for a model, one at a time, each once; `shown` knows those that the person was shown.

    Args:
        engines: what draws each kind, best first.
        seconds: how long one drawing may take.
    """

    def __init__(
        self, shown: Shown | None = None, engines: Mapping[str, Sequence[str]] = ENGINES, seconds: float = _SECONDS
    ) -> None:
        self.shown = shown or Shown()
        self._engines = engines
        self._seconds = seconds
        self._drawn: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._given_up: set[str] = set()
        self._lock = asyncio.Lock()

    async def seen(self, outputs: Sequence[Output]) -> list[Output]:
        """Return outputs for a model's eyes: each figure with a PNG where one can be had, and what is told of it."""
        left, found = _DRAWN, []
        for output in reversed(outputs):  # the last figures are those that count
            data = output.get("data")
            if type(data) is not dict:
                found.append(output)
                continue
            drawn = await self._bundle(data, draw=left > 0)
            left -= drawn is not data and "image/png" not in data
            found.append(output if drawn is data else {**output, "data": drawn})
        return found[::-1]

    async def of_value(self, value: Any) -> list[Block]:
        """Return the picture of a live figure as the person last saw it, or drawn from what it holds; [] for other values."""
        from nbagent.tools.results import output_blocks  # noqa: PLC0415  (loaded when a figure is there)

        bundle = self.shown.last(value)
        if (found := live(value)) is not None:  # as it is now
            bundle = {_MIMES[found.kind]: found.json}
        if bundle is None:
            bundle = _shown_now(value)
        if bundle is None:
            return []
        drawn = await self._bundle(bundle, draw=True)
        picture = {mime: shown for mime, shown in drawn.items() if mime == "image/png"}
        if not picture:
            return []
        note = [text_block(f"(its picture here is {PLAINLY})")] if PLAINLY in str(drawn.get(FACTS)) else []
        return [*note, *output_blocks([{"output_type": "display_data", "data": picture}])]

    async def _bundle(self, data: dict[str, Any], *, draw: bool) -> dict[str, Any]:
        """Return the bundle with what a model should have of its figure; the same object where it has none."""
        if "image/png" in data:
            facts = self.shown.facts(data["image/png"])
            figure = None if facts else figure_in({k: v for k, v in data.items() if k != "image/png"})
            facts = facts or (figure.text() if figure is not None else "")
            return {**data, FACTS: facts} if facts else data
        figure = figure_in(data)
        if figure is None:
            return data
        png, why = await self._draw(figure) if draw else ("", f"only the last {_DRAWN} figures of a result are drawn")
        note = "" if not why else f"(its picture here is {why})" if png else f"(no picture of it: {why})"
        text = figure.text() or self.shown.facts_of_svg(data.get("image/svg+xml"))
        facts = "\n".join(filter(None, (text, note)))
        return {**data, **({"image/png": png} if png else {}), **({FACTS: facts} if facts else {})}

    async def _draw(self, figure: Figure) -> tuple[str, str]:
        """Return the PNG of a figure in base64 and what is to be known of it, or "" and why there is none."""
        if figure.kind in {"vega-lite", "vega"} and (address := remote(figure.json)):
            return "", f"its data is at {address}, which is not loaded"
        text = await asyncio.to_thread(_written, figure)
        if len(text) > _ROOM:
            return "", f"with {len(text):,} characters of data it is too large to be drawn again"
        key = hashlib.sha256(f"{figure.kind}\n{text}".encode("utf-8", "replace")).hexdigest()
        async with self._lock:
            if key not in self._drawn:
                self._drawn[key] = await self._by_engines(figure.kind, text)
                while len(self._drawn) > _KEPT:
                    self._drawn.popitem(last=False)
            return self._drawn[key]

    async def _by_engines(self, kind: str, text: str) -> tuple[str, str]:
        said: list[str] = []
        for engine in self._engines.get(kind, ()):
            if engine in self._given_up:
                continue
            png, why = await self._by(engine, kind, text)
            if png:
                return png, PLAINLY if engine == "matplotlib" else ""
            if why:
                said.append(why)
        needed = " or ".join(_NEEDS[engine] for engine in self._engines.get(kind, ()))
        return "", said[-1] if said else f"to draw it, {needed} must be installed"

    async def _by(self, engine: str, kind: str, text: str) -> tuple[str, str]:
        """Have one engine draw; one that is not there, or takes too long, is not asked again."""
        here = str(Path.cwd())
        path = [part for part in sys.path if part and part != here]  # no file of the person's folder is run
        with tempfile.TemporaryDirectory(prefix="nbagent-figure-") as folder:
            job, png = Path(folder) / "job.json", Path(folder) / "figure.png"
            head = json.dumps({"kind": kind, "engine": engine, "png": str(png), "path": path})
            await asyncio.to_thread(job.write_text, f'{head[:-1]}, "figure": {text}}}', "utf-8")
            argv = [sys.executable, "-I", "-W", "ignore", str(Path(__file__).with_name("draw.py")), str(job)]
            env = {**os.environ, "MPLBACKEND": "agg", "MPLCONFIGDIR": folder} if engine == "matplotlib" else os.environ
            ended = await run_command(argv, cwd=Path(folder), env=env, timeout=self._seconds, limit=20_000)
            if ended.code == 0 and png.exists():
                raw = await asyncio.to_thread(png.read_bytes)
                return base64.b64encode(raw).decode("ascii"), ""
        if ended.code is None:
            self._given_up.add(engine)
            return "", f"{engine} did not draw it within {self._seconds:g} s"
        missing = "CANNOT: No module named" in ended.output or "ChromeNotFound" in ended.output
        if missing:
            self._given_up.add(engine)
            return "", ""
        last = next((line for line in reversed(ended.output.splitlines()) if line.strip()), "")
        return "", f"{engine} could not draw it ({last.removeprefix('CANNOT: ')[:200]})"


async def looked_at(outputs: Sequence[Output], pictures: Pictures | None) -> tuple[Output, ...]:
    """Return outputs for a model's eyes; as they are where nothing draws."""
    return tuple(outputs if pictures is None else await pictures.seen(outputs))


def pictured(tool: Tool, kernel: Kernel, pictures: Pictures) -> Tool:
    """Return a tool that tells of the variable `name`, so that its result has a picture of it, if it is a figure."""

    async def function(call: Call, **given: Any) -> Result:
        result = Result.of(await tool.function(call, **given))
        value = kernel.namespace().get(given.get("name", ""))
        drawn = await pictures.of_value(value) if value is not None else []
        return dataclasses.replace(result, content=(*result.content, *drawn)) if drawn else result

    return dataclasses.replace(tool, function=function)


_MIMES = {"plotly": "application/vnd.plotly.v1+json", "vega-lite": "application/vnd.vegalite.v6+json"}


def _written(figure: Figure) -> str:
    """Return a figure as JSON, live ones with their arrays packed as plotly itself does."""
    return json.dumps(_plain(figure.json, 0))


def _plain(value: Any, depth: int) -> Any:
    cls = type(value)
    if depth > 60:
        return None
    if cls is dict:
        return {str(key): _plain(inner, depth + 1) for key, inner in value.items()}
    if cls in (list, tuple):
        if len(value) > 1000 and all(type(v) in (int, float, str) for v in value[:50]):
            return [v if type(v) in (int, float, str, bool, type(None)) else _plain(v, depth + 1) for v in value]
        return [_plain(inner, depth + 1) for inner in value]
    if cls is float:
        return value if value - value == 0 else None
    if cls in (str, int, bool, type(None)):
        return value
    if cls.__module__ == "numpy":
        return _plain(value.astype(str).tolist() if value.dtype.kind == "M" else value.tolist(), depth + 1)
    return value.isoformat() if cls.__module__ in {"datetime", "pandas", "pandas._libs.tslibs.timestamps"} else None


def _shown_now(value: Any) -> dict[str, Any] | None:
    """Return a figure that was not shown yet as it would be: a matplotlib figure of vetted parts that is soon drawn."""
    figure = matplotlib_figure(value)
    return drawn_figure(figure) if figure is not None else None
