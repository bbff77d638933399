"""Wrong answers to lesson 04: no choices, no default, the wrong order; a range or a unit let through; errors that look like results."""

from __future__ import annotations

from nbagent.teach.lessons.tools import EXERCISES

_SCHEMA, _FIX, _ERROR, _RUNTIME = (each.answer for each in EXERCISES)


def _but(source: str, old: str, new: str) -> str:
    """The given answer with one thing wrong."""
    assert old in source
    return source.replace(old, new)


WRONG: dict[str, tuple[str, str, str]] = {
    "04.schema": (
        _but(_SCHEMA, 'species: Literal["Adelie", "Chinstrap", "Gentoo"]', "species: str"),
        _but(_SCHEMA, "reverse=True", "reverse=False"),
        _but(_SCHEMA, "        by: The measure, a column of the table.\n", ""),
    ),
    "04.fix": (
        _but(_FIX, "Annotated[int, Field(ge=0, le=6)]", "int"),
        _but(_FIX, 'Literal["g", "kg", "lb"]', "str"),
        _but(_FIX, "grams: float,", "grams: float = 0,"),
    ),
    "04.error": (
        _but(_ERROR, "raise ToolError(f", "return (f"),
        _but(_ERROR, "raise ToolError(f", "raise ValueError(f"),
        _but(_ERROR, " There are: {', '.join(NUMBERS)}.", ""),
    ),
    "04.runtime": (
        _but(_RUNTIME, '"ask", "deny"', '"deny", "deny"'),
        _but(_RUNTIME, '["allow", "invalid"', '["allow", "allow"'),
        _but(_RUNTIME, '"default": ["allow", "invalid", "invalid", "ask", "ask"]', '"default": ["allow"]'),
    ),
}
