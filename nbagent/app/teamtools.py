"""The tools that only a team's lead has, beside those of the board: wait for the others, merge, look at conflicts, resolve.

They change the lead's own copy of the repository and nothing of the person's. Must not know where teammates run
(`Others`), nor how git merges (`Merging`). Read `lead_tools`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from nbagent.app.teammail import Mail
from nbagent.core.board import LEAD, Board
from nbagent.core.board_changes import changes
from nbagent.core.errors import ToolError
from nbagent.core.messages import Json, clean, text_block
from nbagent.core.ports import Preview
from nbagent.core.seat import Seat
from nbagent.core.tools import Call, Kind, Result, Tool, tool
from nbagent.extend.conflicts import Conflict
from nbagent.extend.merging import Conflicted, Merged
from nbagent.tools.teamwords import told

LONGEST = 600.0
"""Seconds that one wait for the team may take."""
_AWAITED = frozenset(
    {"task_completed", "task_freed", "task_deleted", "plan_proposed", "member_idle", "member_gone", "task_assigned"}
)
"""What of a board's changes a lead waits for; letters besides."""
_SHOWN = 6_000

Side = Literal["ours", "theirs"]


class Merging(Protocol):
    """The lead's copy of the repository (extend/worktrees)."""

    async def merge(self, name: str) -> Merged | Conflicted:
        """Merge what a teammate has committed; where that conflicts, nothing changes."""
        ...

    async def resolve(
        self, name: str, texts: Mapping[str, str | None], sides: Mapping[str, Side] | None = None
    ) -> Merged | Conflicted:
        """Merge with answers to the conflicts."""
        ...


class Others(Protocol):
    """The teammates, wherever they run."""

    def start(self, name: str) -> None:
        """Start a teammate; raises `ToolError` where it works already."""
        ...


@dataclass(slots=True)
class Desk:
    """What the lead works with: its seat, its copy of the repository (None: everybody works in one folder), the others.

    `merged` says by teammate what all its merges brought, `conflicts` where its last one stopped; `told` is the board that the lead knows.
    """

    seat: Seat
    merging: Merging | None
    others: Others
    told: Board = field(default_factory=Board)
    merged: dict[str, Merged] = field(default_factory=dict[str, Merged])
    conflicts: dict[str, Conflicted] = field(default_factory=dict[str, Conflicted])
    answers: dict[str, tuple[dict[str, str | None], dict[str, Side]]] = field(default_factory=dict[str, Any])
    """By teammate: the answers to its conflicts so far, as texts and sides."""
    clock: Callable[[], float] = time.monotonic
    mail: Mail = field(init=False)

    def __post_init__(self) -> None:
        self.mail = Mail(self.seat)

    async def letters(self) -> str:
        """Return what was written to the lead since it was asked last, as its model is told of it; "" for nothing."""
        return told(await self.mail.take())

    def news(self, board: Board) -> list[str]:
        """Return what the lead waits for and has not been told yet; from then on it counts as told."""
        new = [one for one in changes(self.told, board) if one.what in _AWAITED and one.who != LEAD]
        self.told = board
        return [one.text for one in new]


def lead_tools(desk: Desk) -> list[Tool]:
    """Return the tools."""
    merging = [_merge(desk, desk.merging), _read_conflict(desk), _resolve(desk, desk.merging)] if desk.merging else []
    return [_wait(desk), *merging, _start(desk)]


def _wait(desk: Desk) -> Tool:
    @tool(title=lambda _: "wait for the team")
    async def wait_for_team(call: Call, seconds: float = 300) -> str:
        """Wait until something happens in the team, and get what it is.

        That is: a task is completed or given back, a teammate writes, has a plan, is idle or gone. Returns at once where
        something has happened that you don't know yet.

        Args:
            seconds: how long to wait at most, up to 600.
        """
        began, end = desk.clock(), desk.clock() + min(max(seconds, 1.0), LONGEST)
        board = await desk.seat.boards.read()
        while True:
            news, letters = desk.news(board), await desk.letters()
            left = end - desk.clock()
            if news or letters or left <= 0 or _all_gone(board):
                break
            call.progress(summary(board))
            board = await desk.seat.boards.changed(board.version, left)
        if not news and not letters:
            news = [f"Nothing new in {desk.clock() - began:.1f} s."]
        gone = ["All teammates are gone."] if _all_gone(board) else []
        return "\n".join([*news, *([letters] if letters else []), *gone, summary(board)])

    return wait_for_team


def _all_gone(board: Board) -> bool:
    return all(one.state == "gone" for one in board.members if one.name != LEAD)


def summary(board: Board) -> str:
    """Return in a line how a team stands."""
    count = {
        state: sum(task.state == state for task in board.tasks) for state in ("completed", "in_progress", "pending")
    }
    states = ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in count.items() if number)
    members = [one for one in board.members if one.name != LEAD]
    doing = ", ".join(f"{one.name} {_doing(board, one.name, one.state)}" for one in members)
    return f"Tasks: {states or 'none yet'}. Teammates: {doing or 'none'}."


def _doing(board: Board, name: str, state: str) -> str:
    held = board.held(name)
    return (
        f"works on {held[0].id}"
        if held and state != "gone"
        else {"working": "works", "idle": "is idle"}.get(state, "is gone")
    )


# ── merging ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _merge(desk: Desk, merging: Merging) -> Tool:
    @tool(subject="teammate", title=lambda given: f"merge the work of {given['teammate']}")
    async def merge_teammate(_call: Call, teammate: str) -> Result:
        """Merge what a teammate has committed into your copy of the repository.

        Where it conflicts with what is merged already, nothing changes, and you are told where: then look with
        read_conflict. The person's own files stay as they are.

        Args:
            teammate: its name.
        """
        return await _told_of(desk, teammate, await merging.merge(await _known(desk, teammate)))

    return merge_teammate


async def _known(desk: Desk, name: str) -> str:
    (await desk.seat.boards.read()).member(name)
    return name


async def _told_of(desk: Desk, name: str, outcome: Merged | Conflicted) -> Result:
    desk.conflicts.pop(name, None)
    if isinstance(outcome, Merged):
        desk.merged[name] = _together(desk.merged.get(name), outcome)
        return Result((text_block(merged_words(name, outcome)),), f"merged {name}")
    desk.conflicts[name] = outcome
    text = f"Not merged: the work of {name} is in conflict with what is merged already: {conflict_words(outcome)}."
    return Result((text_block(f"{text} Nothing was changed. read_conflict shows both sides."),), f"{name}: conflict")


def _together(before: Merged | None, now: Merged) -> Merged:
    """Return all that the merges of a teammate brought: one that brought nothing takes nothing away."""
    if before is None:
        return now
    files = tuple(dict.fromkeys((*before.files, *now.files)))
    return replace(now, files=files, already=before.already and now.already)


def merged_words(name: str, outcome: Merged) -> str:
    """Return in a sentence what a merge brought."""
    files = ", ".join(map(clean, outcome.files))
    return f"Merged the work of {name}: {files}." if files else f"Nothing new of {name}: all of it is merged."


def conflict_words(outcome: Conflicted) -> str:
    """Return in a few words which files are in conflict, and where."""
    return "; ".join(file.sentence for file in outcome.files)


def both_sides(file: Conflict, name: str) -> str:
    """Return a conflict in a file with what each side made of it, for a person or a model."""
    lines = [f"{clean(file.path)}: changed by {name}, and by who was merged before"]
    if file.binary or not file.hunks:
        lines.append(f"  {file.sentence}")
    for hunk in file.hunks:
        parts = {"before": hunk.base, "merged already": hunk.ours, name: hunk.theirs}
        lines.append(f"  {hunk.where}")
        for who, text in parts.items():
            lines.append(f"    {who}:")
            lines += [f"      {line}" for line in clean(text).splitlines()] or ["      (nothing)"]
    return "\n".join(lines)


def _read_conflict(desk: Desk) -> Tool:
    @tool(subject="teammate", title=lambda given: f"read the conflict of {given['teammate']}")
    async def read_conflict(_call: Call, teammate: str) -> str:
        """Read both sides of the conflict that merging a teammate's work had.

        Args:
            teammate: its name.
        """
        found = desk.conflicts.get(teammate)
        if found is None:
            there = ", ".join(desk.conflicts) or "nobody"
            raise ToolError(f"no conflict of {teammate!r} is known; in conflict now: {there}")
        return "\n\n".join(both_sides(file, teammate) for file in found.files)[: _SHOWN * 4]

    return read_conflict


def _resolve(desk: Desk, merging: Merging | None) -> Tool:
    def preview(given: Json) -> Preview:
        found = desk.conflicts.get(str(given["teammate"]))
        file = next((one for one in found.files if one.path == given["path"]), None) if found else None
        if given["text"] is None:
            return Preview("text", f"{given['path']}: take the side of {_side_words(given)}")
        return Preview("diff", clean(given["text"]), old=(file.ours or "") if file else "", language="text")

    @tool(kind=Kind.WRITE_FILE, subject="path", title=lambda given: f"resolve {given['path']}", preview=preview)
    async def resolve_conflict(
        _call: Call, teammate: str, path: str, text: str | None = None, side: Side | None = None
    ) -> Result:
        """Merge a teammate's work with an answer to the conflict in one file: its whole text, or the side that counts.

        Do so only where you know what both sides want. Where the work conflicts in several files, all must be answered:
        answers add up until the merge works.

        Args:
            teammate: whose work it is.
            path: the file in conflict.
            text: the whole text that the file shall have.
            side: instead of a text: "ours" (what is merged already) or "theirs" (the teammate's), where both conflict.
        """
        if merging is None or (text is None) == (side is None):
            raise ToolError("give either text or side")
        if teammate not in desk.conflicts:
            raise ToolError(f"no conflict of {teammate!r} is known: merge_teammate first")
        texts, sides = desk.answers.setdefault(teammate, ({}, {}))
        for answers in (texts, sides):
            answers.pop(path, None)
        if side is not None:
            sides[path] = side
        else:
            texts[path] = clean(text or "")
        return await _told_of(desk, teammate, await merging.resolve(teammate, texts, sides))

    return resolve_conflict


def _side_words(given: Json) -> str:
    return "what is merged already" if given.get("side") == "ours" else str(given["teammate"])


def _start(desk: Desk) -> Tool:
    @tool(subject="teammate", title=lambda given: f"start {given['teammate']}")
    async def start_teammate(_call: Call, teammate: str) -> str:
        """Start a teammate that is gone again, with its files as it left them.

        Args:
            teammate: its name.
        """
        await _known(desk, teammate)
        desk.others.start(teammate)
        return f"{teammate} starts, and claims the next free task."

    return start_teammate


def in_order(tools: Iterable[Tool]) -> list[Tool]:
    """Return tools whose calls run one after the other, in the order in which they were made, also side by side."""
    lock = asyncio.Lock()  # first come, first served

    def one(tool_: Tool) -> Tool:
        async def run(call: Call, **given: Any) -> Any:
            async with lock:
                return await tool_.function(call, **given)

        return replace(tool_, function=run)

    return [one(tool_) for tool_ in tools]


def with_mail(
    tool_: Tool, mail: Callable[[], Awaitable[str]], first: Callable[[], Awaitable[object]] | None = None
) -> Tool:
    """Return a tool whose results also bring what `mail` has; `first` is awaited before it runs."""

    async def run(call: Call, **given: Any) -> Result:
        if first is not None:
            await first()
        result = Result.of(await tool_.function(call, **given))
        text = await mail()
        return replace(result, content=(*result.content, text_block(text))) if text else result

    return replace(tool_, function=run)
