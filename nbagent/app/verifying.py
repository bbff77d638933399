"""The truth of notebooks in one kernel: has them run in clean kernels, remembers what came of it, and holds answers to it.

An answer that says "verified from a clean kernel" while no verdict says so of the notebook as it is gets a sentence that
contradicts it. Must not know how clean runs are made (cleanruns.py) or drawn. Read `Verifier.verify`, then `Verifier.events`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nbagent.app.cleanruns import INSIDE, CleanRuns, Finished, fits, said_of_files
from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.event import Status
from nbagent.core.events import CallEnded, Event, RunEnded, Verified
from nbagent.core.ports import Cell, Kernel, Notebook
from nbagent.core.tools import Tool
from nbagent.tools.claims import claim_in
from nbagent.tools.dataflow import dataflow
from nbagent.tools.sameness import compared
from nbagent.tools.seen import Seen
from nbagent.tools.verdict import Came, Evidence, Verdict, hash_of, judge, shown_as, stopped
from nbagent.tools.verify import NAME, verify_tool

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

KEPT = 50
"""Verdicts that are remembered."""
UNVERIFIED = "Not verified from a clean kernel."
CLAIMED = "nbagent did not verify this: “{}”. {} %agent verify does it."
NEVER = "The notebook as it is now was not run in a clean kernel."
AGAIN = "Cells ran again after the clean run: {}."
NOT_SO = "What the clean kernel gave was: {}"


class Verifier:
    """What one kernel knows of the truth of its notebooks."""

    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self._of_call: dict[str, Verdict] = {}
        self._of_code: dict[str, Verdict] = {}
        self._fits: bool | None = None

    # ── the clean runs ───────────────────────────────────────────────────────────────────────────────────────────────

    def tool(self, notebook: Notebook, kernel: Kernel, seen: Seen) -> Tool:
        """Return the tool `verify_notebook` of a run in `notebook`."""
        return verify_tool(notebook, kernel, seen, self.verify, self._files)

    def _files(self) -> str:
        if self._fits is None:  # asked about several times for one card; the folder does not change that fast
            self._fits = fits(self._extension.folder)
        runs = CleanRuns(self._extension.folder, (), timeout=0, in_copy=self._fits)
        return said_of_files(runs, done=False)

    async def verify(
        self, cells: Sequence[Cell], *, timeout: float, seed: bool, call_id: str, progress: Callable[[str], None]
    ) -> Verdict:
        """Run the cells (with their outputs) in a clean kernel and judge them; raises `ToolError` where none starts.

        Where something differs that no error explains, a second clean run tells what is random. With `seed`, two more tell
        whether a seed at the top would make that the same.
        """
        if os.environ.get(INSIDE):
            raise ToolError("this is a clean run already: it makes no other one")
        began = time.monotonic()
        self._fits = await asyncio.to_thread(fits, self._extension.folder)
        runs = CleanRuns(self._extension.folder, cells, timeout=timeout, in_copy=self._fits)
        evidence = Evidence(self._ran(), await asyncio.to_thread(missing_files, self._extension, cells))
        first = await runs.run(progress)
        verdict, count = judge(cells, first.came, None, evidence), 1
        second: Finished | None = None
        if any(cell.state == "differs" for cell in verdict.cells) and not first.problem:
            second = await runs.run(lambda said: progress(f"once more, to see what is random: {said}"))
            verdict, count = judge(cells, first.came, second.came, evidence), 2
        if seed and any(cell.state == "random" for cell in verdict.cells) and second is not None:
            evidence = replace(evidence, seeded=await self._seeded(runs, progress))
            verdict, count = judge(cells, first.came, second.came, evidence), count + 2
        if first.problem:
            verdict = replace(stopped(cells, f"{first.problem}."), cells=verdict.cells)
        notes = (*verdict.notes, said_of_files(runs, done=True))
        verdict = replace(verdict, notes=notes, seconds=round(time.monotonic() - began, 2), runs=count)
        return self.keep(call_id, verdict)

    async def _seeded(self, runs: CleanRuns, progress: Callable[[str], None]) -> frozenset[str]:
        """Return the cells that two runs with a seed at the top give alike."""
        one = await runs.run(lambda said: progress(f"with a seed: {said}"), seed=True)
        other = await runs.run(lambda said: progress(f"with a seed, again: {said}"), seed=True)
        return frozenset(cell for cell, came in one.came.items() if _alike(came, other.came.get(cell)))

    def _ran(self) -> Mapping[int, str]:
        """Return what this kernel ran as In[n], as far as IPython remembers it."""
        manager: Any = getattr(self._extension.shell, "history_manager", None)
        raw: Sequence[object] = getattr(manager, "input_hist_raw", ())
        return {number: text for number, text in enumerate(list(raw)) if number and isinstance(text, str)}

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The newest verdict on each state of the code that was judged, the latest last."""
        return tuple(self._of_code.values())

    def keep(self, call_id: str, verdict: Verdict) -> Verdict:
        """Remember a verdict, as that of a call and as that on its code; return it."""
        for known, key in ((self._of_call, call_id), (self._of_code, verdict.sources)):
            known.pop(key, None)
            known[key] = verdict
            while len(known) > KEPT:
                del known[next(iter(known))]
        return verdict

    def of(self, cells: Sequence[Cell]) -> Verdict | None:
        """Return the newest verdict on exactly this code, None where there is none."""
        return self._of_code.get(hash_of(cells))

    # ── what is said of it ───────────────────────────────────────────────────────────────────────────────────────────

    async def events(self, events: AsyncGenerator[Event], notebook: Notebook | None) -> AsyncGenerator[Event]:
        """Pass the events of a run on, each verdict right after its call, and hold the answer to what was verified."""
        async with aclosing(events):
            async for event in events:
                if isinstance(event, RunEnded):
                    event = replace(event, checked=await self._checked(event, notebook))  # noqa: PLW2901
                yield event
                if isinstance(event, CallEnded) and event.name == NAME and event.status is Status.OK:
                    verdict = self._of_call.get(event.call_id)
                    if verdict is not None:
                        about: dict[str, Any] = {"state": event.state, "turn": event.turn, "at": event.at}
                        yield Verified(call_id=event.call_id, verdict=verdict.to_json(), **about)

    async def _checked(self, ended: RunEnded, notebook: Notebook | None) -> str:
        """Return what the end of a run says of the notebook's truth."""
        claim = claim_in(ended.text)
        if not claim and UNVERIFIED not in ended.checked:
            return ended.checked
        try:
            cells = await notebook.cells() if notebook is not None else []
        except NotebookError:
            cells = []
        verdict = self.of(cells) if cells else None
        again = ran_since(verdict, cells) if verdict is not None else []
        said = ended.checked
        tells = bool(claim) and verdict is not None and claim.rstrip(".…") == verdict.headline[:200].rstrip(".…")
        if verdict is not None and not again and (verdict.verified or tells):  # in the verdict's own words
            return said.replace(UNVERIFIED, verdict.headline)
        if claim:
            why = _why_not(verdict, again)
            said = " ".join(filter(None, (CLAIMED.format(claim.rstrip(".…"), why), said.replace(UNVERIFIED, ""))))
        return " ".join(said.split())


def _alike(one: Came, other: Came | None) -> bool:
    both = other is not None and one.outputs is not None and other.outputs is not None
    return both and compared(one.outputs or (), other.outputs or ()).sameness == "same" if other is not None else False


def _why_not(verdict: Verdict | None, again: Sequence[str]) -> str:
    if verdict is None:
        return NEVER
    return AGAIN.format(", ".join(again[:8])) if verdict.verified else NOT_SO.format(verdict.headline)


def ran_since(verdict: Verdict, cells: Sequence[Cell]) -> list[str]:
    """Return the cells that ran after they were judged, by their numbers: what they show now is not what was compared."""
    judged = {cell.id: cell.label for cell in verdict.cells if cell.state != "skipped"}
    ran = [cell for cell in cells if cell.id in judged and cell.number is not None]
    return [name for cell in ran if (name := shown_as(cell)) != judged[cell.id]]


def missing_files(extension: Extension, cells: Sequence[Cell]) -> dict[str, tuple[str, ...]]:
    """Return by cell the files that its code names by a literal path, that are not there, and that no cell above writes."""
    found: dict[str, tuple[str, ...]] = {}
    written: set[str] = set()
    for flow in dataflow(cells).cells:
        gone = tuple(f for f in flow.read_files if f not in written and not _there(extension, f))
        if gone:
            found[flow.id] = gone
        written.update(flow.written_files)
    return found


def _there(extension: Extension, path: str) -> bool:
    if any(sign in path for sign in "*?[{"):
        return True  # a pattern: what it finds is not known here
    try:
        return (extension.folder / path).exists()
    except (OSError, ValueError):
        return True
