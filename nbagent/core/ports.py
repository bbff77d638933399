"""What the core needs from outside, each as a small protocol: model, notebook, kernel, approval, store.

Every port has one conformance kit in tests/conformance that each of its hosts must pass. All methods run on the main
thread's event loop. Read `Approval` with care: the kernel answers for safety, and an answer is bound to its hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from nbagent.core.messages import Json, Message, Usage

Output = dict[str, Any]
"""One nbformat output: stream, display_data, execute_result or error, as stored in a notebook."""

_LEFT_OUT = re.compile(r"\A\[.*: \d+ characters, too large to read back\]\Z", re.DOTALL)

WITHHELD = "nbagent_withheld"
"""The key in the metadata of what stands for outputs that the model may not see."""

CellType = Literal["code", "markdown", "raw"]


def is_whole(outputs: Iterable[Output]) -> bool:
    """Whether outputs that were read back are all there: written back with a part left out, that part would be lost.

    A page puts a line in the place of an output that is too large to send (`fitting` in static/bridge_cells.js).
    """
    outputs = list(outputs)
    if any((output.get("metadata") or {}).get(WITHHELD) for output in outputs):
        return False
    texts = [(output.get("data") or {}).get("text/plain") for output in outputs]
    return not any(isinstance(text, str) and _LEFT_OUT.match(text) for text in texts)


def source_hash(source: str) -> str:
    """Return the short hash by which an edit proves which source it was made for (12 hex digits of SHA-256)."""
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()[:12]


def text_hash(text: str) -> str:
    """Return the hash that stands for a text where somebody may want another text with the same (32 hex digits)."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


# ── model ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model. `messages` is the live transcript: read it, never change it.

    `compaction` asks a model that `compacts` for nothing but a `compaction` block, the API's own summary of `messages`
    ("": as the server sees fit, else with these instructions; None: for a reply as ever).
    """

    system: str
    tools: tuple[Json, ...]
    messages: Sequence[Message]
    max_tokens: int = 16_000
    compaction: str | None = None


class Model(Protocol):
    """A model that answers one request with a stream of raw Messages-API events.

    It may have more: `compacts` (true: it takes `Request.compaction`), and `async count(request)`, the tokens of one.
    """

    @property
    def name(self) -> str:
        """The id that is shown and logged, e.g. claude-sonnet-5-5."""
        ...

    def stream(self, request: Request) -> AsyncGenerator[Json]:
        """Yield the raw events of one reply; raise `Transient`, `Rejected`, `ContextFull` or `ConfigError`."""
        ...

    def cost(self, usage: Usage) -> float | None:
        """Return the price of `usage` in US dollars, or None where it is not known."""
        ...


# ── notebook ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell as it is now. `number` is the execution count (None: not run), `index` its place from 0."""

    id: str
    type: str
    source: str
    index: int
    number: int | None = None
    outputs: tuple[Output, ...] = ()
    metadata: Json = field(default_factory=dict[str, Any])

    @property
    def hash(self) -> str:
        """Hash of the source, to be carried by an edit."""
        return source_hash(self.source)


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where a cell goes: right before or right after the cell `id`."""

    id: str
    where: Literal["before", "after"] = "after"


class Notebook(Protocol):
    """The one open notebook of a run. Every method raises `NotebookError` with a sentence for the model."""

    @property
    def path(self) -> str:
        """The notebook's path as the person knows it."""
        ...

    @property
    def own_cell(self) -> str | None:
        """The id of the `%%agent` cell that runs now, None where there is none."""
        ...

    @property
    def proposes_only(self) -> bool:
        """Whether edits are only proposed to the person and not made."""
        ...

    async def cells(self) -> list[Cell]:
        """Return all cells in order, without outputs."""
        ...

    async def read(self, cell_id: str) -> Cell:
        """Return one cell with its outputs."""
        ...

    async def insert(
        self,
        anchor: Anchor,
        cell_type: CellType,
        source: str,
        *,
        metadata: Json | None = None,
        cell_id: str | None = None,
    ) -> Cell:
        """Insert a cell at `anchor` and return it as it is in the notebook.

        `cell_id` is the id that it must get (a deleted cell is put back under its old one); one that is there is refused.
        """
        ...

    async def edit(self, cell_id: str, source: str, expected_hash: str, *, metadata: Json | None = None) -> Cell:
        """Replace a cell's source if its hash is still `expected_hash`; return it as read back.

        `metadata` is merged in the same step, as `set_metadata` does.
        """
        ...

    async def delete(self, cell_id: str, expected_hash: str) -> None:
        """Delete a cell if its hash is still `expected_hash`."""
        ...

    async def move(self, cell_id: str, anchor: Anchor) -> Cell:
        """Move a cell to `anchor` and return it."""
        ...

    async def begin_run(self, cell_id: str) -> CellSink:
        """Mark a cell as running, with its outputs cleared, and return where its outputs go."""
        ...

    async def set_outputs(self, cell_id: str, outputs: Sequence[Output], number: int | None) -> Cell:
        """Replace the outputs and the execution count of a code cell; return it as read back, with its outputs."""
        ...

    async def set_metadata(self, cell_id: str, metadata: Json) -> Cell:
        """Merge `metadata` into a cell's, key by key of the top level; a value None takes the key away."""
        ...

    async def save(self) -> None:
        """Save the notebook."""
        ...


class CellSink(Protocol):
    """Takes the outputs of one running cell, in order, as they come."""

    def emit(self, output: Output) -> None:
        """Take one output; never blocks, never raises.

        Streams come in pieces with their carriage returns; `clear_output` (with `wait`) and updates of a display
        (`_display_id`, `_update`) come as outputs too.
        """
        ...

    async def end(self, number: int | None) -> tuple[Output, ...]:
        """Mark the cell as idle with execution count `number`; return its outputs as they are in the notebook."""
        ...


# ── kernel ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Ran:
    """What running code gave. `status`: ok, error, or timeout. Outputs are nbformat outputs with streams merged."""

    status: Literal["ok", "error", "timeout"]
    outputs: tuple[Output, ...]
    number: int | None
    seconds: float
    note: str = ""


class Kernel(Protocol):
    """The kernel that the loop runs in; code runs on the main thread. An interrupt raises `Interrupted`."""

    def namespace(self) -> Mapping[str, Any]:
        """Return the person's live variables (hidden ones of IPython left out), read fresh at each call."""
        ...

    async def run(self, code: str, *, emit: Callable[[Output], None], timeout: float | None) -> Ran:
        """Run code as a cell of the person's: in their namespace, with history and execution count."""
        ...

    async def scratch(self, code: str, *, timeout: float | None, emit: Callable[[Output], None] | None = None) -> Ran:
        """Run code in a shallow copy of the namespace: new and rebound names vanish, no history, no count.

        `emit` gets the outputs as they come, to tell how far the code is: nobody sees them.
        """
        ...


# ── approval ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Preview:
    """What a person sees of a call before it runs: `kind` is code, text, markdown, command, diff or none.

    `body` is exactly what will run or be written; `old` is the text that a diff replaces; `language` is for colours.
    `effects` says in plain words what the code would probably do: a hint, from a static look at it. `line` is the number
    in its file of the line that a diff begins with; 0: not known.
    """

    kind: Literal["none", "code", "text", "markdown", "command", "diff"] = "none"
    body: str = ""
    old: str = ""
    language: str = "python"
    effects: tuple[str, ...] = ()
    line: int = 1

    def to_json(self) -> Json:
        """Return the preview as a JSON object."""
        return {"kind": self.kind, "body": self.body, "old": self.old, "language": self.language,
                "effects": list(self.effects), "line": self.line}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Approval:
    """A question about one call. `offers` are the exact texts of rules that "Allow from now on" could keep.

    `editable`: the person may change the preview's body before they approve. Approvals of one `group`, `of` of them, are
    asked in one card, and each has its own answer. `agent` names the subagent whose call it is, "" for the agent itself.
    """

    call_id: str
    tool: str
    title: str
    input: Json
    preview: Preview
    why: str
    offers: tuple[str, ...]
    notebook: str = ""
    editable: bool = False
    group: str = ""
    of: int = 1
    agent: str = ""

    @property
    def hash(self) -> str:
        """Hash of what is shown; an answer must carry the same."""
        given = sorted(self.input.items(), key=lambda i: i[0])
        shown = repr((self.call_id, self.tool, self.title, given, self.preview, self.agent))
        return text_hash(shown)

    def to_json(self) -> Json:
        """Return the approval as a JSON object, with its hash."""
        return {"call_id": self.call_id, "tool": self.tool, "title": self.title, "input": self.input,
                "preview": self.preview.to_json(), "why": self.why, "offers": list(self.offers),
                "notebook": self.notebook, "editable": self.editable, "group": self.group, "of": self.of,
                "agent": self.agent, "hash": self.hash}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answered:
    """A person's (or the policy's) answer to an `Approval`: words say what to do instead; `rule` is kept if set.

    `edited` is what the person wrote in place of the preview's body, None where they left it as it was.
    """

    approved: bool
    words: str = ""
    rule: str = ""
    by: str = "person"
    edited: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question that is not about permission; the person may choose or write.

    `header` is the question in a word or two; `details` and `previews` say more of each of the `choices` (both empty, or as
    many as these). `many`: more than one may be chosen. Questions of one `group`, `of` of them, are shown in one card, and
    each has its own answer: the choices, each on a line of its own, and below them what the person wrote.
    """

    id: str
    text: str
    choices: tuple[str, ...] = ()
    header: str = ""
    details: tuple[str, ...] = ()
    previews: tuple[str, ...] = ()
    many: bool = False
    group: str = ""
    of: int = 1


class Approver(Protocol):
    """Asks the person. Where nobody can answer, `present` is False and both methods return at once."""

    @property
    def present(self) -> bool:
        """Whether somebody can answer."""
        ...

    async def ask(self, approval: Approval) -> Answered:
        """Return the answer; deny where nobody is there or the answer does not fit the approval's hash."""
        ...

    async def question(self, question: Question) -> str:
        """Return the person's answer, or "" where nobody is there or they left the question out."""
        ...


# ── store ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Store(Protocol):
    """Keeps one session's records, append-only."""

    def append(self, record: Json) -> None:
        """Keep one record; it must be on disk (or wherever it goes) when this returns."""
        ...

    def beside(self, name: str) -> Store:
        """Return the store of another session, `name`, in the same place."""
        ...
