"""Completes `@…` by Tab in the prompts of `%%agent`, `%%ask` and `%agent …`: variables, columns, cells, files.

The same matcher serves JupyterLab, Notebook 7 and a terminal, which all ask IPython. It only looks at names (of variables,
of a table's columns, of files) and at the first lines of cells as they are known in this kernel; nothing is asked of the
page and nothing is computed. Read `candidates`, then `install`.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.core.keys import holds_keys
from nbagent.tools.cells import first_line
from nbagent.tools.data.kinds import class_name
from nbagent.tools.data.sqltables import is_table, labels_of
from nbagent.tools.mentions import SPECIAL, typed
from nbagent.tools.secrets import secret_name
from nbagent.tools.veil import Told

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

Candidate = tuple[str, str]
"""What may stand after the @, and what people read of it."""

_IN_PROMPT = re.compile(r"\s*%%(?:agent|ask)\b|\s*%agent\s")
_MOST = 60
_CELLS = 40
_FILES = 3_000
_LABELS = 500
_SPECIAL = {"last_error": "the last error", "plot": "the last figure"}


def candidates(extension: Extension, part: str) -> list[Candidate]:
    """Return what `@part` may become."""
    if part.startswith('"'):
        return [(f'"{name}"', kind) for name, kind in _files(extension.folder, part[1:])][:_MOST]
    found: Iterable[Candidate] = itertools.chain(
        _variables(extension, part),
        ((word, _SPECIAL[word]) for word in SPECIAL if word.startswith(part)),
        _cells(extension, part),
        (_quoted(name, kind) for name, kind in _files(extension.folder, part)),
    )
    return list(dict(itertools.islice(found, _MOST)).items())


def _quoted(name: str, kind: str) -> Candidate:
    plain = not re.search(r"[\s@\"'`<>|;,(){}\[\]!?]", name)
    return (name, kind) if plain or '"' in name else (f'"{name}"', kind)


def _variables(extension: Extension, part: str) -> Iterator[Candidate]:
    names = extension.privacy.kernel(extension.kernel).namespace()
    head, dot, rest = part.partition(".")
    if dot and head in names:
        value = names[head]
        if type(value) is not Told and is_table(value):
            for label in labels_of(value)[:_LABELS]:
                text = label if type(label) is str else ""
                if text.isidentifier() and text.startswith(rest) and not secret_name(text):
                    yield f"{head}.{text}", "column"
        return
    found = [name for name in names if name.startswith(part) and not name.startswith("_")]
    tables = [name for name in found if is_table(names[name])]
    for name in [*tables, *(name for name in found if name not in tables)]:
        yield name, class_name(type(names[name])).rpartition(".")[2] if type(names[name]) is not Told else "hidden"


def _cells(extension: Extension, part: str) -> Iterator[Candidate]:
    """Cells by number with their first line, the last ones first: those that ran here, and others that are known by id."""
    if not ("cell:".startswith(part) or part.startswith("cell:")):
        return
    wanted = part.removeprefix("cell:") if part.startswith("cell:") else ""
    ran: list[str] = list(extension.shell.history_manager.input_hist_raw)
    last = len(ran) - 1
    for number in range(last, max(0, last - 500), -1):
        if str(number).startswith(wanted) and ran[number].strip():
            yield f"cell:{number}", f"In[{number}] {first_line(ran[number], 40)}"
    listing = extension.last.seen.listing if extension.last is not None else None
    for cell in list(listing or ())[:_CELLS]:
        if cell.number is None and cell.id.startswith(wanted):
            yield f"cell:{cell.id}", f"{cell.type} {first_line(cell.source, 40)}"


def _files(root: Path, part: str) -> Iterator[Candidate]:
    """Files and folders in the folder that `part` names, below the notebook's; hidden ones and those with keys never."""
    folder, _, start = part.rpartition("/")
    if folder.startswith(("/", "~")) or ".." in Path(folder).parts or part.startswith("cell:"):
        return
    here = root / folder if folder else root
    base = os.path.realpath(root)
    try:
        inside = os.path.commonpath([base, os.path.realpath(here)]) == base
        entries = sorted(itertools.islice(os.scandir(here), _FILES), key=lambda one: one.name.lower()) if inside else []
    except (OSError, ValueError):
        return
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.name.startswith(".") or not entry.name.startswith(start) or holds_keys([entry.name.casefold()]):
            continue
        yield (f"{path}/", "folder") if entry.is_dir() else (path, "file")


def in_prompt(text: str, line: str) -> bool:
    """Whether the cursor's `line` of a cell `text` is a prompt: in a `%%agent` or `%%ask` cell, or a line of `%agent`."""
    first = next((one for one in text.splitlines() if one.strip() and not one.lstrip().startswith("#")), "")
    return bool(_IN_PROMPT.match(first if first.lstrip().startswith("%%") else line))


class Matcher:
    """What IPython asks for completions (its matcher API, version 2)."""

    matcher_api_version = 2
    matcher_priority = 1_000
    matcher_identifier = "nbagent.mentions"

    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self.__qualname__ = self.matcher_identifier  # IPython asks for it, whether it needs it or not

    def __call__(self, context: Any) -> dict[str, Any]:
        """Return the mentions that may stand at the cursor; where one is written, nothing but mentions is offered."""
        from IPython.core.completer import SimpleCompletion

        part = typed(context.text_until_cursor) if in_prompt(context.full_text, context.line_with_cursor) else None
        if part is None:
            return {"completions": []}
        made = [  # JupyterLab would break a line in what it shows beside a name
            SimpleCompletion(text=text, type=kind.replace(" ", "\u00a0"))
            for text, kind in candidates(self._extension, part)
        ]
        return {"completions": made, "matched_fragment": part, "suppress": True, "ordered": True}


def install(extension: Extension) -> Callable[[], None]:
    """Have IPython complete mentions; return what takes it out again. Where the shell has no completer, nothing happens."""
    completer = getattr(extension.shell, "Completer", None)
    matchers: list[Any] | None = getattr(completer, "custom_matchers", None)
    if matchers is None:
        return lambda: None

    matcher = Matcher(extension)
    matchers.append(matcher)

    def uninstall() -> None:
        if matcher in matchers:
            matchers.remove(matcher)

    return uninstall
