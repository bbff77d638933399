"""Texts that cite pages, put together again: a server cuts a text where a citation begins and ends.

Pure; knows of items and of blocks, and of no surface. Read `with_citations`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from nbagent.view.items import Item, TextItem
from nbagent.view.web import cited, has_citations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbagent.core.messages import Block


def with_citations(items: Sequence[Item], reply: int, content: Sequence[Block]) -> tuple[Item, ...]:
    """Return `items` with the texts of that reply which cite pages put together, each citation a link.

    The first piece of such a text gets all of it, the others become empty. Where pieces and blocks can't be matched
    nothing changes.
    """
    texts = [i for i in items if isinstance(i, TextItem) and i.reply == reply and i.text.strip() and not i.discarded]
    told = [block for block in content if block.get("type") == "text"]
    if len(texts) != len(told) or not any(has_citations(block) for block in told):
        return tuple(items)
    place = 0
    changed: dict[str, Item] = {}
    for kind, group in groupby(content, lambda block: block.get("type")):
        if kind != "text":
            continue
        blocks = list(group)
        if any(has_citations(block) for block in blocks):
            first, *rest = texts[place : place + len(blocks)]
            plain = "".join(str(block.get("text") or "") for block in blocks)
            changed[first.key] = replace(first, text=cited(blocks), plain=plain, done=True)
            changed |= {item.key: replace(item, text="", done=True) for item in rest}
        place += len(blocks)
    return tuple(changed.get(item.key, item) for item in items)
