"""What a Markdown text of instructions refers to: `@path` imports outside of code, and comments that are for people only.

Pure text; which file a path means is for `instructions.py` to find. Read `imports`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_TICKS = re.compile(r"`+")
_IMPORT = re.compile(r"(?<!\S)@((?:\\ |[^\s`])+)")
_AROUND = "*_(["  # **@docs/x.md**, (@docs/x.md)
_AFTER = ".,;:!?)]}\"'*_>"
_COMMENT = re.compile(r"^ {0,3}<!--")


def imports(text: str) -> tuple[str, ...]:
    """Return the paths that `text` imports, as written, each once, in order."""
    found: dict[str, None] = {}
    for line in _prose("\n".join(_without_fences(text))):
        for match in _IMPORT.finditer(re.sub(rf"(?<!\S)[{re.escape(_AROUND)}-]+(?=@)", " ", line)):
            path = match[1].replace("\\ ", " ").rstrip(_AFTER).partition("#")[0]
            if path and not path.startswith("@"):
                found[path] = None
    return tuple(found)


def without_comments(text: str) -> str:
    """Return `text` without the HTML comments that begin a line, as far as they are not in a fence."""
    if "<!--" not in text:
        return text
    kept: list[str] = []
    fence, lines = "", text.split("\n")
    last_end = max((number for number, line in enumerate(lines) if "-->" in line), default=-1)
    inside = False
    for number, line in enumerate(lines):
        if inside:
            inside = "-->" not in line
            rest = line.partition("-->")[2]
            kept += [rest] if not inside and rest.strip() else []
            continue
        fence = _fence_after(fence, line)
        if fence or not _COMMENT.match(line) or number > last_end:
            kept.append(line)
            continue
        rest = re.sub(r"<!--.*?-->", "", line)
        inside = "<!--" in rest
        rest = rest.partition("<!--")[0]
        kept += [rest] if rest.strip() else []
    return "\n".join(kept)


def _without_fences(text: str) -> Iterator[str]:
    """Yield the lines of `text`; those of fenced and indented code become empty."""
    fence, blank, listed = "", True, False
    for line in text.split("\n"):
        before, fence = fence, _fence_after(fence, line)
        indented = line.startswith(("    ", "\t"))
        if before or fence or (indented and blank and not listed):
            yield ""
            blank = blank if indented and not (before or fence) else True
            continue
        if line.strip():
            listed = bool(re.match(r"\s*(?:[-*+]|\d+[.)])\s", line)) or (listed and indented)
        blank = not line.strip()
        yield line


def _fence_after(fence: str, line: str) -> str:
    """Return the fence that is open after `line`, "" for none; one that is never closed reaches to the end."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return "" if found[1][0] == "`" and "`" in found[2] else found[1]
    closes = found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2].strip()
    return "" if closes else fence


def _prose(text: str) -> Iterator[str]:
    """Yield the lines of `text` with code spans taken out; a span ends with as many backticks, in its own paragraph."""
    for paragraph in re.split(r"\n[ \t]*\n", text):
        runs = list(_TICKS.finditer(paragraph))
        later: dict[int, list[int]] = {}
        for number, run in enumerate(runs):
            later.setdefault(len(run[0]), []).append(number)
        kept, end, number = "", 0, 0
        while number < len(runs):
            run = runs[number]
            same = later[len(run[0])]
            while same and same[0] <= number:
                same.pop(0)
            if same:
                kept += paragraph[end : run.start()] + " `` "
                end, number = runs[same[0]].end(), same[0]
            number += 1
        yield from (kept + paragraph[end:]).split("\n")
