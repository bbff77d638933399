"""What a person reads before they decide, in the same words on every surface: hidden characters, and what a rule means.

Pure text: knows nothing of HTML, terminals or policies. Read `visible_plain`, then `rule_words`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]")
"""Characters that may need to be shown as codes: a quick look before `is_hidden`."""

_DONE_WITH = re.compile(r"(\w+) (`[^`]+`)")
_NAMED = 8  # names of a kind that are said one by one
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0\u2800")


def is_hidden(char: str, *, spaces: bool = True) -> bool:
    """Tell whether a character cannot be seen as itself: controls, bidi and format marks, fillers, odd spaces.

    `spaces`: whether unusual spaces (no-break, thin) count, as they do in code.
    """
    if char in "\n\t ":
        return False
    category = unicodedata.category(char)
    if category == "Zs":
        return spaces
    selector = 0xFE00 <= ord(char) <= 0xFE0E or 0xE0100 <= ord(char) <= 0xE01EF
    return category[0] == "C" or category in {"Zl", "Zp"} or selector or char in _BLANK_LETTERS


def code_of(char: str) -> str:
    """Return how a hidden character is shown, as ⟨U+202E⟩."""
    return f"⟨U+{ord(char):04X}⟩"


def visible_plain(text: str, *, spaces: bool = True) -> str:
    """Return `text` with each hidden character replaced by its code, as ⟨U+202E⟩; line ends and tabs stay."""
    return UNUSUAL.sub(lambda m: code_of(m[0]) if is_hidden(m[0], spaces=spaces) else m[0], text)


def effects_words(effects: Sequence[str]) -> str:
    """Return what code would probably do, as one line that says that it is a hint; "" where nothing is known.

    Names that the same is done with stand together: "rebinds `a`, `b`".
    """
    said: list[str] = []
    names: dict[str, list[str]] = {}
    for effect in effects:
        found = _DONE_WITH.fullmatch(effect)
        if found is None:
            said.append(effect)
        elif (verb := found[1]) in names:
            names[verb].append(found[2])
        else:
            names[verb] = [found[2]]
            said.append(verb)
    whole = [f"{part} {_first(names[part])}" if part in names else part for part in said]
    return f"Probably: {' · '.join(whole)}" if whole else ""


def _first(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names) if rest <= 1 else f"{', '.join(names[:_NAMED])} and {rest} other names"


def rule_words(rule: str, offers: Sequence[str], preview_kind: str) -> str:
    """Return what keeping `rule`, one of `offers`, for the session means, in words.

    `preview_kind` is the kind of the preview of the call that they are offered for: what such calls carry.
    """
    tool, _, pattern = rule.partition("(")
    exact = any("(sha256:" in offer for offer in offers)
    thing = {"command": "command", "code": "code", "diff": "code"}.get(preview_kind, "") if exact else ""
    if pattern.startswith("sha256:"):
        return f"exactly this {thing or 'call'}, nothing else (this session)"
    if pattern:
        return f"every call of {tool} on {pattern.removesuffix(')')}, nothing else (this session)"
    still = "; risky code is still asked about" if thing == "code" else ""
    whatever = f"whatever the {thing}" if thing else "whatever it is given"
    return f"every call of {tool} from now on, {whatever} (this session{still})"
