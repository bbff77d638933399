"""How far a map is, as one value: drawn as a bar in a notebook, as lines in a terminal, and as the record in the end.

Pure: it is told what there is, and draws it. Must not know where. Read `MapProgress`, then `progress_html`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nbagent.view.maptable import Totals, plain
from nbagent.view.text import count, duration, escape, money

SHOWN = 10
"""Failures that are listed while a map runs; the table lists more."""

_COLOURS = {"done": "#2e7d32", "failed": "#c62828", "stopped": "#8888", "running": "#1976d2"}


@dataclass(frozen=True, slots=True)
class MapProgress:
    """How far a map is. `totals` counts what has ended; `running` inputs are under way, `names` says which (some of them).

    `kept` of the inputs were finished in earlier runs of the same map. `budget` and `totals.cost` are US dollars, `elapsed`
    seconds, `limit` the number of tokens that all may use. `problems` are sentences on what failed, newest last. `ended`
    says how it ended ("" while it runs), `folder` where it is kept, `note` what it waits for ("" for nothing).
    """

    totals: Totals
    running: int = 0
    names: tuple[str, ...] = ()
    kept: int = 0
    budget: float | None = None
    limit: int | None = None
    elapsed: float = 0.0
    problems: tuple[str, ...] = ()
    ended: str = ""
    folder: str = ""
    note: str = ""

    @property
    def finished(self) -> int:
        """Inputs that need nothing more."""
        return self.totals.done + self.totals.failed + self.totals.stopped

    @property
    def eta(self) -> float | None:
        """Seconds until all are finished, at the pace so far; None where that can't be told yet."""
        here, left = self.finished - self.kept, self.totals.rows - self.finished
        return self.elapsed / here * left if here > 0 and self.elapsed > 0 and left > 0 and not self.ended else None

    @property
    def sentence(self) -> str:
        """Where it is, in one line."""
        if self.ended:
            return f"{self.ended} {self.totals.sentence}, in {duration(self.elapsed)}"
        totals = self.totals
        parts = [f"{self.finished:,} of {count(totals.rows, 'input')}"]
        parts += [f"{totals.failed} failed"] if totals.failed else []
        parts += [f"{self.running} running"] if self.running else []
        parts += [spent] if (spent := self._spent()) else []
        if (eta := self.eta) is not None:
            rate = (self.finished - self.kept) / self.elapsed * 60
            parts += [f"{rate:.3g} a minute", f"about {duration(eta)} left"]
        return " · ".join([*parts, *([self.note] if self.note else [])])

    def _spent(self) -> str:
        cost = self.totals.cost
        if self.budget is not None:
            return f"{money(cost or 0.0)} of {money(self.budget)}"
        if self.limit is not None:
            return f"{self.totals.tokens:,} of {self.limit:,} tokens"
        return money(cost) if cost is not None and self.totals.tokens else ""


def bundle(progress: MapProgress) -> dict[str, str]:
    """Return the MIME bundle that shows how far a map is."""
    text = progress_text(progress)
    return {"text/html": progress_html(progress), "text/plain": text}


def progress_html(progress: MapProgress) -> str:
    """Return a bar with what is done, failed and running, and below it what failed; HTML that needs nothing."""
    return f'<div style="max-width:50em">{_bar(progress)}{_words(progress)}</div>'


def _bar(progress: MapProgress) -> str:
    total = max(progress.totals.rows, 1)
    parts = [("done", progress.totals.done), ("failed", progress.totals.failed), ("stopped", progress.totals.stopped),
             ("running", progress.running)]  # fmt: skip
    pieces = "".join(
        f'<div title="{number} {name}" style="width:{100 * number / total:.2f}%;background:{_COLOURS[name]}"></div>'
        for name, number in parts
        if number
    )
    return (
        f'<div role="progressbar" aria-valuemin="0" aria-valuemax="{progress.totals.rows}" '
        f'aria-valuenow="{progress.finished}" aria-label="Inputs" '
        f'style="display:flex;height:.6em;border:1px solid #8888;border-radius:.3em;overflow:hidden">{pieces}</div>'
    )


def _words(progress: MapProgress) -> str:
    said = [f'<p role="status" style="margin:.3em 0">{escape(progress.sentence)}</p>']
    if progress.names and not progress.ended:
        names = ", ".join(plain(name, 60) for name in progress.names)
        said.append(f'<p style="margin:.3em 0;opacity:.8;overflow-wrap:anywhere">Now: {escape(names)}</p>')
    if lines := _problems(progress):
        listed = "".join(f'<li style="overflow-wrap:anywhere">{escape(line)}</li>' for line in lines)
        said.append(
            f"<details open><summary>{count(progress.totals.failed, 'input')} failed</summary><ul>{listed}</ul></details>"
        )
    if progress.folder:
        hint = f"Kept in {plain(progress.folder, 300)}; resume= with this folder goes on there."
        said.append(f'<p style="margin:.3em 0;opacity:.8;overflow-wrap:anywhere">{escape(hint)}</p>')
    return "".join(said)


def _problems(progress: MapProgress) -> Sequence[str]:
    lines = [plain(line, 300) for line in progress.problems[-SHOWN:]]
    more = progress.totals.failed - len(lines)
    return [f"… {more} more before these", *lines] if more > 0 and lines else lines


def progress_text(progress: MapProgress) -> str:
    """Return the same as plain text, for a terminal."""
    lines = [progress.sentence, *(f"failed: {line}" for line in _problems(progress))]
    return "\n".join([*lines, *([f"Kept in {progress.folder}"] if progress.folder else [])])
