"""Turns what tools and code gave into what a model should read: folded, typed, cut, and nothing lost.

Terminal text is folded to what a screen would show, images stay images, and a long text is cut in the middle with a
reference under which the whole of it can be read on. This module must not know which tool or notebook a text is from.
Read `output_blocks` first.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import io
import re
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any

from nbagent.core.errors import CutOff, Interrupted, ToolError
from nbagent.core.messages import Block, Json, clean, image_block, text_block
from nbagent.core.ports import Output
from nbagent.core.tools import Call, Result, Tool
from nbagent.tools.data.figures_bundles import text_of
from nbagent.tools.hints import hint
from nbagent.tools.marks import STALE, is_marker
from nbagent.tools.secrets import mask

_KEEP = 20_000_000  # characters of all full texts that a store keeps; the oldest go first
_LONG_SIDE = 1568  # pixels: the API scales larger images down anyway
_IMAGE_LIMIT = 3_500_000  # characters of base64
_PIXEL_LIMIT = 120_000_000  # 100 by 100 inches at 100 dpi; a picture beyond this is named, not opened
_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif")
_TEXTS = ("text/plain", "text/markdown", "text/latex", "application/json", "text/html")
_TRACEBACK_LINES = 40

# one control sequence: CSI, OSC (ended by BEL or ST), or another two-character escape
_CSI = re.compile(r"\x1b\[([0-?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_=>()#]?.?", re.DOTALL)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class ResultStore:
    """Keeps the full texts of results that were cut, under short references (r1, r2, …), within `_KEEP` characters."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._count = 0

    def keep(self, text: str) -> str:
        """Keep `text` and return its reference."""
        self._count += 1
        ref = f"r{self._count}"
        self._texts[ref] = text[:_KEEP]
        total = sum(map(len, self._texts.values()))
        while total > _KEEP and len(self._texts) > 1:
            total -= len(self._texts.pop(next(iter(self._texts))))
        return ref

    def read(self, ref: str, offset: int = 0, limit: int = 10_000) -> str:
        """Return `limit` characters from `offset` (counted from 0) with a last line that says where to read on.

        Raises:
            ToolError: no such reference, or an offset beyond the end.
        """
        if ref not in self._texts:
            known = ", ".join(self._texts) or "none"
            raise ToolError(f"no result is kept as {ref!r}. Kept: {known}")
        text = self._texts[ref]
        if not 0 <= offset < max(1, len(text)):
            raise ToolError(f"offset {offset} is outside of {ref}, which has {len(text)} characters")
        end = min(len(text), offset + max(1, limit))
        piece = text[offset:end]
        if end < len(text):
            piece += f"\n[{len(text) - end:,} more characters: read_result(ref={ref!r}, offset={end})]"
        return piece


def capped(tool: Tool, store: ResultStore, limit: int = 12_000, *, mask: Callable[[str], str] = mask) -> Tool:
    """Return `tool` with every text block of its results cut to about `limit` characters and kept whole in `store`.

    Secrets are taken out first by `mask`, so that the store has none either.
    """

    async def function(call: Call, **given: Any) -> Result:
        try:
            result = Result.of(await tool.function(call, **given))
        except ToolError as error:
            raise type(error)(clip(mask(str(error)), limit)) from error
        except (Interrupted, CutOff) as stopped:
            raise type(stopped)(clip(mask(stopped.output), limit)) from stopped
        return dataclasses.replace(result, content=tuple(_cap(block, store, limit, mask) for block in result.content))

    return dataclasses.replace(tool, function=function)


def _cap(block: Block, store: ResultStore, limit: int, mask: Callable[[str], str]) -> Block:
    text = block.get("text")
    if block.get("type") != "text" or not isinstance(text, str):
        return block
    if (masked := mask(text)) != text:
        text, block = masked, {**block, "text": masked}
    if len(text) <= limit:
        return block
    head, left_out, tail = _cut(text, limit)
    ref = store.keep(text)
    note = f"[{_count(left_out)} left out here; to see them: read_result(ref={ref!r}, offset={len(head)})]"
    return {**block, "text": f"{head}\n{note}\n{tail}"}


def clip(text: str, limit: int) -> str:
    """Return `text`, or its head and tail of `limit` characters together and a line that counts what is left out."""
    if len(text) <= limit:
        return text
    head, left_out, tail = _cut(text, limit)
    return f"{head}\n[{_count(left_out)} left out here]\n{tail}"


def _cut(text: str, limit: int) -> tuple[str, str, str]:
    """Cut to head (two thirds), middle and tail, at line ends where one is near."""
    head_end = max(0, limit * 2 // 3)
    tail_start = len(text) - max(0, limit - head_end)
    newline = text.rfind("\n", head_end - head_end // 4, head_end)
    if newline > 0:
        head_end = newline + 1
    newline = text.find("\n", tail_start, tail_start + (len(text) - tail_start) // 4)
    if newline >= 0:
        tail_start = newline + 1
    return text[:head_end], text[head_end:tail_start], text[tail_start:]


def _count(text: str) -> str:
    lines = text.count("\n")
    return f"{len(text):,} characters" + (f" ({lines:,} lines)" if lines else "")


# ── terminal text ────────────────────────────────────────────────────────────────────────────────────────────────────


def fold_terminal(text: str) -> str:
    r"""Return what a terminal would show of `text`: `\r`, backspace and erasing applied, colours and controls gone.

    Lines are folded one by one; moves to other lines are left out (their text stays where it was printed).
    """
    if not _CONTROL.search(text) and "\r" not in text:
        return text
    return "\n".join(_fold_line(line) for line in text.replace("\r\n", "\n").split("\n"))


def _fold_line(line: str) -> str:
    line = _COLOUR.sub("", line)
    redraws = "\r" in line
    if redraws:
        line = line.rstrip("\r")
        pieces = line.split("\r")
        if not _CONTROL.search(line.replace("\r", "")):
            return _overlay(pieces)
        line = "\r".join(pieces[-200:])  # a bar of 100,000 redraws stays cheap
    if not _CONTROL.search(line):
        return line
    cells: list[str] = []
    at = 0
    place = 0
    while place < len(line):
        char = line[place]
        if char == "\x1b" and (found := _CSI.match(line, place)):
            place = found.end()
            at = _control_sequence(cells, at, found[1] or "", found[2] or "")
            continue
        place += 1
        if char == "\r":
            at = 0
        elif char == "\b":
            at = max(0, at - 1)
        elif char == "\t" or not _CONTROL.match(char):
            if at < len(cells):
                cells[at] = char
            else:
                cells.append(char)
            at += 1
    return "".join(cells).rstrip(" ") if redraws or "\x1b" in line else "".join(cells)


def _overlay(pieces: list[str]) -> str:
    """Return what is seen of texts that were printed over each other, the last on top."""
    seen = ""
    for piece in reversed(pieces):
        if len(piece) > len(seen):
            seen += piece[len(seen) :]
    return seen.rstrip(" ")


def _control_sequence(cells: list[str], at: int, given: str, kind: str) -> int:
    """Apply one CSI sequence to the line; return the new column."""
    number = int(given) if given.isdigit() and len(given) < 5 else None
    if kind == "K":
        if number == 1:
            cells[: at + 1] = [" "] * min(len(cells), at + 1)
        elif number == 2:
            cells[:] = [" "] * at
        else:
            del cells[at:]
    elif kind == "D":
        at = max(0, at - (number or 1))
    elif kind in {"C", "G"}:
        at = at + (number or 1) if kind == "C" else max(0, (number or 1) - 1)
        cells.extend(" " * (at - len(cells)))
    return at


# ── outputs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def output_blocks(outputs: Sequence[Output]) -> list[Block]:
    """Return nbformat outputs as blocks for the model: text folded, images as images, errors short and last.

    Of several representations an image wins, then plain text, Markdown, LaTeX, JSON, and HTML without its tags; what is told
    of a figure comes before its image, or in place of one. Nothing at all becomes "(no output)".
    """
    blocks: list[Block] = []
    texts: list[str] = []

    def end_text() -> None:
        if joined := "\n".join(t.strip("\n") for t in texts if t.strip()):
            blocks.append(text_block(joined))
        texts.clear()

    for output in outputs:
        kind = output.get("output_type")
        if is_marker(output):
            texts.append(f"[stale: {STALE.lower()} of this cell, which has not run since]")
        elif kind == "stream":
            folded = fold_terminal(_text(output.get("text")))
            texts.append(f"[stderr]\n{folded}" if output.get("name") == "stderr" and folded.strip() else folded)
        elif kind == "error":
            texts.append(_error_text(output))
        elif kind in {"display_data", "execute_result"}:
            data: Json = output.get("data") or {}
            image = _image(data)
            if told := text_of(data):
                texts.append(told)
            if image is not None and image["type"] == "image":
                end_text()
                blocks.append(image)
            elif image is not None or not told:
                texts.append(image["text"] if image is not None else _bundle_text(data))
    end_text()
    return blocks or [text_block("(no output)")]


def _text(value: Any) -> str:
    """Text of nbformat, which may be stored as a list of lines."""
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _error_text(output: Output) -> str:
    """Return a traceback without colours: the last lines of it if it is long, with its last line for certain."""
    name, value = _text(output.get("ename")), _text(output.get("evalue"))
    last = f"{name}: {value}" if value else name
    raw = "\n".join(fold_terminal(_text(part)) for part in output.get("traceback") or [])
    lines = [line for line in raw.splitlines() if line.strip() and not re.fullmatch(r"-{20,}", line.strip())]
    if len(lines) > _TRACEBACK_LINES:
        half = _TRACEBACK_LINES // 2
        lines = [*lines[:half], f"[{len(lines) - 2 * half} lines left out]", *lines[-half:]]
    text = clip("\n".join(line[:500] for line in lines), 6000)
    if last not in text:
        text = f"{text}\n{clip(last, 2000)}" if text else clip(last, 2000)
    found = hint(name, value)
    return f"{text}\n{found}" if found else text


def _bundle_text(data: Json) -> str:
    for mime in _TEXTS:
        if mime in data:
            value = data[mime]
            text = _text(value) if isinstance(value, str | list) else clean(str(value))
            return _without_tags(text) if mime == "text/html" else fold_terminal(text)
    if "image/svg+xml" in data:
        return "[an SVG image, which cannot be shown here; PNG can]"
    return f"[output of type {', '.join(sorted(map(str, data)))}]" if data else ""


def _without_tags(html: str) -> str:
    html = html[:200_000]
    html = re.sub(r"(?is)<(script|style)\b.*?(?:</\1>|\Z)", "", html)
    html = re.sub(r"(?i)</t[dh]>", "\t", html)
    html = re.sub(r"(?i)<br\s*/?>|</(?:p|div|tr|li|h\d)>", "\n", html)
    from html import unescape  # noqa: PLC0415  (rarely needed)

    return re.sub(r"\n\s*\n+", "\n", unescape(re.sub(r"<[^>]*>", "", html))).strip()


def _image(data: Json) -> Block | None:
    """Return the bundle's image as a block, a text block where it cannot be sent, None where there is none."""
    mime = next((m for m in _IMAGES if data.get(m)), None)
    if mime is None:
        return None
    encoded = re.sub(r"\s", "", _text(data[mime]))
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return text_block(f"[an image of type {mime} that is not valid base64]")
    return scaled_image(raw, mime)


def scaled_image(raw: bytes, mime: str) -> Block:
    """Return an image block of at most 1568 pixels and 3.5 MB of base64; a text block that says why not otherwise."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415  (Pillow loads only when an image is there)

    try:
        with _without_warning(), Image.open(io.BytesIO(raw)) as picture:
            width, height = picture.size
            if width * height > _PIXEL_LIMIT:
                return text_block(f"[image {width}x{height}, too large to be shown]")
            small = max(width, height) <= _LONG_SIDE and len(raw) * 4 // 3 <= _IMAGE_LIMIT
            if small and Image.MIME.get(picture.format or "") == mime:
                picture.verify()
                return image_block(mime, base64.b64encode(raw).decode("ascii"))
            return _scale(_reduced(picture))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        return text_block(f"[an image of type {mime} that cannot be read: {type(error).__name__}]")


@contextlib.contextmanager
def _without_warning() -> Generator[None]:
    """Keep Pillow quiet about pictures whose size is checked here."""
    from PIL import Image  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        yield


def _reduced(picture: Any) -> Any:
    """Return a picture as RGB or RGBA, a huge one made smaller strip by strip: a copy of it would double the memory."""
    from PIL import Image  # noqa: PLC0415

    mode = "RGBA" if "A" in picture.getbands() or "transparency" in picture.info else "RGB"
    factor = max(picture.size) // (2 * _LONG_SIDE)
    if factor < 2:
        return picture.convert(mode)
    width, height = picture.size
    small = Image.new(mode, (-(-width // factor), -(-height // factor)))
    for top in range(0, height, 100 * factor):
        strip = picture.crop((0, top, width, min(height, top + 100 * factor)))
        small.paste(strip.convert(mode).reduce(factor), (0, top // factor))
    return small


def _scale(picture: Any) -> Block:
    from PIL import Image  # noqa: PLC0415

    picture.thumbnail((_LONG_SIDE, _LONG_SIDE))
    encoded = _encode(picture, "PNG")
    if len(encoded) > _IMAGE_LIMIT:  # photographs and noise: JPEG on white
        flat = Image.new("RGB", picture.size, "white")
        flat.paste(picture, mask=picture.getchannel("A") if "A" in picture.getbands() else None)
        return image_block("image/jpeg", _encode(flat, "JPEG"))
    return image_block("image/png", encoded)


def _encode(picture: Any, kind: str) -> str:
    buffer = io.BytesIO()
    picture.save(buffer, kind, quality=80)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
