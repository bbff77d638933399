"""`%agent export`: the notebook without its agent cells, as a plain notebook, Markdown or a Python script.

What is exported is what the person sees: the live document, which is saved first, so that attachments and large outputs
come from the file; without a page, a notebook file that is named. Outputs stay; our metadata, marks and magics go.
Read `export`, then `plain`.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import copy
import os
import shlex
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from nbagent.app.document import open_document
from nbagent.core.errors import ConfigError, NotebookError, ToolError
from nbagent.core.messages import clean
from nbagent.core.ports import Notebook
from nbagent.tools import ipynb
from nbagent.tools.cells import starts_agent
from nbagent.tools.marks import KEY, is_marker
from nbagent.tools.paths import replace_file

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

KINDS = {"ipynb": ".ipynb", "md": ".md", "py": ".py"}
"""What can be written, and the ending that says so."""

USAGE = (
    "%agent export [FILE] [--to ipynb|md|py] [--force] [--from NOTEBOOK.ipynb]. FILE's ending says what it becomes; "
    "without FILE it is NAME-plain.ipynb beside the notebook."
)
_OURS = ("%agent", "%load_ext nbagent", "%reload_ext nbagent", "%config NbAgent", "%ask ", "%unload_ext nbagent")
_FILES_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the person asked for."""

    file: str
    kind: str
    force: bool
    source: str


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"%agent export: {message}. {USAGE}")


async def export(extension: Extension, line: str) -> str:
    """Carry out `%agent export …` and return where the file was written; raises `ConfigError` with one sentence."""
    wanted = read(line)
    if wanted.source:
        notebook, name = from_file(typed(wanted.source)), Path(wanted.source).stem
    else:
        try:
            async with open_document(extension.shell) as document:
                notebook, name = await from_page(document, extension.folder), Path(document.path).stem
        except NotebookError as error:
            raise ConfigError(f"%agent export: the notebook can't be read now: {error}") from None
    made, left_out = plain(notebook)
    target = target_of(wanted, name)
    written = await asyncio.to_thread(write, made, target, wanted.kind, force=wanted.force)
    cells = f"{len(made.cells)} cell{'s' * (len(made.cells) != 1)}"
    gone = f", without the {left_out} %agent cell{'s' * (left_out != 1)}" if left_out else ""
    files = f", with {written} file{'s' * (written != 1)} beside it in {target.stem}_files" if written else ""
    return f"Exported {cells} to {shown_path(target)}{gone}{files}."


def read(line: str) -> Wanted:
    """Return what a line asks for; raises `ConfigError` for an option or an ending that does not exist."""
    parser = _Parser(prog="%agent export", add_help=False, allow_abbrev=False)
    parser.add_argument("file", nargs="?", default="")
    parser.add_argument("--to", choices=list(KINDS), default="")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--from", dest="source", default="")
    try:
        words = shlex.split(line)
    except ValueError:
        raise ConfigError(f"%agent export: a quotation mark is not closed in {line!r}. {USAGE}") from None
    given = parser.parse_args(words)
    ending = Path(given.file).suffix.lower()
    kind = given.to or next((kind for kind, known in KINDS.items() if known == ending), "")
    if given.file and not kind:
        raise ConfigError(f"%agent export can't tell from {given.file!r} what to write: end it in .ipynb, .md or .py.")
    return Wanted(given.file, kind or "ipynb", given.force, given.source)


def target_of(wanted: Wanted, name: str) -> Path:
    """Return the file to write to; raises `ConfigError` if it is there and may not be replaced."""
    file = wanted.file or f"{name or 'notebook'}-plain{KINDS[wanted.kind]}"
    target = typed(file)
    if target.is_dir():
        raise ConfigError(f"%agent export: {file} is a folder; name a file in it.")
    if target.exists() and not wanted.force:
        raise ConfigError(f"{file} is there already. Choose another name, or --force replaces it.")
    return target


def typed(name: str) -> Path:
    """Return the path that a person typed: from the kernel's folder on, and without following a link."""
    return Path(os.path.abspath(os.path.expanduser(name)))  # noqa: PTH100, PTH111  (see above)


def shown_path(target: Path) -> str:
    """Return a path as people read it: from the kernel's folder on, if it lies in that."""
    try:
        return str(target.relative_to(Path.cwd()))
    except ValueError:
        return str(target)


# ── where it comes from ──────────────────────────────────────────────────────────────────────────────────────────────


async def from_page(document: Notebook, folder: Path) -> Any:
    """Return the open notebook as an nbformat node: its file where that is the same after a save, else what the page holds."""
    import nbformat

    cells = await document.cells()
    try:
        await document.save()
    except NotebookError:  # a page that can't save now still shows what it shows
        saved = None
    else:
        saved = _saved(document.path, folder, [(cell.id, cell.source) for cell in cells])
    if saved is not None:
        return saved
    made = nbformat.v4.new_notebook(metadata={"language_info": {"name": "python"}})
    for cell in cells:
        found = await document.read(cell.id) if cell.type == "code" else cell
        new: Callable[..., Any] = getattr(nbformat.v4, f"new_{cell.type}_cell")
        fields: dict[str, Any] = {"id": found.id, "metadata": found.metadata}
        if cell.type == "code":
            fields |= {"outputs": list(found.outputs), "execution_count": found.number}
        made.cells.append(nbformat.from_dict(new(clean(found.source), **fields)))
    return nbformat.from_dict(made)


def _saved(path: str, folder: Path, cells: list[tuple[str, str]]) -> Any:
    """Return the notebook that was saved, found by its cells: the page's path is not always the kernel's."""
    name = os.environ.get("JPY_SESSION_NAME", "")
    files = [folder / Path(path).name, folder / path, Path(path), *([Path(name)] if name else [])]
    for file in dict.fromkeys(files):
        try:
            found = from_file(file)
        except ConfigError:
            continue
        if [(cell.get("id"), cell.source) for cell in found.cells] == cells:
            return found
    return None


def from_file(path: Path) -> Any:
    """Return the notebook in a file as an nbformat node of version 4; raises `ConfigError` with one sentence."""
    import nbformat

    try:
        file = ipynb.read(path.read_bytes(), str(path))
        return nbformat.reads(file.text, as_version=4)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}.") from None
    except NotebookError as error:
        raise ConfigError(f"%agent export: {error}") from None


# ── what stays of it ─────────────────────────────────────────────────────────────────────────────────────────────────


def plain(notebook: Any) -> tuple[Any, int]:
    """Return a copy without agent cells and without anything of ours, and how many cells were left out."""
    made = copy.deepcopy(notebook)
    kept: list[Any] = []
    for cell in made.cells:
        source = without_ours(cell.source) if cell.cell_type == "code" else cell.source
        if cell.cell_type == "code" and (starts_agent(cell.source) or (source != cell.source and not source.strip())):
            continue
        cell.source = source
        cell.metadata.pop(KEY, None)
        if cell.cell_type == "code":
            cell.outputs = [_plain_output(output) for output in cell.outputs if not is_marker(output)]
        kept.append(cell)
    left_out = len(made.cells) - len(kept)
    made.cells = kept
    made.metadata.pop(KEY, None)
    made.metadata.pop("widgets", None)  # the state of views, ours among them; what was drawn stays in the outputs
    return made, left_out


def _plain_output(output: Any) -> Any:
    if isinstance(output.get("metadata"), dict):
        output.metadata.pop(KEY, None)
    return output


def without_ours(source: str) -> str:
    """Return a cell's source without the lines that only mean something to nbagent."""
    lines = source.split("\n")
    kept = [line for line in lines if not line.strip().startswith(_OURS) or line.strip().startswith("%agents")]
    return source if len(kept) == len(lines) else "\n".join(kept).strip("\n")


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def write(notebook: Any, target: Path, kind: str, *, force: bool) -> int:
    """Write `notebook` to `target`, whole or not at all; return how many files (images) were put beside it.

    Raises `ConfigError` with one sentence where that can't be done.
    """
    texts: dict[str, Callable[[], tuple[str, dict[str, bytes]]]] = {
        "ipynb": lambda: (_ipynb(notebook), {}),
        "md": lambda: markdown(notebook, target.stem),
        "py": lambda: (script(notebook), {}),
    }
    text, files = texts[kind]()
    return put(text, files, target, force=force, command="export")


def put(text: str, files: Mapping[str, bytes], target: Path, *, force: bool, command: str) -> int:
    """Write a text to `target` and `files` (by their names from its folder) beside it; return how many there are of these.

    Raises `ConfigError` with one sentence, where `%agent COMMAND` is named, if one is there already or can't be written.
    """
    beside = [(target.parent / name, data) for name, data in list(files.items())[:_FILES_LIMIT]]
    there = next((path for path, _ in beside if path.exists()), None)
    if there is not None and not force:
        raise ConfigError(f"{shown_path(there)} is there already. Choose another name, or --force replaces it.")
    try:
        for path, data in [*beside, (target, clean(text).encode("utf-8"))]:
            replace_file(path, data)
    except (OSError, ToolError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"%agent {command}: {shown_path(target)} can't be written: {why}.") from None
    return len(beside)


def _ipynb(notebook: Any) -> str:
    import nbformat

    try:
        nbformat.validate(notebook)
        return nbformat.writes(notebook) + "\n"
    except nbformat.ValidationError as error:
        raise ConfigError(f"%agent export: the notebook is not valid: {str(error).splitlines()[0]}") from None


def markdown(notebook: Any, name: str, **options: Any) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown and its figures as files by their names; `options` are those of nbconvert's exporter."""
    try:
        from nbconvert import MarkdownExporter
    except ImportError:
        raise ConfigError("Markdown needs nbconvert, which is not installed here: pip install nbconvert.") from None
    text, resources = MarkdownExporter(**options).from_notebook_node(
        notebook, {"unique_key": name, "output_files_dir": f"{name}_files", "metadata": {"name": name}}
    )
    files: dict[str, bytes] = resources.get("outputs") or {}
    return text.strip("\n") + "\n", files


def script(notebook: Any) -> str:
    """Return a notebook as a Python script in percent format, which editors and jupytext read: `# %%` begins a cell.

    Magics and shell lines become comments, so that the script is Python; so do text cells.
    """
    parts: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            parts.append(f"# %%\n{_as_python(cell.source)}".rstrip())
        else:
            text = "\n".join(f"# {line}".rstrip() for line in cell.source.splitlines())
            parts.append(f"# %% [{cell.cell_type}]\n{text}".rstrip())
    return "\n\n".join(parts) + "\n"


def _as_python(source: str) -> str:
    if source.lstrip().startswith("%%"):
        return _commented(source.splitlines())
    if _is_python(source):
        return source
    lines = [f"{_indent(line)}pass  # {line.strip()}" if _indent(line) and _is_escaped(line) else line
             for line in source.splitlines()]  # fmt: skip
    lines = [f"# {line}" if _is_escaped(line) else line for line in lines]
    return "\n".join(lines) if _is_python("\n".join(lines)) else _commented(source.splitlines())


def _is_python(source: str) -> bool:
    """Whether a cell can stand in a script as it is; code that awaits can, in what runs such scripts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(source, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _commented(lines: list[str]) -> str:
    return "\n".join(f"# {line}".rstrip() for line in lines)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _is_escaped(line: str) -> bool:
    """Whether a line is IPython's: a magic, a shell command, help, or a name that takes the result of one."""
    text = line.strip()
    after = text.partition("=")[2].strip()
    return text.startswith(("%", "!", "?")) or text.endswith("?") or after.startswith(("!", "%"))
