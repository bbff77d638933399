"""Puts an MCP server's question (elicitation) to the person, one field at a time, and gives their answers their types.

The server is named in every question, and its words are shown as they are: hidden characters as codes, never as markup.
Nobody there, or no fitting answer: the question is cancelled. Must not know of clients. Read `form`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from nbagent.core.messages import Json
from nbagent.core.shown import visible_plain

Ask = Callable[[str, tuple[str, ...]], Awaitable[str]]
"""Asks the person: a text and choices (they may also write); "" where nobody is there."""
Answer = tuple[Literal["accept", "decline", "cancel"], Json | None]

DECLINE = "Don't answer"
LEAVE_OUT = "Leave it out"
YES, NO = "Yes", "No"
DONE = "I have opened it"
_TRIES = 3
_TEXT = 2000
_FIELDS = 30
_CHOICES = 20


async def form(server: str, message: str, schema: Mapping[str, Any], ask: Ask) -> Answer:
    """Ask for the fields of a flat JSON schema; return the action and the content."""
    intro = f"The MCP server “{_shown(server)}” asks: {_shown(message)}"
    found = schema.get("properties")
    fields = list(found.items())[:_FIELDS] if isinstance(found, Mapping) else []
    if not fields:
        said = await ask(intro, (YES, NO))
        return ("accept", {}) if _truth(said) else ("cancel" if not said else "decline", None)
    required = schema.get("required")
    needed = {str(name) for name in required} if isinstance(required, list) else set[str]()
    content: Json = {}
    for name, spec in fields:
        about: Mapping[str, Any] = spec if isinstance(spec, Mapping) else {}
        answered = await _field(intro, str(name), about, ask, needed=str(name) in needed)
        if answered in ("decline", "cancel"):
            return answered, None
        if answered is not None:
            content[str(name)] = answered[0]
        intro = f"The MCP server “{_shown(server)}” also asks:"
    return "accept", content


async def page(server: str, message: str, url: str, ask: Ask) -> Answer:
    """Show an address that the person may open themselves; nothing is opened for them."""
    text = (
        f"The MCP server “{_shown(server)}” asks you to open a page: {_shown(message)}\n{_shown(url)}\n"
        "Open it only if you expect this."
    )
    said = await ask(text, (DONE, DECLINE))
    return ("accept" if said == DONE else "decline" if said else "cancel"), None


async def _field(
    intro: str, name: str, spec: Mapping[str, Any], ask: Ask, *, needed: bool
) -> tuple[Any] | Literal["decline", "cancel"] | None:
    """Ask for one field: its value in a tuple, None where it is left out."""
    options = _options(spec)
    offered = (YES, NO) if spec.get("type") == "boolean" else tuple(list(options)[:_CHOICES])
    if not offered and isinstance(spec.get("default"), str | int | float):
        offered = (str(spec["default"]),)
    choices = (*offered, *(() if needed else (LEAVE_OUT,)), DECLINE)
    title = _shown(str(spec.get("title") or name))
    about = f" ({_shown(str(spec['description']))})" if spec.get("description") else ""
    text = f"{intro}\n{title}{about}{_expected(spec, options)}"
    for _ in range(_TRIES):
        said = await ask(text, choices)
        if not said.strip():
            return "cancel"
        if said == DECLINE:
            return "decline"
        if said == LEAVE_OUT and not needed:
            return None
        try:
            return (_typed(said.strip(), spec, options),)
        except ValueError as error:
            text = f"{title}: {error}{_expected(spec, options)}"
    return "cancel"


def _options(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a field may have, by what a person reads."""
    inner: Mapping[str, Any] = spec["items"] if isinstance(spec.get("items"), Mapping) else spec
    values, names = inner.get("enum"), inner.get("enumNames")
    if isinstance(values, list):
        shown = names if isinstance(names, list) and len(names) == len(values) else values
        return {_shown(str(label)): value for label, value in zip(shown, values, strict=True)}
    for key in ("oneOf", "anyOf"):
        entries = inner.get(key)
        if isinstance(entries, list):
            known = [e for e in entries if isinstance(e, Mapping) and "const" in e]
            return {_shown(str(e.get("title") or e["const"])): e["const"] for e in known}
    return {}


def _expected(spec: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    if spec.get("type") == "array":
        return f"\nOne or more of {', '.join(list(options)[:_CHOICES])}, with commas between them."
    limits = [f"{word} {spec[key]}" for key, word in (("minimum", "at least"), ("maximum", "at most")) if key in spec]
    kind = {"integer": "a whole number", "number": "a number"}.get(str(spec.get("type")), "")
    said = ", ".join(text for text in (kind, *limits, str(spec.get("format") or "")) if text)
    return f"\n({said})" if said else ""


def _typed(said: str, spec: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    kind = spec.get("type")
    if kind == "array":
        return [_one_of(part.strip(), options) for part in said.split(",") if part.strip()]
    if options:
        return _one_of(said, options)
    if kind == "boolean":
        if said.casefold() not in _WORDS:
            raise ValueError(f"“{_shown(said)}” is neither yes nor no.")
        return _WORDS[said.casefold()]
    if kind in {"integer", "number"}:
        return _number(said, spec)
    length = len(said)
    if length < int(spec.get("minLength") or 0) or length > int(spec.get("maxLength") or 1_000_000):
        raise ValueError(
            f"it must have {spec.get('minLength', 0)} to {spec.get('maxLength', 'any number of')} characters."
        )
    return said


def _number(said: str, spec: Mapping[str, Any]) -> int | float:
    try:
        value = int(said) if spec.get("type") == "integer" else float(said)
    except ValueError:
        raise ValueError(f"“{_shown(said)}” is not a number that fits.") from None
    low, high = spec.get("minimum"), spec.get("maximum")
    if (isinstance(low, int | float) and value < low) or (isinstance(high, int | float) and value > high):
        raise ValueError(f"{value} is outside of the limits.")
    return value


def _one_of(said: str, options: Mapping[str, Any]) -> Any:
    if said in options:
        return options[said]
    for value in options.values():
        if str(value) == said:
            return value
    raise ValueError(f"“{_shown(said)}” is not one of the choices.")


_WORDS = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


def _truth(said: str) -> bool:
    return _WORDS.get(said.strip().casefold(), False)


def _shown(text: str) -> str:
    return visible_plain(text if len(text) <= _TEXT else f"{text[:_TEXT]}…", spaces=False)
