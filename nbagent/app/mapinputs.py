"""What a map is given, one by one: paths, texts, rows of a table; what each is called, and the prompt that is made of it.

Nothing large goes into a job: data stays in files, and a job carries the path. Must not know how a job is run. Read
`items_of`, then `prompted`.
"""

from __future__ import annotations

import datetime as dt
import difflib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json, clean_value

Prompt = str | Callable[[Any], str]
Kind = Literal["notebook", "file", "folder", "text", "values"]

LARGEST = 256 * 1024
"""Bytes of JSON of one input: what is larger belongs in a file."""

_FIELD = re.compile(r"\{\{([^\W\d]\w*|\d+)\}\}|\{([^\W\d]\w*|\d+)\}")
_TEXT_BELOW = 20_000


@dataclass(frozen=True, slots=True)
class Item:
    """One input. `given` is what the person gave, `shown` it as JSON, `path` its absolute path where it is one.

    `fields` are what may stand in the prompt as `{name}`, and what is put into the kernel under these names (paths as text).
    """

    index: int
    kind: Kind
    given: Any
    shown: Json
    fields: Json
    path: str = ""

    @property
    def text(self) -> str:
        """The input as a prompt names it."""
        return _as_text(
            self.fields["item"] if self.path or self.kind == "text" else self.shown.get("input", self.shown)
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """One input with its prompt, and the key (16 hex digits) by which it is found again in a later map of the same folder."""

    item: Item
    prompt: str
    key: str
    variables: Json = field(default_factory=dict[str, Any])


def items_of(inputs: object, folder: Path) -> list[Item]:
    """Return the inputs, in their order; relative paths are those of `folder`.

    A `Path`, and a text that names a file or folder that is there, is a path; any other text is text; a dict, a row of a
    data frame, and a tuple of values are values. Raises `ConfigError` that names the first input that can't be one.
    """
    return [_item(index, given, folder) for index, given in enumerate(_each(inputs))]


def _each(inputs: object) -> Iterator[Any]:
    """Yield one input after the other: of a data frame its rows, each as a dict."""
    if isinstance(inputs, str | bytes | os.PathLike):
        raise ConfigError(f"inputs = {str(inputs)[:80]!r} is one input. Give a list of them: [{str(inputs)[:40]!r}].")
    if isinstance(inputs, Mapping):
        raise ConfigError("inputs is a dict: give a list of inputs, e.g. a list of dicts.")
    if _is_frame(inputs):
        frame: Any = inputs
        if hasattr(frame, "iter_rows"):  # polars
            yield from frame.iter_rows(named=True)
            return
        names = [str(name) for name in frame.columns]
        for row in frame.itertuples(index=False, name=None):
            yield dict(zip(names, row, strict=True))
        return
    if not isinstance(inputs, Iterable):
        raise ConfigError(f"inputs = {inputs!r} is no list of inputs.")
    yield from cast("Iterable[Any]", inputs)


def _is_frame(value: object) -> bool:
    return hasattr(value, "columns") and (hasattr(value, "itertuples") or hasattr(value, "iter_rows"))


def _is_data(value: object) -> bool:
    """Whether a value is data of some size: a frame, a series, an array; a single number of numpy's is none."""
    series = hasattr(value, "to_frame") and hasattr(value, "dtype")
    return (_is_frame(value) or series or hasattr(value, "__array__")) and getattr(value, "shape", None) != ()


def _item(index: int, given: Any, folder: Path) -> Item:
    if _is_data(given):
        raise ConfigError(
            f"Input {index} is a {type(given).__name__}. Data does not travel in jobs: save it to a file (Parquet, CSV), and "
            "give the path."
        )
    if isinstance(given, os.PathLike) or (isinstance(given, str) and _names_a_file(given, folder)):
        return _of_path(index, given, folder)
    if isinstance(given, str):
        text = str(clean_value(given))
        if len(text) > LARGEST:
            raise ConfigError(
                f"Input {index} is a text of more than {LARGEST // 1024} KB: save it to a file, and give the path as the input."
            )
        return Item(index, "text", given, {"input": text}, {"item": text})
    if isinstance(given, tuple) and hasattr(given, "_asdict"):
        given = cast("Any", given)._asdict()
    try:
        value = _plain(index, given)
    except RecursionError:
        raise ConfigError(f"Input {index} holds itself, or is nested too deeply to travel in a job.") from None
    if len(json.dumps(value)) > LARGEST:
        raise ConfigError(
            f"Input {index} is larger than {LARGEST // 1024} KB: save it to a file, and give the path as the input."
        )
    if isinstance(value, dict):
        return Item(index, "values", given, value, {"item": value, **value})
    if isinstance(given, tuple):
        numbered = {str(at): one for at, one in enumerate(value)}
        return Item(index, "values", given, {"input": value}, {**numbered, "item": value})
    return Item(index, "values", given, {"input": value}, {"item": value})


def _names_a_file(text: str, folder: Path) -> bool:
    """Whether a text is the path of something that is there; one of several lines, or of spaces only, is none."""
    if not text.strip() or "\n" in text or "\0" in text or len(text) > 1000:
        return False
    try:
        return (folder / text).exists()
    except (OSError, ValueError):
        return False


def _of_path(index: int, given: Any, folder: Path) -> Item:
    text = os.fspath(given)
    path = Path(os.path.abspath(folder / text))  # noqa: PTH100  (links stay as they are named)
    if not path.exists():
        raise ConfigError(f"Input {index}, {text}, is not there.")
    kind: Kind = "folder" if path.is_dir() else "notebook" if path.suffix.lower() == ".ipynb" else "file"
    named = text if kind == "file" else str(path)  # these two are worked on in their own folder
    fields = {"item": named, "path": named, "name": path.name, "stem": path.stem, "folder": str(path.parent)}
    return Item(index, kind, given, {"input": text}, fields, str(path))


def _plain(index: int, value: Any) -> Any:
    """Return a value as JSON: numbers of numpy's as numbers, times as text; raises `ConfigError` for what is no value."""
    if isinstance(value, Mapping):
        return {str(key): _plain(index, one) for key, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(index, one) for one in cast("Iterable[Any]", value)]
    if value is None or isinstance(value, bool | int | float):
        return None if value != value else value  # noqa: PLR0124  (not a number: there is no such JSON)
    if isinstance(value, str):
        return clean_value(value)
    if isinstance(value, os.PathLike):
        return str(value)
    if isinstance(value, dt.date | dt.time):
        return None if str(value) == "NaT" else value.isoformat()
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a single number of numpy's
        return _plain(index, value.item())
    if type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if type(value).__name__ in {"Decimal", "UUID", "Timedelta", "timedelta"}:
        return str(value)
    raise ConfigError(
        f"Input {index} holds a {type(value).__name__}, which can't travel in a job. Give texts, numbers, lists or dicts of "
        "them, or the path of a file."
    )


# ── the prompt of one input ──────────────────────────────────────────────────────────────────────────────────────────


def asked(prompt: Prompt, items: Iterable[Item]) -> list[Asked]:
    """Return each input with its prompt and its key; raises `ConfigError`.

    Two inputs that are the same are two, by their number among these.
    """
    seen: dict[str, int] = {}
    made: list[Asked] = []
    for item in items:
        base = json.dumps([item.kind if item.path else "", item.path or item.shown], sort_keys=True, default=str)
        again = seen[base] = seen.get(base, -1) + 1
        key = hashlib.sha256(f"{base}\0{again}".encode("utf-8", "replace")).hexdigest()[:16]
        made.append(Asked(item, prompted(prompt, item), key, variables(item)))
    return made


def prompted(prompt: Prompt, item: Item) -> str:
    """Return the prompt of one input: `{name}` is replaced by its field, everything else stays as it is.

    `{{name}}` stands for the very characters `{name}`. Where no field stands in the prompt, the input is told below it.
    Raises `ConfigError` for a field that is nearly one of the input's, and what a prompt that is a function raises.
    """
    if callable(prompt):
        try:
            made = prompt(item.given)
        except Exception as error:  # the person's own code: it is raised as it is
            error.add_note(f"This was raised by the prompt of input {item.index}.")
            raise
        if not str(made).strip():
            raise ConfigError(f"The prompt of input {item.index} is empty: the function returned {made!r}.")
        return str(made)
    used = False

    def put(match: re.Match[str]) -> str:
        nonlocal used
        near = difflib.get_close_matches(match[1] or match[2], item.fields, 1, 0.75)
        if match[1] is not None:
            return match[0][1:-1] if near else match[0]
        if match[2] in item.fields:
            used = True
            return _as_text(item.fields[match[2]])
        if near:
            raise ConfigError(
                f"Input {item.index} has no field {match[2]!r}. Did you mean {{{near[0]}}}? To write these very characters: {{{match[0]}}}."
            )
        return match[0]

    text = _FIELD.sub(put, prompt)
    return text if used else "\n\n".join(part for part in (text.strip(), _below(item)) if part)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _below(item: Item) -> str:
    """Return what a prompt without fields is told of its input."""
    match item.kind:
        case "notebook":
            return f"The notebook is {item.text}. It is open."
        case "folder":
            return f"The folder is {item.text}, the working folder."
        case "file":
            return f"The file is {item.text}."
        case "text":
            return item.text
        case "values":
            names = ", ".join(variables(item))
            return f"{item.text[:_TEXT_BELOW]}\n\nIn the kernel: {names}."


def variables(item: Item) -> Json:
    """Return what is put into the kernel: `item`, and the fields of a row whose names can be those of variables."""
    fields = item.fields if item.kind == "values" else {"item": item.fields["item"]}
    return {name: value for name, value in fields.items() if _is_name(name)}


def _is_name(name: str) -> bool:
    import builtins
    import keyword

    free = not hasattr(builtins, name) and name not in {"In", "Out", "exit", "quit", "get_ipython"}
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_") and free
