"""What the cell tools know and say about cells, apart from any notebook.

Pure text: no port is called here. Read `overview` first; what the model has seen is remembered in seen.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.messages import Block, clean, text_block
from nbagent.core.ports import Cell, Output, Ran
from nbagent.core.tools import Result
from nbagent.tools.marks import STALE, is_agents, is_kept, is_marker, is_stale

_FENCE = re.compile(r"\A\s*(?P<bar>```+|~~~+)[ \t]*(?P<info>[\w+-]*)[^\n`]*\n(?P<body>.*?)\n?(?P=bar)\s*\Z", re.DOTALL)
_NUMBER = re.compile(r"\A(?:In|Out)?\s*\[?\s*(\d+)\s*\]?:?\Z", re.IGNORECASE)
_AGENT = re.compile(r"\A(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*%%?(?:agent|ask)\b")


def first_line(source: str, limit: int = 60) -> str:
    """Return the first line of `source` with something in it, cut to `limit` characters."""
    line = next((line.strip() for line in source.splitlines() if line.strip()), "(empty)")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def unknown_cell(cell_id: str, cells: Sequence[Cell], limit: int = 12) -> NotebookError:
    """Return the error for an id that is not there: it lists the real ids, each with its type and first line."""
    if not cells:
        return NotebookError(f"there is no cell {cell_id[:80]!r}: the notebook has no cells")
    listed = "\n".join(f"- {cell.id} ({cell.type}): {first_line(cell.source)}" for cell in cells[:limit])
    more = f"\n… and {len(cells) - limit} more: see read_notebook" if len(cells) > limit else ""
    return NotebookError(f"there is no cell {first_line(cell_id)!r}. The cells are:\n{listed}{more}")


def find_cell(given: str, cells: Sequence[Cell]) -> Cell:
    """Return the cell whose id is `given`; a number such as In[7] is never guessed at: the error names the id."""
    given = given.strip()
    for cell in cells:
        if cell.id == given:
            return cell
    if number := _NUMBER.match(given):
        same = [cell.id for cell in cells if cell.number == int(number[1])]
        if len(same) == 1:
            raise ToolError(
                f"{given!r} is not a cell id. In[{number[1]}] is the cell with the id {same[0]!r}: use that"
            )
    raise unknown_cell(given, cells)


def clean_source(source: str, cell_type: str) -> tuple[str, str]:
    """Return the source as it goes into a cell and a note for the model about what was changed ("" if nothing was).

    Line ends become newlines and lone surrogates U+FFFD. A code cell that is one fenced block as a whole loses its fence.
    """
    source = clean(source.replace("\r\n", "\n").replace("\r", "\n"))
    if cell_type == "code" and (found := _FENCE.match(source)) and found["bar"] not in found["body"]:
        return found["body"], f"The {found['bar']} fence around the code was removed."
    return source, ""


def starts_agent(source: str) -> bool:
    """Whether a cell's code would start another agent."""
    return bool(_AGENT.match(source))


def describe_outputs(outputs: Iterable[Output], limit: int = 200) -> list[str]:
    """Return one short line for each output: images by their size, errors by their name, text by its first line."""
    outputs = list(outputs)
    if outputs and is_marker(outputs[0]):
        return [f"stale: {STALE.lower()}, which has not run", *describe_outputs(outputs[1:], limit)]
    return [_describe(output, limit) for output in outputs]


def error_output(cell: Cell) -> Output | None:
    """Return the last error among the outputs of a cell (a figure may come after it), None where it did not fail.

    Old outputs of a cell that was edited since say nothing of what it is now.
    """
    if is_stale(cell):
        return None
    return next((output for output in reversed(cell.outputs) if output.get("output_type") == "error"), None)


def error_of(cell: Cell) -> str:
    """Return the error with which a cell (read with its outputs) ended, e.g. "KeyError: 'x'"; "" where it did not."""
    found = error_output(cell)
    if found is None:
        return ""
    value = first_line(_text(found.get("evalue")), 200) if found.get("evalue") else ""
    return f"{found.get('ename')}: {value}" if value else str(found.get("ename"))


def _describe(output: Output, limit: int) -> str:
    kind = output.get("output_type")
    if kind == "stream":
        text = _text(output.get("text"))
        lines = text.count("\n") + (not text.endswith("\n"))
        return f"{output.get('name')}: {first_line(text, limit)}" + (f" … ({lines} lines)" if lines > 1 else "")
    if kind == "error":
        return f"error: {output.get('ename')}: {first_line(_text(output.get('evalue')), limit)}"
    data = output.get("data") or {}
    image = next((mime for mime in data if mime.startswith("image/")), None)
    if image is not None:
        return f"[image {_image_size(image, _text(data[image]))}]"
    text = _text(data.get("text/plain") or data.get("text/markdown"))
    if text:
        return first_line(text, limit) + (f" … ({len(text.splitlines())} lines)" if "\n" in text.strip() else "")
    return f"[{', '.join(data) or 'empty output'}]"


def _text(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _image_size(mime: str, data: str) -> str:
    """Return "640x480" for a PNG (its first bytes say so), else the image's type."""
    import base64  # noqa: PLC0415  (only for notebooks with images)

    try:
        head = base64.b64decode("".join(data[:48].split())[:32], validate=True)
    except ValueError:  # which binascii's is, too
        head = b""
    if mime == "image/png" and head[12:16] == b"IHDR" and len(head) >= 24:
        return f"{int.from_bytes(head[16:20], 'big')}x{int.from_bytes(head[20:24], 'big')}"
    return mime.removeprefix("image/")


def overview(
    cells: Sequence[Cell],
    *,
    total: int,
    own: str | None,
    budget: int = 16_000,
    each: int = 3_000,
    took: Callable[[Cell], str] = lambda _: "",
) -> tuple[str, list[Cell]]:
    """Return the numbered overview of `cells` and those of them whose whole source is in it.

    A source longer than `each` characters, or past the `budget` of all sources, is shown by its first lines. `took` says of a
    cell how long its last run was, where that is worth knowing.
    """
    parts: list[str] = []
    whole: list[Cell] = []
    for cell in cells:
        number = f" In[{cell.number}]" if cell.number is not None else " not run" if cell.type == "code" else ""
        head = f"{cell.index + 1}. {cell.id} {cell.type}{number}{notes(cell, own, took(cell))}"
        if len(cell.source) <= min(each, budget):
            budget -= len(cell.source)
            whole.append(cell)
            body = cell.source
        else:
            lines = cell.source.splitlines()
            shown = "\n".join(line[:120] for line in lines[:3])
            body = f"{shown}\n… ({len(lines)} lines, {len(cell.source)} characters: read_cell shows all)"
        outputs = "".join(f"\n   → {line}" for line in describe_outputs(cell.outputs))
        parts.append(f"{head}\n{_indented(body)}{outputs}")
    listed = "\n\n".join(parts) or "(no cells)"
    return f"{total} cells. Each: place, id, type, In[n]; then its source and → its outputs.\n\n{listed}", whole


def notes(cell: Cell, own: str | None, took: str = "") -> str:
    """Return what the model should know of a cell beside its text, in brackets, or ""; `took`: how long its last run was."""
    said = ["the agent's own cell: this conversation"] if cell.id == own else ["written by an agent"] * is_agents(cell)
    said += ["marked “don't rerun” by the person"] * is_kept(cell) + ["stale: edited, not run since"] * is_stale(cell)
    said += [took] if took else []
    return f" ({'; '.join(said)})" if said else ""


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines()) or "   (empty)"


def ran_result(cell_id: str, did: str, verb: str, ran: Ran, blocks: list[Block], lost: str) -> Result:
    """Return the result of a cell that ran: what was done, how it ended, and its output as `blocks`.

    `did` begins the sentence for the model, `verb` the summary for people; `lost` says what the notebook did not take.
    """
    ended = {
        "ok": "ok",
        "error": f'it raised an error (below). The cell stays: correct it with edit_cell(cell="{cell_id}", run=true)',
        "timeout": "stopped by the time limit. What ran before the stop has happened; the cell stays, with its output",
    }[ran.status]
    label = f"In[{ran.number}]" if ran.number is not None else "a cell"
    head = f"{did}{f' as {label}' if ran.number is not None else ''} in {ran.seconds:.1f} s: {ended}."
    text = "\n".join(part for part in (head, ran.note, lost) if part)
    summary = f"{verb} {label}" + ("" if ran.status == "ok" else f": {ran.status}")
    return Result((text_block(text), *blocks), summary, is_error=ran.status != "ok", cells=(cell_id,))


def noted(result: Result, note: str) -> Result:
    """Return `result` with a note after its first text."""
    if not note:
        return result
    first = text_block(f"{result.content[0]['text']}\n{note}")
    return Result((first, *result.content[1:]), result.summary, result.is_error, result.cells)
