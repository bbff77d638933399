"""The system prompt: named parts, each a Markdown file beside this one that a person can read and override.

The parts are the same bytes for a whole session (no date, no folder, no mode), since the model's cache and its
thinking are bound to the exact prefix; what changes goes into messages. This package must not know of tools or
sessions. Read the Markdown files in their order, then `compose`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType

from nbagent.core.errors import ConfigError

_NOTHING: Mapping[str, str] = MappingProxyType({})


def parts() -> dict[str, str]:
    """Return the text of each part by name, in the order in which they stand; `10_identity.md` is `identity`."""
    files = sorted(
        (file for file in resources.files(__name__).iterdir() if file.name.endswith(".md")), key=lambda file: file.name
    )
    return {file.name.removesuffix(".md").partition("_")[2]: file.read_text(encoding="utf-8").strip() for file in files}


def compose(overrides: Mapping[str, str] = _NOTHING, append: str = "") -> str:
    """Return the whole system prompt.

    Args:
        overrides: texts by part name that stand in place of ours; a blank one leaves the part out.
        append: what the person adds at the end.

    Raises:
        ConfigError: an override names no part.
    """
    texts = parts()
    if unknown := [name for name in overrides if name not in texts]:
        raise ConfigError(
            f"The system prompt has no part {', '.join(map(repr, unknown))}. Its parts are {', '.join(texts)}."
        )
    texts.update(overrides)
    chosen = [*(text.strip() for text in texts.values()), append.strip()]
    return "\n\n".join(text for text in chosen if text)
