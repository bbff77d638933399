"""What a run changed, kept so that it can be taken back: cells and files, in memory and on disk.

A checkpoint holds for each cell and file how it was before the run first touched it and by what it is recognised as the
run left it: only what is still as the run left it is ever restored. The taking back is noted in the same way, which
is what `redo` needs. On disk a checkpoint is one JSON line a fact under `.nbagent/checkpoints/` (see
checkpoint_files.py). Must not know of hosts, tools or namespaces. Read `CellChange`, then `Checkpoint`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from nbagent.core.messages import Json
from nbagent.core.ports import Cell, Output, is_whole, source_hash

OUTPUT_LIMIT = 4 * 1024 * 1024
"""Characters of one cell's outputs, as JSON, that are kept; more can't be restored."""
FILE_LIMIT = 8 * 1024 * 1024
"""Bytes of one file that are kept."""
RUN_LIMIT = 32 * 1024 * 1024
"""Bytes of old outputs and files, together, that are kept of one run."""
NEIGHBOURS = 50
"""Ids on each side by which a cell's old place is found again."""

Around = tuple[tuple[str, ...], tuple[str, ...]]
"""The ids before and after a cell, nearest next to it."""


def around(ids: Sequence[str], cell_id: str) -> Around:
    """Return the neighbours of a cell in the order `ids`."""
    place = ids.index(cell_id)
    return tuple(ids[max(0, place - NEIGHBOURS) : place]), tuple(ids[place + 1 :][:NEIGHBOURS])


def outputs_hash(outputs: Iterable[Output]) -> str:
    """Return what tells outputs from others, whichever way a host stores texts and counts (16 hex digits)."""
    plain = [_plain(output) for output in outputs]
    text = json.dumps(plain, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _plain(output: Output) -> Json:
    data = {mime: _joined(value) for mime, value in (output.get("data") or {}).items()}
    kept = {key: output.get(key) for key in ("name", "ename", "evalue")}
    return {**kept, "type": output.get("output_type"), "data": data, "text": _joined(output.get("text") or "")}


def _joined(value: Any) -> Any:
    return "".join(map(str, value)) if isinstance(value, list) else value


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class CellState:
    """A cell as it was. `outputs` None: too many to keep, known by `digest` only. `around`: where it stood, where that matters."""

    type: str
    source: str
    number: int | None = None
    outputs: tuple[Output, ...] | None = ()
    metadata: Json = field(default_factory=dict[str, Any])
    around: Around | None = None
    digest: str | None = None

    @classmethod
    def of(cls, cell: Cell, room: int = OUTPUT_LIMIT) -> Self:
        """Keep `cell`, as read with its outputs, if those have at most `room` characters."""
        fits = not cell.outputs or len(json.dumps(cell.outputs, default=str)) <= room
        whole = fits and is_whole(cell.outputs)
        digest = None if whole else outputs_hash(cell.outputs)
        return cls(cell.type, cell.source, cell.number, cell.outputs if whole else None, cell.metadata, digest=digest)

    @property
    def footprint(self) -> Footprint:
        """What this state would be recognised by."""
        digest = self.digest if self.outputs is None else outputs_hash(self.outputs)
        return Footprint(self.type, source_hash(self.source), self.number, digest, self.around)

    def size(self) -> int:
        """Characters that keeping it takes, about."""
        return len(self.source) + (len(json.dumps(self.outputs, default=str)) if self.outputs else 0)


@dataclass(frozen=True, slots=True)
class Footprint:
    """By what a cell is recognised as it was left. `outputs` None: not known."""

    type: str
    hash: str
    number: int | None = None
    outputs: str | None = None
    around: Around | None = None

    @classmethod
    def of(cls, cell: Cell) -> Self:
        """The footprint of `cell`, as read with its outputs."""
        return cls(cell.type, cell.hash, cell.number, outputs_hash(cell.outputs))

    def same_text(self, cell: Cell) -> bool:
        """Whether `cell` still has the text that was left."""
        return cell.type == self.type and cell.hash == self.hash

    def same_run(self, cell: Cell, *, same_kernel: bool = True) -> bool:
        """Whether `cell`, read with its outputs, has not run since.

        A count is given once in a kernel's life, and outputs may come late from a thread; in another kernel, and where
        nothing was counted, the outputs must be the same too.
        """
        if cell.number != self.number:
            return False
        if same_kernel and cell.number is not None:
            return True
        return self.outputs is None or outputs_hash(cell.outputs) == self.outputs


@dataclass(slots=True)
class CellChange:
    """What a run did to one cell. `before` None: it made the cell. `after` None: it deleted it.

    `theirs`: the person wrote in it, ran or moved it between two of the run's changes; `before` is then as they left it
    (also of a cell that the run had `made`).
    """

    id: str
    before: CellState | None
    after: Footprint | None
    moved: bool = False
    keys: tuple[str, ...] = ()
    theirs: bool = False
    made: bool = False

    @property
    def wrote(self) -> bool:
        """Whether its text is another than before."""
        return bool(self.before and self.after and self.before.footprint.hash != self.after.hash)

    @property
    def ran(self) -> bool:
        """Whether its outputs or count are others than before."""
        if not self.before or not self.after:
            return False
        old = self.before.footprint
        return old.number != self.after.number or self.after.outputs is None or old.outputs != self.after.outputs

    def to_json(self, *, with_before: bool = True) -> Json:
        """Return the change as a JSON object; what was before may be large and may be known already."""
        after = None if self.after is None else _fields(self.after)
        record: Json = {"type": "cell", "id": self.id, "after": after, "moved": self.moved, "keys": list(self.keys),
                        "theirs": self.theirs, "made": self.made}  # fmt: skip
        return {**record, "before": None if self.before is None else _fields(self.before)} if with_before else record

    @classmethod
    def of(cls, record: Json, known: Self | None = None) -> Self:
        """Read `to_json`; what was before is in `record` or else in `known`."""
        before = known.before if known is not None else None
        if "before" in record:
            before = _state(record["before"])
        after, keys = _footprint(record["after"]), tuple(record["keys"])
        return cls(record["id"], before, after, record["moved"], keys, record["theirs"], record["made"])


def _fields(value: CellState | Footprint) -> Json:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _state(given: Json | None) -> CellState | None:
    if given is None:
        return None
    outputs = None if given["outputs"] is None else tuple(given["outputs"])
    fields: Json = {**given, "outputs": outputs, "around": _around(given["around"])}
    return CellState(**fields)


def _footprint(given: Json | None) -> Footprint | None:
    if given is None:
        return None
    fields: Json = {**given, "around": _around(given["around"])}
    return Footprint(**fields)


def _around(given: list[list[str]] | None) -> Around | None:
    return None if given is None else (tuple(given[0]), tuple(given[1]))


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class FileChange:
    """What a run did to the file at the absolute `path`, which people know as `shown`.

    `before` None: there was no file. `after`: `content_hash` of what was left. `lost`: why its old bytes are not kept, ""
    if they are. `made`: folders that were made for it, outermost first.
    """

    path: str
    shown: str
    before: bytes | None
    after: str
    lost: str = ""
    made: tuple[str, ...] = ()

    def to_json(self, *, with_before: bool = True) -> Json:
        """Return the change as a JSON object; the old bytes may be large and may be known already."""
        record: Json = {"type": "file", "path": self.path, "shown": self.shown, "after": self.after, "lost": self.lost,
                        "made": list(self.made)}  # fmt: skip
        if not with_before:
            return record
        return {**record, "before": None if self.before is None else base64.b64encode(self.before).decode()}

    @classmethod
    def of(cls, record: Json, known: Self | None = None) -> Self:
        """Read `to_json`; the old bytes are in `record` or else in `known`."""
        before = record.get("before")
        data = None if before is None else base64.b64decode(before)
        if "before" not in record and known is not None:
            data = known.before
        return cls(record["path"], record["shown"], data, record["after"], record["lost"], tuple(record["made"]))


# ── a run's checkpoint ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Head:
    """What a checkpoint is of. `at`, `undone_at`: seconds since the epoch; `undone`: parts that were taken back.

    `kernel` names the kernel that ran it: counts and variables are that kernel's.
    """

    run: str
    at: float
    prompt: str
    notebook: str
    own_cell: str | None
    kernel: str
    undone: tuple[str, ...] = ()
    undone_at: float = 0.0


@dataclass(slots=True)
class Checkpoint:
    """What one run changed (or what taking it back changed: then `head.undone` says so).

    `placed` are the ids of cells that were deleted or moved, in the order in which they were first. `cannot` are
    sentences about what can't be taken back. `keep` is told of each record as it comes.
    """

    head: Head
    cells: dict[str, CellChange] = field(default_factory=dict[str, CellChange])
    placed: list[str] = field(default_factory=list[str])
    files: dict[str, FileChange] = field(default_factory=dict[str, FileChange])
    cannot: dict[str, None] = field(default_factory=dict[str, None])
    keep: Callable[[Json], None] = lambda _: None
    _used: int = 0
    _kept: dict[str, CellState | None] = field(default_factory=dict[str, "CellState | None"])

    def room(self) -> int:
        """Bytes that may still be kept."""
        return max(0, RUN_LIMIT - self._used)

    @property
    def size(self) -> int:
        """Bytes of old outputs and files that are kept, about."""
        return self._used

    def use(self, size: int) -> None:
        """Count what is kept."""
        self._used += size

    def set_cell(self, change: CellChange | None, cell_id: str) -> None:
        """Take the newest state of a cell's change; None: there is none any more."""
        if change is None:
            self._kept.pop(cell_id, None)
            if self.cells.pop(cell_id, None) is not None:
                self.keep({"type": "cell-forgotten", "id": cell_id})
            return
        self.cells[cell_id] = change
        if (change.moved or change.after is None) and cell_id not in self.placed:
            self.placed.append(cell_id)
        is_kept = cell_id in self._kept and self._kept[cell_id] is change.before
        self._kept[cell_id] = change.before
        self.keep(change.to_json(with_before=not is_kept))

    def restless(self) -> set[str]:
        """Return the ids of cells that the run has made, moved or deleted: where they stand says nothing of the others."""
        return {*self.placed, *(change.id for change in self.cells.values() if change.made)}

    def set_file(self, change: FileChange) -> None:
        """Take the newest state of a file's change."""
        known = self.files.get(change.path)
        self.files[change.path] = change
        is_kept = known is not None and known.before is change.before and change.before is not None
        self.keep(change.to_json(with_before=not is_kept))

    def note(self, sentence: str) -> None:
        """Say what can't be taken back; the same is said once."""
        if sentence not in self.cannot:
            self.cannot[sentence] = None
            self.keep({"type": "cannot", "text": sentence})

    @property
    def is_empty(self) -> bool:
        """Whether nothing of cells and files was changed, and nothing is to be said."""
        return not (self.cells or self.files or self.cannot)

    def records(self) -> Iterator[Json]:
        """Yield all of it, the head first."""
        yield {"type": "run", "version": 1, **asdict(self.head)}
        in_order = [self.cells[i] for i in self.placed if i in self.cells]
        rest = [change for cell_id, change in self.cells.items() if cell_id not in self.placed]
        for change in (*in_order, *rest, *self.files.values()):
            yield change.to_json()
        for text in self.cannot:
            yield {"type": "cannot", "text": text}

    def take(self, record: Json) -> None:
        """Take one record that was read back."""
        match record.get("type"):
            case "cell":
                change = CellChange.of(record, self.cells.get(record["id"]))
                self.set_cell(change, change.id)
            case "cell-forgotten":
                self.cells.pop(record["id"], None)
            case "file":
                self.set_file(FileChange.of(record, self.files.get(record["path"])))
            case "cannot":
                self.note(record["text"])
            case _:  # a newer version's fact: what is known still counts
                pass
