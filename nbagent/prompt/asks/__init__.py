"""What the model is asked to do by `%agent explain`, `%agent review` and `%agent report --write`: a Markdown file each.

Their texts go into one prompt, never into the system prompt: they cost nothing where they are not used. Read `instructions`.
"""

from __future__ import annotations

from importlib import resources


def instructions(name: str) -> str:
    """Return the text of `name`: explain, review or report."""
    return resources.files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()
